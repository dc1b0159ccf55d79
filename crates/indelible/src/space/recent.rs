//! Facts found by stores to an object, for later ones: the last stored bytes, and the block of
//! pages around them.
//!
//! Invariants, of an object whose heap is used by its space alone:
//! 1. Kept bytes lie in one block in use, and were marked as stored to since the object's last
//!    psync.
//! 2. `pages` is a block in use that has pages of its own, or empty.
//!
//! So everything is [forgotten](Recent::forget) before a block is freed, and before anything that
//! may take the marks.

use std::ops::Range;

/// Kept stores, by line: enough for one change of a tree or a table.
const KEPT: usize = 32;
const LINE: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Bytes {
    offset: u64,
    len: u64,
    since: u64,
}

pub(super) struct Recent {
    stores: [Bytes; KEPT],
    pages: Range<u64>,
    forgotten: u64,
}

impl Recent {
    pub(super) fn new() -> Recent {
        Recent { stores: [Bytes::default(); KEPT], pages: 0..0, forgotten: 1 }
    }

    fn place(offset: u64) -> usize {
        (offset / LINE) as usize % KEPT
    }

    #[inline]
    pub(super) fn has(&self, offset: u64, len: u64) -> bool {
        let kept = &self.stores[Recent::place(offset)];
        kept.offset == offset && kept.len == len && kept.since == self.forgotten
    }

    #[inline]
    pub(super) fn keep(&mut self, offset: u64, len: u64) {
        self.stores[Recent::place(offset)] = Bytes { offset, len, since: self.forgotten };
    }

    #[inline]
    pub(super) fn is_in_pages(&self, offset: u64, len: u64) -> bool {
        self.pages.start <= offset && offset.checked_add(len).is_some_and(|end| end <= self.pages.end)
    }

    pub(super) fn keep_pages(&mut self, block: Range<u64>) {
        self.pages = block;
    }

    #[inline]
    pub(super) fn forget(&mut self) {
        self.forgotten += 1;
        self.pages = 0..0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_known_until_all_is_forgotten_or_others_take_their_place() {
        let mut recent = Recent::new();
        assert!(!recent.has(0, 0) && !recent.has(64, 8));
        recent.keep(64, 8);
        assert!(recent.has(64, 8) && !recent.has(64, 9) && !recent.has(72, 8));
        recent.keep(64 + KEPT as u64 * LINE, 8);
        assert!(!recent.has(64, 8));
        recent.forget();
        assert!(!recent.has(64 + KEPT as u64 * LINE, 8));
    }

    #[test]
    fn bytes_beyond_a_block_of_pages_are_not_in_it() {
        let mut recent = Recent::new();
        assert!(!recent.is_in_pages(0, 1));
        recent.keep_pages(4096..8192);
        assert!(recent.is_in_pages(4096, 4096) && recent.is_in_pages(8191, 1));
        assert!(!recent.is_in_pages(4095, 1) && !recent.is_in_pages(8191, 2));
        assert!(!recent.is_in_pages(4096, u64::MAX));
        recent.forget();
        assert!(!recent.is_in_pages(4096, 1));
    }
}
