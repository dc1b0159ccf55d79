//! The functions of a heap that hand out addresses in its object: of blocks, of roots, of the
//! object itself.
//!
//! A heap that [`Pool::heap`](crate::Pool::heap) opened finds no stores, as long as only
//! collections store to it: they mark theirs. An address is enough to store by it without a mark.
//! So the first of these functions switches to tracking that finds all stores, and returns once
//! that is on. Code of this crate that marks its stores, or makes none, calls the functions beside
//! them.

#![allow(unsafe_code)]

use super::error::HeapError;
use super::root::{Root, TypeInfo};
use super::walk::Block;
use super::writer::Heap;
use crate::error::{Error, Result};
use crate::object::Object;
use crate::types::Description;
use std::ptr::NonNull;

impl Heap {
    /// How stores to the object are noticed: "wp-async", "mprotect" or "explicit". A heap that
    /// [`Pool::heap`](crate::Pool::heap) opened begins with "explicit", if the pool's options leave
    /// it open and the object is mapped from the pool's file, and goes over to finding stores when
    /// it hands out the first address.
    #[must_use]
    pub fn rung(&self) -> String {
        self.object.rung()
    }

    /// If stores cannot be found, the next psync fails.
    pub(crate) fn give_addresses(&self) {
        let _ = self.object.give_addresses();
    }

    /// Code that has values of this type may follow pointers, and store where they lead.
    ///
    /// # Errors
    /// `Unsuitable`: the object is position-independent, and values of this type have addresses in
    /// them.
    pub(crate) fn expect_pointers(&self, ty: &TypeInfo<'_>) -> Result<()> {
        if self.object.is_position_independent()
            && let Some(part) = Description::parse(ty.layout).ok().and_then(|of| of.with_addresses())
        {
            let ty = ty.name.to_owned();
            return Err(self.error("use a root of", HeapError::Fixed { ty, part }));
        }
        match ty.layout.contains("*mut ") || ty.layout.contains("*const ") {
            true => self.object.give_addresses(),
            false => Ok(()),
        }
    }

    /// A block of at least `size` bytes, at a multiple of 16; what it holds is not defined.
    ///
    /// # Errors
    /// `HeapFull`; `BadSize` for more than memory can have.
    #[inline]
    pub fn malloc(&self, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        self.block(size)
    }

    /// As [`malloc`](Heap::malloc), for code that marks its stores.
    #[inline]
    pub(crate) fn block(&self, size: usize) -> Result<NonNull<u8>> {
        match self.raw.malloc_at_hand(size) {
            Some(block) => Ok(block),
            None => self.malloc_elsewhere(size),
        }
    }

    #[inline(never)]
    fn malloc_elsewhere(&self, size: usize) -> Result<NonNull<u8>> {
        self.raw.malloc_in(self, size).map_err(|error| self.failed("allocate in", error))
    }

    /// A block for `count` times `size` bytes, all zero.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc); `BadSize` if the product overflows.
    pub fn calloc(&self, count: usize, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        self.blank_block(count, size)
    }

    /// As [`calloc`](Heap::calloc), for code that marks its stores.
    pub(crate) fn blank_block(&self, count: usize, size: usize) -> Result<NonNull<u8>> {
        self.raw.calloc_in(self, count, size).map_err(|error| self.failed("allocate in", error))
    }

    /// A block at a multiple of `align`, a power of two of at most 2 MiB.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc); `BadAlignment`.
    pub fn aligned(&self, align: usize, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        self.aligned_block(align, size, false)
    }

    /// As [`aligned`](Heap::aligned), for code that marks its stores; `zero` asks for zeros.
    pub(crate) fn aligned_block(&self, align: usize, size: usize, zero: bool) -> Result<NonNull<u8>> {
        let result = self.raw.allocate_in(self, size, align, zero);
        result.map_err(|error| self.failed("allocate in", error))
    }

    #[cold]
    #[inline(never)]
    #[expect(clippy::boxed_local, reason = "a pointer is quicker to pass than an error")]
    pub(super) fn failed(&self, operation: &'static str, error: Box<HeapError>) -> Error {
        self.error(operation, *error)
    }

    /// Gives a block another size, in place if possible. Its content stays, up to the smaller size.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc) and [`free`](Heap::free): the block is as it was.
    ///
    /// # Safety
    /// As for [`free`](Heap::free): if the block moved, the old one is free.
    pub unsafe fn realloc(&self, block: *mut u8, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        // SAFETY: the caller's promise.
        let result = unsafe { self.raw.realloc_in(self, block, size) };
        result.map_err(|error| self.failed("reallocate a block of", error))
    }

    /// The live blocks, in the order of addresses. Those that other threads allocate or free
    /// meanwhile may or may not be among them.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.give_addresses();
        self.all_blocks()
    }

    /// As [`blocks`](Heap::blocks), for code that marks its stores.
    pub(crate) fn all_blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.raw.blocks().map(|block| block.map_err(|error| self.error("walk the heap of", error)))
    }

    /// The root `name`, which is a `ty`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts in the text, if it is something else.
    pub fn root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        self.object.give_addresses()?;
        self.find_root(name, ty)
    }

    /// As [`root`](Heap::root), for code that marks its stores.
    pub(crate) fn find_root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        let result = self.raw.root(name, ty);
        self.done("find a root in", result)
    }

    /// The root `name`, of any type.
    ///
    /// # Errors
    /// `RootMissing`.
    pub fn root_any(&self, name: &str) -> Result<Root> {
        self.object.give_addresses()?;
        self.find_any_root(name)
    }

    /// As [`root_any`](Heap::root_any), for code that marks its stores.
    pub(crate) fn find_any_root(&self, name: &str) -> Result<Root> {
        let result = self.raw.root_any(name);
        self.done("find a root in", result)
    }

    /// All roots, sorted by name.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn roots(&self) -> Result<Vec<Root>> {
        self.object.give_addresses()?;
        self.all_roots()
    }

    /// As [`roots`](Heap::roots), for code that marks its stores.
    pub(crate) fn all_roots(&self) -> Result<Vec<Root>> {
        let result = self.raw.roots();
        self.done("list the roots of", result)
    }

    /// The object, its bytes included. Not beside containers and locks of the heap, whose contents
    /// change while it is borrowed as they do.
    #[must_use]
    pub fn object(&mut self) -> &Object {
        self.give_addresses();
        &self.object
    }

    /// The first byte of the object.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.give_addresses();
        self.object.as_ptr()
    }
}
