//! Counts a thread's [`Open`](super::Open)s: together they give the most that any gives, in any
//! order of drops.
//!
//! Invariants:
//! 1. A count is of one thread, one domain and one generation of forks. No signal handler leaves it
//!    changed.
//! 2. After [`forget`], earlier `Open`s count for nothing.

use super::rights::MOST;
use crate::sys::mmap::Protection;
use std::cell::Cell;

#[derive(Clone, Copy, Default)]
struct Guards {
    readers: u32,
    writers: u32,
}

impl Guards {
    const NONE: Guards = Guards { readers: 0, writers: 0 };

    fn right(self) -> Protection {
        match (self.readers, self.writers) {
            (0, 0) => Protection::None,
            (_, 0) => Protection::Read,
            _ => Protection::ReadWrite,
        }
    }
}

/// No destructor: handlers use it.
struct Thread {
    generation: Cell<u32>,
    epoch: Cell<u32>,
    guards: [Cell<Guards>; 2 * (MOST + 1)],
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            generation: Cell::new(0),
            epoch: Cell::new(0),
            guards: [const { Cell::new(Guards::NONE) }; 2 * (MOST + 1)],
        }
    };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RightsIndex {
    index: usize,
    generation: u32,
}

impl RightsIndex {
    #[inline]
    pub(super) fn of_key(index: usize, generation: u32) -> RightsIndex {
        RightsIndex { index, generation }
    }

    #[inline]
    pub(super) fn of_slot(index: usize, generation: u32) -> RightsIndex {
        RightsIndex { index: MOST + 1 + index, generation }
    }

    #[inline]
    pub(super) fn right(self) -> Protection {
        THREAD.with(|thread| self.guards(thread).get().right())
    }

    #[inline]
    pub(super) fn add(self, access: Protection) -> u32 {
        THREAD.with(|thread| {
            self.change(thread, access, |count| count + 1);
            thread.epoch.get()
        })
    }

    #[inline]
    pub(super) fn is_current(epoch: u32) -> bool {
        THREAD.with(|thread| thread.epoch.get() == epoch)
    }

    #[inline]
    pub(super) fn remove(self, access: Protection) {
        THREAD.with(|thread| self.change(thread, access, |count| count.saturating_sub(1)));
    }

    #[inline]
    fn change(self, thread: &Thread, access: Protection, by: impl Fn(u32) -> u32) {
        let cell = self.guards(thread);
        let mut guards = cell.get();
        match access {
            Protection::None => {}
            Protection::Read => guards.readers = by(guards.readers),
            Protection::ReadWrite => guards.writers = by(guards.writers),
        }
        cell.set(guards);
    }

    /// A fork inherits none of its parent's guards.
    #[inline]
    fn guards(self, thread: &Thread) -> &Cell<Guards> {
        if thread.generation.replace(self.generation) != self.generation {
            thread.guards.iter().for_each(|guards| guards.set(Guards::NONE));
        }
        &thread.guards[self.index]
    }
}

pub(super) fn forget() {
    THREAD.with(|thread| {
        thread.guards.iter().for_each(|guards| guards.set(Guards::NONE));
        thread.epoch.set(thread.epoch.get().wrapping_add(1));
    });
}
