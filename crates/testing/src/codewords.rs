//! Codewords of few ones, of a code with check words of 64 bits for words of 64 bits.
//!
//! No check notices such a damage; half of one has two explanations. Found without the repairing
//! code.

use std::collections::{BTreeSet, HashMap};

struct Sums {
    exact: HashMap<u64, u128>,
    likely: Vec<u64>,
}

const LIKELY: usize = 1 << 27;

fn place(rest: u64) -> usize {
    (rest.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 37) as usize
}

impl Sums {
    fn insert(&mut self, rest: u64, bits: u128) -> u128 {
        self.likely[place(rest) / 64] |= 1 << (place(rest) % 64);
        *self.exact.entry(rest).or_insert(bits)
    }

    fn get(&self, rest: u64) -> Option<u128> {
        let likely = self.likely[place(rest) / 64] >> (place(rest) % 64) & 1 == 1;
        likely.then(|| self.exact.get(&rest).copied()).flatten()
    }
}

/// The nonzero codewords of at most 14 ones, word and check word in one number, of a linear code
/// with an even number of ones in each column (bits i and i + 32 of both words).
#[must_use]
pub fn codewords(check_word: impl Fn(u64) -> u64) -> Vec<u128> {
    let rest = |bits: u128| check_word((bits >> 64) as u64) ^ bits as u64;
    let mut pairs = Vec::new();
    for column in 0..32 {
        let cells: Vec<u128> = (0..4).map(|half| 1 << (column + 32 * half)).collect();
        for (number, first) in cells.iter().enumerate() {
            pairs.extend(cells[number + 1..].iter().map(|second| (rest(first | second), first | second)));
        }
    }
    let mut sums = Sums { exact: HashMap::new(), likely: vec![0; LIKELY / 64] };
    let mut found = BTreeSet::new();
    each_sum(&pairs, (0, 0), 3, &mut |rest, bits| _ = found.insert(bits ^ sums.insert(rest, bits)));
    each_sum(&pairs, (0, 0), 4, &mut |rest, bits| found.extend(sums.get(rest).map(|other| other ^ bits)));
    found.remove(&0);
    found.into_iter().collect()
}

fn each_sum(pairs: &[(u64, u128)], sum: (u64, u128), most: usize, then: &mut impl FnMut(u64, u128)) {
    then(sum.0, sum.1);
    if most > 0 {
        for (number, pair) in pairs.iter().enumerate() {
            each_sum(&pairs[number + 1..], (sum.0 ^ pair.0, sum.1 ^ pair.1), most - 1, then);
        }
    }
}
