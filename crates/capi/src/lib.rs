//! The C interface: what `include/pmo.h` declares, function by function.
//!
//! Rules of every exported function:
//! 1. Its body is one call of `guarded`: errors are kept for the calling thread, and no panic
//!    passes.
//! 2. Pointers are checked first: NULL is an error unless the header gives it a meaning. Callers
//!    promise the rest, as the header says: zero-terminated strings, structs and blocks of their
//!    own, no stores during psync, no use after the detach.
//!
//! `tests/languages/header.rs` compares the header with these functions.
#![allow(missing_docs, clippy::missing_safety_doc, reason = "the header documents each function")]

mod args;
mod attach_options;
mod attachment;
mod audit;
mod block_heaps;
mod blocks;
mod codes;
mod contexts;
mod copies;
mod describe;
mod described;
mod extensions;
mod far;
mod guard;
mod handles;
mod heap;
mod lifetimes;
mod numbers;
mod objects;
mod on_demand;
mod paper;
mod pool_options;
mod pools;
mod psync;
mod records;
mod remedies;
mod retention;
mod roots;
mod scrub;
mod seal_keys;
mod sealed;
mod shared;
mod tm_interface;
mod transactions;
mod transfer;
mod types;
mod views;

#[doc(hidden)]
pub use attach_options::AttachWith;
#[doc(hidden)]
pub use audit::StrayPointer;
pub use codes::CODES;
#[doc(hidden)]
pub use copies::{Collected, Difference, SnapshotOf};
#[doc(hidden)]
pub use extensions::{Extension, Extensions};
#[doc(hidden)]
pub use guard::{Failure, guarded, pmo_errno, pmo_error_message, pmo_strerror, pmo_version};
#[doc(hidden)]
pub use heap::HeapStats;
#[doc(hidden)]
pub use lifetimes::Tie;
#[doc(hidden)]
pub use objects::{CreateOptions, ObjectInfo, Stat};
#[doc(hidden)]
pub use on_demand::Pending;
#[doc(hidden)]
pub use pool_options::PoolWith;
#[doc(hidden)]
pub use pools::PoolInfo;
#[doc(hidden)]
pub use remedies::in_c;
#[doc(hidden)]
pub use retention::{Converter, Reset, RootOptions};
#[doc(hidden)]
pub use roots::Root;
pub use scrub::Scrubbed;
#[doc(hidden)]
pub use seal_keys::{AnchorOptions, KeySlot};
#[doc(hidden)]
pub use shared::{QueueOf, WordOf};
#[doc(hidden)]
pub use tm_interface::Runtime;
#[doc(hidden)]
pub use types::{Field, Type};
