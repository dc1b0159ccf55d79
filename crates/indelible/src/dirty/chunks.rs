//! An object's pages in chunks of one page table each, and the known chunks: protected whole.

use std::ops::Range;

use super::bitmap::Bits;
use super::range::PageRange;
use crate::sys::PAGE;

const CHUNK: usize = 512 * PAGE;

/// Invariant: `runs` are the pages of the chunks in `known`, up to `pages`.
#[derive(Debug)]
pub(super) struct Chunks {
    base: usize,
    pages: usize,
    known: Bits,
    runs: Vec<PageRange>,
}

impl Chunks {
    pub(super) fn new(base: usize) -> Chunks {
        Chunks { base, pages: 0, known: Bits::new(0), runs: Vec::new() }
    }

    pub(super) fn grow(&mut self, pages: usize) {
        self.pages = pages;
        self.known.grow(self.of(pages - 1) + 1);
        self.list();
    }

    pub(super) fn runs(&self) -> &[PageRange] {
        &self.runs
    }

    pub(super) fn count(&self) -> u64 {
        self.known.count()
    }

    #[inline]
    fn of(&self, page: usize) -> usize {
        (self.base + page * PAGE) / CHUNK - self.base / CHUNK
    }

    #[inline]
    pub(super) fn is_known(&self, page: usize) -> bool {
        self.known.get(self.of(page))
    }

    pub(super) fn around(&self, page: usize) -> PageRange {
        let chunk = self.of(page);
        PageRange::new(self.first(chunk), self.first(chunk + 1).min(self.pages))
    }

    pub(super) fn end(&self, page: usize) -> usize {
        self.first(self.of(page) + 1)
    }

    fn first(&self, chunk: usize) -> usize {
        ((self.base / CHUNK + chunk) * CHUNK).saturating_sub(self.base) / PAGE
    }

    pub(super) fn cover(&self, run: PageRange) -> bool {
        !self.within(run).is_empty()
    }

    fn within(&self, run: PageRange) -> Range<usize> {
        let (from, to) = (run.start as usize, run.end() as usize);
        let (first, last) = (self.of(from), self.of(to - 1));
        let first = first + usize::from(self.first(first) < from);
        first..(last + usize::from(self.first(last + 1).min(self.pages) <= to)).max(first)
    }

    pub(super) fn know(&mut self, runs: &[PageRange]) -> bool {
        let mut any = false;
        for run in runs {
            for chunk in self.within(*run) {
                any |= !self.known.get(chunk);
                self.known.set(chunk);
            }
        }
        if any {
            self.list();
        }
        any
    }

    fn list(&mut self) {
        self.runs.clear();
        let end = self.of(self.pages - 1) + 1;
        let mut chunk = 0;
        while chunk < end {
            let next = self.known.run_end(chunk, end);
            if self.known.get(chunk) {
                self.runs.push(PageRange::new(self.first(chunk), self.first(next).min(self.pages)));
            }
            chunk = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_known_once_all_its_pages_are_protected() {
        let mut chunks = Chunks::new(3 * CHUNK + PAGE);
        chunks.grow(511 + 512 + 9);
        assert_eq!(chunks.around(510), PageRange::new(0, 511));
        assert_eq!(chunks.around(511), PageRange::new(511, 1023));
        assert_eq!(chunks.around(1031), PageRange::new(1023, 1032));
        assert!(!chunks.know(&[PageRange::new(1, 1022), PageRange::new(1024, 1032)]));
        assert!(chunks.know(&[PageRange::new(511, 1023)]));
        assert_eq!((chunks.runs(), chunks.count()), (&[PageRange::new(511, 1023)][..], 1));
        assert!(chunks.know(&[PageRange::new(0, 511), PageRange::new(1000, 1032)]));
        assert!(!chunks.know(&[PageRange::new(0, 1032)]));
        assert_eq!(chunks.runs(), [PageRange::new(0, 1032)]);
        chunks.grow(3000);
        assert!(chunks.is_known(1500) && !chunks.is_known(1600));
        assert_eq!(chunks.runs(), [PageRange::new(0, 1535)]);
    }
}
