//! Rung 3: the caller names what it changed.
//!
//! Invariant: `taken` has the lines that were named, taken from `notes`, and not settled since.

use super::notes::{Lines, Notes};
use super::range::{self, PageRange};
use std::sync::Arc;

pub(super) struct Named {
    pub(super) notes: Arc<Notes>,
    taken: Lines,
}

impl Named {
    pub(super) fn new(pages: usize) -> Named {
        let mut named = Named { notes: Arc::default(), taken: Lines::default() };
        named.grow(pages);
        named
    }

    /// Takes the place of another, which has these notes: what they have of before is nothing any more.
    pub(super) fn succeed(&mut self, notes: Arc<Notes>) {
        notes.take(true, |_, _| {});
        notes.grow(self.taken.room());
        self.notes = notes;
    }

    /// Notes come last: what they have of a page, there is room for.
    pub(super) fn grow(&mut self, pages: usize) {
        self.taken.grow(pages);
        self.notes.grow(pages);
    }

    /// The lines of a page that was collected.
    #[inline]
    pub(super) fn lines(&self, page: usize) -> u64 {
        self.taken.of(page)
    }

    /// `held`: others go on after it.
    pub(super) fn collect(&mut self, held: bool, out: &mut Vec<PageRange>) {
        self.notes.take(!held, |page, lines| self.taken.join(page, lines));
        let kept = out.len();
        self.taken.pages().iter().for_each(|page| range::push(out, kept, *page, page + 1));
    }

    pub(super) fn settle(&mut self, runs: &[PageRange]) {
        self.taken.settle(runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once;

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
        named.notes.store(once(128..129));
        named.settle(&[PageRange::new(0, 1), PageRange::new(3, 9)]);
        assert_eq!(named.lines(3), 0);
        named.notes.store(once(9 * 4096..9 * 4096 + 1));
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
        notes.store(once(0..1));
        notes.lend(64..65);
        assert_eq!(found(&mut before, true), [(0, 0b11)]);
        let mut named = Named::new(3);
        named.succeed(notes.clone());
        assert_eq!(found(&mut named, false), []);
        notes.store(once(2 * 4096..2 * 4096 + 1));
        assert_eq!(found(&mut named, false), [(2, 1)]);
    }
}
