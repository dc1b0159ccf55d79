//! Time without the cost of taking it.

#![allow(unsafe_code)]

use crate::stats::Samples;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds between two adjacent readings.
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

    #[inline]
    pub fn time<R>(&self, f: impl FnOnce() -> R) -> (f64, R) {
        let start = Instant::now();
        let result = f();
        let took = start.elapsed();
        (self.nanos(took), result)
    }

    /// Without waiting or other threads.
    pub fn processor_time<R>(&self, f: impl FnOnce() -> R) -> (f64, R) {
        let start = processor();
        let result = f();
        ((processor() - start).as_nanos() as f64, result)
    }

    pub fn nanos(&self, took: Duration) -> f64 {
        (took.as_nanos() as f64 - self.price).max(0.0)
    }
}

fn processor() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every thread has such a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
