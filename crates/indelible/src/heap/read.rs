#![allow(unsafe_code)]

use super::check::HeapFinding;
use super::error::HeapError;
use super::raw::{Extent, HeapOptions, RawHeap};
use super::registry::{Access, Entry, Registration};
use super::root::{Root, TypeInfo};
use super::root_cache::RootCache;
use super::walk::{Block, HeapStats};
use crate::error::{Cause, Result};
use crate::object::ReadObject;
use std::ptr::NonNull;

/// A heap in an object attached for reading.
///
/// ```compile_fail
/// # fn example(object: indelible::ReadObject) -> indelible::Result<()> {
/// let heap = indelible::ReadHeap::open(object)?;
/// let block = heap.malloc(8)?; // error: no method named `malloc`
/// # Ok(()) }
/// ```
pub struct ReadHeap {
    /// Left before the object is detached.
    pub(super) registration: Registration,
    raw: RawHeap,
    object: ReadObject,
    pub(crate) root_cache: RootCache,
}

impl ReadHeap {
    /// Opens the heap of an object, in constant time.
    ///
    /// # Errors
    /// `NotAHeap`, `Version`, `Damaged`.
    pub fn open(object: ReadObject) -> Result<ReadHeap> {
        let extent = Extent {
            base: NonNull::new(object.as_ptr().cast_mut()).unwrap_or(NonNull::dangling()),
            len: object.len(),
            writable: false,
            marks: None,
            reach: 0,
        };
        // SAFETY: mapped until the object is dropped, after the heap; no thread writes to it.
        match unsafe { RawHeap::open(&extent, HeapOptions::new()) } {
            Ok(raw) => Ok(ReadHeap {
                raw,
                object,
                registration: Registration::new(),
                root_cache: RootCache::default(),
            }),
            Err(error) => Err(object.error("open the heap of", Cause::Heap(error))),
        }
    }

    fn done<T>(&self, operation: &'static str, result: Result<T, HeapError>) -> Result<T> {
        result.map_err(|error| self.object.error(operation, Cause::Heap(error)))
    }

    /// Bytes of a block.
    ///
    /// # Errors
    /// `NotABlock`, `DoubleFree` for a free one.
    pub fn usable_size(&self, block: *const u8) -> Result<usize> {
        self.done("inspect a block of", self.raw.usable_size(block.addr()))
    }

    /// The live blocks, in address order.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.raw.blocks().map(|block| self.done("walk the heap of", block))
    }

    /// All faults in the heap's metadata.
    #[must_use]
    pub fn check(&self) -> Vec<HeapFinding> {
        self.raw.check()
    }

    /// Counts the heap's figures.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn stats(&self) -> Result<HeapStats> {
        self.done("count the heap of", self.raw.stats())
    }

    /// The root `name` of type `ty`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts, if it is of another type.
    pub fn root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        self.done("find a root in", self.raw.root(name, ty))
    }

    /// The root `name`, of any type.
    ///
    /// # Errors
    /// `RootMissing`.
    pub fn root_any(&self, name: &str) -> Result<Root> {
        self.done("find a root in", self.raw.root_any(name))
    }

    /// All roots, sorted by name.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn roots(&self) -> Result<Vec<Root>> {
        self.done("list the roots of", self.raw.roots())
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &ReadObject {
        &self.object
    }

    /// The object, without the heap.
    #[must_use]
    pub fn into_object(self) -> ReadObject {
        self.object
    }

    pub(crate) fn raw(&self) -> &RawHeap {
        &self.raw
    }

    pub(crate) fn register(&self) -> Entry {
        let (base, len) = (self.object().as_ptr().addr(), self.object().len());
        self.registration.register(base, len, Access::Reading, false)
    }
}

impl std::fmt::Debug for ReadHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadHeap").field("object", &self.object).finish()
    }
}
