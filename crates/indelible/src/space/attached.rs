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
    pub(super) links: Links,
    entries: Vec<Asked>,
    recent: Recent,
    /// At the last look; a heap may have more by now.
    pub(super) range: Range,
}

#[derive(Clone, Copy)]
struct Asked {
    target: [u8; 16],
    rights: Rights,
    index: u32,
}

const ASKED: usize = 8;

pub(super) enum Content {
    Writing {
        heap: Box<Heap>,
        fixed: Option<String>,
    },
    Reading(ReadHeap),
    /// An object without a heap.
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

    pub(super) fn now(&self) -> Range {
        match &self.content {
            Content::Writing { heap, .. } => range_of(heap),
            Content::Reading(_) | Content::Bare(_) => self.range,
        }
    }

    pub(super) fn refresh(&mut self) {
        self.range = self.now();
    }

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

    pub(super) fn heap_mut(&mut self, operation: &'static str) -> Result<&mut Heap> {
        self.recent.forget();
        self.refresh();
        self.heap_to_store(operation)
    }

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

    pub(super) fn heap_to_psync(&mut self) -> Option<&mut Heap> {
        self.recent.forget();
        match &mut self.content {
            Content::Writing { heap, .. } => Some(heap),
            Content::Reading(_) | Content::Bare(_) => None,
        }
    }

    #[inline]
    pub(super) fn stored(&mut self, offset: u64, len: usize, operation: &'static str) -> Result<Range> {
        let range = self.now();
        if !self.recent.has(offset, len as u64) {
            self.expect_block(offset, len, operation)?;
            self.mark(offset, len, operation)?;
        }
        Ok(range)
    }

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

    pub(super) fn mark(&mut self, offset: u64, len: usize, operation: &'static str) -> Result<()> {
        let start = self.now().base() + offset as usize;
        self.free_heap_mut(operation)?.stored(std::slice::from_ref(&(start..start + len)));
        self.recent.keep(offset, len as u64);
        Ok(())
    }

    pub(super) fn freeing(&mut self) {
        self.recent.forget();
    }

    /// For stores to blocks, allocations and frees: no root comes or goes.
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

pub(super) fn shown(id: &[u8; 16]) -> String {
    FarTarget::Object(*id).to_string()
}

/// Safe code must not overwrite addresses. A position-independent object has no such root.
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

pub(super) fn is_elsewhere(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
