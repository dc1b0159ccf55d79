use super::Words;
use crate::error::Cause;
use crate::heap::class::Geometry;
use crate::heap::error::{HeapError, Result, damaged};
use crate::heap::layout::{
    CHUNK_PAGES, CLASSES, Chunk, Entry, Header, INLINE_CHUNKS, Kind, PAGE, SPAN_MAGIC, SpanHeader, Use,
    allocation,
};
use std::mem::offset_of;

#[derive(Clone, Copy, Debug)]
pub(super) struct WordSpan {
    pub(super) page: u64,
    pub(super) class: usize,
    pub(super) size: u64,
    count: u64,
    data: u64,
    first: u64,
}

fn half(offset: u64) -> (u64, u64) {
    (offset & !7, offset % 8 * 8)
}

pub(super) fn frontier(words: &mut impl Words) -> Result<u64, Cause> {
    words.load(offset_of!(Header, frontier) as u64)
}

pub(super) fn chunk(words: &mut impl Words, number: u64) -> Result<Option<u64>, Cause> {
    if number >= frontier(words)? {
        return Ok(None);
    }
    let entry = match words.load(offset_of!(Header, directory) as u64)? {
        0 if number >= INLINE_CHUNKS as u64 => {
            return damaged(40, "the directory in the header has another size").map_err(Cause::Heap);
        }
        0 => offset_of!(Header, chunks) as u64 + 8 * number,
        page => page.saturating_mul(PAGE).saturating_add(8 * number),
    };
    match Use::unpack(words.load(entry)?) {
        Some(Use::Pages { header, .. }) => Ok(Some(number * CHUNK_PAGES + header)),
        _ => Ok(None),
    }
}

pub(super) fn entry(words: &mut impl Words, header: u64, index: u64) -> Result<Option<Entry>, Cause> {
    let (word, up) = half(header * PAGE + offset_of!(Chunk, entries) as u64 + 4 * index);
    Ok(Entry::unpack((words.load(word)? >> up) as u32))
}

impl WordSpan {
    pub(super) fn around(words: &mut impl Words, page: u64) -> Result<Option<WordSpan>, Cause> {
        let (number, index) = (page / CHUNK_PAGES, page % CHUNK_PAGES);
        let Some(header) = chunk(words, number)? else { return Ok(None) };
        for first in (index.saturating_sub(255)..=index).rev() {
            if let Some(found) = entry(words, header, first)? {
                let is_span = found.kind == Kind::Span && first + found.pages > index;
                return match is_span {
                    true => Self::open(words, number * CHUNK_PAGES + first, found).map(Some),
                    false => Ok(None),
                };
            }
        }
        Ok(None)
    }

    pub(super) fn open(words: &mut impl Words, page: u64, entry: Entry) -> Result<WordSpan, Cause> {
        let (class, offset) = (usize::from(entry.class), page * PAGE);
        let geometry = if class < CLASSES { Geometry::of(class, entry.pages.min(255)) } else { None };
        let wrong = || HeapError::Damaged { offset, what: "the header of a span contradicts its chunk" };
        let Some(geometry) = geometry else { return Err(wrong().into()) };
        let mut field = |at: usize| {
            let (word, up) = half(offset + at as u64);
            Ok::<_, Cause>(words.load(word)? >> up & u64::from(u32::MAX))
        };
        let same = field(offset_of!(SpanHeader, magic))? == u64::from(SPAN_MAGIC)
            && field(offset_of!(SpanHeader, class))? == class as u64
            && field(offset_of!(SpanHeader, page))? == page & u64::from(u32::MAX)
            && field(offset_of!(SpanHeader, pages))? == entry.pages
            && field(offset_of!(SpanHeader, count))? == geometry.count as u64
            && field(offset_of!(SpanHeader, data))? == geometry.data as u64;
        let first = field(offset_of!(SpanHeader, allocation))? as usize;
        let placed = (size_of::<SpanHeader>()..=geometry.data - geometry.count).contains(&first);
        if !same || !placed {
            return Err(wrong().into());
        }
        let Geometry { size, count, data } = geometry;
        let (data, first) = (offset + data as u64, offset + first as u64);
        Ok(WordSpan { page, class, size: size as u64, count: count as u64, data, first })
    }

    pub(super) fn block(&self, number: u64) -> u64 {
        self.data + number * self.size
    }

    pub(super) fn number(&self, offset: u64) -> Option<(u64, bool)> {
        let delta = offset.checked_sub(self.data)?;
        (delta / self.size < self.count).then_some((delta / self.size, delta % self.size == 0))
    }

    pub(super) fn allocation(&self, number: u64) -> u64 {
        self.first + number
    }

    pub(super) fn is_live(&self, words: &mut impl Words, number: u64) -> Result<bool, Cause> {
        let (word, up) = half(self.allocation(number));
        Ok((words.load(word)? >> up) as u8 == allocation::USED)
    }

    pub(super) fn free_block(&self, words: &mut impl Words, from: u64) -> Result<Option<u64>, Cause> {
        let from = if from < self.count { from } else { 0 };
        for number in (from..self.count).chain(0..from) {
            let (word, up) = half(self.allocation(number));
            if (words.peek(word) >> up) as u8 != allocation::USED && !self.is_live(words, number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    pub(super) fn is_empty(&self, words: &mut impl Words) -> Result<bool, Cause> {
        for number in 0..self.count {
            if self.is_live(words, number)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
