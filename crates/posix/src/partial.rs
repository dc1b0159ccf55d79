//! An unfinished copy under its own name, `NAME.PID.partial`, until it is whole and durable.
//!
//! A killed process leaves it; the next copy to the same name removes it. A lock tells copies in
//! progress from leftovers.

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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
    is_folder: bool,
}

impl Partial {
    /// Begins a file that will be `to`, and removes leftovers.
    ///
    /// # Errors
    /// `EEXIST`: `to` exists, or this process makes it already.
    pub(crate) fn file(to: &Path) -> io::Result<Partial> {
        Partial::begin(to, false)
    }

    /// Begins a folder, as [`file`](Partial::file).
    pub(crate) fn folder(to: &Path) -> io::Result<Partial> {
        Partial::begin(to, true)
    }

    fn begin(to: &Path, is_folder: bool) -> io::Result<Partial> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(Errno::EXIST.into());
        }
        let end = format!(".{}", std::process::id());
        let name = [stem(to), end.as_bytes(), END].concat();
        let path = folder_of(to).join(OsStr::from_bytes(&name));
        loop {
            remove_leftovers(to);
            let locked = if is_folder {
                DirBuilder::new().mode(0o700).create(&path)?;
                File::options().read(true).custom_flags(DIRECT).open(&path)
            } else {
                File::options().create_new(true).read(true).write(true).mode(0o600).open(&path)
            };
            let locked = match locked {
                // Another process removed it as a leftover.
                Err(error) if is_folder && error.kind() == io::ErrorKind::NotFound => continue,
                locked => locked?,
            };
            match locked.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                // Without locks nothing is taken for a leftover.
                _ if is_at(&locked, &path) => return Ok(Partial { path, locked, is_folder }),
                _ => {}
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn opened(&self) -> &File {
        &self.locked
    }

    /// Makes it durable, then names it `to`, durably. After an error nothing has that name.
    ///
    /// # Errors
    /// `EEXIST`; those of the file system.
    pub(crate) fn publish(self, to: &Path) -> io::Result<()> {
        match self.is_folder {
            // Once for all files of a tree.
            true => syncfs(&self.locked)?,
            false => self.locked.sync_all()?,
        }
        self.name(to)?;
        sync_folder_of(to).inspect_err(|_| {
            // The drop removes it.
            let _ = fs::rename(to, &self.path);
        })
    }

    fn name(&self, to: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.path, CWD, to, RenameFlags::NOREPLACE) {
            // The file system cannot.
            Err(Errno::INVAL | Errno::NOSYS) if self.is_folder => match fs::symlink_metadata(to) {
                Ok(_) => Err(Errno::EXIST.into()),
                Err(_) => fs::rename(&self.path, to),
            },
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::hard_link(&self.path, to)?;
                fs::remove_file(&self.path)
            }
            done => Ok(done?),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Once renamed, its name may be another process's.
        if is_at(&self.locked, &self.path) {
            remove(&self.path, self.is_folder);
        }
    }
}

/// Makes a new name durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
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

fn remove(path: &Path, is_folder: bool) {
    // The next copy removes a leftover that stays.
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
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
        if let Ok(kind) = entry.file_type()
            && (kind.is_file() || kind.is_dir())
            && let Ok(file) = File::options().read(true).custom_flags(DIRECT).open(entry.path())
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            remove(&entry.path(), kind.is_dir());
        }
    }
}
