//! Counters of a lane.

use std::time::Duration;

/// Counters of a lane since this process has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUse {
    /// Batches made durable.
    pub batches: u64,
    /// Durable writes they took.
    pub commits: u64,
    /// Bytes written to the lane.
    pub bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Time in durable writes, if times are taken.
    pub publish: Duration,
    /// Time bringing batches into primaries or page caches, if times are taken.
    pub apply: Duration,
}

impl LaneUse {
    /// Counts one durable write.
    pub(super) fn count(&mut self, batches: usize, bytes: u64) {
        self.batches += batches as u64;
        self.commits += 1;
        self.bytes += bytes;
    }
}
