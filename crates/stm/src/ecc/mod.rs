//! Words of memory that detect damage and are repaired.
//!
//! A word of 64 bits has a check word of 64 bits. Damage of up to 13 of the 128 bits is noticed. Up
//! to 6 bits are repaired; 7 bits, too, except 1,149,720 of 94,525,795,200 cases with two
//! explanations, which are refused. More may look like at most 7, and be "repaired" to a wrong
//! word.
//!
//! ```
//! use indelible_stm::ecc::{check_word, is_whole, repair};
//!
//! let (word, check) = (0x0123_4567_89ab_cdef, check_word(0x0123_4567_89ab_cdef));
//! assert!(is_whole(word, check));
//! let repaired = repair(word ^ 0xf000, check ^ 0x7).unwrap();
//! assert_eq!((repaired.word, repaired.check, repaired.flips), (word, check, 7));
//! ```

mod choices;
#[allow(unsafe_code)]
mod crc;
mod errors;
mod search;
mod sums;
#[cfg(test)]
mod tests;

use super::mutant::{Broken, Mutant};
use crc::crc;
use search::explain;

/// The most wrong bits that a repair looks for.
pub const MOST_FLIPS: u32 = 7;

/// A damaged word's former value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The word.
    pub word: u64,
    /// Its check word.
    pub check: u64,
    /// Wrong bits of the 128.
    pub flips: u32,
}

/// Why a word is not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// No damage of at most 7 bits explains it.
    #[error("more than 7 of its 128 bits are wrong")]
    TooManyFlips,
    /// Several damages explain it.
    #[error("7 of its 128 bits are wrong, in one of two ways")]
    Ambiguous,
}

/// The check word C‖D, with D = CRC-32C(W) and C = A ⊕ B ⊕ D for W = A‖B. That of 0 is 0, so
/// unwritten memory is valid.
#[inline]
#[must_use]
pub fn check_word(word: u64) -> u64 {
    let crc = crc(word);
    u64::from((word >> 32) as u32 ^ word as u32 ^ crc) << 32 | u64::from(crc)
}

/// Whether a word fits its check word.
#[inline]
#[must_use]
pub fn is_whole(word: u64, check: u64) -> bool {
    check_word(word) == check
}

/// Finds a word's former value, if at most [`MOST_FLIPS`] bits are wrong and it is unique.
///
/// # Errors
///
/// [`Beyond`]: the word is lost.
pub fn repair(word: u64, check: u64) -> Result<Repaired, Beyond> {
    judge(word, check, Broken::default())
}

/// As [`repair`], with a rule broken.
#[cfg(feature = "__mutants")]
pub fn repair_broken(word: u64, check: u64, rule: Option<Mutant>) -> Result<Repaired, Beyond> {
    judge(word, check, Broken(rule))
}

fn judge(word: u64, check: u64, broken: Broken) -> Result<Repaired, Beyond> {
    let candidates = explain(word, check);
    match candidates.found {
        0 => return Err(Beyond::TooManyFlips),
        1 => {}
        _ if broken.is(Mutant::FirstCandidate) => {}
        _ => return Err(Beyond::Ambiguous),
    }
    let bits = candidates.bits;
    Ok(Repaired { word: word ^ (bits >> 64) as u64, check: check ^ bits as u64, flips: bits.count_ones() })
}
