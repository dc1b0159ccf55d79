//! Exclusion of writers that byte locks on the pool's file do not reach: users of the device under
//! it (docs/decisions/0025).
//!
//! Byte locks belong to the opened inode. A device has many inodes: each container has its own
//! nodes, and a loop device is a second way to the file under it. Before any write:
//!
//! 1. A block device is *claimed* (`O_EXCL`): the kernel then refuses other claims, by any node,
//!    and mounts, until the process ends.
//! 2. A process that writes to a file holds [`FILE`] of it locked shared; one that writes to a loop
//!    device holds [`DEVICE`] of the file under it; each looks for the other's.
//! 3. A character device cannot be claimed: its node must be the kernel's own.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indelible_store::medium::LockMode;
use rustix::fs::{Advice, FileType, Mode, OFlags, Stat, fstat, major, minor};
use rustix::io::Errno;

use super::detect::{failed, io_error};
use super::{Media, MediaError};
use crate::sys::fork::ForkFd;
use crate::sys::{loops, ofd, process};

/// Locked, shared, by processes that write to a file; beside the bytes of
/// [`LockKey`](indelible_store::medium::LockKey).
const FILE: u64 = (1 << 62) + (1 << 33) - 2;
/// Locked, shared, by processes that write to a loop device over it.
const DEVICE: u64 = (1 << 62) + (1 << 33) - 1;
const DEPTH: u32 = 8;
/// Milliseconds: a starting child has the last holder's files until `exec`.
const PAUSES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

const ALONE: &str = "; a block device, and what it stands on, is written by one process at a time";

impl Media {
    pub(crate) fn claim(&mut self, path: &Path, allow_remote: bool) -> Result<(), MediaError> {
        for pause in PAUSES {
            match self.try_claim(path, allow_remote) {
                Err(MediaError::InUse { .. }) => std::thread::sleep(Duration::from_millis(pause)),
                done => return done,
            }
        }
        self.try_claim(path, allow_remote)
    }

    /// Also excludes processes that have the file open for writing. Not detectable for a character
    /// device.
    pub(crate) fn claim_alone(&mut self, path: &Path, allow_remote: bool) -> Result<(), MediaError> {
        self.claim(path, allow_remote)?;
        let Some(file) = &self.file else { return Ok(()) };
        let stat = fstat(file).map_err(|e| failed("inspect", path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let medium = |source| MediaError::Medium { path: path.into(), source };
        let in_use = |by| Err(MediaError::InUse { path: path.into(), by });
        if !ofd::try_lock(file.as_fd(), FILE, LockMode::Exclusive).map_err(medium)? {
            let who = ofd::holder(file.as_fd(), FILE).map_or("a program".into(), |pid| named(pid.pid));
            return in_use(format!("{who}, which has the pool open: this needs it alone"));
        }
        // Processes that replace a file lock it like this.
        let found = rustix::fs::stat(path).map_err(|e| failed("inspect", path, e))?;
        if (found.st_dev, found.st_ino) != (stat.st_dev, stat.st_ino) {
            return in_use("a program that has put another file in its place".into());
        }
        Ok(())
    }

    fn try_claim(&mut self, path: &Path, allow_remote: bool) -> Result<(), MediaError> {
        let Some(file) = &self.file else { return Ok(()) };
        let stat = fstat(file).map_err(|e| failed("inspect", path, e))?;
        let mut claimed = Vec::new();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => device(path, file.as_fd(), &stat, allow_remote, DEPTH, &mut claimed)?,
            FileType::CharacterDevice if !is_kernels(&stat) => {
                let why = "its node is not the kernel's own (devtmpfs): locks would not exclude those who use another \
                           node of the device";
                return Err(MediaError::Unsuitable {
                    path: path.into(),
                    choice: "a pool to be written",
                    why,
                });
            }
            FileType::CharacterDevice => {}
            _ => present(path, file.as_fd(), FILE, DEVICE)?,
        }
        self.claimed = claimed.into();
        Ok(())
    }
}

pub(crate) struct Exclusion {
    pub(crate) safe: bool,
    pub(crate) found: &'static str,
    pub(crate) advice: &'static str,
}

impl Media {
    pub(crate) fn exclusion(&self) -> Option<Exclusion> {
        let stat = fstat(self.file.as_ref()?).ok()?;
        let mode = stat.st_mode;
        let (safe, found, advice) = match FileType::from_raw_mode(mode) {
            FileType::BlockDevice => (
                true,
                "the kernel gives the device to one process at a time",
                "others can open the pool for reading only meanwhile",
            ),
            FileType::CharacterDevice if is_kernels(&stat) => {
                (true, "the node is the kernel's own", "several processes can share the pool")
            }
            FileType::CharacterDevice => (
                false,
                "the node is not the kernel's own (devtmpfs)",
                "the pool can be read only: use the node in a devtmpfs, or bind-mount it here",
            ),
            _ if mode & !(mode << 1) & 0o044 != 0 => (
                false,
                "some users may read the file but not write to it",
                "a lock taken by a program of theirs, on purpose, makes writers wait: give them a copy, or chmod go-r",
            ),
            _ => (
                true,
                "all users who may read the file may also write to it",
                "several processes can share the pool",
            ),
        };
        Some(Exclusion { safe, found, advice })
    }
}

fn device(
    path: &Path,
    fd: BorrowedFd<'_>,
    stat: &Stat,
    allow_remote: bool,
    depth: u32,
    claimed: &mut Vec<ForkFd>,
) -> Result<(), MediaError> {
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // The same node, even if the path leads elsewhere by now.
    let same = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let opened = match rustix::fs::open(&same, flags, Mode::empty()) {
        Err(Errno::NOENT) => rustix::fs::open(path, flags, Mode::empty()),
        opened => opened,
    };
    let opened = opened.map_err(|error| match error {
        Errno::BUSY => MediaError::InUse { path: path.into(), by: format!("{}{ALONE}", user(stat.st_rdev)) },
        error => failed("claim", path, error),
    })?;
    if fstat(&opened).map_err(|e| failed("inspect", path, e))?.st_rdev != stat.st_rdev {
        return Err(io_error("claim", path, io::ErrorKind::NotFound.into()));
    }
    claimed.push(ForkFd::new(opened).map_err(|source| io_error("claim", path, source))?);
    let Ok(identity) = loops::backing(fd) else { return Ok(()) };
    match under(path, stat.st_rdev, identity, allow_remote, depth, claimed) {
        Err(MediaError::Unreachable { .. }) if allow_remote => {}
        result => result?,
    }
    // The kernel caches the device apart from the file, so read pages may be stale.
    rustix::fs::fadvise(fd, 0, None, Advice::DontNeed).map_err(|e| failed("read anew", path, e))
}

fn under(
    path: &Path,
    rdev: u64,
    identity: (u64, u64),
    allow_remote: bool,
    depth: u32,
    claimed: &mut Vec<ForkFd>,
) -> Result<(), MediaError> {
    let unreachable = |file: &Path| MediaError::Unreachable { path: path.into(), file: file.into() };
    let file = backing_path(rdev).ok_or_else(|| unreachable(Path::new("?")))?;
    if file.to_string_lossy().ends_with(" (deleted)") {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(&file, flags, Mode::empty()).map_err(|_| unreachable(&file))?;
    let stat = fstat(&opened).map_err(|e| failed("inspect", &file, e))?;
    if (stat.st_dev, stat.st_ino) != identity || depth == 0 {
        return Err(unreachable(&file));
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
        return device(&file, opened.as_fd(), &stat, allow_remote, depth - 1, claimed);
    }
    let opened = ForkFd::new(opened).map_err(|source| io_error("claim", &file, source))?;
    present(&file, opened.as_fd(), DEVICE, FILE)?;
    claimed.push(opened);
    Ok(())
}

/// Takes a shared presence lock, unless one of the other kind is held.
fn present(path: &Path, fd: BorrowedFd<'_>, own: u64, other: u64) -> Result<(), MediaError> {
    let medium = |source| MediaError::Medium { path: path.into(), source };
    if !ofd::try_lock(fd, own, LockMode::Shared).map_err(medium)? {
        let who = ofd::holder(fd, own).map_or("a program".into(), |pid| named(pid.pid));
        let by = format!("{who}, which copies, upgrades or replaces the pool, and has it alone");
        return Err(MediaError::InUse { path: path.into(), by });
    }
    if ofd::probe(fd, other).map_err(medium)?.is_none() {
        return Ok(());
    }
    ofd::unlock(fd, own);
    let who = ofd::holder(fd, other).map_or(String::new(), |pid| format!(", by {}", named(pid.pid)));
    let by = match own {
        FILE => format!("a pool on a loop device over it{who}"),
        _ => format!("a pool in the file itself, which the loop device is over{who}"),
    };
    Err(MediaError::InUse { path: path.into(), by: by + ALONE })
}

/// Also of a partition.
fn backing_path(rdev: u64) -> Option<PathBuf> {
    let folder = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(rdev), minor(rdev))).ok()?;
    let text =
        folder.ancestors().take(2).find_map(|at| fs::read_to_string(at.join("loop/backing_file")).ok())?;
    Some(PathBuf::from(text.trim_end_matches('\n')))
}

fn user(rdev: u64) -> String {
    let own = std::process::id();
    let has = |folder: &Path| {
        let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let mut found = files.filter_map(|file| rustix::fs::stat(file.path()).ok());
        found.any(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice && stat.st_rdev == rdev
        })
    };
    let device = format!("{}:{}", major(rdev), minor(rdev));
    if let Some(mount) = mounts().into_iter().find(|mount| mount.device == device) {
        return format!("the file system mounted at {}", mount.at);
    }
    if let Some((pid, _)) = process::all().find(|(pid, folder)| *pid != own && has(folder)) {
        return named(pid);
    }
    let holders = fs::read_dir(format!("/sys/dev/block/{device}/holders")).into_iter().flatten().flatten();
    match holders.map(|holder| holder.file_name().to_string_lossy().into_owned()).next() {
        Some(holder) => format!("the device {holder}"),
        // The requested claim is not held yet: one of this process's is another pool's.
        None if has(Path::new("/proc/self")) => "another process, a file system, or this process".into(),
        None => "another process, or a file system".into(),
    }
}

fn named(pid: u32) -> String {
    let process = process::seen(pid);
    let stopped = if process.stopped { ", stopped" } else { "" };
    format!("process {pid} ({}{stopped})", process.name().unwrap_or_else(|| "?".into()))
}

struct Mount {
    device: String,
    at: String,
    kind: String,
}

fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &str| {
        let (about, kind) = line.split_once(" - ")?;
        let words: Vec<_> = about.split(' ').collect();
        let kind = kind.split(' ').next()?.to_owned();
        Some(Mount { device: (*words.get(2)?).to_owned(), at: (*words.get(4)?).to_owned(), kind })
    };
    text.lines().filter_map(mount).collect()
}

fn is_kernels(stat: &Stat) -> bool {
    let device = format!("{}:{}", major(stat.st_dev), minor(stat.st_dev));
    mounts().iter().any(|mount| mount.device == device && mount.kind == "devtmpfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_outside_of_devtmpfs_are_not_the_kernels() {
        let file = tempfile::tempfile().unwrap();
        assert!(!is_kernels(&fstat(&file).unwrap()), "a temporary file is no node of the kernel's");
        let null = fs::File::open("/dev/null").unwrap();
        let kernels = is_kernels(&fstat(&null).unwrap());
        eprintln!("/dev/null is the kernel's own node here: {kernels}");
    }
}
