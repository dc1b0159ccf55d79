//! Words of memory that tell when they are damaged, and are repaired.
//!
//! A word of 64 bits has a check word of 64 bits. Every damage of up to 13 of the 128 bits is
//! noticed. Damage of up to 6 bits is repaired; of 7 bits as well, but for 1,149,720 of the
//! 94,525,795,200 ways to damage 7 bits: for these there are two words that the undamaged one may
//! have been, and the repair is refused. Damage of 8 bits and more may look like another damage of
//! at most 7, and be "repaired" to a wrong word.
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

/// The most wrong bits that are looked for.
pub const MOST_FLIPS: u32 = 7;

/// A word that was damaged, as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The word.
    pub word: u64,
    /// Its check word.
    pub check: u64,
    /// How many of the 128 bits were wrong.
    pub flips: u32,
}

/// Why a word is not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// No damage of 7 bits or fewer explains it.
    #[error("more than 7 of its 128 bits are wrong")]
    TooManyFlips,
    /// Several do.
    #[error("7 of its 128 bits are wrong, in one of two ways")]
    Ambiguous,
}

/// The check word of a word: C‖D, with D = CRC-32C(W) and C = A ⊕ B ⊕ D for W = A‖B. That of 0 is
/// 0, so memory that was never written is whole.
#[inline]
#[must_use]
pub fn check_word(word: u64) -> u64 {
    let crc = crc(word);
    u64::from((word >> 32) as u32 ^ word as u32 ^ crc) << 32 | u64::from(crc)
}

/// Whether a word is the one that its check word was made of.
#[inline]
#[must_use]
pub fn is_whole(word: u64, check: u64) -> bool {
    check_word(word) == check
}

/// Finds the former value of a damaged word, if at most [`MOST_FLIPS`] bits are wrong and there is
/// only one such word. A whole word is returned as it is.
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
