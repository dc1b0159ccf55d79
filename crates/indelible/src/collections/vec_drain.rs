//! Taking elements out of a [`PVec`].
//!
//! Invariant of the iterators: `left` elements from `next` on lie in the vector's block and are theirs
//! alone; each is checked when it is its turn.

#![allow(unsafe_code)]

use super::persist::Persist;
use super::place::{discard, each, lend, stored, verify};
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

    /// Takes the element `index` out. `close` fills the gap with elements behind it; it gets the gap's address
    /// and their number.
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
        let (start, old) = (self.start(), self.len());
        if len < old {
            self.set_len(len);
            // SAFETY: these are no longer elements.
            each(len..old, |index| unsafe { discard(start.add(index)) });
        }
    }

    /// Drops all elements, and keeps the room.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Drops the elements that `keep` does not want. If it panics, or dropping one does, those not looked at yet stay.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let mut gap = Gap { kept: 0, next: 0, len: self.len(), vec: self };
        // If the gap is leaked, or not closed for any other reason, no element is in the vector twice.
        gap.vec.set_len(0);
        while gap.next < gap.len {
            // SAFETY: each element is looked at once; it is the gap's, or was moved to a place that was looked at before.
            unsafe {
                let at = gap.vec.start().add(gap.next);
                let stays = keep(lend(at));
                gap.next += 1;
                if stays {
                    ptr::copy(at, gap.vec.start().add(gap.kept), 1);
                    stored(gap.vec.start().add(gap.kept), 1);
                    gap.kept += 1;
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

/// A vector some of whose elements were dropped: `kept` at its beginning stay, and those from `next` to `len`.
struct Gap<'a, 'h, T: Persist<'h>> {
    vec: &'a mut PVec<'h, T>,
    kept: usize,
    next: usize,
    len: usize,
}

impl<'h, T: Persist<'h>> Drop for Gap<'_, 'h, T> {
    fn drop(&mut self) {
        let left = self.len - self.next;
        if left > 0 {
            let start = self.vec.start();
            // SAFETY: elements that were not looked at, to places that are free.
            unsafe {
                ptr::copy(start.add(self.next), start.add(self.kept), left);
                stored(start.add(self.kept), left);
            }
        }
        self.vec.set_len(self.kept + left);
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
        let next = self.next;
        // SAFETY: the invariant.
        each(0..self.left, |index| unsafe { discard(next.add(index)) });
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
