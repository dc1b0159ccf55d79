//! Back-off after conflicts: random, growing waits; at last the thread runs alone.

use super::sync::{spin_loop, yield_now};

const ALONE_AFTER: u32 = 16;
const YIELD_AFTER: u32 = 2;

#[derive(Debug)]
pub(crate) struct Contention {
    conflicts: u32,
    random: u64,
}

impl Contention {
    /// `seed` differs by thread, so that they do not wait in step.
    pub(crate) fn new(seed: u64) -> Self {
        Contention { conflicts: 0, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    #[inline]
    pub(crate) fn settle(&mut self) {
        self.conflicts = 0;
    }

    #[inline]
    pub(crate) fn wants_alone(&self) -> bool {
        self.conflicts >= ALONE_AFTER
    }

    pub(crate) fn ask_alone(&mut self) {
        self.conflicts = ALONE_AFTER;
    }

    #[cold]
    pub(crate) fn back_off(&mut self) {
        self.conflicts += 1;
        if self.wants_alone() {
            return;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let longest = 16_u64 << self.conflicts.min(8);
        for _ in 0..self.random % longest {
            spin_loop();
        }
        if self.conflicts > YIELD_AFTER {
            yield_now();
        }
    }
}
