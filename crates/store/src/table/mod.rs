//! The object table: names, IDs, entries, addresses and the lane directory.

mod bases;
mod bitmap;
mod class;
mod create_options;
mod hidden;
mod lanes;
mod layers;
mod names;
mod objects;
mod revived;
mod sealed;
mod slots;
mod ties;

pub(crate) use bitmap::{Bitmap, Writes};
pub use class::Class;
pub use create_options::{CreateOptions, Key};
pub use lanes::{directory, directory_slot, put_directory};
pub use layers::{Layers, Lowest, SharedLayers, read_pages};
pub use names::{check_name, id_name, parse_id};
pub use objects::{Located, Page, entry_hash, id_key, name_hash};
pub use slots::{SlotFound, slot_at};
pub use ties::{Tie, tied_to};
