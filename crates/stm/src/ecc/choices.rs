//! One wrong bit of each odd column: 4 choices per column.
//!
//! Sums of shares for up to three columns, and for the others, are computed once.

use super::errors::{HALVES, SHARES, bit};

pub(crate) const FIRST: u32 = 3;

/// Choice `n` takes in column `i` the half in bits 2 i and 2 i + 1 of `n`.
struct Part<const MOST: usize> {
    columns: u32,
    shares: [u32; MOST],
    len: usize,
}

impl<const MOST: usize> Part<MOST> {
    /// `columns` is a bit set with at most `MOST` choices.
    fn new(columns: u32) -> Part<MOST> {
        let mut part = Part { columns, shares: [0; MOST], len: 1 };
        for column in ones(columns) {
            let (done, rest) = part.shares.split_at_mut(part.len);
            let others = rest.chunks_exact_mut(done.len());
            for (others, share) in others.zip(&SHARES[column as usize][1..]) {
                others.iter_mut().zip(&*done).for_each(|(into, sum)| *into = sum ^ share);
            }
            let share = SHARES[column as usize][0];
            done.iter_mut().for_each(|sum| *sum ^= share);
            part.len *= 4;
        }
        part
    }

    fn shares(&self) -> &[u32] {
        &self.shares[..self.len]
    }

    #[cold]
    fn bits(&self, choice: usize) -> u128 {
        let chosen = ones(self.columns).enumerate();
        chosen.map(|(nth, column)| bit(HALVES[choice >> (2 * nth) & 3], column)).sum()
    }
}

fn ones(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        lowest
    })
}

/// All choices for up to three columns, and the rest with at most `REST` choices.
pub(crate) struct Choices<const REST: usize> {
    first: Part<64>,
    rest: Part<REST>,
}

impl<const REST: usize> Choices<REST> {
    pub(crate) fn new(odd: u32) -> Choices<REST> {
        let first = ones(odd).take(FIRST as usize).fold(0, |mask, column| mask | 1 << column);
        Choices { first: Part::new(first), rest: Part::new(odd & !first) }
    }

    /// Passes each choice's share plus `sum` to `complete`; passes the bits of the choice, with the
    /// bits that `complete` returned, to `found`.
    #[inline]
    pub(crate) fn each(&self, sum: u32, complete: impl Fn(u32) -> Option<u128>, mut found: impl FnMut(u128)) {
        for (number, rest) in self.rest.shares().iter().enumerate() {
            for (other, first) in self.first.shares().iter().enumerate() {
                if let Some(bits) = complete(sum ^ rest ^ first) {
                    found(self.first.bits(other) ^ self.rest.bits(number) ^ bits);
                }
            }
        }
    }

    /// Looks the rest's shares up among the first.
    pub(crate) fn each_of_share(&self, sum: u32, mut found: impl FnMut(u128)) {
        if REST == 1 {
            // A table for one look-up costs more than it saves.
            return self.each(sum, |left| (left == 0).then_some(0), found);
        }
        let table = Lookup::new(self.first.shares());
        for (number, rest) in self.rest.shares().iter().enumerate() {
            table.each(sum ^ rest, |other| found(self.first.bits(other) ^ self.rest.bits(number)));
        }
    }
}

struct Lookup<'a> {
    shares: &'a [u32],
    /// Index plus one; 0: empty.
    places: [u8; 256],
}

impl Lookup<'_> {
    fn new(shares: &[u32]) -> Lookup<'_> {
        let mut places = [0; 256];
        for (number, share) in shares.iter().enumerate() {
            let mut at = place(*share);
            while places[usize::from(at)] != 0 {
                at = at.wrapping_add(1);
            }
            places[usize::from(at)] = number as u8 + 1;
        }
        Lookup { shares, places }
    }

    #[inline]
    fn each(&self, share: u32, mut found: impl FnMut(usize)) {
        let mut at = place(share);
        while self.places[usize::from(at)] != 0 {
            let number = usize::from(self.places[usize::from(at)]) - 1;
            if self.shares[number] == share {
                found(number);
            }
            at = at.wrapping_add(1);
        }
    }
}

#[inline]
fn place(share: u32) -> u8 {
    (share.wrapping_mul(0x9e37_79b1) >> 24) as u8
}
