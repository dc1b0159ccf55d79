//! An unfinished file under its own name, `NAME.PID.partial`, until it is whole and durable.
//!
//! A killed process leaves it; the next one that makes the same file removes it. A lock tells files
//! in progress from leftovers.

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const END: &[u8] = b".partial";
/// Bytes of the final name in the partial one, which has 255 at most.
const KEPT: usize = 230;
/// Opens names where other users may have put something: follows no link, waits for no pipe.
const DIRECT: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

/// Removed by the drop, unless published.
pub(crate) struct Partial {
    path: PathBuf,
    locked: File,
}

impl Partial {
    /// Begins the file that will be `to`, and removes leftovers.
    ///
    /// # Errors
    /// `AlreadyExists`: `to` exists, or this process makes it already.
    pub(crate) fn of(to: &Path) -> io::Result<Partial> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(Errno::EXIST.into());
        }
        let end = format!(".{}", std::process::id());
        let name = [stem(to), end.as_bytes(), END].concat();
        let path = folder_of(to).join(OsStr::from_bytes(&name));
        loop {
            remove_leftovers(to);
            let locked = File::options().create_new(true).read(true).write(true).open(&path)?;
            match locked.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                // Without locks nothing is taken for a leftover.
                _ if is_at(&locked, &path) => return Ok(Partial { path, locked }),
                // Another process removed it as a leftover.
                _ => {}
            }
        }
    }

    pub(crate) fn opened(&self) -> &File {
        &self.locked
    }

    /// Makes it durable, then names it `to`, durably. After an error nothing has that name.
    ///
    /// # Errors
    /// `AlreadyExists`; those of the file system.
    pub(crate) fn publish(self, to: &Path) -> io::Result<()> {
        self.locked.sync_all()?;
        match renameat_with(CWD, &self.path, CWD, to, RenameFlags::NOREPLACE) {
            // The file system cannot.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::hard_link(&self.path, to)?;
                fs::remove_file(&self.path)?;
            }
            done => done?,
        }
        let durable = File::open(folder_of(to)).and_then(|folder| folder.sync_all());
        durable.inspect_err(|_| {
            let _ = fs::remove_file(to);
        })
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

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != "").unwrap_or(Path::new("."))
}

fn stem(path: &Path) -> &[u8] {
    let name = path.file_name().unwrap_or_default().as_bytes();
    &name[..name.len().min(KEPT)]
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let (here, there) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    here.is_ok_and(|here| there.is_ok_and(|there| here == there))
}

fn remove_leftovers(to: &Path) {
    let Ok(entries) = fs::read_dir(folder_of(to)) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let middle = found.as_bytes().strip_prefix(stem(to));
        let middle = middle.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(END));
        if !middle.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit)) {
            continue;
        }
        // Locked until removed: otherwise a process could begin to make it.
        if entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::options().read(true).custom_flags(DIRECT).open(entry.path())
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
