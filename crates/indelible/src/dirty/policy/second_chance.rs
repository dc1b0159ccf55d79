//! The policy for pages whose faults a signal handler takes: a page that changes for the second
//! time stays writable until two psyncs find it unchanged.
//!
//! Invariants:
//! 1. A page in `again` has been reported before.
//! 2. A page in `idle` was found unchanged by the last settle that mentioned it.

use super::{FaultPolicy, Policy};
use crate::dirty::bitmap::Bits;

/// More runs are protected by one call for all pages; still dirty ones fault once more.
const RUNS_APART: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct SecondChance {
    again: Bits,
    idle: Bits,
}

impl Policy for SecondChance {
    fn grow(&mut self, pages: usize) {
        self.again.grow(pages);
        self.idle.grow(pages);
    }

    fn leaves(&mut self, page: usize, changed: bool) -> bool {
        let known = self.again.get(page);
        self.again.set(page);
        if !changed && known && !self.idle.get(page) {
            self.idle.set(page);
            return true;
        }
        self.idle.clear(page);
        changed && known
    }
}

impl FaultPolicy for SecondChance {
    fn splits(&mut self, most: usize) -> usize {
        most
    }

    fn protects_all(&mut self, runs: usize) -> bool {
        runs > RUNS_APART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_changed_twice_is_left_until_it_was_idle_twice() {
        let mut policy = SecondChance::default();
        policy.grow(9);
        let told = [true, true, true, false, true, false, false, false, true];
        let left = [false, true, true, true, true, true, false, true, true];
        assert_eq!(told.map(|changed| policy.leaves(8, changed)), left);
        assert!(!policy.leaves(7, false), "never seen before");
    }
}
