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

use failure::{Failure, Result, code};
use indelible::{PerProcess, Pool};
use state::lock;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};

type Offers = Mutex<Option<Vec<(PathBuf, Pool)>>>;

/// `None` in a forked child that cannot know the offers of its parent.
static OFFERED: PerProcess<Offers> = PerProcess::new();
static ANY_OFFERED: AtomicBool = AtomicBool::new(false);

fn offers() -> &'static Offers {
    let inherit = |parent: Option<&Offers>| match parent.map(Mutex::try_lock) {
        None => Some(Vec::new()),
        Some(Ok(offered)) => offered.clone(),
        Some(Err(TryLockError::Poisoned(offered))) => offered.into_inner().clone(),
        Some(Err(TryLockError::WouldBlock)) => None,
    };
    OFFERED.get_or(|parent| Mutex::new(inherit(parent)))
}

/// Puts databases at `path` into this pool, which the program opened with options of its own, or on
/// a device of its own. SQLite makes paths absolute.
pub fn offer(path: impl AsRef<Path>, pool: &Pool) {
    ANY_OFFERED.store(true, Ordering::Release);
    let mut offered = lock(offers());
    let offered = offered.get_or_insert_default();
    offered.retain(|(other, _)| other != path.as_ref());
    offered.push((path.as_ref().to_owned(), pool.clone()));
}

/// Takes an [offer] back. Databases that are open keep the pool.
pub fn withdraw(path: impl AsRef<Path>) {
    if let Some(offered) = &mut *lock(offers()) {
        offered.retain(|(other, _)| other != path.as_ref());
    }
}

fn offered(path: &Path) -> Result<Option<Pool>> {
    if !ANY_OFFERED.load(Ordering::Acquire) {
        return Ok(None);
    }
    let offered = lock(offers());
    let Some(offered) = &*offered else {
        let text =
            "this process was forked while another thread used the offered pools; offer it pools of its own";
        return Err(Failure::new(code::MISUSE, text));
    };
    Ok(offered.iter().find(|(other, _)| other == path).map(|(_, pool)| pool.clone()))
}
