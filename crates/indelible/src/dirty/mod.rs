//! Dirty tracking: the pages of a writable shadow that may differ from the primary. There are three
//! rungs, chosen at run time, with the same interface and the same guarantees.
//!
//! A page is *dirty* when it may have been stored to since it was last settled. [`Tracker::collect`]
//! reports every dirty page; [`Tracker::settle`] tells the tracker which of them had changed.
//! Between the two, and in `settle` itself, nobody stores to the range: the caller's psync ensures
//! that (in Rust by borrowing, in C by the caller's promise), or a hold does.

mod bitmap;
mod chunks;
mod gate;
mod handler;
#[cfg(test)]
mod handler_tests;
mod hot;
mod marked;
mod marks;
mod mprotect;
mod pages;
mod range;
mod reclaim;
mod registry;
mod reprotect;
#[cfg(test)]
mod tests;
mod turn;
mod watch;
mod wp_async;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use marks::DirtyLines;
pub(crate) use range::PageRange;
pub(crate) use wp_async::WatchedBy;

use crate::sys::PAGE;
use crate::sys::pagemap::Pagemap;
use crate::sys::uffd::Uffd;
use gate::Gate;
use marked::Marked;
use mprotect::Mprotect;
use wp_async::WpAsync;

/// How stores are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    /// userfaultfd `WP_ASYNC` and `PAGEMAP_SCAN`.
    WpAsync,
    /// Memory protection and SIGSEGV.
    Mprotect,
    /// The program marks what it changed.
    Explicit,
}

impl Rung {
    pub(crate) const ALL: [Rung; 3] = [Rung::WpAsync, Rung::Mprotect, Rung::Explicit];

    /// The best rung that works without marks from the caller.
    pub(crate) fn best() -> Rung {
        if Rung::WpAsync.available() { Rung::WpAsync } else { Rung::Mprotect }
    }

    /// Whether the running system offers it.
    pub(crate) fn available(self) -> bool {
        match self {
            Rung::WpAsync => Uffd::wp_async().is_ok() && Pagemap::supported(),
            Rung::Mprotect | Rung::Explicit => true,
        }
    }

    /// Whether the range has to be mapped read-only for the tracker to begin with.
    pub(crate) fn starts_read_only(self) -> bool {
        self == Rung::Mprotect
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::WpAsync => "wp-async",
            Rung::Mprotect => "mprotect",
            Rung::Explicit => "explicit",
        })
    }
}

impl FromStr for Rung {
    type Err = UnknownRung;

    fn from_str(text: &str) -> Result<Rung, UnknownRung> {
        Rung::ALL.into_iter().find(|rung| rung.to_string() == text).ok_or_else(|| UnknownRung(text.into()))
    }
}

/// A word that names no rung.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no way to track stores: use wp-async, mprotect or explicit")]
pub(crate) struct UnknownRung(String);

/// Why tracking failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirtyError {
    /// The kernel does not offer the rung that was asked for.
    #[error("tracking stores by {rung} is not possible here: {source}")]
    Unavailable { rung: Rung, source: io::Error },
    /// A call of the operating system failed; dirty pages stay dirty.
    #[error("cannot {action} the stores of an object: {source}")]
    Io { action: &'static str, source: io::Error },
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> DirtyError {
    move |source| DirtyError::Io { action, source }
}

/// Parameters of a tracker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackerParams {
    /// First byte and length of the mapping, multiples of the page size.
    pub(crate) base: usize,
    pub(crate) len: usize,
    pub(crate) rung: Rung,
    pub(crate) watched_by: WatchedBy,
    /// The pages were filled in memory (not faulted in from a file) and equal the primary.
    pub(crate) filled: bool,
}

/// Notices the stores to one writable mapping.
pub(crate) struct Tracker {
    rung: Rung,
    kind: Kind,
    /// Lines that were marked, on every rung.
    marked: Marked,
    filled: bool,
    /// Stores are held up.
    held: bool,
    /// Holds up stores on rungs without a handler of their own; made by the first hold.
    gate: Gate,
}

enum Kind {
    WpAsync(Box<WpAsync>),
    Mprotect(Mprotect),
    /// Finds nothing by itself.
    Explicit,
}

impl Tracker {
    /// Nothing is dirty at first. The mapping outlives the tracker.
    pub(crate) fn new(params: TrackerParams) -> Result<Tracker, DirtyError> {
        let TrackerParams { base, len, rung, watched_by, filled } = params;
        let pages = len / PAGE;
        let kind = match rung {
            Rung::WpAsync => {
                WpAsync::new(base, pages, watched_by, filled).map(|rung| Kind::WpAsync(Box::new(rung)))
            }
            Rung::Mprotect => Mprotect::new(base, pages).map(Kind::Mprotect),
            Rung::Explicit => Ok(Kind::Explicit),
        };
        let kind = kind.map_err(|source| DirtyError::Unavailable { rung, source })?;
        let (marked, gate) = (Marked::new(pages), Gate::new(base, len));
        Ok(Tracker { rung, kind, marked, filled, held: false, gate })
    }

    pub(crate) fn rung(&self) -> Rung {
        self.rung
    }

    /// Appends to `out`, in ascending order, the pages that may differ from the primary since they
    /// were last settled. After an error, or without a `settle`, the next call reports them again.
    #[inline]
    pub(crate) fn collect(&mut self, out: &mut Vec<PageRange>) -> Result<(), DirtyError> {
        let kept = out.len();
        match &mut self.kind {
            Kind::WpAsync(rung) => rung.collect(out).map_err(failed("collect"))?,
            Kind::Mprotect(rung) => rung.collect(out),
            Kind::Explicit => {}
        }
        self.marked.collect(self.held, out, kept);
        Ok(())
    }

    /// Tells that everything the last `collect` reported now equals the primary: `changed` after
    /// its lines were committed and applied, `unchanged` as it was. A page that changes time after
    /// time is left unprotected, one that has not changed lately is protected again.
    ///
    /// An error loses nothing: the pages concerned are reported again.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
    ) -> Result<(), DirtyError> {
        match &mut self.kind {
            Kind::WpAsync(rung) => rung.settle(changed, unchanged),
            Kind::Mprotect(rung) => rung.settle(changed, unchanged),
            Kind::Explicit => Ok(()),
        }
        .map_err(failed("settle"))?;
        self.marked.settle(changed);
        self.marked.settle(unchanged);
        Ok(())
    }

    /// Tells how long comparing so many pages took: the dearer it is, the sooner a page that does not
    /// change is protected again. To be told before the `settle`, if at all.
    #[inline]
    pub(crate) fn compared(&mut self, pages: u64, took: Duration) {
        match &mut self.kind {
            Kind::WpAsync(rung) => rung.compared(pages, took),
            Kind::Mprotect(_) | Kind::Explicit => {}
        }
    }

    /// The set in which bytes are marked as dirty, by any thread and at any time.
    pub(crate) fn marks(&self) -> &Arc<DirtyLines> {
        &self.marked.lines
    }

    /// Takes the place of the tracker with this dirty-line set. Marks from before are forgotten.
    pub(crate) fn succeed(&mut self, marks: Arc<DirtyLines>) {
        self.marked.succeed(marks);
    }

    /// The lines of a page that was collected and may differ from the primary, a bit each.
    #[inline]
    pub(crate) fn lines(&self, page: u64) -> u64 {
        match &self.kind {
            Kind::Explicit => self.marked.lines(page as usize),
            Kind::WpAsync(_) | Kind::Mprotect(_) => u64::MAX,
        }
    }

    /// From its return until [`release`](Self::release), no store of any thread of this process
    /// lands: storing threads wait. The calling thread must not store to the range (it would die of
    /// SIGSEGV rather than wait for itself); a system call that writes there fails with `EFAULT`.
    /// Costs as much as page tables are populated.
    pub(crate) fn hold(&mut self) -> Result<(), DirtyError> {
        match &self.kind {
            Kind::Mprotect(rung) => rung.hold(),
            Kind::WpAsync(_) | Kind::Explicit => self.gate.hold(),
        }
        .map_err(failed("hold up"))?;
        self.held = true;
        Ok(())
    }

    /// Ends a hold. `settle` must come first.
    pub(crate) fn release(&mut self) -> Result<(), DirtyError> {
        self.held = false;
        match &self.kind {
            Kind::Mprotect(rung) => rung.release(),
            Kind::WpAsync(_) | Kind::Explicit => self.gate.release(),
        }
        .map_err(failed("let pass"))
    }

    /// Tracks `len` bytes from now on; the mapping has grown already.
    pub(crate) fn grow(&mut self, len: usize) -> Result<(), DirtyError> {
        let pages = len / PAGE;
        match &mut self.kind {
            Kind::WpAsync(rung) => rung.grow(pages, self.filled),
            Kind::Mprotect(rung) => rung.grow(pages),
            Kind::Explicit => Ok(()),
        }
        .map_err(failed("track"))?;
        self.marked.grow(pages);
        self.gate.grow(len);
        Ok(())
    }

    /// Whether it pays to renew the mapping (see [`renewed`](Self::renewed)) because scanning it has
    /// become dear. To be asked after a `settle`, outside a hold.
    #[inline]
    pub(crate) fn renewal_due(&mut self) -> Result<bool, DirtyError> {
        match &mut self.kind {
            // A device may have pinned the pages, and would go on storing to dropped ones.
            Kind::WpAsync(_) if self.marked.lines.is_pinned() => Ok(false),
            Kind::WpAsync(rung) => rung.renewal_due().map_err(failed("scan")),
            Kind::Mprotect(_) | Kind::Explicit => Ok(false),
        }
    }

    /// The mapping was renewed: it holds what the primary holds. No store may come between the
    /// renewal and the end of this call.
    pub(crate) fn renewed(&mut self) -> Result<(), DirtyError> {
        match &mut self.kind {
            Kind::WpAsync(rung) => rung.renewed().map_err(failed("track")),
            Kind::Mprotect(_) | Kind::Explicit => Ok(()),
        }
    }
}
