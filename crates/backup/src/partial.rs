//! A file that is to become another one, and has a name of its own beside it until it is whole and durable: `NAME.PID.partial`.
//!
//! A process that is killed leaves it, and it may be large; the next one that makes the same file removes it. It is locked while it is made,
//! so that those that others are making now can be told from leftovers.

use crate::error::{BackupError, Result};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const END: &str = ".partial";

/// Rights of a new file: as of a new pool, for its owner alone. A backup has all that is in one.
pub(crate) const FOR_OWNER: u32 = 0o600;

/// The empty file, which is removed when this is dropped, unless it has its name by then.
pub(crate) struct Partial {
    path: PathBuf,
    locked: File,
}

impl Partial {
    /// Makes it, and removes what earlier processes left of `path`.
    pub(crate) fn of(path: &Path) -> Result<Partial> {
        remove_leftovers(path);
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}{END}", std::process::id()));
        let partial = PathBuf::from(name);
        loop {
            let open =
                File::options().create(true).truncate(false).write(true).mode(FOR_OWNER).open(&partial);
            let file = open.map_err(BackupError::file("create", &partial))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let by = "it is being made already".to_owned();
                    return Err(BackupError::InUse { path: path.to_owned(), by });
                }
                Err(TryLockError::Error(error)) => return Err(BackupError::file("lock", &partial)(error)),
            }
            // Another process may have taken it for a leftover before it was locked.
            if is_at(&file, &partial) {
                file.set_len(0).map_err(BackupError::file("create", &partial))?;
                return Ok(Partial { path: partial, locked: file });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It may be on a full disk. Once it has its name, another process, of the same ID elsewhere, may have a file of this one.
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

/// Removes files of processes that are gone. Those that cannot be removed stay.
fn remove_leftovers(path: &Path) {
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
        // It is locked until it is removed: else another process could begin to make it in between.
        if is_file
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
