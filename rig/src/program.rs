//! The writer's program: an endless sequence of atomic steps, functions of seed and number, so that
//! a machine continues wherever recovery left it.

use fastrand::Rng;
use std::collections::BTreeMap;

/// Permanent objects with their sizes: less than a page, pages, many pages.
pub const OBJECTS: [(&str, u64); 4] =
    [("small", 4000), ("medium", 40 << 10), ("large", 300 << 10), ("wide", 2 << 20)];
/// An object that is created and destroyed.
pub const GUEST: &str = "guest";

/// Bytes stored at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub at: usize,
    pub bytes: Vec<u8>,
}

/// An atomic step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Stores to some objects, and one psync of them all.
    Psync(BTreeMap<&'static str, Vec<Put>>),
    Create(u64),
    Grow(u64),
    Destroy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// An object that is first detached and attached again, without a change.
    pub reattach: Option<&'static str>,
    pub change: Change,
}

/// Steps of one life of [`GUEST`].
const LIFE: u64 = 16;
const GUEST_SIZE: u64 = 160 << 10;

/// Step `number`, from 1, of the program of `seed`.
#[must_use]
pub fn step(seed: u64, number: u64) -> Step {
    let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let change = match number % LIFE {
        3 => Change::Create(GUEST_SIZE),
        // More pages than a batch takes: they go straight to the primary, published by the batch.
        5 => Change::Psync([(GUEST, vec![put(&mut rng, 0, GUEST_SIZE as usize)])].into()),
        8 => Change::Grow(2 * GUEST_SIZE),
        13 => Change::Destroy,
        part => Change::Psync(stores(&mut rng, (4..13).contains(&part), part)),
    };
    let reattach = (rng.u8(..) < 16).then(|| OBJECTS[rng.usize(..OBJECTS.len())].0);
    Step { reattach, change }
}

fn put(rng: &mut Rng, at: usize, len: usize) -> Put {
    // Never zeros, so that missing stores show.
    Put { at, bytes: (0..len).map(|_| rng.u8(1..)).collect() }
}

fn stores(rng: &mut Rng, guest: bool, part: u64) -> BTreeMap<&'static str, Vec<Put>> {
    let mut objects: Vec<_> = OBJECTS.to_vec();
    if guest {
        objects.push((GUEST, if part > 8 { 2 * GUEST_SIZE } else { GUEST_SIZE }));
    }
    rng.shuffle(&mut objects);
    // Mostly one object, sometimes all.
    let chosen = [1, 1, 1, 2, 3, objects.len()][rng.usize(..6)];
    let mut out = BTreeMap::new();
    for (name, size) in objects.into_iter().take(chosen) {
        let puts = (0..1 + rng.usize(..4)).map(|_| {
            let longest = [8, 8, 64, 700, 5000][rng.usize(..5)].min(size as usize);
            let len = 1 + rng.usize(..longest);
            let at = rng.usize(..=size as usize - len);
            put(rng, at, len)
        });
        out.insert(name, puts.collect());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_depends_on_seed_and_number_only() {
        for number in 1..200 {
            assert_eq!(step(7, number), step(7, number));
        }
        assert_ne!(step(7, 1), step(8, 1));
        assert_ne!(step(7, 1), step(7, 2));
    }
}
