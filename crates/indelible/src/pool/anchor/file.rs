//! Anchors in files.
//!
//! Invariants:
//! 1. Only a regular file is read or replaced; no open waits for a FIFO or touches a device.
//! 2. A new record is written to a file that this process made, under a name that cannot be planted
//!    ahead.
//! 3. A symlink at the anchor's path stays: the file that it leads to is replaced.

use super::{Anchor, INTERVAL};
use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LONGEST: u64 = 4096;

const NAMES: usize = 8;

/// An anchor in a file, out of reach of attackers who can restore the pool. Symlinks are followed;
/// only regular files are accepted.
#[derive(Clone, Debug)]
pub struct FileAnchor {
    path: PathBuf,
    interval: Duration,
}

impl FileAnchor {
    /// The file at `path`; the first attach creates it.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> FileAnchor {
        FileAnchor { path: path.as_ref().to_owned(), interval: INTERVAL }
    }

    /// Sets the [interval](Anchor::interval); zero: each psync.
    #[must_use]
    pub fn every(self, interval: Duration) -> FileAnchor {
        FileAnchor { interval, ..self }
    }

    fn found(&self) -> io::Result<(PathBuf, Option<File>)> {
        let path = match fs::canonicalize(&self.path) {
            Ok(path) => path,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if fs::symlink_metadata(&self.path).is_ok() => {
                return Err(self.refused("is a symlink that leads to no file"));
            }
            Err(_) => return Ok((self.path.clone(), None)),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Opening a device can have effects.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(self.refused("is no regular file"));
        }
        let file = File::from(open(&path, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(self.refused("is no regular file"));
        }
        Ok((path, Some(file)))
    }

    fn refused(&self, why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the anchor {} {why}", self.path.display()))
    }
}

impl Anchor for FileAnchor {
    fn read(&self) -> io::Result<Option<String>> {
        let Some(file) = self.found()?.1 else { return Ok(None) };
        let mut record = String::new();
        file.take(LONGEST).read_to_string(&mut record)?;
        Ok(Some(record))
    }

    fn write(&self, record: &str) -> io::Result<()> {
        // Replaced, so that it is whole at any moment.
        let (path, _) = self.found()?;
        let (name, mut file) = new_beside(&path)?;
        let written = writeln!(file, "{record}").and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| fs::rename(&name, &path)) {
            let _ = fs::remove_file(&name);
            return Err(error);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

fn new_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rights = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut tries = 0;
    loop {
        let mut name = path.as_os_str().to_owned();
        // The standard library takes its keys from the kernel.
        name.push(format!(".{:016x}.new", RandomState::new().hash_one(tries)));
        match open(&name, flags, rights) {
            Ok(file) => return Ok((name.into(), file.into())),
            Err(rustix::io::Errno::EXIST) if tries < NAMES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
