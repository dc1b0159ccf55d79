//! Files in pools of [Indelible](indelible): a volume that is crash-consistent as a whole.
//!
//! A [`Volume`] is one object of a pool, with a table of inodes, directories as ordered maps, and
//! files in blocks of the object's heap. Operations store to memory; [`Volume::sync`] is one psync:
//! after a crash the whole tree is exactly as one `sync` left it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! use indelible::Pool;
//! use indelible_posix::{New, ROOT, Rename, Volume};
//!
//! let pool = Pool::format(dir.path().join("files.pmo"), 64 << 20)?;
//! let mut volume = Volume::create(&pool, "files", &New::of(0o755, 0, 0))?;
//! let file = volume.create_file(ROOT, b"config.tmp", &New::of(0o644, 0, 0))?;
//! volume.write(file, 0, b"colour = green\n")?;
//! volume.rename((ROOT, b"config.tmp"), (ROOT, b"config"), Rename::Replace)?;
//! volume.sync()?; // after a crash before this, there is neither name
//! # assert_eq!(volume.find(b"/config")?, file);
//! # Ok(()) }
//! ```
//!
//! Device nodes and quotas are refused; access times change only when set. Blocks and holes have 64
//! KiB.

#![forbid(unsafe_code)]

mod attributes;
mod beside;
mod change;
mod check;
mod copy;
mod data;
mod error;
mod format;
mod look;
mod names;
mod operations;
mod paths;
mod volume;

pub use attributes::{Existing, Set};
pub use change::New;
pub use copy::Copied;
pub use data::Allocate;
pub use error::{Error, Result};
pub use format::{ROOT, Time};
pub use look::{Attributes, Entry, Kind, Seek};
pub use names::Rename;
pub use volume::{Room, Synced, Volume};
