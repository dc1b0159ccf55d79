//! Making the file of a new pool.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use indelible_store::medium::{LockKey, LockMode};
use rustix::fs::{Mode, OFlags};

use super::detect::{adopt, failed, io_error};
use super::{Media, MediaError, MediumChoice};
use crate::sys::fork::ForkFd;
use crate::sys::ofd;

/// How [`create`] makes a pool's file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreateOptions {
    pub(crate) choice: MediumChoice,
    /// Take an existing file or device: a file loses its contents.
    pub(crate) replace: bool,
    pub(crate) allow_remote: bool,
}

/// Creates a sparse file of `len` bytes and makes its name durable. A device is taken as it is
/// (with `replace`), its length is its own. The caller formats it.
pub(crate) fn create(path: &Path, len: u64, options: &CreateOptions) -> Result<Media, MediaError> {
    let taken = if options.replace { OFlags::empty() } else { OFlags::EXCL };
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::CREATE | taken;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|e| failed("create", path, e))?;
    let fd = ForkFd::new(fd).map_err(|source| io_error("create", path, source))?;
    let made = size(&fd, path, len).and_then(|()| adopt(fd, path, options.choice, false, options.allow_remote));
    if made.is_err() && !options.replace {
        // EXCL: the file is this call's own, so nobody misses it.
        let _ = std::fs::remove_file(path);
    }
    made
}

fn size(fd: &ForkFd, path: &Path, len: u64) -> Result<(), MediaError> {
    let stat = rustix::fs::fstat(fd).map_err(|e| failed("inspect", path, e))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Ok(());
    }
    // Whoever uses the pool holds its table, if only shared. The lock goes with the description or,
    // when all is well, here: the format that follows takes it again.
    match ofd::try_lock(fd.as_fd(), LockKey::Table.byte(), LockMode::Exclusive) {
        Ok(true) => {}
        Ok(false) => {
            let (choice, why) = ("a new pool", "it is a pool that somebody has open");
            return Err(MediaError::Unsuitable { path: path.into(), choice, why });
        }
        Err(source) => return Err(MediaError::Medium { path: path.into(), source }),
    }
    // Through length 0, so that no old bytes are left.
    rustix::fs::ftruncate(fd, 0).map_err(|e| failed("empty", path, e))?;
    rustix::fs::ftruncate(fd, len).map_err(|e| failed("extend", path, e))?;
    rustix::fs::fsync(fd).map_err(|e| failed("sync", path, e))?;
    ofd::unlock(fd.as_fd(), LockKey::Table.byte());
    sync_parent(path).map_err(|source| io_error("make durable the name of", path, source))
}

/// Makes the entry of `path` in its directory durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(directory)?)
}
