//! The memory that the words of a transaction are in, and the one implementation that takes
//! addresses as they are.
//!
//! # Invariants
//!
//! 1. An address that reaches a [`Memory`] is that of an aligned word which the caller of an unsafe
//!    function of [`Transaction`](crate::Transaction) promised to be valid until the transaction
//!    has ended, or of a [`TxWord`](crate::TxWord) that outlives it.
//! 2. All accesses of such a word while transactions run are these: relaxed atomics of the whole
//!    word. So there is no data race and no mixture of sizes; the order comes from stripes and
//!    clock.
//! 3. The provenance of an address was exposed where it became a number.

use std::sync::atomic::{AtomicU64, Ordering};

/// A word in memory differs from the last store to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a word in memory is not what was last stored to it")]
pub struct Damaged;

/// Gives access to words by their addresses: as they are ([`Direct`]), or at another place, such as
/// a second mapping.
///
/// # Safety
///
/// `load` and `store` are relaxed atomic operations on one word for each address, which nothing
/// else shares; a word has the value of the last store to it, or a load reports that it has not.
/// Neither panics.
pub unsafe trait Memory: Send + Sync {
    /// Whether a thread may be in a transaction of this memory and in one of another at once: that
    /// of a library whose transactions call another library, which has its own. Its user sees to it
    /// then that each thread has one [`Thread`](crate::Thread) of this memory.
    const BESIDE_OTHERS: bool = false;

    /// The word at this address, a multiple of 8.
    ///
    /// # Errors
    ///
    /// [`Damaged`], also if another thread stores to a word with a check word meanwhile.
    ///
    /// # Safety
    ///
    /// The word is there, and only transactions of the same [`Stm`](crate::Stm) access it
    /// meanwhile.
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged>;

    /// Stores the bits of `value` that are set in `bits`; all of them, if the word has a check
    /// word. No other thread stores to the word meanwhile.
    ///
    /// # Safety
    ///
    /// As for `load`; and the word may be stored to.
    unsafe fn store(&self, address: usize, value: u64, bits: u64);

    /// Whether the word at this address has a [check word](crate::ecc), so that damage is noticed.
    /// It is stored whole alone: bytes of a damaged word beside new ones would get a check word
    /// that says that they are right.
    #[inline]
    fn is_checked(&self, address: usize) -> bool {
        let _ = address;
        false
    }

    /// Whether a transaction stores to the line at this address at once, and undoes that if it does
    /// not commit. Code that the transaction runs and that accesses memory plainly sees its stores
    /// then. The same for all of a line, while transactions run; such a line has no check words.
    #[inline]
    fn in_place(&self, line: usize) -> bool {
        let _ = line;
        false
    }

    /// The value that a damaged word had, if its check word tells. No other thread stores to it
    /// meanwhile.
    ///
    /// # Safety
    ///
    /// As for `load`.
    unsafe fn repaired(&self, address: usize) -> Option<u64> {
        let _ = address;
        None
    }
}

/// The memory of the process: each word is where its address says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Direct {
    /// # Safety
    ///
    /// As for [`Memory::load`].
    #[inline]
    unsafe fn word<'a>(address: usize) -> &'a AtomicU64 {
        // SAFETY: the word is there and aligned (1), accessed as an atomic alone (2), and its
        // provenance is exposed (3).
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }
}

// SAFETY: relaxed loads and stores of the word itself; the owner of its stripe alone stores.
unsafe impl Memory for Direct {
    #[inline]
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        Ok(unsafe { Direct::word(address) }.load(Ordering::Relaxed))
    }

    #[inline]
    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        let word = unsafe { Direct::word(address) };
        let kept = if bits == u64::MAX { 0 } else { word.load(Ordering::Relaxed) & !bits };
        word.store(kept | value & bits, Ordering::Relaxed);
    }
}
