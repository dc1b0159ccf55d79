//! Chains of blocks by which later versions of a program extend a value
//! (docs/decisions/0037-extensions.md): a typed value of Rust, or a struct of C by its address.
//!
//! Invariants of a link, which lies in the value or in a block of the chain:
//!
//! 1. It is 0, or the object's first address, or the address of a block that the value owns, unless
//!    the object is damaged.
//! 2. A block is whole before anything links to it. While the value is shared, only the chain's
//!    last link changes, once, from none to a block, by compare-and-swap; links are only accessed
//!    as atomics.
//! 3. Extensions own nothing: a chain can be copied as bytes, and freed block by block.
//! 4. Each access checks a link's target again: header and bytes lie in the object.

#![allow(unsafe_code)]

use super::bounds::Bounds;
use super::error::HeapError;
use crate::error::Result;
use crate::types::EXTENSIONS;
use indelible_store::Mutant;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

pub(crate) trait Surroundings {
    type Inside;

    fn bounds(address: usize) -> Bounds;

    fn writable(address: usize) -> Result<()>;

    fn enter(address: usize) -> Result<Self::Inside>;

    fn allocate(address: usize, size: usize, align: usize) -> Result<NonNull<u8>>;

    fn is_block(address: usize, size: usize) -> Result<bool>;

    /// # Safety
    /// The block is the caller's, and not used any more.
    unsafe fn free(block: u64);

    /// # Safety
    /// The bytes lie in an object that stays attached meanwhile.
    unsafe fn stored(at: *const u8, len: usize);

    fn error(address: usize, error: HeapError) -> crate::error::Error;
}

#[repr(C)]
pub(crate) struct Header {
    pub(crate) next: AtomicU64,
    pub(crate) size: u64,
    pub(crate) description: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) size: usize,
    /// At most 16.
    pub(crate) align: usize,
    pub(crate) description: u64,
}

impl Shape {
    pub(crate) const fn offset(self) -> usize {
        size_of::<Header>().next_multiple_of(self.align)
    }

    const fn block_align(self) -> usize {
        if self.align > align_of::<Header>() { self.align } else { align_of::<Header>() }
    }

    pub(crate) const fn block(self) -> usize {
        (self.offset() + self.size).next_multiple_of(self.block_align())
    }
}

pub(crate) struct Cursor<'a, S> {
    pub(crate) slot: &'a AtomicU64,
    pub(crate) bounds: Bounds,
    pub(crate) passed: usize,
    within: PhantomData<S>,
}

#[inline]
pub(crate) fn home(slot: &AtomicU64) -> usize {
    match slot.load(Acquire) {
        0 => std::ptr::from_ref(slot).addr(),
        link => link as usize,
    }
}

#[inline]
fn header(address: u64) -> *mut Header {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

impl<'a, S: Surroundings> Cursor<'a, S> {
    #[inline]
    pub(crate) fn new(slot: &'a AtomicU64) -> Self {
        Cursor { slot, bounds: Bounds::NONE, passed: 0, within: PhantomData }
    }

    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<*mut Header>, HeapError> {
        let link = self.slot.load(Acquire);
        if link == 0 {
            return Ok(None);
        }
        if self.passed == 0 {
            self.bounds = S::bounds(link as usize);
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
        let at = header(link);
        // SAFETY: in the object, aligned; only the link changes while it is shared (2).
        let header: &'a Header = unsafe { &*at };
        if header.size < size_of::<Header>() as u64 || !here(header.size) {
            return wrong("an extension of another size than it can have");
        }
        (self.slot, self.passed) = (&header.next, self.passed + 1);
        Ok(Some(at))
    }

    #[inline]
    pub(crate) fn find(&mut self, number: usize) -> Result<Option<*mut Header>, HeapError> {
        loop {
            match self.step()? {
                Some(at) if self.passed == number => return Ok(Some(at)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    #[cold]
    pub(crate) fn damage(&self, address: usize, what: &'static str) -> HeapError {
        HeapError::Damaged { offset: address.wrapping_sub(self.bounds.base) as u64, what }
    }

    #[cold]
    pub(crate) fn missing(&self) -> HeapError {
        self.damage(std::ptr::from_ref(self.slot).addr(), "an extension is missing")
    }

    #[inline]
    pub(crate) fn fields(
        &self,
        at: *mut Header,
        shape: Shape,
        differs: impl FnOnce(u64, u64) -> HeapError,
    ) -> Result<*mut u8, HeapError> {
        // SAFETY: a header that `step` returned.
        let (size, description) = unsafe { ((*at).size, (*at).description) };
        let same = description == shape.description || Mutant::ExtensionTypeIgnored.is_on();
        if size != shape.block() as u64 || !same {
            return Err(differs(size, description));
        }
        let fields = at.cast::<u8>().wrapping_add(shape.offset());
        if !fields.addr().is_multiple_of(shape.align) {
            return Err(self.damage(fields.addr(), "an extension is no value of its type"));
        }
        Ok(fields)
    }
}

#[inline]
pub(crate) fn link<S: Surroundings>(
    slot: &AtomicU64,
    heap: usize,
    shape: Shape,
    write: impl FnOnce(*mut u8),
) -> Result<()> {
    let _inside = if Mutant::ExtensionUngated.is_on() { None } else { Some(S::enter(heap)?) };
    let block = S::allocate(heap, shape.block(), shape.block_align())?;
    let (size, description) = (shape.block() as u64, shape.description);
    // SAFETY: a new block, large enough, which no other code knows of.
    unsafe {
        block.cast::<Header>().write(Header { next: AtomicU64::new(0), size, description });
        write(block.as_ptr().add(shape.offset()));
        S::stored(block.as_ptr(), shape.block());
    }
    let (address, base) = (block.addr().get() as u64, S::bounds(heap).base as u64);
    let none = |link: u64| link == 0 || link == base || Mutant::LaterLinkWins.is_on();
    let linked = slot.fetch_update(AcqRel, Acquire, |link| none(link).then_some(address));
    match linked {
        Ok(_) if Mutant::ExtensionUnmarked.is_on() => {}
        Err(_) if Mutant::LoserKept.is_on() => {}
        // SAFETY: the link lies in the value or in its extension.
        Ok(_) => unsafe { S::stored(std::ptr::from_ref(slot).cast(), size_of::<AtomicU64>()) },
        // SAFETY: a block that nothing links to is still this function's.
        Err(_) => unsafe { S::free(address) },
    }
    Ok(())
}

/// An error may leave some in `into`.
pub(crate) fn copy<S: Surroundings>(from: &AtomicU64, into: usize, to: &AtomicU64) -> Result<()> {
    let wrong = |error| S::error(home(from), error);
    let mut cursor = Cursor::<S>::new(from);
    let mut last = std::ptr::from_ref(to);
    while let Some(at) = cursor.step().map_err(wrong)? {
        // SAFETY: a header in the object.
        let size = unsafe { (*at).size as usize };
        if !S::is_block(at.addr(), size)? {
            return Err(wrong(cursor.damage(at.addr(), "an extension that has no block of its size")));
        }
        let block = S::allocate(into, size, align_of::<Header>())?;
        let fixed = size_of::<AtomicU64>();
        // SAFETY: a new block, as large as the old one, whose bytes own nothing (3), and only whose
        // link changes (2).
        unsafe {
            block.cast::<AtomicU64>().write(AtomicU64::new(0));
            std::ptr::copy_nonoverlapping(
                at.cast::<u8>().add(fixed),
                block.as_ptr().add(fixed),
                size - fixed,
            );
            (*last).store(block.addr().get() as u64, Relaxed);
            S::stored(last.cast(), fixed);
            S::stored(block.as_ptr(), size);
        }
        last = block.cast::<AtomicU64>().as_ptr().cast_const();
        if Mutant::CopyCutShort.is_on() {
            break;
        }
    }
    Ok(())
}

/// A damaged chain stays: its blocks may be another value's.
///
/// # Safety
/// The value is the caller's, and its extensions are not used any more.
pub(crate) unsafe fn free<S: Surroundings>(slot: &AtomicU64) -> Result<(), HeapError> {
    let (mut blocks, mut cursor) = ([0; EXTENSIONS], Cursor::<S>::new(slot));
    while let Some(at) = cursor.step()? {
        blocks[cursor.passed - 1] = at.addr() as u64;
    }
    let count = if Mutant::ChainKept.is_on() { cursor.passed.min(1) } else { cursor.passed };
    // SAFETY: the value's own blocks (1), without references to them.
    blocks[..count].iter().for_each(|block| unsafe { S::free(*block) });
    Ok(())
}

const DEEPEST: usize = 64;

#[derive(Debug)]
pub(crate) struct Endless;

pub(crate) fn nested<T>(compute: impl FnOnce() -> T) -> Result<T, Endless> {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }

    struct Left;

    impl Drop for Left {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    if DEPTH.get() >= DEEPEST {
        return Err(Endless);
    }
    DEPTH.set(DEPTH.get() + 1);
    let _left = Left;
    Ok(compute())
}
