//! Which pages to protect again, and when. Wrong advice costs time, never a store.

mod adaptive;
mod hot;
#[cfg(test)]
mod random;
mod reclaim;
mod second_chance;

use super::range::PageRange;
use std::time::Duration;

pub(super) use adaptive::Adaptive;
#[cfg(test)]
pub(super) use random::Random;
pub(super) use second_chance::SecondChance;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Advice {
    #[default]
    Measured,
    #[cfg(test)]
    Random(u64),
}

pub(super) trait Policy: Send + Sync + 'static {
    fn grow(&mut self, pages: usize);

    /// If not, its next store faults. `changed`: it had changed.
    fn leaves(&mut self, page: usize, changed: bool) -> bool;
}

pub(super) trait ScanPolicy: Policy {
    fn compared(&mut self, pages: u64, took: Duration);

    fn settled(&mut self, changed: &[PageRange], calls: Option<usize>);

    fn is_steady(&self, changed: &[PageRange]) -> bool;

    fn protects_at_scan(&self) -> bool;

    fn protects_whole(&mut self, existing: usize, count: usize) -> bool;

    fn always_asks(&self) -> bool;

    fn asked(&mut self, took: Duration);

    fn times_scans(&self, pages: usize) -> bool;

    fn scanned(&mut self, pages: usize, took: Duration, dirty: u64);

    fn uses_log(&self) -> bool {
        true
    }

    fn may_drop(&self) -> bool;

    fn drops(&mut self, present: u64, full: u64, sparse: u64) -> bool;

    fn dropped(&mut self);
}

pub(super) trait FaultPolicy: Policy {
    fn splits(&mut self, most: usize) -> usize;

    fn protects_all(&mut self, runs: usize) -> bool;
}
