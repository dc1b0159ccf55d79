//! The memory of a transaction's words, and the direct implementation.
//!
//! # Invariants
//!
//! 1. An address that reaches a [`Memory`] is that of an aligned word that the caller of an unsafe
//!    function of [`Transaction`](crate::Transaction) promised to be valid until the end, or of a
//!    [`TxWord`](crate::TxWord) that outlives it.
//! 2. While transactions run, all accesses of such a word are relaxed atomics of the whole word:
//!    there are no data races or mixed sizes; stripes and clock give the order.
//! 3. The provenance of an address was exposed where it became a number.

use std::sync::atomic::{AtomicU64, Ordering};

/// A word in memory differs from its last store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a word in memory is not what was last stored to it")]
pub struct Damaged;

/// Accesses words by address: directly ([`Direct`]) or elsewhere, such as by a second mapping.
///
/// # Safety
///
/// `load` and `store` are relaxed atomic operations on one word per address, shared with nothing
/// else; a word has its last store's value, or a load reports damage. Neither panics.
pub unsafe trait Memory: Send + Sync {
    /// Whether a thread may also be in a transaction of another memory: for a library whose
    /// transactions call another one. Each thread then has one [`Thread`](crate::Thread) of this
    /// memory.
    const BESIDE_OTHERS: bool = false;

    /// The word at this address, a multiple of 8.
    ///
    /// # Errors
    ///
    /// [`Damaged`], also during another thread's store to a word with a check word.
    ///
    /// # Safety
    ///
    /// The word exists, and only transactions of the same [`Stm`](crate::Stm) access it.
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged>;

    /// Stores the bits of `value` in `bits`; all of them, if the word has a check word. No other
    /// thread stores to it meanwhile.
    ///
    /// # Safety
    ///
    /// As for `load`; and the word may be stored to.
    unsafe fn store(&self, address: usize, value: u64, bits: u64);

    /// Whether the word has a [check word](crate::ecc). Then it is only stored whole: bytes of a
    /// damaged word beside new ones would get a fitting check word.
    #[inline]
    fn is_checked(&self, address: usize) -> bool {
        let _ = address;
        false
    }

    /// Whether stores to this line go to memory at once and are undone on an abort, so that plain
    /// code sees them. Constant while transactions run; such a line has no check words.
    #[inline]
    fn in_place(&self, line: usize) -> bool {
        let _ = line;
        false
    }

    /// A damaged word's former value, if its check word tells. No other thread stores to it
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

/// The process's memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Direct {
    /// # Safety
    ///
    /// As for [`Memory::load`].
    #[inline]
    unsafe fn word<'a>(address: usize) -> &'a AtomicU64 {
        // SAFETY: the word exists, aligned (1), is accessed as an atomic alone (2), and its
        // provenance is exposed (3).
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }
}

// SAFETY: relaxed loads and stores of the word itself; only the owner of its stripe stores.
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
