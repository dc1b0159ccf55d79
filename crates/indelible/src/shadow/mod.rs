//! The shadow of an attached object: its memory, and what is known about stores to it.
//!
//! Invariants:
//! 1. `mapping` lives as long as the shadow and is dropped last: tracker and fault service know its
//!    addresses.
//! 2. A page that is not dirty holds what the primary holds.
//!
//! What the layer above keeps: no store between `collect` and `settle` (or a hold around them);
//! bytes that lie in a shadow are never given to a `Device`, which might wait for the fault service
//! and the fault service for it; a shadow is dropped after the last access.

#![allow(unsafe_code)]

mod error;
mod lines;
#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use indelible_store::medium::Device;

pub(crate) use error::ShadowError;
pub(crate) use lines::{
    all_changed, copy_bytes, copy_lines, copy_page, each_run, lines_changed, lines_changed_raw,
};

use crate::dirty::{PageRange, Rung, Tracker, TrackerParams, WatchedBy};
use crate::fault::{self, ServeParams, Served};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::{self, Protection};

/// Objects of at most so many bytes are copied whole at attach rather than faulted in.
const COPY_WHOLE: usize = 1 << 20;
/// Bytes read from a device at a time.
const PIECE: usize = 1 << 20;

/// Where an object's bytes come from.
#[derive(Clone)]
pub(crate) enum Source<'a> {
    /// A file that can be mapped privately; the page cache is the clean copy.
    PrivateFile { fd: BorrowedFd<'a>, offset: u64 },
    /// Anything that can be read; the shadow is filled from it.
    Device { device: Arc<dyn Device>, offset: u64 },
}

/// How to attach.
pub(crate) struct Params<'a> {
    /// Fixed address and length, multiples of the page size.
    pub(crate) addr: usize,
    pub(crate) len: usize,
    pub(crate) source: Source<'a>,
    pub(crate) writable: bool,
    /// How to notice stores; `None`: the best way there is.
    pub(crate) rung: Option<Rung>,
    /// Whether a device's pages are filled when they are touched; `None`: if the object is large
    /// and it is possible. Files always are.
    pub(crate) fault_in: Option<bool>,
    /// Pages to fill beyond the one touched.
    pub(crate) ahead: usize,
}

/// An attached object's memory. Dropping it makes the range inaccessible.
pub(crate) struct Shadow {
    tracker: Option<Tracker>,
    served: Option<Served>,
    mapping: Mapping,
    /// What a growing shadow without file and fault service is filled from.
    refill: Option<(Arc<dyn Device>, u64)>,
}

impl Shadow {
    /// Maps the object. Nothing is dirty at first.
    pub(crate) fn attach(params: Params<'_>) -> Result<Shadow, ShadowError> {
        let rung = params.writable.then(|| params.rung.unwrap_or_else(Rung::best));
        match params.source.clone() {
            Source::PrivateFile { fd, offset } => Shadow::over_file(&params, fd, offset, rung),
            Source::Device { device, offset } => Shadow::over_device(&params, device, offset, rung),
        }
    }

    fn over_file(
        p: &Params<'_>,
        fd: BorrowedFd<'_>,
        offset: u64,
        rung: Option<Rung>,
    ) -> Result<Shadow, ShadowError> {
        let mapping = Mapping::file(p.addr, p.len, fd, offset, protection(rung))?;
        let tracker = track(&mapping, rung, WatchedBy::Tracker, false)?;
        Ok(Shadow { tracker, served: None, mapping, refill: None })
    }

    fn over_device(
        p: &Params<'_>,
        device: Arc<dyn Device>,
        offset: u64,
        rung: Option<Rung>,
    ) -> Result<Shadow, ShadowError> {
        let fault_in = p.fault_in.unwrap_or_else(|| p.len > COPY_WHOLE && fault::available());
        if !fault_in {
            let mapping = Mapping::anonymous(p.addr, p.len, Protection::ReadWrite)?;
            fill(&mapping, 0, &*device, offset)?;
            protect(&mapping, 0, rung)?;
            let tracker = track(&mapping, rung, WatchedBy::Tracker, true)?;
            return Ok(Shadow { tracker, served: None, mapping, refill: Some((device, offset)) });
        }
        let mapping = Mapping::anonymous(p.addr, p.len, protection(rung))?;
        let source = Arc::clone(&device);
        let served = fault::serve(ServeParams {
            base: p.addr,
            len: p.len,
            ahead: p.ahead,
            protect: rung == Some(Rung::WpAsync),
            fill: Arc::new(move |page, bytes| Ok(source.read(offset + (page * PAGE) as u64, bytes)?)),
        })
        .map_err(ShadowError::Serve)?;
        let tracker = track(&mapping, rung, WatchedBy::Service(served.uffd()), false)?;
        Ok(Shadow { tracker, served: Some(served), mapping, refill: None })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    /// How stores are noticed; `None` for a read-only attach.
    pub(crate) fn rung(&self) -> Option<Rung> {
        self.tracker.as_ref().map(Tracker::rung)
    }

    /// The first byte of a page, which must be one of the object's.
    pub(crate) fn page_bytes(&self, page: u64) -> *const u8 {
        debug_assert!(page < (self.len() / PAGE) as u64);
        self.base().as_ptr().wrapping_add(page as usize * PAGE)
    }

    /// See [`Tracker::collect`]. A read-only shadow has nothing dirty. Once a page could not be read,
    /// this fails for good.
    #[inline]
    pub(crate) fn collect(&mut self, out: &mut Vec<PageRange>) -> Result<(), ShadowError> {
        if let Some((page, why)) = self.failure() {
            return Err(ShadowError::Unreadable { page, why });
        }
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.collect(out)?))
    }

    /// See [`Tracker::settle`].
    #[inline]
    pub(crate) fn settle(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
    ) -> Result<(), ShadowError> {
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.settle(changed, unchanged)?))
    }

    /// See [`Tracker::note`].
    #[inline]
    pub(crate) fn note(&self, run: PageRange) {
        if let Some(tracker) = &self.tracker {
            tracker.note(run);
        }
    }

    /// See [`Tracker::hold`].
    pub(crate) fn hold(&mut self) -> Result<(), ShadowError> {
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.hold()?))
    }

    /// See [`Tracker::release`].
    pub(crate) fn release(&mut self) -> Result<(), ShadowError> {
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.release()?))
    }

    /// Whether dropping every page has become cheaper than scanning them. Cheap to ask after every psync.
    #[inline]
    pub(crate) fn renewal_due(&mut self) -> Result<bool, ShadowError> {
        match &mut self.tracker {
            Some(tracker) if self.mapping.is_file() => Ok(tracker.renewal_due()?),
            _ => Ok(false),
        }
    }

    /// Drops every page.
    ///
    /// # Safety
    /// The shadow is over a file. Everything collected was settled and applied to the primary, nothing
    /// was stored since, and nobody stores (or holds) until this returns.
    pub(crate) unsafe fn renew(&mut self) -> Result<(), ShadowError> {
        // SAFETY: the caller's promise.
        unsafe { self.mapping.renew() }?;
        Ok(self.tracker.as_mut().map_or(Ok(()), Tracker::renewed)?)
    }

    /// The first page that could not be read, and why.
    pub(crate) fn failure(&self) -> Option<(usize, String)> {
        self.served.as_ref().and_then(Served::failure)
    }

    /// Extends the object in place to `new_len` bytes, a multiple of the page size; its source has
    /// grown already. On failure the shadow is as before.
    pub(crate) fn grow(&mut self, new_len: usize) -> Result<(), ShadowError> {
        let old = self.len();
        if new_len <= old {
            return Ok(());
        }
        self.mapping.grow(new_len)?;
        let done = self.grow_rest(old, new_len);
        if done.is_err() {
            self.mapping.shrink(old);
            if let Some(served) = &mut self.served {
                served.shrink(old);
            }
        }
        done
    }

    fn grow_rest(&mut self, old: usize, new_len: usize) -> Result<(), ShadowError> {
        if let Some((device, offset)) = &self.refill {
            let rung = self.tracker.as_ref().map(Tracker::rung);
            // SAFETY: the tail was mapped just now, nobody knows of it.
            unsafe { mmap::protect(self.mapping.addr() + old, new_len - old, Protection::ReadWrite) }
                .map_err(ShadowError::Protect)?;
            fill(&self.mapping, old, &**device, *offset)?;
            protect(&self.mapping, old, rung)?;
        }
        if let Some(served) = &mut self.served {
            served.grow(new_len).map_err(ShadowError::Serve)?;
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.grow(new_len)?;
        }
        Ok(())
    }
}

fn protection(rung: Option<Rung>) -> Protection {
    match rung {
        Some(rung) if !rung.starts_read_only() => Protection::ReadWrite,
        _ => Protection::Read,
    }
}

fn track(
    mapping: &Mapping,
    rung: Option<Rung>,
    watched_by: WatchedBy,
    filled: bool,
) -> Result<Option<Tracker>, ShadowError> {
    let (base, len) = (mapping.addr(), mapping.len());
    Ok(rung.map(|rung| Tracker::new(TrackerParams { base, len, rung, watched_by, filled })).transpose()?)
}

/// Gives the tail of a filled mapping its final protection.
fn protect(mapping: &Mapping, from: usize, rung: Option<Rung>) -> Result<(), ShadowError> {
    let wanted = protection(rung);
    if wanted == Protection::ReadWrite {
        return Ok(());
    }
    // SAFETY: our own mapping, filled a moment ago and not handed out yet.
    unsafe { mmap::protect(mapping.addr() + from, mapping.len() - from, wanted) }
        .map_err(ShadowError::Protect)
}

/// Fills the mapping's bytes from `from` on with those of the device's object at `offset`.
fn fill(mapping: &Mapping, from: usize, device: &dyn Device, offset: u64) -> Result<(), ShadowError> {
    let mut at = from;
    while at < mapping.len() {
        let n = PIECE.min(mapping.len() - at);
        // SAFETY: mapped, writable, and not handed out yet: nobody else knows of these bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(mapping.base().as_ptr().add(at), n) };
        device.read(offset + at as u64, bytes)?;
        at += n;
    }
    Ok(())
}
