//! One value in a block of its own.
//!
//! Invariant of [`PBox`]: its address is that of a block with a value, which it owns unless the
//! object is damaged; in any case it lies in the object, with room for a `T` (checked when a
//! reference to the box is made). Each access checks the value's bytes.
//!
//! Deeply nested boxes wait in `WAITING` for the thread's outermost drop.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, put};
use super::place::{HeapRef, discard, each, expect, finally, free, lend, pointer, stored, verify};
use super::search::Search;
use crate::error::Result;
use crate::heap::Heap;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value in a block of its own, as std's `Box`.
///
/// `Option<PBox<T>>` has eight bytes, for linked nodes:
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # pool.create("o", 1 << 20)?;
/// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
/// use indelible::Persist;
/// use indelible::collections::PBox;
///
/// #[derive(Persist)]
/// #[repr(C)]
/// struct Node<'h> {
///     value: u64,
///     next: Option<PBox<'h, Node<'h>>>,
/// }
///
/// let (list, heap_ref) = heap.root_and_heap::<Option<PBox<Node>>>("list")?;
/// for value in 1..=3 {
///     let next = list.take();
///     *list = Some(PBox::new_in(Node { value, next }, heap_ref));
/// }
/// let mut sum = 0;
/// let mut node = list.as_ref();
/// while let Some(this) = node {
///     sum += this.value;
///     node = this.next.as_ref();
/// }
/// assert_eq!(sum, 6);
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
#[repr(transparent)]
pub struct PBox<'h, T: Persist<'h>> {
    at: NonNull<T>,
    owns: PhantomData<(&'h Heap, T)>,
}

// SAFETY: a box owns its value; freeing is possible from any thread.
unsafe impl<'h, T: Persist<'h> + Send> Send for PBox<'h, T> {}
// SAFETY: a shared box gives shared references to the value only.
unsafe impl<'h, T: Persist<'h> + Sync> Sync for PBox<'h, T> {}

impl<'h, T: Persist<'h>> PBox<'h, T> {
    /// A new block with `value`.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[must_use]
    pub fn new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Self {
        expect(PBox::try_new_in(value, heap))
    }

    /// As [`new_in`](PBox::new_in).
    ///
    /// # Errors
    /// `HeapFull`; the value is dropped.
    ///
    /// # Panics
    /// For memory of another heap.
    pub fn try_new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Result<Self> {
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        let at = heap.bytes(size_of::<T>(), align_of::<T>())?.cast::<T>();
        // SAFETY: a new block, large enough.
        unsafe {
            put(at.as_ptr(), value);
            stored(at.as_ptr(), 1);
        }
        Ok(PBox { at, owns: PhantomData })
    }

    /// Returns the value; frees the block.
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let at = this.at.as_ptr();
        // SAFETY: the value, taken out once; the block was the box's.
        unsafe {
            verify(at);
            std::mem::forget(this);
            let value = at.read();
            free(at.addr() as u64);
            value
        }
    }

    /// Address of the value.
    #[must_use]
    pub fn as_ptr(this: &Self) -> *mut T {
        if let Ok(heap) = PBox::heap(this).heap() {
            heap.give_addresses();
        }
        this.place()
    }

    pub(super) const fn place(&self) -> *mut T {
        self.at.as_ptr()
    }

    /// The value's heap.
    #[must_use]
    pub fn heap(this: &Self) -> HeapRef<'h> {
        // SAFETY: our own block.
        unsafe { HeapRef::of(this.at.addr().get()) }
    }
}

impl<'h, T: Persist<'h>> Deref for PBox<'h, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the invariant, and checked to be a value.
        unsafe {
            verify(self.at.as_ptr());
            self.at.as_ref()
        }
    }
}

impl<'h, T: Persist<'h>> DerefMut for PBox<'h, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and borrowed exclusively.
        unsafe { lend(self.at.as_ptr()) }
    }
}

impl<'h, T: Persist<'h>> Drop for PBox<'h, T> {
    fn drop(&mut self) {
        // SAFETY: no references to the value are left; the block is the box's.
        unsafe { drop_in_turn(self.at.as_ptr().expose_provenance(), end::<T>, std::mem::needs_drop::<T>()) };
    }
}

const DEEPEST: usize = 64;

type End = unsafe fn(usize);

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<(usize, End)>> = const { RefCell::new(Vec::new()) };
}

struct Level(usize);

impl Drop for Level {
    fn drop(&mut self) {
        if self.0 == 0 {
            let next = || WAITING.with_borrow_mut(Vec::pop);
            // SAFETY: each unused box was given to `drop_in_turn`, and is taken once.
            each(std::iter::from_fn(next), |(at, end)| unsafe { end(at) });
        }
        DEPTH.set(self.0);
    }
}

/// Calls `end` now or, when deeply nested, before the outermost of these calls returns.
///
/// # Safety
/// `end` may be called with the address until then.
unsafe fn drop_in_turn(at: usize, end: End, nests: bool) {
    let depth = if nests { DEPTH.try_with(Cell::get).unwrap_or(0) } else { 0 };
    if depth >= DEEPEST && WAITING.try_with(|waiting| waiting.borrow_mut().push((at, end))).is_ok() {
        return;
    }
    let counted =
        nests && WAITING.try_with(|_| ()).is_ok() && DEPTH.try_with(|level| level.set(depth + 1)).is_ok();
    let _level = counted.then(|| Level(depth));
    // SAFETY: the caller's promise.
    unsafe { end(at) };
}

/// # Safety
/// A box that is not used any more.
unsafe fn end<'h, T: Persist<'h>>(at: usize) {
    finally(
        // SAFETY: the caller's promise.
        || unsafe { discard(pointer::<T>(at as u64)) },
        // SAFETY: the caller's promise.
        || unsafe { free(at as u64) },
    );
}

fn describe<'h, T: Persist<'h>>(layout: &mut Layout, word: &str) {
    layout.word(word);
    T::describe(layout);
}

fn name<'h, T: Persist<'h>>(out: &mut String, before: &str, behind: &str) {
    out.push_str(before);
    T::type_name(out);
    out.push_str(behind);
}

// SAFETY: the address is checked (1).
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PBox<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable, and any bits are an integer.
        let address = unsafe { at.cast::<u64>().read() };
        bounds.holds(address, 1, size_of::<T>().max(1), align_of::<T>())
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: as in `check`: the value lies in the object.
        unsafe { T::search(pointer::<T>(at.cast::<u64>().read()), bounds, search) }
    }

    fn describe(layout: &mut Layout) {
        describe::<T>(layout, "PBox");
    }

    fn type_name(out: &mut String) {
        name::<T>(out, "PBox<", ">");
    }
}

// SAFETY: zero is `None`: the type is transparent over `NonNull`.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for Option<PBox<'h, T>> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable, and any bits are an integer; then as for the box.
        unsafe { at.cast::<u64>().read() == 0 || PBox::<T>::check(at.cast(), bounds) }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: as in `check`; then as for the box.
        unsafe {
            match at.cast::<u64>().read() {
                0 => Ok(()),
                _ => PBox::<T>::expect_extensions(at.cast(), bounds, search),
            }
        }
    }

    fn describe(layout: &mut Layout) {
        describe::<T>(layout, "Option PBox");
    }

    fn type_name(out: &mut String) {
        name::<T>(out, "Option<PBox<", ">>");
    }
}

impl<'h, T: Persist<'h> + Clone> Clone for PBox<'h, T> {
    fn clone(&self) -> Self {
        PBox::new_in((**self).clone(), PBox::heap(self))
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PBox<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'h, T: Persist<'h> + fmt::Display> fmt::Display for PBox<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'h, T: Persist<'h> + PartialEq> PartialEq for PBox<'h, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'h, T: Persist<'h> + Eq> Eq for PBox<'h, T> {}

impl<'h, T: Persist<'h> + PartialOrd> PartialOrd for PBox<'h, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<'h, T: Persist<'h> + Ord> Ord for PBox<'h, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<'h, T: Persist<'h> + Hash> Hash for PBox<'h, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
