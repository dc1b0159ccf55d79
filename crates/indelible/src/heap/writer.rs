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
use super::walk::HeapStats;
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::object::Object;
use crate::sys::PAGE;
use std::ops::Range;
use std::ptr::NonNull;

/// A heap in an object attached for writing.
///
/// Any number of threads allocate and free at once. The next psync makes blocks, used or free,
/// durable with their contents.
///
/// ```
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
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// Each object has one `Heap` at a time:
///
/// ```compile_fail
/// # fn example(object: indelible::Object) -> indelible::Result<()> {
/// let one = indelible::Heap::open(object)?;
/// let two = indelible::Heap::open(object)?; // error: `object` was moved
/// # Ok(()) }
/// ```
pub struct Heap {
    /// Before the object: no thread finds a heap that is gone.
    pub(super) registration: Registration,
    /// Before the object: it is closed while the object is still mapped.
    pub(super) raw: RawHeap,
    pub(super) object: Object,
    pub(super) rounds: Rounds<Error>,
    pub(crate) root_cache: RootCache,
    pub(crate) trusted: Trusted,
}

impl Heap {
    /// Makes a heap of a blank object, durable after a psync.
    ///
    /// # Errors
    /// `Exists` if the first page is not zero, `BadSize` for an object of less than 12 KiB.
    pub fn format(object: Object) -> Result<Heap> {
        Heap::format_with(object, HeapOptions::new())
    }

    /// As [`format`](Heap::format), with options.
    pub fn format_with(mut object: Object, options: HeapOptions) -> Result<Heap> {
        // SAFETY: mapped for writing until the object is dropped, after the heap; only this heap
        // refers to its bytes.
        let result = unsafe { RawHeap::format(&extent(&object), options) };
        if result.is_ok() {
            object.adopt_blank()?;
        }
        Heap::with("format the heap of", object, result)
    }

    /// Opens the heap of an object, in constant time.
    ///
    /// # Errors
    /// `NotAHeap`, `Version` for a heap of a newer version, `Damaged`.
    pub fn open(object: Object) -> Result<Heap> {
        Heap::open_with(object, HeapOptions::new())
    }

    /// As [`open`](Heap::open), with options.
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

    pub(super) fn done<T>(&self, operation: &'static str, result: Result<T, HeapError>) -> Result<T> {
        result.map_err(|error| self.error(operation, error))
    }

    /// Frees a block; a root's block only after [`remove_root`](Heap::remove_root).
    ///
    /// # Errors
    /// `NotABlock`, `DoubleFree`, `Overwritten` (in debug mode), `RootExists` for a root's block:
    /// nothing changed.
    ///
    /// # Safety
    /// The block is the caller's, and not used any more.
    #[inline]
    pub unsafe fn free(&self, block: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.raw.free(block.addr()) }.map_err(|error| self.failed("free a block of", error))
    }

    /// Usable bytes of a block: at least those asked for.
    ///
    /// # Errors
    /// `NotABlock`, `DoubleFree`.
    pub fn usable_size(&self, block: *const u8) -> Result<usize> {
        let result = self.raw.usable_size(block.addr());
        self.done("inspect a block of", result)
    }

    /// All faults in the heap's metadata, and in debug mode all overwritten guard bytes.
    pub fn check(&mut self) -> Vec<HeapFinding> {
        self.raw.check()
    }

    /// Counts the heap's figures.
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
    /// Code that finds the root by its type uses the bytes as such. If that is a type of this
    /// crate, or is [`Persist`](crate::Persist): the bytes are a block of this heap, which holds a
    /// value of the type, both the root's alone from now on.
    pub unsafe fn create_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        self.name_root(name, address, size, ty)
    }

    pub(crate) fn name_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        self.expect_pointers(ty)?;
        let result = self.raw.create_root(name, address.addr(), size, ty);
        self.done("create a root in", result)?;
        self.trusted.add(name);
        Ok(())
    }

    pub(crate) fn replace_root(
        &self,
        name: &str,
        address: *const u8,
        size: u64,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        self.expect_pointers(ty)?;
        let result = self.root_cache.forget(|| self.raw.replace_root(name, address.addr(), size, ty));
        self.done("replace a root of", result)?;
        self.trusted.add(name);
        Ok(())
    }

    /// Takes the heap's contents for those of typed code, unchecked; [`verify`](Heap::verify)
    /// checks them.
    ///
    /// # Safety
    /// Each root of a type of this crate, or of one that is [`Persist`](crate::Persist), is a value
    /// of its type, whose blocks are its own: no two values share a block.
    pub unsafe fn trust(&mut self) {
        self.object.adopt();
        self.trusted.all();
    }

    /// Removes a name; the block stays.
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

    /// Grows the object and its heap, to whole pages: see [`Object::grow`].
    pub fn grow(&mut self, size: u64) -> Result<()> {
        self.object.grow(size.next_multiple_of(PAGE as u64))?;
        // SAFETY: the range that is mapped now.
        let taken = unsafe { self.raw.take_in(self.object.len()) };
        if !self.done("extend the heap of", taken)? {
            // SAFETY: as for `open_with`; the one before is dropped, and no other thread has
            // `self`.
            let raw = unsafe { RawHeap::open(&extent(&self.object), self.raw.options()) };
            self.raw = self.done("open the heap of", raw)?;
        }
        Ok(())
    }

    /// Makes room for a block of `bytes` now.
    ///
    /// # Errors
    /// `HeapFull`, and as for [`grow`](Heap::grow).
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        let block = match self.block(bytes) {
            Err(error) if error.kind() == ErrorKind::HeapFull && self.raw.grows() => {
                let mut grown = Err(error);
                for len in RawHeap::growth(self.object.len(), bytes, 16) {
                    grown = self.grow(len as u64);
                    if !matches!(&grown, Err(error) if Limit::from(error).is_of_size()) {
                        break;
                    }
                }
                grown?;
                self.block(bytes)?
            }
            result => result?,
        };
        // SAFETY: a block that no other code knows of.
        unsafe { self.free(block.as_ptr()) }
    }

    #[inline]
    pub(crate) fn block_around(&self, address: usize, size: usize) -> Result<Range<usize>> {
        match self.raw.allocator.around(address, size as u64) {
            Ok((start, len)) => Ok(start..start + len),
            Err(error) => Err(self.error("find a block of", error)),
        }
    }

    pub(super) fn make_room(&self, bytes: usize) -> Result<()> {
        let block = self.block(bytes)?;
        // SAFETY: a block that no other code knows of.
        unsafe { self.free(block.as_ptr()) }
    }

    /// Bytes of the object.
    #[must_use]
    pub fn size(&self) -> usize {
        self.object.len()
    }

    pub(crate) fn register(&self) -> Entry {
        let (base, len) = (self.object.as_ptr().addr(), self.size());
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

    fn grow(&self, size: usize) -> std::result::Result<(), Limit> {
        self.object.grow_beside(size as u64).map_err(|error| Limit::from(&error))
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
        // Bytes behind the size do not survive growth.
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
