#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::key::Compare;
use super::layout::Layout;
use super::node::Node;
use super::ordered_entry::{OrderedEntry, OrderedOccupied, OrderedVacant};
use super::persist::{Bounds, Persist};
use super::place::{self, HeapRef, expect, lend, verify};
use super::search::Search;
use super::tree::{Path, Tree};
use crate::error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Index;

/// An ordered map, as std's `BTreeMap`.
///
/// A `PBTreeMap<PString, u64>` takes `&str`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # pool.create("o", 1 << 20)?;
/// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
/// use indelible::collections::{PBTreeMap, PString};
///
/// let log = heap.root_or_default::<PBTreeMap<u64, PString>>("log")?;
/// log.insert(20, "twenty");
/// log.insert(10, "ten");
/// log.entry(30).or_insert("thirty");
/// let names: Vec<&str> = log.range(10..=20).map(|(_, name)| name.as_str()).collect();
/// assert_eq!(names, ["ten", "twenty"]);
/// assert_eq!(log.pop_last().unwrap().0, 30);
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(transparent)]
pub struct PBTreeMap<'h, K: Persist<'h>, V: Persist<'h>> {
    pub(super) tree: Tree<'h, K, V>,
}

impl<'h, K: Persist<'h>, V: Persist<'h>> PBTreeMap<'h, K, V> {
    /// Empty, without memory: see [`PVec::new`](super::PVec::new).
    #[must_use]
    pub const fn new() -> Self {
        PBTreeMap { tree: Tree::new(0) }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PBTreeMap { tree: Tree::new(heap.base()) }
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.tree.heap()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all keys and values.
    pub fn clear(&mut self) {
        self.tree.clear();
    }

    /// The first key and its value.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The last key and its value.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Removes and returns the first key and its value.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.pop(|_| 0, |_| 0)
    }

    /// Removes and returns the last key and its value.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        self.pop(|node| node.len(), |leaf| leaf.len() - 1)
    }

    fn pop(
        &mut self,
        child: impl Fn(Node<K, V>) -> usize,
        key: impl Fn(Node<K, V>) -> usize,
    ) -> Option<(K, V)> {
        if self.tree.height() == 0 {
            return None;
        }
        let bounds = self.tree.bounds();
        let mut path = Path::new();
        let mut node = self.tree.root(&bounds);
        for level in (1..self.tree.height()).rev() {
            let index = child(node);
            path.set(level, node, index);
            node = Node::open(node.child(index), level - 1, &bounds);
        }
        path.set(0, node, key(node));
        Some(self.tree.remove(&mut path))
    }
}

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> PBTreeMap<'h, K, V> {
    /// The value of a key.
    #[inline]
    #[must_use]
    pub fn get<Q: Compare<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        Some(self.get_key_value(key)?.1)
    }

    /// The map's own key, and its value.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Compare<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        let (node, index) = self.tree.find(key)?;
        // SAFETY: a key and its value; the key was checked.
        unsafe {
            verify(node.value(index));
            Some((&*node.key(index), &*node.value(index)))
        }
    }

    /// The value of a key, for storing.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        let (node, index) = self.tree.find(key)?;
        // SAFETY: as for `get_key_value`, and borrowed exclusively.
        unsafe { Some(lend(node.value(index))) }
    }

    /// Whether it has the key.
    #[must_use]
    pub fn contains_key<Q: Compare<K> + ?Sized>(&self, key: &Q) -> bool {
        self.tree.find(key).is_some()
    }

    /// Sets a key's value; returns the former one. An existing key stays.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn insert<Q>(&mut self, key: Q, value: impl IntoPersist<'h, V>) -> Option<V>
    where
        Q: Compare<K> + IntoPersist<'h, K>,
    {
        expect(self.try_insert(key, value))
    }

    /// As [`insert`](PBTreeMap::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    ///
    /// # Panics
    /// For memory of another heap.
    pub fn try_insert<Q>(&mut self, key: Q, value: impl IntoPersist<'h, V>) -> Result<Option<V>>
    where
        Q: Compare<K> + IntoPersist<'h, K>,
    {
        let mut path = Path::new();
        let found = self.tree.search(&key, &mut path);
        let heap = self.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        if found {
            let (node, index) = path.end();
            // SAFETY: the value of the key, checked, and borrowed exclusively.
            return Ok(Some(unsafe {
                place::change(node.value(index), |old| std::mem::replace(old, value))
            }));
        }
        let key = key.into_persist(heap)?;
        heap.expect_own(&key);
        self.tree.insert(&path, key, value)?;
        Ok(None)
    }

    /// A key's place, to inspect and change.
    pub fn entry<Q>(&mut self, key: Q) -> OrderedEntry<'_, 'h, K, V, Q>
    where
        Q: Compare<K> + IntoPersist<'h, K>,
    {
        let mut path = Path::new();
        match self.tree.search(&key, &mut path) {
            true => OrderedEntry::Occupied(OrderedOccupied::new(&mut self.tree, path)),
            false => OrderedEntry::Vacant(OrderedVacant::new(&mut self.tree, path, key)),
        }
    }

    /// Removes a key; returns its value.
    pub fn remove<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        Some(self.remove_entry(key)?.1)
    }

    /// Moves the keys from `key` on, with their values, into a new map in the same heap.
    ///
    /// # Panics
    /// If the heap is full: only the key being moved is in neither map.
    #[must_use = "the keys that were taken out are in it"]
    pub fn split_off<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Self
    where
        K: Ord,
    {
        let mut taken = if self.is_empty() { PBTreeMap::new() } else { PBTreeMap::new_in(self.heap()) };
        while self.last_key_value().is_some_and(|(last, _)| key.compare(last).is_le()) {
            if let Some((last, value)) = self.pop_last() {
                taken.insert(last, value);
            }
        }
        taken
    }

    /// Moves all keys of another map into this one; the other's values win.
    ///
    /// # Panics
    /// If the heap is full: only the key being moved is in neither map.
    pub fn append(&mut self, other: &mut Self)
    where
        K: Ord,
    {
        while let Some((first, value)) = other.pop_first() {
            self.insert(first, value);
        }
    }

    /// Removes a key; returns it with its value.
    pub fn remove_entry<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        let mut path = Path::new();
        self.tree.search(key, &mut path).then(|| self.tree.remove(&mut path))
    }

    pub(super) fn move_within<Q, R>(&mut self, (from, to): (&Q, &R), change: impl FnOnce(&mut K)) -> bool
    where
        Q: Compare<K> + ?Sized,
        R: Compare<K> + ?Sized,
    {
        let (mut old, mut new) = (Path::new(), Path::new());
        let there = self.tree.search(from, &mut old);
        if !there || self.tree.search(to, &mut new) || !self.tree.moves_within(&old, &new) {
            return false;
        }
        let ((leaf, before), (target, place)) = (old.end(), new.step(0));
        let (mut key, value) = self.tree.remove(&mut old);
        change(&mut key);
        if to.compare(&key).is_eq() {
            // No node changed but these two: the place is known.
            let moved = leaf == target && before < place;
            new.set(0, target, place - usize::from(moved));
            return self.tree.insert(&new, key, value).is_ok();
        }
        let mut own = Path::new();
        let is_there = self.tree.search(&key, &mut own);
        is_there || self.tree.insert(&own, key, value).is_ok()
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Default for PBTreeMap<'h, K, V> {
    fn default() -> Self {
        PBTreeMap::new()
    }
}

impl<'h, K, V, Q> Index<&Q> for PBTreeMap<'h, K, V>
where
    K: Persist<'h> + Ord,
    V: Persist<'h>,
    Q: Compare<K> + ?Sized,
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no such key in the map"),
        }
    }
}

impl<'h, K, V, Q, W> Extend<(Q, W)> for PBTreeMap<'h, K, V>
where
    K: Persist<'h> + Ord,
    V: Persist<'h>,
    Q: Compare<K> + IntoPersist<'h, K>,
    W: IntoPersist<'h, V>,
{
    fn extend<I: IntoIterator<Item = (Q, W)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<'h, K: Persist<'h> + Ord + Clone, V: Persist<'h> + Clone> Clone for PBTreeMap<'h, K, V> {
    fn clone(&self) -> Self {
        let mut copy = PBTreeMap::new_in(self.heap());
        copy.extend(self.iter().map(|(key, value)| (key.clone(), value.clone())));
        copy
    }
}

impl<'h, K: Persist<'h> + PartialEq, V: Persist<'h> + PartialEq> PartialEq for PBTreeMap<'h, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'h, K: Persist<'h> + Eq, V: Persist<'h> + Eq> Eq for PBTreeMap<'h, K, V> {}

impl<'h, K: Persist<'h> + PartialOrd, V: Persist<'h> + PartialOrd> PartialOrd for PBTreeMap<'h, K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<'h, K: Persist<'h> + Ord, V: Persist<'h> + Ord> Ord for PBTreeMap<'h, K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<'h, K: Persist<'h> + Hash, V: Persist<'h> + Hash> Hash for PBTreeMap<'h, K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl<'h, K: Persist<'h> + fmt::Debug, V: Persist<'h> + fmt::Debug> fmt::Debug for PBTreeMap<'h, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

// SAFETY: transparent.
unsafe impl<'h, K: Persist<'h>, V: Persist<'h>> Persist<'h> for PBTreeMap<'h, K, V> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { Tree::check(at.cast::<Tree<'h, K, V>>(), bounds) }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: the same bytes.
        unsafe { Tree::expect_extensions(at.cast::<Tree<'h, K, V>>(), bounds, search) }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PBTreeMap");
        Tree::<K, V>::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PBTreeMap<");
        Tree::<K, V>::type_name(out);
        out.push('>');
    }
}
