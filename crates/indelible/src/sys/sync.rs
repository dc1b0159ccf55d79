//! Synchronization primitives; the models crate compiles their users with loom's versions.

#![allow(unsafe_code)]

pub(crate) use indelible_store::company::{since, wait_for};
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread_local;

pub(crate) fn zeroed(words: usize) -> Box<[AtomicU64]> {
    let plain = vec![0_u64; words].into_boxed_slice();
    // SAFETY: `AtomicU64` has the size, alignment and bit validity of `u64`.
    unsafe { Box::from_raw(Box::into_raw(plain) as *mut [AtomicU64]) }
}
