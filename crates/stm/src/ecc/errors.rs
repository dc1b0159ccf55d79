//! Errors of a word and its check word, as changes of two sums that are zero in an undamaged word.
//!
//! A word W = A‖B and its check word E = C‖D have 32 columns of four bits, one of each half. The
//! sum of halves, F = A ⊕ B ⊕ C ⊕ D, has a one for each column with an odd number of wrong bits.
//! The sum S = CRC(W) ⊕ D adds up the *share* of each wrong bit; bits of C have none.

use super::crc::portable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    A,
    B,
    C,
    D,
}

pub(crate) const HALVES: [Half; 4] = [Half::A, Half::B, Half::C, Half::D];

/// The bit of a column in W‖E, 128 bits.
#[inline]
pub(crate) const fn bit(half: Half, column: u32) -> u128 {
    1 << (column
        + match half {
            Half::A => 96,
            Half::B => 64,
            Half::C => 32,
            Half::D => 0,
        })
}

/// S of a word with it alone wrong.
#[inline]
pub(crate) const fn share(half: Half, column: u32) -> u32 {
    match half {
        Half::A => portable(1 << (column + 32)),
        Half::B => portable(1 << column),
        Half::C => 0,
        Half::D => 1 << column,
    }
}

pub(crate) const SHARES: [[u32; 4]; 32] = {
    let mut shares = [[0; 4]; 32];
    let mut at = 0;
    while at < 128 {
        let (column, half) = (at / 4, at % 4);
        shares[column][half] = share(HALVES[half], column as u32);
        at += 1;
    }
    shares
};

/// Two wrong bits of one column, which cancel out in F; or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) share: u32,
    pub(crate) bits: u128,
}

/// None, and the six pairs of each column.
pub(crate) static PAIRS: [Pair; 193] = {
    let mut pairs = [Pair { share: 0, bits: 0 }; 193];
    let (mut at, mut column) = (1, 0);
    while column < 32 {
        let mut first = 0;
        while first < 4 {
            let mut second = first + 1;
            while second < 4 {
                let shares = SHARES[column as usize];
                pairs[at] = Pair {
                    share: shares[first] ^ shares[second],
                    bits: bit(HALVES[first], column) | bit(HALVES[second], column),
                };
                at += 1;
                second += 1;
            }
            first += 1;
        }
        column += 1;
    }
    pairs
};
