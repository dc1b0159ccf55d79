//! Attachments: attach and detach, psync, direct writes, growth, trust.

mod attach;
mod binding;
mod ciphertext;
mod class;
mod cover;
mod direct;
mod former;
mod grow;
mod live;
mod primary;
mod psync;
mod rotation;
mod sealed;
mod sealed_pages;
mod sealed_size;
mod staged;
mod still;
mod tail;
mod trust;
mod writer;
mod writers;
mod written;

pub use attach::Reader;
pub(in crate::store) use attach::undefined;
pub(in crate::store) use binding::renumber;
pub use live::LivePages;
pub use primary::{Pending, Primary};
pub use sealed_pages::{SealedPages, Unlocked};
pub use staged::{Changes, Staged, psync_all, stage};
pub use still::StillObject;
pub(in crate::store) use tail::Tail;
pub use tail::{Followed, Lines};
pub use writer::Writer;
pub use writers::Psync;
