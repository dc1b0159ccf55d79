//! The shadow of an attached object: its memory, and the tracker of stores to it.
//!
//! Invariants:
//! 1. `mapping` lives as long as the shadow and is dropped last: tracker and fault service know its
//!    addresses.
//! 2. A page that is not dirty equals the primary's.
//!
//! Duties of the layer above: no store between `collect` and `settle` (or a hold around them); a
//! shadow's bytes are never given to a `Device`, which might wait for the fault service and the
//! fault service for it; a shadow is dropped after the last access.

#![allow(unsafe_code)]

mod attached;
mod error;
mod fill;
mod lines;
mod presence;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use attached::Listed;
use fill::{fill, protect, protection};

pub(crate) use attached::attached;
pub(crate) use error::ShadowError;
pub(crate) use lines::{
    all_changed, copy_bytes, copy_lines, copy_page, each_run, lines_changed, lines_changed_among,
};

use crate::dirty::{Advice, Cut, DirtyLines, PageRange, Rung, Tracker, TrackerParams, WatchedBy};
use crate::fault::{self, PageSource, PredictionParams, ServeParams, Served};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::{self, Protection};
use crate::sys::uffd::{Uffd, Watch};

/// A page takes 2 µs, a fault registration 10.
const COPY_WHOLE: usize = 16 << 10;

const DECRYPT_WHOLE: usize = 512 << 10;

pub(crate) enum Source<'a> {
    PrivateFile { fd: BorrowedFd<'a>, offset: u64 },
    Patched { fd: BorrowedFd<'a>, offset: u64, pages: Arc<dyn PageSource>, others: Vec<Range<usize>> },
    Pages(Arc<dyn PageSource>),
}

pub(crate) struct Params<'a> {
    pub(crate) name: String,
    pub(crate) addr: Option<usize>,
    pub(crate) len: usize,
    pub(crate) room: usize,
    pub(crate) source: Source<'a>,
    pub(crate) writable: bool,
    pub(crate) rung: Option<Rung>,
    pub(crate) advice: Advice,
    /// `None`: if the object is large and it is possible. Files always are.
    pub(crate) fault_in: Option<bool>,
    pub(crate) ahead: usize,
    pub(crate) budget: usize,
    /// Most pages, without those that differ from the source: resident ones of a sealed object, the
    /// process's own ones of a mapped file. `None`: the default.
    pub(crate) limit: Option<usize>,
    pub(crate) prediction: Option<PredictionParams>,
    pub(crate) secret: bool,
    pub(crate) pending: bool,
}

impl Params<'_> {
    fn rung(&self) -> Option<Rung> {
        self.writable.then(|| self.rung.unwrap_or_else(Rung::best))
    }

    fn faults_in(&self) -> bool {
        let whole = if self.secret { DECRYPT_WHOLE } else { COPY_WHOLE };
        let wanted = || self.len > whole && fault::reach().is_some();
        matches!(self.source, Source::Pages(_)) && self.fault_in.unwrap_or_else(wanted)
    }

    fn protection(&self) -> Protection {
        match self.source {
            Source::Pages(_) if !self.faults_in() => Protection::ReadWrite,
            Source::Patched { .. } => Protection::ReadWrite,
            _ => protection(self.rung()),
        }
    }
}

pub(crate) struct Shadow {
    tracker: Option<Tracker>,
    served: Option<Served>,
    watcher: Option<&'static Uffd>,
    /// Dropped before the addresses are free.
    listed: Listed,
    mapping: Mapping,
    refill: Option<Arc<dyn PageSource>>,
}

impl Shadow {
    pub(crate) fn attach(params: Params<'_>) -> Result<Shadow, ShadowError> {
        let (addr, len, protection) = (params.addr, params.len, params.protection());
        let room = (len, params.room);
        let mut mapping = match (&params.source, addr) {
            (Source::PrivateFile { fd, offset } | Source::Patched { fd, offset, .. }, Some(addr)) => {
                Mapping::file(addr, len, *fd, *offset, protection)
            }
            (Source::PrivateFile { fd, offset } | Source::Patched { fd, offset, .. }, None) => {
                Mapping::file_with_room(room, *fd, *offset, protection)
            }
            (Source::Pages(_), Some(addr)) => Mapping::anonymous(addr, len, protection),
            (Source::Pages(_), None) => Mapping::anonymous_with_room(room, protection),
        }?;
        if params.secret {
            mapping.keep_secret().map_err(ShadowError::Protect)?;
        }
        let listed = Listed::new(mapping.addr(), len, &params.name, params.writable);
        let mut shadow = Shadow { tracker: None, served: None, watcher: None, listed, mapping, refill: None };
        shadow.arm(&params)?;
        Ok(shadow)
    }

    pub(crate) fn keep(&mut self, len: usize) -> Result<(), ShadowError> {
        Ok(self.mapping.keep(len)?)
    }

    pub(crate) fn let_go(&mut self) {
        self.mapping.release();
    }

    /// Nothing is dirty afterwards. After a failure a placeholder keeps stale references from
    /// faulting.
    ///
    /// # Safety
    /// No other code uses the object meanwhile.
    pub(crate) unsafe fn move_to(&mut self, params: &Params<'_>) -> Result<(), ShadowError> {
        let marks = self.marks();
        (self.tracker, self.served, self.watcher, self.refill) = (None, None, None, None);
        let offset = match &params.source {
            Source::PrivateFile { offset, .. } | Source::Patched { offset, .. } => *offset,
            Source::Pages(_) => 0,
        };
        // SAFETY: the caller's promise.
        let moved = unsafe { self.mapping.move_to(params.len, offset, params.protection()) };
        self.listed.resize(self.mapping.len());
        let done = moved.map_err(ShadowError::from).and_then(|()| self.arm(params));
        if done.is_err() {
            self.served = None;
            // SAFETY: neither tracker nor fault service is there any more.
            unsafe { self.mapping.open_up() };
        }
        if let (Some(tracker), Some(marks)) = (&mut self.tracker, marks) {
            tracker.succeed(marks);
        }
        done
    }

    fn arm(&mut self, p: &Params<'_>) -> Result<(), ShadowError> {
        let rung = p.rung();
        if let Source::Patched { pages, others, .. } = &p.source {
            for run in others {
                fill(&self.mapping, run.start * PAGE..run.end * PAGE, &**pages)?;
            }
            return protect(&self.mapping, 0, rung);
        }
        let Source::Pages(source) = &p.source else {
            self.watcher = if p.pending { fault::removal::watcher().ok() } else { None };
            self.watch(rung, 0)?;
            self.tracker = track(&self.mapping, p, WatchedBy::Tracker(self.watcher), false)?;
            if let (Some(tracker), Some(limit)) = (&mut self.tracker, p.limit) {
                tracker.limit_own_pages(limit);
            }
            return Ok(());
        };
        let source = Arc::clone(source);
        if p.secret && p.limit.is_some() && fault::reach().is_none() {
            return Err(ShadowError::Unlimited);
        }
        if !p.faults_in() {
            fill(&self.mapping, 0..p.len, &*source)?;
            protect(&self.mapping, 0, rung)?;
            self.tracker = track(&self.mapping, p, WatchedBy::Tracker(None), true)?;
            self.refill = Some(source);
            return Ok(());
        }
        let served = fault::serve(ServeParams {
            base: self.mapping.addr(),
            len: p.len,
            ahead: p.ahead,
            budget: p.budget,
            protect: rung.is_some_and(Rung::is_wp_async),
            secret: p.secret,
            limit: p.limit.filter(|_| p.secret),
            frozen: !p.writable,
            prediction: p.prediction,
            source,
        })
        .map_err(ShadowError::Serve)?;
        let served = self.served.insert(served);
        self.tracker = track(&self.mapping, p, WatchedBy::Service(served.uffd()), false)?;
        Ok(())
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    fn watch(&self, rung: Option<Rung>, start: usize) -> Result<(), ShadowError> {
        match self.watcher {
            Some(uffd) if !rung.is_some_and(Rung::is_wp_async) => uffd
                .register(self.mapping.addr() + start, self.len() - start, Watch::Writes)
                .map_err(ShadowError::Protect),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mapping.is_file()
    }

    pub(crate) fn inherit(&mut self) -> bool {
        self.tracker.is_none() && self.served.is_none() && self.mapping.inherit().is_ok()
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    pub(crate) fn room(&self) -> usize {
        self.mapping.room()
    }

    pub(crate) fn rung(&self) -> Option<Rung> {
        self.tracker.as_ref().map(Tracker::rung)
    }

    pub(crate) fn find_stores(&mut self, rung: Rung, advice: Advice) -> Result<(), ShadowError> {
        let (base, len, watched_by) =
            (self.mapping.addr(), self.mapping.len(), WatchedBy::Tracker(self.watcher));
        let mut tracker = Tracker::new(TrackerParams { base, len, rung, watched_by, filled: false, advice })?;
        if rung.starts_read_only() {
            self.mapping.protect(Protection::Read).map_err(ShadowError::Protect)?;
        }
        if let Some(former) = self.tracker.take() {
            tracker.replace(former);
        }
        self.tracker = Some(tracker);
        Ok(())
    }

    pub(crate) fn page_bytes(&self, page: u64) -> *const u8 {
        debug_assert!(page < (self.len() / PAGE) as u64);
        let copied = self.tracker.as_ref().and_then(|tracker| tracker.copy_of(page));
        copied.unwrap_or_else(|| self.base().as_ptr().wrapping_add(page as usize * PAGE))
    }

    #[inline]
    pub(crate) fn collect(&mut self, out: &mut Vec<PageRange>) -> Result<(), ShadowError> {
        self.check()?;
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.collect(out)?))
    }

    #[inline]
    pub(crate) fn settle(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
    ) -> Result<(), ShadowError> {
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.settle(changed, unchanged)?))
    }

    #[inline]
    pub(crate) fn compared(&mut self, pages: u64, took: Duration) {
        if let Some(tracker) = &mut self.tracker {
            tracker.compared(pages, took);
        }
    }

    pub(crate) fn marks(&self) -> Option<Arc<DirtyLines>> {
        self.tracker.as_ref().map(|tracker| Arc::clone(tracker.marks()))
    }

    /// On rungs that need marks.
    pub(crate) fn stored(&self, bytes: Range<usize>) {
        if let Some(tracker) = &self.tracker
            && tracker.rung() == Rung::Explicit
        {
            tracker.marks().mark([bytes]);
        }
    }

    pub(crate) fn mark_again(&self, pages: PageRange) {
        if let Some(tracker) = &self.tracker {
            let bytes = pages.start as usize * PAGE..pages.end() as usize * PAGE;
            tracker.marks().mark(std::iter::once(bytes));
        }
    }

    #[inline]
    pub(crate) fn lines(&self, page: u64) -> u64 {
        self.tracker.as_ref().map_or(u64::MAX, |tracker| tracker.lines(page))
    }

    pub(crate) fn hold(&mut self, gated: bool, cut: Cut<'_>) -> Result<(), ShadowError> {
        let cut = match cut {
            // Clean pages are dropped, to which no thread may be storing.
            _ if self.limit().is_some() => Cut::Closed,
            // Copies would need to be secret, too.
            Cut::Copied(_) if self.mapping.is_secret() => Cut::Frozen,
            cut => cut,
        };
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.hold(gated, cut)?))
    }

    pub(crate) fn release(&mut self) -> Result<(), ShadowError> {
        self.tracker.as_mut().map_or(Ok(()), |tracker| Ok(tracker.release()?))
    }

    #[cfg(test)]
    pub(crate) fn tracker(&mut self) -> &mut Tracker {
        self.tracker.as_mut().unwrap()
    }

    /// Ask after every psync.
    #[inline]
    pub(crate) fn renewal_due(&mut self) -> Result<bool, ShadowError> {
        match &mut self.tracker {
            Some(tracker) if self.mapping.is_file() => Ok(tracker.renewal_due()?),
            _ => Ok(false),
        }
    }

    /// Drops every page, and maps all from the file's extent at `offset`.
    ///
    /// # Safety
    /// The shadow is over a file. Everything collected was settled and applied to the primary,
    /// nothing was stored since, and no thread stores (or holds) until this returns.
    pub(crate) unsafe fn renew(&mut self, offset: u64) -> Result<(), ShadowError> {
        // SAFETY: the caller's promise.
        unsafe { self.mapping.renew(offset) }?;
        Ok(self.tracker.as_mut().map_or(Ok(()), Tracker::renewed)?)
    }

    fn check(&self) -> Result<(), ShadowError> {
        let failure = self.served.as_ref().and_then(Served::failure);
        failure.map_or(Ok(()), |error| Err(ShadowError::Page(error)))
    }

    /// In place; the source has grown already. `extent`: the file offset of the object's own bytes;
    /// `None`: added bytes are zeros.
    pub(crate) fn grow(&mut self, new_len: usize, extent: Option<u64>) -> Result<(), ShadowError> {
        let old = self.len();
        if new_len <= old {
            return Ok(());
        }
        self.mapping.grow(new_len, extent)?;
        let done = self.grow_rest(old, new_len);
        self.listed.resize(if done.is_ok() { new_len } else { old });
        if done.is_err() {
            self.mapping.shrink(old);
            if let Some(served) = &mut self.served {
                served.shrink(old);
            }
        }
        done
    }

    fn grow_rest(&mut self, old: usize, new_len: usize) -> Result<(), ShadowError> {
        if let Some(source) = &self.refill {
            let rung = self.tracker.as_ref().map(Tracker::rung);
            // SAFETY: the tail was mapped just now, and no other code knows of it.
            unsafe { mmap::protect(self.mapping.addr() + old, new_len - old, Protection::ReadWrite) }
                .map_err(ShadowError::Protect)?;
            fill(&self.mapping, old..new_len, &**source)?;
            protect(&self.mapping, old, rung)?;
        }
        self.watch(self.rung(), old)?;
        if let Some(served) = &mut self.served {
            served.grow(new_len).map_err(ShadowError::Serve)?;
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.grow(new_len)?;
        }
        Ok(())
    }
}

fn track(
    mapping: &Mapping,
    params: &Params<'_>,
    watched_by: WatchedBy,
    filled: bool,
) -> Result<Option<Tracker>, ShadowError> {
    let (base, len, advice) = (mapping.addr(), mapping.len(), params.advice);
    let new = |rung| Tracker::new(TrackerParams { base, len, rung, watched_by, filled, advice });
    Ok(params.rung().map(new).transpose()?)
}
