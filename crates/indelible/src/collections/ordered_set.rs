#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::key::Compare;
use super::layout::Layout;
use super::ordered_map::PBTreeMap;
use super::persist::{Bounds, Persist};
use super::place::HeapRef;
use super::tree_iter::TreeKeys;
use crate::error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::ops::RangeBounds;

/// An ordered set, as std's `BTreeSet`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PBTreeSet, PString};
///
/// let names = heap.root_or_default::<PBTreeSet<PString>>("names")?;
/// names.extend(["carol", "alice", "bob"]);
/// assert!(!names.insert("bob"));
/// assert_eq!(names.first().unwrap(), "alice");
/// assert_eq!(names.range("b".to_owned()..).count(), 2);
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(transparent)]
pub struct PBTreeSet<'h, T: Persist<'h>> {
    map: PBTreeMap<'h, T, ()>,
}

fn key<'a, T>((key, ()): (&'a T, &'a ())) -> &'a T {
    key
}

impl<'h, T: Persist<'h>> PBTreeSet<'h, T> {
    /// Empty, without memory: see [`PVec::new`](super::PVec::new).
    #[must_use]
    pub const fn new() -> Self {
        PBTreeSet { map: PBTreeMap::new() }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PBTreeSet { map: PBTreeMap::new_in(heap) }
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.map.heap()
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// The values, in order.
    pub fn iter(&self) -> TreeKeys<'_, T, ()> {
        self.map.keys()
    }

    /// The first value.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.map.first_key_value().map(key)
    }

    /// The last value.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.map.last_key_value().map(key)
    }

    /// Removes and returns the first value.
    pub fn pop_first(&mut self) -> Option<T> {
        self.map.pop_first().map(|(value, ())| value)
    }

    /// Removes and returns the last value.
    pub fn pop_last(&mut self) -> Option<T> {
        self.map.pop_last().map(|(value, ())| value)
    }
}

impl<'h, T: Persist<'h> + Ord> PBTreeSet<'h, T> {
    /// Adds a value; returns whether it was missing.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn insert<Q: Compare<T> + IntoPersist<'h, T>>(&mut self, value: Q) -> bool {
        self.map.insert(value, ()).is_none()
    }

    /// As [`insert`](PBTreeSet::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_insert<Q: Compare<T> + IntoPersist<'h, T>>(&mut self, value: Q) -> Result<bool> {
        Ok(self.map.try_insert(value, ())?.is_none())
    }

    /// Whether it has the value.
    #[must_use]
    pub fn contains<Q: Compare<T> + ?Sized>(&self, value: &Q) -> bool {
        self.map.contains_key(value)
    }

    /// The set's own value.
    #[must_use]
    pub fn get<Q: Compare<T> + ?Sized>(&self, value: &Q) -> Option<&T> {
        self.map.get_key_value(value).map(key)
    }

    /// Drops a value; returns whether it was present.
    pub fn remove<Q: Compare<T> + ?Sized>(&mut self, value: &Q) -> bool {
        self.map.remove(value).is_some()
    }

    /// Removes and returns a value.
    pub fn take<Q: Compare<T> + ?Sized>(&mut self, value: &Q) -> Option<T> {
        self.map.remove_entry(value).map(|(value, ())| value)
    }

    /// Moves the value `from` to the place of `to`; `change` makes the value equal to `to`. Returns
    /// false, with nothing changed, if `from` is missing, `to` is present, or the tree would have
    /// to add or remove a node: then remove and insert the value instead.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::PBTreeSet;
    ///
    /// let times = heap.root_or_default::<PBTreeSet<u64>>("times")?;
    /// times.extend([10_u64, 20]);
    /// assert!(times.move_within(&10, &30, |time| *time = 30));
    /// assert!(times.iter().eq(&[20, 30]));
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `change` panics, the value is dropped. If the value compares as another than `to`
    /// afterwards, it goes to its own place; without room for that it is dropped.
    pub fn move_within<Q, R>(&mut self, from: &Q, to: &R, change: impl FnOnce(&mut T)) -> bool
    where
        Q: Compare<T> + ?Sized,
        R: Compare<T> + ?Sized,
    {
        self.map.move_within((from, to), change)
    }

    /// The values of a range, in order.
    pub fn range<Q: Compare<T> + ?Sized>(&self, range: impl RangeBounds<Q>) -> TreeKeys<'_, T, ()> {
        self.map.range(range).into_keys()
    }

    /// Drops values for which `keep` is false, in order.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|value, ()| keep(value));
    }
}

impl<'h, T: Persist<'h>> Default for PBTreeSet<'h, T> {
    fn default() -> Self {
        PBTreeSet::new()
    }
}

impl<'h, T: Persist<'h> + Ord, Q: Compare<T> + IntoPersist<'h, T>> Extend<Q> for PBTreeSet<'h, T> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a PBTreeSet<'h, T> {
    type Item = &'a T;
    type IntoIter = TreeKeys<'a, T, ()>;

    fn into_iter(self) -> TreeKeys<'a, T, ()> {
        self.iter()
    }
}

impl<'h, T: Persist<'h> + PartialEq> PartialEq for PBTreeSet<'h, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<'h, T: Persist<'h> + Eq> Eq for PBTreeSet<'h, T> {}

impl<'h, T: Persist<'h> + PartialOrd> PartialOrd for PBTreeSet<'h, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<'h, T: Persist<'h> + Ord> Ord for PBTreeSet<'h, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PBTreeSet<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

// SAFETY: transparent.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PBTreeSet<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { PBTreeMap::check(at.cast::<PBTreeMap<'h, T, ()>>(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        layout.alias::<Self>();
        PBTreeMap::<T, ()>::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PBTreeSet<");
        T::type_name(out);
        out.push('>');
    }
}
