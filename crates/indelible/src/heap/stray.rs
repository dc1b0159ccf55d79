//! Addresses in an object without meaning in the next run: of the program, its libraries, its
//! memory, other objects. Searches aligned words of blocks in use, or of the whole object without a
//! heap.

#![allow(unsafe_code)]

use super::error::HeapError;
use super::raw::{Extent, HeapOptions, RawHeap};
use super::root::Root;
use super::surroundings::Surroundings;
pub use super::surroundings::{Audit, Outside};
use super::walk::Block;
use super::writer::{Heap, extent};
use crate::error::{Cause, Result};
use crate::object::Object;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// An address in an object without meaning in the next run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrayPointer {
    /// Offset of the word in the object, in bytes.
    pub offset: u64,
    /// Its value.
    pub target: u64,
    /// The word's path by its root's described type, with the type's name; else its block.
    pub place: String,
    /// The kind of memory at the address.
    pub into: Outside,
    /// Its name: a path, an object's name, or nothing.
    pub name: String,
}

impl StrayPointer {
    /// Describes its target.
    #[must_use]
    pub fn target_words(&self) -> String {
        let name = &self.name;
        match self.into {
            Outside::Program => format!("the program ({name})"),
            Outside::Library => format!("a library ({name})"),
            Outside::Stack => "the stack".to_owned(),
            Outside::Memory if name.is_empty() => {
                "memory of the process (malloc's, or a thread's stack)".to_owned()
            }
            Outside::Memory => format!("memory of the process ({name})"),
            Outside::Object => format!("object {name:?}"),
        }
    }
}

impl fmt::Display for StrayPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} leads into {}", self.place, self.offset, self.target_words())
    }
}

pub(crate) fn refused(all: &[StrayPointer]) -> Result<(), Cause> {
    match all {
        [] => Ok(()),
        [only] => Err(Cause::Stray(only.to_string())),
        [first, more @ ..] => Err(Cause::Stray(format!("{first}, and {} more", more.len()))),
    }
}

/// # Safety
/// The object is mapped there until this returns.
pub(crate) unsafe fn search(
    base: *const u8,
    len: usize,
    heap: Option<&RawHeap>,
    audit: Audit,
) -> Result<Vec<StrayPointer>, Cause> {
    let surroundings = Surroundings::of(base.addr(), audit == Audit::Everything)
        .map_err(|error| Cause::Unsupported(format!("cannot read /proc/self/maps: {error}")))?;
    let (blocks, roots, what) = match heap {
        None => (vec![Block { address: base.addr(), size: len }], Vec::new(), "the object"),
        Some(heap) => (heap.blocks().collect::<Result<_, HeapError>>()?, heap.roots()?, "a block"),
    };
    let mut all = Vec::new();
    for Block { address, size } in blocks {
        for at in (address..address + size / 8 * 8).step_by(8) {
            debug_assert!(at >= base.addr() && at + 8 <= base.addr() + len);
            let word = base.wrapping_add(at - base.addr()).cast_mut().cast::<u64>();
            // SAFETY: blocks lie in the object, at multiples of 16; the caller's promise. Another
            // thread may store the word.
            let target = unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed);
            let Some((into, name)) = surroundings.find(target) else { continue };
            let place = place(at, &roots).unwrap_or_else(|| format!("{what} of {size} bytes"));
            let (offset, name) = ((at - base.addr()) as u64, name.to_owned());
            all.push(StrayPointer { offset, target, place, into, name });
        }
    }
    Ok(all)
}

fn place(address: usize, roots: &[Root]) -> Option<String> {
    let within = |root: &&Root| (root.address..root.address + root.size as usize).contains(&address);
    let root = roots.iter().find(within)?;
    let Some(of) = root.description() else { return Some(format!("{} ({})", root.name, root.type_name)) };
    let (way, name) = of.locate((address - root.address) as u64);
    Some(format!("{}{way} ({name})", root.name))
}

impl Object {
    /// The addresses without meaning in the next run, by offset: of the program, its libraries and
    /// memory, and of other objects. A number that looks like one counts.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// let mut object = pool.create_attached("o", 4096)?;
    /// let local = Box::new(7);
    /// *object.root_mut::<u64>()? = std::ptr::from_ref(&*local).addr() as u64;
    /// let found = object.stray_pointers()?;
    /// assert_eq!((found.len(), found[0].offset), (1, 0));
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Damaged` if the heap is; `Unsupported` without `/proc/self/maps`.
    pub fn stray_pointers(&mut self) -> Result<Vec<StrayPointer>> {
        let extent = Extent { writable: false, marks: None, reach: 0, ..extent(self) };
        // SAFETY: mapped as long as the object is borrowed; no thread stores to it.
        let heap = match unsafe { RawHeap::open(&extent, HeapOptions::new()) } {
            Ok(heap) => Some(heap),
            Err(HeapError::NotAHeap) => None,
            Err(error) => return Err(self.error(AUDIT, Cause::Heap(error))),
        };
        // SAFETY: as above.
        let found = unsafe { search(self.as_ptr(), self.len(), heap.as_ref(), Audit::Everything) };
        found.map_err(|cause| self.error(AUDIT, cause))
    }
}

impl Heap {
    /// Addresses in the heap's blocks without meaning in the next run: see
    /// [`Object::stray_pointers`].
    ///
    /// # Errors
    /// `Damaged`; `Unsupported` without `/proc/self/maps`.
    pub fn stray_pointers(&mut self) -> Result<Vec<StrayPointer>> {
        self.stray(AUDIT, Audit::Everything)
    }

    fn stray(&self, operation: &'static str, audit: Audit) -> Result<Vec<StrayPointer>> {
        let object = self.attached();
        // SAFETY: mapped as long as the heap has the object.
        let found = unsafe { search(object.as_ptr(), object.len(), Some(self.raw()), audit) };
        found.map_err(|cause| object.error(operation, cause))
    }

    #[inline]
    pub(super) fn audited(&self) -> Result<()> {
        let audit = self.raw().options().audit;
        if audit == Audit::Off {
            return Ok(());
        }
        refused(&self.stray("psync", audit)?).map_err(|cause| self.attached().error("psync", cause))
    }
}

const AUDIT: &str = "audit";
