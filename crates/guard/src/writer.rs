//! A registered process with one of its pools.

use crate::budget::Rate;
use crate::process::Process;
use crate::report::WriterReport;
use std::path::PathBuf;

/// A gone process that may have left commits in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// Path of the pool, by the process.
    pub pool: PathBuf,
    /// ID of the pool, by the process.
    pub id: [u8; 16],
    /// Number of its memory, by the process.
    pub number: u64,
    /// Process ID, by the kernel.
    pub pid: i32,
    /// User, by the kernel: work for the process has only that user's rights.
    pub uid: u32,
    /// Group, by the kernel.
    pub gid: u32,
}

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) departed: Departed,
    pub(crate) process: Process,
    pub(crate) rate: Rate,
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
