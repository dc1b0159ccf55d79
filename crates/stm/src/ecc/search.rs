use super::MOST_FLIPS;
use super::choices::{Choices, FIRST};
use super::crc::crc;
use super::errors::PAIRS;
use super::sums::{one_pair, two_pairs};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) found: u32,
    pub(crate) bits: u128,
}

impl Candidates {
    /// The same bits come several times: three of a column as any one of them, and a pair.
    pub(crate) fn add(&mut self, bits: u128) {
        if self.found == 0 {
            *self = Candidates { found: 1, bits };
        } else if self.bits != bits {
            self.found += 1;
        }
    }
}

/// The damages of at most [`MOST_FLIPS`] bits that explain a word, up to the smallest size with
/// one. Words with their check words differ in at least 14 bits (`codewords` in the tests), so one
/// of at most 6 bits is unique.
pub(crate) fn explain(word: u64, check: u64) -> Candidates {
    let odd = ((word ^ check) >> 32) as u32 ^ (word ^ check) as u32;
    let sum = crc(word) ^ check as u32;
    match odd.count_ones() {
        // One or two bits are usual: clearing room for more columns would dominate.
        columns if columns <= FIRST => search::<1>(odd, sum),
        columns if columns <= MOST_FLIPS => search::<256>(odd, sum),
        _ => Candidates::default(),
    }
}

/// At most `REST` choices for later columns.
fn search<const REST: usize>(odd: u32, sum: u32) -> Candidates {
    let (choices, mut candidates) = (Choices::<REST>::new(odd), Candidates::default());
    for pairs in 0..=(MOST_FLIPS - odd.count_ones()) / 2 {
        with_pairs(pairs, &choices, sum, |bits| candidates.add(bits));
        if candidates.found > 0 {
            break;
        }
    }
    candidates
}

/// The damages by one bit of each odd column and `pairs` pairs, at most three, with share `sum`.
/// Fewer pairs do not explain it.
fn with_pairs<const REST: usize>(pairs: u32, choices: &Choices<REST>, sum: u32, mut found: impl FnMut(u128)) {
    match pairs {
        0 => choices.each_of_share(sum, found),
        1 => choices.each(sum, one_pair, found),
        2 => choices.each(sum, two_pairs, found),
        _ => {
            for pair in &PAIRS[1..] {
                choices.each(sum ^ pair.share, two_pairs, |bits| found(bits ^ pair.bits));
            }
        }
    }
}
