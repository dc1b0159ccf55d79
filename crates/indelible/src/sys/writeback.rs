//! Asking the kernel whether writing a file back has failed, without I/O.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// The failure of a write-back that this open file description has not been told of; it is told once.
///
/// `sync_file_range` that only waits, and for one byte, ends in the same look at the file's errors as
/// `fdatasync`. Without the call there is no answer, which is no error: the next durable write tells.
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
