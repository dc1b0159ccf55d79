//! A sequence in one block.
//!
//! Invariants of [`PVec`], checked when a reference is made, and kept by its methods:
//!
//! 1. If `cap` is 0, `len` is 0, and `at` is 0 or the first address of the heap to allocate in.
//! 2. Otherwise `at` is the address of a block in the object with room for `cap` elements, which
//!    the vector owns unless the object is damaged.
//! 3. `len` is at most `cap`. Each access checks whether elements are values.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, clear_padding, put};
use super::place::{
    HeapRef, bounds_at, damaged, expect, finally, free, lend, lent, pointer, shared, stored, verify,
};
use super::points_to::PointsTo;
use super::search::Search;
use crate::error::Result;
use crate::heap::Heap;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;
use std::slice::SliceIndex;

#[cold]
fn cold() {}

/// A growing sequence, as std's `Vec`, and a slice.
///
/// A `PVec<PString>` takes `&str`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # pool.create("o", 1 << 20)?;
/// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
/// use indelible::collections::{PString, PVec};
///
/// let lines = heap.root_or_default::<PVec<PString>>("lines")?;
/// lines.push("second");
/// lines.insert(0, "first");
/// lines.extend(["third", "fourth"]);
/// assert_eq!(lines.iter().map(|line| line.len()).sum::<usize>(), 22);
/// lines.sort();
/// assert_eq!(lines[0], "first");
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(C)]
pub struct PVec<'h, T: Persist<'h>> {
    at: u64,
    cap: u64,
    len: u64,
    owns: PhantomData<(&'h Heap, T)>,
}

impl<'h, T: Persist<'h>> PVec<'h, T> {
    pub(super) const FIELDS: &'static [Field] = fields!(PVec<'h, T> { at: u64, cap: u64, len: u64 });

    /// An empty vector, without memory. It allocates in the heap of its object; on the stack use
    /// [`new_in`](PVec::new_in).
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(size_of::<T>() > 0, "elements without bytes have nothing to persist") };
        PVec { at: 0, cap: 0, len: 0, owns: PhantomData }
    }

    /// Empty, allocating in `heap`.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        PVec { at: heap.base(), ..PVec::new() }
    }

    /// An empty vector with room for `cap` elements.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn with_capacity_in(cap: usize, heap: HeapRef<'h>) -> Self {
        let mut vec = PVec::new_in(heap);
        vec.reserve(cap);
        vec
    }

    /// Its heap, if any.
    #[inline]
    #[must_use]
    pub fn heap(&self) -> HeapRef<'h> {
        // SAFETY: our block, our heap, or our place.
        unsafe { HeapRef::of_container(self.at, self) }
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Room in elements.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.cap as usize
    }

    /// Address of the first element.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.start()
    }

    #[inline]
    pub(super) fn start(&self) -> *mut T {
        if self.cap == 0 { ptr::dangling_mut() } else { pointer(self.at) }
    }

    #[inline]
    fn verify(&self) {
        if T::SHARED {
            // SAFETY: our elements.
            unsafe { shared(self.start(), self.len()) };
        }
        if T::ANY || self.len == 0 {
            return;
        }
        let bounds = bounds_at(self.at as usize);
        for index in 0..self.len() {
            // SAFETY: the first `len` elements lie in the block (2, 3).
            unsafe {
                let at = self.start().add(index);
                if !T::check(at, &bounds) {
                    damaged(at.addr(), "an element");
                }
            }
        }
    }

    /// All elements, each checked first if not every bit pattern is a `T`.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self.verify();
        // SAFETY: in the block (2, 3), and values.
        unsafe { std::slice::from_raw_parts(self.start(), self.len()) }
    }

    /// As [`as_slice`](PVec::as_slice), for storing.
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.lend_range(..)
    }

    pub(super) fn lend_range(&mut self, range: impl SliceIndex<[T], Output = [T]>) -> &mut [T] {
        self.verify();
        // SAFETY: as for `as_slice`, and borrowed exclusively.
        let lending = unsafe { &mut std::slice::from_raw_parts_mut(self.start(), self.len())[range] };
        // SAFETY: our elements.
        unsafe { lent(lending.as_ptr(), lending.len()) };
        lending
    }

    /// The element `index`; `None` behind the end.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: in the block (2, 3), then checked.
        unsafe {
            let at = self.start().add(index);
            verify(at);
            Some(&*at)
        }
    }

    /// As [`get`](PVec::get), for storing.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: as for `get`, and borrowed exclusively.
        unsafe { Some(lend(self.start().add(index))) }
    }

    /// The last element.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    /// The last element, for storing.
    #[must_use]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.get_mut(self.len().wrapping_sub(1))
    }

    /// Makes room for `more` elements.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn reserve(&mut self, more: usize) {
        expect(self.try_reserve(more));
    }

    /// As [`reserve`](PVec::reserve).
    ///
    /// # Errors
    /// `HeapFull`, `BadSize`.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> Result<()> {
        if more as u64 <= self.cap - self.len {
            return Ok(());
        }
        self.grow(more)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) -> Result<()> {
        let len = self.len();
        // SAFETY: all elements.
        unsafe { self.resize_block(self.room_for(more), [0..len, 0..0]) }
    }

    pub(super) fn room_for(&self, more: usize) -> usize {
        let needed = self.len().saturating_add(more);
        let least = if size_of::<T>() <= 4 { 16 / size_of::<T>() } else { 4 };
        needed.max(self.capacity().saturating_mul(2)).max(least)
    }

    /// # Safety
    /// The parts lie within the room, apart from each other, and are as many elements as there are.
    pub(super) unsafe fn resize_block(&mut self, cap: usize, parts: [Range<usize>; 2]) -> Result<()> {
        let new = self.heap().block::<T>(cap)?.as_ptr();
        let (mut target, start) = (new, self.start());
        // SAFETY: the parts lie in the old block; the new one has room.
        unsafe {
            for part in parts {
                target.copy_from_nonoverlapping(start.add(part.start), part.len());
                target = target.add(part.len());
            }
            stored(new, self.len());
            if self.cap > 0 {
                free(self.at);
            }
        }
        (self.at, self.cap) = (new.addr() as u64, cap as u64);
        Ok(())
    }

    /// Frees unused room, if the heap has a smaller block.
    pub fn shrink_to_fit(&mut self) {
        if self.len == 0 && self.cap > 0 {
            let base = self.heap().base();
            // SAFETY: the block is ours, and empty.
            unsafe { free(self.at) };
            (self.at, self.cap) = (base, 0);
        } else if self.len < self.cap {
            let len = self.len();
            // SAFETY: all elements.
            let _ = unsafe { self.resize_block(len, [0..len, 0..0]) };
        }
    }

    /// Appends an element.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[inline]
    pub fn push(&mut self, value: impl IntoPersist<'h, T>) {
        expect(self.try_push(value));
    }

    /// As [`push`](PVec::push).
    ///
    /// # Errors
    /// `HeapFull`.
    #[inline]
    pub fn try_push(&mut self, value: impl IntoPersist<'h, T>) -> Result<()> {
        self.try_insert(self.len(), value)
    }

    /// Inserts an element before the element `index`.
    ///
    /// # Panics
    /// If there are fewer elements; otherwise as for [`push`](PVec::push).
    pub fn insert(&mut self, index: usize, value: impl IntoPersist<'h, T>) {
        expect(self.try_insert(index, value));
    }

    /// As [`insert`](PVec::insert).
    ///
    /// # Errors
    /// `HeapFull`.
    ///
    /// # Panics
    /// If there are fewer elements.
    #[inline]
    pub fn try_insert(&mut self, index: usize, value: impl IntoPersist<'h, T>) -> Result<()> {
        let len = self.len();
        assert!(index <= len, "insertion at {index} of {len} elements");
        let heap = self.heap();
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        self.try_reserve(1)?;
        // SAFETY: room for one more (2).
        unsafe {
            let at = self.start().add(index);
            if index < len {
                ptr::copy(at, at.add(1), len - index);
            }
            put(at, value);
            stored(at, len - index + 1);
        }
        self.len += 1;
        Ok(())
    }

    /// Appends copies of `values`.
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_append(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.try_reserve(values.len())?;
        // SAFETY: there is room, and `values` are not in it.
        unsafe {
            let end = self.start().add(self.len());
            end.copy_from_nonoverlapping(values.as_ptr(), values.len());
            clear_padding(end, values.len());
            stored(end, values.len());
        }
        self.len += values.len() as u64;
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.capacity());
        self.len = len as u64;
    }
}

impl<'h, T: Persist<'h>> Drop for PVec<'h, T> {
    fn drop(&mut self) {
        if self.cap > 0 {
            let block = self.at;
            // SAFETY: the block is ours.
            finally(|| self.clear(), || unsafe { free(block) });
        }
    }
}

impl<'h, P: PointsTo + Persist<'h>> PointsTo for PVec<'h, P> {
    type Target = P::Target;
}

// SAFETY: pointer and lengths are checked (1).
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PVec<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are integers.
        let [block, cap, len] = unsafe { at.cast::<[u64; 3]>().read() };
        (len <= cap && bounds.holds(block, cap, size_of::<T>(), align_of::<T>())) || {
            cold();
            cap == 0 && len == 0 && (block == 0 || block == bounds.base as u64)
        }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: a value, whose elements `check` found in the object.
        unsafe {
            let vec = &*at;
            (0..vec.len().min(search.left()))
                .try_for_each(|index| T::search(vec.as_ptr().add(index), bounds, search))
        }
    }

    fn describe(layout: &mut Layout) {
        layout.word("PVec");
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PVec<");
        T::type_name(out);
        out.push('>');
    }
}
