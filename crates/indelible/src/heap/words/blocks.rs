use super::hints::Spot;
use super::span::{self, WordSpan};
use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::class::{SMALL_MAX, aligned_class, fewest_pages, size_of_class, span_pages};
use crate::heap::directory::Directory;
use crate::heap::error::{HeapError, Result};
use crate::heap::layout::{CHUNK_PAGES, Entry, Kind, PAGE, allocation};
use crate::heap::pages::{Found, Hints, Pages, find, full};
use crate::heap::span::Span;
use crate::heap::window::Window;
use indelible_store::Mutant;

const LOOK: usize = 2;

fn is_full<R>(done: &Result<R, Cause>) -> bool {
    matches!(done, Err(Cause::Heap(HeapError::Full { .. })))
}

enum Block {
    Small(WordSpan, u64),
    Large(Found),
}

impl WordHeap {
    pub(crate) fn allocate(&self, words: &mut impl Words, size: usize, align: usize) -> Result<u64, Cause> {
        match aligned_class(size.max(1), align) {
            Some(class) if size <= SMALL_MAX => self.small(words, class),
            _ => self.with_room(words, |heap, words| heap.large(words, size)),
        }
    }

    pub(super) fn with_room<R, W: Words>(
        &self,
        words: &mut W,
        what: impl Fn(&Self, &mut W) -> Result<R, Cause>,
    ) -> Result<R, Cause> {
        let mut done = what(self, words);
        if is_full(&done) && self.extend(words)? {
            done = what(self, words);
        }
        if is_full(&done) && self.reclaim(words)? { what(self, words) } else { done }
    }

    fn large(&self, words: &mut impl Words, size: usize) -> Result<u64, Cause> {
        let count = size.div_ceil(PAGE as usize) as u64;
        self.prepare(words, |window| {
            let mut pages = Pages { directory: Directory::open(&window)?, hints: &mut Hints::default() };
            match pages.allocate(count, 1, Kind::Run, 0)? {
                Some(run) => Ok(run.page * PAGE),
                None => Err(full(&pages, size)),
            }
        })
    }

    fn small(&self, words: &mut impl Words, class: usize) -> Result<u64, Cause> {
        if let Some(spot) = self.hints.spot(class)
            && let Some(block) = self.take(words, class, spot)?
        {
            return Ok(block);
        }
        self.hints.set_spot(class, None);
        for _ in 0..=LOOK {
            while let Some(page) = self.hints.take(class) {
                if let Some(block) = self.take(words, class, Spot { page, block: 0 })? {
                    return Ok(block);
                }
            }
            if !self.look(words)? {
                break;
            }
        }
        let mut made = self.new_span(words, class);
        if is_full(&made) && self.extend(words)? {
            made = self.new_span(words, class);
        }
        match made {
            Err(Cause::Heap(full @ HeapError::Full { .. })) => {
                if let Some(block) = self.last_block(words, class)? {
                    return Ok(block);
                }
                if !self.reclaim(words)? {
                    return Err(full.into());
                }
                self.new_span(words, class)
            }
            done => done,
        }
    }

    fn take(&self, words: &mut impl Words, class: usize, spot: Spot) -> Result<Option<u64>, Cause> {
        let Some(span) = WordSpan::around(words, spot.page)? else { return Ok(None) };
        if (span.page, span.class) != (spot.page, class) {
            return Ok(None);
        }
        let Some(number) = span.free_block(words, spot.block)? else { return Ok(None) };
        words.store_byte(span.allocation(number), allocation::USED)?;
        self.hints.set_spot(class, Some(Spot { page: span.page, block: number + 1 }));
        Ok(Some(span.block(number)))
    }

    fn look(&self, words: &mut impl Words) -> Result<bool, Cause> {
        let mut seen = Peek(words);
        let chunks = span::frontier(&mut seen)?.min((self.len() as u64 / PAGE).div_ceil(CHUNK_PAGES));
        let Some(number) = self.hints.unseen(chunks) else { return Ok(false) };
        for (page, entry) in spans(&mut seen, number)? {
            // A concurrent change looks like damage; the transaction meets real damage.
            let Ok(span) = WordSpan::open(&mut seen, page, entry) else { continue };
            if span.free_block(&mut seen, 0)?.is_some() {
                self.hints.offer(span.class, page);
            }
        }
        Ok(true)
    }

    fn new_span(&self, words: &mut impl Words, class: usize) -> Result<u64, Cause> {
        let made = self.hints.count_made(class);
        let lengths = [span_pages(class, made), span_pages(class, 0), fewest_pages(class)];
        let page = self.prepare(words, |window| {
            let mut pages = Pages { directory: Directory::open(&window)?, hints: &mut Hints::default() };
            for count in lengths {
                if let Some(run) = pages.allocate(count, 1, Kind::Span, class as u8)? {
                    Span::format(&window, run.page, count, class)?;
                    return Ok(run.page);
                }
            }
            Err(full(&pages, size_of_class(class)))
        })?;
        let block = self.take(words, class, Spot { page, block: 0 })?;
        let lost = HeapError::Damaged { offset: page * PAGE, what: "a new span has no free block" };
        Ok(block.ok_or(lost)?)
    }

    fn last_block(&self, words: &mut impl Words, class: usize) -> Result<Option<u64>, Cause> {
        for number in 0..span::frontier(words)? {
            for (page, entry) in spans(words, number)? {
                if usize::from(entry.class) == class
                    && let Some(block) = self.take(words, class, Spot { page, block: 0 })?
                {
                    return Ok(Some(block));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn reclaim(&self, words: &mut impl Words) -> Result<bool, Cause> {
        let mut empty = Vec::new();
        for number in 0..span::frontier(words)? {
            for (page, entry) in spans(words, number)? {
                if WordSpan::open(words, page, entry)?.is_empty(words)? {
                    empty.push(page);
                }
            }
        }
        for page in &empty {
            words.store(page * PAGE, 0)?;
            self.free_pages(words, *page, Kind::Span)?;
        }
        Ok(!empty.is_empty())
    }

    fn free_pages(&self, words: &mut impl Words, page: u64, kind: Kind) -> Result<(), Cause> {
        self.prepare(words, |window| {
            Pages { directory: Directory::open(&window)?, hints: &mut Hints::default() }.free(page, kind)
        })
    }

    pub(crate) fn free(&self, words: &mut impl Words, address: u64) -> Result<(), Cause> {
        let block = self.block(words, address)?;
        let (start, size) = match &block {
            Block::Small(span, number) => (span.block(*number), span.size),
            Block::Large(found) => (found.page * PAGE, found.entry.pages * PAGE),
        };
        self.expect_no_root(words, start..start + size)?;
        match block {
            Block::Small(span, number) => {
                words.store_byte(span.allocation(number), allocation::FREE)?;
                self.hints.offer(span.class, span.page);
                Ok(())
            }
            Block::Large(found) => self.free_pages(words, found.page, Kind::Run),
        }
    }

    pub(crate) fn size_of(&self, words: &mut impl Words, address: u64) -> Result<u64, Cause> {
        Ok(match self.block(words, address)? {
            Block::Small(span, _) => span.size,
            Block::Large(found) => found.entry.pages * PAGE,
        })
    }

    fn block(&self, words: &mut impl Words, address: u64) -> Result<Block, Cause> {
        let offset = self.offset_of(address);
        let address = address as usize;
        let Some(offset) = offset else { return Err(HeapError::Foreign { address }.into()) };
        let at = |offset: u64| self.address_of(offset) as usize;
        let Some(span) = WordSpan::around(words, offset / PAGE)? else {
            let found =
                self.prepare(words, |window: Window| find(&Directory::open(&window)?, offset / PAGE))?;
            return match found {
                Some(found) if found.entry.kind == Kind::Run && found.page * PAGE == offset => {
                    Ok(Block::Large(found))
                }
                Some(found) if found.entry.kind == Kind::Run => {
                    Err(HeapError::Interior { address, block: at(found.page * PAGE) }.into())
                }
                _ => Err(HeapError::Foreign { address }.into()),
            };
        };
        match span.number(offset) {
            None => Err(HeapError::Foreign { address }.into()),
            Some((number, false)) => {
                Err(HeapError::Interior { address, block: at(span.block(number)) }.into())
            }
            Some((number, true)) if Mutant::FreedTwice.is_on() || span.is_live(words, number)? => {
                Ok(Block::Small(span, number))
            }
            Some(_) => Err(HeapError::DoubleFree { address }.into()),
        }
    }
}

fn spans(words: &mut impl Words, number: u64) -> Result<Vec<(u64, Entry)>, Cause> {
    let mut found = Vec::new();
    if let Some(header) = span::chunk(words, number)? {
        for index in 0..CHUNK_PAGES {
            match span::entry(words, header, index)? {
                Some(entry) if entry.kind == Kind::Span => found.push((number * CHUNK_PAGES + index, entry)),
                _ => {}
            }
        }
    }
    Ok(found)
}

struct Peek<'w, W>(&'w W);

impl<W: Words> Words for Peek<'_, W> {
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        Ok(self.0.peek(offset))
    }

    fn store(&mut self, _: u64, _: u64) -> Result<(), Cause> {
        Ok(())
    }

    fn store_byte(&mut self, _: u64, _: u8) -> Result<(), Cause> {
        Ok(())
    }

    fn peek(&self, offset: u64) -> u64 {
        self.0.peek(offset)
    }
}
