//! The object table: names, IDs, entries, addresses and the lane directory, as changes to a draft.

mod lanes;
mod names;
mod objects;

pub use lanes::{directory, put_directory};
pub use names::check_name;
pub use objects::{CreateOptions, Key, Located, Page, id_key, name_hash};
