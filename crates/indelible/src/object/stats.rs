use std::time::{Duration, Instant};

/// Counters since the attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PsyncStats {
    /// Pages compared with the primary.
    pub pages_compared: u64,
    /// Compared pages that were read from the medium.
    pub pages_read: u64,
    /// Pages of the primary kept in memory for comparisons, at most 64 MiB.
    pub pages_kept: u64,
    /// Psyncs whose dirty pages the kernel's log of faults named, without a scan, since the object
    /// was attached or mapped anew.
    pub found_by_name: u64,
    /// Pages with a changed line.
    pub pages_changed: u64,
    /// Bytes of changed lines logged in the lane.
    pub logged_bytes: u64,
    /// Bytes of never-psynced pages written straight to the primary.
    pub direct_bytes: u64,
    /// Whether times are taken; each costs about 50 ns.
    pub timed: bool,
    /// Time to find dirty pages.
    pub collect: Duration,
    /// Time of straight writes to the primary, with barriers.
    pub direct: Duration,
    /// Time to compare and copy changed lines.
    pub compare: Duration,
    /// Time of lane, barrier and apply; see `LaneUse` for the parts.
    pub commit: Duration,
    /// Time to protect pages again.
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
