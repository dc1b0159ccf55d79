//! Pages filled on first touch, for shadows that no file can back.
//!
//! One userfaultfd and one thread per process answer the faults of all objects.
//! [`Served::prefault`] and predictions (`ahead`, `predict`) fill pages by the same path. With
//! [`Reach::UserMode`], system calls that meet an absent page fail with `EFAULT`.
//!
//! Invariants:
//! 1. Every range registered with the service's userfaultfd has an entry in `ranges` from before
//!    its registration until its pages can no longer be touched. A fault without an entry breaks
//!    this rule, and may wait for the range to vanish.
//! 2. A source never touches a served range, and never waits for a thread that might: the service's
//!    thread would wait for itself.
//! 3. The service's thread waits for no other: the thread that fills a page answers its faults.
//!
//! Lock order: `ranges`, then a range's `claims`. Neither is held during a page read, or while
//! another thread's system call could fault on a served range.

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
use crate::sys::per_process::PerProcess;
use crate::sys::uffd::{Reach, Uffd, WP_ASYNC};
pub use predict::PredictionDepth;
pub(crate) use prediction::PredictionParams;
pub use prediction::PredictionStats;
use range::Range;
use service::Service;
pub(crate) use source::{
    Decoded, Layered, Live, LostWord, OnSlowMedium, PageError, PageSource, Primary, SLOW, Sealed,
};

const BATCH: usize = 64;

pub(crate) struct ServeParams {
    pub(crate) base: usize,
    pub(crate) len: usize,
    pub(crate) ahead: usize,
    pub(crate) budget: usize,
    pub(crate) protect: bool,
    pub(crate) secret: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) frozen: bool,
    pub(crate) prediction: Option<PredictionParams>,
    pub(crate) source: Arc<dyn PageSource>,
}

/// `None`: no faults can be served, so pages must be filled before use.
pub(crate) fn reach() -> Option<Reach> {
    // The probe takes descriptors, and is repeated after a lack of them.
    static FOUND: PerProcess<Reach> = PerProcess::new();
    FOUND.get_or_try(|_| service::open().map(|uffd| uffd.reach())).ok().copied()
}

pub(crate) struct Served {
    service: &'static Service,
    range: Arc<Range>,
    base: usize,
    len: usize,
    generation: u32,
}

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

    pub(crate) fn uffd(&self) -> &'static Uffd {
        &self.service.uffd
    }

    pub(crate) fn grow(&mut self, len: usize) -> io::Result<()> {
        self.range.set_len(len);
        if let Err(e) = self.register(self.base + self.len, len - self.len) {
            self.range.set_len(self.len);
            return Err(e);
        }
        self.len = len;
        Ok(())
    }

    pub(crate) fn shrink(&mut self, len: usize) {
        self.range.set_len(len);
        self.len = len;
    }

    pub(crate) fn failure(&self) -> Option<Arc<PageError>> {
        self.range.failure()
    }

    /// # Safety
    /// Pages that `may` go equal the source's, and no thread stores to them until this returns.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn evict(&self, may: impl FnMut(usize) -> bool) {
        if let Some(resident) = &self.range.resident {
            // SAFETY: the caller's promise.
            unsafe { resident.evict(self.base, may) };
        }
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        Some(self.range.resident.as_ref()?.limit())
    }

    /// Forbids dropping pages: some differ from the source's and are not marked.
    pub(crate) fn keep_pages(&self) {
        if let Some(resident) = &self.range.resident {
            resident.keep();
        }
    }

    pub(crate) fn prediction(&self) -> Option<PredictionStats> {
        Some(self.range.prediction.as_ref()?.stats())
    }

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
        self.service.ranges.write().unwrap_or_else(PoisonError::into_inner).remove(&self.base);
        self.range.close();
    }
}
