//! The global clock: the sequence number of the last commit.

use super::sync::{AtomicU64, Ordering};

/// Alone on its cache lines, as each commit changes it.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn new() -> Self {
        Clock(AtomicU64::new(0))
    }

    /// The caller sees every stripe of commits up to the number as owned or newer.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// The caller owns all stripes that it changes, which this publishes to [`Clock::now`].
    #[inline]
    pub(crate) fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}
