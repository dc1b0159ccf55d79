//! Atomics of which all that is `SeqCst` has one order, as std promises. loom takes that for less;
//! the models crate has atomics that keep it.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
