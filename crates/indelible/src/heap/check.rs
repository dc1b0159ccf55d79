//! Checks a heap from the object's bytes alone.

use super::allocation_bytes::AllocationBytes;
use super::chunk::{get, largest};
use super::directory::Directory;
use super::error::{HeapError, Result};
use super::layout::{CHUNK_PAGES, Entry, Kind, PAGE, Use, allocation};
use super::others;
use super::root_record::{pages_of, read};
use super::roots;
use super::window::Window;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// A fault in a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapFinding {
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// The fault.
    pub what: String,
}

pub(super) fn check(window: &Window) -> Vec<HeapFinding> {
    let mut check = Check { findings: Vec::new(), meta: BTreeMap::new() };
    if let Err(error) = check.all(window) {
        check.error(0, error);
    }
    check.findings
}

struct Check {
    findings: Vec<HeapFinding>,
    meta: BTreeMap<u64, u64>,
}

impl Check {
    fn say(&mut self, offset: u64, what: impl Into<String>) {
        self.findings.push(HeapFinding { offset, what: what.into() });
    }

    fn error(&mut self, offset: u64, error: HeapError) {
        match error {
            HeapError::Damaged { offset, what } => self.say(offset, what),
            other => self.say(offset, other.to_string()),
        }
    }

    fn all(&mut self, window: &Window) -> Result<()> {
        let directory = Directory::open(window)?;
        if !matches!(directory.get(0)?, Use::Pages { .. }) {
            self.say(0, "the first chunk, which has the heap's header, is given away");
        }
        let mut body = 0;
        for number in 0..directory.frontier() {
            if let Err(error) = self.chunk(&directory, number, &mut body) {
                self.error(number * CHUNK_PAGES * PAGE, error);
            }
        }
        if body > 0 {
            self.say(directory.frontier() * CHUNK_PAGES * PAGE, "a block ends beyond the frontier");
        }
        self.own(&directory);
        if let Err(error) = self.roots(&directory) {
            self.error(0, error);
        }
        self.far(&directory);
        let lost: Vec<_> = std::mem::take(&mut self.meta).into_keys().collect();
        for page in lost {
            self.say(page.saturating_mul(PAGE), "lost: a page of the heap itself that nothing refers to");
        }
        Ok(())
    }

    fn chunk(&mut self, directory: &Directory<'_>, number: u64, body: &mut u64) -> Result<()> {
        let start = number * CHUNK_PAGES * PAGE;
        let expected = *body;
        *body = body.saturating_sub(CHUNK_PAGES);
        match directory.get(number)? {
            Use::Large { pages, meta } => {
                if expected > 0 {
                    self.say(start, "two blocks overlap");
                }
                if meta {
                    self.meta.insert(number * CHUNK_PAGES, pages);
                }
                *body = pages.saturating_sub(CHUNK_PAGES);
            }
            Use::Body if expected == 0 => self.say(start, "lost: a chunk of a block that is not there"),
            Use::Body => {}
            Use::Free if expected > 0 => self.say(start, "a free chunk in the middle of a block"),
            Use::Free => {}
            Use::Pages { header, largest: longest } => {
                self.pages(directory, number, (header, longest), expected)?;
            }
        }
        Ok(())
    }

    fn pages(
        &mut self,
        directory: &Directory<'_>,
        number: u64,
        (header, longest): (u64, u64),
        expected: u64,
    ) -> Result<()> {
        let chunk = directory.chunk(number)?;
        let used = chunk.used();
        let (mut index, mut has_header, mut tail) = (0, false, 0);
        while index < chunk.len {
            let offset = chunk.page(index) * PAGE;
            let Some(entry) = chunk.entry(index)? else {
                if get(&used, index) {
                    self.say(offset, "lost: a page that is neither free nor part of anything");
                }
                index += 1;
                continue;
            };
            for page in index..index + entry.pages {
                if !get(&used, page) {
                    self.say(chunk.page(page) * PAGE, "a page that is used is called free");
                }
                if page > index && chunk.entry(page)?.is_some() {
                    self.say(chunk.page(page) * PAGE, "two blocks overlap");
                }
            }
            match entry.kind {
                Kind::Header => has_header |= index <= header && header < index + entry.pages,
                Kind::Meta => {
                    self.meta.insert(chunk.page(index), entry.pages);
                }
                Kind::Tail if index == 0 => tail = entry.pages,
                Kind::Tail => self.say(offset, "the end of a block in the middle of a chunk"),
                Kind::Run => {}
                Kind::Span => self.span(directory.window, chunk.page(index), entry)?,
            }
            index += entry.pages;
        }
        let start = number * CHUNK_PAGES * PAGE;
        if number == 0 && chunk.entry(0)?.is_none_or(|entry| entry.kind != Kind::Header) {
            self.say(0, "the page of the heap's header is not called one");
        }
        if !has_header {
            self.say(start, "the page of the chunk's header is not called one");
        }
        if (chunk.len..CHUNK_PAGES).any(|page| !get(&used, page)) {
            self.say(start, "pages beyond the end of the heap are called free");
        }
        if largest(&used) != longest {
            self.say(start, "the directory has another length of the longest free run");
        }
        if tail != expected.min(CHUNK_PAGES) {
            self.say(start, "a block of whole chunks ends elsewhere than its first chunk says");
        }
        Ok(())
    }

    fn span(&mut self, window: &Window, page: u64, entry: Entry) -> Result<()> {
        match AllocationBytes::open(window, page, entry.pages, usize::from(entry.class)) {
            Ok(span) => {
                for (block, byte) in span.bytes.iter().enumerate() {
                    if byte.load(Relaxed) > allocation::FREED {
                        self.say(span.first + block as u64, "an allocation byte of no meaning");
                    }
                }
            }
            Err(error) => self.error(page.saturating_mul(PAGE), error),
        }
        Ok(())
    }

    fn own(&mut self, directory: &Directory<'_>) {
        let page = directory.header.directory.load(Relaxed);
        let pages = (directory.header.capacity.load(Relaxed) * 8).div_ceil(PAGE);
        if page != 0 && self.meta.remove(&page) != Some(pages) {
            self.say(32, "the directory's pages are not its own");
        }
        if directory.header.capacity.load(Relaxed) < directory.chunks() {
            self.say(40, "the directory is too small for the heap");
        }
        for (class, page) in directory.header.recent.iter().enumerate() {
            if u64::from(page.load(Relaxed)) >= directory.pages {
                self.say(64 + class as u64 * 4, "the span used last lies beyond the heap");
            }
        }
        if directory.header.cursor.load(Relaxed) >= directory.frontier() {
            self.say(48, "the search for spans stands beyond the frontier");
        }
        if directory.header.reserved.iter().any(|word| word.load(Relaxed) != 0) {
            self.say(360, "reserved bytes are not zero");
        }
    }

    fn far(&mut self, directory: &Directory<'_>) {
        let (pages, findings) = others::check(directory);
        for page in pages {
            if self.meta.remove(&page) != Some(1) {
                self.say(page.saturating_mul(PAGE), "a page of the table of other objects is not its own");
            }
        }
        findings.into_iter().for_each(|(offset, what)| self.say(offset, what));
    }

    fn roots(&mut self, directory: &Directory<'_>) -> Result<()> {
        let mut page = directory.header.roots.load(Relaxed);
        let slots = roots::slots(directory)?;
        while page != 0 {
            if self.meta.remove(&page).is_none() {
                self.say(page.saturating_mul(PAGE), "a page of root slots is not the heap's own");
            }
            let index: &super::layout::RootIndex = directory.window.at(page * PAGE)?;
            page = index.next.load(Relaxed);
        }
        let mut names = BTreeSet::new();
        for (offset, slot) in slots {
            let page = slot.page.load(Relaxed);
            if page == 0 {
                if slot.hash.load(Relaxed) != 0 {
                    self.say(offset, "a free root slot is not zero");
                }
                continue;
            }
            let own = self.meta.remove(&page);
            if own.is_none() {
                self.say(offset, "the page of a root is not the heap's own");
            }
            match read(directory.window, page) {
                Ok(root) => {
                    if own.is_some_and(|pages| pages != pages_of(&root)) {
                        self.say(offset, "a root has another number of pages");
                    }
                    if roots::hash(&root.name) != slot.hash.load(Relaxed) {
                        self.say(offset, "the hash of a root's name is another");
                    }
                    if !names.insert(root.name) {
                        self.say(offset, "two roots have the same name");
                    }
                }
                Err(error) => self.error(page.saturating_mul(PAGE), error),
            }
        }
        Ok(())
    }
}
