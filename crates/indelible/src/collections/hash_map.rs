#![allow(unsafe_code)]

use super::hash_entry::{Entry, OccupiedEntry, VacantEntry};
use super::hash_iter::{HashDrain, HashIntoIter, HashIter, HashIterMut, HashKeys, HashValues, HashValuesMut};
use super::into_persist::IntoPersist;
use super::key::{Lookup, StableHash};
use super::layout::Layout;
use super::persist::{Bounds, Persist};
use super::place::{self, HeapRef, expect, lend, verify};
use super::search::Search;
use super::table::Table;
use crate::error::Result;
use std::fmt;
use std::ops::Index;

/// A hash map, as std's `HashMap`.
///
/// Keys are [`StableHash`] and `Eq`. A `PHashMap<PString, u64>` takes `&str`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # pool.create("o", 1 << 20)?;
/// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
/// use indelible::collections::{PHashMap, PString, PVec};
///
/// let places = heap.root_or_default::<PHashMap<PString, PVec<u64>>>("places")?;
/// for (number, word) in "to be or not to be".split(' ').enumerate() {
///     places.entry(word).or_default().push(number as u64);
/// }
/// assert_eq!(places["be"], [1, 5]);
/// assert_eq!(places.remove("not").unwrap(), [3]);
/// assert!(!places.contains_key("not"));
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(transparent)]
pub struct PHashMap<'h, K: Persist<'h>, V: Persist<'h>> {
    pub(super) table: Table<'h, K, V>,
}

impl<'h, K: Persist<'h>, V: Persist<'h>> PHashMap<'h, K, V> {
    /// Empty, without memory: see [`PVec::new`](super::PVec::new).
    #[must_use]
    pub const fn new() -> Self {
        PHashMap { table: Table::new(0) }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PHashMap { table: Table::new(heap.base()) }
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.table.heap()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for keys.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Drops all keys and values; keeps the room.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Keys and values, unordered.
    pub fn iter(&self) -> HashIter<'_, K, V> {
        HashIter::new(self.table.iter(), self.len())
    }

    /// Keys and mutable values.
    pub fn iter_mut(&mut self) -> HashIterMut<'_, K, V> {
        HashIterMut::new(self.table.iter(), self.len())
    }

    /// The keys.
    pub fn keys(&self) -> HashKeys<'_, K, V> {
        HashKeys(self.iter())
    }

    /// The values.
    pub fn values(&self) -> HashValues<'_, K, V> {
        HashValues(self.iter())
    }

    /// Mutable values.
    pub fn values_mut(&mut self) -> HashValuesMut<'_, K, V> {
        HashValuesMut(self.iter_mut())
    }

    /// Removes and returns all keys and values; dropping the iterator drops the rest.
    pub fn drain(&mut self) -> HashDrain<'_, 'h, K, V> {
        HashDrain::new(&mut self.table)
    }

    /// Drops keys and values for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for slot in self.table.iter() {
            // SAFETY: a slot in use of this table, checked, without other references.
            unsafe {
                verify(&raw const (*slot).key);
                if !place::change(&raw mut (*slot).value, |value| keep(&(*slot).key, value)) {
                    drop(self.table.take(slot));
                }
            }
        }
    }
}

impl<'h, K: Persist<'h> + StableHash + Eq, V: Persist<'h>> PHashMap<'h, K, V> {
    /// An empty map with room for `capacity` keys.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn with_capacity_in(capacity: usize, heap: HeapRef<'h>) -> Self {
        let mut map = PHashMap::new_in(heap);
        map.reserve(capacity);
        map
    }

    /// Makes room for `more` keys.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        expect(self.try_reserve(more));
    }

    /// As [`reserve`](PHashMap::reserve).
    ///
    /// # Errors
    /// `HeapFull`, `BadSize`.
    pub fn try_reserve(&mut self, more: usize) -> Result<()> {
        self.table.reserve(more)
    }

    /// Frees unused room, if the heap has a smaller block.
    pub fn shrink_to_fit(&mut self) {
        self.table.shrink();
    }

    /// The value of a key.
    #[inline]
    #[must_use]
    pub fn get<Q: Lookup<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        Some(self.get_key_value(key)?.1)
    }

    /// The map's own key, and its value.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Lookup<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        let slot = self.table.find(self.table.hash(key), key)?.as_ptr();
        // SAFETY: in the table; the key was checked.
        unsafe {
            verify(&raw const (*slot).value);
            Some((&(*slot).key, &(*slot).value))
        }
    }

    /// The value of a key, for storing.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Lookup<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        let slot = self.table.find(self.table.hash(key), key)?.as_ptr();
        // SAFETY: as for `get_key_value`, and borrowed exclusively.
        unsafe { Some(lend(&raw mut (*slot).value)) }
    }

    /// Changes a key's value, if present; returns the result of `change`. Unlike after
    /// [`get_mut`](Self::get_mut), later [cuts](crate::Heap::psync_cut) need not examine the value
    /// under explicit tracking.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::PHashMap;
    ///
    /// let map = heap.root_or_default::<PHashMap<u64, u64>>("map")?;
    /// map.insert(1, 10_u64);
    /// assert_eq!(map.update(&1, |value| std::mem::replace(value, 20)), Some(10));
    /// assert_eq!(map.update(&2, |value| *value), None);
    /// # assert_eq!(map[&1], 20);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    pub fn update<Q: Lookup<K> + ?Sized, R>(
        &mut self,
        key: &Q,
        change: impl FnOnce(&mut V) -> R,
    ) -> Option<R> {
        let slot = self.table.find(self.table.hash(key), key)?.as_ptr();
        // SAFETY: as for `get_mut`.
        Some(unsafe { place::change(&raw mut (*slot).value, change) })
    }

    /// Whether it has the key.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Lookup<K> + ?Sized>(&self, key: &Q) -> bool {
        self.table.find(self.table.hash(key), key).is_some()
    }

    /// Sets a key's value; returns the former one. An existing key stays.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn insert<Q>(&mut self, key: Q, value: impl IntoPersist<'h, V>) -> Option<V>
    where
        Q: Lookup<K> + IntoPersist<'h, K>,
    {
        expect(self.try_insert(key, value))
    }

    /// As [`insert`](PHashMap::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    ///
    /// # Panics
    /// For memory of another heap.
    #[inline]
    pub fn try_insert<Q>(&mut self, key: Q, value: impl IntoPersist<'h, V>) -> Result<Option<V>>
    where
        Q: Lookup<K> + IntoPersist<'h, K>,
    {
        match self.entry(key) {
            Entry::Occupied(mut entry) => entry.try_insert(value).map(Some),
            Entry::Vacant(entry) => entry.put(value).map(|_| None),
        }
    }

    /// A key's place, to inspect and change.
    #[inline]
    pub fn entry<Q>(&mut self, key: Q) -> Entry<'_, 'h, K, V, Q>
    where
        Q: Lookup<K> + IntoPersist<'h, K>,
    {
        let hash = self.table.hash(&key);
        match self.table.find(hash, &key) {
            Some(slot) => Entry::Occupied(OccupiedEntry::new(&mut self.table, slot.as_ptr())),
            None => Entry::Vacant(VacantEntry::new(&mut self.table, hash, key)),
        }
    }

    /// Removes a key; returns its value.
    #[inline]
    pub fn remove<Q: Lookup<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        Some(self.remove_entry(key)?.1)
    }

    /// Removes a key; returns it with its value.
    pub fn remove_entry<Q: Lookup<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        let slot = self.table.find(self.table.hash(key), key)?.as_ptr();
        // SAFETY: in use, of this table.
        Some(unsafe { self.table.take(slot) })
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Default for PHashMap<'h, K, V> {
    fn default() -> Self {
        PHashMap::new()
    }
}

impl<'h, K, V, Q> Index<&Q> for PHashMap<'h, K, V>
where
    K: Persist<'h> + StableHash + Eq,
    V: Persist<'h>,
    Q: Lookup<K> + ?Sized,
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no such key in the map"),
        }
    }
}

impl<'h, K, V, Q, W> Extend<(Q, W)> for PHashMap<'h, K, V>
where
    K: Persist<'h> + StableHash + Eq,
    V: Persist<'h>,
    Q: Lookup<K> + IntoPersist<'h, K>,
    W: IntoPersist<'h, V>,
{
    fn extend<I: IntoIterator<Item = (Q, W)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<'h, K: Persist<'h> + StableHash + Eq + Clone, V: Persist<'h> + Clone> Clone for PHashMap<'h, K, V> {
    fn clone(&self) -> Self {
        let mut copy = PHashMap::new_in(self.heap());
        copy.reserve(self.len());
        copy.extend(self.iter().map(|(key, value)| (key.clone(), value.clone())));
        copy
    }
}

impl<'h, K: Persist<'h> + StableHash + Eq, V: Persist<'h> + PartialEq> PartialEq for PHashMap<'h, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<'h, K: Persist<'h> + StableHash + Eq, V: Persist<'h> + Eq> Eq for PHashMap<'h, K, V> {}

impl<'h, K: Persist<'h> + fmt::Debug, V: Persist<'h> + fmt::Debug> fmt::Debug for PHashMap<'h, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

// SAFETY: transparent.
unsafe impl<'h, K: Persist<'h>, V: Persist<'h>> Persist<'h> for PHashMap<'h, K, V> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { Table::check(at.cast::<Table<'h, K, V>>(), bounds) }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: the same bytes.
        unsafe { Table::expect_extensions(at.cast::<Table<'h, K, V>>(), bounds, search) }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PHashMap");
        Table::<K, V>::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PHashMap<");
        Table::<K, V>::type_name(out);
        out.push('>');
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> IntoIterator for PHashMap<'h, K, V> {
    type Item = (K, V);
    type IntoIter = HashIntoIter<'h, K, V>;

    fn into_iter(self) -> HashIntoIter<'h, K, V> {
        HashIntoIter::new(self.table)
    }
}

impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> IntoIterator for &'a PHashMap<'h, K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = HashIter<'a, K, V>;

    fn into_iter(self) -> HashIter<'a, K, V> {
        self.iter()
    }
}

impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> IntoIterator for &'a mut PHashMap<'h, K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = HashIterMut<'a, K, V>;

    fn into_iter(self) -> HashIterMut<'a, K, V> {
        self.iter_mut()
    }
}
