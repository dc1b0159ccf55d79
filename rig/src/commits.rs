//! Transactions of writers on demand: functions of the seed, the writer and the number, so that a
//! machine continues wherever the last one stopped.

use crate::model::fingerprint;
use fastrand::Rng;

/// Writing processes, each with its own objects.
pub const WRITERS: usize = 3;
pub const WORDS: usize = 8 << 10;

#[must_use]
pub fn names(writer: usize) -> [String; 2] {
    ["left", "right"].map(|half| format!("{half}-{writer}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    pub half: usize,
    pub at: usize,
    pub value: u64,
}

/// The stores of transaction `number`, from 1. The first word of both objects is the number, in
/// addition.
#[must_use]
pub fn commit(seed: u64, writer: usize, number: u64) -> Vec<Store> {
    let mut rng = Rng::with_seed(seed ^ (number << 2 | writer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = rng.usize(1..8);
    (0..count).map(|_| Store { half: rng.usize(..2), at: rng.usize(1..WORDS), value: rng.u64(1..) }).collect()
}

/// A writer's objects after some transaction.
#[derive(Clone, Debug)]
pub struct Ledger {
    seed: u64,
    writer: usize,
    pub number: u64,
    halves: [Vec<u64>; 2],
}

impl Ledger {
    #[must_use]
    pub fn new(seed: u64, writer: usize) -> Ledger {
        Ledger { seed, writer, number: 0, halves: [vec![0; WORDS], vec![0; WORDS]] }
    }

    /// Applies transactions up to `number`, which must not be less than the present one.
    pub fn advance(&mut self, number: u64) {
        while self.number < number {
            self.number += 1;
            for Store { half, at, value } in commit(self.seed, self.writer, self.number) {
                self.halves[half][at] = value;
            }
            self.halves.iter_mut().for_each(|words| words[0] = self.number);
        }
    }

    /// A line that identifies both objects' contents.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let bytes =
            self.halves.each_ref().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
        fingerprint_of(self.writer, &bytes)
    }
}

/// A line that identifies the bytes of a writer's objects.
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
