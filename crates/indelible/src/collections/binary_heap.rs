//! A priority queue: a [`PVec`] in which no element is greater than the one at half its place.
//!
//! The user's order is not checked when an object is opened.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist};
use super::place::{HeapRef, expect, stored};
use super::vec::PVec;
use super::vec_iter::PIter;
use crate::error::Result;
use std::fmt;

/// A priority queue, as std's `BinaryHeap`: greatest element first.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::PBinaryHeap;
/// use std::cmp::Reverse;
///
/// let due = heap.root_or_default::<PBinaryHeap<u64>>("due")?;
/// due.extend([30_u64, 10, 20]);
/// assert_eq!((due.pop(), due.peek()), (Some(30), Some(&20)));
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(transparent)]
pub struct PBinaryHeap<'h, T: Persist<'h>> {
    elements: PVec<'h, T>,
}

impl<'h, T: Persist<'h>> PBinaryHeap<'h, T> {
    /// Empty, without memory: see [`PVec::new`].
    #[must_use]
    pub const fn new() -> Self {
        PBinaryHeap { elements: PVec::new() }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PBinaryHeap { elements: PVec::new_in(heap) }
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.elements.heap()
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The greatest element.
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        self.elements.get(0)
    }

    /// The elements, in no order.
    pub fn iter(&self) -> PIter<'_, T> {
        self.elements.iter()
    }

    /// The elements, unordered.
    #[must_use]
    pub fn into_vec(self) -> PVec<'h, T> {
        self.elements
    }

    /// Drops all elements; keeps the room.
    pub fn clear(&mut self) {
        self.elements.clear();
    }

    /// Makes room for `more` elements.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        self.elements.reserve(more);
    }

    fn swap(&mut self, one: usize, two: usize) {
        assert!(one < self.len() && two < self.len());
        let start = self.elements.start();
        // SAFETY: both lie in the block, borrowed exclusively.
        unsafe {
            let (one, two) = (start.add(one), start.add(two));
            one.swap(two);
            stored(one, 1);
            stored(two, 1);
        }
    }
}

impl<'h, T: Persist<'h> + Ord> PBinaryHeap<'h, T> {
    /// Adds an element.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    pub fn push(&mut self, value: impl IntoPersist<'h, T>) {
        expect(self.try_push(value));
    }

    /// As [`push`](PBinaryHeap::push).
    ///
    /// # Errors
    /// `HeapFull`: the queue is unchanged.
    pub fn try_push(&mut self, value: impl IntoPersist<'h, T>) -> Result<()> {
        self.elements.try_push(value)?;
        let mut at = self.len() - 1;
        while at > 0 && self.elements[at] > self.elements[(at - 1) / 2] {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        Ok(())
    }

    /// Removes the greatest element.
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let greatest = self.elements.swap_remove(0);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.len() {
                return Some(greatest);
            }
            let larger =
                if right < self.len() && self.elements[right] > self.elements[left] { right } else { left };
            if self.elements[larger] <= self.elements[at] {
                return Some(greatest);
            }
            self.swap(at, larger);
            at = larger;
        }
    }
}

impl<'h, T: Persist<'h>> Default for PBinaryHeap<'h, T> {
    fn default() -> Self {
        PBinaryHeap::new()
    }
}

impl<'h, T: Persist<'h> + Ord, V: IntoPersist<'h, T>> Extend<V> for PBinaryHeap<'h, T> {
    fn extend<I: IntoIterator<Item = V>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a PBinaryHeap<'h, T> {
    type Item = &'a T;
    type IntoIter = PIter<'a, T>;

    fn into_iter(self) -> PIter<'a, T> {
        self.iter()
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PBinaryHeap<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

// SAFETY: transparent.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PBinaryHeap<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { PVec::check(at.cast::<PVec<'h, T>>(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        layout.alias::<Self>();
        PVec::<T>::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PBinaryHeap<");
        T::type_name(out);
        out.push('>');
    }
}
