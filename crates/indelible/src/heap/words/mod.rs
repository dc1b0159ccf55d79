//! The heap of a transactional object: its bytes are those of every heap (FORMAT.md, section 9),
//! and change as words of a transaction.
//!
//! A block's allocation byte is a byte of the transaction that allocates or frees it. So no other
//! transaction sees it before the commit, no line of the log has the byte of another transaction,
//! and an abort, a conflict, a panic or a crash leaves nothing: there is no reservation that could
//! be kept. A transaction makes its changes of pages, directory and roots on copies ([`prepare`]),
//! by the code of every heap, and stores the words that differ. Memory holds only hints where to
//! look for a free block ([`hints`]), which may be wrong: the transaction checks all that they
//! suggest (docs/decisions/0051-transactional-heaps.md).
//!
//! Called by the transactions, which implement [`Words`].

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

/// Words of an object in a transaction.
pub(crate) trait Words {
    /// The word at this offset, a multiple of 8, as the transaction sees it.
    ///
    /// # Errors
    /// A conflict; `Damaged` beyond the end of the object.
    fn load(&mut self, offset: u64) -> Result<u64, Cause>;

    /// Changes the word at this offset.
    ///
    /// # Errors
    /// As for [`load`](Words::load).
    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause>;

    /// Changes the byte at this offset.
    ///
    /// # Errors
    /// As for [`load`](Words::load).
    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause>;

    /// The word as it is in memory just now, with the transaction's own changes, which does not
    /// rely on it; 0 beyond the end.
    fn peek(&self, offset: u64) -> u64;
}

/// The heap of an object, as its transactions use it.
pub(crate) struct WordHeap {
    /// The object's own address, which its pointers have.
    base: usize,
    /// Bytes of the object. It grows while no transaction runs, or in one that is alone.
    len: AtomicUsize,
    hints: Hints,
}

impl WordHeap {
    pub(crate) fn new(base: usize, len: usize) -> WordHeap {
        WordHeap { base, len: AtomicUsize::new(len), hints: Hints::default() }
    }

    /// Bytes of the object.
    fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// The object has so many bytes now. Transactions take in the new ones when they need them.
    pub(crate) fn lengthen(&self, len: usize) {
        self.len.fetch_max(len, Ordering::AcqRel);
    }

    /// Offset of an address in the object, if it is one.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base as u64);
        (offset < self.len() as u64).then_some(offset)
    }

    pub(crate) fn address_of(&self, offset: u64) -> u64 {
        self.base as u64 + offset
    }
}
