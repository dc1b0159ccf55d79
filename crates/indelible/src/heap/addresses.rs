//! The heap's functions that hand out addresses in its object. The first such call switches a heap
//! of [`Pool::heap`](crate::Pool::heap) to tracking that finds all stores.

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
    /// How stores are tracked: "wp-async", "mprotect" or "explicit"; a heap of
    /// [`Pool::heap`](crate::Pool::heap) may change it.
    #[must_use]
    pub fn rung(&self) -> String {
        self.object.rung()
    }

    pub(crate) fn give_addresses(&self) {
        let _ = self.object.give_addresses();
    }

    /// Code with values of this type may follow pointers, and store to their targets.
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

    /// A block of at least `size` arbitrary bytes, at a multiple of 16.
    ///
    /// # Errors
    /// `HeapFull`; `BadSize` for more than memory can have.
    #[inline]
    pub fn malloc(&self, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        self.block(size)
    }

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

    /// A zeroed block for `count` times `size` bytes.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc); `BadSize` if the product overflows.
    pub fn calloc(&self, count: usize, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        self.blank_block(count, size)
    }

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

    /// Resizes a block, in place if possible.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc) and [`free`](Heap::free): the block is unchanged.
    ///
    /// # Safety
    /// As for [`free`](Heap::free), of `block` if it moved.
    pub unsafe fn realloc(&self, block: *mut u8, size: usize) -> Result<NonNull<u8>> {
        self.object.give_addresses()?;
        // SAFETY: the caller's promise.
        let result = unsafe { self.raw.realloc_in(self, block, size) };
        result.map_err(|error| self.failed("reallocate a block of", error))
    }

    /// The live blocks, in address order.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.give_addresses();
        self.all_blocks()
    }

    pub(crate) fn all_blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.raw.blocks().map(|block| block.map_err(|error| self.error("walk the heap of", error)))
    }

    /// The root `name` of type `ty`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts, if it is of another type.
    pub fn root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        self.object.give_addresses()?;
        self.find_root(name, ty)
    }

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

    pub(crate) fn all_roots(&self) -> Result<Vec<Root>> {
        let result = self.raw.roots();
        self.done("list the roots of", result)
    }

    /// The object and its bytes.
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
