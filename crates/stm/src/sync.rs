//! The atomics and locks that threads share, and no others: the models crate compiles the same
//! sources with loom's versions.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
pub(crate) use std::thread_local;

/// Atomics of which the sequentially consistent operations have one order, which loom's have not.
pub(crate) mod total {
    pub(crate) use std::sync::atomic::AtomicU64;
}

/// Rounds that a thread spins before it gives its processor away, or gives up.
pub(crate) const SPINS: u32 = 64;
