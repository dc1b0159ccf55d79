//! Addresses of values: their heap, its blocks, checked references.
//!
//! With explicit tracking (docs/decisions/0019), code that hands out a `&mut` into the object marks
//! its target beforehand, with [`lend`] or [`lent`]. A container marks stores to its blocks
//! afterwards, with [`stored`]; its own fields, behind a `&mut`, are marked already.
//!
//! Invariants:
//!
//! 1. The address of a heap in [`Access`] is that of a `Heap` that is borrowed for `'h`, as long as
//!    any value with that lifetime exists: all such values come from `Heap::root_mut` and its like,
//!    which register the heap and keep it borrowed.
//! 2. A container that is referred to, or lies on the stack, passed `check` when the reference was
//!    made or the value was made or taken out; since then only its own methods changed it.

#![allow(unsafe_code)]

use super::persist::{Bounds, Persist, clear_padding};
use crate::error::{Cause, Error, Result};
use crate::heap::{self, Access, Heap, HeapError};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// A heap borrowed for `'h`, in which new values are allocated.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # pool.create("o", 1 << 20)?;
/// use indelible::collections::{PBox, PVec};
///
/// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
/// let (stack, heap_ref) = heap.root_and_heap::<PVec<PBox<u64>>>("stack")?;
/// stack.push(PBox::new_in(7, heap_ref));
/// assert_eq!(*stack[0], 7);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeapRef<'h> {
    address: usize,
    heap: PhantomData<&'h Heap>,
}

impl<'h> HeapRef<'h> {
    pub(crate) fn new(heap: &'h Heap) -> HeapRef<'h> {
        HeapRef { address: heap.register().base, heap: PhantomData }
    }

    /// # Safety
    /// `address` is that of a value with the lifetime `'h`, or of a block of it.
    #[inline]
    pub(super) const unsafe fn of(address: usize) -> HeapRef<'h> {
        HeapRef { address, heap: PhantomData }
    }

    /// The heap of `at` (its block, or the heap it was made in); else the heap in which it lies.
    ///
    /// # Safety
    /// As for [`of`](HeapRef::of), for both.
    #[inline]
    pub(super) unsafe fn of_container<C>(at: u64, container: &C) -> HeapRef<'h> {
        let address = if at == 0 { std::ptr::from_ref(container).addr() } else { at as usize };
        // SAFETY: the caller's promise.
        unsafe { HeapRef::of(address) }
    }

    pub(super) fn heap(self) -> Result<&'h Heap> {
        self.seated().map_err(nowhere)
    }

    fn seated(self) -> Result<&'h Heap, HeapError> {
        match heap::find(self.address).ok_or(HeapError::Nowhere)?.access {
            Access::Reading => Err(HeapError::ReadOnly),
            // SAFETY: borrowed for 'h (1).
            Access::Writing { heap } => Ok(unsafe { &*std::ptr::with_exposed_provenance(heap) }),
        }
    }

    pub(super) fn error(self, operation: &'static str, error: HeapError) -> Error {
        match self.seated() {
            Ok(heap) => heap.attached().error(operation, Cause::Heap(error)),
            Err(_) => Error::new(operation, Cause::Heap(error)),
        }
    }

    pub(super) fn base(self) -> u64 {
        self.bounds().base as u64
    }

    pub(super) fn bounds(self) -> Bounds {
        bounds_at(self.address)
    }

    #[inline]
    pub(super) fn block<T>(self, count: usize) -> Result<NonNull<T>> {
        let Some(bytes) = count.checked_mul(size_of::<T>()) else {
            return self.heap()?.blank_block(count, size_of::<T>()).map(NonNull::cast);
        };
        self.bytes(bytes, align_of::<T>()).map(NonNull::cast)
    }

    #[inline]
    pub(super) fn bytes(self, bytes: usize, align: usize) -> Result<NonNull<u8>> {
        #[cfg(test)]
        super::bulk::count_block();
        let heap = self.heap()?;
        if align <= 16 { heap.block(bytes) } else { heap.aligned_block(align, bytes, false) }
    }

    #[inline]
    pub(super) fn expect_own<T: Persist<'h>>(self, value: &T) {
        if T::ANY {
            return;
        }
        // A value on the stack without an allocation fits any heap.
        let Some(entry) = heap::find(self.address) else { return };
        // SAFETY: a value.
        if !unsafe { T::check(value, &Bounds { base: entry.base, len: entry.len }) } {
            foreign();
        }
    }
}

#[cold]
fn foreign() -> ! {
    panic!("a value whose memory is in one heap cannot be stored in another: build it there")
}

impl<'h> HeapRef<'h> {
    pub(super) fn enter(self) -> Inside<'h> {
        let heap = expect(self.heap());
        let attachment = heap::find(self.address).map_or(0, |entry| entry.attachment);
        heap.enter();
        Inside { heap, attachment, thread: PhantomData }
    }
}

pub(super) struct Inside<'h> {
    heap: &'h Heap,
    attachment: u32,
    /// Not `Send`: the thread that entered must leave.
    thread: PhantomData<*const ()>,
}

impl Inside<'_> {
    pub(super) fn attachment(&self) -> u32 {
        self.attachment
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.heap.leave();
    }
}

/// A damaged block stays, without a panic.
///
/// # Safety
/// The block is the container's, and not used any more.
#[inline]
pub(super) unsafe fn free(block: u64) {
    // SAFETY: the caller's promise.
    if let Ok(heap) = unsafe { HeapRef::of(block as usize) }.heap() {
        // SAFETY: the caller's promise.
        let _ = unsafe { heap.free(std::ptr::with_exposed_provenance_mut(block as usize)) };
    }
}

#[inline]
pub(super) fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

#[inline]
pub(super) fn bounds_at(address: usize) -> Bounds {
    match heap::find(address) {
        Some(entry) => Bounds { base: entry.base, len: entry.len },
        None => Bounds::NONE,
    }
}

/// # Safety
/// As for [`HeapRef::of`].
unsafe fn listener<'h>(address: usize) -> Option<&'h Heap> {
    // SAFETY: the caller's promise.
    unsafe { HeapRef::of(address) }.seated().ok()
}

#[inline]
pub(super) fn range<T>(at: *const T, count: usize) -> Range<usize> {
    at.addr()..at.addr() + count * size_of::<T>()
}

/// # Safety
/// As for [`HeapRef::of`].
#[inline]
pub(super) unsafe fn stored<T>(at: *const T, count: usize) {
    #[cfg(test)]
    super::bulk::count_mark();
    if heap::any_explicit() {
        // SAFETY: the caller's promise.
        unsafe { name_stored(&[range(at, count)]) };
    }
}

/// As [`stored`], for addresses in one block, under explicit tracking.
///
/// # Safety
/// As for [`stored`].
#[cold]
#[inline(never)]
pub(super) unsafe fn name_stored(ranges: &[Range<usize>]) {
    // SAFETY: the caller's promise.
    if let Some(heap) = ranges.first().and_then(|first| unsafe { listener(first.start) }) {
        heap.stored(ranges);
    }
}

/// # Safety
/// As for [`HeapRef::of`].
#[inline]
pub(super) unsafe fn lent<T>(at: *const T, count: usize) {
    if heap::any_explicit() {
        // SAFETY: the caller's promise.
        unsafe { announce(&range(at, count), Heap::lent) };
    }
}

/// As [`lent`], where a shared reference can store.
///
/// # Safety
/// As for [`lent`].
#[inline]
pub(super) unsafe fn shared<T>(at: *const T, count: usize) {
    if heap::any_explicit() {
        // SAFETY: the caller's promise.
        unsafe { announce(&range(at, count), Heap::shared) };
    }
}

/// # Safety
/// As for [`lent`].
#[cold]
#[inline(never)]
unsafe fn announce(range: &Range<usize>, how: fn(&Heap, &Range<usize>)) {
    // SAFETY: the caller's promise.
    if let Some(heap) = unsafe { listener(range.start) } {
        how(heap, range);
    }
}

/// # Safety
/// As for [`verify`], and it is the caller's alone.
#[inline]
pub(super) unsafe fn lend<'a, 'h: 'a, T: Persist<'h>>(at: *mut T) -> &'a mut T {
    // SAFETY: the caller's promise.
    unsafe {
        verify(at);
        lent(at, 1);
        &mut *at
    }
}

/// Checks the value, then zeros its padding and marks it, also if `change` panics. Unlike after
/// [`lend`], later cuts need not examine it.
///
/// # Safety
/// As for [`lend`].
#[inline]
pub(super) unsafe fn change<'h, T: Persist<'h>, R>(at: *mut T, change: impl FnOnce(&mut T) -> R) -> R {
    // SAFETY: the caller's promise.
    unsafe {
        verify(at);
        let settle = || {
            clear_padding(at, 1);
            stored(at, 1);
        };
        finally(|| change(&mut *at), settle)
    }
}

/// Marks the value as borrowed if a shared reference can store to it.
///
/// # Safety
/// `at` is aligned and in an object, of a heap that is borrowed for `'h`.
#[inline]
pub(super) unsafe fn verify<'h, T: Persist<'h>>(at: *const T) {
    let bounds = if T::ANY { Bounds::NONE } else { bounds_at(at.addr()) };
    // SAFETY: the caller's promise.
    unsafe { verify_within(at, &bounds) };
}

/// As [`verify`], with known bounds.
///
/// # Safety
/// As for [`verify`].
#[inline]
pub(super) unsafe fn verify_within<'h, T: Persist<'h>>(at: *const T, bounds: &Bounds) {
    if T::SHARED {
        // SAFETY: the caller's promise.
        unsafe { shared(at, 1) };
    }
    // SAFETY: the caller's promise.
    if !T::ANY && !unsafe { T::check(at, bounds) } {
        damaged(at.addr(), "a value")
    }
}

#[cold]
#[inline(never)]
pub(super) fn damaged(address: usize, what: &str) -> ! {
    panic!("the object is damaged: {what} at {address:#x} cannot be right; go back to a copy of the object")
}

/// An invalid value stays.
///
/// # Safety
/// As for [`verify`], and the value is the caller's.
#[inline]
pub(super) unsafe fn discard<'h, T: Persist<'h>>(at: *mut T) {
    // SAFETY: the caller's promise; checked before it is dropped.
    unsafe {
        if std::mem::needs_drop::<T>() && (T::ANY || T::check(at, &bounds_at(at.addr()))) {
            stored(at, 1);
            at.drop_in_place();
        }
    }
}

/// Acts on each also after a panic. A second panic ends the process, as in std.
#[inline]
pub(super) fn each<I: Iterator>(all: I, act: impl FnMut(I::Item)) {
    struct Rest<I: Iterator, F: FnMut(I::Item)>(I, F);

    impl<I: Iterator, F: FnMut(I::Item)> Rest<I, F> {
        fn run(&mut self) {
            for item in self.0.by_ref() {
                (self.1)(item);
            }
        }
    }

    impl<I: Iterator, F: FnMut(I::Item)> Drop for Rest<I, F> {
        fn drop(&mut self) {
            self.run();
        }
    }

    Rest(all, act).run();
}

#[inline]
pub(super) fn finally<R>(first: impl FnOnce() -> R, then: impl FnOnce()) -> R {
    struct Then<F: FnOnce()>(Option<F>);

    impl<F: FnOnce()> Drop for Then<F> {
        fn drop(&mut self) {
            if let Some(then) = self.0.take() {
                then();
            }
        }
    }

    let _then = Then(Some(then));
    first()
}

#[inline]
pub(super) fn expect<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => failed(&error),
    }
}

#[cold]
#[inline(never)]
fn failed(error: &crate::error::Error) -> ! {
    panic!("{error}")
}

#[cold]
fn nowhere(error: HeapError) -> Error {
    Error::new("allocate", Cause::Heap(error))
}
