//! The writable pages of a watched range: one type, so that protection and bits change in one
//! order.
//!
//! Invariants:
//! 1. A page is writable only if its bit is set. (After a hold, or a call that protected
//!    everything, a page with its bit may be read-only.)
//! 2. Bits and protection change only by a handler that has its [`Claim`], which sets the bits
//!    first, or under a [`Hold`] of the range's turn, which clears the bits last. The two exclude
//!    each other.
//!
//! Allocates nothing and takes no lock: half of it runs in a signal handler. The models crate
//! compiles it with loom's atomics.

use std::ops::Range;

use super::bitmap::Tree;
use super::turn::{Claim, Hold};
use crate::sys::sync::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(super) struct Pages {
    writable: Tree,
    capacity: usize,
    count: AtomicUsize,
    /// An upper bound of half the range's mappings.
    splits: AtomicUsize,
    budget: usize,
}

impl Pages {
    pub(super) fn new(count: usize, budget: usize) -> Pages {
        let capacity = count.saturating_mul(2);
        Pages {
            writable: Tree::new(capacity),
            capacity,
            count: AtomicUsize::new(count),
            splits: AtomicUsize::new(0),
            budget: budget.max(1),
        }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn grow(&self, count: usize) -> bool {
        let room = count <= self.capacity;
        if room {
            self.count.store(count, Ordering::SeqCst);
        }
        room
    }

    pub(super) fn open(&self, _: &Claim, page: usize, allow: impl Fn(Range<usize>) -> bool) -> bool {
        let splits = self.splits.fetch_add(1, Ordering::Relaxed);
        let count = self.count();
        let mut cluster = match splits / self.budget {
            0 => 1,
            1 => 64,
            _ => count.next_power_of_two(),
        };
        loop {
            let first = page / cluster * cluster;
            let end = (first + cluster).min(count);
            for page in first..end {
                self.writable.set(page);
            }
            if allow(first..end) {
                return true;
            }
            if first == 0 && end == count {
                return false;
            }
            cluster = (cluster * 64).min(count.next_power_of_two());
        }
    }

    pub(super) fn close<E>(
        &self,
        _: &Hold<'_>,
        pages: Range<usize>,
        forbid: impl FnOnce(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        forbid(pages.clone())?;
        pages.for_each(|page| self.writable.clear(page));
        Ok(())
    }

    pub(super) fn joined(&self) {
        self.splits.store(0, Ordering::Relaxed);
    }

    pub(super) fn for_each(&self, each: impl FnMut(usize)) {
        self.writable.for_each(each);
    }
}
