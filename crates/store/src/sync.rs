//! What threads share is made of these, and of nothing else: the models crate compiles the same sources
//! with loom's versions.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
