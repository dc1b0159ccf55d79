//! A hash map: a tree of sixteen ways, by the bits of the hash, lowest first. It is never rebuilt,
//! and counts nothing: transactions conflict only where they change the same place.

use super::Value;
use super::steps::{Steps, damaged};
use crate::collections::key::{KeyHash, StableHash};
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell, TxPtr};

const WAYS: usize = 16;
const LEVELS: usize = 16;
const BRANCH: u64 = 1;

/// A hash map.
///
/// Transactions that change different keys seldom conflict. So it does not know its length: each
/// insertion would change a word that `len` reads, and if `len` reads few words, two insertions
/// often change the same one. [`TxCountedMap`](super::TxCountedMap) is the same map with `len`.
/// `K` and `V` have whole words.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxHashMap<K, V> {
    root: TxCell<TxPtr<Branch>>,
    seed: TxCell<u64>,
    of: [TxCell<TxPtr<Leaf<K, V>>>; 0],
}

/// Maps that know their number of keys.
#[diagnostic::on_unimplemented(
    message = "a `TxHashMap` does not know its length",
    label = "has no `len`",
    note = "a `TxCountedMap` has, and the same methods otherwise; `TxHashMap::count` counts key by key"
)]
pub trait Counted {}

/// Per four bits of the hash: 0, keys of one hash, or a next branch.
#[derive(Plain)]
#[repr(C)]
struct Branch {
    ways: [TxCell<u64>; WAYS],
}

#[derive(Plain)]
#[repr(C)]
struct Leaf<K, V> {
    hash: TxCell<u64>,
    next: TxCell<u64>,
    key: TxCell<K>,
    value: TxCell<V>,
}

#[inline]
fn way(branch: &Branch, hash: u64, level: usize) -> &TxCell<u64> {
    &branch.ways[(hash >> (4 * level)) as usize % WAYS]
}

/// The cells that lead to a key, from the root on.
struct Path<'t> {
    ways: [Option<&'t TxCell<u64>>; LEVELS],
    len: usize,
}

impl<'t> Path<'t> {
    #[inline]
    fn push(&mut self, way: &'t TxCell<u64>) {
        self.ways[self.len] = Some(way);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<&'t TxCell<u64>> {
        self.len = self.len.checked_sub(1)?;
        self.ways[self.len]
    }

    fn last(&self) -> Option<&'t TxCell<u64>> {
        self.ways[..self.len].last().copied().flatten()
    }
}

struct Found<'t, K, V> {
    /// The path's last cell, or the previous key's link.
    link: &'t TxCell<u64>,
    leaf: Option<At<'t, K, V>>,
}

type At<'t, K, V> = (TxPtr<Leaf<K, V>>, &'t Leaf<K, V>);

impl<K: Value + StableHash + Eq, V: Value> TxHashMap<K, V> {
    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        let Some(root) = tx.read(&self.root)?.some() else { return Ok(true) };
        is_bare(tx, tx.at(root)?)
    }

    #[inline]
    fn hash(&self, tx: &mut Tx<'_>, key: &K) -> Result<u64> {
        let mut hash = KeyHash::new(tx.read(&self.seed)?);
        key.stable_hash(&mut hash);
        Ok(hash.finish())
    }

    /// `None`: there is no root. `pass` gets the cells on the way.
    #[inline]
    fn find<'t>(
        &self,
        tx: &mut Tx<'t>,
        key: &K,
        hash: u64,
        mut pass: impl FnMut(&'t TxCell<u64>),
    ) -> Result<Option<Found<'t, K, V>>> {
        let Some(root) = tx.read(&self.root)?.some() else { return Ok(None) };
        let mut link = way(tx.at(root)?, hash, 0);
        pass(link);
        let (mut at, mut level) = (tx.read(link)?, 1);
        while at & BRANCH != 0 {
            if level == LEVELS {
                return Err(damaged("a map has too many levels"));
            }
            link = way(tx.at(TxPtr::<Branch>::new(at & !BRANCH))?, hash, level);
            pass(link);
            (at, level) = (tx.read(link)?, level + 1);
        }
        let mut steps = Steps::of(tx, self)?;
        while at != 0 {
            steps.step()?;
            let pointer = TxPtr::<Leaf<K, V>>::new(at);
            let leaf = tx.at(pointer)?;
            if tx.read(&leaf.hash)? == hash && tx.read(&leaf.key)? == *key {
                return Ok(Some(Found { link, leaf: Some((pointer, leaf)) }));
            }
            at = tx.read(&leaf.next)?;
            if at != 0 {
                link = &leaf.next;
            }
        }
        Ok(Some(Found { link, leaf: None }))
    }

    /// The value of a key.
    pub fn get(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let cell = self.cell(tx, key)?;
        cell.map(|cell| tx.read(cell)).transpose()
    }

    /// The cell of a key's value.
    pub fn cell<'t>(&self, tx: &mut Tx<'t>, key: K) -> Result<Option<&'t TxCell<V>>> {
        let hash = self.hash(tx, &key)?;
        let found = self.find(tx, &key, hash, |_| ())?;
        Ok(found.and_then(|found| found.leaf).map(|(_, leaf)| &leaf.value))
    }

    /// Sets a key's value; returns the former one.
    pub fn insert(&self, tx: &mut Tx<'_>, key: K, value: V) -> Result<Option<V>> {
        if tx.read(&self.root)?.is_null() {
            let root = tx.alloc_beside(self, Branch::bare())?;
            tx.write(&self.root, root)?;
            tx.write(&self.seed, crate::collections::table::random())?;
        }
        let hash = self.hash(tx, &key)?;
        let (mut last, mut level) = (None, 0);
        let found = self.find(tx, &key, hash, |way| (last, level) = (Some(way), level + 1))?;
        let (Some(found), Some(mut last)) = (found, last) else { return Err(damaged("a map lost its root")) };
        if let Some((_, leaf)) = found.leaf {
            let old = tx.read(&leaf.value)?;
            tx.write(&leaf.value, value)?;
            return Ok(Some(old));
        }
        let there = tx.read(last)?;
        let mut next = 0;
        if there != 0 {
            let other = tx.read(&tx.at(TxPtr::<Leaf<K, V>>::new(there))?.hash)?;
            if other == hash {
                next = there;
            } else {
                last = self.part(tx, (last, there), level, [hash, other])?;
            }
        }
        let leaf = Leaf {
            hash: TxCell::new(hash),
            next: TxCell::new(next),
            key: TxCell::new(key),
            value: TxCell::new(value),
        };
        let leaf = tx.alloc_beside(self, leaf)?;
        tx.write(last, leaf.address())?;
        Ok(None)
    }

    fn part<'t>(
        &self,
        tx: &mut Tx<'t>,
        (mut last, there): (&'t TxCell<u64>, u64),
        level: usize,
        [hash, other]: [u64; 2],
    ) -> Result<&'t TxCell<u64>> {
        for level in level..LEVELS {
            let branch = tx.alloc_beside(self, Branch::bare())?;
            tx.write(last, branch.address() | BRANCH)?;
            let branch = tx.at(branch)?;
            let others = way(branch, other, level);
            last = way(branch, hash, level);
            if !std::ptr::eq(last, others) {
                tx.write(others, there)?;
                return Ok(last);
            }
        }
        Err(damaged("a key lies where its hash does not lead"))
    }

    /// Removes a key; returns its value.
    pub fn remove(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let hash = self.hash(tx, &key)?;
        let mut path = Path { ways: [None; LEVELS], len: 0 };
        let found = self.find(tx, &key, hash, |way| path.push(way))?;
        let Some(Found { link, leaf: Some((pointer, leaf)) }) = found else { return Ok(None) };
        let (value, next) = (tx.read(&leaf.value)?, tx.read(&leaf.next)?);
        tx.free(pointer)?;
        tx.write(link, next)?;
        while let Some(way) = path.pop()
            && let Some(above) = path.last()
            && tx.read(way)? == 0
        {
            let branch = TxPtr::<Branch>::new(tx.read(above)? & !BRANCH);
            if !is_bare(tx, tx.at(branch)?)? {
                break;
            }
            tx.free(branch)?;
            tx.write(above, 0)?;
        }
        Ok(Some(value))
    }

    /// Calls `each` with every key and its value's cell, unordered.
    ///
    /// # Errors
    /// That of `each`, at once; see the [module](super).
    pub fn for_each<'t>(
        &self,
        tx: &mut Tx<'t>,
        mut each: impl FnMut(&mut Tx<'t>, K, &'t TxCell<V>) -> Result<()>,
    ) -> Result<()> {
        self.walk(
            tx,
            |tx, leaf| {
                let leaf = tx.at(leaf)?;
                let key = tx.read(&leaf.key)?;
                each(tx, key, &leaf.value)
            },
            |_, _| Ok(()),
        )
    }

    /// Not of this map: [`TxCountedMap`](super::TxCountedMap) knows its length, and
    /// [`count`](TxHashMap::count) counts key by key.
    ///
    /// ```compile_fail,E0277
    /// use indelible::collections::transactional::TxHashMap;
    ///
    /// fn len(tx: &mut indelible::Tx<'_>, map: &TxHashMap<u64, u64>) -> indelible::Result<u64> {
    ///     map.len(tx) // "a `TxHashMap` does not know its length"
    /// }
    /// ```
    pub fn len(&self, tx: &mut Tx<'_>) -> Result<u64>
    where
        Self: Counted,
    {
        self.count(tx)
    }

    /// Counts the keys, one by one: [`TxCountedMap`](super::TxCountedMap) knows their number.
    pub fn count(&self, tx: &mut Tx<'_>) -> Result<u64> {
        let mut count = 0;
        self.for_each(tx, |_, _, _| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// Removes all keys.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        self.walk(tx, |tx, leaf| tx.free(leaf), |tx, branch| tx.free(branch))?;
        tx.write(&self.root, TxPtr::NULL)
    }

    fn walk<'t>(
        &self,
        tx: &mut Tx<'t>,
        mut leaf: impl FnMut(&mut Tx<'t>, TxPtr<Leaf<K, V>>) -> Result<()>,
        mut branch: impl FnMut(&mut Tx<'t>, TxPtr<Branch>) -> Result<()>,
    ) -> Result<()> {
        let (mut steps, root) = (Steps::of(tx, self)?, tx.read(&self.root)?);
        let mut left: Vec<u64> = root.some().map(|root| root.address() | BRANCH).into_iter().collect();
        while let Some(at) = left.pop() {
            steps.step()?;
            if at & BRANCH == 0 {
                let pointer = TxPtr::<Leaf<K, V>>::new(at);
                let next = tx.read(&tx.at(pointer)?.next)?;
                left.extend((next != 0).then_some(next));
                leaf(tx, pointer)?;
                continue;
            }
            let pointer = TxPtr::<Branch>::new(at & !BRANCH);
            for way in &tx.at(pointer)?.ways {
                let to = tx.read(way)?;
                left.extend((to != 0).then_some(to));
            }
            branch(tx, pointer)?;
        }
        Ok(())
    }
}

impl Branch {
    fn bare() -> Branch {
        Branch { ways: [const { TxCell::new(0) }; WAYS] }
    }
}

fn is_bare(tx: &mut Tx<'_>, branch: &Branch) -> Result<bool> {
    for way in &branch.ways {
        if tx.read(way)? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
