//! A chunk's header: its free pages, and the runs that begin in it.
//!
//! Invariants, of every [`ChunkRef`]:
//!
//! 1. It was found through the directory, with the right magic and number.
//! 2. `len` pages of the chunk lie in the heap. Bits of `used` beyond are set.
//! 3. Changes are made under the heap's lock.

use super::error::{Result, damaged};
use super::layout::{CHUNK_MAGIC, CHUNK_PAGES, Chunk, Entry, Kind, PAGE};
use super::window::Window;
use std::sync::atomic::Ordering::Relaxed;

pub(super) type Bits = [u64; 8];

#[derive(Clone, Copy)]
pub(super) struct ChunkRef<'a> {
    window: &'a Window,
    pub(super) header: &'a Chunk,
    offset: u64,
    pub(super) number: u64,
    pub(super) len: u64,
}

impl<'a> ChunkRef<'a> {
    pub(super) fn open(window: &'a Window, number: u64, page: u64, len: u64) -> Result<ChunkRef<'a>> {
        let chunk = ChunkRef::unverified(window, number, page, len)?;
        if chunk.header.magic.load(Relaxed) != CHUNK_MAGIC || chunk.header.number.load(Relaxed) != number {
            return damaged(chunk.offset, "here should be the header of a chunk");
        }
        Ok(chunk)
    }

    fn unverified(window: &'a Window, number: u64, page: u64, len: u64) -> Result<ChunkRef<'a>> {
        let offset = (number * CHUNK_PAGES + page) * PAGE;
        if page >= len {
            return damaged(offset, "a chunk's header lies beyond the heap");
        }
        Ok(ChunkRef { window, header: window.at(offset)?, offset, number, len })
    }

    pub(super) fn create(
        window: &'a Window,
        number: u64,
        page: u64,
        len: u64,
        touched: u64,
    ) -> Result<ChunkRef<'a>> {
        let chunk = ChunkRef::unverified(window, number, page, len)?;
        window.fill(chunk.offset, size_of::<Chunk>(), 0)?;
        chunk.header.magic.store(CHUNK_MAGIC, Relaxed);
        chunk.header.touched.store(touched as u32, Relaxed);
        chunk.header.number.store(number, Relaxed);
        if len < CHUNK_PAGES {
            chunk.mark(len, CHUNK_PAGES - len, true);
        }
        chunk.put(page, Entry { kind: Kind::Header, class: 0, pages: 1 });
        Ok(chunk)
    }

    fn noted(&self) {
        self.window.mark_dirty(self.offset, size_of::<Chunk>());
    }

    pub(super) fn page(&self, index: u64) -> u64 {
        self.number * CHUNK_PAGES + index
    }

    pub(super) fn used(&self) -> Bits {
        std::array::from_fn(|word| self.header.used[word].load(Relaxed))
    }

    pub(super) fn entry(&self, index: u64) -> Result<Option<Entry>> {
        let bits = self.header.entries[index as usize].load(Relaxed);
        if bits == 0 {
            return Ok(None);
        }
        match Entry::unpack(bits) {
            Some(entry) if entry.pages > 0 && index + entry.pages <= self.len => Ok(Some(entry)),
            _ => damaged(self.offset + 128 + index * 4, "this entry of a chunk makes no sense"),
        }
    }

    pub(super) fn find(&self, index: u64) -> Result<Option<(u64, Entry)>> {
        if !get(&self.used(), index) {
            return Ok(None);
        }
        for first in (0..=index).rev() {
            if let Some(entry) = self.entry(first)? {
                return if first + entry.pages > index {
                    Ok(Some((first, entry)))
                } else {
                    damaged(self.page(index) * PAGE, "this page is neither free nor used")
                };
            }
        }
        damaged(self.page(index) * PAGE, "this page is neither free nor used")
    }

    pub(super) fn put(&self, index: u64, entry: Entry) {
        self.mark(index, entry.pages, true);
        self.header.entries[index as usize].store(entry.pack(), Relaxed);
        let end = (index + entry.pages) as u32;
        if self.header.touched.load(Relaxed) < end {
            self.header.touched.store(end, Relaxed);
        }
        self.noted();
    }

    pub(super) fn take(&self, index: u64, pages: u64) {
        self.header.entries[index as usize].store(0, Relaxed);
        self.mark(index, pages, false);
        self.noted();
    }

    pub(super) fn resize(&self, index: u64, entry: Entry, pages: u64) {
        if pages < entry.pages {
            self.mark(index + pages, entry.pages - pages, false);
        }
        self.put(index, Entry { pages, ..entry });
    }

    pub(super) fn is_virgin(&self, index: u64) -> bool {
        u64::from(self.header.touched.load(Relaxed)) <= index
    }

    pub(super) fn mark(&self, index: u64, count: u64, used: bool) {
        for (word, bits) in self.header.used.iter().enumerate() {
            let mask = mask(word as u64, index, count);
            if mask != 0 {
                let old = bits.load(Relaxed);
                bits.store(if used { old | mask } else { old & !mask }, Relaxed);
            }
        }
        self.noted();
    }
}

fn mask(word: u64, index: u64, count: u64) -> u64 {
    let (from, to) = (index.max(word * 64), (index + count).min(word * 64 + 64));
    if from >= to {
        return 0;
    }
    let len = to - from;
    (u64::MAX >> (64 - len)) << (from - word * 64)
}

pub(super) fn get(bits: &Bits, index: u64) -> bool {
    bits[(index / 64) as usize] >> (index % 64) & 1 == 1
}

fn next(bits: &Bits, from: u64, used: bool) -> u64 {
    let mut at = from;
    while at < CHUNK_PAGES {
        let word = bits[(at / 64) as usize];
        let word = (if used { word } else { !word }) >> (at % 64);
        if word != 0 {
            return at + u64::from(word.trailing_zeros());
        }
        at = (at / 64 + 1) * 64;
    }
    CHUNK_PAGES
}

pub(super) fn free_runs(bits: &Bits) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = next(bits, at, false);
        if start == CHUNK_PAGES {
            return None;
        }
        at = next(bits, start, true);
        Some((start, at - start))
    })
}

pub(super) fn largest(bits: &Bits) -> u64 {
    free_runs(bits).map(|(_, len)| len).max().unwrap_or(0)
}

/// `skew`: pages short of a multiple of `align`.
pub(super) fn fit(bits: &Bits, count: u64, align: u64, skew: u64) -> Option<u64> {
    free_runs(bits).find_map(|(start, len)| {
        let first = (start + skew).next_multiple_of(align) - skew;
        (first + count <= start + len).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_across_words() {
        let mut bits = [u64::MAX; 8];
        for page in (3..10).chain(60..200).chain(511..512) {
            bits[page / 64] &= !(1 << (page % 64));
        }
        assert_eq!(free_runs(&bits).collect::<Vec<_>>(), [(3, 7), (60, 140), (511, 1)]);
        assert_eq!(largest(&bits), 140);
        assert_eq!(fit(&bits, 7, 1, 0), Some(3));
        assert_eq!(fit(&bits, 8, 1, 0), Some(60));
        assert_eq!(fit(&bits, 8, 64, 0), Some(64));
        assert_eq!(fit(&bits, 8, 64, 3), Some(61));
        assert_eq!(fit(&bits, 141, 1, 0), None);
        assert_eq!((0..8).map(|word| mask(word, 3, 130).count_ones()).sum::<u32>(), 130);
        assert_eq!(mask(0, 0, 64), u64::MAX);
    }
}
