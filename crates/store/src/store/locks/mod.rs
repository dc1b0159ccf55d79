//! Locks between processes (the kernel's) and between threads of this one, and limits of waits.

mod apply;
mod lanes;
mod objects;
mod wait;

pub use apply::ApplyLock;
pub(in crate::store) use apply::ApplyLocks;
pub(in crate::store) use lanes::{LaneLock, LaneLocks};
pub(in crate::store) use objects::{ObjectLock, ObjectLocks};
pub(in crate::store) use wait::{Deadline, Patience, lock_table};

use crate::sync::{Mutex, MutexGuard};

/// Guarded states are whole wherever a panic may happen.
pub(in crate::store) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
