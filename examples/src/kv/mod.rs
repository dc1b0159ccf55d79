//! A store of keys and values of any size, with an index that is apart from the data (S2.24): in
//! objects, and in plain files.
//!
//! Modules: `table` (which slot a key has), `far` and `orders` (objects), `files` (plain files).

mod far;
mod files;
mod orders;
mod table;

pub use far::FarStore;
pub use files::FileStore;
pub use orders::Order;
