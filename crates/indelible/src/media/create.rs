use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use indelible_store::medium::{LockKey, LockMode};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::detect::{adopt, failed, io_error};
use super::{Media, MediaError, MediumChoice};
use crate::sys::fork::ForkFd;
use crate::sys::{naming, ofd};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CreateOptions {
    pub(crate) choice: MediumChoice,
    pub(crate) replace: bool,
    pub(crate) allow_remote: bool,
}

/// The caller formats and [publishes](Media::publish) it: every open finds a whole pool, and a
/// crash leaves nothing. With `replace`, uses the file or device at `path`; a device keeps its
/// length.
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
    pub(crate) fn publish(&self, path: &Path) -> Result<(), MediaError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(file).map_err(|e| failed("inspect", path, e))?;
        if stat.st_nlink == 0 {
            name(file.as_fd(), path)?;
            sync_parent(path).inspect_err(|_| {
                let _ = rustix::fs::unlink(path);
            })?;
        }
        Ok(())
    }
}

fn name(file: BorrowedFd<'_>, path: &Path) -> Result<(), MediaError> {
    naming::name(file, path).map_err(|error| match error {
        Errno::OPNOTSUPP => {
            let (choice, why) = ("a new pool", "naming it needs /proc, which is not mounted here");
            MediaError::Unsuitable { path: path.into(), choice, why }
        }
        error => failed("create", path, error),
    })
}

fn size(fd: &ForkFd, path: &Path, len: u64) -> Result<(), MediaError> {
    let stat = rustix::fs::fstat(fd).map_err(|e| failed("inspect", path, e))?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Ok(());
    }
    // Users of the pool hold its table at least shared. The lock ends with the description, or here
    // on success.
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

fn sync_parent(path: &Path) -> Result<(), MediaError> {
    const ACTION: &str = "make durable the name of";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        rustix::fs::open(parent(path), flags, Mode::empty()).map_err(|e| failed(ACTION, path, e))?;
    barrier(ACTION, path, rustix::fs::fsync(directory))
}

/// Never returns "no space", which means that nothing changed.
fn barrier(action: &'static str, path: &Path, done: rustix::io::Result<()>) -> Result<(), MediaError> {
    done.map_err(|error| MediaError::Barrier { action, path: path.into(), source: error.into() })
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
