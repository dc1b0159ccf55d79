//! A process that is registered, with one of its pools.

use crate::budget::Rate;
use crate::process::Process;
use crate::report::WriterReport;
use std::path::PathBuf;

/// A process that is gone, and may have left commits in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// Path of the pool, as the process said it.
    pub pool: PathBuf,
    /// ID of the pool, as the process said it.
    pub id: [u8; 16],
    /// Number of its memory, as the process said it.
    pub number: u64,
    /// Process ID, as the kernel says it.
    pub pid: i32,
    /// User, as the kernel reports it: work for the process has the rights of that user, and no
    /// others.
    pub uid: u32,
    /// Group, as the kernel says it.
    pub gid: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) departed: Departed,
    pub(crate) process: Process,
    pub(crate) rate: Rate,
    /// The bound that it was told last; `None`: none yet.
    pub(crate) told: Option<u64>,
}

impl Writer {
    pub(crate) fn new(departed: Departed, process: Process) -> Writer {
        Writer { departed, process, rate: Rate::default(), told: None }
    }

    pub(crate) fn report(&self) -> WriterReport {
        WriterReport {
            pid: self.departed.pid,
            uid: self.departed.uid,
            pool: self.departed.pool.to_string_lossy().into_owned(),
            budget: self.told.unwrap_or(0),
            bytes_per_second: self.rate.bytes_per_second(),
        }
    }
}
