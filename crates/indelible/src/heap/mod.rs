//! The heap in an object: blocks, found again by name, that psync makes durable together with their
//! allocation bytes.
//!
//! It has no log: a psync covers the whole object. Between any two stores of a thread the
//! allocation bytes in the object say exactly which blocks are in use (`span`).

mod addresses;
#[doc(hidden)]
pub mod allocation;
mod allocation_bytes;
mod allocator;
mod audit;
mod bounds;
mod cache;
mod capacity;
mod chain;
mod check;
mod chunk;
mod class;
mod copies;
mod directory;
mod error;
mod far;
mod gate;
mod glance;
mod growth;
mod guard;
#[doc(hidden)]
pub mod layout;
mod leaked;
mod open;
mod others;
mod pages;
mod psync;
mod raw;
mod read;
mod rebase;
mod reclaim;
mod registry;
mod revert;
mod root;
mod root_cache;
mod root_places;
mod root_record;
mod roots;
mod rounds;
mod span;
mod state;
pub(crate) mod stray;
mod surroundings;
mod table;
mod ticket;
#[doc(hidden)]
pub mod touched;
mod trusted;
mod walk;
mod window;
pub(crate) mod words;
mod writer;

pub use audit::{AuditedPointer, AuditedRoot, HeapAudit};
pub use bounds::Bounds;
pub use check::HeapFinding;
pub use far::{Compacted, FarPointer};
pub(crate) use glance::AtRest;
#[doc(hidden)]
pub use glance::Glance;
pub use raw::HeapOptions;
pub use read::ReadHeap;
pub use root::{Root, TypeInfo};
pub use ticket::Ticket;
pub use walk::{Block, HeapStats};
pub use writer::Heap;

pub(crate) use chain::{
    Cursor, Header, Shape, Surroundings, copy as copy_chain, free as free_chain, home as chain_home,
    link as link_extension, nested,
};
pub(crate) use class::SMALL_MAX;
pub(crate) use error::HeapError;
pub(crate) use far::built_in;
pub(crate) use growth::{Growable, grow_object};
pub(crate) use raw::{Extent, Quiet, RawHeap};
pub(crate) use reclaim::Reclaimed;
pub(crate) use registry::{Access, any_explicit, find};
pub(crate) use root_cache::{RootCache, RootRange};
