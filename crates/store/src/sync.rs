//! The atomics and locks that threads share, and no others: the models crate compiles the same
//! sources with loom's versions.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The time since then.
pub fn since(begin: Instant) -> Duration {
    begin.elapsed()
}

/// Waits until the condition is notified, or so long. Returns whether it was notified in time.
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
