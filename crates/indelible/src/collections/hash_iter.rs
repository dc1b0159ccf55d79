//! Iterators of hash maps.
//!
//! Invariant: the remaining slots are in use, in a table borrowed as the iterator is; each key and
//! value is checked at its turn.

#![allow(unsafe_code)]

use super::persist::{Bounds, Persist};
use super::place::{bounds_at, lent, verify_within};
use super::slots::{Iter, Slot};
use super::table::Table;
use std::iter::FusedIterator;
use std::marker::PhantomData;

macro_rules! references {
    ($(#[$doc:meta])* $name:ident, ($key:ty, $value:ty), $of:ty, $slot:ident => $pair:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            slots: Iter<K, V>,
            left: usize,
            bounds: Bounds,
            of: PhantomData<$of>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            pub(super) fn new(slots: Iter<K, V>, left: usize) -> Self {
                let bounds = bounds_at(slots.address());
                $name { slots, left, bounds, of: PhantomData }
            }
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> Iterator for $name<'a, K, V> {
            type Item = ($key, $value);

            #[inline]
            fn next(&mut self) -> Option<($key, $value)> {
                self.left = self.left.checked_sub(1)?;
                let $slot = self.slots.next()?;
                // SAFETY: the invariant.
                unsafe {
                    verify_within(&raw const (*$slot).key, &self.bounds);
                    verify_within(&raw const (*$slot).value, &self.bounds);
                    Some($pair)
                }
            }

            #[inline]
            fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
                let bounds = self.bounds;
                // SAFETY: as for `next`.
                self.slots.fold(init, |value, $slot| unsafe {
                    verify_within(&raw const (*$slot).key, &bounds);
                    verify_within(&raw const (*$slot).value, &bounds);
                    f(value, $pair)
                })
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> ExactSizeIterator for $name<'a, K, V> {}
        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> FusedIterator for $name<'a, K, V> {}
    };
}

references! {
    /// Keys and values.
    HashIter, (&'a K, &'a V), &'a (K, V), slot => (&(*slot).key, &(*slot).value)
}
references! {
    /// Keys and mutable values.
    HashIterMut, (&'a K, &'a mut V), &'a mut (K, V), slot => {
        lent(&raw const (*slot).value, 1);
        (&(*slot).key, &mut (*slot).value)
    }
}

impl<K, V> Clone for HashIter<'_, K, V> {
    fn clone(&self) -> Self {
        HashIter::new(self.slots.clone(), self.left)
    }
}

macro_rules! parts {
    ($(#[$doc:meta])* $name:ident($iter:ident), $item:ty, $part:tt) => {
        $(#[$doc])*
        pub struct $name<'a, K, V>(pub(super) $iter<'a, K, V>);

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                Some(self.0.next()?.$part)
            }

            #[inline]
            fn fold<B, F: FnMut(B, $item) -> B>(self, init: B, mut f: F) -> B {
                self.0.fold(init, |value, pair| f(value, pair.$part))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> ExactSizeIterator for $name<'a, K, V> {}
        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> FusedIterator for $name<'a, K, V> {}
    };
}

parts! {
    /// Keys.
    HashKeys(HashIter), &'a K, 0
}
parts! {
    /// Values.
    HashValues(HashIter), &'a V, 1
}
parts! {
    /// Mutable values.
    HashValuesMut(HashIterMut), &'a mut V, 1
}

/// Keys and values being removed from a map.
pub struct HashDrain<'a, 'h, K: Persist<'h>, V: Persist<'h>> {
    table: &'a mut Table<'h, K, V>,
    slots: Iter<K, V>,
}

impl<'a, 'h, K: Persist<'h>, V: Persist<'h>> HashDrain<'a, 'h, K, V> {
    pub(super) fn new(table: &'a mut Table<'h, K, V>) -> Self {
        let slots = table.iter();
        HashDrain { table, slots }
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Iterator for HashDrain<'_, 'h, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let slot = self.slots.next()?;
        // SAFETY: the invariant.
        Some(unsafe { self.table.take(slot) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.table.len(), Some(self.table.len()))
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> ExactSizeIterator for HashDrain<'_, 'h, K, V> {}
impl<'h, K: Persist<'h>, V: Persist<'h>> FusedIterator for HashDrain<'_, 'h, K, V> {}

impl<'h, K: Persist<'h>, V: Persist<'h>> Drop for HashDrain<'_, 'h, K, V> {
    fn drop(&mut self) {
        self.table.clear();
    }
}

/// The keys and values of a consumed map.
pub struct HashIntoIter<'h, K: Persist<'h>, V: Persist<'h>> {
    slots: Iter<K, V>,
    table: Table<'h, K, V>,
}

impl<'h, K: Persist<'h>, V: Persist<'h>> HashIntoIter<'h, K, V> {
    pub(super) fn new(table: Table<'h, K, V>) -> Self {
        HashIntoIter { slots: table.iter(), table }
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Iterator for HashIntoIter<'h, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let slot: *mut Slot<K, V> = self.slots.next()?;
        // SAFETY: the invariant; the table drops the rest.
        Some(unsafe { self.table.take(slot) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.table.len(), Some(self.table.len()))
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> ExactSizeIterator for HashIntoIter<'h, K, V> {}
impl<'h, K: Persist<'h>, V: Persist<'h>> FusedIterator for HashIntoIter<'h, K, V> {}
