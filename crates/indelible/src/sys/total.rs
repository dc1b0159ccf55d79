//! Atomics whose `SeqCst` operations have one total order, as std promises. loom's are weaker; the
//! models crate replaces these with atomics that keep the order.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
