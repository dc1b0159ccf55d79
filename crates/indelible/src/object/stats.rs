//! Counts of psync's work, and times if asked for.

use std::time::{Duration, Instant};

/// Counters of an attachment since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PsyncStats {
    /// Pages compared with the primary.
    pub pages_compared: u64,
    /// Pages read from the medium for that; the others were in memory.
    pub pages_read: u64,
    /// Pages kept in memory now, so that comparing them reads nothing: at most 64 MiB, and none
    /// where the medium is memory.
    pub pages_kept: u64,
    /// Pages in which a line had changed.
    pub pages_changed: u64,
    /// Bytes of changed lines given to the lane.
    pub logged_bytes: u64,
    /// Bytes written straight to the primary because no psync had covered them before.
    pub direct_bytes: u64,
    /// Whether times are taken; they cost about 50 ns each.
    pub timed: bool,
    /// Finding the dirty pages.
    pub collect: Duration,
    /// Writing straight to the primary, barriers included.
    pub direct: Duration,
    /// Comparing and copying the changed lines.
    pub compare: Duration,
    /// Lane, barrier and apply; see `LaneUse` for the parts.
    pub commit: Duration,
    /// Protecting pages again.
    pub settle: Duration,
}

impl PsyncStats {
    #[inline]
    pub(crate) fn start(&self) -> Option<Instant> {
        self.timed.then(Instant::now)
    }

    #[inline]
    pub(crate) fn collected(&mut self, start: Option<Instant>) {
        add(&mut self.collect, start);
    }

    #[inline]
    pub(crate) fn wrote_direct(&mut self, start: Option<Instant>) {
        add(&mut self.direct, start);
    }

    #[inline]
    pub(crate) fn compared(&mut self, start: Option<Instant>) {
        add(&mut self.compare, start);
    }

    #[inline]
    pub(crate) fn committed(&mut self, start: Option<Instant>) {
        add(&mut self.commit, start);
    }

    #[inline]
    pub(crate) fn settled(&mut self, start: Option<Instant>) {
        add(&mut self.settle, start);
    }
}

#[inline]
fn add(total: &mut Duration, start: Option<Instant>) {
    if let Some(start) = start {
        *total += start.elapsed();
    }
}
