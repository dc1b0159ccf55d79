//! A run's own account of its lag, for `pmo metrics` and `pmo replicate status` on this machine.
//!
//! It is a file `replica.POOL.STORE` in `$XDG_RUNTIME_DIR/pmo`, else `/run/pmo`: JSON, replaced as
//! a whole, and locked while the run lives. `crates/cli/src/replicas.rs` reads it, too.

use crate::format::hex;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Objects of which the account has psyncs.
const OBJECTS: usize = 1 << 16;

/// A run's account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The pool's path.
    pub pool: String,
    /// The store's URL.
    pub store: String,
    /// The run's process.
    pub process: u32,
    /// In seconds since the machine started: earlier changes are in the store. Absent before the
    /// run's first moment.
    pub as_of: Option<f64>,
    /// Psyncs of the objects that the store has, by ID; absent for more than 65536 objects.
    pub psyncs: Option<BTreeMap<String, u64>>,
}

impl Account {
    /// Seconds since the moment up to which all changes are in the store.
    #[must_use]
    pub fn lag(&self) -> Option<f64> {
        Some((uptime()? - self.as_of?).max(0.0))
    }
}

/// The account of this process's run.
pub struct Beacon {
    path: PathBuf,
    account: Account,
    /// Locked.
    _file: File,
}

impl Beacon {
    /// Puts an account without a moment.
    ///
    /// # Errors
    /// Those of the folder and the file.
    pub fn new(pool: &[u8; 16], path: &Path, store_id: &str, store: &str) -> io::Result<Beacon> {
        let folder = folders().into_iter().next().unwrap_or_default();
        std::fs::create_dir_all(&folder)?;
        let (pool, path_of) = (hex(pool), path.display().to_string());
        let process = std::process::id();
        let account = Account { pool: path_of, store: store.to_owned(), process, as_of: None, psyncs: None };
        let path = folder.join(format!("replica.{pool}.{store_id}"));
        let file = put(&path, &account)?;
        Ok(Beacon { path, account, _file: file })
    }

    /// Says that changes from before `as_of` are in the store.
    ///
    /// # Errors
    /// Those of the file.
    pub fn tell(&mut self, as_of: Option<f64>, psyncs: &[([u8; 16], u64)]) -> io::Result<()> {
        self.account.as_of = as_of;
        let by_id = || psyncs.iter().map(|(id, psyncs)| (hex(id), *psyncs)).collect();
        self.account.psyncs = (psyncs.len() <= OBJECTS).then(by_id);
        self._file = put(&self.path, &self.account)?;
        Ok(())
    }

    /// The account of a run of this machine and user that ships to the store.
    #[must_use]
    pub fn of_store(store_id: &str) -> Option<Account> {
        let entries = folders().into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        let behind = format!(".{store_id}");
        let names = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("replica.") && name.ends_with(&behind)
        });
        names.filter_map(|path| read(&path)).next()
    }
}

impl Drop for Beacon {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Seconds since the machine started, with those of its sleep: no change of the clock moves it.
#[must_use]
pub fn uptime() -> Option<f64> {
    std::fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse().ok()
}

fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    own.map(|folder| Path::new(&folder).join("pmo")).into_iter().chain(["/run/pmo".into()]).collect()
}

/// Has the lock before it has the name.
fn put(path: &Path, account: &Account) -> io::Result<File> {
    let new = path.with_file_name(format!(".replica.{}", std::process::id()));
    let mut file = File::create(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&serde_json::to_vec(account)?)?;
    std::fs::rename(&new, path)?;
    Ok(file)
}

/// `None`: the run is no more.
fn read(path: &Path) -> Option<Account> {
    let mut file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
