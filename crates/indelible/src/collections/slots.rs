//! Slots of a hash table, and the walk over used ones.
//!
//! Invariant of [`Iter`]: `left` groups of control bytes and their slots follow the group that
//! `control` and `first` point at, in a block that outlives the iterator.

#![allow(unsafe_code)]

use super::group::{GROUP, Group, Slots};
use std::ptr;

#[repr(C)]
pub(super) struct Slot<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

pub(super) struct Iter<K, V> {
    control: *const u8,
    first: *mut Slot<K, V>,
    full: Slots,
    left: usize,
}

impl<K, V> Iter<K, V> {
    /// # Safety
    /// `groups` groups of control bytes, and their slots.
    pub(super) unsafe fn new(control: *const u8, first: *mut Slot<K, V>, groups: usize) -> Self {
        // SAFETY: the first group.
        let full = unsafe { Group::load(control) }.full();
        Iter { control, first, full, left: groups - 1 }
    }

    pub(super) fn empty() -> Self {
        Iter { control: ptr::null(), first: ptr::null_mut(), full: Slots::none(), left: 0 }
    }
}

impl<K, V> Iter<K, V> {
    pub(super) fn address(&self) -> usize {
        self.control.addr()
    }
}

impl<K, V> Clone for Iter<K, V> {
    fn clone(&self) -> Self {
        Iter { ..*self }
    }
}

impl<K, V> Iterator for Iter<K, V> {
    type Item = *mut Slot<K, V>;

    #[inline]
    fn fold<B, F: FnMut(B, *mut Slot<K, V>) -> B>(mut self, init: B, mut f: F) -> B {
        let mut value = init;
        loop {
            for index in self.full {
                // SAFETY: a slot of the group.
                value = f(value, unsafe { self.first.add(index) });
            }
            if self.left == 0 {
                return value;
            }
            self.left -= 1;
            // SAFETY: there is another group.
            unsafe {
                self.control = self.control.add(GROUP);
                self.first = self.first.add(GROUP);
                self.full = Group::load(self.control).full();
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Option<*mut Slot<K, V>> {
        loop {
            if let Some(index) = self.full.next() {
                // SAFETY: a slot of the group.
                return Some(unsafe { self.first.add(index) });
            }
            self.left = self.left.checked_sub(1)?;
            // SAFETY: there is another group.
            unsafe {
                self.control = self.control.add(GROUP);
                self.first = self.first.add(GROUP);
                self.full = Group::load(self.control).full();
            }
        }
    }
}
