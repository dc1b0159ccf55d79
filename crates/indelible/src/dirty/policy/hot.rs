//! Hot pages, which changed in a recent psync, stay unprotected until their vain comparisons have
//! cost about as much as protecting them: at most about twice the optimum. The cost of comparing is
//! measured.

use std::time::Duration;

use crate::dirty::bitmap::Bits;
use crate::dirty::range::{self, PageRange};

/// Nanoseconds. A fault and a protection take 1,500 to 2,500.
const VAIN_NS: u64 = 1_300;
/// Settles in a term. In longer terms, too many pages repeat by chance.
const SHORTEST: u64 = 2;
const LONGEST: u64 = 8;

/// Pages that changed during a term.
///
/// Invariant: `bits` has the pages of all `runs` and no others.
#[derive(Debug, Default)]
struct Term {
    bits: Bits,
    runs: Vec<PageRange>,
}

impl Term {
    fn clear(&mut self, pages: usize) {
        for page in self.runs.drain(..).flat_map(|run| run.within(pages)) {
            self.bits.clear(page);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct HotPages {
    terms: [Term; 2],
    settles: u64,
    newest: Vec<PageRange>,
    page_ns: u64,
}

impl HotPages {
    pub(super) fn grow(&mut self, pages: usize) {
        self.terms.iter_mut().for_each(|term| term.bits.grow(pages));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.iter().all(|term| term.runs.is_empty())
    }

    #[inline]
    pub(super) fn get(&self, page: usize) -> bool {
        self.terms.iter().any(|term| term.bits.get(page))
    }

    pub(super) fn newest(&self) -> &[PageRange] {
        &self.newest
    }

    fn term(&self) -> u64 {
        VAIN_NS.checked_div(self.page_ns).map_or(LONGEST, |settles| settles.clamp(SHORTEST, LONGEST))
    }

    #[inline]
    pub(super) fn compared(&mut self, pages: u64, took: Duration) {
        let Some(new) = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).checked_div(pages) else { return };
        // A slow comparison may have been interrupted: it counts in part.
        self.page_ns = match self.page_ns {
            0 => new,
            known => (3 * known + new.min(2 * known)).div_ceil(4),
        };
    }

    pub(super) fn push(&mut self, changed: &[PageRange], pages: usize) {
        if self.settles >= self.term() {
            self.settles = 0;
            self.terms.swap(0, 1);
            self.terms[0].clear(pages);
        }
        self.settles += 1;
        let Term { bits, runs } = &mut self.terms[0];
        for page in changed.iter().flat_map(|run| run.within(pages)) {
            if !bits.get(page) {
                bits.set(page);
                range::push(runs, 0, page, page + 1);
            }
        }
        self.newest.clear();
        self.newest.extend_from_slice(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: usize) -> [PageRange; 1] {
        [PageRange::new(page, page + 1)]
    }

    fn compared(hot: &mut HotPages, page_ns: u64) {
        hot.compared(1_000, Duration::from_nanos(page_ns * 1_000));
    }

    fn idle(hot: &mut HotPages) -> u64 {
        hot.push(&page(7), 10_000);
        let mut idle = 0;
        while hot.get(7) {
            hot.push(&[], 10_000);
            idle += 1;
        }
        assert!(hot.is_empty());
        idle
    }

    #[test]
    fn a_page_is_recent_for_as_long_as_comparing_it_is_cheap() {
        for (page_ns, term) in [(0, 8), (80, 8), (200, 6), (400, 3), (9_000, 2)] {
            let mut hot = HotPages::default();
            hot.grow(10_000);
            compared(&mut hot, page_ns);
            let mut found = std::collections::BTreeSet::new();
            for phase in 0..term {
                found.insert(idle(&mut hot));
                (0..phase).for_each(|_| hot.push(&[], 10_000));
            }
            assert!(found.iter().all(|idle| (term + 1..=2 * term).contains(idle)), "{page_ns} ns: {found:?}");
        }
    }

    #[test]
    fn a_page_that_changes_now_and_then_stays_recent() {
        let mut hot = HotPages::default();
        hot.grow(10_000);
        for round in 0..1_000 {
            hot.push(&page(if round % LONGEST == 0 { 9_000 } else { round as usize }), 10_000);
            assert!(hot.get(9_000), "{round}");
            assert!(round < 20 || !hot.get(round as usize - 17), "{round}");
        }
        hot.push(&page(3), 10_000);
        assert_eq!(hot.newest(), page(3));
    }

    #[test]
    fn the_cost_of_comparing_is_learnt_and_one_outlier_is_ignored() {
        let mut hot = HotPages::default();
        hot.compared(0, Duration::from_secs(1));
        assert_eq!(hot.term(), LONGEST);
        compared(&mut hot, 100);
        compared(&mut hot, 1_000_000);
        assert_eq!(hot.term(), LONGEST);
        (0..20).for_each(|_| compared(&mut hot, 600));
        assert_eq!(hot.term(), SHORTEST);
        (0..20).for_each(|_| compared(&mut hot, 80));
        assert_eq!(hot.term(), LONGEST);
    }
}
