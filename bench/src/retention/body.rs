//! The fields of a node of TPC-C's trees, but for its keys.

use indelible::Persist;

/// Keys of a node at most.
pub const ORDER: usize = 8;

/// See the module. Level 0 has leaves.
#[derive(Persist, Clone, Copy)]
#[repr(C)]
pub struct Body {
    pub count: u32,
    pub level: u32,
    /// Addresses of rows, or of nodes.
    pub slots: [u64; ORDER],
}
