//! Pages that appear when they are touched: for shadows that no file can back.
//!
//! One userfaultfd and one thread per process answer the faults of all objects. A page is read from
//! its object's [`PageSource`], put in place whole, and never seen half-filled. The same way in
//! serves faults and pages that are filled ahead ([`Served::prefault`]).
//!
//! If the user may have no more, the descriptor sees faults of user code only
//! ([`Reach::UserMode`]): system calls that meet an absent page fail with `EFAULT`, unless the page
//! was filled ahead.
//!
//! Invariants:
//! 1. Every range registered with the service's userfaultfd has an entry in `ranges` from before
//!    its registration until after its pages can no longer be touched; so a fault that finds no
//!    entry is of a range whose user has broken the rules, and may wait for the range to vanish.
//! 2. A source never touches a served range, and never waits for a thread that might: the
//!    service's thread would wait for itself.
//! 3. The service's thread waits for no other: faults of pages that are being filled are answered
//!    by the thread that fills them.
//!
//! Pages that a program is likely to touch next are filled by other threads (`ahead`), as `predict`
//! says.
//!
//! Lock order: `ranges`, then a range's `claims`. Neither is held while a system call of another
//! thread could fault on a served range, nor while a page is read.

mod ahead;
mod evict;
mod predict;
mod prediction;
mod range;
pub(crate) mod removal;
pub(crate) mod reserved;
mod service;
mod source;
#[cfg(test)]
mod tests;

use std::io;
use std::ops;
use std::sync::{Arc, PoisonError};

use crate::sys::PAGE;
use crate::sys::fork::ForkLocal;
use crate::sys::uffd::{Reach, Uffd, WP_ASYNC};
pub use predict::PredictionDepth;
pub(crate) use prediction::PredictionParams;
pub use prediction::PredictionStats;
use range::Range;
use service::Service;
pub(crate) use source::{
    Decoded, Layered, Live, LostWord, OnSlowMedium, PageError, PageSource, Primary, SLOW, Sealed,
};

/// Pages filled at once, at most.
const BATCH: usize = 64;

/// Parameters of a fault service.
pub(crate) struct ServeParams {
    /// An anonymous mapping without pages: first byte and length, multiples of the page size.
    pub(crate) base: usize,
    pub(crate) len: usize,
    /// Pages to fill at each fault beyond the one that is needed.
    pub(crate) ahead: usize,
    /// Pages to fill before they are touched, at most and in all.
    pub(crate) budget: usize,
    /// Install pages write-protected, for tracking by `WP_ASYNC`.
    pub(crate) protect: bool,
    /// Overwrite the bytes of pages wherever they pass.
    pub(crate) secret: bool,
    /// Pages in memory at most, but for those that may not be dropped; `None`: any number.
    pub(crate) limit: Option<usize>,
    /// No thread stores to the range, so that pages may be dropped at any time.
    pub(crate) frozen: bool,
    /// Fill pages ahead that are likely to be touched next.
    pub(crate) prediction: Option<PredictionParams>,
    pub(crate) source: Arc<dyn PageSource>,
}

/// The faults that can be served here, errors reported by SIGBUS. `None`: no faults at all, so that
/// pages must be filled before they are handed out.
pub(crate) fn reach() -> Option<Reach> {
    // To try takes descriptors, and as long as an attach. A process that has none left may have
    // some later.
    static FOUND: ForkLocal<Reach> = ForkLocal::new();
    FOUND.get_or_try(|| service::open().map(|uffd| uffd.reach())).ok().copied()
}

/// A range that is served until drop. Drop it after the last access and before the mapping.
pub(crate) struct Served {
    service: &'static Service,
    range: Arc<Range>,
    base: usize,
    len: usize,
    generation: u32,
}

/// Starts serving the range.
pub(crate) fn serve(params: ServeParams) -> io::Result<Served> {
    let service = Service::get()?;
    if params.protect && !service.uffd.has(WP_ASYNC) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    if params.prediction.is_some() {
        service.predict();
    }
    let (base, len) = (params.base, params.len);
    let range = Arc::new(Range::new(params));
    service.ranges.write().unwrap_or_else(PoisonError::into_inner).insert(base, Arc::clone(&range));
    let served = Served { service, range, base, len, generation: crate::sys::fork::generation() };
    served.register(base, len)?;
    Ok(served)
}

impl Served {
    fn register(&self, addr: usize, len: usize) -> io::Result<()> {
        self.service.uffd.register(addr, len, self.range.watch())
    }

    /// The descriptor that watches the range.
    pub(crate) fn uffd(&self) -> &'static Uffd {
        &self.service.uffd
    }

    /// Serves `len` bytes from now on; the mapping has grown already.
    pub(crate) fn grow(&mut self, len: usize) -> io::Result<()> {
        self.range.set_len(len);
        if let Err(e) = self.register(self.base + self.len, len - self.len) {
            self.range.set_len(self.len);
            return Err(e);
        }
        self.len = len;
        Ok(())
    }

    /// Undoes a `grow` whose mapping goes away again.
    pub(crate) fn shrink(&mut self, len: usize) {
        self.range.set_len(len);
        self.len = len;
    }

    /// The first page that could not be filled, and why. Threads that touch it get SIGBUS.
    pub(crate) fn failure(&self) -> Option<Arc<PageError>> {
        self.range.failure()
    }

    /// Drops pages beyond the limit, of those that `may` go, if there is one.
    ///
    /// # Safety
    /// The pages that `may` go are as the source has them, and no thread stores to them until this
    /// returns.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn evict(&self, may: impl FnMut(usize) -> bool) {
        if let Some(resident) = &self.range.resident {
            // SAFETY: the caller's promise.
            unsafe { resident.evict(self.base, may) };
        }
    }

    /// Most pages that can be in memory at a time; `None`: any number.
    pub(crate) fn limit(&self) -> Option<usize> {
        Some(self.range.resident.as_ref()?.limit())
    }

    /// Lets no page be dropped from now on: some differ from the source's, and are not marked.
    pub(crate) fn keep_pages(&self) {
        if let Some(resident) = &self.range.resident {
            resident.keep();
        }
    }

    /// Counts of the prediction; `None`: nothing is predicted.
    pub(crate) fn prediction(&self) -> Option<PredictionStats> {
        Some(self.range.prediction.as_ref()?.stats())
    }

    /// Fills the pages of the range that are absent; returns how many are present then, from the
    /// first on: fewer if the budget is used up. An error leaves its page absent, and those before
    /// it filled.
    pub(crate) fn prefault(&self, pages: ops::Range<usize>) -> Result<usize, PageError> {
        let count = pages.end.min(self.len / PAGE).saturating_sub(pages.start);
        if count == 0 {
            return Ok(0);
        }
        self.service.prefault(&self.range, pages.start, count)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if crate::sys::fork::is_stale(self.generation) {
            return;
        }
        // The mapping goes next, and the registration with it; until then no thread may touch it.
        self.service.ranges.write().unwrap_or_else(PoisonError::into_inner).remove(&self.base);
        self.range.close();
    }
}
