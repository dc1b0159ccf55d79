use std::time::Duration;

/// Counters of a lane in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUse {
    /// Batches made durable.
    pub batches: u64,
    /// Durable writes for them.
    pub commits: u64,
    /// Bytes written to the lane.
    pub bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Time in durable writes, if timed.
    pub publish: Duration,
    /// Time applying batches, if timed.
    pub apply: Duration,
}

impl LaneUse {
    pub(super) fn count(&mut self, batches: usize, bytes: u64) {
        self.batches += batches as u64;
        self.commits += 1;
        self.bytes += bytes;
    }
}
