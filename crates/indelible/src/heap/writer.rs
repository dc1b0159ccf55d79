//! The heap of an object that is attached for writing.

#![allow(unsafe_code)]

use super::check::HeapFinding;
use super::error::{HeapError, Limit};
use super::growth::Growable;
use super::raw::{Extent, HeapOptions, RawHeap};
use super::registry::{Access, Entry, Registration};
use super::root::{Root, TypeInfo};
use super::root_cache::RootCache;
use super::rounds::Rounds;
use super::trusted::Trusted;
use super::walk::{Block, HeapStats};
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::object::Object;
use crate::sys::PAGE;
use std::ops::Range;
use std::ptr::NonNull;

/// A heap in an object attached for writing.
///
/// Any number of threads may allocate and free at once. Blocks become durable, as in use or as free, with
/// the next psync, together with what was stored in them; after a crash heap and data are as the last
/// psync left them.
///
/// ```
/// # fn main() -> indelible::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("names.pmo");
/// use indelible::{Heap, Pool, TypeInfo};
///
/// const NUMBER: TypeInfo = TypeInfo { name: "u64", fingerprint: 64, layout: "u64 at 0" };
///
/// let pool = Pool::format(&path, 16 << 20)?;
/// pool.create("numbers", 1 << 20)?;
/// let mut heap = Heap::format(pool.attach("numbers")?)?;
/// let number = heap.malloc(8)?.cast::<u64>();
/// // SAFETY: the block is ours, and has eight bytes.
/// unsafe { number.write(7) };
/// // SAFETY: the block holds what is said of it, and is the root's from now on.
/// unsafe { heap.create_root("lucky", number.cast().as_ptr(), 8, &NUMBER)? };
/// heap.psync()?; // the block, the root and the seven, as one step
/// drop(heap);
///
/// let heap = Heap::open(pool.attach("numbers")?)?;
/// let root = heap.root("lucky", &NUMBER)?;
/// assert_eq!(heap.stats()?.blocks, 1);
/// # assert_eq!(root.size, 8);
/// # Ok(()) }
/// ```
///
/// Each object has one `Heap` at a time, as it takes the `Object`:
///
/// ```compile_fail
/// # fn example(object: indelible::Object) -> indelible::Result<()> {
/// let one = indelible::Heap::open(object)?;
/// let two = indelible::Heap::open(object)?; // error: `object` was moved
/// # Ok(()) }
/// ```
pub struct Heap {
    /// Left before the object is detached: nobody finds a heap that is gone.
    pub(super) registration: Registration,
    /// Before the object: it is closed while the object is still mapped.
    pub(super) raw: RawHeap,
    pub(super) object: Object,
    pub(super) rounds: Rounds<Error>,
    /// Roots by type.
    pub(crate) root_cache: RootCache,
    /// Roots that may be used by type.
    pub(crate) trusted: Trusted,
}

impl Heap {
    /// Makes a heap of a blank object. Like everything stored, it is durable after a psync.
    ///
    /// # Errors
    /// `Exists` if the first page is not zero, `BadSize` for an object of less than 12 KiB.
    pub fn format(object: Object) -> Result<Heap> {
        Heap::format_with(object, HeapOptions::new())
    }

    /// As [`format`](Heap::format), with options.
    ///
    /// # Errors
    /// As for [`format`](Heap::format).
    pub fn format_with(mut object: Object, options: HeapOptions) -> Result<Heap> {
        // SAFETY: the object is mapped for writing until it is dropped, after the heap; only this heap
        // refers to what lies in it.
        let result = unsafe { RawHeap::format(&extent(&object), options) };
        if result.is_ok() {
            object.adopt_blank()?;
        }
        Heap::with("format the heap of", object, result)
    }

    /// Opens the heap of an object, at a cost that does not depend on its size.
    ///
    /// # Errors
    /// `NotAHeap`, `Version` for a heap made by a newer version, `Damaged`.
    pub fn open(object: Object) -> Result<Heap> {
        Heap::open_with(object, HeapOptions::new())
    }

    /// As [`open`](Heap::open), with options.
    ///
    /// # Errors
    /// As for [`open`](Heap::open).
    pub fn open_with(object: Object, options: HeapOptions) -> Result<Heap> {
        // SAFETY: as for `format_with`.
        let result = unsafe { RawHeap::open(&extent(&object), options) };
        Heap::with("open the heap of", object, result)
    }

    fn with(operation: &'static str, object: Object, result: Result<RawHeap, HeapError>) -> Result<Heap> {
        match result {
            Ok(raw) => Ok(Heap {
                raw,
                trusted: Trusted::new(!object.is_foreign()),
                object,
                registration: Registration::new(),
                rounds: Rounds::default(),
                root_cache: RootCache::default(),
            }),
            Err(error) => Err(object.error(operation, Cause::Heap(error))),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn error(&self, operation: &'static str, error: HeapError) -> Error {
        self.object.error(operation, Cause::Heap(error))
    }

    fn done<T>(&self, operation: &'static str, result: Result<T, HeapError>) -> Result<T> {
        result.map_err(|error| self.error(operation, error))
    }

    /// A block of at least `size` bytes, at a multiple of 16; what it holds is not defined.
    ///
    /// # Errors
    /// `HeapFull`; `BadSize` for more than memory can have.
    #[inline]
    pub fn malloc(&self, size: usize) -> Result<NonNull<u8>> {
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
        self.raw.calloc_in(self, count, size).map_err(|error| self.failed("allocate in", error))
    }

    /// A block at a multiple of `align`, a power of two of at most 2 MiB.
    ///
    /// # Errors
    /// As for [`malloc`](Heap::malloc); `BadAlignment`.
    pub fn aligned(&self, align: usize, size: usize) -> Result<NonNull<u8>> {
        let result = self.raw.allocate_in(self, size, align, false);
        result.map_err(|error| self.failed("allocate in", error))
    }

    /// Frees a block.
    ///
    /// # Errors
    /// `NotABlock`, `DoubleFree`, `Overwritten` (in debug mode): nothing was changed.
    ///
    /// # Safety
    /// The block is the caller's, and nobody uses it any more.
    #[inline]
    pub unsafe fn free(&self, block: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.raw.free(block.addr()) }.map_err(|error| self.failed("free a block of", error))
    }

    #[cold]
    #[inline(never)]
    #[expect(clippy::boxed_local, reason = "a pointer is quicker to pass than an error")]
    fn failed(&self, operation: &'static str, error: Box<HeapError>) -> Error {
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
        // SAFETY: the caller's promise.
        let result = unsafe { self.raw.realloc_in(self, block, size) };
        result.map_err(|error| self.failed("reallocate a block of", error))
    }

    /// Bytes the caller may use of a block: at least those asked for.
    ///
    /// # Errors
    /// `NotABlock`, `DoubleFree`.
    pub fn usable_size(&self, block: *const u8) -> Result<usize> {
        let result = self.raw.usable_size(block.addr());
        self.done("inspect a block of", result)
    }

    /// The live blocks, in the order of addresses. Those that other threads allocate or free meanwhile may
    /// or may not be among them.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block>> {
        self.raw.blocks().map(|block| block.map_err(|error| self.error("walk the heap of", error)))
    }

    /// Everything that is wrong in the heap's metadata, and in debug mode all guard bytes that were
    /// overwritten. No other thread may allocate or free meanwhile, which the compiler sees to.
    pub fn check(&mut self) -> Vec<HeapFinding> {
        self.raw.check()
    }

    /// The heap in numbers, counted now.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn stats(&self) -> Result<HeapStats> {
        let result = self.raw.stats();
        self.done("count the heap of", result)
    }

    /// Gives `size` bytes at `address`, in this heap, a name of up to 255 bytes.
    ///
    /// # Errors
    /// `RootExists`, `BadName`, `NotABlock` if they are not in the object, `HeapFull`.
    ///
    /// # Safety
    /// Code that finds the root by its type uses the bytes as such. If that is a type of this crate, or one
    /// that is [`Persist`](crate::Persist): the bytes are a block of this heap, which holds a value of the
    /// type, both the root's alone from now on.
    pub unsafe fn create_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        self.name_root(name, address, size, ty)
    }

    /// As [`create_root`](Heap::create_root), which says what the caller promises.
    pub(crate) fn name_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        let result = self.raw.create_root(name, address.addr(), size, ty);
        self.done("create a root in", result)?;
        self.trusted.add(name);
        Ok(())
    }

    /// As [`name_root`](Heap::name_root), in the place of a root of the same name, whose block stays.
    pub(crate) fn replace_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        let result = self.root_cache.forget(|| self.raw.replace_root(name, address.addr(), size, ty));
        self.done("replace a root of", result)?;
        self.trusted.add(name);
        Ok(())
    }

    /// Takes what lies in the heap for the work of typed code: see [`verify`](Heap::verify), which finds out.
    ///
    /// # Safety
    /// Each root of a type of this crate, or of one that is [`Persist`](crate::Persist), is a value of its type, whose blocks are
    /// its own: no two values have a block in common.
    pub unsafe fn trust(&mut self) {
        self.object.adopt();
        self.trusted.all();
    }

    /// The root `name`, which is a `ty`.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`, with both layouts in the text, if it is something else.
    pub fn root(&self, name: &str, ty: &TypeInfo<'_>) -> Result<Root> {
        let result = self.raw.root(name, ty);
        self.done("find a root in", result)
    }

    /// The root `name`, of whatever type.
    ///
    /// # Errors
    /// `RootMissing`.
    pub fn root_any(&self, name: &str) -> Result<Root> {
        let result = self.raw.root_any(name);
        self.done("find a root in", result)
    }

    /// Takes a name away; the block stays.
    ///
    /// # Errors
    /// `RootMissing`.
    pub fn remove_root(&self, name: &str) -> Result<Root> {
        let result = self.root_cache.forget(|| {
            self.trusted.remove(name);
            self.raw.remove_root(name)
        });
        self.done("remove a root of", result)
    }

    /// All roots, sorted by name.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn roots(&self) -> Result<Vec<Root>> {
        let result = self.raw.roots();
        self.done("list the roots of", result)
    }

    /// Grows the object, and the heap with it, to whole pages: see [`Object::grow`].
    ///
    /// # Errors
    /// As for [`Object::grow`].
    pub fn grow(&mut self, size: u64) -> Result<()> {
        self.object.grow(size.next_multiple_of(PAGE as u64))?;
        // SAFETY: this is what is mapped now.
        let taken = unsafe { self.raw.take_in(self.object.len()) };
        if !self.done("extend the heap of", taken)? {
            // SAFETY: as for `open_with`; the one before is dropped, and no other thread has `self`.
            let raw = unsafe { RawHeap::open(&extent(&self.object), self.raw.options()) };
            self.raw = self.done("open the heap of", raw)?;
        }
        Ok(())
    }

    /// Makes sure that a block of `bytes` can be had now. If the heap may grow but the object cannot grow
    /// where it stands, the object is moved; an allocation cannot do that, as others may be using the object.
    ///
    /// # Errors
    /// `HeapFull`, and as for [`grow`](Heap::grow).
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        let block = match self.malloc(bytes) {
            Err(error) if error.kind() == ErrorKind::HeapFull && self.raw.grows() => {
                let mut grown = Err(error);
                for len in RawHeap::growth(self.object.len(), bytes, 16) {
                    grown = self.grow(len as u64);
                    if !matches!(&grown, Err(error) if Limit::from(error).is_of_size()) {
                        break;
                    }
                }
                grown?;
                self.malloc(bytes)?
            }
            result => result?,
        };
        // SAFETY: a block nobody else knows of.
        unsafe { self.free(block.as_ptr()) }
    }

    /// The object, its bytes included. Not beside containers and locks of the heap, whose contents change
    /// while it is borrowed as they do.
    #[must_use]
    pub fn object(&mut self) -> &Object {
        &self.object
    }

    /// The first byte of the object.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.object.as_ptr()
    }

    /// Bytes of the object.
    #[must_use]
    pub fn size(&self) -> usize {
        self.object.len()
    }

    /// Registers the heap at its present address.
    pub(crate) fn register(&self) -> Entry {
        let (base, len) = (self.base().addr(), self.size());
        let heap = std::ptr::from_ref(self).expose_provenance();
        let explicit = self.object.explicit_marks().is_some();
        self.registration.register(base, len, Access::Writing { heap }, explicit)
    }

    pub(crate) fn raw(&self) -> &RawHeap {
        &self.raw
    }

    pub(crate) fn attached_mut(&mut self) -> &mut Object {
        &mut self.object
    }

    pub(crate) fn attached(&self) -> &Object {
        &self.object
    }
}

impl Growable for Heap {
    fn mapped(&self) -> usize {
        self.object.len()
    }

    fn grow_in_place(&self, size: usize) -> std::result::Result<(), Limit> {
        self.object.grow_in_place(size as u64).map_err(|error| Limit::from(&error))
    }

    fn grown(&self) {
        self.register();
    }

    fn stored(&self, addresses: Range<usize>) {
        self.stored(&[addresses]);
    }
}

pub(super) fn extent(object: &Object) -> Extent {
    Extent {
        base: NonNull::new(object.as_ptr().cast_mut()).unwrap_or(NonNull::dangling()),
        // Not to the end of the last page: what lies behind the size does not survive growth.
        len: object.len(),
        writable: true,
        marks: object.explicit_marks().cloned(),
        reach: object.reach(),
    }
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap").field("object", &self.object).finish()
    }
}
