//! Making the file of a new pool.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use indelible_store::medium::{LockKey, LockMode};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

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

/// Makes a sparse file of `len` bytes, which the caller formats and [publishes](Media::publish): a
/// pool has no name before it is formatted, so that every open finds it whole, and a crash leaves
/// nothing. With `replace`, the file at `path` is used as it is; a device's length is its own.
pub(crate) fn create(path: &Path, len: u64, options: &CreateOptions) -> Result<Media, MediaError> {
    let fd = match options.replace {
        true => {
            let flags = FLAGS | OFlags::NONBLOCK | OFlags::CREATE;
            rustix::fs::open(path, flags, MODE).map_err(|e| failed("create", path, e))?
        }
        false => unnamed(path).map_err(|e| failed("create", path, e))?,
    };
    let fd = ForkFd::new(fd).map_err(|source| io_error("create", path, source))?;
    size(&fd, path, len)?;
    adopt(fd, path, options.choice, false, options.allow_remote)
}

const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file without a name where `path` will be; where the file system has no such files, with it.
fn unnamed(path: &Path) -> rustix::io::Result<OwnedFd> {
    if rustix::fs::lstat(path).is_ok() {
        return Err(Errno::EXIST);
    }
    match rustix::fs::open(parent(path), FLAGS | OFlags::TMPFILE, MODE) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            rustix::fs::open(path, FLAGS | OFlags::CREATE | OFlags::EXCL, MODE)
        }
        opened => opened,
    }
}

impl Media {
    /// Gives the file of a new pool its name, durably. Fails if the name is taken by now.
    pub(crate) fn publish(&self, path: &Path) -> Result<(), MediaError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(file).map_err(|e| failed("inspect", path, e))?;
        if stat.st_nlink == 0 {
            let this = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            rustix::fs::linkat(CWD, this, CWD, path, AtFlags::SYMLINK_FOLLOW)
                .map_err(|e| failed("create", path, e))?;
            sync_parent(path).inspect_err(|_| {
                // A pool whose format failed is not there.
                let _ = rustix::fs::unlink(path);
            })?;
        }
        Ok(())
    }
}

fn size(fd: &ForkFd, path: &Path, len: u64) -> Result<(), MediaError> {
    let stat = rustix::fs::fstat(fd).map_err(|e| failed("inspect", path, e))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Ok(());
    }
    // A user of the pool holds its table, if only shared. The lock goes with the description or,
    // when all is well, here: the format that follows takes it again.
    match ofd::try_lock(fd.as_fd(), LockKey::Table.byte(), LockMode::Exclusive) {
        Ok(true) => {}
        Ok(false) => {
            let (choice, why) = ("a new pool", "it is a pool that is open");
            return Err(MediaError::Unsuitable { path: path.into(), choice, why });
        }
        Err(source) => {
            return Err(MediaError::Medium { path: path.into(), source });
        }
    }
    // Through length 0, so that no old bytes are left.
    rustix::fs::ftruncate(fd, 0).map_err(|e| failed("empty", path, e))?;
    rustix::fs::ftruncate(fd, len).map_err(|e| failed("extend", path, e))?;
    barrier("sync", path, rustix::fs::fsync(fd))?;
    ofd::unlock(fd.as_fd(), LockKey::Table.byte());
    sync_parent(path)
}

/// Makes the entry of `path` in its directory durable.
fn sync_parent(path: &Path) -> Result<(), MediaError> {
    const ACTION: &str = "make durable the name of";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        rustix::fs::open(parent(path), flags, Mode::empty()).map_err(|e| failed(ACTION, path, e))?;
    barrier(ACTION, path, rustix::fs::fsync(directory))
}

/// Passes on the result of a barrier, with an error that never says "no space": that is for calls
/// that changed nothing.
fn barrier(action: &'static str, path: &Path, done: rustix::io::Result<()>) -> Result<(), MediaError> {
    done.map_err(|error| MediaError::Barrier { action, path: path.into(), source: error.into() })
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
