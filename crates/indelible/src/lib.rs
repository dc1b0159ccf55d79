//! Persistent memory objects for stock Linux.
//!
//! A program attaches a named object to its address space, changes plain data in it through native
//! pointers, and calls [`psync`](Object::psync). All changes since the previous psync become
//! durable as one atomic step; after a crash at any instant the object is exactly as some psync
//! left it.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("visits.pmo");
//! use indelible::{Plain, Pool};
//!
//! #[derive(Plain)]
//! #[repr(C)]
//! struct Visits {
//!     count: u64,
//!     last: [u8; 16],
//! }
//!
//! let pool = Pool::open_or_format(&path, 64 << 20)?;
//! if pool.stat("visits").is_err() {
//!     pool.create("visits", 4096)?;
//! }
//! let mut object = pool.attach("visits")?;
//! let visits = object.root_mut::<Visits>()?;
//! visits.count += 1;
//! visits.last[..5].copy_from_slice(b"alice");
//! object.psync()?;
//! # assert_eq!(object.root::<Visits>()?.count, 1);
//! # Ok::<(), indelible::Error>(())
//! ```
//!
//! Growing structures (text, vectors, maps, nested) are in [`collections`], found again by name and
//! type.
//!
//! Features, none by default: `serde` serialises collections, and deserialises into heaps
//! (`collections::InHeap`); `tracing` reports attaches, recoveries, psyncs, growth and failures as
//! events of the crate `tracing`.
//!
//! The repository's ARCHITECTURE.md explains how the promises are kept; SAFETY.md argues which
//! parts are `unsafe` and why the rest is sound.

#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("Indelible needs Linux, and addresses of 64 bits: objects are mapped by its system calls");

extern crate self as indelible;

mod backing;
pub mod collections;
mod contents;
mod dirty;
mod doctor;
mod error;
mod events;
mod fault;
pub mod heap;
mod log;
mod maintenance;
mod mapping;
mod media;
mod memory;
mod object;
mod pool;
mod protection;
pub mod raw;
pub mod retention;
mod security;
mod shadow;
mod shared;
mod space;
mod sys;
mod transaction;
mod view;

use indelible_types::{entries, far, plain, relative, types};

pub use collections::Persist;
pub use collections::transactional::{Persistent, statics};
pub use doctor::{Doctor, Facility, doctor};
pub use error::{Error, ErrorKind, Result};
pub use fault::{PredictionDepth, PredictionStats};
pub use heap::stray::{Audit, Outside, StrayPointer};
pub use heap::{Compacted, FarPointer, Heap, HeapOptions, ReadHeap, Root, Ticket, TypeInfo};
pub use indelible_derive::{Composite, Persist, StableHash};
pub use indelible_store::seal::{Cost, SlotInfo};
#[cfg(feature = "__engines")]
#[doc(hidden)]
pub use indelible_store::seal::{Engine, choose as choose_engine};
#[doc(inline)]
pub use indelible_types::{Far, FarEntry, FarTarget, Plain, Relative, Rights};
pub use log::{Log, LogReader, LogRecord};
#[doc(hidden)]
pub use maintenance::{Alone, alone, claimed, superblocks};
pub use maintenance::{
    Finding, Leftovers, Part, RepairAction, RepairOptions, Report, Severity, SuperblockSlot, Upgraded, check,
    remove_leftovers, repair, upgrade,
};
#[doc(hidden)]
pub use media::{CacheModel, MediumModel, Traffic};
pub use object::{
    AttachOptions, Beside, BrokenPage, Bystanders, Object, PsyncStats, ReadObject, Shared, psync_all,
};
pub use pool::{
    Anchor, BadKeep, ByContent, Class, Collected, CommandAnchor, Counter, CreateOptions, Difference,
    EpochBounds, FileAnchor, Import, Keep, LaneUse, List, Logged, MediumKind, PageRange, PendingCommits,
    Pool, PoolInfo, PoolOptions, SealKey, Selection, SignKey, Stat, State, Tie, TpmAnchor, Tracking,
    VerifyKey, guard_sockets,
};
pub use security::{Rule, RuleKind, Rules, SecurityContext};
pub use shared::{
    Consumer, Event, Exchange, ExchangeOptions, Life, Producer, Queue, QueueKind, QueueOptions, Requester,
    Server, SharedObject, StreamReader, StreamWriter, Word, wait_any,
};
#[doc(hidden)]
pub use space::FarPlace;
pub use space::{At, Dangling, FarMap, FarVec, Home, Reachable, Resolver, Space, Way};
#[doc(hidden)]
pub use sys::mask::{keep_statuses, survive_size_limit};
pub use sys::per_process::PerProcess;
#[doc(hidden)]
pub use sys::supervise::{Ended, Supervisor};
#[doc(hidden)]
pub use sys::writeback::begin as begin_writeback;
pub use transaction::{
    Pending, Repairs, Scrubbed, Transactional, Tx, TxCell, TxHeap, TxObject, TxPtr, explain_faults,
    transaction,
};
pub use view::{
    AttachedView, Inside, Left, Resumed, SlotMemory, SlotState, SwitchedView, View, ViewSlot, Within,
    leave_contexts, resume,
};
