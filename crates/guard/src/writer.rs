//! A process that is registered, with one of its pools.

use crate::budget::Rate;
use crate::kernel::Peer;
use crate::report::WriterReport;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
    /// User, as the kernel says it: what is done for the process is done with the rights of that user, and no others.
    pub uid: u32,
    /// Group, as the kernel says it.
    pub gid: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) departed: Departed,
    process: OwnedFd,
    pub(crate) rate: Rate,
    /// The bound that it was told last; `None`: none yet.
    pub(crate) told: Option<u64>,
}

impl Writer {
    /// The process at the other end of a connection. The caller looks afterwards whether the connection is still open: then no other process has got its ID.
    pub(crate) fn of(peer: Peer, pool: PathBuf, id: [u8; 16], number: u64) -> io::Result<Writer> {
        let unseen = || io::Error::other("its process is not to be seen from here");
        let process = pidfd_open(Pid::from_raw(peer.pid).ok_or_else(unseen)?, PidfdFlags::empty())?;
        let departed = Departed { pool, id, number, pid: peer.pid, uid: peer.uid, gid: peer.gid };
        Ok(Writer { departed, process, rate: Rate::default(), told: None })
    }

    /// Ends the process. Never the guard's own, where it is registered with itself.
    pub(crate) fn kill(&self) {
        if self.departed.pid.unsigned_abs() != std::process::id() {
            // One that is gone already is no failure; neither is another: its death, or its connection's end, tells.
            let _ = pidfd_send_signal(&self.process, Signal::KILL);
        }
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

/// Readable once the process is dead.
impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}
