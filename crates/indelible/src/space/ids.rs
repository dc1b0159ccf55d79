//! Numbers by ID, fast for any choice of IDs.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

pub(super) type Ids = HashMap<[u8; 16], u32, Keys>;

/// Secret: no attacker can choose colliding IDs.
#[derive(Clone)]
pub(super) struct Keys([u64; 2]);

impl Default for Keys {
    fn default() -> Self {
        Keys([0, 1].map(|number: u64| RandomState::new().hash_one(number)))
    }
}

impl BuildHasher for Keys {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed { keys: self.0, hash: 0 }
    }
}

pub(super) struct Mixed {
    keys: [u64; 2],
    hash: u64,
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        };
        for sixteen in bytes.chunks(16) {
            let (low, high) = sixteen.split_at(sixteen.len().min(8));
            self.hash = fold(word(low) ^ self.keys[0] ^ self.hash, word(high) ^ self.keys[1]);
        }
    }

    fn write_usize(&mut self, _: usize) {
        // The constant length of an ID.
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_in_one_bit_have_different_hashes() {
        let keys = Keys::default();
        let mut seen = std::collections::HashSet::new();
        for bit in 0..128 {
            assert!(seen.insert(keys.hash_one((1_u128 << bit).to_le_bytes())), "bit {bit}");
        }
        assert_ne!(keys.hash_one([0_u8; 16]), Keys::default().hash_one([0_u8; 16]), "the keys are random");
    }
}
