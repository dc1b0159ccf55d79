//! A plain search, with which the shipped one is compared: all choices of one bit of each odd
//! column, with all choices of pairs, of which the last alone is looked up. It shares the columns
//! and their shares with the shipped one, and neither tables nor candidates.

use super::super::MOST_FLIPS;
use super::super::crc::crc;
use super::super::errors::{HALVES, PAIRS, Pair, SHARES, bit};

/// Places of a table in which pairs are found by their share in S.
const PLACES: usize = 1024;
/// The upper bits of a product with it are the place to begin at.
const FACTOR: u32 = 0x9e37_79b1;

const fn place(share: u32) -> usize {
    (share.wrapping_mul(FACTOR) >> 22) as usize
}

/// Numbers of pairs, plus one; 0 for none.
static TABLE: [u8; PLACES] = {
    let mut table = [0; PLACES];
    let mut number = 0;
    while number < PAIRS.len() {
        let mut at = place(PAIRS[number].share);
        while table[at] != 0 {
            at = (at + 1) % PLACES;
        }
        table[at] = number as u8 + 1;
        number += 1;
    }
    table
};

/// The pair, or none, that adds this to S. No two add the same.
fn pair_of(share: u32) -> Option<Pair> {
    let mut at = place(share);
    loop {
        let number = TABLE[at];
        if number == 0 {
            return None;
        }
        let pair = PAIRS[usize::from(number) - 1];
        if pair.share == share {
            return Some(pair);
        }
        at = (at + 1) % PLACES;
    }
}

/// The damages of at most [`MOST_FLIPS`] bits that explain a word, looked for in the order of their
/// size. Two different words with their check words differ in 14 bits at least (`codewords` in the
/// tests finds all that differ in so many), so one of 6 bits or fewer is the only one.
pub(super) fn explain(word: u64, check: u64) -> Candidates {
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
pub(super) struct Candidates {
    /// None, one, or several different ones.
    pub(super) found: u32,
    /// The first one.
    pub(super) bits: u128,
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

/// Tries each of the four bits of each column that has an odd number of wrong ones, and then
/// `pairs` pairs. `sum` is what has to come to zero.
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

/// Tries `pairs` pairs of bits that cancel out in their column, from number `first` on; the last
/// one is looked up.
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
