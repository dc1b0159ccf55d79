//! A store of keys and values of any size, with an index apart from the data (S2.24): in objects,
//! and in plain files.
//!
//! Modules: `table` (a key's slot), `far` and `orders` (objects), `files` (plain files).

mod far;
mod files;
mod orders;
mod table;

pub use far::FarStore;
pub use files::FileStore;
pub use orders::Order;
