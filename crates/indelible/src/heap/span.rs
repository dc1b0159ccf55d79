//! What this process knows of a span: where its blocks and bitmaps are, and which thread allocates from
//! it. The bitmaps in the object are all there is to know which blocks are in use: a block is the user's
//! if its bit is set in `allocated` and not in `freed`.
//!
//! Invariants of [`Span`], as long as it is live:
//! 1. `allocated` and `freed` point at `words` words each, in a window that is mapped; its header was
//!    verified when it was adopted, bits of no block are set in `allocated`.
//! 2. Only the owner, or with the heap's lock whoever finds no owner, changes `allocated`, `summary`,
//!    `place`, `unheeded` and the links `next` and `prev`.
//! 3. A bit of `summary` is set if its word in `allocated` is not full.
//! 4. While an owner has a span that is not current, `unheeded` is at least 1, and no more than the blocks
//!    that it has to free before the span is empty, or gets its first free block.
//! 5. Merging clears a bit in `allocated` before the one in `freed`: the block is free throughout.

#![allow(unsafe_code)]

use super::cache::Cache;
use super::class::{Geometry, stride};
use super::error::{Result, damaged};
use super::layout::{CLASSES, PAGE, SPAN_MAGIC, SpanHeader};
use super::leaked::{Slot, Spare};
use super::window::Window;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

/// Where the owner has a span.
pub(super) mod place {
    /// It allocates from it.
    pub(crate) const CURRENT: u8 = 0;
    /// In its list of spans with free blocks.
    pub(crate) const PARTIAL: u8 = 1;
    /// Nowhere: no block is free.
    pub(crate) const FULL: u8 = 2;
}

/// What freeing a block looks at comes first, and fills a line.
#[repr(C, align(64))]
pub(super) struct Span {
    data: AtomicUsize,
    /// 2^64 divided by the size of a block, rounded up.
    reciprocal: AtomicU64,
    allocated: AtomicPtr<AtomicU64>,
    freed: AtomicPtr<AtomicU64>,
    pub(super) owner: Slot<Cache>,
    pub(super) summary: AtomicU64,
    count: AtomicU32,
    /// Blocks that its owner frees before it looks at the span again.
    unheeded: AtomicU32,
    size: AtomicU32,
    pub(super) place: AtomicU8,
    class: AtomicU8,
    words: AtomicU32,
    /// In its owner's list of spans that others freed blocks of.
    pub(super) queued: AtomicBool,
    pub(super) waiting: Slot<Span>,
    pub(super) next: Slot<Span>,
    pub(super) prev: Slot<Span>,
    page: AtomicU64,
    pages: AtomicU64,
    /// Place among the heap's spans.
    pub(super) index: AtomicUsize,
    /// Among the spans without an owner that have free blocks.
    pub(super) listed: AtomicBool,
    pub(super) live: AtomicBool,
}

/// Spans of heaps that were closed, and those that were emptied.
pub(super) static SPARE: Spare<Span> = Spare::new();

impl Span {
    pub(super) fn blank() -> Span {
        Span {
            data: AtomicUsize::new(0),
            reciprocal: AtomicU64::new(0),
            allocated: AtomicPtr::new(ptr::null_mut()),
            freed: AtomicPtr::new(ptr::null_mut()),
            owner: Slot::new(),
            summary: AtomicU64::new(0),
            count: AtomicU32::new(0),
            unheeded: AtomicU32::new(1),
            size: AtomicU32::new(1),
            place: AtomicU8::new(place::FULL),
            class: AtomicU8::new(0),
            words: AtomicU32::new(0),
            queued: AtomicBool::new(false),
            waiting: Slot::new(),
            next: Slot::new(),
            prev: Slot::new(),
            page: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            index: AtomicUsize::new(0),
            listed: AtomicBool::new(false),
            live: AtomicBool::new(false),
        }
    }

    /// Writes the header of a new span without blocks in use.
    pub(super) fn format(window: &Window, page: u64, pages: u64, class: usize) -> Result<()> {
        let offset = page * PAGE;
        let Some(geometry) = Geometry::of(class, pages) else {
            return damaged(offset, "a span without room for blocks");
        };
        let len = size_of::<SpanHeader>() + 2 * stride(geometry.words);
        window.fill(offset, len, 0)?;
        let header: &SpanHeader = window.at(offset)?;
        header.class.store(class as u32, Relaxed);
        header.page.store(page, Relaxed);
        header.pages.store(pages as u32, Relaxed);
        header.count.store(geometry.count as u32, Relaxed);
        header.data.store(geometry.data as u32, Relaxed);
        header.words.store(geometry.words as u32, Relaxed);
        let words: &[AtomicU64] = window.slice(offset + 64, geometry.words)?;
        words[geometry.words - 1].store(!valid(&geometry, geometry.words - 1), Relaxed);
        header.magic.store(SPAN_MAGIC, Relaxed);
        Ok(())
    }

    /// Verifies the span at `page`, and gets to know it.
    pub(super) fn adopt(window: &Window, page: u64, pages: u64, class: usize) -> Result<&'static Span> {
        let bits = Bits::open(window, page, pages, class)?;
        let Geometry { size, count, data, words } = bits.geometry;
        let offset = page * PAGE;
        let mut summary = 0;
        for (index, word) in bits.allocated.iter().enumerate() {
            let word = word.load(Relaxed);
            if word & !valid(&bits.geometry, index) != !valid(&bits.geometry, index) {
                return damaged(offset + 64 + index as u64 * 8, "bits of blocks that do not exist");
            }
            summary |= u64::from(word != u64::MAX) << index;
        }
        let span = SPARE.take(Span::blank);
        span.data.store(window.base() + offset as usize + data, Relaxed);
        span.reciprocal.store(u64::MAX / size as u64 + 1, Relaxed);
        span.size.store(size as u32, Relaxed);
        span.count.store(count as u32, Relaxed);
        span.allocated.store(ptr::from_ref(&bits.allocated[0]).cast_mut(), Relaxed);
        span.freed.store(ptr::from_ref(&bits.freed[0]).cast_mut(), Relaxed);
        span.summary.store(summary, Relaxed);
        span.class.store(class as u8, Relaxed);
        span.words.store(words as u32, Relaxed);
        span.put(place::FULL);
        span.page.store(page, Relaxed);
        span.pages.store(pages, Relaxed);
        span.listed.store(false, Relaxed);
        span.live.store(true, Relaxed);
        span.owner.set(None);
        Ok(span)
    }

    #[inline]
    pub(super) fn class(&self) -> usize {
        usize::from(self.class.load(Relaxed)).min(CLASSES - 1)
    }

    pub(super) fn page(&self) -> u64 {
        self.page.load(Relaxed)
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages.load(Relaxed)
    }

    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size.load(Relaxed) as usize
    }

    /// The block that begins at `address`.
    #[inline]
    pub(super) fn block(&self, address: usize) -> Option<usize> {
        divide(
            address.wrapping_sub(self.data.load(Relaxed)) as u64,
            self.reciprocal.load(Relaxed),
            u64::from(self.count.load(Relaxed)),
        )
    }

    /// Address of the first block of a word.
    pub(super) fn base(&self, word: usize) -> usize {
        self.data.load(Relaxed) + word * 64 * self.size()
    }

    /// A word of `allocated`.
    #[inline]
    pub(super) fn allocated(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < self.words.load(Relaxed) as usize);
        // SAFETY: a word of the bitmap (1): callers have it from `block`, or from `summary`.
        unsafe { &*self.allocated.load(Relaxed).add(word) }
    }

    /// A word of `freed`.
    #[inline]
    pub(super) fn freed(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < self.words.load(Relaxed) as usize);
        // SAFETY: as for `allocated`.
        unsafe { &*self.freed.load(Relaxed).add(word) }
    }

    /// Merges what others freed; whether there was anything. The caller may by (2).
    pub(super) fn collect(&self) -> bool {
        let mut any = false;
        for word in 0..self.words.load(Relaxed) as usize {
            let bits = self.freed(word).load(SeqCst) & self.valid(word);
            if bits != 0 {
                any = true;
                let allocated = self.allocated(word);
                allocated.store(allocated.load(Relaxed) & !bits, Relaxed);
                self.freed(word).fetch_and(!bits, SeqCst);
                self.summary.store(self.summary.load(Relaxed) | 1 << word, Relaxed);
            }
        }
        any
    }

    fn valid(&self, word: usize) -> u64 {
        let rest = self.count.load(Relaxed) as usize - word * 64;
        if rest >= 64 { u64::MAX } else { (1 << rest) - 1 }
    }

    fn used(&self, word: usize) -> u64 {
        self.allocated(word).load(Relaxed) & !self.freed(word).load(Relaxed) & self.valid(word)
    }

    /// Whether no block is in use.
    pub(super) fn is_empty(&self) -> bool {
        (0..self.words.load(Relaxed) as usize).all(|word| self.used(word) == 0)
    }

    /// Says where the owner has the span, and keeps (4).
    pub(super) fn put(&self, place: u8) {
        let unheeded = match place {
            place::CURRENT => u32::MAX,
            place::PARTIAL => {
                // Not all of them: a count takes no more time than those frees did.
                let mut used = 0;
                for word in 0..self.words.load(Relaxed) as usize {
                    used += self.used(word).count_ones();
                    if used >= 64 {
                        break;
                    }
                }
                used.max(1)
            }
            _ => 1,
        };
        self.place.store(place, Relaxed);
        self.unheeded.store(unheeded, Relaxed);
    }

    /// Counts a block that the owner freed; whether it has to look at the span.
    #[inline]
    pub(super) fn heed(&self) -> bool {
        let unheeded = self.unheeded.load(Relaxed).wrapping_sub(1);
        self.unheeded.store(unheeded, Relaxed);
        unheeded == 0
    }

    /// Number of the word in the object, for naming stores.
    pub(super) fn word_offset(&self, word: usize) -> (u64, usize) {
        let bytes = stride(self.words.load(Relaxed) as usize);
        (self.page() * PAGE + 64 + word as u64 * 8, bytes + 8)
    }
}

/// The number of the block that begins `delta` bytes behind the first of `count`, by the reciprocal of
/// their size.
#[inline]
fn divide(delta: u64, reciprocal: u64, count: u64) -> Option<usize> {
    // 2^64 times the quotient. The reciprocal is too large by less than 1, so that a fraction of no more
    // than delta, which is below 2^20, is none; one of a byte is the reciprocal. The quotient grows with
    // delta and is `count` behind the last block: no other delta passes.
    let product = u128::from(delta) * u128::from(reciprocal);
    let (block, fraction) = ((product >> 64) as u64, product as u64);
    (block < count && fraction < reciprocal).then_some(block as usize)
}

/// Bits of a word that stand for blocks.
pub(super) fn valid(geometry: &Geometry, word: usize) -> u64 {
    let rest = geometry.count - word * 64;
    if rest >= 64 { u64::MAX } else { (1 << rest) - 1 }
}

/// A span's bitmaps, its header verified.
pub(super) struct Bits<'a> {
    pub(super) geometry: Geometry,
    pub(super) allocated: &'a [AtomicU64],
    pub(super) freed: &'a [AtomicU64],
}

impl<'a> Bits<'a> {
    pub(super) fn open(window: &'a Window, page: u64, pages: u64, class: usize) -> Result<Bits<'a>> {
        let offset = page * PAGE;
        let geometry = if class < CLASSES { Geometry::of(class, pages.min(255)) } else { None };
        let Some(geometry) = geometry else {
            return damaged(offset, "a span of a class or length that does not exist");
        };
        let header: &SpanHeader = window.at(offset)?;
        let same = header.magic.load(Relaxed) == SPAN_MAGIC
            && header.class.load(Relaxed) == class as u32
            && header.page.load(Relaxed) == page
            && u64::from(header.pages.load(Relaxed)) == pages
            && header.count.load(Relaxed) == geometry.count as u32
            && header.data.load(Relaxed) == geometry.data as u32
            && header.words.load(Relaxed) == geometry.words as u32;
        if !same || geometry.words > 64 {
            return damaged(offset, "the header of a span contradicts its chunk");
        }
        window.pointer(offset, (pages * PAGE) as usize)?;
        let allocated = window.slice(offset + 64, geometry.words)?;
        let freed = window.slice(offset + 64 + stride(geometry.words) as u64, geometry.words)?;
        Ok(Bits { geometry, allocated, freed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::class::span_pages;

    #[test]
    fn blocks_are_found_by_their_first_byte_alone() {
        for class in 0..CLASSES {
            let Geometry { size, count, .. } = Geometry::of(class, span_pages(class, 6)).unwrap();
            let (reciprocal, count) = (u64::MAX / size as u64 + 1, count as u64);
            let size = size as u64;
            for delta in 0..size * (count + 2) {
                let block = (delta / size < count && delta % size == 0).then_some((delta / size) as usize);
                assert_eq!(divide(delta, reciprocal, count), block, "{delta} / {size}");
            }
            for delta in [u64::MAX, size.wrapping_neg(), 1 << 63, 1 << 32, 1 << 20] {
                assert_eq!(divide(delta, reciprocal, count), None, "{delta} / {size}");
            }
        }
    }
}
