//! When to drop clean pages: pay rent until it would have bought the house.
//!
//! A scan costs as much as page tables are populated, however few pages are dirty. What scans cost
//! beyond their due is added up; once it exceeds what dropping everything would cost (each page has
//! to be faulted in again), everything is dropped. Whatever comes next, that is at most twice the
//! best that could have been done. If dropping had to be repeated soon, it did not help much, and
//! its price doubles.

use std::time::Instant;

/// Nanoseconds of a scan that need no justification: about ten times an empty scan.
const FREE_NS: u64 = 3_000;
/// Nanoseconds of a scan that each dirty page justifies: about what comparing it costs.
const PER_DIRTY_NS: u64 = 250;
/// Upper bound of what scanning one page takes; caps what a preempted scan is charged.
const PER_PAGE_NS: u64 = 4;
/// Cost of renewing a mapping, of clearing one full page table, of faulting one page in again.
const RENEW_NS: u64 = 50_000;
const PER_TABLE_NS: u64 = 14_000;
const REFAULT_NS: u64 = 700;

#[derive(Debug)]
pub(super) struct Rent {
    owed: u64,
    /// Above this, the price is looked at again.
    threshold: u64,
    /// What the cheapest scan since then took: dropping pages will not make one cheaper.
    floor: u64,
    /// Scans since pages were last dropped.
    scans: u64,
    /// How often the price has doubled.
    doubled: u32,
}

/// Dropping pages again after fewer scans did not pay.
const SOON: u64 = 64;

impl Default for Rent {
    fn default() -> Rent {
        Rent { owed: 0, threshold: 2 * RENEW_NS, floor: 0, scans: u64::MAX, doubled: 0 }
    }
}

pub(super) struct Timer {
    started: Option<Instant>,
    cap: u64,
}

impl Rent {
    /// Objects whose scan cannot cost more than is free are not timed.
    #[inline]
    pub(super) fn start(&self, pages: usize) -> Timer {
        let cap = pages as u64 * PER_PAGE_NS;
        Timer { started: (cap > FREE_NS).then(Instant::now), cap }
    }

    #[inline]
    pub(super) fn stop(&mut self, timer: Timer, dirty: impl FnOnce() -> u64) {
        if let Some(started) = timer.started {
            let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX).min(timer.cap);
            self.charge(took, dirty());
        }
    }

    fn charge(&mut self, took: u64, dirty: u64) {
        self.floor = self.floor.min(took);
        self.scans = self.scans.saturating_add(1);
        self.owed += took.saturating_sub(FREE_NS.max(self.floor) + dirty.saturating_mul(PER_DIRTY_NS));
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.owed > self.threshold
    }

    /// Whether to drop `present` pages under `tables` page tables now; if not, the threshold says when
    /// to think about it again.
    pub(super) fn decide(&mut self, present: u64, tables: u64) -> bool {
        let price = (RENEW_NS + tables * PER_TABLE_NS + present * REFAULT_NS) << self.doubled;
        self.threshold = price;
        if self.owed <= price {
            return false;
        }
        self.doubled = if self.scans < SOON { (self.doubled + 1).min(16) } else { 0 };
        self.owed = 0;
        self.scans = 0;
        self.floor = u64::MAX;
        self.threshold = (2 * RENEW_NS) << self.doubled;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rent_is_paid_until_it_reaches_the_price() {
        let mut rent = Rent::default();
        rent.charge(FREE_NS + 10 * PER_DIRTY_NS, 10);
        assert_eq!(rent.owed, 0);
        let mut scans = 0;
        while !(rent.is_due() && rent.decide(1000, 10)) {
            rent.charge(FREE_NS + 40_000, 0);
            scans += 1;
        }
        assert_eq!(scans, (RENEW_NS + 10 * PER_TABLE_NS + 1000 * REFAULT_NS) / 40_000 + 1);
    }

    #[test]
    fn what_did_not_help_becomes_dearer_and_the_floor_is_free() {
        let mut rent = Rent::default();
        rent.charge(1_000_000, 0);
        assert!(rent.decide(0, 0));
        // The same cost right after: it is the floor now.
        rent.charge(1_000_000, 0);
        assert_eq!(rent.owed, 0);
        rent.charge(3_000_000, 0);
        assert!(rent.decide(0, 0));
        assert_eq!(rent.doubled, 1);
        for _ in 0..SOON {
            rent.charge(100_000, 0);
        }
        rent.charge(100_000_000, 0);
        assert!(rent.decide(0, 0));
        assert_eq!(rent.doubled, 0);
    }

    #[test]
    fn small_objects_are_not_timed() {
        assert!(Rent::default().start(256).started.is_none());
        assert!(Rent::default().start(1 << 24).started.is_some());
    }
}
