//! Operations on pools and on unattached objects.

mod absorb;
mod boundary;
mod class;
mod content;
mod copies;
mod diff;
mod directory;
mod following;
mod format;
mod hash;
mod inspect;
mod length;
mod listing;
mod lives;
mod merge;
mod moving;
mod objects;
mod removal;
mod resize;
mod revive;
mod rollback;
mod sealed;
mod standings;
mod ties;
mod window;

pub use copies::SnapshotOf;
pub use diff::Difference;
pub use format::FormatOptions;
pub use hash::content_id;
pub use inspect::{BatchDump, LaneDump, Status, StoreInfo};
pub use lives::Life;
pub use moving::Leaving;
pub use objects::Listing;
pub use revive::{Attributes, Revived, Unpublished};
pub use standings::Logged;
pub use window::{Window, likely_use};
