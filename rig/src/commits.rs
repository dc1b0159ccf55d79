//! The transactions of writers on demand: each a function of the seed, its writer and its own
//! number alone, so that a machine can go on wherever the last one's power went.

use crate::model::fingerprint;
use fastrand::Rng;

/// Processes that write, each to objects of its own.
pub const WRITERS: usize = 3;
/// Words of an object.
pub const WORDS: usize = 8 << 10;

/// The two objects of a writer, which each transaction changes.
#[must_use]
pub fn names(writer: usize) -> [String; 2] {
    ["left", "right"].map(|half| format!("{half}-{writer}"))
}

/// A word that a transaction stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// The object: 0 or 1.
    pub half: usize,
    /// Its place among the words.
    pub at: usize,
    /// The word.
    pub value: u64,
}

/// The stores of transaction `number`, counted from 1. The first word of both objects is the number
/// itself, and is not among them.
#[must_use]
pub fn commit(seed: u64, writer: usize, number: u64) -> Vec<Store> {
    let mut rng = Rng::with_seed(seed ^ (number << 2 | writer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = rng.usize(1..8);
    (0..count).map(|_| Store { half: rng.usize(..2), at: rng.usize(1..WORDS), value: rng.u64(1..) }).collect()
}

/// The objects of a writer, as they must be after some transaction.
#[derive(Clone, Debug)]
pub struct Ledger {
    seed: u64,
    writer: usize,
    /// Transactions done.
    pub number: u64,
    halves: [Vec<u64>; 2],
}

impl Ledger {
    /// Before the first one.
    #[must_use]
    pub fn new(seed: u64, writer: usize) -> Ledger {
        Ledger { seed, writer, number: 0, halves: [vec![0; WORDS], vec![0; WORDS]] }
    }

    /// Does those up to `number`, which must not be less than it has done.
    pub fn advance(&mut self, number: u64) {
        while self.number < number {
            self.number += 1;
            for Store { half, at, value } in commit(self.seed, self.writer, self.number) {
                self.halves[half][at] = value;
            }
            self.halves.iter_mut().for_each(|words| words[0] = self.number);
        }
    }

    /// A line that stands for both objects.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let bytes =
            self.halves.each_ref().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
        fingerprint_of(self.writer, &bytes)
    }
}

/// A line that stands for the bytes of a writer's objects.
#[must_use]
pub fn fingerprint_of(writer: usize, bytes: &[Vec<u8>; 2]) -> String {
    let names = names(writer);
    fingerprint(names.iter().map(String::as_str).zip(bytes.iter().map(Vec::as_slice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_has_the_transactions_up_to_its_number() {
        let mut one = Ledger::new(7, 1);
        one.advance(100);
        let mut other = Ledger::new(7, 1);
        (1..=100).for_each(|number| other.advance(number));
        assert_eq!(one.fingerprint(), other.fingerprint());
        other.advance(101);
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(commit(7, 0, 5), commit(7, 1, 5));
        assert_ne!(commit(7, 1, 5), commit(8, 1, 5));
    }
}
