//! Rung 3: the caller names what it changed.
//!
//! Invariant: a page in `taken` was named, taken from `notes`, and not settled since, and `lines` has the lines of it that
//! were; of any other page it has none.

use super::bitmap::Tree;
use super::notes::Notes;
use super::range::{self, PageRange};
use std::sync::Arc;

pub(super) struct Named {
    pub(super) notes: Arc<Notes>,
    taken: Tree,
    /// A bit for each line of a page.
    lines: Vec<u64>,
}

impl Named {
    pub(super) fn new(pages: usize) -> Named {
        let notes = Notes::default();
        notes.grow(pages);
        Named { notes: Arc::new(notes), taken: Tree::new(pages), lines: vec![0; pages] }
    }

    /// Takes the place of another, whose notes others know: what they have of before is nothing any more.
    pub(super) fn succeed(&mut self, notes: Arc<Notes>) {
        notes.grow(self.lines.len());
        notes.take(true, |_, _| {});
        self.notes = notes;
    }

    pub(super) fn grow(&mut self, pages: usize) {
        let (taken, mut lines) = (Tree::new(pages), vec![0; pages]);
        self.taken.for_each(|page| {
            taken.set(page);
            lines[page] = self.lines[page];
        });
        (self.taken, self.lines) = (taken, lines);
        self.notes.grow(pages);
    }

    /// The lines of a page that was collected.
    #[inline]
    pub(super) fn lines(&self, page: usize) -> u64 {
        self.lines[page]
    }

    /// `held`: others go on after it.
    pub(super) fn collect(&mut self, held: bool, out: &mut Vec<PageRange>) {
        let Named { notes, taken, lines } = self;
        // Growth of the object reaches the notes last.
        notes.take(!held, |page, named| {
            taken.set(page);
            lines[page] |= named;
        });
        let kept = out.len();
        taken.for_each(|page| range::push(out, kept, page, page + 1));
    }

    pub(super) fn settle(&mut self, runs: &[PageRange]) {
        for run in runs {
            for page in run.within(self.lines.len()) {
                self.lines[page] = 0;
                self.taken.clear(page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(named: &mut Named, held: bool) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        named.collect(held, &mut runs);
        let pages = runs.iter().flat_map(|run| run.start..run.end());
        pages.map(|page| (page, named.lines(page as usize))).collect()
    }

    #[test]
    fn what_was_collected_is_known_until_it_is_settled() {
        let mut named = Named::new(4);
        named.notes.store([63..65, 4095..8192, 4 * 4096 - 1..9 * 4096]);
        let expected = [(0, 0b11 | 1 << 63), (1, u64::MAX), (3, 1 << 63)];
        assert_eq!(found(&mut named, false), expected);
        named.grow(10);
        assert_eq!(found(&mut named, false), expected);
        // Another line, of a page that others are settled of.
        named.notes.store([128..129]);
        named.settle(&[PageRange::new(0, 1), PageRange::new(3, 9)]);
        assert_eq!(named.lines(3), 0);
        named.notes.store([9 * 4096..9 * 4096 + 1]);
        assert_eq!(found(&mut named, false), [(0, 0b100), (1, u64::MAX), (9, 1)]);
    }

    #[test]
    fn what_is_lent_is_found_by_every_cut() {
        let mut named = Named::new(2);
        named.notes.lend(4096..4097);
        for held in [true, true, false] {
            assert_eq!(found(&mut named, held), [(1, 1)]);
            named.settle(&[PageRange::new(0, 2)]);
        }
        assert_eq!(found(&mut named, false), []);
    }

    #[test]
    fn a_successor_knows_what_is_named_from_then_on() {
        let mut before = Named::new(2);
        let notes = before.notes.clone();
        notes.store([0..1]);
        notes.lend(64..65);
        assert_eq!(found(&mut before, true), [(0, 0b11)]);
        let mut named = Named::new(3);
        named.succeed(notes.clone());
        assert_eq!(found(&mut named, false), []);
        notes.store([2 * 4096..2 * 4096 + 1]);
        assert_eq!(found(&mut named, false), [(2, 1)]);
    }
}
