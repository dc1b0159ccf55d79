//! Effects of the global options on every command.

use crate::failure::Result;
use crate::global::Global;
use crate::terminal::detail;
use indelible::{ErrorKind, MediumKind, Pool, PoolOptions};
use std::path::Path;

/// The global options, ready to use.
pub struct Context {
    /// How to open pools.
    pub options: PoolOptions,
    /// Print JSON.
    pub json: bool,
    /// The command lines of `pmo` and `mkpmo`: the source of completions and manual pages.
    pub command_lines: fn() -> [clap::Command; 2],
}

impl Context {
    /// Made from the command line.
    pub fn new(global: &Global, command_lines: fn() -> [clap::Command; 2]) -> Self {
        let mut options = PoolOptions::new()
            .medium(global.medium)
            .tracking(global.tracking)
            .allow_remote(global.allow_remote);
        if let Some(wait) = global.wait {
            options = options.wait(wait);
        }
        Context { options, json: global.json, command_lines }
    }

    /// Opens a pool for changes.
    pub fn open(&self, path: &Path) -> Result<Pool> {
        let pool = self.options.open(path)?;
        detail(|| format!("opened {}, a {}", path.display(), pool.medium().word()));
        Ok(pool)
    }

    /// Opens a pool to look at it; nothing of it is written, so read permission is enough.
    pub fn look(&self, path: &Path) -> Result<Pool> {
        Ok(self.options.clone().read_only(true).open(path)?)
    }

    /// Opens a pool for writing the object `name`. Where that is sparse and memory, a full file
    /// system is then an error, not a signal, if this user may have pages filled on demand.
    pub fn open_to_fill(&self, path: &Path, name: &str) -> Result<Pool> {
        let pool = self.open(path)?;
        if pool.medium() != MediumKind::Memory || !pool.stat(name).is_ok_and(|stat| stat.sparse) {
            return Ok(pool);
        }
        drop(pool);
        match self.options.clone().fault_in(true).open(path) {
            Err(error) if error.kind() == ErrorKind::Unsupported => self.open(path),
            done => Ok(done?),
        }
    }

    /// Opens a pool to attach one of its objects for reading: writable if it can be, so that a
    /// writer that died is recovered. It cannot where a copy-on-write file system is full: there
    /// each store needs new space.
    pub fn open_to_read(&self, path: &Path) -> Result<Pool> {
        const NO_SPACE: Option<i32> = Some(28);
        // The first look makes sure that the newest change of the table is durable, which is a
        // store.
        match self.options.open(path).and_then(|pool| pool.info().map(|_| pool)) {
            Err(error)
                if matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::NoSpace)
                    || error.raw_os_error() == NO_SPACE =>
            {
                self.look(path)
            }
            done => Ok(done?),
        }
    }
}
