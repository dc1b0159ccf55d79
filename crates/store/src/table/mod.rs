//! The object table: names, IDs, entries, addresses and the lane directory, as changes to a transaction.

mod lanes;
mod names;
mod objects;
mod slots;

pub use lanes::{directory, directory_slot, put_directory};
pub use names::check_name;
pub use objects::{CreateOptions, Key, Located, Page, entry_hash, id_key, name_hash};
pub use slots::{SlotFound, slot_at};
