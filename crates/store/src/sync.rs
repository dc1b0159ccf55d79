//! Atomics and locks that threads share; the models crate compiles the same sources with loom's
//! versions.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time since `begin`.
pub fn since(begin: Instant) -> Duration {
    begin.elapsed()
}

/// Waits for a notification or a timeout; returns whether it was notified in time.
pub fn wait_for<'a, T>(
    condition: &Condvar,
    _: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) =
        condition.wait_timeout(guard, time).unwrap_or_else(|poisoned| poisoned.into_inner());
    (guard, !result.timed_out())
}
