//! The mappings of a pool that is memory. The newest covers the pool; older, shorter ones stay for
//! callers with addresses in them.
//!
//! Invariants:
//! 1. Each mapping is at least twice as long as the one before, so that there are few.
//! 2. A page whose bit is set in the newest mapping has its blocks. Clearing bits and making
//!    another mapping, which copies them, exclude each other.

use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::sys::PAGE;
use crate::sys::sync::{AtomicU64, Ordering, zeroed};

pub(super) struct Mapping {
    pub(super) base: NonNull<u8>,
    pub(super) mapped: usize,
    known: Box<[AtomicU64]>,
    newer: OnceLock<Box<Mapping>>,
}

impl Mapping {
    pub(super) fn new(base: NonNull<u8>, mapped: usize, tracked: bool) -> Mapping {
        let pages = if tracked { mapped / PAGE } else { 0 };
        Mapping { base, mapped, known: zeroed(pages.div_ceil(64)), newer: OnceLock::new() }
    }

    #[inline]
    pub(super) fn is_known(&self, offset: u64, len: u64) -> bool {
        if len == 0 || self.known.is_empty() {
            return true;
        }
        let (first, last) = (offset as usize / PAGE, (offset + len - 1) as usize / PAGE);
        (first / 64..=last / 64).all(|word| {
            let mask = word_mask(word, first, last);
            self.known[word].load(Ordering::Relaxed) & mask == mask
        })
    }

    fn mark(&self, offset: u64, len: u64, known: bool) {
        if len == 0 || self.known.is_empty() {
            return;
        }
        let (first, last) = (offset as usize / PAGE, (offset + len - 1) as usize / PAGE);
        for word in first / 64..=last / 64 {
            let mask = word_mask(word, first, last);
            // A load is cheaper than a change, and a sparse object has many words.
            let had = self.known[word].load(Ordering::Relaxed) & mask;
            if known && had != mask {
                self.known[word].fetch_or(mask, Ordering::Relaxed);
            } else if !known && had != 0 {
                self.known[word].fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }
}

#[inline]
fn word_mask(word: usize, first: usize, last: usize) -> u64 {
    let low = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
    let high = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
    low & high
}

pub(super) struct Mappings {
    first: Mapping,
    /// Invariant 2.
    changing: Mutex<()>,
}

impl Mappings {
    pub(super) fn new(first: Mapping) -> Mappings {
        Mappings { first, changing: Mutex::new(()) }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        std::iter::successors(Some(&self.first), |mapping| mapping.newer.get().map(|newer| &**newer))
    }

    #[inline]
    pub(super) fn newest(&self) -> &Mapping {
        let mut newest = &self.first;
        while let Some(newer) = newest.newer.get() {
            newest = newer;
        }
        newest
    }

    pub(super) fn cover<E>(
        &self,
        len: usize,
        map: impl FnOnce(usize) -> Result<Mapping, E>,
    ) -> Result<(), E> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.newest();
        if len <= old.mapped {
            return Ok(());
        }
        let newer = map(len.max(old.mapped.saturating_mul(2)))?;
        for (new, old) in newer.known.iter().zip(&old.known) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let _ = old.newer.set(Box::new(newer));
        Ok(())
    }

    pub(super) fn know(&self, offset: u64, len: u64) {
        self.newest().mark(offset, len, true);
    }

    pub(super) fn forget(&self, offset: u64, len: u64) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.newest().mark(offset, len, false);
    }
}
