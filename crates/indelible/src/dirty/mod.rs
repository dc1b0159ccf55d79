//! Dirty tracking: the pages of a writable shadow that may differ from the primary. Three rungs,
//! chosen at run time, share one interface ([`backend`]). [`policy`] makes the decisions that
//! affect only cost.
//!
//! A page is *dirty* when it may have been stored to since it was last settled.
//! [`Tracker::collect`] reports every dirty page; [`Tracker::settle`] tells the tracker which had
//! changed. Meanwhile no thread stores to the range, by the caller's promise or a hold.

mod backend;
mod bitmap;
#[cfg(test)]
mod broken;
mod chunks;
mod copies;
mod cut;
#[cfg(test)]
mod cut_tests;
mod explicit;
mod fault_log;
#[cfg(test)]
mod fault_log_tests;
mod gate;
mod handler;
#[cfg(test)]
mod handler_tests;
mod marked;
mod marks;
mod mprotect;
mod own_pages;
mod page_tables;
mod pages;
mod policy;
mod range;
#[cfg(test)]
mod refusing;
mod registry;
mod reprotect;
mod rung;
#[cfg(test)]
mod tests;
mod turn;
mod watch;
mod wp_async;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use cut::{Beside, Bystanders};
pub(crate) use cut::{Cut, Unknown};
pub(crate) use marks::DirtyLines;
pub(crate) use policy::Advice;
pub(crate) use range::PageRange;
#[cfg(test)]
pub(crate) use refusing::Refused;
pub(crate) use rung::Rung;
pub(crate) use wp_async::WatchedBy;

use crate::sys::PAGE;
use backend::Backend;
use explicit::Explicit;
use marked::Marked;
use mprotect::Mprotect;
use own_pages::OwnPages;
#[cfg(test)]
use policy::Random;
use policy::{Adaptive, SecondChance};
use wp_async::WpAsync;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DirtyError {
    #[error("tracking stores by {rung} is not possible here: {source}")]
    Unavailable { rung: Rung, source: io::Error },
    #[error("other threads store to it all the time")]
    Restless,
    #[error("cannot {action} the stores of an object: {source}")]
    Io { action: &'static str, source: io::Error },
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> DirtyError {
    move |source| DirtyError::Io { action, source }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackerParams {
    pub(crate) base: usize,
    pub(crate) len: usize,
    pub(crate) rung: Rung,
    pub(crate) watched_by: WatchedBy,
    pub(crate) filled: bool,
    pub(crate) advice: Advice,
}

fn backend(params: &TrackerParams) -> io::Result<Box<dyn Backend>> {
    let TrackerParams { base, len, rung, watched_by, filled, advice } = *params;
    let pages = len / PAGE;
    Ok(match (rung, advice) {
        (Rung::WpAsync | Rung::FaultLog, Advice::Measured) => {
            let by_log = rung == Rung::FaultLog;
            Box::new(WpAsync::new(base, pages, watched_by, filled, by_log, Adaptive::default())?)
        }
        (Rung::Mprotect, Advice::Measured) => Box::new(Mprotect::new(base, pages, SecondChance::default())?),
        #[cfg(test)]
        (Rung::WpAsync | Rung::FaultLog, Advice::Random(seed)) => {
            let by_log = rung == Rung::FaultLog;
            Box::new(WpAsync::new(base, pages, watched_by, filled, by_log, Random::new(seed))?)
        }
        #[cfg(test)]
        (Rung::Mprotect, Advice::Random(seed)) => Box::new(Mprotect::new(base, pages, Random::new(seed))?),
        (Rung::Explicit, _) => Box::new(Explicit::new(base, len)),
    })
}

pub(crate) struct Tracker {
    rung: Rung,
    backend: Box<dyn Backend>,
    marked: Marked,
    own: OwnPages,
    held: bool,
    gated: bool,
    closed: bool,
    late: Option<Box<dyn Backend>>,
}

impl Tracker {
    pub(crate) fn new(params: TrackerParams) -> Result<Tracker, DirtyError> {
        let rung = params.rung;
        let backend = backend(&params).map_err(|source| DirtyError::Unavailable { rung, source })?;
        let (marked, own) = (Marked::new(params.len / PAGE), OwnPages::new(params.len / PAGE));
        Ok(Tracker { rung, backend, marked, own, held: false, gated: false, closed: false, late: None })
    }

    pub(crate) fn rung(&self) -> Rung {
        self.rung
    }

    /// Appends ascending. After an error, or without a `settle`, the next call reports the pages
    /// again.
    #[inline]
    pub(crate) fn collect(&mut self, out: &mut Vec<PageRange>) -> Result<(), DirtyError> {
        let kept = out.len();
        self.backend.collect(out).map_err(failed("collect"))?;
        // Marks after the moment of a cut are the next psync's.
        if self.closed || !self.held {
            self.marked.collect(self.held, out, kept);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn settle(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
    ) -> Result<(), DirtyError> {
        self.backend.settle(changed, unchanged).map_err(failed("settle"))?;
        for runs in [changed, unchanged] {
            self.marked.settle(runs);
            self.own.psynced(runs);
        }
        Ok(())
    }

    /// Before `settle`: the dearer, the sooner an unchanged page is protected again.
    #[inline]
    pub(crate) fn compared(&mut self, pages: u64, took: Duration) {
        self.backend.compared(pages, took);
    }

    pub(crate) fn found_by_name(&self) -> u64 {
        self.backend.found_by_name()
    }

    pub(crate) fn marks(&self) -> &Arc<DirtyLines> {
        &self.marked.lines
    }

    /// Marks of `former` count. The handler still knows the range, for threads that met a hold of
    /// it.
    pub(crate) fn replace(&mut self, former: Tracker) {
        (self.marked, self.own, self.late) = (former.marked, former.own, Some(former.backend));
    }

    pub(crate) fn succeed(&mut self, marks: Arc<DirtyLines>) {
        self.marked.succeed(marks);
    }

    #[inline]
    pub(crate) fn lines(&self, page: u64) -> u64 {
        match self.rung {
            Rung::Explicit => self.marked.lines(page as usize),
            Rung::WpAsync | Rung::FaultLog | Rung::Mprotect => u64::MAX,
        }
    }

    /// Freezes the pages that [`collect`](Self::collect) reports at one moment, until
    /// [`release`](Self::release). If any are marked, all stores wait.
    ///
    /// While stores wait, a store of the calling thread dies of SIGSEGV, and a system call that
    /// writes there fails with `EFAULT`. `gated`: the caller's gate keeps out all threads that
    /// store to reachable values under a lock; see [`DirtyLines::rely_on_gate`].
    pub(crate) fn hold(&mut self, gated: bool, cut: Cut<'_>) -> Result<(), DirtyError> {
        self.gated = gated && self.rung == Rung::Explicit && self.marked.lines.rely_on_gate();
        self.closed = self.gated;
        if !self.gated {
            let part = self.rung.is_wp_async() && self.marked.is_empty();
            let cut = if part || matches!(cut, Cut::Pages(_)) { cut } else { Cut::Closed };
            self.closed = matches!(cut, Cut::Closed);
            self.backend.hold(cut).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => DirtyError::Restless,
                _ => failed("hold up")(error),
            })?;
        }
        self.held = true;
        Ok(())
    }

    #[inline]
    pub(crate) fn copy_of(&self, page: u64) -> Option<*const u8> {
        if self.held { self.backend.copy_of(page) } else { None }
    }

    pub(crate) fn release(&mut self) -> Result<(), DirtyError> {
        self.held = false;
        if std::mem::take(&mut self.gated) {
            self.marked.lines.rely_no_more();
            return Ok(());
        }
        self.backend.release().map_err(failed("let pass"))
    }

    pub(crate) fn grow(&mut self, len: usize) -> Result<(), DirtyError> {
        let pages = len / PAGE;
        self.backend.grow(pages).map_err(failed("track"))?;
        self.marked.grow(pages);
        self.own.grow(pages);
        Ok(())
    }

    pub(crate) fn limit_own_pages(&mut self, limit: usize) {
        self.own.set_limit(limit);
    }

    /// Whether the range has more own pages than its limit, of which some may be dropped. `beside`:
    /// threads store, whose system calls a hold may fail; a program asks for that by a limit.
    #[inline]
    pub(crate) fn has_surplus(&self, beside: bool) -> bool {
        // A device may have pinned pages, and store to dropped ones.
        self.own.is_over() && !self.marked.lines.is_pinned() && !(beside && self.own.has_default())
    }

    /// Psynced pages, and few between them. The caller tells which were not [dropped](Self::kept).
    pub(crate) fn surplus(&mut self) -> Vec<PageRange> {
        self.own.choose()
    }

    pub(crate) fn kept(&mut self, pages: &[PageRange]) {
        self.own.kept(pages);
    }

    /// Ask after a `settle`, outside a hold.
    #[inline]
    pub(crate) fn renewal_due(&mut self) -> Result<bool, DirtyError> {
        // A device may have pinned pages, and store to dropped ones.
        if self.marked.lines.is_pinned() {
            return Ok(false);
        }
        self.backend.drop_due().map_err(failed("scan"))
    }

    /// No store may come between the renewal and the end of this call.
    pub(crate) fn renewed(&mut self) -> Result<(), DirtyError> {
        self.own.clear();
        self.backend.dropped().map_err(failed("track"))
    }

    #[cfg(test)]
    pub(crate) fn refuse(&mut self, refused: Refused) {
        let backend = std::mem::replace(&mut self.backend, Box::new(Explicit::new(0, 0)));
        self.backend = Box::new(refusing::Refusing { backend, next: Some(refused) });
    }

    #[cfg(test)]
    pub(crate) fn is_held(&self) -> bool {
        self.held || self.marked.lines.is_relied_on()
    }
}
