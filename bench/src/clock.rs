//! Time, less what taking it costs.

use crate::stats::Samples;
use std::time::{Duration, Instant};

/// A clock that knows its own price.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds between two readings with nothing between them.
    pub price: f64,
}

impl Clock {
    pub fn calibrate() -> Self {
        let mut samples = Samples::default();
        for _ in 0..10_001 {
            samples.push(Instant::now().elapsed().as_nanos() as f64);
        }
        Clock { price: samples.median() }
    }

    /// Nanoseconds that `f` takes, and what it returns.
    #[inline]
    pub fn time<R>(&self, f: impl FnOnce() -> R) -> (f64, R) {
        let start = Instant::now();
        let result = f();
        let took = start.elapsed();
        (self.nanos(took), result)
    }

    /// A measured duration in nanoseconds.
    pub fn nanos(&self, took: Duration) -> f64 {
        (took.as_nanos() as f64 - self.price).max(0.0)
    }
}
