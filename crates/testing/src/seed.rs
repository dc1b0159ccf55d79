use std::ops::{Deref, DerefMut};

/// A generator that prints its seed when a test panics while it lives.
///
/// `INDELIBLE_SEED=n` in the environment replaces the seed of each [`Seeded::new`].
#[derive(Debug)]
pub struct Seeded {
    rng: fastrand::Rng,
    seed: u64,
}

impl Seeded {
    #[must_use]
    pub fn new(default: u64) -> Self {
        let seed = match std::env::var("INDELIBLE_SEED") {
            Ok(text) => text.parse().expect("INDELIBLE_SEED is a decimal number"),
            Err(_) => default,
        };
        Self { rng: fastrand::Rng::with_seed(seed), seed }
    }

    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

impl Deref for Seeded {
    type Target = fastrand::Rng;

    fn deref(&self) -> &fastrand::Rng {
        &self.rng
    }
}

impl DerefMut for Seeded {
    fn deref_mut(&mut self) -> &mut fastrand::Rng {
        &mut self.rng
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("reproduce with INDELIBLE_SEED={}", self.seed);
        }
    }
}

/// A generator for one decision of a run: an added decision does not shift later ones.
pub(crate) fn derived(seed: u64, stream: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
