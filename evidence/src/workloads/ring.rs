//! An object that a thread stores to while it is psynced.
//!
//! The thread stores 1, 2, 3, … to distant words, around and around. A consistent cut holds all
//! numbers up to some number, and none after it.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const WORDS: usize = 1536;
pub(crate) const SIZE: u64 = WORDS as u64 * 8;

pub(crate) type Ring = [AtomicU64; WORDS];
pub(crate) type Numbers = [u64; WORDS];

pub(crate) fn name(workload: u32) -> String {
    format!("ring{workload}")
}

fn word(number: u64) -> usize {
    (number.wrapping_mul(613) % WORDS as u64) as usize
}

pub(crate) fn put(ring: &Ring, number: u64) {
    ring[word(number)].store(number, Ordering::Release);
}

pub(crate) fn holds(ring: &Ring, number: u64) -> bool {
    ring[word(number)].load(Ordering::Acquire) >= number
}

pub(crate) fn last(ring: &[u64]) -> Result<u64, String> {
    let last = ring.iter().copied().max().unwrap_or(0);
    for back in 0..WORDS as u64 {
        let (number, holds) = (last.saturating_sub(back), ring[word(last + WORDS as u64 - back)]);
        if holds != number {
            return Err(format!("torn: up to {last}, but {holds} where {number} belongs"));
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(ring: &Ring) -> Vec<u64> {
        ring.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_ring_is_consistent_at_every_instant_and_not_with_a_store_missing() {
        let ring: Ring = std::array::from_fn(|_| AtomicU64::new(0));
        assert_eq!(last(&plain(&ring)), Ok(0));
        for number in 1..4000 {
            put(&ring, number);
            assert_eq!(last(&plain(&ring)), Ok(number));
        }
        let mut torn = plain(&ring);
        torn[word(3990)] -= WORDS as u64;
        assert!(last(&torn).is_err());
    }
}
