//! Ownership of pages and addresses: the table's pages, its trees, and free space kept in them.
//!
//! Everything here works on a [`TableTransaction`], a set of changes in memory. Nothing in this
//! folder writes to the medium; a transaction becomes real as one batch.

mod chunks;
mod extents;
mod nodes;
mod transaction;
mod tree;

pub use extents::{ADDRESSES, FreeMap, PAGES};
pub use nodes::Nodes;
pub use transaction::TableTransaction;
pub use tree::next_key;
