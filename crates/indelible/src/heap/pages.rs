//! Runs of whole pages: first fit by address among the chunks; free pages are bits, so neighbours
//! merge. Blocks longer than a chunk begin at a chunk and end in one whose rest is divided.
//!
//! Invariants:
//!
//! 1. `used` of a chunk has a bit for every page that an entry, or the chunk before, accounts for.
//! 2. The directory's `largest` of a chunk is the length of its longest run of free pages.
//! 3. A hint is no larger than the number of the first chunk that could serve it.

use super::chunk::{ChunkRef, fit, get, largest};
use super::directory::Directory;
use super::error::{HeapError, Result, damaged};
use super::layout::{CHUNK_PAGES, Entry, Kind, PAGE, Use};

/// Per power of two of pages, the first chunk that may have that many.
#[derive(Default)]
pub(super) struct Hints([u64; 10]);

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) page: u64,
    pub(super) zero: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) page: u64,
    pub(super) entry: Entry,
}

pub(super) struct Pages<'a, 'h> {
    pub(super) directory: Directory<'a>,
    pub(super) hints: &'h mut Hints,
}

impl Pages<'_, '_> {
    pub(super) fn allocate(&mut self, count: u64, align: u64, kind: Kind, class: u8) -> Result<Option<Run>> {
        let entry = Entry { kind, class, pages: count };
        let skew = self.directory.window.base() as u64 / PAGE % align;
        if count < CHUNK_PAGES
            && let Some(run) = self.in_chunk(entry, align, skew)?
        {
            return Ok(Some(run));
        }
        if kind == Kind::Span {
            return Ok(None);
        }
        self.whole_chunks(entry, align, skew)
    }

    fn in_chunk(&mut self, entry: Entry, align: u64, skew: u64) -> Result<Option<Run>> {
        let log = entry.pages.ilog2() as usize;
        let (frontier, mut blank) = (self.directory.frontier(), None);
        let mut at = self.hints.0[log].min(frontier);
        let mut moving = true;
        while at < frontier {
            let what = self.directory.get(at)?;
            match what {
                Use::Pages { largest, .. } if largest >= entry.pages => {
                    let chunk = self.directory.chunk(at)?;
                    if let Some(index) = fit(&chunk.used(), entry.pages, align, skew) {
                        return self.give(chunk, index, entry).map(Some);
                    }
                }
                Use::Free if blank.is_none() => blank = Some(at),
                _ => {}
            }
            moving &= matches!(what, Use::Pages { largest, .. } if largest < 1 << log)
                || matches!(what, Use::Large { .. } | Use::Body);
            at += 1;
            if moving {
                self.hints.0[log] = at;
            }
        }
        let number = blank.unwrap_or(frontier);
        let len = self.directory.len_of(number);
        if number >= self.directory.chunks().min(self.directory.capacity()) || len <= entry.pages {
            return Ok(None);
        }
        // The header goes behind the run if only that leaves it aligned.
        let first = skew.next_multiple_of(align) - skew;
        let header = if align > 1 && first + entry.pages < len { first + entry.pages } else { 0 };
        if header == 0 && (1 + skew).next_multiple_of(align) - skew + entry.pages > len {
            return Ok(None);
        }
        self.divide(number, header)?;
        let chunk = self.directory.chunk(number)?;
        match fit(&chunk.used(), entry.pages, align, skew) {
            Some(index) => self.give(chunk, index, entry).map(Some),
            None => Ok(None),
        }
    }

    fn divide(&mut self, number: u64, header: u64) -> Result<()> {
        let directory = self.directory;
        let virgin = number >= directory.frontier();
        let touched = if virgin { 0 } else { CHUNK_PAGES };
        let chunk = ChunkRef::create(directory.window, number, header, directory.len_of(number), touched)?;
        // Only pages before the header were unused; now they count as touched, not known to be
        // zero.
        if virgin {
            directory.set_frontier(number + 1);
        }
        directory.set(number, Use::Pages { header, largest: largest(&chunk.used()) })
    }

    fn give(&self, chunk: ChunkRef<'_>, index: u64, entry: Entry) -> Result<Run> {
        let run = Run { page: chunk.page(index), zero: chunk.is_virgin(index) };
        chunk.put(index, entry);
        self.measure(&chunk)?;
        Ok(run)
    }

    /// Restores (2).
    fn measure(&self, chunk: &ChunkRef<'_>) -> Result<u64> {
        let longest = largest(&chunk.used());
        match self.directory.get(chunk.number)? {
            Use::Pages { header, largest } if largest != longest => {
                self.directory.set(chunk.number, Use::Pages { header, largest: longest })?;
            }
            _ => {}
        }
        Ok(longest)
    }

    fn whole_chunks(&mut self, entry: Entry, align: u64, skew: u64) -> Result<Option<Run>> {
        let directory = self.directory;
        if entry.pages > directory.pages || (skew != 0 && align > 1) {
            return Ok(None);
        }
        let span = entry.pages.max(CHUNK_PAGES);
        let (mut start, mut at) = (0, 0);
        let first = loop {
            let end = start * CHUNK_PAGES + span;
            if end > directory.pages || end.div_ceil(CHUNK_PAGES) > directory.capacity() {
                return Ok(None);
            }
            if at * CHUNK_PAGES >= end || at >= directory.frontier() {
                break start;
            }
            at += 1;
            if directory.get(at - 1)? != Use::Free {
                start = at;
            }
        };
        let (whole, rest) = (span / CHUNK_PAGES, span % CHUNK_PAGES);
        let (last, frontier) = (first + whole, directory.frontier());
        let end = last + u64::from(rest > 0);
        for number in frontier..end {
            directory.set_frontier(number + 1);
            directory.set(number, Use::Free)?;
        }
        directory.set(first, Use::Large { pages: span, meta: entry.kind == Kind::Meta })?;
        for number in first + 1..last {
            directory.set(number, Use::Body)?;
        }
        if rest > 0 && directory.len_of(last) < rest + 2 {
            directory.set(last, Use::Body)?;
        } else if rest > 0 {
            let touched = if last >= frontier { 0 } else { CHUNK_PAGES };
            let len = directory.len_of(last);
            let chunk = ChunkRef::create(directory.window, last, rest, len, touched)?;
            chunk.put(0, Entry { kind: Kind::Tail, class: 0, pages: rest });
            directory.set(last, Use::Pages { header: rest, largest: largest(&chunk.used()) })?;
        }
        Ok(Some(Run { page: first * CHUNK_PAGES, zero: first >= frontier }))
    }

    pub(super) fn free(&mut self, page: u64, kind: Kind) -> Result<()> {
        let number = page / CHUNK_PAGES;
        if let Use::Large { pages, meta } = self.directory.get(number)? {
            if !page.is_multiple_of(CHUNK_PAGES) || meta != (kind == Kind::Meta) {
                return damaged(page * PAGE, "something else begins at this page");
            }
            return self.free_chunks(number, pages);
        }
        let chunk = self.directory.chunk(number)?;
        let index = page % CHUNK_PAGES;
        match chunk.entry(index)? {
            Some(entry) if entry.kind == kind => self.take(chunk, index, entry.pages),
            _ => damaged(page * PAGE, "something else begins at this page"),
        }
    }

    fn take(&mut self, chunk: ChunkRef<'_>, index: u64, pages: u64) -> Result<()> {
        let number = chunk.number;
        chunk.take(index, pages);
        let longest = self.measure(&chunk)?;
        self.hint(number, longest);
        let Use::Pages { header, .. } = self.directory.get(number)? else { return Ok(()) };
        let used: u32 = chunk.used().iter().map(|word| word.count_ones()).sum();
        if u64::from(used) == CHUNK_PAGES - chunk.len + 1 && get(&chunk.used(), header) && number != 0 {
            self.directory.set(number, Use::Free)?;
            self.hint(number, CHUNK_PAGES - 1);
        }
        Ok(())
    }

    fn hint(&mut self, chunk: u64, pages: u64) {
        for (log, hint) in self.hints.0.iter_mut().enumerate() {
            if 1 << log <= pages {
                *hint = (*hint).min(chunk);
            }
        }
    }

    fn free_chunks(&mut self, first: u64, pages: u64) -> Result<()> {
        let (last, rest) = (first + pages / CHUNK_PAGES, pages % CHUNK_PAGES);
        // The far end first: it alone can be wrong.
        if rest > 0 && self.directory.get(last)? == Use::Body {
            self.directory.set(last, Use::Free)?;
            self.hint(last, CHUNK_PAGES - 1);
        } else if rest > 0 {
            let chunk = self.directory.chunk(last)?;
            match chunk.entry(0)? {
                Some(Entry { kind: Kind::Tail, pages, .. }) if pages == rest => self.take(chunk, 0, rest)?,
                _ => return damaged(chunk.page(0) * PAGE, "here should be the end of a block"),
            }
        }
        for number in first..last {
            self.directory.set(number, Use::Free)?;
        }
        self.hint(first, CHUNK_PAGES - 1);
        Ok(())
    }

    pub(super) fn resize(&mut self, found: Found, pages: u64) -> Result<bool> {
        if pages == found.entry.pages {
            return Ok(true);
        }
        let number = found.page / CHUNK_PAGES;
        if matches!(self.directory.get(number)?, Use::Large { .. }) || pages >= CHUNK_PAGES {
            return Ok(false);
        }
        let (chunk, index) = (self.directory.chunk(number)?, found.page % CHUNK_PAGES);
        let end = index + found.entry.pages;
        let used = chunk.used();
        if index + pages > chunk.len || (end..index + pages).any(|page| get(&used, page)) {
            return Ok(false);
        }
        chunk.resize(index, found.entry, pages);
        let longest = self.measure(&chunk)?;
        self.hint(number, longest);
        Ok(true)
    }

    pub(super) fn largest(&self) -> Result<u64> {
        let directory = &self.directory;
        let (mut best, mut chunks) = (0, 0);
        for number in 0..directory.frontier() {
            match directory.get(number)? {
                Use::Free => chunks += directory.len_of(number),
                Use::Pages { largest, .. } => (best, chunks) = (best.max(whole(chunks)).max(largest), 0),
                _ => (best, chunks) = (best.max(whole(chunks)), 0),
            }
        }
        let rest = directory.pages.saturating_sub(directory.frontier() * CHUNK_PAGES);
        Ok(best.max(whole(chunks + rest)))
    }
}

pub(super) fn whole(pages: u64) -> u64 {
    if pages < CHUNK_PAGES { pages.saturating_sub(1) } else { pages }
}

pub(super) fn find(directory: &Directory<'_>, page: u64) -> Result<Option<Found>> {
    let mut number = page / CHUNK_PAGES;
    match directory.get(number)? {
        Use::Free => return Ok(None),
        Use::Pages { .. } => {
            let chunk = directory.chunk(number)?;
            match chunk.find(page % CHUNK_PAGES)? {
                Some((_, Entry { kind: Kind::Tail, .. })) => {}
                Some((index, entry)) => return Ok(Some(Found { page: chunk.page(index), entry })),
                None => return Ok(None),
            }
        }
        Use::Large { .. } | Use::Body => {}
    }
    loop {
        match directory.get(number)? {
            Use::Large { pages, meta } if number * CHUNK_PAGES + pages > page => {
                let kind = if meta { Kind::Meta } else { Kind::Run };
                let entry = Entry { kind, class: 0, pages };
                return Ok(Some(Found { page: number * CHUNK_PAGES, entry }));
            }
            Use::Body | Use::Pages { .. } if number > 0 => number -= 1,
            Use::Large { .. } => return Ok(None),
            _ => return damaged(page * PAGE, "this page is in the middle of a block without a start"),
        }
    }
}

pub(super) fn full(pages: &Pages<'_, '_>, size: usize) -> HeapError {
    match pages.largest() {
        Ok(largest) => HeapError::Full { needed: size, largest: largest * PAGE },
        Err(error) => error,
    }
}
