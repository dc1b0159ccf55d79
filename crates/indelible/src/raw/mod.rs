//! Objects by address: the operations of the paper's Table I and the heap, as a C program sees them.
//!
//! An attached object is known by its first byte, to every thread of the process. The
//! caller keeps the rules that [`Object`](crate::Object) and [`Heap`](crate::Heap) have the compiler keep.

mod extensions;
mod heap;
mod place;
mod psync;
mod registry;
mod retention;
mod stray;
mod surroundings;

pub use extensions::{ExtensionOf, copy_extended, extend, extension, free_extended, initial_values};
pub use heap::{
    aligned, blocks, calloc, check, create_root, format_heap, free, heap_stats, malloc, open_heap,
    open_or_format_heap, realloc, remove_root, root, root_any, roots, usable_size,
};
pub use psync::{mark_dirty, prefault, psync, psync_all, psync_all_cut, psync_cut, revert};
pub use registry::{
    Attached, attach, attach_sealed, attach_snapshot, attach_snapshot_sealed, attached, detach, grow, refresh,
};
pub use retention::{replace_root, value_blocks};
pub use stray::{StrayPointer, set_audit, stray_pointers};
pub use surroundings::Outside;

/// Access that an attach asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Loads.
    Read,
    /// Loads and stores.
    Write,
}

/// The addresses that psyncs of an object look for before they make anything durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// None.
    #[default]
    Off,
    /// Those of the program, its libraries and its memory.
    Process,
    /// Those of other attached objects as well.
    Everything,
}

impl Audit {
    pub(super) const ALL: [Audit; 3] = [Audit::Off, Audit::Process, Audit::Everything];
}
