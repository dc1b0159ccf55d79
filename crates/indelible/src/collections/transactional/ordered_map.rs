//! An ordered map: a zip tree (Tarjan, Levy, Timmel, 2019). A change concerns nodes on one way
//! down, mostly the lowest, without rebalancing.

use super::Value;
use super::steps::Steps;
use crate::collections::key::KeyHash;
use crate::collections::table::random;
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell, TxPtr};
use std::cmp::Ordering;
use std::ops::Bound;

/// An ordered map. `K` and `V` have whole words.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxOrderedMap<K, V> {
    root: TxCell<TxPtr<Node<K, V>>>,
    seed: TxCell<u64>,
}

/// Lesser keys are below to the left, greater to the right, none of a greater rank.
#[derive(Plain)]
#[repr(C)]
struct Node<K, V> {
    rank: TxCell<u64>,
    left: TxCell<TxPtr<Node<K, V>>>,
    right: TxCell<TxPtr<Node<K, V>>>,
    key: TxCell<K>,
    value: TxCell<V>,
}

type Link<K, V> = TxCell<TxPtr<Node<K, V>>>;

impl<K: Value + Ord, V: Value> TxOrderedMap<K, V> {
    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(tx.read(&self.root)?.is_null())
    }

    fn find<'a, 't: 'a>(&'a self, tx: &mut Tx<'t>, key: &K) -> Result<Option<&'a Link<K, V>>> {
        let (mut steps, mut link) = (Steps::of(tx, self)?, &self.root);
        while let Some(node) = tx.read(link)?.some() {
            steps.step()?;
            let node = tx.at(node)?;
            link = match key.cmp(&tx.read(&node.key)?) {
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
                Ordering::Equal => return Ok(Some(link)),
            };
        }
        Ok(None)
    }

    /// The value of a key.
    pub fn get(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let Some(link) = self.find(tx, &key)? else { return Ok(None) };
        let node = tx.read(link)?;
        tx.read(&tx.at(node)?.value).map(Some)
    }

    /// Sets a key's value; returns the former one.
    pub fn insert(&self, tx: &mut Tx<'_>, key: K, value: V) -> Result<Option<V>> {
        if let Some(link) = self.find(tx, &key)? {
            let node = tx.read(link)?;
            let cell = &tx.at(node)?.value;
            let old = tx.read(cell)?;
            tx.write(cell, value)?;
            return Ok(Some(old));
        }
        let pointer = tx.alloc_beside(self, Node::new(key, value))?;
        let rank = self.rank(tx, pointer.address())?;
        let node = tx.at(pointer)?;
        tx.write(&node.rank, rank)?;
        let (mut steps, mut link) = (Steps::of(tx, self)?, &self.root);
        let mut below = loop {
            let there = tx.read(link)?;
            let Some(other) = there.some() else { break there };
            steps.step()?;
            let other = tx.at(other)?;
            if tx.read(&other.rank)? < rank {
                break there;
            }
            link = if key < tx.read(&other.key)? { &other.left } else { &other.right };
        };
        tx.write(link, pointer)?;
        let (mut less, mut greater) = (&node.left, &node.right);
        while let Some(other) = below.some() {
            steps.step()?;
            let other = tx.at(other)?;
            if tx.read(&other.key)? < key {
                tx.write(less, below)?;
                less = &other.right;
                below = tx.read(less)?;
            } else {
                tx.write(greater, below)?;
                greater = &other.left;
                below = tx.read(greater)?;
            }
        }
        tx.write(less, TxPtr::NULL)?;
        tx.write(greater, TxPtr::NULL)?;
        Ok(None)
    }

    /// Random to outsiders: the seed is secret.
    fn rank(&self, tx: &mut Tx<'_>, address: u64) -> Result<u64> {
        let mut seed = tx.read(&self.seed)?;
        if seed == 0 {
            seed = random();
            tx.write(&self.seed, seed)?;
        }
        let mut hash = KeyHash::new(seed);
        hash.number(address);
        Ok(hash.finish())
    }

    /// Removes a key; returns its value.
    pub fn remove(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let Some(mut link) = self.find(tx, &key)? else { return Ok(None) };
        let pointer = tx.read(link)?;
        let Node { left, right, value, .. } = tx.at(pointer)?;
        let (mut less, mut greater, value) = (tx.read(left)?, tx.read(right)?, tx.read(value)?);
        tx.free(pointer)?;
        let mut steps = Steps::of(tx, self)?;
        while let (Some(one), Some(other)) = (less.some(), greater.some()) {
            steps.step()?;
            let (one, other) = (tx.at(one)?, tx.at(other)?);
            if tx.read(&one.rank)? >= tx.read(&other.rank)? {
                tx.write(link, less)?;
                link = &one.right;
                less = tx.read(link)?;
            } else {
                tx.write(link, greater)?;
                link = &other.left;
                greater = tx.read(link)?;
            }
        }
        tx.write(link, less.some().unwrap_or(greater))?;
        Ok(Some(value))
    }

    /// The first key at or after a bound, with its value.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::collections::transactional::TxOrderedMap;
    /// use std::ops::Bound;
    ///
    /// let heap = pool.transactional_heap("times", 1 << 20)?;
    /// let map = heap.root_or_default::<TxOrderedMap<u64, u64>>("times")?;
    /// let sum = heap.transaction(|tx| {
    ///     for key in [30, 10, 20] {
    ///         map.insert(tx, key, key + 1)?;
    ///     }
    ///     let (mut sum, mut from) = (0, Bound::Included(15));
    ///     while let Some((key, value)) = map.next(tx, from)? {
    ///         (sum, from) = (sum + value, Bound::Excluded(key));
    ///     }
    ///     Ok::<_, indelible::Error>(sum)
    /// })?;
    /// assert_eq!(sum, 21 + 31);
    /// # Ok(()) }
    /// ```
    pub fn next(&self, tx: &mut Tx<'_>, from: Bound<K>) -> Result<Option<(K, V)>> {
        let fits = |key: &K| match &from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        self.outermost(tx, fits, |node| &node.left, |node| &node.right)
    }

    /// The last key at or before a bound, with its value.
    pub fn previous(&self, tx: &mut Tx<'_>, from: Bound<K>) -> Result<Option<(K, V)>> {
        let fits = |key: &K| match &from {
            Bound::Included(from) => key <= from,
            Bound::Excluded(from) => key < from,
            Bound::Unbounded => true,
        };
        self.outermost(tx, fits, |node| &node.right, |node| &node.left)
    }

    fn outermost(
        &self,
        tx: &mut Tx<'_>,
        fits: impl Fn(&K) -> bool,
        toward: impl Fn(&Node<K, V>) -> &Link<K, V>,
        away: impl Fn(&Node<K, V>) -> &Link<K, V>,
    ) -> Result<Option<(K, V)>> {
        let (mut steps, mut best) = (Steps::of(tx, self)?, None);
        let mut at = tx.read(&self.root)?;
        while let Some(pointer) = at.some() {
            steps.step()?;
            let node = tx.at(pointer)?;
            let key = tx.read(&node.key)?;
            let link = match fits(&key) {
                true => {
                    best = Some((key, &node.value));
                    toward(node)
                }
                false => away(node),
            };
            at = tx.read(link)?;
        }
        let Some((key, value)) = best else { return Ok(None) };
        Ok(Some((key, tx.read(value)?)))
    }

    /// All keys with values, in order.
    pub fn to_vec(&self, tx: &mut Tx<'_>) -> Result<Vec<(K, V)>> {
        let (mut all, mut from, mut steps) = (Vec::new(), Bound::Unbounded, Steps::of(tx, self)?);
        while let Some((key, value)) = self.next(tx, from)? {
            steps.step()?;
            all.push((key, value));
            from = Bound::Excluded(key);
        }
        Ok(all)
    }

    /// Removes all keys.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        let (mut steps, root) = (Steps::of(tx, self)?, tx.read(&self.root)?);
        let mut left: Vec<_> = root.some().into_iter().collect();
        while let Some(pointer) = left.pop() {
            steps.step()?;
            let node = tx.at(pointer)?;
            for link in [&node.left, &node.right] {
                left.extend(tx.read(link)?.some());
            }
            tx.free(pointer)?;
        }
        tx.write(&self.root, TxPtr::NULL)
    }
}

impl<K: Value, V: Value> Node<K, V> {
    fn new(key: K, value: V) -> Node<K, V> {
        Node {
            rank: TxCell::new(0),
            left: TxCell::new(TxPtr::NULL),
            right: TxCell::new(TxPtr::NULL),
            key: TxCell::new(key),
            value: TxCell::new(value),
        }
    }
}
