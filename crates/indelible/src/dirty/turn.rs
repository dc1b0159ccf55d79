//! Exclusion on a watched range between handlers, its holder, and the thread that withdraws it.
//!
//! Invariants:
//! 1. `active` counts handlers between their claim and their last touch of the range owner's
//!    memory. A handler that finds the range gone, or `held` not 0, after its claim, touches
//!    nothing.
//! 2. [`hold`](Turn::hold) and [`withdraw`](Turn::withdraw) return once no earlier handler is
//!    active. Both sides store first and load second, with a fence between.
//! 3. A handler sleeps only on a value of `held` with `WAITERS`, and the thread that replaces such
//!    a value wakes it.
//!
//! Allocates nothing and takes no lock: it runs in a signal handler.

use crate::sys::sync::{AtomicU32, AtomicUsize, Ordering, fence};

/// In `held`: handlers may be asleep. Thread IDs are smaller.
const WAITERS: u32 = 1 << 31;

#[derive(Default)]
pub(super) struct Turn {
    pub(super) start: AtomicUsize,
    pub(super) end: AtomicUsize,
    pub(super) active: AtomicU32,
    pub(super) held: AtomicU32,
}

pub(super) struct Claim {
    pub(super) start: usize,
}

#[must_use]
pub(super) struct Hold<'a> {
    turn: &'a Turn,
    nested: bool,
}

pub(super) enum Passed<R> {
    Gone,
    Own,
    Held(u32),
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

    pub(super) fn pass<R>(
        &self,
        addr: usize,
        is_stale: impl FnOnce() -> bool,
        me: impl FnOnce() -> u32,
        work: impl FnOnce(&Claim) -> R,
    ) -> Passed<R> {
        self.active.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let held = self.held.load(Ordering::SeqCst);
        let passed = if !self.covers(addr) || is_stale() {
            Passed::Gone
        } else if held == 0 {
            Passed::Done(work(&Claim { start: self.start.load(Ordering::SeqCst) }))
        } else {
            Passed::Held(held)
        };
        self.active.fetch_sub(1, Ordering::SeqCst);
        match passed {
            // Waiting for itself would never end.
            Passed::Held(held) if held & !WAITERS == me() => Passed::Own,
            Passed::Held(held) => {
                // If this fails, the wait finds another value and ends at once.
                let (known, told) = (Ordering::SeqCst, held | WAITERS);
                let _ = self.held.compare_exchange(held, told, known, known);
                Passed::Held(told)
            }
            other => other,
        }
    }

    /// Excludes others until [released](Hold::release). A thread may nest holds.
    pub(super) fn hold(&self, who: u32, pause: impl Fn()) -> Hold<'_> {
        if self.held.load(Ordering::SeqCst) & !WAITERS == who {
            return Hold { turn: self, nested: true };
        }
        self.held.store(who, Ordering::SeqCst);
        self.drain(pause);
        Hold { turn: self, nested: false }
    }

    pub(super) fn release(&self) -> bool {
        self.held.swap(0, Ordering::SeqCst) & WAITERS != 0
    }

    /// Wake waiting handlers before [`drain`](Turn::drain).
    pub(super) fn withdraw(&self) -> bool {
        self.end.store(0, Ordering::SeqCst);
        self.start.store(0, Ordering::SeqCst);
        self.release()
    }

    pub(super) fn drain(&self, pause: impl Fn()) {
        fence(Ordering::SeqCst);
        while self.active.load(Ordering::SeqCst) != 0 {
            pause();
        }
    }
}

impl Hold<'_> {
    pub(super) fn release(self) -> bool {
        !self.nested && self.turn.release()
    }

    pub(super) fn keep(self) {}
}
