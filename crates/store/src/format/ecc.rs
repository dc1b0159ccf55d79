//! Objects with check words: one follows each 8-byte word. Layers above the store compute and check
//! them.

use super::PAGE;
use super::entry::{Entry, FLAG_ECC, FLAG_SEALED};

/// Bytes of an object with `bytes` visible ones, in whole pages; `None`: overflow.
#[must_use]
pub fn with_check_words(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE)?.checked_mul(2)
}

impl Entry {
    /// Bytes that programs see.
    #[must_use]
    pub fn usable(&self, bytes: u64) -> u64 {
        if self.has(FLAG_ECC) { bytes / 2 } else { bytes }
    }

    /// Bytes in the pool for `bytes` visible ones; `None`: overflow.
    #[must_use]
    pub fn occupied(&self, bytes: u64) -> Option<u64> {
        if self.has(FLAG_ECC) { with_check_words(bytes) } else { Some(bytes) }
    }

    /// Whether an object with check words has whole pages of both kinds.
    #[must_use]
    pub fn has_whole_pairs(&self) -> bool {
        let pairs = |bytes: u64| bytes.is_multiple_of(2 * PAGE);
        !self.has(FLAG_ECC) || pairs(self.size.get()) && pairs(self.extent_len()) && !self.has(FLAG_SEALED)
    }
}
