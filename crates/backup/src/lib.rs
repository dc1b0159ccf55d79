//! Backups of pools: all objects as of one moment, in a file that proves every byte of itself.
//!
//! - [`backup_to`], [`backup_into`]: a stream, or a folder, where a backup has what changed since
//!   the newest one there
//! - [`verify`]: reads a backup, and those that it rests on, and names the damage
//! - [`restore`], [`restore_objects`]: a new pool, or objects of an existing one; damaged ones
//!   replace nothing
//! - [`export_to`], [`import_from`]: objects that refer to each other, of several pools, as one
//!   stream into another pool
//! - [`clone_pool`], [`clone_rebased`]: a pool once more, under an ID of its own
//!
//! Modules, bottom-up: `error`, `format` (FORMAT.md, section 11), `encode` and `decode`, `chain`,
//! `index`, `interrupted` (remains of an interrupted one), `part` (a file that becomes one),
//! `source` (the objects of a pool, held), `backup`, `folder`, `restore`, `clone`, `transfer`.
//! Nothing here takes part in the crash safety of a pool: restored objects are the store's
//! (`Store::revive`), and a file counts once it has its name.

#![forbid(unsafe_code)]

mod backup;
mod chain;
mod clone;
mod decode;
mod encode;
mod error;
mod folder;
mod format;
mod index;
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
pub use partial::{left_beside, remove_left_beside};
pub use restore::{RestoreOptions, Restored, restore, restore_objects, restore_stream};
pub use source::Choice;
pub use transfer::{export_file, export_to, import_from};

/// Progress, as it is told: bytes of objects done, and of how many.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
