//! The freedom that tracking has: which pages to protect again, and when. A backend knows which
//! pages are writable and reports them, whatever it is advised; so wrong advice costs time, and
//! never a store.

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

/// The source of a tracker's advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Costs, as they were measured and are measured at work.
    #[default]
    Measured,
    /// Chance, from a seed: tests show that no advice loses a store.
    #[cfg(test)]
    Random(u64),
}

/// Advice on pages that were compared.
pub(super) trait Policy: Send + Sync + 'static {
    /// The object has so many pages now.
    fn grow(&mut self, pages: usize);

    /// Whether a page stays writable, so that its stores are not noticed and it is compared every
    /// time; otherwise its next store costs a fault. `changed`: whether it had changed.
    fn leaves(&mut self, page: usize, changed: bool) -> bool;
}

/// Advice for a backend that scans page tables.
pub(super) trait ScanPolicy: Policy {
    /// Comparing so many pages took so long.
    fn compared(&mut self, pages: u64, took: Duration);

    /// These pages had changed; protecting the others took so many calls, or failed.
    fn settled(&mut self, changed: &[PageRange], calls: Option<usize>);

    /// Whether changes of these pages alone are worth no other decision than the last one, if that
    /// left all as they were.
    fn is_steady(&self, changed: &[PageRange]) -> bool;

    /// Whether the scan that finds writable pages protects them in the same step.
    fn protects_at_scan(&self) -> bool;

    /// Whether to protect a chunk of `count` pages whole, absent ones included, of which `existing`
    /// exist.
    fn protects_whole(&mut self, existing: usize, count: usize) -> bool;

    /// Whether to look into chunks that are not protected whole although no page can have come to
    /// exist there.
    fn always_asks(&self) -> bool;

    /// Looking there took so long.
    fn asked(&mut self, took: Duration);

    /// Whether to time the scans of an object of `pages` pages.
    fn times_scans(&self, pages: usize) -> bool;

    /// A scan took so long, and found so many dirty pages.
    fn scanned(&mut self, pages: usize, took: Duration, dirty: u64);

    /// Whether it is time to ask [`drops`](ScanPolicy::drops).
    fn may_drop(&self) -> bool;

    /// Whether to drop all pages from memory: so many, under so many page tables that are full and
    /// sparse.
    fn drops(&mut self, present: u64, full: u64, sparse: u64) -> bool;

    /// All pages were dropped.
    fn dropped(&mut self);
}

/// Advice for a backend whose faults a signal handler takes.
pub(super) trait FaultPolicy: Policy {
    /// Into how many mappings the handler may split the range before it makes neighbours writable,
    /// too.
    fn splits(&mut self, most: usize) -> usize;

    /// Whether to protect everything by one call, instead of so many runs.
    fn protects_all(&mut self, runs: usize) -> bool;
}
