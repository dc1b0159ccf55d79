//! All atomics and locks shared by threads: the models crate replaces them by loom's.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
pub(crate) use std::thread_local;

/// Atomics whose sequentially consistent operations have one order, unlike loom's.
pub(crate) mod total {
    pub(crate) use std::sync::atomic::AtomicU64;
}

/// Spins before a thread yields its processor, or gives up.
pub(crate) const SPINS: u32 = 64;
