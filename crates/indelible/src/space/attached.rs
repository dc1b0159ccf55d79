//! An object of a space: attached for writing with its heap, or for reading.

use super::links::Links;
use super::place::Range;
use super::recent::Recent;
use crate::error::{Cause, Error, ErrorKind, FarError, Result};
use crate::far::{FarEntry, FarTarget, Rights};
use crate::heap::{Heap, ReadHeap, SMALL_MAX};
use crate::object::ReadObject;

pub(super) struct Attached {
    pub(super) id: [u8; 16],
    pub(super) content: Content,
    /// Objects that entries of this one lead to, by their numbers: as far as pointers were
    /// followed.
    pub(super) links: Links,
    /// Entries that were asked for last by the IDs of their objects.
    entries: Vec<Asked>,
    /// Recent stores to it.
    recent: Recent,
    /// Bytes when it was looked at last; a heap may have more by now.
    pub(super) range: Range,
}

/// An object and rights that an entry was asked for, and its number.
#[derive(Clone, Copy)]
struct Asked {
    target: [u8; 16],
    rights: Rights,
    index: u32,
}

/// Entries that are remembered.
const ASKED: usize = 8;

pub(super) enum Content {
    Writing {
        heap: Box<Heap>,
        /// Why safe code must not store to it by far pointers, if there is a reason.
        fixed: Option<String>,
    },
    Reading(ReadHeap),
    /// An object without a heap, and so without entries.
    Bare(ReadObject),
}

impl Content {
    fn error(&self, operation: &'static str, error: FarError) -> Error {
        let cause = Cause::Far(error);
        match self {
            Content::Writing { heap, .. } => heap.attached().error(operation, cause),
            Content::Reading(heap) => heap.object().error(operation, cause),
            Content::Bare(object) => object.error(operation, cause),
        }
    }
}

/// First bytes of a heap.
fn is_heap(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PMO-HEAP")
}

impl Attached {
    pub(super) fn reading(object: ReadObject) -> Result<Attached> {
        let gone = || object.error("follow a far pointer to", Cause::Detached);
        let id = object.id().ok_or_else(gone)?;
        let range = Range::new(object.as_ptr(), object.len());
        let content = match is_heap(object.as_slice()) {
            true => Content::Reading(ReadHeap::open(object)?),
            false => Content::Bare(object),
        };
        Ok(Attached::new(id, content, range))
    }

    fn new(id: [u8; 16], content: Content, range: Range) -> Attached {
        let (links, recent) = (Links::new(), Recent::new());
        Attached { id, content, links, entries: Vec::new(), recent, range }
    }

    pub(super) fn writing(heap: Heap) -> Result<Attached> {
        let (id, range) = (heap.attached().id()?, range_of(&heap));
        let fixed = why_fixed(&heap)?;
        let content = Content::Writing { heap: Box::new(heap), fixed };
        Ok(Attached::new(id, content, range))
    }

    /// All bytes that it has now.
    pub(super) fn now(&self) -> Range {
        match &self.content {
            Content::Writing { heap, .. } => range_of(heap),
            Content::Reading(_) | Content::Bare(_) => self.range,
        }
    }

    /// Looks at its bytes again.
    pub(super) fn refresh(&mut self) {
        self.range = self.now();
    }

    /// An entry. No thread changes entries meanwhile: that takes the space exclusively.
    pub(super) fn entry(&self, index: u32) -> Result<FarEntry> {
        let near = match &self.content {
            Content::Writing { heap, .. } => heap.raw().far_entry_near(index),
            Content::Reading(heap) => heap.raw().far_entry_near(index),
            Content::Bare(_) => None,
        };
        if let Some(entry) = near {
            return Ok(entry);
        }
        match &self.content {
            Content::Writing { heap, .. } => heap.far_entry(index),
            Content::Reading(heap) => heap.far_entry(index),
            Content::Bare(object) => {
                let missing = crate::error::HeapError::FarMissing { index };
                Err(object.error("look up a far pointer of", Cause::Heap(missing)))
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        match &self.content {
            Content::Writing { heap, .. } => heap.attached().name(),
            Content::Reading(heap) => heap.object().name(),
            Content::Bare(object) => object.name(),
        }
    }

    pub(super) fn error(&self, operation: &'static str, error: FarError) -> Error {
        self.content.error(operation, error)
    }

    /// The heap, to be changed in any way.
    pub(super) fn heap_mut(&mut self, operation: &'static str) -> Result<&mut Heap> {
        self.recent.forget();
        self.refresh();
        self.heap_to_store(operation)
    }

    /// Number of the entry for an object, which is added if there is none.
    #[inline]
    pub(super) fn index_of(
        &mut self,
        target: &[u8; 16],
        rights: Rights,
        operation: &'static str,
    ) -> Result<u32> {
        let asked = self.entries.iter().find(|asked| asked.target == *target && asked.rights == rights);
        match asked {
            Some(asked) => Ok(asked.index),
            None => self.find_index(target, rights, operation),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_index(&mut self, target: &[u8; 16], rights: Rights, operation: &'static str) -> Result<u32> {
        let entry = FarEntry { target: FarTarget::Object(*target), rights };
        let index = self.heap_mut(operation)?.far_index(&entry)?;
        self.refresh();
        self.entries.truncate(ASKED - 1);
        self.entries.insert(0, Asked { target: *target, rights, index });
        Ok(index)
    }

    /// Looks everything up again.
    pub(super) fn forget(&mut self) {
        self.links.clear();
        self.entries.clear();
    }

    fn heap_to_store(&mut self, operation: &'static str) -> Result<&mut Heap> {
        match &mut self.content {
            Content::Writing { heap, .. } => Ok(heap),
            content => Err(content.error(operation, FarError::Reading(shown(&self.id)))),
        }
    }

    /// The heap, whose changes are about to be made durable.
    pub(super) fn heap_to_psync(&mut self) -> Option<&mut Heap> {
        self.recent.forget();
        match &mut self.content {
            Content::Writing { heap, .. } => Some(heap),
            Content::Reading(_) | Content::Bare(_) => None,
        }
    }

    /// Bytes that lie in one block, and may be stored to, as nothing else does: they are marked.
    ///
    /// # Errors
    /// They do not lie in a block; safe code must not store to the object by far pointers.
    #[inline]
    pub(super) fn stored(&mut self, offset: u64, len: usize, operation: &'static str) -> Result<Range> {
        let range = self.now();
        if !self.recent.has(offset, len as u64) {
            self.expect_block(offset, len, operation)?;
            self.mark(offset, len, operation)?;
        }
        Ok(range)
    }

    /// Fails unless bytes of the object, which ends behind them, lie in one block.
    pub(super) fn expect_block(&mut self, offset: u64, len: usize, operation: &'static str) -> Result<()> {
        if self.recent.is_in_pages(offset, len as u64) {
            return Ok(());
        }
        let base = self.now().base();
        let block = self.free_heap_mut(operation)?.block_around(base + offset as usize, len)?;
        if block.len() > SMALL_MAX {
            self.recent.keep_pages((block.start - base) as u64..(block.end - base) as u64);
        }
        Ok(())
    }

    /// Marks bytes of a block that are stored to.
    pub(super) fn mark(&mut self, offset: u64, len: usize, operation: &'static str) -> Result<()> {
        let start = self.now().base() + offset as usize;
        self.free_heap_mut(operation)?.stored(std::slice::from_ref(&(start..start + len)));
        self.recent.keep(offset, len as u64);
        Ok(())
    }

    /// A block is about to be freed.
    pub(super) fn freeing(&mut self) {
        self.recent.forget();
    }

    /// The heap, to store to any bytes of blocks, and to make and free blocks: no root comes or
    /// goes.
    pub(super) fn free_heap_mut(&mut self, operation: &'static str) -> Result<&mut Heap> {
        if let Content::Writing { fixed: Some(why), .. } = &self.content {
            return Err(self.error(operation, FarError::Fixed(why.clone())));
        }
        self.heap_to_store(operation)
    }
}

fn range_of(heap: &Heap) -> Range {
    Range::new(heap.attached().as_ptr(), heap.attached().len())
}

/// An ID for people.
pub(super) fn shown(id: &[u8; 16]) -> String {
    FarTarget::Object(*id).to_string()
}

/// Why values of some root may have addresses in them, which safe code must not overwrite. In a
/// position-independent object no such root is made.
fn why_fixed(heap: &Heap) -> Result<Option<String>> {
    if !heap.attached().is_position_independent() {
        return Ok(Some("the object is not position-independent".to_owned()));
    }
    for root in heap.all_roots()? {
        let Some(of) = root.description() else {
            return Ok(Some(format!("root {:?} has no description", root.name)));
        };
        if let Some(part) = of.with_addresses() {
            return Ok(Some(format!("root {:?} has a {part}", root.name)));
        }
    }
    Ok(None)
}

/// Whether a pool does not have the object.
pub(super) fn is_elsewhere(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
