//! Objects whose words have check words: a word and its check word, of 8 bytes each, take turns, so
//! that the object has twice the bytes that programs see.
//!
//! The store keeps the bytes as those of any object. Software that puts check words in and looks at
//! them is above it.

use super::PAGE;
use super::entry::{Entry, FLAG_ECC, FLAG_SEALED};

/// Bytes of an object whose programs see so many, in whole pages, with the check words of these.
/// `None`: no number says it.
#[must_use]
pub fn with_check_words(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE)?.checked_mul(2)
}

impl Entry {
    /// Bytes that programs see of so many in the pool: check words are the other half.
    #[must_use]
    pub fn usable(&self, bytes: u64) -> u64 {
        if self.has(FLAG_ECC) { bytes / 2 } else { bytes }
    }

    /// Bytes in the pool of an object whose programs are to see so many. `None`: no number says it.
    #[must_use]
    pub fn occupied(&self, bytes: u64) -> Option<u64> {
        if self.has(FLAG_ECC) { with_check_words(bytes) } else { Some(bytes) }
    }

    /// Whether the object has as many words as check words, in whole pages of both, if it has any.
    #[must_use]
    pub fn has_whole_pairs(&self) -> bool {
        let pairs = |bytes: u64| bytes.is_multiple_of(2 * PAGE);
        !self.has(FLAG_ECC) || pairs(self.size.get()) && pairs(self.extent_len()) && !self.has(FLAG_SEALED)
    }
}
