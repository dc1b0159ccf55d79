//! The policy for scanned page tables: decides by costs, and measures those that vary.
//!
//! Invariant: `again` counts the pages left since the last settle because they had changed once
//! more.

use super::hot::HotPages;
use super::reclaim::Reclaim;
use super::{Policy, ScanPolicy};
use crate::dirty::range::PageRange;
use std::time::Duration;

const MANY: usize = 4;
const DEAR: Duration = Duration::from_nanos(2_000);

#[derive(Debug, Default)]
pub(crate) struct Adaptive {
    pages: usize,
    hot: HotPages,
    again: usize,
    protects_at_scan: bool,
    dear: bool,
    reclaim: Reclaim,
}

impl Adaptive {
    /// Protecting at the scan saves `calls` calls; each page that changes again costs a fault
    /// instead.
    fn decide(&mut self, calls: usize) {
        if self.again + calls > 0 {
            self.protects_at_scan =
                if self.protects_at_scan { self.again < 2 * calls } else { self.again < calls };
        }
    }
}

impl Policy for Adaptive {
    fn grow(&mut self, pages: usize) {
        self.pages = pages;
        self.hot.grow(pages);
    }

    #[inline]
    fn leaves(&mut self, page: usize, changed: bool) -> bool {
        let hot = self.hot.get(page);
        self.again += usize::from(hot && changed);
        hot
    }
}

impl ScanPolicy for Adaptive {
    #[inline]
    fn compared(&mut self, pages: u64, took: Duration) {
        self.hot.compared(pages, took);
    }

    fn settled(&mut self, changed: &[PageRange], calls: Option<usize>) {
        let telling = !self.hot.is_empty();
        self.hot.push(changed, self.pages);
        if let (Some(calls), true) = (calls, telling) {
            self.decide(calls);
        }
        self.again = 0;
    }

    #[inline]
    fn is_steady(&self, changed: &[PageRange]) -> bool {
        self.hot.newest() == changed
    }

    #[inline]
    fn protects_at_scan(&self) -> bool {
        self.protects_at_scan
    }

    fn protects_whole(&mut self, existing: usize, count: usize) -> bool {
        existing >= MANY.min(count)
    }

    #[inline]
    fn always_asks(&self) -> bool {
        !self.dear
    }

    fn asked(&mut self, took: Duration) {
        self.dear = took > DEAR;
    }

    #[inline]
    fn times_scans(&self, pages: usize) -> bool {
        Reclaim::times(pages)
    }

    fn scanned(&mut self, pages: usize, took: Duration, dirty: u64) {
        self.reclaim.scanned(pages, took, dirty);
    }

    #[inline]
    fn may_drop(&self) -> bool {
        self.reclaim.is_due()
    }

    fn drops(&mut self, present: u64, full: u64, sparse: u64) -> bool {
        self.reclaim.decide(present, full, sparse)
    }

    fn dropped(&mut self) {
        self.dear = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: &[usize]) -> Vec<PageRange> {
        pages.iter().map(|page| PageRange::new(*page, *page + 1)).collect()
    }

    fn protects(changed: &[usize], lately: &[usize], calls: Option<usize>, before: bool) -> bool {
        let mut policy = Adaptive { protects_at_scan: before, ..Adaptive::default() };
        policy.grow(1000);
        policy.settled(&pages(lately), None);
        changed.iter().for_each(|page| {
            policy.leaves(*page, true);
        });
        policy.settled(&pages(changed), calls);
        policy.protects_at_scan()
    }

    #[test]
    fn scans_protect_where_hardly_any_page_changes_again() {
        for before in [false, true] {
            assert_eq!(protects(&[1, 2], &[], Some(1), before), before, "nothing could have changed again");
            assert_eq!(protects(&[], &[7], Some(0), before), before, "nothing changed");
            assert_eq!(protects(&[7], &[7], None, before), before, "protecting failed");
            assert!(protects(&[1], &[7], Some(1), before));
            assert!(protects(&[1, 7, 300], &[7], Some(2), before));
            assert_eq!(protects(&[1, 7], &[7], Some(1), before), before);
            assert!(!protects(&[1, 7, 8], &[7, 8], Some(1), before));
        }
    }

    #[test]
    fn pages_that_changed_lately_are_left() {
        let mut policy = Adaptive::default();
        policy.grow(10);
        policy.settled(&pages(&[5]), Some(0));
        assert_eq!([4, 5].map(|page| policy.leaves(page, true)), [false, true]);
        assert_eq!([4, 5].map(|page| policy.leaves(page, false)), [false, true]);
        assert_eq!(policy.again, 1);
    }
}
