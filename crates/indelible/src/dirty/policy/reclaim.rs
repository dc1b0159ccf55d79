//! The reclaim policy: clean pages are dropped once their scans have cost as much (the ski-rental
//! rule).
//!
//! Scan costs beyond their due add up; once they exceed the cost of refaulting everything,
//! everything is dropped. The total is at most twice the optimum. If scans have not saved that
//! price by the next drop, it doubles.

use std::time::Duration;

/// About ten empty scans.
const FREE_NS: u64 = 3_000;
/// About a comparison.
const PER_DIRTY_NS: u64 = 250;
/// Caps the charge for a preempted scan.
const PER_PAGE_NS: u64 = 4;
/// Nanoseconds that a renewal, a full and a sparse page table, and refaulting a page take.
const RENEW_NS: u64 = 12_000;
const PER_FULL_TABLE_NS: u64 = 14_000;
const PER_SPARSE_TABLE_NS: u64 = 6_000;
const REFAULT_NS: u64 = 700;

#[derive(Debug, Default)]
pub(super) struct Reclaim {
    owed: u64,
    threshold: u64,
    floor: Option<u64>,
    last: u64,
    before: u64,
    paid: u64,
    saved: u64,
    doubled: u32,
}

impl Reclaim {
    #[inline]
    pub(super) fn times(pages: usize) -> bool {
        pages as u64 * PER_PAGE_NS > FREE_NS
    }

    pub(super) fn scanned(&mut self, pages: usize, took: Duration, dirty: u64) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.charge(took.min(pages as u64 * PER_PAGE_NS), dirty);
    }

    fn charge(&mut self, took: u64, dirty: u64) {
        let floor = self.floor.map_or(took, |floor| floor.min(took));
        self.floor = Some(floor);
        self.last = took;
        self.saved += self.before.saturating_sub(took);
        // Before the first drop, the floor itself may be due to droppable pages.
        let free = if self.paid == 0 { FREE_NS } else { FREE_NS.max(floor) };
        self.owed += took.saturating_sub(free + dirty.saturating_mul(PER_DIRTY_NS));
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.owed > self.threshold.max(RENEW_NS)
    }

    pub(super) fn decide(&mut self, present: u64, full: u64, sparse: u64) -> bool {
        let pages = present * REFAULT_NS + full * PER_FULL_TABLE_NS + sparse * PER_SPARSE_TABLE_NS;
        let price = (RENEW_NS + pages) << self.doubled;
        self.threshold = price;
        if self.owed <= price {
            return false;
        }
        let doubled = if self.saved < self.paid { (self.doubled + 1).min(16) } else { 0 };
        *self = Reclaim { before: self.last, paid: RENEW_NS + pages, doubled, ..Reclaim::default() };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rent_is_paid_until_it_reaches_the_price() {
        let mut reclaim = Reclaim::default();
        reclaim.charge(FREE_NS + 10 * PER_DIRTY_NS, 10);
        assert_eq!(reclaim.owed, 0);
        let mut scans = 0;
        while !(reclaim.is_due() && reclaim.decide(1000, 10, 20)) {
            reclaim.charge(FREE_NS + 40_000, 0);
            scans += 1;
        }
        let tables = 10 * PER_FULL_TABLE_NS + 20 * PER_SPARSE_TABLE_NS;
        assert_eq!(scans, (RENEW_NS + tables + 1000 * REFAULT_NS) / 40_000 + 1);
    }

    #[test]
    fn a_reclaim_that_did_not_help_becomes_dearer_and_the_floor_is_free() {
        let mut reclaim = Reclaim::default();
        reclaim.charge(1_000_000, 0);
        assert!(reclaim.decide(0, 0, 0));
        reclaim.charge(1_000_000, 0);
        assert_eq!(reclaim.owed, 0);
        reclaim.charge(3_000_000, 0);
        assert!(reclaim.decide(0, 0, 0));
        assert_eq!(reclaim.doubled, 1);
        reclaim.charge(100_000, 0);
        reclaim.charge(3_000_000, 0);
        assert!(reclaim.decide(0, 0, 0));
        assert_eq!(reclaim.doubled, 0);
    }

    #[test]
    fn ever_fresh_places_are_dropped_every_few_scans_for_good() {
        let mut reclaim = Reclaim::default();
        let (mut tables, mut dropped) = (0, 0);
        for _ in 0..10_000 {
            tables += 1;
            reclaim.charge(16_000 * tables, 1);
            if reclaim.is_due() && reclaim.decide(tables, 0, tables) {
                tables = 0;
                dropped += 1;
            }
        }
        assert!((2_000..5_000).contains(&dropped), "dropped {dropped} times");
    }

    #[test]
    fn small_objects_are_not_timed_and_a_preempted_scan_costs_what_one_can() {
        assert!(!Reclaim::times(256));
        assert!(Reclaim::times(1 << 24));
        let mut reclaim = Reclaim::default();
        reclaim.scanned(1 << 20, Duration::from_secs(1), 0);
        assert_eq!(reclaim.last, PER_PAGE_NS << 20);
    }
}
