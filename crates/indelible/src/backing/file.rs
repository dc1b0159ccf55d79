//! Files that others could have planted: opened without following or waiting, and judged before
//! use.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::BackingError;
use crate::sys::ofd;
use indelible_store::error::Holder;
use indelible_store::medium::{LockMode, MediumError};

const OWNER: u64 = 0;
/// Milliseconds between attempts to lock, half a second in all.
const PAUSES: [u64; 7] = [2, 8, 30, 60, 100, 150, 150];

pub(super) fn failed<'a, E: Into<io::Error>>(
    what: &'static str,
    path: &'a Path,
) -> impl Fn(E) -> BackingError + 'a {
    move |error| BackingError::Io { what, path: path.to_owned(), source: error.into() }
}

fn foreign(path: &Path, why: impl Into<String>) -> BackingError {
    BackingError::Foreign { path: path.to_owned(), why: why.into() }
}

pub(super) fn open(path: &Path, own: impl Fn(u32) -> bool) -> Result<Option<(File, Stat)>, BackingError> {
    // A pipe or another process's lease must not hold us up.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let judge = |stat: &Stat| match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Err(foreign(path, "it is a symbolic link")),
        FileType::RegularFile if own(stat.st_uid) => Ok(()),
        FileType::RegularFile => Err(foreign(path, format!("it belongs to user {}", stat.st_uid))),
        _ => Err(foreign(path, "it is no regular file")),
    };
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => {
            if let Ok(stat) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
                judge(&stat)?;
            }
            return Err(failed("open", path)(error));
        }
    };
    let stat = rustix::fs::fstat(&file).map_err(failed("examine", path))?;
    judge(&stat)?;
    Ok(Some((file, stat)))
}

pub(super) fn check_private(path: &Path, stat: &Stat) -> Result<(), BackingError> {
    match (stat.st_mode & 0o7777, stat.st_nlink) {
        (0o600, 0 | 1) => Ok(()),
        (0o600, _) => Err(foreign(path, "it has another name, too")),
        (mode, _) => Err(foreign(path, format!("its permissions are {mode:o}, not 600"))),
    }
}

/// `false`: another process has it. A starting child of the last owner keeps it for a moment.
pub(super) fn lock(file: &File, path: &Path, mode: LockMode) -> Result<bool, BackingError> {
    for pause in PAUSES {
        if try_lock(file, path, (OWNER, mode))? {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(pause));
    }
    try_lock(file, path, (OWNER, mode))
}

pub(super) fn unlock(file: impl AsFd) {
    ofd::unlock(file.as_fd(), OWNER);
}

pub(super) fn try_lock(
    file: impl AsFd,
    path: &Path,
    (byte, mode): (u64, LockMode),
) -> Result<bool, BackingError> {
    ofd::try_lock(file.as_fd(), byte, mode).map_err(system("lock", path))
}

pub(super) fn is_locked(file: impl AsFd, path: &Path, byte: u64) -> Result<bool, BackingError> {
    let mode = ofd::probe(file.as_fd(), byte).map_err(system("look at the locks of", path))?;
    Ok(mode.is_some())
}

fn system<'a>(what: &'static str, path: &'a Path) -> impl Fn(MediumError) -> BackingError + 'a {
    move |error| {
        failed(what, path)(match error {
            MediumError::Io(error) => error,
            other => io::Error::other(other),
        })
    }
}

pub(super) fn holder(file: &File) -> Holder {
    let writer = true;
    match ofd::holder(file.as_fd(), OWNER) {
        Some(process) if process.pid == std::process::id() => Holder::Own { writer },
        Some(process) => Holder::Process { process, writer },
        None => Holder::Unknown,
    }
}

pub(super) fn unlink(file: impl AsFd, path: &Path) -> Result<(), BackingError> {
    let own = rustix::fs::fstat(file).map_err(failed("examine", path))?;
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino) => {
            rustix::fs::unlinkat(CWD, path, AtFlags::empty()).map_err(failed("remove", path))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed("examine", path)(error)),
    }
}
