//! Who may touch a watched range: handlers, its holder, or whoever takes it away.
//!
//! Invariants:
//! 1. `active` counts handlers between their claim and their last touch of what the range's owner owns. A
//!    handler that finds the range gone, or `held` not 0, after its claim, touches nothing.
//! 2. [`hold`](Turn::hold) and [`withdraw`](Turn::withdraw) return once no handler is active that came
//!    before them. Both sides store first and load second, with a fence between.
//!
//! Allocates nothing and takes no lock: it runs in a signal handler.

use crate::sys::sync::{AtomicU32, AtomicUsize, Ordering, fence};

#[derive(Default)]
pub(super) struct Turn {
    /// First address; not below `end`: no range.
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
    pub(super) active: AtomicU32,
    /// 0, or the thread that holds the range.
    pub(super) held: AtomicU32,
}

/// What a handler was told.
pub(super) enum Passed<R> {
    /// The range was given up meanwhile.
    Gone,
    /// This thread itself holds the range.
    Own,
    /// Another does: the value of `held` to wait on.
    Held(u32),
    /// It did its work.
    Done(R),
}

impl Turn {
    pub(super) fn publish(&self, start: usize, len: usize) {
        self.held.store(0, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.end.store(start + len, Ordering::SeqCst);
    }

    pub(super) fn covers(&self, addr: usize) -> bool {
        self.start.load(Ordering::SeqCst) <= addr && addr < self.end.load(Ordering::SeqCst)
    }

    /// A handler's part: `work(start)` if it is its turn.
    pub(super) fn pass<R>(
        &self,
        addr: usize,
        is_stale: impl FnOnce() -> bool,
        me: impl FnOnce() -> u32,
        work: impl FnOnce(usize) -> R,
    ) -> Passed<R> {
        self.active.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let held = self.held.load(Ordering::SeqCst);
        let passed = if !self.covers(addr) || is_stale() {
            Passed::Gone
        } else if held == 0 {
            Passed::Done(work(self.start.load(Ordering::SeqCst)))
        } else {
            Passed::Held(held)
        };
        self.active.fetch_sub(1, Ordering::SeqCst);
        match passed {
            // Waiting for oneself would be for ever.
            Passed::Held(held) if held == me() => Passed::Own,
            other => other,
        }
    }

    /// Nobody works in the range from the return on, until [`release`](Turn::release).
    pub(super) fn hold(&self, who: u32, pause: impl Fn()) {
        self.held.store(who, Ordering::SeqCst);
        self.drain(pause);
    }

    /// Ends a hold. Those that wait on `held` are to be woken.
    pub(super) fn release(&self) {
        self.held.store(0, Ordering::SeqCst);
    }

    /// Nobody finds the range from now on; those that wait are to be woken before [`drain`](Turn::drain).
    pub(super) fn withdraw(&self) {
        self.end.store(0, Ordering::SeqCst);
        self.start.store(0, Ordering::SeqCst);
        self.release();
    }

    /// Waits for handlers on their way out: a few instructions, or one change of protection.
    pub(super) fn drain(&self, pause: impl Fn()) {
        fence(Ordering::SeqCst);
        while self.active.load(Ordering::SeqCst) != 0 {
            pause();
        }
    }
}
