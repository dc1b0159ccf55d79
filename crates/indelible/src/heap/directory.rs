//! The heap's header and the directory of its chunks.

use super::chunk::{ChunkRef, largest};
use super::error::{HeapError, Result, damaged};
use super::layout::{
    CHUNK_PAGES, Entry, FAR, FAR_PRIVATE, Header, INLINE_CHUNKS, Kind, LONG_ROOTS, MAGIC, MAX_PAGES,
    MIN_PAGES, PAGE, Use, VERSION,
};
use super::window::Window;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Clone, Copy)]
pub(super) struct Directory<'a> {
    pub(super) window: &'a Window,
    pub(super) header: &'a Header,
    pub(super) pages: u64,
}

impl<'a> Directory<'a> {
    pub(super) fn open(window: &'a Window) -> Result<Directory<'a>> {
        if window.pages() < MIN_PAGES {
            return Err(HeapError::NotAHeap);
        }
        let header: &Header = window.at(0)?;
        if header.magic.load(Relaxed) != MAGIC {
            return Err(HeapError::NotAHeap);
        }
        let (version, features) = (header.version.load(Relaxed), header.features.load(Relaxed));
        if version != VERSION || features & !(LONG_ROOTS | FAR | FAR_PRIVATE) != 0 {
            return Err(HeapError::Version { version, features, known: VERSION });
        }
        let pages = header.pages.load(Relaxed);
        if !(MIN_PAGES..=MAX_PAGES).contains(&pages) || pages > window.pages() {
            return damaged(16, "the heap has more pages than its object, or too few");
        }
        let directory = Directory { window, header, pages };
        if directory.frontier() > directory.chunks() || directory.frontier() == 0 {
            return damaged(24, "the frontier lies beyond the heap");
        }
        directory.entries()?;
        Ok(directory)
    }

    pub(super) fn format(window: &'a Window) -> Result<Directory<'a>> {
        let pages = window.pages();
        if !(MIN_PAGES..=MAX_PAGES).contains(&pages) {
            return Err(HeapError::Size { pages });
        }
        let mut first = [0; PAGE as usize];
        window.read(0, &mut first)?;
        if first.iter().any(|byte| *byte != 0) {
            return Err(HeapError::NotBlank);
        }
        let header: &Header = window.at(0)?;
        window.mark_dirty(0, PAGE as usize);
        header.version.store(VERSION, Relaxed);
        header.pages.store(pages, Relaxed);
        header.frontier.store(1, Relaxed);
        header.capacity.store(INLINE_CHUNKS as u64, Relaxed);
        let chunk = ChunkRef::create(window, 0, 1, pages.min(CHUNK_PAGES), 0)?;
        chunk.put(0, Entry { kind: Kind::Header, class: 0, pages: 1 });
        header.chunks[0].store(Use::Pages { header: 1, largest: largest(&chunk.used()) }.pack(), Relaxed);
        header.magic.store(MAGIC, Relaxed);
        Directory::open(window)
    }

    pub(super) fn frontier(&self) -> u64 {
        self.header.frontier.load(Relaxed)
    }

    pub(super) fn set_frontier(&self, frontier: u64) {
        self.header.frontier.store(frontier, Relaxed);
        self.window.mark_dirty(0, PAGE as usize);
    }

    pub(super) fn chunks(&self) -> u64 {
        self.pages.div_ceil(CHUNK_PAGES)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.header.capacity.load(Relaxed)
    }

    pub(super) fn len_of(&self, chunk: u64) -> u64 {
        self.pages.saturating_sub(chunk * CHUNK_PAGES).min(CHUNK_PAGES)
    }

    pub(super) fn entries(&self) -> Result<&'a [AtomicU64]> {
        let (page, capacity) = (self.header.directory.load(Relaxed), self.header.capacity.load(Relaxed));
        if page == 0 {
            if capacity != INLINE_CHUNKS as u64 || self.frontier() > capacity {
                return damaged(40, "the directory in the header has another size");
            }
            return Ok(&self.header.chunks);
        }
        if page >= self.pages || capacity > MAX_PAGES || capacity < self.frontier() {
            return damaged(32, "the directory lies beyond the heap, or is too small");
        }
        self.window.slice(page * PAGE, capacity as usize)
    }

    pub(super) fn get(&self, chunk: u64) -> Result<Use> {
        if chunk >= self.frontier() {
            return Ok(Use::Free);
        }
        let bits = self.entries()?[chunk as usize].load(Relaxed);
        match Use::unpack(bits) {
            Some(Use::Large { pages, .. })
                if pages < CHUNK_PAGES || chunk * CHUNK_PAGES + pages > self.pages =>
            {
                damaged(chunk * CHUNK_PAGES * PAGE, "a block reaches beyond the heap")
            }
            Some(what) => Ok(what),
            None => {
                damaged(chunk * CHUNK_PAGES * PAGE, "the directory's entry for this chunk makes no sense")
            }
        }
    }

    pub(super) fn set(&self, chunk: u64, what: Use) -> Result<()> {
        let entries = self.entries()?;
        let Some(entry) = entries.get(chunk as usize) else {
            return damaged(40, "the directory is too small");
        };
        entry.store(what.pack(), Relaxed);
        let page = self.header.directory.load(Relaxed);
        let offset = if page == 0 { 0 } else { page * PAGE + chunk * 8 };
        self.window.mark_dirty(offset, if page == 0 { PAGE as usize } else { 8 });
        Ok(())
    }

    pub(super) fn chunk(&self, number: u64) -> Result<ChunkRef<'a>> {
        match self.get(number)? {
            Use::Pages { header, .. } => ChunkRef::open(self.window, number, header, self.len_of(number)),
            _ => damaged(number * CHUNK_PAGES * PAGE, "this chunk should be divided into pages"),
        }
    }
}
