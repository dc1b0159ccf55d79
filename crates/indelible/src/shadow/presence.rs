//! Residence of a shadow's pages: prefaulting, eviction, and changes for readers.

#![allow(unsafe_code)]

use super::fill::populate;
use super::{Shadow, ShadowError};
use crate::dirty::{PageRange, Tracker};
use crate::fault::PredictionStats;
use crate::sys::PAGE;
use crate::sys::mmap::{self, Protection};
use std::ops::Range;

impl Shadow {
    /// Returns how many pages are present from the first on. The error names an unreadable page,
    /// which raises no signal before it is touched.
    pub(crate) fn prefault(&self, pages: Range<usize>) -> Result<usize, ShadowError> {
        self.check()?;
        let pages = pages.start..pages.end.min(self.len() / PAGE);
        match &self.served {
            Some(served) => Ok(served.prefault(pages)?),
            None if self.refill.is_some() => Ok(pages.len()),
            None => Ok(populate(self.mapping.addr(), pages)?),
        }
    }

    pub(crate) fn found_by_name(&self) -> u64 {
        self.tracker.as_ref().map_or(0, Tracker::found_by_name)
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.served.as_ref()?.limit()
    }

    /// `dirty` ascends.
    ///
    /// # Safety
    /// Pages that are not in `dirty` equal the source's, and no thread stores to them until this
    /// returns.
    pub(crate) unsafe fn evict(&self, dirty: &[PageRange]) {
        let Some(served) = self.served.as_ref().filter(|served| served.limit().is_some()) else { return };
        if self.tracker.as_ref().is_some_and(|tracker| tracker.marks().is_pinned()) {
            return;
        }
        let clean = |page: usize| {
            let page = page as u64;
            let behind = dirty.partition_point(|run| run.end() <= page);
            dirty.get(behind).is_none_or(|run| page < run.start)
        };
        // SAFETY: the caller's promise.
        unsafe { served.evict(clean) };
    }

    #[inline]
    pub(crate) fn has_surplus(&self, beside: bool) -> bool {
        self.mapping.is_file() && self.tracker.as_ref().is_some_and(|tracker| tracker.has_surplus(beside))
    }

    pub(crate) fn surplus(&mut self) -> Vec<PageRange> {
        self.tracker.as_mut().map_or_else(Vec::new, Tracker::surplus)
    }

    pub(crate) fn kept(&mut self, pages: &[PageRange]) {
        if let Some(tracker) = &mut self.tracker {
            tracker.kept(pages);
        }
    }

    /// Gives the process's own copies back to the kernel.
    ///
    /// # Safety
    /// The shadow is over a file, which these pages equal in every byte; no thread stores to them
    /// until this returns.
    pub(crate) unsafe fn drop_copies(&self, pages: PageRange) -> bool {
        let (start, count) = (pages.start as usize, pages.count as usize);
        // SAFETY: pages of our own mapping, and the caller's promise.
        unsafe { mmap::drop_copies(self.mapping.addr() + start * PAGE, count * PAGE) }.is_ok()
    }

    pub(crate) fn prediction(&self) -> Option<PredictionStats> {
        self.served.as_ref()?.prediction()
    }

    /// After an error some bytes may be laid, and some pages may be writable.
    ///
    /// # Safety
    /// The shadow is read-only, all bytes lie in these runs of pages, which were brought into
    /// memory ([`prefault`](Self::prefault)), and no thread reads the object meanwhile or has a
    /// reference into it.
    pub(crate) unsafe fn lay_over<'b>(
        &mut self,
        runs: &[Range<usize>],
        bytes: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> Result<(), ShadowError> {
        if let Some(served) = &self.served {
            served.keep_pages();
        }
        let protect = |wanted| {
            runs.iter().try_for_each(|run| {
                let start = self.mapping.addr() + run.start * PAGE;
                // SAFETY: pages of our own private mapping, so stores stay in this process.
                unsafe { mmap::protect(start, run.len() * PAGE, wanted) }.map_err(ShadowError::Protect)
            })
        };
        protect(Protection::ReadWrite)?;
        for (offset, bytes) in bytes {
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            debug_assert!(runs.iter().any(|run| run.start * PAGE <= start && end <= run.end * PAGE));
            let at = self.base().as_ptr().wrapping_add(start);
            // SAFETY: within the object, writable now, and unread: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        }
        protect(Protection::Read)
    }
}
