//! Accounts of `pmo replicate run` on this machine. `crates/replicate/src/beacon.rs` has the
//! format.

use indelible::Stat;
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A run that ships the pool.
pub struct Replica {
    account: Account,
    /// Psyncs of the objects so far that the store does not have.
    behind: u64,
}

#[derive(Deserialize)]
struct Account {
    store: String,
    process: u32,
    as_of: Option<f64>,
    psyncs: Option<BTreeMap<String, u64>>,
}

impl Replica {
    /// The runs that ship a pool, as far as this user sees them.
    pub fn of(pool: &[u8; 16]) -> Vec<Replica> {
        let before = format!("replica.{}.", hex(pool));
        let entries = folders().into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        let mut found: Vec<Replica> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().unwrap_or_default().to_string_lossy().starts_with(&before))
            .filter_map(|path| Some(Replica { account: read(&path)?, behind: 0 }))
            .collect();
        found.sort_by(|a, b| a.account.store.cmp(&b.account.store));
        found
    }

    pub fn store(&self) -> &str {
        &self.account.store
    }

    pub fn process(&self) -> u32 {
        self.account.process
    }

    /// Seconds since the moment up to which all changes are in the store.
    pub fn lag(&self) -> Option<f64> {
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let now: f64 = uptime.split(' ').next()?.parse().ok()?;
        Some((now - self.account.as_of?).max(0.0))
    }

    /// `None`: not known.
    pub fn behind(&self) -> Option<u64> {
        self.account.psyncs.is_some().then_some(self.behind)
    }

    /// Counts an object's psyncs that the store does not have.
    pub fn count(&mut self, stat: &Stat) {
        let Some(psyncs) = &self.account.psyncs else { return };
        // Neither is shipped, or has psyncs of its own.
        if stat.volatile || stat.snapshot {
            return;
        }
        let shipped = psyncs.get(&hex(&stat.id)).copied().unwrap_or_default();
        self.behind += stat.psyncs.saturating_sub(shipped);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    own.map(|folder| Path::new(&folder).join("pmo")).into_iter().chain(["/run/pmo".into()]).collect()
}

/// `None`: the run is no more, or another file.
fn read(path: &Path) -> Option<Account> {
    let mut file = File::open(path).ok()?;
    // A run locks its account while it lives.
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
