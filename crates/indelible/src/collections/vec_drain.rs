//! Removes elements from a [`PVec`].
//!
//! Invariant of the iterators: `left` elements from `next` on lie in the vector's block and are
//! theirs alone; each is checked at its turn.

#![allow(unsafe_code)]

use super::persist::Persist;
use super::place::{discard, each, finally, stored, verify};
use super::vec::PVec;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::ptr;

impl<'h, T: Persist<'h>> PVec<'h, T> {
    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len().checked_sub(1)?;
        Some(self.remove(last))
    }

    /// Removes the element `index`; later ones move up.
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

    /// Removes the element `index`; the last one takes its place.
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

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        let (start, old) = (self.start(), self.len());
        if len < old {
            self.set_len(len);
            // SAFETY: these are no longer elements.
            each(len..old, |index| unsafe { discard(start.add(index)) });
        }
    }

    /// Drops all elements; keeps the room.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes and returns a range's elements; later ones move up.
    ///
    /// # Panics
    /// If the range lies outside the vector.
    pub fn drain(&mut self, range: impl RangeBounds<usize>) -> PDrain<'_, 'h, T> {
        let Range { start, end } = within(range, self.len());
        let behind = self.len() - end;
        // A leaked iterator leaves no element both inside and outside the vector.
        self.set_len(start);
        // SAFETY: elements that are no longer the vector's.
        let rest = Elements::new(unsafe { self.start().add(start) }, end - start);
        PDrain { rest, end, behind, vec: self }
    }
}

fn within(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => len,
    };
    assert!(start <= end && end <= len, "the range {start}..{end} of {len} elements");
    start..end
}

struct Elements<'h, T: Persist<'h>> {
    next: *mut T,
    left: usize,
    of: PhantomData<(T, &'h ())>,
}

// SAFETY: it owns its elements.
unsafe impl<'h, T: Persist<'h> + Send> Send for Elements<'h, T> {}
// SAFETY: a shared reference gives none to an element.
unsafe impl<'h, T: Persist<'h> + Sync> Sync for Elements<'h, T> {}

impl<'h, T: Persist<'h>> Elements<'h, T> {
    fn new(next: *mut T, left: usize) -> Self {
        Elements { next, left, of: PhantomData }
    }

    fn drop_all(&mut self) {
        let (next, left) = (self.next, std::mem::take(&mut self.left));
        // SAFETY: the invariant.
        each(0..left, |index| unsafe { discard(next.add(index)) });
    }
}

impl<'h, T: Persist<'h>> Iterator for Elements<'h, T> {
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

impl<'h, T: Persist<'h>> DoubleEndedIterator for Elements<'h, T> {
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

impl<'h, T: Persist<'h>> Drop for Elements<'h, T> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

/// Elements being removed from a vector.
pub struct PDrain<'a, 'h, T: Persist<'h>> {
    rest: Elements<'h, T>,
    end: usize,
    behind: usize,
    vec: &'a mut PVec<'h, T>,
}

impl<'h, T: Persist<'h>> Drop for PDrain<'_, 'h, T> {
    fn drop(&mut self) {
        let PDrain { rest, end, behind, vec } = self;
        finally(
            || rest.drop_all(),
            || {
                let len = vec.len();
                if *behind > 0 && *end > len {
                    // SAFETY: elements that were not taken, to free places.
                    unsafe {
                        let target = vec.start().add(len);
                        ptr::copy(vec.start().add(*end), target, *behind);
                        stored(target, *behind);
                    }
                }
                vec.set_len(len + *behind);
            },
        );
    }
}

/// The elements of a consumed vector.
pub struct PIntoIter<'h, T: Persist<'h>> {
    rest: Elements<'h, T>,
    _block: PVec<'h, T>,
}

impl<'h, T: Persist<'h>> PIntoIter<'h, T> {
    pub(super) fn new(mut vec: PVec<'h, T>) -> Self {
        let rest = Elements::new(vec.start(), vec.len());
        vec.set_len(0);
        PIntoIter { rest, _block: vec }
    }
}

macro_rules! of_elements {
    ([$($par:tt)*] $ty:ty) => {
        impl<$($par)* T: Persist<'h>> Iterator for $ty {
            type Item = T;

            fn next(&mut self) -> Option<T> {
                self.rest.next()
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.rest.size_hint()
            }
        }

        impl<$($par)* T: Persist<'h>> DoubleEndedIterator for $ty {
            fn next_back(&mut self) -> Option<T> {
                self.rest.next_back()
            }
        }

        impl<$($par)* T: Persist<'h>> ExactSizeIterator for $ty {}
        impl<$($par)* T: Persist<'h>> FusedIterator for $ty {}
    };
}

of_elements!(['h,] PDrain<'_, 'h, T>);
of_elements!(['h,] PIntoIter<'h, T>);

impl<'h, T: Persist<'h>> IntoIterator for PVec<'h, T> {
    type Item = T;
    type IntoIter = PIntoIter<'h, T>;

    fn into_iter(self) -> PIntoIter<'h, T> {
        PIntoIter::new(self)
    }
}
