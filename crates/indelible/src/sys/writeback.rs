//! Starts a file's write-back, and asks whether one failed.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Begins the write-back of a range's dirty pages, without waiting.
pub fn begin(fd: BorrowedFd<'_>, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: numbers only; the descriptor is borrowed for the call.
    unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Reported once. `sync_file_range` that waits for one byte checks for errors as `fdatasync` does;
/// otherwise the next durable write reports the error.
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: numbers only; the descriptor is borrowed for the length of the call.
    let done = unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 1, libc::SYNC_FILE_RANGE_WAIT_BEFORE) };
    if done == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
        None | Some(Errno::NOSYS | Errno::INVAL | Errno::SPIPE | Errno::PERM | Errno::OPNOTSUPP) => Ok(()),
        Some(error) => Err(error),
    }
}
