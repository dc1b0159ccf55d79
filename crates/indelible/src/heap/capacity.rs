//! Growth of the directory, which lies in the heap's own pages.

use super::chunk::{ChunkRef, get, largest};
use super::directory::Directory;
use super::error::{HeapError, Result, damaged};
use super::layout::{CHUNK_PAGES, Entry, Kind, MAX_PAGES, MIN_PAGES, PAGE, Use};
use super::pages::{Hints, Pages, find};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

impl Directory<'_> {
    pub(super) fn reserve(&self) -> Result<()> {
        let capacity = self.header.capacity.load(Relaxed);
        if self.chunks() <= capacity {
            return Ok(());
        }
        let pages = (self.chunks().max(2 * capacity) * 8).div_ceil(PAGE);
        let mut hints = Hints::default();
        let found = Pages { directory: *self, hints: &mut hints }.allocate(pages, 1, Kind::Meta, 0)?;
        let Some(run) = found else { return self.reserve_behind(pages) };
        if !run.zero {
            self.window.fill(run.page * PAGE, (pages * PAGE) as usize, 0)?;
        }
        let new: &[AtomicU64] = self.window.slice(run.page * PAGE, (pages * PAGE / 8) as usize)?;
        self.window.mark_dirty(run.page * PAGE, (self.frontier() * 8) as usize);
        for (new, old) in new.iter().zip(&self.entries()?[..self.frontier() as usize]) {
            new.store(old.load(Relaxed), Relaxed);
        }
        let old = self.header.directory.load(Relaxed);
        self.header.directory.store(run.page, Relaxed);
        self.header.capacity.store(pages * PAGE / 8, Relaxed);
        self.window.mark_dirty(0, PAGE as usize);
        if old != 0 {
            Pages { directory: *self, hints: &mut hints }.free(old, Kind::Meta)?;
        }
        Ok(())
    }

    fn reserve_behind(&self, pages: u64) -> Result<()> {
        let number = self.frontier();
        if number < self.header.capacity.load(Relaxed) || self.len_of(number) <= pages {
            return Err(HeapError::Full { needed: (pages * PAGE) as usize, largest: 0 });
        }
        let chunk = ChunkRef::create(self.window, number, 0, self.len_of(number), 0)?;
        let page = chunk.page(1);
        chunk.put(1, Entry { kind: Kind::Meta, class: 0, pages });
        let new: &[AtomicU64] = self.window.slice(page * PAGE, (pages * PAGE / 8) as usize)?;
        self.window.mark_dirty(page * PAGE, ((number + 1) * 8) as usize);
        for (new, old) in new.iter().zip(&self.entries()?[..number as usize]) {
            new.store(old.load(Relaxed), Relaxed);
        }
        new[number as usize].store(Use::Pages { header: 0, largest: largest(&chunk.used()) }.pack(), Relaxed);
        let old = self.header.directory.load(Relaxed);
        self.header.directory.store(page, Relaxed);
        self.header.capacity.store(pages * PAGE / 8, Relaxed);
        self.set_frontier(number + 1);
        if old != 0 {
            Pages { directory: *self, hints: &mut Hints::default() }.free(old, Kind::Meta)?;
        }
        Ok(())
    }

    pub(super) fn extend(&self) -> Result<()> {
        let (old, new) = (self.pages, self.window.pages().min(MAX_PAGES));
        if new <= old {
            return Ok(());
        }
        let last = (old - 1) / CHUNK_PAGES;
        let longer = Directory { pages: new, ..*self };
        if let Use::Pages { header, .. } = self.get(last)? {
            let chunk = self.chunk(last)?;
            let (from, to) = (self.len_of(last), longer.len_of(last));
            if to > from {
                chunk.mark(from, to - from, false);
                self.set(last, Use::Pages { header, largest: largest(&chunk.used()) })?;
            }
        }
        self.header.pages.store(new, Relaxed);
        self.window.mark_dirty(0, PAGE as usize);
        longer.reserve()
    }

    pub(super) fn end(&self) -> Result<u64> {
        for number in (0..self.frontier()).rev() {
            let first = number * CHUNK_PAGES;
            match self.get(number)? {
                Use::Free => {}
                Use::Pages { .. } => {
                    let chunk = self.chunk(number)?;
                    let used = chunk.used();
                    if let Some(last) = (0..chunk.len).rev().find(|page| get(&used, *page)) {
                        return Ok(first + last + 1);
                    }
                }
                Use::Large { pages, .. } => return Ok(first + pages),
                Use::Body => {
                    let block = find(self, first)?;
                    return Ok(
                        block.map_or(first + self.len_of(number), |found| found.page + found.entry.pages)
                    );
                }
            }
        }
        damaged(0, "the first chunk, which has the heap's header, is given away")
    }

    pub(super) fn shorten(&self, pages: u64) -> Result<()> {
        let end = self.end()?.max(MIN_PAGES);
        if pages < end {
            return Err(HeapError::Needs { what: "heap", least: end * PAGE });
        }
        if pages >= self.pages {
            return Ok(());
        }
        let shorter = Directory { pages, ..*self };
        let chunks = shorter.chunks();
        for number in chunks..self.frontier() {
            self.set(number, Use::Free)?;
        }
        let last = chunks - 1;
        if let Use::Pages { header, .. } = self.get(last)? {
            let chunk = self.chunk(last)?;
            let len = shorter.len_of(last);
            if len < chunk.len {
                chunk.mark(len, chunk.len - len, true);
                self.set(last, Use::Pages { header, largest: largest(&chunk.used()) })?;
            }
        }
        self.header.pages.store(pages, Relaxed);
        if self.frontier() > chunks {
            self.header.frontier.store(chunks, Relaxed);
        }
        if self.header.cursor.load(Relaxed) >= shorter.frontier() {
            self.header.cursor.store(0, Relaxed);
        }
        for recent in &self.header.recent {
            if u64::from(recent.load(Relaxed)) >= pages {
                recent.store(0, Relaxed);
            }
        }
        self.window.mark_dirty(0, PAGE as usize);
        Ok(())
    }
}
