//! Pages that appear when they are touched: for shadows that no file can back.
//!
//! One userfaultfd and one thread per process answer the faults of all objects. A page is filled by
//! its object's callback, put in place whole, and never seen half-filled.
//!
//! Invariants:
//! 1. Every range registered with the service's userfaultfd has an entry in `ranges` from before
//!    its registration until after its pages can no longer be touched; so a fault that finds no
//!    entry is of a range whose user has broken the rules, and may wait for the range to vanish.
//! 2. A callback never touches a served range, and never waits for a thread that might: the
//!    service's thread would wait for itself.
//!
//! Lock order: `ranges`, then a range's `filling`. Neither is held while a system call of another
//! thread could fault on a served range.

pub(crate) mod removal;
mod service;

use std::io;
use std::sync::{Arc, PoisonError};

use crate::sys::uffd::{FEATURE_POISON, Reach, Uffd, WP_ASYNC};
use service::{Range, Service};

/// Fills one page, given its index within the object.
pub(crate) type Fill = dyn Fn(usize, &mut [u8; crate::sys::PAGE]) -> Result<(), FillError> + Send + Sync;
/// Why a page could not be filled.
pub(crate) type FillError = Box<dyn std::error::Error + Send + Sync>;

/// Parameters of a fault service.
pub(crate) struct ServeParams {
    /// An anonymous mapping without pages: first byte and length, multiples of the page size.
    pub(crate) base: usize,
    pub(crate) len: usize,
    /// Pages to fill at each fault beyond the one that is needed.
    pub(crate) ahead: usize,
    /// Install pages write-protected, for tracking by `WP_ASYNC`.
    pub(crate) protect: bool,
    pub(crate) fill: Arc<Fill>,
}

/// Whether faults can be served here: system calls' faults included, errors reported by SIGBUS.
pub(crate) fn available() -> bool {
    Uffd::open(Reach::Full, FEATURE_POISON, 0).is_ok()
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
    let ServeParams { base, len, ahead, protect, fill } = params;
    let service = Service::get()?;
    if protect && !service.uffd.has(WP_ASYNC) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let range = Arc::new(Range::new(base, len, ahead, protect, fill));
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
    pub(crate) fn failure(&self) -> Option<(usize, String)> {
        self.range.failure()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if crate::sys::fork::is_stale(self.generation) {
            return;
        }
        // The mapping goes next, and the registration with it; until then nobody may touch it.
        self.service.ranges.write().unwrap_or_else(PoisonError::into_inner).remove(&self.base);
        self.range.finish();
    }
}
