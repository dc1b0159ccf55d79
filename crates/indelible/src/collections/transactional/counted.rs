//! A hash map that counts its keys.

use super::Value;
use super::hash_map::TxHashMap;
use crate::collections::key::{KeyHash, StableHash};
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell};

const COUNTS: usize = 16;

/// A [`TxHashMap`] whose [`len`](TxCountedMap::len) reads 16 words, however many keys there are.
///
/// Of two transactions that add or remove keys at once, one in 16 conflicts, by the count that both
/// change; one that reads `len` conflicts with all of them.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxCountedMap<K, V> {
    map: TxHashMap<K, V>,
    /// Added up, modulo 2⁶⁴, the number of keys; a key is counted where its hash says.
    counts: [TxCell<u64>; COUNTS],
}

impl<K: Value + StableHash + Eq, V: Value> TxCountedMap<K, V> {
    /// Number of keys.
    pub fn len(&self, tx: &mut Tx<'_>) -> Result<u64> {
        self.counts.iter().try_fold(0_u64, |sum, count| Ok(sum.wrapping_add(tx.read(count)?)))
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
        self.counts.iter().try_for_each(|count| tx.write(count, 0))
    }

    fn count(&self, key: &K) -> &TxCell<u64> {
        let mut hash = KeyHash::new(0);
        key.stable_hash(&mut hash);
        &self.counts[hash.finish() as usize % COUNTS]
    }
}
