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

struct At<'a, K, V> {
    link: &'a Link<K, V>,
    pointer: TxPtr<Node<K, V>>,
    node: &'a Node<K, V>,
}

/// Ways to a node are seldom longer.
const DEPTH: usize = 48;

/// A line that stays as it is needs no place in the log.
#[inline]
fn set<K: Value, V: Value>(tx: &mut Tx<'_>, link: &Link<K, V>, to: TxPtr<Node<K, V>>) -> Result<()> {
    if tx.read(link)?.address() == to.address() { Ok(()) } else { tx.write(link, to) }
}

impl<K: Value + Ord, V: Value> TxOrderedMap<K, V> {
    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(tx.read(&self.root)?.is_null())
    }

    #[inline]
    fn find<'a, 't: 'a>(&'a self, tx: &mut Tx<'t>, key: &K) -> Result<Option<At<'a, K, V>>> {
        let (mut steps, mut link) = (Steps::of(tx, self)?, &self.root);
        while let Some(pointer) = tx.read(link)?.some() {
            steps.step()?;
            let node = tx.at(pointer)?;
            let order = key.cmp(&tx.read(&node.key)?);
            if order == Ordering::Equal {
                return Ok(Some(At { link, pointer, node }));
            }
            link = node.toward(order.is_gt());
        }
        Ok(None)
    }

    /// The value of a key.
    pub fn get(&self, tx: &mut Tx<'_>, key: K) -> Result<Option<V>> {
        let Some(At { node, .. }) = self.find(tx, &key)? else { return Ok(None) };
        tx.read(&node.value).map(Some)
    }

    /// Sets a key's value; returns the former one.
    pub fn insert(&self, tx: &mut Tx<'_>, key: K, value: V) -> Result<Option<V>> {
        let (mut steps, mut link) = (Steps::of(tx, self)?, &self.root);
        let mut path = Vec::with_capacity(DEPTH);
        while let Some(pointer) = tx.read(link)?.some() {
            steps.step()?;
            let node = tx.at(pointer)?;
            let order = key.cmp(&tx.read(&node.key)?);
            if order == Ordering::Equal {
                let old = tx.read(&node.value)?;
                tx.write(&node.value, value)?;
                return Ok(Some(old));
            }
            path.push((At { link, pointer, node }, order.is_gt()));
            link = node.toward(order.is_gt());
        }
        let pointer = tx.alloc_beside(self, Node::new(key, value))?;
        let rank = self.rank(tx, pointer.address())?;
        let node = tx.at(pointer)?;
        tx.write(&node.rank, rank)?;
        let mut above = 0;
        while let Some((at, _)) = path.get(above)
            && tx.read(&at.node.rank)? >= rank
        {
            above += 1;
        }
        let below = &path[above..];
        tx.write(below.first().map_or(link, |(at, _)| at.link), pointer)?;
        // Nodes on the way below are lesser, to the new one's left, or greater.
        let (mut less, mut greater) = (&node.left, &node.right);
        for (at, is_less) in below {
            let side = if *is_less { &mut less } else { &mut greater };
            set(tx, *side, at.pointer)?;
            *side = at.node.toward(*is_less);
        }
        set(tx, less, TxPtr::NULL)?;
        set(tx, greater, TxPtr::NULL)?;
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
        let Some(At { mut link, pointer, node }) = self.find(tx, &key)? else { return Ok(None) };
        let Node { left, right, value, .. } = node;
        let (mut less, mut greater, value) = (tx.read(left)?, tx.read(right)?, tx.read(value)?);
        tx.free(pointer)?;
        let mut steps = Steps::of(tx, self)?;
        while let (Some(one), Some(other)) = (less.some(), greater.some()) {
            steps.step()?;
            let (one, other) = (tx.at(one)?, tx.at(other)?);
            if tx.read(&one.rank)? >= tx.read(&other.rank)? {
                set(tx, link, less)?;
                link = &one.right;
                less = tx.read(link)?;
            } else {
                set(tx, link, greater)?;
                link = &other.left;
                greater = tx.read(link)?;
            }
        }
        set(tx, link, less.some().unwrap_or(greater))?;
        Ok(Some(value))
    }

    /// The first key at or after a bound, with its value.
    ///
    /// ```
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
    /// # Ok::<(), indelible::Error>(())
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
    #[inline]
    fn toward(&self, greater: bool) -> &Link<K, V> {
        if greater { &self.right } else { &self.left }
    }

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
