//! Pages and addresses: the table's pages, its trees, and free space in them.
//!
//! All of it changes a [`TableTransaction`] in memory, which one batch publishes. Nothing here
//! writes to the medium.

mod chunks;
mod extents;
mod nodes;
mod transaction;
mod tree;

pub use extents::{ADDRESSES, FreeMap, PAGES};
pub use nodes::Nodes;
pub use transaction::TableTransaction;
pub use tree::next_key;
