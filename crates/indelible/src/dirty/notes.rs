//! What is named: lines that were stored to, and lines that were lent, to be stored to until they come back.
//!
//! Any thread names at any time; the tracker takes what was named when it collects. Who stores while cuts may be taken names
//! the store after it: named before, the name could be taken, and the store not yet be there.

use super::range::PageRange;
use crate::sys::PAGE;
use crate::sys::flush::LINE;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines of an object.
///
/// Invariant: `pages` has each page with a bit in `masks` once, and no other.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pages: Vec<usize>,
    /// A bit for each line of a page.
    masks: Vec<u64>,
}

impl Lines {
    /// Room for so many pages, at least.
    pub(super) fn grow(&mut self, pages: usize) {
        if pages > self.masks.len() {
            // New zeros, of which those that are not needed are never touched.
            let mut larger = vec![0; pages];
            self.pages.iter().for_each(|page| larger[*page] = self.masks[*page]);
            self.masks = larger;
        }
    }

    /// Pages there is room for.
    pub(super) fn room(&self) -> usize {
        self.masks.len()
    }

    /// Bytes beyond the object are nobody's.
    fn add(&mut self, bytes: Range<usize>) {
        let end = bytes.end.min(self.masks.len() * PAGE);
        let mut at = bytes.start;
        while at < end {
            let (page, next) = (at / PAGE, (at / PAGE + 1) * PAGE);
            let (first, last) = (at % PAGE / LINE, (end.min(next) - 1) % PAGE / LINE);
            self.join(page, u64::MAX >> (63 - (last - first)) << first);
            at = next;
        }
    }

    /// Adds lines of a page.
    pub(super) fn join(&mut self, page: usize, mask: u64) {
        if self.masks[page] == 0 && mask != 0 {
            self.pages.push(page);
        }
        self.masks[page] |= mask;
    }

    /// The lines of a page.
    #[inline]
    pub(super) fn of(&self, page: usize) -> u64 {
        self.masks[page]
    }

    /// The pages that have lines, in order.
    pub(super) fn pages(&mut self) -> &[usize] {
        self.pages.sort_unstable();
        &self.pages
    }

    /// Takes all lines off the pages of these runs.
    pub(super) fn settle(&mut self, runs: &[PageRange]) {
        for run in runs {
            let pages = run.within(self.masks.len());
            self.masks[pages].fill(0);
        }
        self.pages.retain(|page| self.masks[*page] != 0);
    }

    fn each(&self, mut each: impl FnMut(usize, u64)) {
        self.pages.iter().for_each(|page| each(*page, self.masks[*page]));
    }

    fn clear(&mut self) {
        self.pages.drain(..).for_each(|page| self.masks[page] = 0);
    }
}

#[derive(Debug, Default)]
struct Both {
    stored: Lines,
    lent: Lines,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Both>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Both> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn grow(&self, pages: usize) {
        let mut both = self.lock();
        both.stored.grow(pages);
        both.lent.grow(pages);
    }

    /// Names ranges of bytes, counted from the object's first, that were stored to.
    pub(crate) fn store(&self, ranges: impl IntoIterator<Item = Range<usize>>) {
        let mut both = self.lock();
        ranges.into_iter().for_each(|bytes| both.stored.add(bytes));
    }

    /// Names bytes that may be stored to from now on, until a psync that is no cut.
    pub(crate) fn lend(&self, bytes: Range<usize>) {
        self.lock().lent.add(bytes);
    }

    /// Calls `each` with all pages that have lines which were named, and these, maybe twice. What is lent stays named if it is
    /// not `back`: a cut does not know who still has it.
    pub(super) fn take(&self, back: bool, mut each: impl FnMut(usize, u64)) {
        let mut both = self.lock();
        both.stored.each(&mut each);
        both.lent.each(&mut each);
        both.stored.clear();
        if back {
            both.lent.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::iter::once;

    fn taken(notes: &Notes, back: bool) -> Vec<(usize, u64)> {
        let mut all = BTreeMap::new();
        notes.take(back, |page, lines| *all.entry(page).or_default() |= lines);
        all.into_iter().collect()
    }

    #[test]
    fn the_lines_of_what_was_named_are_known() {
        let notes = Notes::default();
        notes.store(once(0..100));
        assert_eq!(taken(&notes, true), [], "beyond an object of no bytes");
        notes.grow(4);
        notes.store([63..65, 4095..8192, 8192..8192, 4 * 4096 - 1..9 * 4096, 9 * 4096..10 * 4096]);
        notes.grow(10);
        assert_eq!(taken(&notes, true), [(0, 0b11 | 1 << 63), (1, u64::MAX), (3, 1 << 63)]);
        notes.store(once(9 * 4096..9 * 4096 + 1));
        assert_eq!(taken(&notes, true), [(9, 1)]);
        assert_eq!(taken(&notes, true), []);
    }

    #[test]
    fn what_is_lent_stays_named_until_it_is_back() {
        let notes = Notes::default();
        notes.grow(2);
        notes.lend(0..1);
        notes.store([64..65, 4096..4097]);
        assert_eq!(taken(&notes, false), [(0, 0b11), (1, 1)]);
        notes.grow(3);
        notes.store(once(4096..4097));
        assert_eq!(taken(&notes, false), [(0, 1), (1, 1)]);
        assert_eq!(taken(&notes, true), [(0, 1)]);
        assert_eq!(taken(&notes, true), []);
    }
}
