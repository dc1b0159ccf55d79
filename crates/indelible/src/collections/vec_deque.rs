//! A double-ended queue: a ring in the block of a [`PVec`].
//!
//! Invariants of [`PVecDeque`], checked when a reference is made, and kept by its methods:
//!
//! 1. `first` is less than the vector's room, or both are 0.
//! 2. The elements are the vector's `len` slots from `first` on, wrapping at the end of the block.
//!    Where `first` is 0, they are the vector's own; otherwise only the vector's block and numbers
//!    are used.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, put};
use super::place::{HeapRef, expect, lend, stored, verify};
use super::points_to::PointsTo;
use super::search::Search;
use super::vec::PVec;
use crate::error::Result;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A double-ended queue, as std's `VecDeque`, in constant time per element.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PString, PVecDeque};
///
/// let jobs = heap.root_or_default::<PVecDeque<PString>>("jobs")?;
/// jobs.extend(["second", "third"]);
/// jobs.push_front("first");
/// assert_eq!(jobs.pop_front().unwrap(), "first");
/// assert_eq!((jobs.len(), jobs[1].as_str()), (2, "third"));
/// jobs.make_contiguous().sort(); // all that a vector can do
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(C)]
pub struct PVecDeque<'h, T: Persist<'h>> {
    pub(super) elements: PVec<'h, T>,
    pub(super) first: u64,
}

impl<'h, T: Persist<'h>> PVecDeque<'h, T> {
    pub(super) const FIELDS: &'static [Field] =
        fields!(PVecDeque<'h, T> { elements: PVec<'h, T>, first: u64 });

    /// Empty, without memory: see [`PVec::new`].
    #[must_use]
    pub const fn new() -> Self {
        PVecDeque { elements: PVec::new(), first: 0 }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PVecDeque { elements: PVec::new_in(heap), first: 0 }
    }

    /// A queue of `values`, converted.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn from_in<V: IntoPersist<'h, T>>(values: impl IntoIterator<Item = V>, heap: HeapRef<'h>) -> Self {
        PVec::from_in(values, heap).into()
    }

    /// Its heap, if any.
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        self.elements.heap()
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether it is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Room in elements.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.elements.capacity()
    }

    #[inline]
    pub(super) fn slot(&self, index: usize) -> usize {
        let (slot, room) = (self.first as usize + index, self.capacity());
        if slot < room { slot } else { slot - room }
    }

    /// # Safety
    /// There is room for more elements than `index`.
    #[inline]
    pub(super) unsafe fn at(&self, index: usize) -> *mut T {
        // SAFETY: a slot of the block.
        unsafe { self.elements.start().add(self.slot(index)) }
    }

    pub(super) fn slots(&self, elements: Range<usize>) -> [Range<usize>; 2] {
        if elements.is_empty() {
            return [0..0, 0..0];
        }
        let (start, room) = (self.slot(elements.start), self.capacity());
        let before = elements.len().min(room - start);
        [start..start + before, 0..elements.len() - before]
    }

    pub(super) fn parts(&self, elements: Range<usize>) -> [Range<*mut T>; 2] {
        let start = self.elements.start();
        // SAFETY: slots of the block, or its end.
        self.slots(elements).map(|part| unsafe { start.add(part.start)..start.add(part.end) })
    }

    pub(super) fn mark(&self, elements: Range<usize>) {
        for part in self.parts(elements) {
            // SAFETY: our elements.
            unsafe { stored(part.start, (part.end.addr() - part.start.addr()) / size_of::<T>()) };
        }
    }

    /// The element `index` from the front; `None` behind the end.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: one of the elements (2), then checked.
        unsafe {
            let at = self.at(index);
            verify(at);
            Some(&*at)
        }
    }

    /// As [`get`](PVecDeque::get), for storing.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: as for `get`, and borrowed exclusively.
        unsafe { Some(lend(self.at(index))) }
    }

    /// The first element.
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The first element, for storing.
    #[must_use]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.get_mut(0)
    }

    /// The last element.
    #[must_use]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    /// The last element, for storing.
    #[must_use]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.get_mut(self.len().wrapping_sub(1))
    }

    /// Makes room for `more` elements.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        expect(self.try_reserve(more));
    }

    /// As [`reserve`](PVecDeque::reserve).
    ///
    /// # Errors
    /// `HeapFull`, `BadSize`.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> Result<()> {
        if more <= self.capacity() - self.len() {
            return Ok(());
        }
        let (room, parts) = (self.elements.room_for(more), self.slots(0..self.len()));
        // SAFETY: the slots of all elements.
        unsafe { self.elements.resize_block(room, parts)? };
        self.first = 0;
        Ok(())
    }

    /// Frees unused room, if the heap has a smaller block.
    pub fn shrink_to_fit(&mut self) {
        self.make_contiguous().shrink_to_fit();
    }

    /// Moves the elements into a row. Costs a pass over the room, unless the first element begins
    /// the block.
    pub fn make_contiguous(&mut self) -> &mut PVec<'h, T> {
        if self.first > 0 {
            // SAFETY: the slots of the block, moved as bytes.
            let slots = unsafe {
                std::slice::from_raw_parts_mut(
                    self.elements.start().cast::<MaybeUninit<T>>(),
                    self.capacity(),
                )
            };
            slots.rotate_left(self.first as usize);
            self.first = 0;
            // SAFETY: our block; slots without an element were stored to as well.
            unsafe { stored(self.elements.start(), self.capacity()) };
        }
        &mut self.elements
    }

    /// The elements as a vector.
    #[must_use]
    pub fn into_vec(mut self) -> PVec<'h, T> {
        std::mem::take(self.make_contiguous())
    }

    #[inline]
    pub(super) fn prepare(&mut self, value: impl IntoPersist<'h, T>) -> Result<T> {
        let heap = self.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        self.try_reserve(1)?;
        Ok(value)
    }

    /// # Safety
    /// There is room for more elements than `index`.
    #[inline]
    pub(super) unsafe fn put(&mut self, index: usize, value: T) {
        // SAFETY: a slot without a value, by the caller's promise.
        unsafe {
            let at = self.at(index);
            put(at, value);
            stored(at, 1);
        }
    }

    /// Appends an element.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn push_back(&mut self, value: impl IntoPersist<'h, T>) {
        expect(self.try_push_back(value));
    }

    /// As [`push_back`](PVecDeque::push_back).
    ///
    /// # Errors
    /// `HeapFull`.
    #[inline]
    pub fn try_push_back(&mut self, value: impl IntoPersist<'h, T>) -> Result<()> {
        let value = self.prepare(value)?;
        let len = self.len();
        // SAFETY: room was made.
        unsafe { self.put(len, value) };
        self.elements.set_len(len + 1);
        Ok(())
    }

    /// Prepends an element.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn push_front(&mut self, value: impl IntoPersist<'h, T>) {
        expect(self.try_push_front(value));
    }

    /// As [`push_front`](PVecDeque::push_front).
    ///
    /// # Errors
    /// `HeapFull`.
    #[inline]
    pub fn try_push_front(&mut self, value: impl IntoPersist<'h, T>) -> Result<()> {
        let value = self.prepare(value)?;
        self.first = self.slot(self.capacity() - 1) as u64;
        // SAFETY: room was made; the slot before the first element has none.
        unsafe { self.put(0, value) };
        self.elements.set_len(self.len() + 1);
        Ok(())
    }

    /// Removes the first element.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let left = self.len().checked_sub(1)?;
        // SAFETY: an element, checked; moved out once.
        let value = unsafe {
            let at = self.at(0);
            verify(at);
            at.read()
        };
        self.first = self.slot(1) as u64;
        self.elements.set_len(left);
        Some(value)
    }

    /// Removes the last element.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.len().checked_sub(1)?;
        // SAFETY: as for `pop_front`.
        let value = unsafe {
            let at = self.at(last);
            verify(at);
            at.read()
        };
        self.elements.set_len(last);
        Some(value)
    }
}

impl<'h, T: Persist<'h>> From<PVec<'h, T>> for PVecDeque<'h, T> {
    fn from(elements: PVec<'h, T>) -> Self {
        PVecDeque { elements, first: 0 }
    }
}

impl<'h, T: Persist<'h>> Drop for PVecDeque<'h, T> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<'h, P: PointsTo + Persist<'h>> PointsTo for PVecDeque<'h, P> {
    type Target = P::Target;
}

// SAFETY: the vector's pointer and lengths, and the first slot, are checked (1).
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PVecDeque<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are integers.
        let [_, room, _, first] = unsafe { at.cast::<[u64; 4]>().read() };
        // SAFETY: the vector comes first.
        (first < room || first == 0) && unsafe { PVec::check(at.cast::<PVec<'h, T>>(), bounds) }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: a value, whose elements `check` found in the object.
        unsafe {
            let deque = &*at;
            let looked_at = deque.len().min(search.left());
            (0..looked_at).try_for_each(|index| T::search(deque.at(index), bounds, search))
        }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PVecDeque");
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PVecDeque<");
        T::type_name(out);
        out.push('>');
    }
}
