//! Pages that are this process's own copies, as psyncs count them, and which to drop first.
//!
//! A store to a private mapping makes such a copy of its page. Each psync tells its pages; the
//! count needs no system call. Pages are chosen in the order of addresses, from the last choice on.

use super::bitmap::Bits;
use super::range::{self, PageRange};
use crate::sys::memory;

/// A choice goes below the limit by its sixteenth, so that the next one is not due at once.
const AT_ONCE: usize = 16;
/// With fewer pages of its own an attachment has no limit by default.
const FEW: usize = 4096;
/// Pages between two runs that cost less to compare than one more call.
const NEAR: usize = 4;

#[derive(Debug, Default)]
pub(super) struct OwnPages {
    limit: Option<usize>,
    pages: usize,
    bits: Bits,
    count: usize,
    next: usize,
    /// Pages that psyncs told since the last choice, and how many there are before the next.
    told: usize,
    pause: usize,
}

impl OwnPages {
    pub(super) fn new(pages: usize) -> OwnPages {
        let mut own = OwnPages::default();
        own.grow(pages);
        own
    }

    pub(super) fn grow(&mut self, pages: usize) {
        self.bits.grow(pages);
        self.pages = pages;
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = Some(limit);
    }

    pub(super) fn psynced(&mut self, runs: &[PageRange]) {
        for page in runs.iter().flat_map(|run| run.within(self.pages)) {
            self.told += 1;
            if !self.bits.get(page) {
                self.bits.set(page);
                self.count += 1;
            }
        }
    }

    fn limit(&self) -> usize {
        self.limit.unwrap_or_else(|| (memory::usable_pages() / 4).max(FEW))
    }

    pub(super) fn has_default(&self) -> bool {
        self.limit.is_none()
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.count >= self.limit.unwrap_or(FEW) && self.told >= self.pause && self.count >= self.limit()
    }

    /// Ascending. They count no more, unless they are [told](Self::psynced) again.
    pub(super) fn choose(&mut self) -> Vec<PageRange> {
        let limit = self.limit();
        let wanted = (self.count.saturating_sub(limit) + limit / AT_ONCE).max(1);
        let (from, mut found) = (self.next, Vec::new());
        let left = self.choose_from(from..self.pages, wanted, &mut found);
        if left > 0 {
            self.choose_from(0..from, left, &mut found);
        }
        range::normalise(&mut found, 0);
        found
    }

    fn choose_from(
        &mut self,
        pages: std::ops::Range<usize>,
        mut wanted: usize,
        found: &mut Vec<PageRange>,
    ) -> usize {
        let mut at = pages.start;
        while at < pages.end && wanted > 0 {
            let end = self.bits.run_end(at, pages.end);
            if !self.bits.get(at) {
                at = end;
                continue;
            }
            let end = end.min(at + wanted);
            (at..end).for_each(|page| self.bits.clear(page));
            (self.count, wanted) = (self.count - (end - at), wanted - (end - at));
            match found.last_mut() {
                Some(last) if at >= last.end() as usize && at - last.end() as usize <= NEAR => {
                    last.count = end as u64 - last.start;
                }
                _ => found.push(PageRange::new(at, end)),
            }
            (at, self.next) = (end, end);
        }
        wanted
    }

    /// After a choice: these pages stay. If that are many, the next choice waits for other psyncs.
    pub(super) fn kept(&mut self, runs: &[PageRange]) {
        self.psynced(runs);
        let limit = self.limit();
        self.pause = if self.count >= limit { limit / AT_ONCE } else { 0 };
        self.told = 0;
    }

    pub(super) fn clear(&mut self) {
        let limit = self.limit;
        *self = OwnPages { limit, ..OwnPages::new(self.pages) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: usize, end: usize) -> PageRange {
        PageRange::new(start, end)
    }

    fn own(limit: usize) -> OwnPages {
        let mut own = OwnPages::new(10_000);
        own.set_limit(limit);
        own
    }

    #[test]
    fn pages_count_once_and_are_chosen_by_the_sixteenth_from_the_last_choice_on() {
        let mut own = own(160);
        own.psynced(&[run(100, 200), run(300, 359)]);
        own.psynced(&[run(100, 200)]);
        assert!(!own.is_over(), "159 pages");
        own.psynced(&[run(20, 21)]);
        assert!(own.is_over());
        assert_eq!(own.choose(), [run(20, 21), run(100, 109)]);
        own.kept(&[]);
        assert!(!own.is_over());
        own.psynced(&[run(0, 30)]);
        assert_eq!(own.choose(), [run(109, 139)], "20 above the limit, and a sixteenth");
        own.psynced(&[run(400, 500)]);
        assert_eq!(own.count, 250);
        assert_eq!(own.choose(), [run(139, 200), run(300, 339)]);
        own.psynced(&[run(9_990, 10_000)]);
        own.psynced(&[run(400, 560)]);
        assert_eq!(own.choose(), [run(339, 359), run(400, 450)]);
    }

    #[test]
    fn a_choice_goes_on_from_the_start_and_joins_near_runs() {
        let mut own = own(160);
        own.psynced(&[run(9_000, 9_170)]);
        assert_eq!(own.choose(), [run(9_000, 9_020)]);
        own.psynced(&[run(0, 1), run(5, 6), run(11, 12), run(400, 700)]);
        assert_eq!(own.count, 453);
        assert_eq!(own.choose(), [run(0, 6), run(11, 12), run(400, 550), run(9_020, 9_170)]);
        assert_eq!(own.count, 150);
    }

    #[test]
    fn pages_that_stay_are_not_chosen_again_at_once() {
        let mut own = own(160);
        own.psynced(&[run(0, 160)]);
        let chosen = own.choose();
        own.kept(&chosen);
        assert!(!own.is_over());
        own.psynced(&[run(200, 209)]);
        assert!(!own.is_over());
        own.psynced(&[run(209, 210)]);
        assert!(own.is_over());
        assert_eq!(own.choose(), [run(10, 30)]);
        own.kept(&[]);
        own.psynced(&[run(500, 510)]);
        assert!(own.is_over(), "150 and 10");
        own.clear();
        assert!(!own.is_over());
    }

    #[test]
    fn few_pages_have_no_limit_by_default() {
        let mut own = OwnPages::new(1 << 20);
        own.psynced(&[run(0, FEW - 1)]);
        assert!(!own.is_over());
        assert!(own.limit() >= FEW);
        own.count = own.limit();
        assert!(own.is_over());
    }
}
