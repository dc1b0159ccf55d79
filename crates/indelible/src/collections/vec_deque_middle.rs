#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::persist::Persist;
use super::place::{discard, each, expect, verify};
use super::vec_deque::PVecDeque;
use super::vec_drain::PDrain;
use crate::error::Result;
use std::ops::RangeBounds;

impl<'h, T: Persist<'h>> PVecDeque<'h, T> {
    /// # Safety
    /// There is room for both; the element at `to` was moved elsewhere, or is none.
    unsafe fn shift(&mut self, from: usize, to: usize) {
        // SAFETY: the caller's promise; slots of the block.
        unsafe { self.at(to).copy_from(self.at(from), 1) };
    }

    /// Inserts an element before the element `index`, moving the nearer end.
    ///
    /// # Panics
    /// If there are fewer elements; otherwise as for [`push_back`](PVecDeque::push_back).
    pub fn insert(&mut self, index: usize, value: impl IntoPersist<'h, T>) {
        expect(self.try_insert(index, value));
    }

    /// As [`insert`](PVecDeque::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn try_insert(&mut self, index: usize, value: impl IntoPersist<'h, T>) -> Result<()> {
        let len = self.len();
        assert!(index <= len, "insertion at {index} of {len} elements");
        let value = self.prepare(value)?;
        // SAFETY: there is room for one more; each slot is moved from before it is moved to.
        unsafe {
            if index < len / 2 {
                self.first = self.slot(self.capacity() - 1) as u64;
                (0..index).for_each(|to| self.shift(to + 1, to));
                self.mark(0..index);
            } else {
                (index..len).rev().for_each(|from| self.shift(from, from + 1));
                self.mark(index..len + 1);
            }
            self.put(index, value);
        }
        self.elements.set_len(len + 1);
        Ok(())
    }

    /// Swaps two elements.
    ///
    /// # Panics
    /// If an index is not below the length.
    pub fn swap(&mut self, one: usize, other: usize) {
        let len = self.len();
        assert!(one < len && other < len, "an exchange of {one} and {other} of {len} elements");
        // SAFETY: both indexes are below `len`; equal ones are allowed.
        unsafe { self.at(one).swap(self.at(other)) };
        self.mark(one..one + 1);
        self.mark(other..other + 1);
    }

    /// Removes and returns a range's elements, of a queue made contiguous.
    ///
    /// # Panics
    /// If the range ends behind the queue.
    pub fn drain(&mut self, range: impl RangeBounds<usize>) -> PDrain<'_, 'h, T> {
        self.make_contiguous().drain(range)
    }

    /// Removes the element `index`, if any, moving the nearer end.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let left = self.len().checked_sub(1).filter(|left| index <= *left)?;
        // SAFETY: an element, checked; moved out once. Each slot is moved from before it is moved
        // to.
        unsafe {
            let at = self.at(index);
            verify(at);
            let value = at.read();
            if index < left / 2 {
                (0..index).rev().for_each(|from| self.shift(from, from + 1));
                self.mark(1..index + 1);
                self.first = self.slot(1) as u64;
            } else {
                (index..left).for_each(|to| self.shift(to + 1, to));
                self.mark(index..left);
            }
            self.elements.set_len(left);
            Some(value)
        }
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        let old = self.len();
        if len < old {
            let gone = self.slots(len..old);
            let start = self.elements.start();
            self.elements.set_len(len);
            // SAFETY: these are no longer elements.
            each(gone.into_iter().flatten(), |slot| unsafe { discard(start.add(slot)) });
        }
    }

    /// Drops all elements; keeps the room.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Drops elements for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&mut T) -> bool) {
        self.make_contiguous().retain(keep);
    }
}
