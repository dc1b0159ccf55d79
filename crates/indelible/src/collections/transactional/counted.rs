//! A hash map that counts its keys.

use super::Value;
use super::hash_map::{Counted, TxHashMap};
use crate::collections::key::{KeyHash, StableHash};
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell};

const COUNTS: usize = 16;

/// A [`TxHashMap`] whose [`len`](TxCountedMap::len) reads 16 words, however many keys there are.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::collections::transactional::TxCountedMap;
///
/// let heap = pool.transactional_heap("users", 4 << 20)?;
/// let users = heap.root_or_default::<TxCountedMap<u64, u64>>("users")?;
/// let len = heap.transaction(|tx| {
///     users.insert(tx, 7, 100)?;
///     users.len(tx)
/// })?;
/// assert_eq!(len, 1);
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// A key is counted in one of 16 cache lines. So one in 16 pairs of concurrent transactions that
/// each add or remove one key conflicts, and most pairs that each add or remove four. A transaction
/// that reads `len` conflicts with all that add or remove keys. The counts take 1 KiB.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxCountedMap<K, V> {
    map: TxHashMap<K, V>,
    /// Added up, modulo 2⁶⁴, the number of keys; a key is counted where its hash says.
    counts: [Count; COUNTS],
}

/// In a cache line of its own, whatever the alignment.
#[derive(Plain, Persist)]
#[repr(C)]
struct Count {
    apart: [TxCell<u64>; 7],
    count: TxCell<u64>,
}

impl<K, V> Counted for TxCountedMap<K, V> {}

impl<K: Value + StableHash + Eq, V: Value> TxCountedMap<K, V> {
    /// Number of keys.
    pub fn len(&self, tx: &mut Tx<'_>) -> Result<u64> {
        self.counts.iter().try_fold(0_u64, |sum, part| Ok(sum.wrapping_add(tx.read(&part.count)?)))
    }

    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        self.map.is_empty(tx)
    }

    /// The value of a key.
    pub fn get(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        self.map.get(tx, key)
    }

    /// The cell of a key's value.
    pub fn cell<'t>(&self, tx: &mut Tx<'t>, key: K) -> Result<Option<&'t TxCell<V>>> {
        self.map.cell(tx, key)
    }

    /// Sets a key's value; returns the former one.
    pub fn insert(&self, tx: &mut Tx<'_>, key: K, value: V) -> Result<Option<V>> {
        let old = self.map.insert(tx, key, value)?;
        if old.is_none() {
            tx.update(self.count(&key), |count| count.wrapping_add(1))?;
        }
        Ok(old)
    }

    /// Removes a key; returns its value.
    pub fn remove(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let old = self.map.remove(tx, key)?;
        if old.is_some() {
            tx.update(self.count(&key), |count| count.wrapping_sub(1))?;
        }
        Ok(old)
    }

    /// Calls `each` with every key and its value's cell, unordered.
    ///
    /// # Errors
    /// That of `each`, at once; see the [module](super).
    pub fn for_each<'t>(
        &self,
        tx: &mut Tx<'t>,
        each: impl FnMut(&mut Tx<'t>, K, &'t TxCell<V>) -> Result<()>,
    ) -> Result<()> {
        self.map.for_each(tx, each)
    }

    /// Removes all keys.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        self.map.clear(tx)?;
        self.counts.iter().try_for_each(|part| tx.write(&part.count, 0))
    }

    fn count(&self, key: &K) -> &TxCell<u64> {
        let mut hash = KeyHash::new(0);
        key.stable_hash(&mut hash);
        &self.counts[hash.finish() as usize % COUNTS].count
    }
}
