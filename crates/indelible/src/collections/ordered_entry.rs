//! Entries of an ordered map.
//!
//! Invariant of [`OrderedOccupied`]: its path ends at a checked key of the tree. That of
//! [`OrderedVacant`] ends in a leaf, where the key belongs.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::key::Compare;
use super::persist::Persist;
use super::place::{self, expect, lend, lent, verify};
use super::tree::{Path, Tree};
use crate::error::Result;

/// A key's place in a [`PBTreeMap`](super::PBTreeMap).
#[allow(clippy::large_enum_variant)]
pub enum OrderedEntry<'a, 'h, K: Persist<'h>, V: Persist<'h>, Q> {
    /// The key is in the map.
    Occupied(OrderedOccupied<'a, 'h, K, V>),
    /// The key is missing.
    Vacant(OrderedVacant<'a, 'h, K, V, Q>),
}

/// A present key.
pub struct OrderedOccupied<'a, 'h, K: Persist<'h>, V: Persist<'h>> {
    tree: &'a mut Tree<'h, K, V>,
    path: Path<K, V>,
}

/// A missing key.
pub struct OrderedVacant<'a, 'h, K: Persist<'h>, V: Persist<'h>, Q> {
    tree: &'a mut Tree<'h, K, V>,
    path: Path<K, V>,
    key: Q,
}

impl<'a, 'h, K: Persist<'h> + Ord, V: Persist<'h>, Q> OrderedEntry<'a, 'h, K, V, Q>
where
    Q: Compare<K> + IntoPersist<'h, K>,
{
    /// The value; inserts `value` if missing.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn or_insert(self, value: impl IntoPersist<'h, V>) -> &'a mut V {
        match self {
            OrderedEntry::Occupied(entry) => entry.into_mut(),
            OrderedEntry::Vacant(entry) => entry.insert(value),
        }
    }

    /// The value; inserts the result of `make` if missing.
    ///
    /// # Panics
    /// As for [`or_insert`](OrderedEntry::or_insert).
    pub fn or_insert_with<W: IntoPersist<'h, V>>(self, make: impl FnOnce() -> W) -> &'a mut V {
        match self {
            OrderedEntry::Occupied(entry) => entry.into_mut(),
            OrderedEntry::Vacant(entry) => entry.insert(make()),
        }
    }

    /// The value; inserts the default if missing.
    ///
    /// # Panics
    /// As for [`or_insert`](OrderedEntry::or_insert).
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value, if present.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let OrderedEntry::Occupied(entry) = &mut self {
            // SAFETY: the invariant, and borrowed exclusively.
            unsafe { place::change(entry.value(), change) };
        }
        self
    }
}

impl<'a, 'h, K: Persist<'h>, V: Persist<'h>> OrderedOccupied<'a, 'h, K, V> {
    #[inline]
    pub(super) fn new(tree: &'a mut Tree<'h, K, V>, path: Path<K, V>) -> Self {
        OrderedOccupied { tree, path }
    }

    fn value(&self) -> *mut V {
        let (node, index) = self.path.end();
        node.value(index)
    }

    /// The key in the map.
    #[must_use]
    pub fn key(&self) -> &K {
        // SAFETY: the invariant.
        unsafe {
            let (node, index) = self.path.end();
            &*node.key(index)
        }
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        // SAFETY: the invariant.
        unsafe {
            verify(self.value());
            &*self.value()
        }
    }

    /// The value, for storing.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut V {
        // SAFETY: the invariant, and borrowed exclusively.
        unsafe { lend(self.value()) }
    }

    /// The value, for storing, for the map's borrow.
    #[inline]
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        // SAFETY: the invariant; the tree is borrowed exclusively for 'a.
        unsafe { lend(self.value()) }
    }

    /// Replaces and returns the value.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn insert(&mut self, value: impl IntoPersist<'h, V>) -> V {
        expect(self.try_insert(value))
    }

    /// As [`insert`](OrderedOccupied::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_insert(&mut self, value: impl IntoPersist<'h, V>) -> Result<V> {
        let heap = self.tree.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        // SAFETY: the invariant, and borrowed exclusively.
        Ok(unsafe { place::change(self.value(), |old| std::mem::replace(old, value)) })
    }

    /// Removes the key; returns its value.
    #[must_use]
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the key; returns it with its value.
    #[must_use]
    pub fn remove_entry(mut self) -> (K, V) {
        self.tree.remove(&mut self.path)
    }
}

impl<'a, 'h, K: Persist<'h> + Ord, V: Persist<'h>, Q> OrderedVacant<'a, 'h, K, V, Q>
where
    Q: Compare<K> + IntoPersist<'h, K>,
{
    #[inline]
    pub(super) fn new(tree: &'a mut Tree<'h, K, V>, path: Path<K, V>, key: Q) -> Self {
        OrderedVacant { tree, path, key }
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

    /// As [`insert`](OrderedVacant::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    #[inline]
    pub fn try_insert(self, value: impl IntoPersist<'h, V>) -> Result<&'a mut V> {
        let OrderedVacant { tree, path, key } = self;
        let heap = tree.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        let key = key.into_persist(heap)?;
        heap.expect_own(&key);
        let place = tree.insert(&path, key, value)?;
        // SAFETY: just put there; the tree is borrowed exclusively for 'a.
        Ok(unsafe {
            lent(place, 1);
            &mut *place
        })
    }
}
