//! A plain search for comparison. It shares only columns and shares with the shipped one.

use super::super::MOST_FLIPS;
use super::super::crc::crc;
use super::super::errors::{HALVES, PAIRS, Pair, SHARES, bit};

const PLACES: usize = 1024;
/// The upper bits of a product with it are the first place.
const FACTOR: u32 = 0x9e37_79b1;

const fn place(share: u32) -> usize {
    (share.wrapping_mul(FACTOR) >> 22) as usize
}

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

/// Shares are unique.
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

/// Sizes ascend. At most 6 bits are unique, as in `search.rs`.
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

#[derive(Default)]
pub(super) struct Candidates {
    pub(super) found: u32,
    pub(super) bits: u128,
}

impl Candidates {
    fn add(&mut self, bits: u128) {
        if bits.count_ones() <= MOST_FLIPS && (self.found == 0 || self.bits != bits) {
            self.bits = if self.found == 0 { bits } else { self.bits };
            self.found += 1;
        }
    }
}

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

/// Tries `pairs` pairs from number `first` on.
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
