//! A name for a file that was made without one.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::io::{Errno, Result};

const DESCRIPTORS: &str = "/proc/self/fd";

/// `OPNOTSUPP`: /proc is not mounted, and the process may not name a file without it.
pub(crate) fn name(file: BorrowedFd<'_>, path: &Path) -> Result<()> {
    let this = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, this, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        // Old kernels ask for a privilege.
        Err(Errno::NOENT) if !Path::new(DESCRIPTORS).exists() => {
            let named = rustix::fs::linkat(file, "", CWD, path, AtFlags::EMPTY_PATH);
            named.map_err(|error| if error == Errno::NOENT { Errno::OPNOTSUPP } else { error })
        }
        named => named,
    }
}
