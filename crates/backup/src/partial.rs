//! An unfinished file under its own name, `NAME.PID.partial`, until it is whole and durable.
//!
//! A killed process leaves it; the next one that makes the same file removes it. A lock tells files
//! in progress from leftovers.

use crate::error::{BackupError, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const END: &str = ".partial";

/// Private, as pools are.
pub(crate) const FOR_OWNER: u32 = 0o600;
/// Opens names where other users may have put something: follows no link, waits for no pipe.
pub(crate) const DIRECT: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

/// Removed by the drop, unless renamed.
pub(crate) struct Partial {
    path: PathBuf,
    locked: File,
}

impl Partial {
    /// Removes leftovers of `path`.
    pub(crate) fn of(path: &Path) -> Result<Partial> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}{END}", std::process::id()));
        let partial = PathBuf::from(name);
        loop {
            remove_leftovers(path);
            // Never an existing file, which may be another user's, or a link.
            let open = File::options().create_new(true).read(true).write(true).mode(FOR_OWNER).open(&partial);
            let file = open.map_err(|error| {
                let is_file = fs::symlink_metadata(&partial).is_ok_and(|found| found.is_file());
                match error.kind() {
                    io::ErrorKind::AlreadyExists if is_file => {
                        let by = "it is being made already".to_owned();
                        BackupError::InUse { path: path.to_owned(), by }
                    }
                    _ => BackupError::file("create", &partial)(error),
                }
            })?;
            match file.try_lock() {
                // Another process may have removed it as a leftover before the lock.
                Ok(()) if is_at(&file, &partial) => return Ok(Partial { path: partial, locked: file }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(BackupError::file("lock", &partial)(error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// By handle: its name may mean another file.
    pub(crate) fn file(&self) -> Result<File> {
        self.locked.try_clone().map_err(BackupError::file("open", &self.path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Once renamed, its name may be another process's.
        if is_at(&self.locked, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let (here, there) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    here.is_ok_and(|here| there.is_ok_and(|there| here == there))
}

fn remove_leftovers(path: &Path) {
    leftovers(path, &mut |left| {
        let _ = fs::remove_file(left);
    });
}

/// Leftovers of killed processes that made the pool or backup `path`.
#[must_use]
pub fn left_beside(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    leftovers(path, &mut |left| found.push(left.to_owned()));
    found
}

/// Removes the files of [`left_beside`], as far as permitted; returns their number.
pub fn remove_left_beside(path: &Path) -> u64 {
    let mut removed = 0;
    leftovers(path, &mut |left| removed += u64::from(fs::remove_file(left).is_ok()));
    removed
}

fn leftovers(path: &Path, each: &mut dyn FnMut(&Path)) {
    let folder = path.parent().filter(|folder| *folder != "").unwrap_or(Path::new("."));
    let (Some(name), Ok(entries)) = (path.file_name(), fs::read_dir(folder)) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let middle = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let middle = middle.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(END.as_bytes()));
        if !middle.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit)) {
            continue;
        }
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // Locked until removed: otherwise a process could begin to make it.
        if is_file
            && let Ok(file) = File::options().read(true).custom_flags(DIRECT).open(entry.path())
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            each(&entry.path());
        }
    }
}
