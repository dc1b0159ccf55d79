//! The resident pages of a served range in order of filling, and eviction of the oldest.
//!
//! Only pages equal to their source's are evicted: any page of a range without stores; otherwise
//! its owner chooses when and which (`Shadow::evict`).

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ops;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::PAGE;
use crate::sys::mmap;

const AT_ONCE: usize = 16;

pub(super) struct Resident {
    limit: usize,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    order: VecDeque<usize>,
    bits: Vec<u64>,
    kept: bool,
}

impl Pages {
    fn set(&mut self, page: usize, to: bool) -> bool {
        let (word, bit) = (page / 64, 1 << (page % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let was = self.bits[word] & bit != 0;
        if to {
            self.bits[word] |= bit;
        } else {
            self.bits[word] &= !bit;
        }
        was
    }
}

impl Resident {
    pub(super) fn new(limit: usize) -> Resident {
        Resident { limit, pages: Mutex::default() }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn has_room(&self) -> bool {
        self.pages().order.len() < self.limit
    }

    pub(super) fn filled(&self, filled: ops::Range<usize>) {
        let mut pages = self.pages();
        for page in filled {
            if !pages.set(page, true) {
                pages.order.push_back(page);
            }
        }
    }

    pub(super) fn keep(&self) {
        self.pages().kept = true;
    }

    /// Evicted pages are not overwritten: another thread may be reading one, and the kernel clears
    /// memory before reuse.
    ///
    /// # Safety
    /// The range begins at `base`. Pages that `may` go equal the source's, and no thread stores to
    /// them until this returns.
    pub(super) unsafe fn evict(&self, base: usize, may: impl FnMut(usize) -> bool) {
        self.choose(may, |run| {
            // SAFETY: pages of the range, which come back unchanged (the caller's promise).
            let _ = unsafe { mmap::drop_pages(base + run.start * PAGE, run.len() * PAGE) };
        });
    }

    fn choose(&self, mut may: impl FnMut(usize) -> bool, drop: impl FnMut(ops::Range<usize>)) {
        // Locked while pages are dropped: no drop is under way when `keep` returns.
        let mut pages = self.pages();
        if pages.kept || pages.order.len() <= self.limit {
            return;
        }
        let mut wanted = pages.order.len() - self.limit + self.limit / AT_ONCE;
        let (mut gone, mut kept) = (Vec::new(), VecDeque::new());
        while wanted > 0 {
            let Some(page) = pages.order.pop_front() else { break };
            if may(page) {
                pages.set(page, false);
                gone.push(page);
                wanted -= 1;
            } else {
                kept.push_back(page);
            }
        }
        while let Some(page) = kept.pop_back() {
            pages.order.push_front(page);
        }
        gone.sort_unstable();
        let runs = gone.chunk_by(|a, b| a + 1 == *b);
        runs.filter_map(|run| Some(*run.first()?..*run.last()? + 1)).for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evicted(resident: &Resident, may: impl FnMut(usize) -> bool) -> Vec<ops::Range<usize>> {
        let mut runs = Vec::new();
        resident.choose(may, |run| runs.push(run));
        runs
    }

    #[test]
    fn the_pages_that_were_filled_first_go_first() {
        let resident = Resident::new(32);
        resident.filled(100..116);
        resident.filled(0..16);
        assert_eq!(evicted(&resident, |_| true), [0..0; 0]);
        resident.filled(100..116);
        assert_eq!(evicted(&resident, |_| true), [0..0; 0]);
        resident.filled(50..51);
        assert_eq!(evicted(&resident, |page| page != 101), [100..101, 102..104]);
        assert_eq!(evicted(&resident, |_| true), [0..0; 0]);
        resident.filled(100..101);
        resident.filled(200..203);
        assert_eq!(evicted(&resident, |_| true), [101..102, 104..107]);
    }

    #[test]
    fn if_no_page_may_go_none_does() {
        let resident = Resident::new(16);
        resident.filled(0..40);
        assert_eq!(evicted(&resident, |_| false), [0..0; 0]);
        assert_eq!(evicted(&resident, |_| true), vec![0..25; 1]);
        resident.filled(100..200);
        resident.keep();
        assert_eq!(evicted(&resident, |_| true), [0..0; 0]);
    }
}
