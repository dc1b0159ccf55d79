//! When to drop clean pages: pay rent until it would have bought the house.
//!
//! A scan costs as much as page tables are populated, however few pages are dirty. What scans cost
//! beyond their due is added up; once it exceeds what dropping everything would cost (each page has
//! to be faulted in again), everything is dropped. Whatever comes next, that is at most twice the
//! best that could have been done.

use std::time::Instant;

/// Nanoseconds of a scan that need no justification: about ten times an empty scan.
const FREE_NS: u64 = 3_000;
/// Nanoseconds of a scan that each dirty page justifies: about what comparing it costs.
const PER_DIRTY_NS: u64 = 250;
/// Upper bound of what scanning one page takes; caps what a preempted scan is charged.
const PER_PAGE_NS: u64 = 4;
/// Cost of renewing a mapping, and of faulting one page in again.
const RENEW_NS: u64 = 50_000;
const REFAULT_NS: u64 = 700;

#[derive(Debug)]
pub(super) struct Rent {
    owed: u64,
    /// Above this, the price is looked at again.
    threshold: u64,
}

impl Default for Rent {
    fn default() -> Rent {
        Rent { owed: 0, threshold: 2 * RENEW_NS }
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
        self.owed += took.saturating_sub(FREE_NS + dirty.saturating_mul(PER_DIRTY_NS));
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.owed > self.threshold
    }

    /// Whether to drop `present` pages now; if not, when to think about it again.
    pub(super) fn decide(&mut self, present: u64) -> bool {
        let price = RENEW_NS + present * REFAULT_NS;
        self.threshold = price;
        self.owed > price
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
        while !(rent.is_due() && rent.decide(1000)) {
            rent.charge(FREE_NS + 40_000, 0);
            scans += 1;
        }
        assert_eq!(scans, (RENEW_NS + 1000 * REFAULT_NS) / 40_000 + 1);
    }

    #[test]
    fn small_objects_are_not_timed() {
        assert!(Rent::default().start(256).started.is_none());
        assert!(Rent::default().start(1 << 24).started.is_some());
    }
}
