//! Blocks by which later versions of a program extend a value (docs/decisions/0037-extensions.md).
//!
//! Invariants of [`Extensions`]:
//!
//! 1. Its link keeps the invariants of [`chain`](crate::heap); unless 0, a header lies there within
//!    the object (checked when a reference to the value is made).
//! 2. Each access checks that the bytes of an extension are a value.

#![allow(unsafe_code)]

use super::extension::{Extension, differs, identity};
use super::fields::{Field, fields};
use super::layout::Layout;
use super::persist::{Bounds, Persist, put};
use super::place::{HeapRef, Inside, bounds_at, expect, free, lent, stored};
use super::search::Search;
use crate::error::{Error, Result};
use crate::heap::{
    Cursor, Header, Heap, HeapError, Shape, Surroundings, chain_home, copy_chain, free_chain, link_extension,
};
use indelible_store::Mutant;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The link from a value to its [extensions](crate::retention::extendible).
#[repr(transparent)]
pub struct Extensions<'h, C> {
    link: AtomicU64,
    of: PhantomData<(&'h Heap, C)>,
}

pub(super) const HEADER: &[Field] = fields!(Header { next: AtomicU64, size: u64, description: u64 });

struct Borrowed;

impl Surroundings for Borrowed {
    type Inside = Inside<'static>;

    #[inline]
    fn bounds(address: usize) -> Bounds {
        bounds_at(address)
    }

    fn writable(address: usize) -> Result<()> {
        heap_at(address).heap().map(drop)
    }

    fn enter(address: usize) -> Result<Inside<'static>> {
        Ok(heap_at(address).enter())
    }

    #[inline]
    fn allocate(address: usize, size: usize, align: usize) -> Result<NonNull<u8>> {
        heap_at(address).bytes(size, align)
    }

    fn is_block(address: usize, size: usize) -> Result<bool> {
        let block = std::ptr::with_exposed_provenance(address);
        Ok(heap_at(address).heap()?.usable_size(block).is_ok_and(|room| room >= size))
    }

    unsafe fn free(block: u64) {
        // SAFETY: the caller's promise.
        unsafe { free(block) }
    }

    #[inline]
    unsafe fn stored(at: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { stored(at, len) }
    }

    fn error(address: usize, error: HeapError) -> Error {
        heap_at(address).error("use an extension of a value in", error)
    }
}

#[inline]
fn heap_at(address: usize) -> HeapRef<'static> {
    // SAFETY: of a value that is borrowed while the result is used.
    unsafe { HeapRef::of(address) }
}

#[inline]
fn shape<E: Extension>() -> Shape {
    Shape { size: size_of::<E>(), align: align_of::<E>(), description: identity::<E>() }
}

#[inline]
fn value<E: Extension>(cursor: &Cursor<'_, Borrowed>, at: *mut Header) -> Result<*mut E, HeapError> {
    let shape = shape::<E>();
    let differs = |size, found| differs::<E>(shape.block(), size, found);
    let value = cursor.fields(at, shape, differs)?.cast::<E>();
    // SAFETY: in the object, aligned.
    if !(E::ANY || unsafe { E::check(value, &cursor.bounds) }) {
        return Err(cursor.damage(value.addr(), "an extension is no value of its type"));
    }
    Ok(value)
}

/// A struct's extension types: `()`, or the first and the others.
pub trait ExtensionList {
    /// Whether there is an extension.
    #[doc(hidden)]
    const SOME: bool;

    #[doc(hidden)]
    fn expected(number: usize) -> Option<Expected>;
}

impl ExtensionList for () {
    const SOME: bool = false;

    fn expected(_: usize) -> Option<Expected> {
        None
    }
}

impl<E: Extension, L: ExtensionList> ExtensionList for (E, L) {
    const SOME: bool = true;

    fn expected(number: usize) -> Option<Expected> {
        match number.checked_sub(1)? {
            0 => Some(Expected::of::<E>()),
            behind => L::expected(behind),
        }
    }
}

/// Compares an extension with the program's type.
#[derive(Clone, Copy)]
pub struct Expected(fn(&Cursor<'_, Borrowed>, *mut Header) -> Result<(), HeapError>);

impl Expected {
    pub(super) fn of<E: Extension>() -> Expected {
        Expected(|cursor, at| value::<E>(cursor, at).map(drop))
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expected")
    }
}

impl<'h, C> Extensions<'h, C> {
    /// None yet; later ones are allocated in the value's heap.
    #[must_use]
    pub const fn new() -> Self {
        Extensions { link: AtomicU64::new(0), of: PhantomData }
    }

    /// None yet, of a value to be extended in `heap` before it is stored.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        Extensions { link: AtomicU64::new(heap.base()), of: PhantomData }
    }

    fn heap(&self) -> HeapRef<'h> {
        // SAFETY: the value's own address, or its block's.
        unsafe { HeapRef::of_container(self.link.load(Acquire), self) }
    }

    #[cold]
    fn wrong(&self, error: HeapError) -> Error {
        self.heap().error("use an extension of a value in", error)
    }

    #[inline]
    fn find<E: Extension>(&self) -> Result<Option<*mut E>> {
        let mut cursor = Cursor::new(&self.link);
        let found = cursor.find(E::NUMBER).and_then(|at| at.map(|at| value::<E>(&cursor, at)).transpose());
        found.map_err(|error| self.wrong(error))
    }

    /// An extension, if present.
    #[doc(hidden)]
    #[inline]
    pub fn get<E: Extension>(&self) -> Result<Option<&E>> {
        // SAFETY: a value (2), to which no thread stores while it is shared (chain, 2).
        Ok(self.find::<E>()?.map(|value| unsafe { &*value }))
    }

    /// An existing extension, for storing.
    #[doc(hidden)]
    #[inline]
    pub fn get_mut<E: Extension>(&mut self) -> Result<&mut E> {
        let Some(value) = self.find::<E>()? else { return Err(self.missing()) };
        // SAFETY: a value (2) of a block that this one owns, borrowed exclusively.
        unsafe {
            lent(value, 1);
            Ok(&mut *value)
        }
    }

    /// All extensions in order, for storing.
    #[doc(hidden)]
    pub fn parts(&mut self) -> Parts<'_> {
        let heap = self.heap().base();
        Parts { cursor: Cursor::new(&self.link), address: heap }
    }

    #[cold]
    fn missing(&self) -> Error {
        self.wrong(Cursor::<Borrowed>::new(&self.link).missing())
    }

    /// Makes an extension if missing, after those before it. Threads may call it concurrently.
    #[doc(hidden)]
    pub fn ensure<E: Extension>(&self, make: impl FnOnce() -> E) -> Result<()> {
        let mut cursor = Cursor::new(&self.link);
        match cursor.find(E::NUMBER) {
            Ok(Some(at)) => value::<E>(&cursor, at).map(drop).map_err(|error| self.wrong(error)),
            Ok(None) if cursor.passed + 1 == E::NUMBER => self.append(cursor.slot, make),
            Ok(None) => Err(self.wrong(cursor.missing())),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn append<E: Extension>(&self, slot: &AtomicU64, make: impl FnOnce() -> E) -> Result<()> {
        const { assert!(align_of::<E>() <= 16, "an extension is aligned to 16 bytes at most") };
        let heap = chain_home(&self.link);
        Borrowed::writable(heap)?;
        let link = |value: E| {
            // SAFETY: room for the fields of a block that no other code knows of.
            let write = |at: *mut u8| unsafe { put(at.cast::<E>(), value) };
            link_extension::<Borrowed>(slot, heap, shape::<E>(), write)
        };
        if Mutant::ExtensionLinkedFirst.is_on() {
            // SAFETY: extensions of tests are values if their bytes are zero.
            unsafe {
                link(std::mem::zeroed::<E>())?;
                let at = self.find::<E>()?.ok_or_else(|| self.missing())?;
                at.write(make());
            }
            return Ok(());
        }
        link(make())
    }

    fn copied(&self) -> Result<Self> {
        let (home, link) = (chain_home(&self.link), self.link.load(Acquire));
        let copy = match link {
            link if link == self.heap().base() => Extensions { link: AtomicU64::new(link), of: PhantomData },
            _ => Extensions::new(),
        };
        copy_chain::<Borrowed>(&self.link, home, &copy.link)?;
        Ok(copy)
    }
}

/// A chain whose extensions are taken in order.
#[derive(Debug)]
pub struct Parts<'a> {
    cursor: Cursor<'a, Borrowed>,
    address: u64,
}

impl fmt::Debug for Cursor<'_, Borrowed> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("passed", &self.passed).finish_non_exhaustive()
    }
}

impl<'a> Parts<'a> {
    /// The next extension, which must exist.
    pub fn take<E: Extension>(&mut self) -> Result<&'a mut E> {
        let found = match self.cursor.step() {
            Ok(Some(at)) if self.cursor.passed == E::NUMBER => value::<E>(&self.cursor, at),
            Ok(_) => Err(self.cursor.missing()),
            Err(error) => Err(error),
        };
        match found {
            // SAFETY: a value (2) of a chain that is borrowed exclusively; a struct's extensions
            // have different types, which is compared.
            Ok(value) => unsafe {
                lent(value, 1);
                Ok(&mut *value)
            },
            Err(error) => {
                // SAFETY: an address in the heap that the values borrow.
                let heap = unsafe { HeapRef::of(self.address as usize) };
                Err(heap.error("use an extension of a value in", error))
            }
        }
    }
}

impl<C> Drop for Extensions<'_, C> {
    fn drop(&mut self) {
        if *self.link.get_mut() == 0 {
            return;
        }
        // SAFETY: the chain of this value, which is being dropped. A damaged chain stays.
        let _ = unsafe { free_chain::<Borrowed>(&self.link) };
    }
}

impl<C> Default for Extensions<'_, C> {
    fn default() -> Self {
        Extensions::new()
    }
}

impl<C> Clone for Extensions<'_, C> {
    fn clone(&self) -> Self {
        expect(self.copied())
    }
}

impl<C> fmt::Debug for Extensions<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extensions")
    }
}

// SAFETY: the link is checked (1), as an atomic: the value may be shared.
unsafe impl<'h, C: ExtensionList + 'h> Persist<'h> for Extensions<'h, C> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are an integer.
        let link = unsafe { (*at.cast::<AtomicU64>()).load(Relaxed) };
        link == 0 || bounds.holds(link, 1, size_of::<Header>(), align_of::<Header>())
    }

    unsafe fn expect_extensions(at: *const Self, _: &Bounds, _: &mut Search) -> Result<()> {
        // SAFETY: a value, which only other extending threads change, by atomics.
        let this = unsafe { &*at };
        let mut cursor = Cursor::new(&this.link);
        while let Ok(Some(at)) = cursor.step() {
            match C::expected(cursor.passed).map(|Expected(compare)| compare(&cursor, at)) {
                Some(Err(error @ HeapError::ExtensionType { .. })) => return Err(this.wrong(error)),
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn describe(layout: &mut Layout) {
        layout.word("Extensions");
        layout.extended |= C::SOME;
    }

    fn type_name(out: &mut String) {
        out.push_str("Extensions");
    }
}
