//! The SIGSEGV handler's part for a store to a watched range: it lets the store pass, or wait.
//!
//! Invariants: as in [`registry`](super::registry), and a handler touches a range's pages and
//! protection only within [`Turn::pass`](super::turn::Turn::pass).
//!
//! Allocates nothing and takes no lock; it waits in a futex, with all signals blocked.

#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use rustix::thread::futex;

use super::registry::{Slot, find};
use super::turn::{Claim, Passed};
use crate::sys::PAGE;
use crate::sys::mmap::{self, Protection};
use crate::sys::signal::Verdict;

pub(super) fn me() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Async-signal-safe.
pub(super) fn resolve(addr: usize) -> Verdict {
    find(addr, |slot| pass(slot, addr)).unwrap_or(Verdict::Foreign)
}

fn pass(slot: &'static Slot, addr: usize) -> Option<Verdict> {
    Some(match slot.turn.pass(addr, || slot.is_stale(), me, |claim| open(slot, claim, addr)) {
        Passed::Gone => return None,
        Passed::Own | Passed::Done(false) => Verdict::Foreign,
        Passed::Done(true) => Verdict::Resolved,
        Passed::Held(held) => {
            // After the wait the store is retried, and may return here.
            let _ = futex::wait(&slot.turn.held, futex::Flags::PRIVATE, held, None);
            Verdict::Resolved
        }
    })
}

fn open(slot: &Slot, claim: &Claim, addr: usize) -> bool {
    let start = claim.start;
    let page = (addr - start) / PAGE;
    let allow = |pages: std::ops::Range<usize>| {
        let (at, len) = (start + pages.start * PAGE, (pages.end - pages.start) * PAGE);
        // SAFETY: pages of the live range of this slot, and access is only added.
        unsafe { mmap::protect(at, len, Protection::ReadWrite) }.is_ok()
    };
    // SAFETY: null, or alive while it is this handler's turn.
    match unsafe { slot.pages.load(Ordering::SeqCst).as_ref() } {
        Some(pages) => pages.open(claim, page, allow),
        None => allow(page..page + 1),
    }
}
