use super::hash_iter::HashKeys;
use super::hash_map::PHashMap;
use super::into_persist::IntoPersist;
use super::key::{Lookup, StableHash};
use super::layout::Layout;
use super::persist::{Bounds, Persist};
use super::place::HeapRef;
use crate::error::Result;
use std::fmt;

/// A hash set, as std's `HashSet`.
#[repr(transparent)]
pub struct PHashSet<'h, T: Persist<'h>> {
    pub(super) map: PHashMap<'h, T, ()>,
}

impl<'h, T: Persist<'h>> PHashSet<'h, T> {
    /// Empty, without memory: see [`PVec::new`](super::PVec::new).
    #[must_use]
    pub const fn new() -> Self {
        PHashSet { map: PHashMap::new() }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PHashSet { map: PHashMap::new_in(heap) }
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

    /// Drops all values; keeps the room.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// The values, unordered.
    pub fn iter(&self) -> HashKeys<'_, T, ()> {
        self.map.keys()
    }

    /// Drops values for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|value, ()| keep(value));
    }
}

impl<'h, T: Persist<'h> + StableHash + Eq> PHashSet<'h, T> {
    /// Adds a value; returns whether it was missing.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn insert<Q: Lookup<T> + IntoPersist<'h, T>>(&mut self, value: Q) -> bool {
        self.map.insert(value, ()).is_none()
    }

    /// As [`insert`](PHashSet::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_insert<Q: Lookup<T> + IntoPersist<'h, T>>(&mut self, value: Q) -> Result<bool> {
        Ok(self.map.try_insert(value, ())?.is_none())
    }

    /// Whether it has the value.
    #[must_use]
    pub fn contains<Q: Lookup<T> + ?Sized>(&self, value: &Q) -> bool {
        self.map.contains_key(value)
    }

    /// Drops a value; returns whether it was present.
    pub fn remove<Q: Lookup<T> + ?Sized>(&mut self, value: &Q) -> bool {
        self.map.remove(value).is_some()
    }

    /// Removes and returns a value.
    pub fn take<Q: Lookup<T> + ?Sized>(&mut self, value: &Q) -> Option<T> {
        self.map.remove_entry(value).map(|(value, ())| value)
    }

    /// Makes room for `more` values.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        self.map.reserve(more);
    }
}

impl<'h, T: Persist<'h>> Default for PHashSet<'h, T> {
    fn default() -> Self {
        PHashSet::new()
    }
}

impl<'h, T: Persist<'h> + StableHash + Eq, Q: Lookup<T> + IntoPersist<'h, T>> Extend<Q> for PHashSet<'h, T> {
    fn extend<I: IntoIterator<Item = Q>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a PHashSet<'h, T> {
    type Item = &'a T;
    type IntoIter = HashKeys<'a, T, ()>;

    fn into_iter(self) -> HashKeys<'a, T, ()> {
        self.iter()
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PHashSet<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

#[allow(unsafe_code)]
// SAFETY: transparent.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PHashSet<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { PHashMap::check(at.cast::<PHashMap<'h, T, ()>>(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PHashSet");
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PHashSet<");
        T::type_name(out);
        out.push('>');
    }
}
