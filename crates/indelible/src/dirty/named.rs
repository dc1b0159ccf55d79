//! Rung 3: the caller names what it changed.
//!
//! Invariant: a page in `noted` was named and not settled since, and `lines` has the lines of it that were; of any
//! other page it has none.

use super::bitmap::Tree;
use super::range::{self, PageRange};
use crate::sys::PAGE;
use crate::sys::flush::LINE;
use crate::sys::sync::{AtomicU64, Ordering, zeroed};
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Named {
    noted: Tree,
    /// A bit for each line of a page.
    lines: Box<[AtomicU64]>,
}

impl Named {
    pub(super) fn new(pages: usize) -> Named {
        Named { noted: Tree::new(pages), lines: zeroed(pages) }
    }

    pub(super) fn grow(&mut self, pages: usize) {
        let larger = Named::new(pages);
        self.noted.for_each(|page| larger.add(page, self.lines(page)));
        *self = larger;
    }

    /// The caller has the tracker to itself.
    fn add(&self, page: usize, lines: u64) {
        self.lines[page].fetch_or(lines, Ordering::Relaxed);
        self.noted.set(page);
    }

    pub(super) fn note(&self, bytes: Range<usize>) {
        let end = bytes.end.min(self.lines.len() * PAGE);
        let mut at = bytes.start;
        while at < end {
            let next = (at / PAGE + 1) * PAGE;
            let (first, last) = (at % PAGE / LINE, (end.min(next) - 1) % PAGE / LINE);
            self.add(at / PAGE, u64::MAX >> (63 - (last - first)) << first);
            at = next;
        }
    }

    /// The lines of a page that were named.
    #[inline]
    pub(super) fn lines(&self, page: usize) -> u64 {
        self.lines[page].load(Ordering::Relaxed)
    }

    pub(super) fn collect(&self, out: &mut Vec<PageRange>) {
        let kept = out.len();
        self.noted.for_each(|page| range::push(out, kept, page, page + 1));
    }

    pub(super) fn settle(&self, runs: &[PageRange]) {
        for run in runs {
            for page in run.within(self.lines.len()) {
                self.lines[page].store(0, Ordering::Relaxed);
                self.noted.clear(page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(named: &Named) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        named.collect(&mut runs);
        let pages = runs.iter().flat_map(|run| run.start..run.end());
        pages.map(|page| (page, named.lines(page as usize))).collect()
    }

    #[test]
    fn the_lines_of_what_was_named_are_known() {
        let mut named = Named::new(4);
        named.note(63..65);
        named.note(4095..8192);
        named.note(8192..8192);
        named.note(4 * 4096 - 1..9 * 4096);
        named.note(9 * 4096..10 * 4096);
        let expected = [(0, 0b11 | 1 << 63), (1, u64::MAX), (3, 1 << 63)];
        assert_eq!(found(&named), expected);
        named.grow(10);
        assert_eq!(found(&named), expected);
        named.settle(&[PageRange::new(0, 1), PageRange::new(3, 9)]);
        assert_eq!(found(&named), [(1, u64::MAX)]);
        assert_eq!(named.lines(3), 0);
        named.note(9 * 4096..9 * 4096 + 1);
        assert_eq!(found(&named), [(1, u64::MAX), (9, 1)]);
    }
}
