use super::{FaultPolicy, Policy, ScanPolicy};
use crate::dirty::range::PageRange;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    fn below(&self, bound: u64) -> u64 {
        let next = |seed: u64| {
            Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        (before.unwrap_or_else(|seed| seed) >> 33) % bound
    }

    fn coin(&self) -> bool {
        self.below(2) == 0
    }
}

impl Policy for Random {
    fn grow(&mut self, _: usize) {}

    fn leaves(&mut self, _: usize, _: bool) -> bool {
        self.coin()
    }
}

impl ScanPolicy for Random {
    fn compared(&mut self, _: u64, _: Duration) {}

    fn settled(&mut self, _: &[PageRange], _: Option<usize>) {}

    fn is_steady(&self, _: &[PageRange]) -> bool {
        self.coin()
    }

    fn protects_at_scan(&self) -> bool {
        self.coin()
    }

    fn protects_whole(&mut self, _: usize, _: usize) -> bool {
        self.below(8) == 0
    }

    fn always_asks(&self) -> bool {
        self.coin()
    }

    fn asked(&mut self, _: Duration) {}

    fn times_scans(&self, _: usize) -> bool {
        self.coin()
    }

    fn scanned(&mut self, _: usize, _: Duration, _: u64) {}

    fn uses_log(&self) -> bool {
        self.below(8) != 0
    }

    fn may_drop(&self) -> bool {
        self.below(4) == 0
    }

    fn drops(&mut self, _: u64, _: u64, _: u64) -> bool {
        self.coin()
    }

    fn dropped(&mut self) {}
}

impl FaultPolicy for Random {
    fn splits(&mut self, most: usize) -> usize {
        most.min(1 << self.below(12))
    }

    fn protects_all(&mut self, _: usize) -> bool {
        self.coin()
    }
}
