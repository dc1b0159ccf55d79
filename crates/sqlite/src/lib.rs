//! SQLite databases in pools of [Indelible](indelible): a VFS for programs as they are.
//!
//! `libsqlite3-pmo.so`, which `cargo xtask install` puts in place, is a loadable extension that
//! registers the VFS `pmo`. From then on `file:app.pmo?vfs=pmo&object=main.db` is a database in an
//! object of a pool. A transaction is one psync, without a journal on disk.
//!
//! A Rust program that has SQLite linked registers the VFS itself, with SQLite's own functions:
//!
//! ```
//! use rusqlite::{Connection, ffi};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("app.pmo");
//! // SAFETY: functions of the one SQLite that rusqlite has linked.
//! unsafe {
//!     indelible_sqlite::register(
//!         ffi::sqlite3_vfs_find,
//!         ffi::sqlite3_vfs_register,
//!         ffi::sqlite3_uri_parameter,
//!         ffi::sqlite3_log,
//!         ffi::sqlite3_auto_extension,
//!     )?;
//! }
//! let database = Connection::open(format!("file:{}?vfs=pmo&size=64M", path.display()))?;
//! database.execute_batch("CREATE TABLE visits(name TEXT); INSERT INTO visits VALUES ('alice')")?;
//! let visits: u64 = database.query_row("SELECT count(*) FROM visits", [], |row| row.get(0))?;
//! assert_eq!(visits, 1);
//! # Ok(()) }
//! ```
//!
//! | parameter of the URI | meaning | default |
//! |---|---|---|
//! | `object=NAME` | the object, which is made if it is not there | `main.db` |
//! | `size=BYTES` | length of a pool that is made, with `K`, `M` or `G`; it stays so | 1 GiB, sparse, twice as long whenever it is full |

#![deny(unsafe_code)]

mod abi;
mod connection;
mod database;
mod extension;
mod failure;
mod header;
mod host;
mod lease;
mod memory_file;
mod plain;
mod request;
mod state;
mod tickets;
mod together;
mod undo;
mod vfs;

pub use extension::{Refused, register, sqlite3_pmo_register_with, sqlite3_sqlitepmo_init};
pub use plain::{CopyError, export, import};

use indelible::Pool;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static OFFERED: Mutex<Vec<(PathBuf, Pool)>> = Mutex::new(Vec::new());

/// Puts databases at `path` into this pool, which the program opened with options of its own, or on
/// a device of its own. SQLite makes paths absolute.
pub fn offer(path: impl AsRef<Path>, pool: &Pool) {
    let mut offered = OFFERED.lock().unwrap_or_else(PoisonError::into_inner);
    offered.retain(|(other, _)| other != path.as_ref());
    offered.push((path.as_ref().to_owned(), pool.clone()));
}

/// Takes an [offer] back. Databases that are open keep the pool.
pub fn withdraw(path: impl AsRef<Path>) {
    OFFERED.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| other != path.as_ref());
}

fn offered(path: &Path) -> Option<Pool> {
    let offered = OFFERED.lock().unwrap_or_else(PoisonError::into_inner);
    offered.iter().find(|(other, _)| other == path).map(|(_, pool)| pool.clone())
}
