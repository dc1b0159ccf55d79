//! Ownership of blocks: the walk over all that is reachable from roots whose types are known.
//!
//! Each block is claimed by its address, once. As no two live blocks of a heap overlap, which the heap's own
//! check finds out, values that claimed their blocks have no byte in common. The content of a block is looked
//! at later, from a list: the depth of the walk is that of types, not of the data.
//!
//! Invariant: (1) every entry of `pending` lies in a block that was claimed.

#![allow(unsafe_code)]

use super::persist::{Bounds, Persist};
use crate::heap::HeapFinding;
use std::collections::HashSet;

/// Looks at so many values at an address.
type Step = fn(*const u8, usize, &mut Claims<'_>);

/// Blocks that were claimed, and findings.
pub struct Claims<'a> {
    bounds: Bounds,
    /// Bytes of the live block that begins at an address.
    live: &'a dyn Fn(usize) -> Option<usize>,
    owned: HashSet<u64>,
    pending: Vec<(*const u8, usize, Step)>,
    findings: Vec<HeapFinding>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(bounds: Bounds, live: &'a dyn Fn(usize) -> Option<usize>) -> Self {
        Claims { bounds, live, owned: HashSet::new(), pending: Vec::new(), findings: Vec::new() }
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Adds a finding about an address unless `right`.
    pub(super) fn expect(&mut self, right: bool, address: usize, what: &str) {
        if !right {
            let offset = address.wrapping_sub(self.bounds.base) as u64;
            self.findings.push(HeapFinding { offset, what: what.to_owned() });
        }
    }

    /// Claims a block. Returns whether it is in use, has at least `bytes` bytes, and was not claimed before.
    pub(super) fn block(&mut self, address: u64, bytes: u64) -> bool {
        let what = match (self.live)(address as usize) {
            None => "the owned address is not that of a block in use",
            Some(len) if (len as u64) < bytes => "a block is smaller than its value",
            Some(_) if !self.owned.insert(address) => "a block has two owners",
            Some(_) => return true,
        };
        self.expect(false, address as usize, what);
        false
    }

    /// Claims what a value owns, if it is one.
    ///
    /// # Safety
    /// It lies in a block that was claimed.
    pub(super) unsafe fn value<'h, T: Persist<'h>>(&mut self, at: *const T) {
        if T::ANY {
            return;
        }
        // SAFETY: aligned and readable, as it lies in a block of the container; nobody writes meanwhile.
        unsafe {
            if T::check(at, &self.bounds) {
                T::claim(at, self);
            } else {
                self.expect(false, at.addr(), "this is no value of its type");
            }
        }
    }

    /// As [`value`](Claims::value) for several, later.
    pub(super) fn values<'h, T: Persist<'h>>(&mut self, at: *const T, count: usize) {
        if T::ANY {
            return;
        }
        self.later(at, count, |at, count, claims| {
            for index in 0..count {
                // SAFETY: in a block that was claimed (1).
                unsafe { claims.value(at.cast::<T>().add(index)) }
            }
        });
    }

    /// Queues values in a claimed block, to be looked at later.
    pub(super) fn later<T>(&mut self, at: *const T, count: usize, step: Step) {
        self.pending.push((at.cast(), count, step));
    }

    /// Looks at all there is.
    pub(super) fn finish(mut self) -> Vec<HeapFinding> {
        while let Some((at, count, step)) = self.pending.pop() {
            step(at, count, &mut self);
        }
        self.findings
    }
}

impl std::fmt::Debug for Claims<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claims").field("blocks", &self.owned.len()).field("findings", &self.findings).finish()
    }
}
