//! Backups of pools: all objects as of one moment, in a file that proves its every byte.
//!
//! - [`backup_to`], [`backup_into`]: to a stream, or to a folder, as changes since its newest
//!   backup
//! - [`verify`]: reads a backup and its bases, and names the damage
//! - [`restore`], [`restore_objects`]: a new pool, or objects of an existing one; damaged ones
//!   replace nothing
//! - [`export_to`], [`import_from`]: objects of several pools that refer to each other, as one
//!   stream into another pool
//! - [`clone_pool`], [`clone_rebased`]: a copy of a pool under its own ID
//!
//! Modules, bottom-up: `error`, `format` (FORMAT.md, section 11), `encode` and `decode`, `chain`,
//! `interrupted`, `part`, `partial`, `source`, `index_file`, `index`, `backup`, `folder`, `restore`,
//! `clone`, `transfer`. None takes part in a pool's crash safety: restored objects are the store's
//! (`Store::revive`), and a file is valid once named.

#![forbid(unsafe_code)]

mod backup;
mod chain;
mod clone;
mod decode;
mod encode;
mod error;
mod folder;
/// Records that backups share with segments of replicas: no public interface.
#[doc(hidden)]
pub mod format;
mod index;
mod index_file;
mod interrupted;
mod part;
mod partial;
mod restore;
mod source;
mod transfer;
mod workers;

pub use backup::{Summary, backup_to};
pub use chain::{Damage, Kept, Verified, describe, newest, newest_of_each, verify, verify_stream};
pub use clone::{Cloned, clone_pool, clone_rebased};
pub use error::{BackupError, Result};
pub use folder::{backup_file, backup_into};
pub use indelible_files::{left_beside, remove_left_beside};
#[doc(hidden)]
pub use restore::new_pool;
pub use restore::{RestoreOptions, Restored, restore, restore_objects, restore_stream};
pub use source::Choice;
pub use transfer::{export_file, export_to, import_from};

/// Called with bytes of objects done, and in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
