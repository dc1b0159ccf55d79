//! One value with several owners.
//!
//! Invariants of [`PRc`]:
//!
//! 1. Its address is that of a block of the object with a count and a value (checked to lie in the
//!    object when a reference is made).
//! 2. The count is the number of owners or, after leaks and with cycles, more, unless the object is
//!    damaged. Only the thread that has the heap borrowed exclusively has owners in the object:
//!    they are neither `Send` nor `Sync`.
//! 3. References to the value are shared, unless its only owner is borrowed exclusively. There are
//!    no references to the count.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, put};
use super::place::{HeapRef, damaged, discard, expect, finally, free, lend, stored, verify};
use crate::error::Result;
use crate::heap::Heap;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

#[repr(C)]
pub(super) struct Shared<T> {
    pub(super) owners: u64,
    pub(super) value: T,
}

const MOST: u64 = i64::MAX as u64;

/// A value with several owners in one heap, as std's `Rc`. The count changes by plain stores,
/// durable together with the owners.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PHashMap, PRc, PString, PVec};
///
/// #[derive(indelible::Persist, Default)]
/// #[repr(C)]
/// struct Library<'h> {
///     by_name: PHashMap<'h, PString<'h>, PRc<'h, PString<'h>>>,
///     all: PVec<'h, PRc<'h, PString<'h>>>,
/// }
///
/// let (library, place) = heap.root_and_heap::<Library>("library")?;
/// let text = PRc::new_in("a long text", place);
/// library.by_name.insert("text", text.clone());
/// library.all.push(text);
/// assert_eq!(PRc::owners(&library.all[0]), 2);
/// library.by_name.remove("text");
/// assert_eq!(&**library.all[0], "a long text");
/// heap.psync()?;
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// An owner stays in its thread; threads that share an object share values by keys or indices:
///
/// ```compile_fail,E0277
/// # use indelible::collections::{PMutex, PRc};
/// # fn example(heap: &indelible::Heap) -> indelible::Result<()> {
/// let list = heap.root_ref::<PMutex<PRc<u64>>>("list")?; // error: not `Sync`
/// # Ok(()) }
/// ```
///
/// **Cycles leak.** Values that own each other, and those with a forgotten owner
/// (`std::mem::forget`), stay in the heap; [`Heap::audit`] names them. Prefer raw pointers, or
/// keys, for links back.
#[repr(transparent)]
pub struct PRc<'h, T: Persist<'h>> {
    at: NonNull<Shared<T>>,
    owns: PhantomData<(&'h Heap, Shared<T>)>,
}

impl<'h, T: Persist<'h>> PRc<'h, T> {
    /// A new block with `value`, with one owner.
    ///
    /// # Panics
    /// If the heap is full; for memory of another heap.
    #[must_use]
    pub fn new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Self {
        expect(PRc::try_new_in(value, heap))
    }

    /// As [`new_in`](PRc::new_in).
    ///
    /// # Errors
    /// `HeapFull`; the value is dropped.
    ///
    /// # Panics
    /// For memory of another heap.
    pub fn try_new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Result<Self> {
        let value = value.into_persist(heap)?;
        heap.expect_own(&value);
        let at = heap.bytes(size_of::<Shared<T>>(), align_of::<Shared<T>>())?.cast::<Shared<T>>();
        // SAFETY: a new block, large enough.
        unsafe {
            (&raw mut (*at.as_ptr()).owners).write(1);
            put(&raw mut (*at.as_ptr()).value, value);
            stored(at.as_ptr(), 1);
        }
        Ok(PRc { at, owns: PhantomData })
    }

    /// The counted owners of the value.
    #[must_use]
    pub fn owners(this: &Self) -> u64 {
        // SAFETY: a word of the object (1), to which no thread stores meanwhile (2).
        unsafe { this.count().read() }
    }

    /// Whether both own the same value.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.at == other.at
    }

    /// The value, for storing, if it has one owner.
    #[must_use]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        // SAFETY: the only owner is borrowed exclusively (3).
        (PRc::owners(this) == 1).then(|| unsafe { lend(this.value()) })
    }

    /// The value, for storing. With other owners, it is cloned first, and this one owns the clone.
    ///
    /// # Panics
    /// If the heap is full.
    pub fn make_mut(this: &mut Self) -> &mut T
    where
        T: Clone,
    {
        if PRc::owners(this) != 1 {
            *this = PRc::new_in((**this).clone(), PRc::heap(this));
        }
        // SAFETY: as for `get_mut`.
        unsafe { lend(this.value()) }
    }

    /// Returns the value and frees the block, if this is the only owner.
    ///
    /// # Errors
    /// The owner, if there are others.
    pub fn into_inner(this: Self) -> std::result::Result<T, Self> {
        if PRc::owners(&this) != 1 {
            return Err(this);
        }
        let (at, value) = (this.at.as_ptr(), this.value());
        // SAFETY: the value, taken out once; the block has no other owner (3).
        unsafe {
            verify(value);
            std::mem::forget(this);
            let value = value.read();
            free(at.addr() as u64);
            Ok(value)
        }
    }

    /// The value's heap.
    #[must_use]
    pub fn heap(this: &Self) -> HeapRef<'h> {
        // SAFETY: our own block.
        unsafe { HeapRef::of(this.at.addr().get()) }
    }

    const fn count(&self) -> *mut u64 {
        self.at.as_ptr().cast()
    }

    fn value(&self) -> *mut T {
        // SAFETY: a field of the block (1).
        unsafe { &raw mut (*self.at.as_ptr()).value }
    }

    fn set_owners(&self, owners: u64) {
        // SAFETY: a word of the object (1), without references to it (3).
        unsafe {
            self.count().write(owners);
            stored(self.count(), 1);
        }
    }
}

impl<'h, T: Persist<'h>> Clone for PRc<'h, T> {
    /// Another owner of the same value.
    ///
    /// # Panics
    /// In an object attached for reading; if the count is damaged.
    fn clone(&self) -> Self {
        if let Err(error) = PRc::heap(self).heap() {
            panic!("another owner is a store: {error}");
        }
        match PRc::owners(self) {
            owners @ 1..MOST => self.set_owners(owners + 1),
            _ => damaged(self.at.addr().get(), "the number of owners"),
        }
        PRc { at: self.at, owns: PhantomData }
    }
}

impl<'h, T: Persist<'h>> Deref for PRc<'h, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the invariants, and checked to be a value.
        unsafe {
            verify(self.value());
            &*self.value()
        }
    }
}

impl<'h, T: Persist<'h>> Drop for PRc<'h, T> {
    fn drop(&mut self) {
        match PRc::owners(self) {
            // Damage: there may be other owners.
            0 => {}
            1 => {
                self.set_owners(0);
                finally(
                    // SAFETY: no references to the value are left (3).
                    || unsafe { discard(self.value()) },
                    // SAFETY: the last owner is gone.
                    || unsafe { free(self.at.addr().get() as u64) },
                );
            }
            owners => self.set_owners(owners - 1),
        }
    }
}

/// # Safety
/// A block in use with a count and a value, of a heap that is borrowed exclusively; as many owners
/// are gone.
pub(super) unsafe fn disown(block: u64, owners: u64) {
    let count = super::place::pointer::<u64>(block);
    // SAFETY: the caller's promise.
    unsafe {
        count.write(count.read().saturating_sub(owners));
        stored(count, 1);
    }
}

// SAFETY: the address is checked (1).
unsafe impl<'h, T: Persist<'h>> Persist<'h> for PRc<'h, T> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are an integer.
        let address = unsafe { at.cast::<u64>().read() };
        bounds.holds(address, 1, size_of::<Shared<T>>(), align_of::<Shared<T>>())
    }

    fn describe(layout: &mut Layout) {
        layout.word("PRc");
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("PRc<");
        T::type_name(out);
        out.push('>');
    }
}

// SAFETY: zero is `None`: the type is transparent over `NonNull`.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for Option<PRc<'h, T>> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are an integer; then as for the owner.
        unsafe { at.cast::<u64>().read() == 0 || PRc::<T>::check(at.cast(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        layout.word("Option");
        PRc::<T>::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("Option<");
        PRc::<T>::type_name(out);
        out.push('>');
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PRc<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'h, T: Persist<'h> + fmt::Display> fmt::Display for PRc<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'h, T: Persist<'h> + PartialEq> PartialEq for PRc<'h, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'h, T: Persist<'h> + Eq> Eq for PRc<'h, T> {}

impl<'h, T: Persist<'h> + PartialOrd> PartialOrd for PRc<'h, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<'h, T: Persist<'h> + Ord> Ord for PRc<'h, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<'h, T: Persist<'h> + Hash> Hash for PRc<'h, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
