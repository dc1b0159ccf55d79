//! The primitives that a signal handler and its object share, and those that threads of a heap share: the
//! models crate compiles the same sources with loom's versions.

#![allow(unsafe_code)]

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread_local;

/// The time since then.
pub(crate) fn since(begin: std::time::Instant) -> std::time::Duration {
    begin.elapsed()
}

/// Waits until the condition is notified, or so long. Returns whether it was notified in time.
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    _: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time: std::time::Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) =
        condition.wait_timeout(guard, time).unwrap_or_else(|poisoned| poisoned.into_inner());
    (guard, !result.timed_out())
}

/// Words of zeros, whose memory is not touched.
pub(crate) fn zeroed(words: usize) -> Box<[AtomicU64]> {
    let plain = vec![0_u64; words].into_boxed_slice();
    // SAFETY: `AtomicU64` has the size, alignment and bit validity of `u64`.
    unsafe { Box::from_raw(Box::into_raw(plain) as *mut [AtomicU64]) }
}
