//! Entries of a hash map.
//!
//! Invariant of [`OccupiedEntry`]: its slot is in use in the table, and its key was checked.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::key::{Lookup, StableHash};
use super::persist::Persist;
use super::place::{self, expect, lend, lent, verify};
use super::slots::Slot;
use super::table::Table;
use crate::error::Result;

/// A key's place in a [`PHashMap`](super::PHashMap).
pub enum Entry<'a, 'h, K: Persist<'h>, V: Persist<'h>, Q> {
    /// The key is in the map.
    Occupied(OccupiedEntry<'a, 'h, K, V>),
    /// The key is missing.
    Vacant(VacantEntry<'a, 'h, K, V, Q>),
}

/// A present key.
pub struct OccupiedEntry<'a, 'h, K: Persist<'h>, V: Persist<'h>> {
    table: &'a mut Table<'h, K, V>,
    slot: *mut Slot<K, V>,
}

/// A missing key.
pub struct VacantEntry<'a, 'h, K: Persist<'h>, V: Persist<'h>, Q> {
    table: &'a mut Table<'h, K, V>,
    hash: u64,
    key: Q,
}

impl<'a, 'h, K: Persist<'h> + StableHash + Eq, V: Persist<'h>, Q> Entry<'a, 'h, K, V, Q>
where
    Q: Lookup<K> + IntoPersist<'h, K>,
{
    /// The value; inserts `value` if missing.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn or_insert(self, value: impl IntoPersist<'h, V>) -> &'a mut V {
        match self {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(value),
        }
    }

    /// The value; inserts the result of `make` if missing.
    ///
    /// # Panics
    /// As for [`or_insert`](Entry::or_insert).
    pub fn or_insert_with<W: IntoPersist<'h, V>>(self, make: impl FnOnce() -> W) -> &'a mut V {
        match self {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(make()),
        }
    }

    /// The value; inserts the default if missing.
    ///
    /// # Panics
    /// As for [`or_insert`](Entry::or_insert).
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value, if present.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Entry::Occupied(entry) = &mut self {
            // SAFETY: the invariant, and borrowed exclusively.
            unsafe { place::change(&raw mut (*entry.slot).value, change) };
        }
        self
    }
}

impl<'a, 'h, K: Persist<'h>, V: Persist<'h>> OccupiedEntry<'a, 'h, K, V> {
    #[inline]
    pub(super) fn new(table: &'a mut Table<'h, K, V>, slot: *mut Slot<K, V>) -> Self {
        OccupiedEntry { table, slot }
    }

    /// The key in the map.
    #[must_use]
    pub fn key(&self) -> &K {
        // SAFETY: the invariant.
        unsafe { &(*self.slot).key }
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        // SAFETY: the invariant.
        unsafe {
            verify(&raw const (*self.slot).value);
            &(*self.slot).value
        }
    }

    /// The value, for storing.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut V {
        // SAFETY: the invariant, and borrowed exclusively.
        unsafe { lend(&raw mut (*self.slot).value) }
    }

    /// The value, for storing, for the map's borrow.
    #[inline]
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        // SAFETY: the invariant; the table is borrowed exclusively for 'a.
        unsafe { lend(&raw mut (*self.slot).value) }
    }

    /// Replaces and returns the value.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn insert(&mut self, value: impl IntoPersist<'h, V>) -> V {
        expect(self.try_insert(value))
    }

    /// As [`insert`](OccupiedEntry::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_insert(&mut self, value: impl IntoPersist<'h, V>) -> Result<V> {
        let heap = self.table.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        // SAFETY: the invariant, and borrowed exclusively.
        Ok(unsafe { place::change(&raw mut (*self.slot).value, |old| std::mem::replace(old, value)) })
    }

    /// Removes the key; returns its value.
    #[must_use]
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the key; returns it with its value.
    #[must_use]
    pub fn remove_entry(self) -> (K, V) {
        // SAFETY: the invariant.
        unsafe { self.table.take(self.slot) }
    }
}

impl<'a, 'h, K: Persist<'h> + StableHash + Eq, V: Persist<'h>, Q> VacantEntry<'a, 'h, K, V, Q>
where
    Q: Lookup<K> + IntoPersist<'h, K>,
{
    #[inline]
    pub(super) fn new(table: &'a mut Table<'h, K, V>, hash: u64, key: Q) -> Self {
        VacantEntry { table, hash, key }
    }

    /// The key looked up.
    pub fn key(&self) -> &Q {
        &self.key
    }

    /// Adds the key with a value.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn insert(self, value: impl IntoPersist<'h, V>) -> &'a mut V {
        expect(self.try_insert(value))
    }

    /// As [`insert`](VacantEntry::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    #[inline]
    pub fn try_insert(self, value: impl IntoPersist<'h, V>) -> Result<&'a mut V> {
        let slot = self.put(value)?;
        // SAFETY: just put there; the table is borrowed exclusively for 'a.
        Ok(unsafe {
            lent(&raw const (*slot).value, 1);
            &mut (*slot).value
        })
    }

    #[inline]
    pub(super) fn put(self, value: impl IntoPersist<'h, V>) -> Result<*mut Slot<K, V>> {
        let VacantEntry { table, mut hash, key } = self;
        let heap = table.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        let key = key.into_persist(heap)?;
        heap.expect_own(&key);
        let seedless = table.capacity() == 0;
        table.make_room()?;
        if seedless {
            hash = table.hash(&key);
        }
        Ok(table.add(hash, key, value))
    }
}
