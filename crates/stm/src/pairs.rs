//! Words followed by their check words, 16 bytes together: loads, stores, repairs, and lists of
//! changes by line.
//!
//! # Invariants
//!
//! 1. A caller's place is a multiple of 16; its word and check word exist and are accessed as
//!    atomics alone.

#![allow(unsafe_code)]

use super::ecc::{check_word, is_whole, repair};
use super::memory::{Damaged, Direct, Memory};
use super::write_set::bits;

/// Bytes of a word with its check word.
pub const PAIR: usize = 16;
const LINE: u64 = super::stripes::LINE as u64;
const PAIRS: usize = LINE as usize / PAIR;

/// The word and check word at a place, as in memory.
///
/// # Safety
/// Invariant 1.
#[inline]
unsafe fn pair(place: usize) -> (u64, u64) {
    // SAFETY: the caller's promise (1); plain words are never damaged.
    unsafe { (Direct.load(place).unwrap_or_default(), Direct.load(place + 8).unwrap_or_default()) }
}

/// [`Memory::load`] of the word at a place.
///
/// # Errors
/// As there.
///
/// # Safety
/// As there, for word and check word.
#[inline]
pub unsafe fn load(place: usize) -> Result<u64, Damaged> {
    // SAFETY: the caller's promise.
    let (word, check) = unsafe { pair(place) };
    if is_whole(word, check) { Ok(word) } else { Err(Damaged) }
}

/// [`Memory::store`] of the word at a place, with its check word.
///
/// # Safety
/// As there, for word and check word.
#[inline]
pub unsafe fn store(place: usize, value: u64, bits: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let value = if bits == u64::MAX { value } else { pair(place).0 & !bits | value & bits };
        Direct.store(place, value, u64::MAX);
        Direct.store(place + 8, check_word(value), u64::MAX);
    }
}

/// [`Memory::repaired`] of the word at a place; an undamaged one as it is.
///
/// # Safety
/// As there, for word and check word.
#[cold]
#[must_use]
pub unsafe fn repaired(place: usize) -> Option<u64> {
    // SAFETY: the caller's promise.
    let (word, check) = unsafe { pair(place) };
    if is_whole(word, check) { Some(word) } else { repair(word, check).ok().map(|found| found.word) }
}

/// A line of pairs that a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairLine {
    /// Offset from the first pair's place.
    pub offset: u64,
    /// Bit i: byte i is in a changing pair.
    pub mask: u64,
    /// All of its pairs after the commit.
    pub words: [u64; 8],
}

impl PairLine {
    /// Its bytes, as in the pool.
    #[must_use]
    pub fn bytes(&self) -> [u8; LINE as usize] {
        let mut bytes = [0; LINE as usize];
        let words = bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words);
        words.for_each(|(into, word)| *into = word.to_le_bytes());
        bytes
    }
}

/// Offsets of the lines of pairs changed by `mask` in the line of words at this offset: the first
/// has the pairs of its lower half.
pub fn halves(offset: u64, mask: u64) -> impl Iterator<Item = u64> {
    (0..2).filter(move |half| (mask >> (32 * half)) as u32 != 0).map(move |half| 2 * offset + half * LINE)
}

/// The lines of pairs that a change of the line of words at this offset makes. `base`: the first
/// pair's place.
///
/// # Safety
/// Invariant 1, for the pairs of that line, which the caller owns.
pub unsafe fn changed<'w>(
    base: usize,
    offset: u64,
    (mask, words): (u64, &'w [u64; 8]),
) -> impl Iterator<Item = PairLine> + use<'w> {
    halves(offset, mask).map(move |at| {
        let first = if at == 2 * offset { 0 } else { PAIRS };
        let mut line = PairLine { offset: at, mask: 0, words: [0; 8] };
        for (nth, into) in line.words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            // SAFETY: the caller's promise; a line has so many pairs.
            let (before, check) = unsafe { pair(base + at as usize + nth * PAIR) };
            let in_line = first + nth;
            let bits = bits((mask >> (8 * in_line)) as u8);
            // An unchanged word may be damaged, and stays so for its next reader to notice.
            if bits == 0 {
                *into = [before, check];
            } else {
                let word = before & !bits | words[in_line] & bits;
                *into = [word, check_word(word)];
                line.mask |= 0xffff << (PAIR * nth);
            }
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn eight_pairs() -> ([AtomicU64; 16], [u64; 8]) {
        ([const { AtomicU64::new(0) }; 16], [1, 2, 3, 4, 5, 6, 7, 8])
    }

    #[test]
    fn a_change_of_a_line_is_whole_pairs_in_one_or_two_lines() {
        let (memory, words) = eight_pairs();
        let base = memory.as_ptr().expose_provenance();
        memory[2].store(5, Ordering::Relaxed);
        let lines = |mask: u64| {
            // SAFETY: 8 pairs.
            unsafe { changed(base, 0, (mask, &words)) }.collect::<Vec<_>>()
        };
        let pairs = |line: &PairLine, nth: usize| (line.words[2 * nth], line.words[2 * nth + 1]);
        let first = lines(0xff);
        assert_eq!((first.len(), first[0].offset, first[0].mask), (1, 0, 0xffff));
        assert_eq!((pairs(&first[0], 0), pairs(&first[0], 1)), ((1, check_word(1)), (5, 0)));
        let both = lines(0xff << 24 | 0xff << 56);
        assert_eq!(
            both.iter().map(|line| (line.offset, line.mask)).collect::<Vec<_>>(),
            [(0, 0xffff << 48), (64, 0xffff << 48)]
        );
        assert_eq!((pairs(&both[0], 3), pairs(&both[1], 3)), ((4, check_word(4)), (8, check_word(8))));
        assert_eq!(lines(0), []);
    }

    #[test]
    fn words_are_stored_with_their_check_words_and_repaired() {
        let (memory, _) = eight_pairs();
        let place = memory.as_ptr().expose_provenance() + 3 * PAIR;
        // SAFETY: a pair of the array, which is not read meanwhile.
        unsafe {
            store(place, 0x1122_3344_5566_7788, u64::MAX);
            store(place, 0xff, 0xff);
            assert_eq!(load(place), Ok(0x1122_3344_5566_77ff));
            Direct.store(place, 0x1122_3344_5566_77fe, u64::MAX);
            assert_eq!((load(place), repaired(place)), (Err(Damaged), Some(0x1122_3344_5566_77ff)));
        }
    }
}
