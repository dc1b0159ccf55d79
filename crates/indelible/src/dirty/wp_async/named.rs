//! Dirty pages by name, from the log of faults: the cost follows the changes.
//!
//! A scan finds all pages that are unprotected in known chunks, or dirty in new ones; later a page
//! becomes so only by a fault. While the log is complete (`fault_log.rs`), the dirty pages are
//! those left unprotected, and named ones that are unprotected or dirty. Otherwise the same
//! `collect` scans, and later names add to that scan.
//!
//! Invariants, while `since` is set:
//! 1. `since` was read before a scan of the whole range. Every page that lost its protection, or
//!    appeared, after that is in `names`, or still in the log, or was looked at.
//! 2. In a known chunk, every unprotected page that a scan or look found is in `open`, until a
//!    `settle` protects it.
//!
//! Other processes' stores are in no log of this process. Scans find them: one after each fork, and
//! one [`LATE`] after the last.

use super::WpAsync;
#[cfg(test)]
use crate::dirty::broken::Broken;
use crate::dirty::fault_log::{Follower, Reading};
use crate::dirty::policy::ScanPolicy;
use crate::dirty::range::{self, PageRange};
use crate::sys::{PAGE, fork};
use std::io;
use std::time::{Duration, Instant};

/// Time from scan to scan, and the least multiple of a scan's duration: scans take at most 1/64 of
/// the time.
const LATE: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 100 });
const SHARE: u32 = 64;
const LOOK: Duration = Duration::from_nanos(if cfg!(test) { 0 } else { 1_000 });

#[derive(Debug, Default)]
pub(super) struct Named {
    follower: Option<Follower>,
    refused: bool,
    since: Option<Reading>,
    forks: u32,
    open: Vec<PageRange>,
    names: Vec<u64>,
    scan: Option<(Instant, Duration)>,
    pub(super) found: u64,
}

impl Named {
    pub(super) fn doubt(&mut self) {
        self.since = None;
    }

    #[inline]
    pub(super) fn leave(&mut self) {
        if self.follower.take().is_some() {
            *self = Named { found: self.found, ..Named::default() };
        }
    }

    /// Whether each page that was stored to since the last `collect` is in `open` or `names`.
    #[inline]
    fn is_complete(&mut self) -> bool {
        let (Some(follower), Some(since), Some((ended, took))) = (&self.follower, self.since, self.scan)
        else {
            return false;
        };
        if self.forks != fork::count() || ended.elapsed() >= LATE.max(took * SHARE) {
            return false;
        }
        if follower.read(Some(since), &mut self.names) != Some(since) {
            return false;
        }
        self.names.sort_unstable();
        self.names.dedup();
        self.names.len() < 2 || LOOK * self.looks() < took
    }

    fn looks(&self) -> u32 {
        let chunks = self.names.chunk_by(|a, b| a / 512 == b / 512).count();
        u32::try_from(chunks).unwrap_or(u32::MAX)
    }

    fn before_scan(&mut self, base: usize, pages: usize) {
        self.doubt();
        if self.follower.is_none() && !self.refused {
            self.follower = Follower::join(base, pages * PAGE);
            self.refused = self.follower.is_none();
        }
        self.forks = fork::count();
        let follower = self.follower.as_ref();
        self.since = follower.and_then(|follower| follower.read(None, &mut self.names));
        // The scan covers them.
        self.names.clear();
    }

    fn after_scan(&mut self, took: Duration) {
        self.scan = Some((Instant::now(), took));
        let (Some(follower), Some(since)) = (&self.follower, self.since) else { return };
        let later = follower.read(Some(since), &mut self.names);
        if !later.is_some_and(|later| since.stands(later)) {
            self.doubt();
        }
    }

    fn left_open(&mut self, found: &[PageRange], protected: &[PageRange]) {
        self.open = range::without(found, protected);
    }
}

impl<P: ScanPolicy> WpAsync<P> {
    /// Finds dirty pages by name or by a scan. Returns the duration of a scan that the log did not
    /// need.
    #[inline]
    pub(super) fn find(&mut self, kept: usize, out: &mut Vec<PageRange>) -> io::Result<Option<Duration>> {
        // A fault service adds pages without a fault.
        let by_log = self.by_log && self.registers && self.policy.uses_log();
        if !by_log {
            self.named.leave();
            let started = self.policy.times_scans(self.pages).then(Instant::now);
            let asks = self.must_ask();
            self.gather(asks, kept, out)?;
            return Ok(started.map(|started| started.elapsed()));
        }
        if self.named.is_complete() {
            self.look(kept, out)?;
            self.named.found += 1;
            if let (Some(follower), Some((_, took))) = (&self.named.follower, self.named.scan) {
                follower.spared(took);
            }
            return Ok(None);
        }
        let due = self.named.since.is_none();
        self.named.before_scan(self.base, self.pages);
        let started = Instant::now();
        let asks = self.must_ask();
        self.gather(asks, kept, out)?;
        let took = started.elapsed();
        self.named.after_scan(took);
        Ok((due || self.named.since.is_none()).then_some(took))
    }

    fn look(&mut self, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let (mut names, open) = (std::mem::take(&mut self.named.names), std::mem::take(&mut self.named.open));
        out.extend_from_slice(&open);
        // Looks into new chunks would count their pages twice.
        let sparse = self.sparse;
        let looked = self.look_at(&names, &open, kept, out);
        self.sparse = sparse;
        names.clear();
        (self.named.names, self.named.open) = (names, open);
        range::normalise(out, kept);
        looked
    }

    fn look_at(
        &mut self,
        names: &[u64],
        open: &[PageRange],
        kept: usize,
        out: &mut Vec<PageRange>,
    ) -> io::Result<()> {
        let mut at = 0;
        while let Some(first) = names.get(at).map(|name| *name as usize).filter(|page| *page < self.pages) {
            let chunk = self.chunks.around(first);
            let last = names[at..].iter().take_while(|name| **name < chunk.end()).count() + at;
            let pages = PageRange::new(first, names[last - 1] as usize + 1);
            at = last;
            if !self.chunks.is_known(first) {
                self.existing(chunk, kept, out)?;
            } else if !range::cover(open, &[pages]) {
                self.unprotected(pages, kept, out)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn found(&mut self, kept: usize, out: &[PageRange]) {
        if self.named.since.is_some() {
            range::normalise(&mut self.pending, 0);
            self.named.left_open(&out[kept..], &self.pending);
        }
    }

    pub(super) fn settled(&mut self, changed: &[PageRange], unchanged: &[PageRange]) {
        if self.named.since.is_none() {
            return;
        }
        let mut told = [changed, unchanged].concat();
        range::normalise(&mut told, 0);
        let mut open = range::without(&self.named.open, &told);
        let left = range::without(self.plan.left(), &self.pending);
        open.extend(range::without(&left, self.plan.protect()));
        range::normalise(&mut open, 0);
        #[cfg(test)]
        if Broken::OpenForgotten.is_on() {
            open.clear();
        }
        self.named.open = open;
    }
}
