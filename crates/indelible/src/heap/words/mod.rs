//! The heap of a transactional object: its bytes are those of every heap (FORMAT.md, section 9),
//! and change as words of a transaction (docs/decisions/0051-transactional-heaps.md).
//!
//! A block's allocation byte is a byte of the transaction that allocates or frees it: an aborted
//! one leaves no reservation. Pages, directory and roots change on copies ([`prepare`]), by the
//! code of every heap; then the differing words are stored.

mod blocks;
mod hints;
mod prepare;
mod roots;
mod shorten;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use hints::Hints;

use crate::error::Cause;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) trait Words {
    /// The word at this offset, a multiple of 8, as the transaction sees it.
    ///
    /// # Errors
    /// A conflict; `Damaged` beyond the end of the object.
    fn load(&mut self, offset: u64) -> Result<u64, Cause>;

    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause>;

    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause>;

    /// The word in memory now, with the transaction's own changes, which does not rely on it; 0
    /// beyond the end.
    fn peek(&self, offset: u64) -> u64;
}

pub(crate) struct WordHeap {
    base: usize,
    /// Grows while no transaction runs, or in one that is alone.
    len: AtomicUsize,
    hints: Hints,
}

impl WordHeap {
    pub(crate) fn new(base: usize, len: usize) -> WordHeap {
        WordHeap { base, len: AtomicUsize::new(len), hints: Hints::default() }
    }

    #[inline]
    fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn lengthen(&self, len: usize) {
        self.len.fetch_max(len, Ordering::AcqRel);
    }

    #[inline]
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base as u64);
        (offset < self.len() as u64).then_some(offset)
    }

    #[inline]
    pub(crate) fn address_of(&self, offset: u64) -> u64 {
        self.base as u64 + offset
    }
}
