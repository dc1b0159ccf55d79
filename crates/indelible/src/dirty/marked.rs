//! Marked lines from collection to settlement: the only dirty lines on the rung `explicit`; on
//! others they add to the found ones.
//!
//! Invariant: `taken` has the lines that were marked, taken from `lines`, and not settled since.

use super::marks::{DirtyLines, Lines};
use super::range::{self, PageRange};
use std::sync::Arc;

pub(super) struct Marked {
    pub(super) lines: Arc<DirtyLines>,
    taken: Lines,
}

impl Marked {
    pub(super) fn new(pages: usize) -> Marked {
        let mut marked = Marked { lines: Arc::default(), taken: Lines::default() };
        marked.grow(pages);
        marked
    }

    pub(super) fn succeed(&mut self, lines: Arc<DirtyLines>) {
        lines.take(true, |_, _| {});
        lines.grow(self.taken.room());
        self.lines = lines;
    }

    pub(super) fn grow(&mut self, pages: usize) {
        self.taken.grow(pages);
        self.lines.grow(pages);
    }

    #[inline]
    pub(super) fn lines(&self, page: usize) -> u64 {
        self.taken.of(page)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.lines.is_empty()
    }

    /// `held`: other threads go on, so borrowed lines stay marked.
    #[inline]
    pub(super) fn collect(&mut self, held: bool, out: &mut Vec<PageRange>, kept: usize) {
        self.lines.take(!held, |page, lines| self.taken.join(page, lines));
        if self.taken.is_empty() {
            return;
        }
        let (found, merges) = (out.len(), out.len() > kept);
        self.taken.pages().iter().for_each(|page| range::push(out, found, *page, page + 1));
        if merges {
            range::normalise(out, kept);
        }
    }

    #[inline]
    pub(super) fn settle(&mut self, runs: &[PageRange]) {
        if !self.taken.is_empty() {
            self.taken.settle(runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once;

    fn found(marked: &mut Marked, held: bool) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        marked.collect(held, &mut runs, 0);
        let pages = runs.iter().flat_map(|run| run.start..run.end());
        pages.map(|page| (page, marked.lines(page as usize))).collect()
    }

    #[test]
    fn collected_lines_are_known_until_they_are_settled() {
        let mut marked = Marked::new(4);
        marked.lines.mark([63..65, 4095..8192, 4 * 4096 - 1..9 * 4096]);
        let expected = [(0, 0b11 | 1 << 63), (1, u64::MAX), (3, 1 << 63)];
        assert_eq!(found(&mut marked, false), expected);
        marked.grow(10);
        assert_eq!(found(&mut marked, false), expected);
        marked.lines.mark(once(128..129));
        marked.settle(&[PageRange::new(0, 1), PageRange::new(3, 9)]);
        assert_eq!(marked.lines(3), 0);
        marked.lines.mark(once(9 * 4096..9 * 4096 + 1));
        assert_eq!(found(&mut marked, false), [(0, 0b100), (1, u64::MAX), (9, 1)]);
    }

    #[test]
    fn borrowed_lines_are_found_by_every_cut() {
        let mut marked = Marked::new(2);
        marked.lines.mark_borrowed(4096..4097);
        for held in [true, true, false] {
            assert_eq!(found(&mut marked, held), [(1, 1)]);
            marked.settle(&[PageRange::new(0, 2)]);
        }
        assert_eq!(found(&mut marked, false), []);
    }

    #[test]
    fn a_successor_knows_what_is_marked_from_then_on() {
        let mut before = Marked::new(2);
        let lines = before.lines.clone();
        lines.mark(once(0..1));
        lines.mark_borrowed(64..65);
        assert_eq!(found(&mut before, true), [(0, 0b11)]);
        let mut marked = Marked::new(3);
        marked.succeed(lines.clone());
        assert_eq!(found(&mut marked, false), []);
        lines.mark(once(2 * 4096..2 * 4096 + 1));
        assert_eq!(found(&mut marked, false), [(2, 1)]);
    }
}
