//! Words of memory that tell when they are damaged, and are repaired.
//!
//! A word of 64 bits has a check word of 64 bits. Every damage of up to 13 of the 128 bits is noticed. Damage of up to 6
//! bits is repaired; of 7 bits as well, but for 1,149,720 of the 94,525,795,200 ways to damage 7 bits: for these there
//! are two words that the undamaged one may have been, and the repair is refused. Damage of 8 bits and more may look like another
//! damage of at most 7, and be "repaired" to a wrong word.
//!
//! ```
//! use indelible_stm::ecc::{check_word, is_whole, repair};
//!
//! let (word, check) = (0x0123_4567_89ab_cdef, check_word(0x0123_4567_89ab_cdef));
//! assert!(is_whole(word, check));
//! let repaired = repair(word ^ 0xf000, check ^ 0x7).unwrap();
//! assert_eq!((repaired.word, repaired.check, repaired.flips), (word, check, 7));
//! ```

#[allow(unsafe_code)]
mod crc;
mod errors;

use super::mutant::{Broken, Mutant};
use crc::crc;
use errors::{HALVES, PAIRS, Pair, SHARES, bit, pair_of};

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

/// The check word of a word: C‖D, with D = CRC-32C(W) and C = A ⊕ B ⊕ D for W = A‖B. That of 0 is 0, so memory
/// that was never written is whole.
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

/// Finds what a damaged word was, if at most [`MOST_FLIPS`] bits are wrong and there is only one such word. A whole
/// word is returned as it is.
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

/// The damages of at most [`MOST_FLIPS`] bits that explain a word, looked for in the order of their size. Two different words with
/// their check words differ in 14 bits at least (`codewords` in the tests finds all that differ in so many), so one of 6 bits or fewer
/// is the only one.
fn explain(word: u64, check: u64) -> Candidates {
    let mut candidates = Candidates::default();
    let halves = ((word ^ check) >> 32) as u32 ^ (word ^ check) as u32;
    let mut pairs = 0;
    while candidates.found == 0 && halves.count_ones() + 2 * pairs <= MOST_FLIPS {
        columns(halves, crc(word) ^ check as u32, 0, pairs, &mut candidates);
        pairs += 1;
    }
    candidates
}

/// Damages that explain a word.
#[derive(Default)]
struct Candidates {
    /// None, one, or several different ones.
    found: u32,
    /// The first one.
    bits: u128,
}

impl Candidates {
    /// The same bits come several times: three of a column are any one of them, and a pair.
    fn add(&mut self, bits: u128) {
        if bits.count_ones() <= MOST_FLIPS && (self.found == 0 || self.bits != bits) {
            self.bits = if self.found == 0 { bits } else { self.bits };
            self.found += 1;
        }
    }
}

/// Tries each of the four bits of each column that has an odd number of wrong ones, and then `pairs` pairs. `sum` is what has to
/// come to zero.
fn columns(odd: u32, sum: u32, bits: u128, pairs: u32, candidates: &mut Candidates) {
    if odd == 0 {
        return cancelling(sum, bits, pairs, 1, candidates);
    }
    let column = odd.trailing_zeros();
    for half in HALVES {
        let share = SHARES[column as usize][half as usize];
        columns(odd & (odd - 1), sum ^ share, bits ^ bit(half, column), pairs, candidates);
    }
}

/// Tries `pairs` pairs of bits that cancel out in their column, from number `first` on; the last one is looked up.
fn cancelling(sum: u32, bits: u128, pairs: u32, first: usize, candidates: &mut Candidates) {
    match pairs {
        0 if sum == 0 => candidates.add(bits),
        0 => {}
        1 => {
            if let Some(Pair { bits: both, .. }) = pair_of(sum) {
                candidates.add(bits ^ both);
            }
        }
        _ => {
            for (number, pair) in PAIRS.iter().enumerate().skip(first) {
                cancelling(sum ^ pair.share, bits ^ pair.bits, pairs - 1, number + 1, candidates);
            }
        }
    }
}
