//! Taking elements out of a [`PVec`].
//!
//! Invariant of the iterators: `left` elements from `next` on lie in the vector's block and are theirs
//! alone; each is checked when it is its turn.

#![allow(unsafe_code)]

use super::persist::Persist;
use super::place::{discard, lend, stored, verify};
use super::vec::PVec;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr;

impl<'h, T: Persist<'h>> PVec<'h, T> {
    /// Takes the last element out.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len().checked_sub(1)?;
        Some(self.remove(last))
    }

    /// Takes the element `index` out; those behind it move up.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn remove(&mut self, index: usize) -> T {
        // SAFETY: those behind it take its place.
        self.take(index, |at, behind| unsafe {
            ptr::copy(at.add(1), at, behind);
            stored(at, behind);
        })
    }

    /// Takes the element `index` out; the last one takes its place.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn swap_remove(&mut self, index: usize) -> T {
        // SAFETY: the last one, or itself, takes its place.
        self.take(index, |at, behind| unsafe {
            ptr::copy(at.add(behind), at, 1);
            stored(at, 1);
        })
    }

    /// Takes the element `index` out. `close` has one of the elements behind it take its place, and so on; it is
    /// told where that is, and how many there are.
    fn take(&mut self, index: usize, close: impl FnOnce(*mut T, usize)) -> T {
        let len = self.len();
        assert!(index < len, "removal of {index} of {len} elements");
        // SAFETY: an element, checked; moved out once, as its place is closed.
        unsafe {
            let at = self.start().add(index);
            verify(at);
            let value = at.read();
            close(at, len - index - 1);
            self.set_len(len - 1);
            value
        }
    }

    /// Drops all elements but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len {
            self.set_len(self.len() - 1);
            // SAFETY: the element is no longer one.
            unsafe { discard(self.start().add(self.len())) };
        }
    }

    /// Drops all elements, and keeps the room.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Drops the elements that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let len = self.len();
        let start = self.start();
        // If `keep` panics, what was not looked at yet is lost, and nothing is there twice.
        self.set_len(0);
        let mut kept = 0;
        for index in 0..len {
            // SAFETY: each element is looked at once, and moved to a place that is its own or was looked at before, and lent.
            unsafe {
                let at = start.add(index);
                if keep(lend(at)) {
                    ptr::copy(at, start.add(kept), 1);
                    kept += 1;
                    self.set_len(kept);
                } else {
                    discard(at);
                }
            }
        }
    }

    /// Takes all elements out, one by one; those not taken are dropped with the iterator.
    pub fn drain(&mut self) -> PDrain<'_, 'h, T> {
        let len = self.len();
        self.set_len(0);
        PDrain::new(self.start(), len)
    }
}

/// Elements taken out of a vector, one by one.
pub struct PDrain<'a, 'h, T: Persist<'h>> {
    next: *mut T,
    left: usize,
    of: PhantomData<(&'a mut [T], &'h ())>,
}

impl<'h, T: Persist<'h>> PDrain<'_, 'h, T> {
    pub(super) fn new(next: *mut T, left: usize) -> Self {
        PDrain { next, left, of: PhantomData }
    }
}

impl<'h, T: Persist<'h>> Iterator for PDrain<'_, 'h, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        // SAFETY: the invariant; moved out once.
        unsafe {
            self.next = at.add(1);
            verify(at);
            Some(at.read())
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'h, T: Persist<'h>> DoubleEndedIterator for PDrain<'_, 'h, T> {
    fn next_back(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: the invariant; moved out once.
        unsafe {
            let at = self.next.add(self.left);
            verify(at);
            Some(at.read())
        }
    }
}

impl<'h, T: Persist<'h>> ExactSizeIterator for PDrain<'_, 'h, T> {}
impl<'h, T: Persist<'h>> FusedIterator for PDrain<'_, 'h, T> {}

impl<'h, T: Persist<'h>> Drop for PDrain<'_, 'h, T> {
    fn drop(&mut self) {
        for index in 0..self.left {
            // SAFETY: the invariant.
            unsafe { discard(self.next.add(index)) };
        }
    }
}

/// The elements of a vector that is no more.
pub struct PIntoIter<'h, T: Persist<'h>> {
    /// Goes before the block.
    rest: PDrain<'h, 'h, T>,
    _block: PVec<'h, T>,
}

impl<'h, T: Persist<'h>> PIntoIter<'h, T> {
    pub(super) fn new(mut vec: PVec<'h, T>) -> Self {
        let rest = PDrain::new(vec.start(), vec.len());
        vec.set_len(0);
        PIntoIter { rest, _block: vec }
    }
}

impl<'h, T: Persist<'h>> Iterator for PIntoIter<'h, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.rest.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl<'h, T: Persist<'h>> DoubleEndedIterator for PIntoIter<'h, T> {
    fn next_back(&mut self) -> Option<T> {
        self.rest.next_back()
    }
}

impl<'h, T: Persist<'h>> ExactSizeIterator for PIntoIter<'h, T> {}
impl<'h, T: Persist<'h>> FusedIterator for PIntoIter<'h, T> {}

impl<'h, T: Persist<'h>> IntoIterator for PVec<'h, T> {
    type Item = T;
    type IntoIter = PIntoIter<'h, T>;

    fn into_iter(self) -> PIntoIter<'h, T> {
        PIntoIter::new(self)
    }
}
