//! Lookup of the heap at an address. A heap is opened on first use and closed by the detach. Each
//! thread caches its last one, so that an allocation takes no lock.
//!
//! Invariants of [`Last`]:
//! 1. `heap` and `attachment` were in the registry, at `base`, in `epoch` and `generation`. While
//!    those are current they still are, unless another thread is detaching the object, which the
//!    callers of the unsafe functions exclude.

#![allow(unsafe_code)]

use super::registry::{Attachment, EPOCH, close, find};
use crate::error::{Cause, Error, Result};
use crate::heap::{HeapError, HeapOptions, RawHeap};
use crate::sys::fork;
use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

#[derive(Clone, Copy)]
struct Last {
    base: usize,
    len: usize,
    epoch: u64,
    generation: u32,
    heap: *const RawHeap,
    attachment: *const Attachment,
}

thread_local! {
    static LAST: Cell<Last> = const {
        Cell::new(Last { base: 0, len: 0, epoch: 0, generation: 0, heap: null(), attachment: null() })
    };
}

#[derive(Clone, Copy)]
pub(super) struct HeapAt<'a> {
    pub(super) heap: &'a RawHeap,
    pub(super) attachment: &'a Attachment,
}

/// # Safety
/// The object is not detached while the result is used.
#[inline]
pub(super) unsafe fn at<'a>(address: *const u8) -> Result<HeapAt<'a>> {
    let last = LAST.get();
    if address.addr().wrapping_sub(last.base) < last.len
        && last.epoch == EPOCH.load(Ordering::Acquire)
        && !fork::is_stale(last.generation)
    {
        // SAFETY: still there (1).
        return Ok(unsafe { HeapAt { heap: &*last.heap, attachment: &*last.attachment } });
    }
    // SAFETY: the caller's promise.
    unsafe { look(address) }
}

/// # Safety
/// As for [`at`].
#[cold]
#[inline(never)]
unsafe fn look<'a>(address: *const u8) -> Result<HeapAt<'a>> {
    let attachment = find("use a heap", address.addr())?;
    let epoch = EPOCH.load(Ordering::Acquire);
    let heap = attachment.opened(None)?;
    let last = Last {
        base: attachment.start(),
        len: attachment.len(),
        epoch,
        generation: fork::generation(),
        heap,
        attachment: Arc::as_ptr(&attachment),
    };
    LAST.set(last);
    // SAFETY: the registry keeps both until the detach (1).
    Ok(unsafe { HeapAt { heap: &*last.heap, attachment: &*last.attachment } })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Open,
    Format,
    Either,
}

impl Attachment {
    pub(super) fn opened(&self, options: Option<HeapOptions>) -> Result<*const RawHeap> {
        let same = |heap: &RawHeap| options.is_none_or(|options| options == heap.options());
        if let Some(heap) = &*self.heap.read().unwrap_or_else(PoisonError::into_inner)
            && same(heap)
        {
            return Ok(&raw const **heap);
        }
        self.open(options.unwrap_or_default(), How::Open, same)
    }

    pub(super) fn open(
        &self,
        options: HeapOptions,
        how: How,
        same: impl Fn(&RawHeap) -> bool,
    ) -> Result<*const RawHeap> {
        let mut slot = self.heap.write().unwrap_or_else(PoisonError::into_inner);
        if how != How::Format
            && let Some(heap) = &*slot
            && same(heap)
        {
            return Ok(&raw const **heap);
        }
        if let (How::Format, Some(_)) = (how, &*slot) {
            return Err(self.error("format the heap of", Cause::Heap(HeapError::NotBlank)));
        }
        if slot.is_some() {
            close(&mut slot);
        }
        let extent = self.extent();
        // SAFETY: mapped until the detach, which drops the heap first; only the registry opens a
        // heap in it, once; other stores go to live blocks, as callers of `malloc` promise.
        let open = || unsafe { RawHeap::open(&extent, options) };
        // SAFETY: as above.
        let format = || unsafe { RawHeap::format(&extent, options) };
        let (operation, raw) = match how {
            How::Open => ("open the heap of", open()),
            How::Format => ("format the heap of", format()),
            How::Either => match open() {
                Err(HeapError::NotAHeap) => ("format the heap of", format()),
                opened => ("open the heap of", opened),
            },
        };
        let raw = raw.map_err(|error| self.error(operation, Cause::Heap(error)))?;
        Ok(&raw const **slot.insert(Box::new(raw)))
    }
}

impl HeapAt<'_> {
    #[cold]
    #[inline(never)]
    pub(super) fn error(&self, operation: &'static str, error: HeapError) -> Error {
        self.attachment.error(operation, Cause::Heap(error))
    }

    #[cold]
    #[inline(never)]
    #[expect(clippy::boxed_local, reason = "a pointer is quicker to pass than an error")]
    pub(super) fn failed(&self, operation: &'static str, error: Box<HeapError>) -> Error {
        self.error(operation, *error)
    }

    pub(super) fn done<T>(&self, operation: &'static str, result: Result<T, HeapError>) -> Result<T> {
        result.map_err(|error| self.error(operation, error))
    }
}
