//! The owner's side of a range whose stores the SIGSEGV handler lets pass or holds up.
//!
//! Invariants: as in [`registry`](super::registry); and access is only taken away under a
//! [`Hold`](super::turn::Hold): meanwhile no handler gives access.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering;

use rustix::thread::futex;

use super::handler::{me, resolve};
use super::pages::Pages;
use super::registry::{Slot, claim};
use crate::sys::mmap::{self, Protection};
use crate::sys::{PAGE, fork, signal};

pub(super) struct Watched {
    slot: &'static Slot,
    start: usize,
    /// Invariant: what `slot.pages` points to, or null; made by `Box::into_raw`.
    pages: *mut Pages,
    generation: u32,
}

// SAFETY: `pages` is only read through shared references to a `Sync` value.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    /// Without pages a fault outside a hold counts as late, and its page becomes writable.
    pub(super) fn new(start: usize, len: usize, pages: Option<Pages>) -> io::Result<Watched> {
        signal::install(resolve)?;
        let slot = claim().ok_or(io::ErrorKind::OutOfMemory)?;
        let pages = pages.map_or(ptr::null_mut(), |pages| Box::into_raw(Box::new(pages)));
        slot.publish(start, len, pages);
        Ok(Watched { slot, start, pages, generation: fork::generation() })
    }

    pub(super) fn pages(&self) -> Option<&Pages> {
        // SAFETY: null, or pages that live as long as `self`; shared access only.
        unsafe { self.pages.as_ref() }
    }

    fn len(&self) -> usize {
        self.slot.turn.end.load(Ordering::Relaxed) - self.start
    }

    pub(super) fn extend(&self, len: usize) -> bool {
        let room = self.pages().is_none_or(|pages| pages.grow(len / PAGE));
        if room {
            self.slot.turn.end.store(self.start + len, Ordering::SeqCst);
        }
        room
    }

    /// Everything by one call if `all`, or if the process's mappings run out.
    pub(super) fn close(
        &self,
        runs: impl Iterator<Item = Range<usize>> + Clone,
        all: bool,
    ) -> io::Result<()> {
        let Some(pages) = self.pages() else { return Ok(()) };
        let forbid = |pages: Range<usize>| {
            let (at, len) = (self.start + pages.start * PAGE, (pages.end - pages.start) * PAGE);
            // SAFETY: the owner's own range; a store that meets the protection waits in the
            // handler.
            unsafe { mmap::protect(at, len, Protection::Read) }
        };
        let hold = self.slot.turn.hold(me(), std::thread::yield_now);
        let apart = || runs.clone().try_for_each(|run| pages.close(&hold, run, forbid));
        let whole = || {
            forbid(0..self.len() / PAGE)?;
            pages.joined();
            runs.clone().try_for_each(|run| pages.close(&hold, run, |_| Ok(())))
        };
        let done = match if all { whole() } else { apart() } {
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory && !all => whole(),
            done => done,
        };
        self.wake(hold.release());
        done
    }

    pub(super) fn hold(&self) {
        self.slot.turn.hold(me(), std::thread::yield_now).keep();
    }

    pub(super) fn forbid(&self, bytes: Range<usize>) -> io::Result<()> {
        // SAFETY: the owner's own range; a store that meets the protection waits in the handler.
        unsafe { mmap::protect(self.start + bytes.start, bytes.len(), Protection::Read) }
    }

    pub(super) fn hold_all(&self) -> io::Result<()> {
        self.hold();
        let done = self.forbid(0..self.len());
        match &done {
            Ok(()) => self.pages().into_iter().for_each(Pages::joined),
            Err(_) => self.wake(self.slot.turn.release()),
        }
        done
    }

    pub(super) fn release(&self, writable: bool) -> io::Result<()> {
        let done = if writable {
            // SAFETY: the owner's own range; access is only added.
            unsafe { mmap::protect(self.start, self.len(), Protection::ReadWrite) }
        } else {
            Ok(())
        };
        self.wake(self.slot.turn.release());
        done
    }

    fn wake(&self, waiting: bool) {
        if waiting {
            let _ = futex::wake(&self.slot.turn.held, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !fork::is_stale(self.generation) {
            self.wake(self.slot.turn.withdraw());
            self.slot.turn.drain(std::thread::yield_now);
            self.slot.vacate();
        }
        if !self.pages.is_null() {
            // SAFETY: from `Box::into_raw`; no handler of this process generation knows it any
            // more.
            drop(unsafe { Box::from_raw(self.pages) });
        }
    }
}
