//! One or two pairs of wrong bits with a given share in S.
//!
//! Tables are made at compile time: the thread that answers page faults repairs words, too, and
//! must not wait for locks or the allocator.
//!
//! # Invariants
//!
//! 1. A table has no two entries of one share: their difference would be a codeword of at most 8
//!    ones. `insert` compares, so that a violating code does not compile.

use super::errors::{PAIRS, Pair};

/// Indices of two entries of [`PAIRS`]; of a single one with 0, the entry of none. An empty place
/// has 0 twice.
type Numbers = [u8; 2];

/// A failed look-up, the usual case, ends at an empty place.
const ONE_BITS: u32 = 12;
static ONE: [Numbers; 1 << ONE_BITS] = {
    let mut table = [[0; 2]; 1 << ONE_BITS];
    let mut number = 1;
    while number < PAIRS.len() {
        insert(&mut table, [0, number as u8]);
        number += 1;
    }
    table
};

/// 128 KiB for 17,888 entries.
const TWO_BITS: u32 = 16;
static TWO: [Numbers; 1 << TWO_BITS] = {
    let mut table = [[0; 2]; 1 << TWO_BITS];
    let mut first = 1;
    while first < PAIRS.len() {
        let mut second = first + 1;
        while second < PAIRS.len() {
            if is_needed(first, second) {
                insert(&mut table, [first as u8, second as u8]);
            }
            second += 1;
        }
        first += 1;
    }
    table
};

/// Pairs of a column are numbered AB, AC, AD, BC, BD, CD. Two of one column are a single pair if
/// they share a bit, else all four bits, of which one entry suffices.
const fn is_needed(first: usize, second: usize) -> bool {
    let (column, other) = ((first - 1) / 6, (second - 1) / 6);
    column != other || matches!([(first - 1) % 6, (second - 1) % 6], [0, 5])
}

#[inline]
const fn sum(numbers: Numbers) -> Pair {
    let (first, second) = (&PAIRS[numbers[0] as usize], &PAIRS[numbers[1] as usize]);
    Pair { share: first.share ^ second.share, bits: first.bits ^ second.bits }
}

#[inline]
const fn place(share: u32, places: usize) -> usize {
    (share.wrapping_mul(0x9e37_79b1) >> (32 - places.trailing_zeros())) as usize
}

const fn insert(table: &mut [Numbers], numbers: Numbers) {
    let share = sum(numbers).share;
    let mut at = place(share, table.len());
    while table[at][1] != 0 {
        assert!(sum(table[at]).share != share, "two entries of one share");
        at = (at + 1) % table.len();
    }
    table[at] = numbers;
}

#[inline]
fn find<const PLACES: usize>(table: &[Numbers; PLACES], share: u32) -> Option<u128> {
    let mut at = place(share, PLACES);
    while table[at][1] != 0 {
        let found = sum(table[at]);
        if found.share == share {
            return Some(found.bits);
        }
        at = (at + 1) % PLACES;
    }
    None
}

#[inline]
pub(crate) fn one_pair(share: u32) -> Option<u128> {
    find(&ONE, share)
}

#[inline]
pub(crate) fn two_pairs(share: u32) -> Option<u128> {
    find(&TWO, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_by_their_share() {
        for pair in &PAIRS[1..] {
            assert_eq!(one_pair(pair.share), Some(pair.bits));
        }
        assert_eq!(one_pair(0), None);
        assert_eq!((0..1_000_000).filter(|share| one_pair(*share).is_some()).count(), 20);
    }

    #[test]
    fn two_pairs_are_found_by_their_share() {
        for (number, first) in PAIRS.iter().enumerate().skip(1) {
            for second in &PAIRS[number + 1..] {
                let (share, bits) = (first.share ^ second.share, first.bits ^ second.bits);
                let found = (bits.count_ones() == 4).then_some(bits);
                assert_eq!(two_pairs(share), found, "{bits:#x}");
            }
        }
        assert_eq!(two_pairs(0), None);
        assert_eq!(TWO.iter().filter(|numbers| numbers[1] != 0).count(), 17_888);
    }
}
