//! A pool in a file or on a block device, written by system calls.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indelible_store::medium::{
    Capabilities, Extended, Fatal, LockKey, LockMode, LockTable, Locks, Medium, MediumError, Process,
    ReserveError,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, SeekFrom, StatxFlags, fstat, seek, statx};
use rustix::io::{Errno, ReadWriteFlags};

use super::space;
use crate::sys::fork::ForkFd;
use crate::sys::{extents, lock_table, ofd, process, writeback};

/// Bytes per write. A file system may keep one write as one large folio and visit all its blocks at
/// every later small write: on ext4, a line costs 30 µs after writes of 1 MiB, 3 µs after 64 KiB.
const PIECE: usize = 64 << 10;

/// The kernel reports a write-back error once per open file description.
enum Barriers {
    Own(ForkFd),
    Shared(Mutex<()>),
}

impl Barriers {
    fn of(fd: &ForkFd) -> Barriers {
        let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        let own = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty());
        match own.map_err(io::Error::from).and_then(ForkFd::new) {
            Ok(own) => Barriers::Own(own),
            // No /proc, or no right to reopen.
            Err(_) => Barriers::Shared(Mutex::new(())),
        }
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            Barriers::Own(_) => None,
            Barriers::Shared(turn) => Some(turn.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

pub(crate) struct FileMedium {
    fd: Arc<ForkFd>,
    barriers: Barriers,
    shows_holes: bool,
    forgets_blocks: bool,
    len: AtomicU64,
    read_only: bool,
}

impl FileMedium {
    pub(super) fn new(fd: Arc<ForkFd>, len: u64, read_only: bool) -> FileMedium {
        let barriers = if read_only { Barriers::Shared(Mutex::new(())) } else { Barriers::of(&fd) };
        let shows_holes = space::shows_holes(fd.as_fd());
        let forgets_blocks = space::forgets_blocks(fd.as_fd());
        FileMedium { fd, barriers, shows_holes, forgets_blocks, len: AtomicU64::new(len), read_only }
    }

    fn at(&self, offset: u64, len: usize) -> Result<BorrowedFd<'_>, MediumError> {
        space::check(offset, len as u64, self.len())?;
        live(&self.fd)
    }

    fn know(&self, len: u64) {
        self.len.fetch_max(len, Ordering::Relaxed);
    }

    fn writable(&self, offset: u64, len: u64) -> Result<BorrowedFd<'_>, MediumError> {
        if self.read_only {
            return Err(MediumError::ReadOnly);
        }
        space::check(offset, len, self.len())?;
        live(&self.fd)
    }
}

#[inline]
pub(super) fn live(fd: &ForkFd) -> Result<BorrowedFd<'_>, MediumError> {
    if fd.is_stale() {
        return Err(MediumError::Gone { what: "left behind by a fork" });
    }
    Ok(fd.as_fd())
}

pub(super) fn verify(fd: BorrowedFd<'_>, len: u64) -> Result<u64, MediumError> {
    let stat = fstat(fd).map_err(io::Error::from)?;
    judge(stat.st_mode, stat.st_nlink == 0, u64::try_from(stat.st_size).unwrap_or(0), len)
}

/// Without the file's times: after a query of them the next durable write waits for the inode (on
/// ext4 160 µs instead of 110).
fn verify_timeless(fd: BorrowedFd<'_>, len: u64) -> Result<u64, MediumError> {
    let wanted = StatxFlags::TYPE | StatxFlags::NLINK | StatxFlags::SIZE;
    match statx(fd, c"", AtFlags::EMPTY_PATH, wanted) {
        Ok(stat) => judge(stat.stx_mode.into(), stat.stx_nlink == 0, stat.stx_size, len),
        // Sandboxes that do not know the call forbid it.
        Err(_) => verify(fd, len),
    }
}

fn judge(mode: RawMode, unlinked: bool, size: u64, len: u64) -> Result<u64, MediumError> {
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Ok(len);
    }
    if unlinked {
        return Err(MediumError::Gone { what: "deleted" });
    }
    if size < len {
        return Err(MediumError::Gone { what: "truncated" });
    }
    Ok(size)
}

impl Medium for FileMedium {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        space::read_all(self.at(offset, buf.len())?, offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let fd = self.writable(offset, bytes.len() as u64)?;
        space::write_all(bytes, offset, |bytes, at| {
            rustix::io::pwrite(fd, &bytes[..bytes.len().min(PIECE)], at)
        })
        .map_err(space::failed)
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let fd = self.writable(offset, bytes.len() as u64)?;
        let _turn = self.barriers.turn();
        space::write_all(bytes, offset, |bytes, at| {
            rustix::io::pwritev2(fd, &[io::IoSlice::new(bytes)], at, ReadWriteFlags::DSYNC)
        })
        .map_err(space::failed)
    }

    fn barrier(&self) -> Result<(), Fatal> {
        if self.read_only {
            return Ok(());
        }
        let _turn = self.barriers.turn();
        let fd = match &self.barriers {
            Barriers::Own(fd) => live(fd)?,
            Barriers::Shared(_) => live(&self.fd)?,
        };
        loop {
            match rustix::fs::fdatasync(fd) {
                // Nothing was reported yet, so this does not repeat a failed barrier.
                Err(Errno::INTR) => {}
                Ok(()) => return Ok(()),
                Err(e) => return Err(space::failed(e)),
            }
        }
    }

    fn check_writeback(&self) -> Result<(), Fatal> {
        let _turn = self.barriers.turn();
        writeback::take_error(live(&self.fd)?).map_err(space::failed)
    }

    fn check_barriers(&self) -> Result<(), Fatal> {
        match &self.barriers {
            Barriers::Own(fd) => writeback::take_error(live(fd)?).map_err(space::failed),
            Barriers::Shared(_) => Ok(()),
        }
    }

    fn unwritten(&self, offset: u64, len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        if !self.forgets_blocks {
            return Ok(Vec::new());
        }
        let fd = self.at(offset, usize::try_from(len).unwrap_or(usize::MAX))?;
        let found = extents::unwritten(fd, offset..offset + len).map_err(io::Error::from)?;
        Ok(found.unwrap_or_default())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        space::zero(self.writable(offset, len)?, offset, len).map_err(space::failed)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        let fd = self.writable(offset, len)?;
        // An empty reservation still writes a time, for which the next durable write must wait.
        if self.shows_holes && space::is_written(fd, offset, len) {
            return Ok(());
        }
        space::reserve(fd, offset, len).map_err(space::refused)
    }

    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        let fd = self.writable(0, 0)?;
        let extended = match space::lengthen(fd, len)? {
            Some(extended) => extended,
            None => {
                let len = seek(fd, SeekFrom::End(0)).map_err(space::failed)?;
                Extended { len, zeros_from: len }
            }
        };
        self.know(extended.len);
        Ok(extended)
    }

    fn discard(&self, offset: u64, len: u64) {
        if let Ok(fd) = self.writable(offset, len) {
            // Best effort: without support the blocks stay.
            let _ = space::punch(fd, offset, len);
        }
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        if let Ok(fd) = self.writable(offset, len) {
            writeback::begin(fd, offset, len);
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::DISK
    }

    fn verify(&self) -> Result<(), MediumError> {
        let known = self.len();
        let len = verify_timeless(live(&self.fd)?, known)?;
        if len > known {
            self.know(len);
        }
        Ok(())
    }
}

impl Locks for FileMedium {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        ofd::try_lock_range(live(&self.fd)?, key.bytes(), mode)
    }

    fn unlock(&self, key: LockKey) {
        ofd::unlock_range(self.fd.as_fd(), key.bytes());
    }

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        ofd::probe(live(&self.fd)?, key.byte())
    }

    fn may_have_locks(&self, from: LockKey, to: LockKey) -> Result<bool, MediumError> {
        Ok(ofd::probe_range(live(&self.fd)?, from.byte()..=to.byte())?.is_some())
    }

    fn holder(&self, key: LockKey) -> Option<Process> {
        ofd::holder(self.fd.as_fd(), key.byte())
    }

    fn table(&self) -> LockTable {
        lock_table::locks(self.fd.as_fd())
    }

    fn process(&self, pid: u32) -> Process {
        process::seen(pid)
    }
}

impl Drop for FileMedium {
    fn drop(&mut self) {
        // A mapping elsewhere may keep the description open beyond this handle.
        if !self.fd.is_stale() {
            ofd::unlock_all(self.fd.as_fd());
        }
    }
}
