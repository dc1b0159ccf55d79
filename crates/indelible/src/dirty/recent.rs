//! Which pages changed lately: those are worth leaving unprotected, as comparing a page a few times in
//! vain costs less than a fault and a protection.
//!
//! A page that changes again while it is recent is left unprotected, and stays so until it is recent no
//! more: comparing it in vain has then cost about as much as protecting it would have, so that whatever
//! comes next, that is at most twice the best that could have been done. What comparing costs is measured:
//! it is several times dearer where pages come from memory than where they come from a cache.

use std::collections::VecDeque;
use std::time::Duration;

use super::range::PageRange;

/// Pages that a block describes.
const BLOCK: usize = 4096;
/// Nanoseconds of comparing a page in vain: a fault, and protecting the page again, take 1,500 to 2,500, the
/// more the less of what they need is in the cache.
const VAIN_NS: u64 = 2_000;
/// So many settles are lately, depending on what comparing costs. With more, pages chosen by chance among
/// many would be met again too often; with fewer, measuring what a compared page costs would make the difference.
const FEWEST: usize = 3;
const MOST: usize = 12;

/// Invariants:
/// 1. A page has the stamp of the newest of `settles` that names it, 0 if none does.
/// 2. The newest of `settles` has the stamp `now`, the one before it the stamp before, from 1 to 255.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// One byte a page; blocks come with their first stamp.
    stamps: Vec<Option<Box<[u8; BLOCK]>>>,
    /// What the latest settles said, newest last.
    settles: VecDeque<Vec<PageRange>>,
    now: u8,
    /// Nanoseconds that comparing a page took lately; 0 before that is known.
    page_ns: u64,
}

impl Recent {
    pub(super) fn grow(&mut self, pages: usize) {
        let blocks = pages.div_ceil(BLOCK).max(self.stamps.len());
        self.stamps.resize_with(blocks, || None);
    }

    /// Whether nothing changed lately.
    pub(super) fn is_empty(&self) -> bool {
        self.settles.iter().all(Vec::is_empty)
    }

    #[inline]
    pub(super) fn get(&self, page: usize) -> bool {
        self.stamp(page) != 0
    }

    #[inline]
    fn stamp(&self, page: usize) -> u8 {
        self.stamps[page / BLOCK].as_ref().map_or(0, |block| block[page % BLOCK])
    }

    /// What the last settle said.
    pub(super) fn newest(&self) -> &[PageRange] {
        self.settles.back().map_or(&[], Vec::as_slice)
    }

    /// How many settles are lately.
    #[inline]
    fn lately(&self) -> usize {
        let affordable = VAIN_NS.checked_div(self.page_ns).unwrap_or(u64::MAX);
        affordable.clamp(FEWEST as u64, MOST as u64) as usize
    }

    /// Takes how long comparing so many pages took.
    #[inline]
    pub(super) fn compared(&mut self, pages: u64, took: Duration) {
        let Some(new) = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).checked_div(pages) else { return };
        // What took long once, being interrupted, is not believed at once.
        self.page_ns = match self.page_ns {
            0 => new,
            known => (3 * known + new.min(2 * known)).div_ceil(4),
        };
    }

    /// Takes what changed, of an object of so many pages.
    pub(super) fn push(&mut self, changed: &[PageRange], pages: usize) {
        let mut spare = Vec::new();
        while self.settles.len() >= self.lately() {
            spare = self.forget_oldest(pages);
        }
        self.now = self.now % u8::MAX + 1;
        for page in changed.iter().flat_map(|run| run.within(pages)) {
            self.stamps[page / BLOCK].get_or_insert_with(|| Box::new([0; BLOCK]))[page % BLOCK] = self.now;
        }
        spare.extend_from_slice(changed);
        self.settles.push_back(spare);
    }

    /// Returns the list, empty, for reuse of its memory.
    fn forget_oldest(&mut self, pages: usize) -> Vec<PageRange> {
        let age = self.settles.len() as u8;
        let Some(mut oldest) = self.settles.pop_front() else { return Vec::new() };
        // (2), counted backwards.
        let stamp = match self.now.checked_sub(age) {
            Some(before) => before + 1,
            None => u8::MAX - (age - self.now) + 1,
        };
        for page in oldest.drain(..).flat_map(|run| run.within(pages)) {
            if let Some(block) = &mut self.stamps[page / BLOCK]
                && block[page % BLOCK] == stamp
            {
                block[page % BLOCK] = 0;
            }
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: usize) -> [PageRange; 1] {
        [PageRange::new(page, page + 1)]
    }

    fn compared(recent: &mut Recent, page_ns: u64) {
        recent.compared(1_000, Duration::from_nanos(page_ns * 1_000));
    }

    #[test]
    fn a_page_is_recent_for_as_long_as_comparing_it_is_cheap() {
        for (page_ns, lately) in [(0, 12), (80, 12), (200, 10), (400, 5), (9_000, 3)] {
            let mut recent = Recent::default();
            recent.grow(10_000);
            compared(&mut recent, page_ns);
            // Until stamps come round again.
            for round in 0..100 {
                recent.push(&page(7), 10_000);
                recent.push(&page(9_000), 10_000);
                assert_eq!(recent.newest(), page(9_000));
                recent.push(&page(7), 10_000);
                for idle in 1..lately {
                    recent.push(&[], 10_000);
                    assert!(recent.get(7), "{page_ns} ns, round {round}, idle for {idle}");
                    assert_eq!(recent.get(9_000), idle + 1 < lately, "round {round}, idle for {idle}");
                }
                recent.push(&[], 10_000);
                assert!(!recent.get(7) && !recent.get(9_000), "{page_ns} ns, round {round}");
            }
        }
    }

    #[test]
    fn what_comparing_takes_is_learnt_and_one_hitch_is_not_believed() {
        let mut recent = Recent::default();
        recent.compared(0, Duration::from_secs(1));
        assert_eq!(recent.lately(), MOST);
        compared(&mut recent, 100);
        compared(&mut recent, 1_000_000);
        assert_eq!(recent.lately(), MOST);
        (0..20).for_each(|_| compared(&mut recent, 600));
        assert_eq!(recent.lately(), FEWEST);
        (0..20).for_each(|_| compared(&mut recent, 80));
        assert_eq!(recent.lately(), MOST);
    }

    #[test]
    fn fewer_settles_are_lately_when_comparing_becomes_dear() {
        let mut recent = Recent::default();
        recent.grow(10_000);
        (0..20).for_each(|number| recent.push(&page(number), 10_000));
        assert!((0..20).all(|number| recent.get(number) == (number >= 8)));
        compared(&mut recent, 1_000);
        recent.push(&page(20), 10_000);
        assert!((0..21).all(|number| recent.get(number) == (number >= 18)));
    }
}
