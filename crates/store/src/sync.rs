//! The atomics and locks that threads share, and no others: the models crate compiles the same sources with
//! loom's versions.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
