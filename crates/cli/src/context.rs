//! The global options, applied.

use crate::failure::Result;
use crate::global::Global;
use crate::terminal::detail;
use indelible::{ErrorKind, MediumKind, Pool, PoolOptions};
use std::path::Path;

pub struct Context {
    /// How to open pools.
    pub options: PoolOptions,
    pub json: bool,
    /// Command lines of `pmo` and `mkpmo`, for completions and manual pages.
    pub command_lines: fn() -> [clap::Command; 2],
}

impl Context {
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

    pub fn open(&self, path: &Path) -> Result<Pool> {
        let pool = self.options.open(path)?;
        detail(|| format!("opened {}, a {}", path.display(), pool.medium().word()));
        Ok(pool)
    }

    /// Opens a pool for reading only.
    pub fn look(&self, path: &Path) -> Result<Pool> {
        Ok(self.options.clone().read_only(true).open(path)?)
    }

    /// Opens a pool to write `name`. If that is sparse and in memory, a full file system is an
    /// error, not a signal, where this user may fill pages on demand.
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

    /// Opens a pool to attach an object for reading: writable if possible, to recover a dead
    /// writer. A full copy-on-write file system prevents that, as each store needs new space.
    pub fn open_to_read(&self, path: &Path) -> Result<Pool> {
        const NO_SPACE: Option<i32> = Some(28);
        // The first look stores, to make the table's newest change durable.
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
