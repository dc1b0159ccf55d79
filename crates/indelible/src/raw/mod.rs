//! Objects by address: the operations of the paper's Table I and the heap, as a C program sees
//! them.
//!
//! An attached object is known by its first byte, to every thread of the process. The caller keeps
//! the rules that the compiler enforces for [`Object`](crate::Object) and [`Heap`](crate::Heap).
//! Functions fail as those of `Pool`, `Object`, `Heap` and `TxObject` that they stand for, and with
//! `NotAttached` where no attached object has the address.

mod begin;
pub mod blocks;
mod closed;
mod describe;
mod detach;
mod extensions;
mod far;
mod heap;
mod pinned;
mod place;
mod psync;
mod registry;
mod retention;
pub mod shared;
mod stray;
pub mod transactions;

pub use indelible_store::slices::in_slices;

pub use crate::heap::stray::{Audit, Outside, StrayPointer};
pub use begin::begin_transaction;
pub use describe::{Attached, attached};
pub use detach::detach;
pub use extensions::{ExtensionOf, copy_extended, extend, extension, free_extended, initial_values};
pub use far::{add_pool, follow, remove_pool, store};
pub use heap::{
    aligned, blocks, calloc, check, create_root, expect_free, format_heap, free, heap_stats, malloc,
    open_heap, open_or_format_heap, realloc, remove_root, root, root_any, roots, usable_size,
};
pub(crate) use pinned::{Pinned, pin, pin_all, unpin_all};
pub use psync::{mark_dirty, prefault, psync, psync_all, psync_all_cut, psync_cut, revert};
pub use registry::{attach, attach_snapshot_with, attach_with, grow, refresh};
pub use retention::{replace_root, value_blocks};
pub use stray::{set_audit, stray_pointers};

/// Access of an attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Loads.
    Read,
    /// Loads and stores.
    Write,
}
