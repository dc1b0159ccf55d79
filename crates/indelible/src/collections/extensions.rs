//! Blocks by which later versions of a program extended a value (docs/decisions/0037-extensions.md).
//!
//! Invariants of [`Extensions`]:
//! 1. Its link is 0, or the object's first address, or the address of a block that the value owns, as far as the object is not
//!    damaged; in any case a header lies there within the object (checked when a reference to the value is made).
//! 2. A block is whole before anything links to it. While the value is shared, nothing of a chain changes but the last link, once,
//!    from none to a block, by compare-and-swap; links are only accessed as atomics.
//! 3. Extensions own nothing, so that a chain can be copied as bytes, and freed block by block.
//! 4. At each access, what a link leads to is checked again: header and bytes lie in the object, and the bytes are a value.

#![allow(unsafe_code)]

use super::extension::{Extension, differs, identity};
use super::fields::{Field, fields};
use super::layout::Layout;
use super::persist::{Bounds, Persist};
use super::place::{HeapRef, bounds_at, expect, free, lent, pointer, stored};
use crate::error::{Error, Result};
use crate::heap::{Heap, HeapError};
use crate::types::EXTENSIONS;
use indelible_store::Mutant;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The link from a value to its extensions, which [`extendible`](crate::retention::extendible) puts behind the other fields.
#[repr(transparent)]
pub struct Extensions<'h, C> {
    link: AtomicU64,
    of: PhantomData<(&'h Heap, C)>,
}

/// The beginning of an extension.
#[repr(C)]
pub(super) struct Header {
    /// Address of the next one, or 0.
    next: AtomicU64,
    /// Bytes of the extension, with the header.
    size: u64,
    /// The number of its type.
    description: u64,
}

impl Header {
    pub(super) const FIELDS: &'static [Field] =
        fields!(Header { next: AtomicU64, size: u64, description: u64 });
}

/// An extension as it lies in its block.
#[repr(C)]
struct Block<E> {
    header: Header,
    value: E,
}

/// A place in a chain.
struct Cursor<'a> {
    /// The link to the block behind it.
    slot: &'a AtomicU64,
    bounds: Bounds,
    /// Blocks before it.
    passed: usize,
}

impl<'a> Cursor<'a> {
    fn new<C>(of: &'a Extensions<'_, C>) -> Self {
        Cursor { slot: &of.link, bounds: Bounds::NONE, passed: 0 }
    }

    /// The next block, whose header and size are those of a block in the object.
    #[inline]
    fn step(&mut self) -> Result<Option<*mut Header>, HeapError> {
        let link = self.slot.load(Acquire);
        if link == 0 {
            return Ok(None);
        }
        if self.passed == 0 {
            self.bounds = bounds_at(link as usize);
            if link == self.bounds.base as u64 {
                return Ok(None);
            }
        }
        let here = |size: u64| self.bounds.holds(link, 1, size as usize, align_of::<Header>());
        let wrong =
            |what| Err(HeapError::Damaged { offset: link.wrapping_sub(self.bounds.base as u64), what });
        if self.passed == EXTENSIONS {
            return wrong("more extensions than a value can have");
        }
        if link == self.bounds.base as u64 || !here(size_of::<Header>() as u64) {
            return wrong("a link to no extension");
        }
        let at = pointer::<Header>(link);
        // SAFETY: in the object, aligned; any bits are a header, of which only the link changes while it is shared (2).
        let header: &'a Header = unsafe { &*at };
        if header.size < size_of::<Header>() as u64 || !here(header.size) {
            return wrong("an extension of another size than it can have");
        }
        (self.slot, self.passed) = (&header.next, self.passed + 1);
        Ok(Some(at))
    }

    /// An error for something at an address.
    #[cold]
    fn damage(&self, address: usize, what: &'static str) -> HeapError {
        HeapError::Damaged { offset: address.wrapping_sub(self.bounds.base) as u64, what }
    }

    /// The extension that was passed last, as a value of its type.
    #[inline]
    fn value<E: Extension>(&self, at: *mut Header) -> Result<*mut E, HeapError> {
        // SAFETY: a header.
        let (size, description) = unsafe { ((*at).size, (*at).description) };
        let same = description == identity::<E>() || Mutant::ExtensionTypeIgnored.is_on();
        if size != size_of::<Block<E>>() as u64 || !same {
            return Err(differs::<E>(size_of::<Block<E>>(), size, description));
        }
        // SAFETY: all of the block lies in the object.
        let value = unsafe { &raw mut (*at.cast::<Block<E>>()).value };
        // SAFETY: in the object, and aligned if the address says so.
        if !value.is_aligned() || !(E::ANY || unsafe { E::check(value, &self.bounds) }) {
            return Err(self.damage(value.addr(), "an extension is no value of its type"));
        }
        Ok(value)
    }
}

impl<'h, C> Extensions<'h, C> {
    /// None yet. They are made in the heap in which the value lies by then.
    #[must_use]
    pub const fn new() -> Self {
        Extensions { link: AtomicU64::new(0), of: PhantomData }
    }

    /// None yet, of a value that may be extended in `heap` before it is stored there.
    #[must_use]
    pub fn new_in(heap: HeapRef<'h>) -> Self {
        Extensions { link: AtomicU64::new(heap.base()), of: PhantomData }
    }

    fn heap(&self) -> HeapRef<'h> {
        // SAFETY: the value's own address, or that of a block of it.
        unsafe { HeapRef::of_container(self.link.load(Acquire), self) }
    }

    #[cold]
    fn wrong(&self, error: HeapError) -> Error {
        self.heap().error("use an extension of a value in", error)
    }

    #[inline]
    fn find<E: Extension>(&self) -> Result<Option<*mut E>> {
        let mut cursor = Cursor::new(self);
        let found = loop {
            match cursor.step() {
                Ok(Some(at)) if cursor.passed == E::NUMBER => break cursor.value::<E>(at).map(Some),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(error) => break Err(error),
            }
        };
        found.map_err(|error| self.wrong(error))
    }

    /// An extension, if there is one.
    #[doc(hidden)]
    #[inline]
    pub fn get<E: Extension>(&self) -> Result<Option<&E>> {
        // SAFETY: a value (4), which nobody stores to while this one is shared (2).
        Ok(self.find::<E>()?.map(|value| unsafe { &*value }))
    }

    /// An extension that was made, for storing.
    #[doc(hidden)]
    #[inline]
    pub fn get_mut<E: Extension>(&mut self) -> Result<&mut E> {
        let Some(value) = self.find::<E>()? else { return Err(self.wrong(missing(&Cursor::new(self)))) };
        // SAFETY: a value (4) of a block that this one owns, which is borrowed exclusively.
        unsafe {
            lent(value, 1);
            Ok(&mut *value)
        }
    }

    /// All extensions one after the other, for storing.
    #[doc(hidden)]
    pub fn parts(&mut self) -> Parts<'_> {
        let heap = self.heap().base();
        Parts { cursor: Cursor::new(self), address: heap }
    }

    /// Makes an extension if there is none; those before it are there. Any number of threads may do so at once.
    #[doc(hidden)]
    pub fn ensure<E: Extension>(&self, make: impl FnOnce() -> E) -> Result<()> {
        let mut cursor = Cursor::new(self);
        loop {
            match cursor.step() {
                Ok(Some(at)) if cursor.passed == E::NUMBER => {
                    return cursor.value::<E>(at).map(drop).map_err(|error| self.wrong(error));
                }
                Ok(Some(_)) => {}
                Ok(None) if cursor.passed + 1 == E::NUMBER => return self.append(cursor.slot, make),
                Ok(None) => return Err(self.wrong(missing(&cursor))),
                Err(error) => return Err(self.wrong(error)),
            }
        }
    }

    /// Links a new extension to the last one, unless another thread was faster.
    fn append<E: Extension>(&self, slot: &AtomicU64, make: impl FnOnce() -> E) -> Result<()> {
        const { assert!(align_of::<E>() <= 16, "an extension is aligned to 16 bytes at most") };
        let heap = self.heap();
        heap.heap()?;
        if Mutant::ExtensionLinkedFirst.is_on() {
            // SAFETY: extensions of tests are values if their bytes are zero; the block is this value's.
            unsafe {
                self.link(heap, slot, std::mem::zeroed::<E>())?;
                let at = self.find::<E>()?.ok_or_else(|| self.wrong(missing(&Cursor::new(self))))?;
                at.write(make());
            }
            return Ok(());
        }
        self.link(heap, slot, make())
    }

    fn link<E: Extension>(&self, heap: HeapRef<'h>, slot: &AtomicU64, value: E) -> Result<()> {
        // A cut has the extension and the link to it, or neither.
        let _inside = (!Mutant::ExtensionUngated.is_on()).then(|| heap.enter());
        let block = heap.bytes(size_of::<Block<E>>(), align_of::<Block<E>>())?.cast::<Block<E>>();
        let (size, description) = (size_of::<Block<E>>() as u64, identity::<E>());
        // SAFETY: a new block, large enough, which nobody knows of yet.
        unsafe {
            block.write(Block { header: Header { next: AtomicU64::new(0), size, description }, value });
            stored(block.as_ptr(), 1);
        }
        let address = block.addr().get() as u64;
        let none = |link: u64| link == 0 || link == heap.base() || Mutant::LaterLinkWins.is_on();
        let linked = slot.fetch_update(AcqRel, Acquire, |link| none(link).then_some(address));
        match linked {
            Ok(_) if Mutant::ExtensionUnmarked.is_on() => {}
            Err(_) if Mutant::LoserKept.is_on() => {}
            // SAFETY: the link lies in the value or in an extension of it.
            Ok(_) => unsafe { stored(slot, 1) },
            // SAFETY: a block that nothing links to is still this function's.
            Err(_) => unsafe { free(address) },
        }
        Ok(())
    }

    /// A copy of all extensions, also those of versions of the struct that this program does not know.
    fn copied(&self) -> Result<Self> {
        let empty = self.heap().base();
        let copy = match self.link.load(Acquire) {
            link if link == empty => Extensions { link: AtomicU64::new(link), of: PhantomData },
            _ => Extensions::new(),
        };
        let mut cursor = Cursor::new(self);
        let mut last = &raw const copy.link;
        while let Some(at) = cursor.step().map_err(|error| self.wrong(error))? {
            // SAFETY: a header in the object.
            let (heap, size) = unsafe { (HeapRef::<'h>::of(at.addr()), (*at).size as usize) };
            if !heap.heap()?.usable_size(at.cast()).is_ok_and(|room| room >= size) {
                return Err(
                    self.wrong(cursor.damage(at.addr(), "an extension that has no block of its size"))
                );
            }
            let block = heap.bytes(size, align_of::<Header>())?;
            let fixed = size_of::<AtomicU64>();
            // SAFETY: a new block, as large as the old one, whose bytes do not change but for the link (2), and own nothing (3).
            unsafe {
                block.cast::<AtomicU64>().write(AtomicU64::new(0));
                std::ptr::copy_nonoverlapping(
                    at.cast::<u8>().add(fixed),
                    block.as_ptr().add(fixed),
                    size - fixed,
                );
                (*last).store(block.addr().get() as u64, Relaxed);
                stored(last, 1);
                stored(block.as_ptr(), size);
            }
            last = block.cast::<AtomicU64>().as_ptr().cast_const();
            if Mutant::CopyCutShort.is_on() {
                break;
            }
        }
        Ok(copy)
    }
}

/// The error for an extension that should have been made by now.
#[cold]
fn missing(cursor: &Cursor<'_>) -> HeapError {
    cursor.damage(std::ptr::from_ref(cursor.slot).addr(), "an extension is missing")
}

/// A chain whose extensions are taken one after the other.
#[derive(Debug)]
pub struct Parts<'a> {
    cursor: Cursor<'a>,
    /// An address in the heap.
    address: u64,
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("passed", &self.passed).finish_non_exhaustive()
    }
}

impl<'a> Parts<'a> {
    /// The next extension, which was made.
    pub fn take<E: Extension>(&mut self) -> Result<&'a mut E> {
        let found = match self.cursor.step() {
            Ok(Some(at)) if self.cursor.passed == E::NUMBER => self.cursor.value::<E>(at),
            Ok(_) => Err(missing(&self.cursor)),
            Err(error) => Err(error),
        };
        match found {
            // SAFETY: a value (4) of a chain that is borrowed exclusively; each block is given out once, as no two extensions of
            // a struct have the same type, which is compared.
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
        let (mut blocks, mut cursor) = ([0; EXTENSIONS], Cursor::new(self));
        loop {
            match cursor.step() {
                Ok(Some(at)) => blocks[cursor.passed - 1] = at.addr() as u64,
                Ok(None) => break,
                // A chain that is damaged stays: its blocks may be somebody else's.
                Err(_) => return,
            }
        }
        let count = if Mutant::ChainKept.is_on() { cursor.passed.min(1) } else { cursor.passed };
        // SAFETY: the value's own blocks (1), which nobody refers to any more.
        blocks[..count].iter().for_each(|block| unsafe { free(*block) });
    }
}

impl<C> Default for Extensions<'_, C> {
    fn default() -> Self {
        Extensions::new()
    }
}

/// Copies the extensions, into the same heap.
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

// SAFETY: the link is checked (1), as an atomic, since other threads may extend a value that is shared.
unsafe impl<'h, C: 'h> Persist<'h> for Extensions<'h, C> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable, and any bits are an integer.
        let link = unsafe { (*at.cast::<AtomicU64>()).load(Relaxed) };
        link == 0 || bounds.holds(link, 1, size_of::<Header>(), align_of::<Header>())
    }

    fn describe(layout: &mut Layout) {
        layout.word("Extensions");
    }

    fn type_name(out: &mut String) {
        out.push_str("Extensions");
    }
}
