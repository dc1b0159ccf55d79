//! Ownership of pages and addresses: the table's pages, its trees, and free space kept in them.
//!
//! Everything here works on a [`Draft`], a set of changes in memory. Nothing in this folder writes
//! to the medium; a draft becomes real as one batch.

mod draft;
mod extents;
mod nodes;
mod tree;

pub use draft::Draft;
pub use extents::{ADDRESSES, FreeMap, PAGES};
pub use nodes::Nodes;
pub use tree::next_key;
