use crate::leftovers::{remove, remove_left, unfinished_name};
use crate::{DIRECT, folder_of, is_at};
use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An unfinished file or folder under its own name, `NAME.PID.partial`, until it is whole and
/// durable. Removed by the drop, unless it has its final name.
///
/// A killed process leaves it; the next one that makes the same name removes it. A lock tells those
/// in progress from leftovers.
#[derive(Debug)]
pub struct Partial {
    path: PathBuf,
    locked: File,
    is_folder: bool,
}

impl Partial {
    /// Begins a file that will be `to`, which may exist, and removes files left over.
    ///
    /// # Errors
    /// `AlreadyExists`: this process makes it already, or its unfinished name is taken. Those of the
    /// file system.
    pub fn file(to: &Path, mode: u32) -> io::Result<Partial> {
        Partial::begin(to, Some(mode))
    }

    /// Begins a folder for this user alone, and removes files and folders left over.
    ///
    /// # Errors
    /// As for [`file`](Partial::file).
    pub fn folder(to: &Path) -> io::Result<Partial> {
        Partial::begin(to, None)
    }

    fn begin(to: &Path, mode: Option<u32>) -> io::Result<Partial> {
        let path = unfinished_name(to);
        let is_folder = mode.is_none();
        loop {
            remove_left(to, is_folder);
            let locked = match mode {
                // Never an existing file, which may be another user's, or a link.
                Some(mode) => File::options().create_new(true).read(true).write(true).mode(mode).open(&path),
                None => {
                    DirBuilder::new().mode(0o700).create(&path)?;
                    File::options().read(true).custom_flags(DIRECT).open(&path)
                }
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

    /// Its name until it is whole.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By handle: its name may mean another file.
    #[must_use]
    pub fn opened(&self) -> &File {
        &self.locked
    }

    /// Makes it durable, then names it `to`, durably. After an error nothing has that name.
    ///
    /// # Errors
    /// `AlreadyExists`; those of the file system.
    pub fn publish(self, to: &Path) -> io::Result<()> {
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
        // Once renamed, its name may be another process's. A leftover that stays is removed by the
        // next process.
        if is_at(&self.locked, &self.path) {
            remove(&self.path, self.is_folder);
        }
    }
}

/// Fails if there is something of that name.
///
/// # Errors
/// `AlreadyExists`.
pub fn expect_free(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() { Err(Errno::EXIST.into()) } else { Ok(()) }
}

/// Makes a new name durable.
///
/// # Errors
/// Those of the file system.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_beside;

    #[test]
    fn a_name_appears_with_its_contents_and_never_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("name");
        let first = Partial::file(&to, 0o600).unwrap();
        let names = || fs::read_dir(&folder).unwrap().count();
        assert!(!to.exists() && names() == 1 && left_beside(&to).is_empty());
        assert_eq!(Partial::file(&to, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::write(first.path(), "first").unwrap();
        first.publish(&to).unwrap();
        let second = Partial::file(&to, 0o600).unwrap();
        assert_eq!(second.publish(&to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&to).unwrap(), "first");
        let tree = Partial::folder(&folder.path().join("tree")).unwrap();
        fs::write(tree.path().join("leaf"), "").unwrap();
        drop(tree);
        assert_eq!(names(), 1, "the unfinished ones are removed");
    }

    #[test]
    fn leftovers_are_removed_by_the_next_that_makes_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("name");
        let left = ["name.1.partial", "name.22.partial"].map(|name| folder.path().join(name));
        fs::write(&left[0], "").unwrap();
        fs::create_dir_all(left[1].join("tree")).unwrap();
        let others = ["name.x.partial", "name..partial", "other.1.partial", "name.1.partial.old"];
        others.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        assert_eq!(left_beside(&to), [left[0].clone()]);
        drop(Partial::file(&to, 0o600).unwrap());
        assert!(left_beside(&to).is_empty() && !left[0].exists() && left[1].exists());
        drop(Partial::folder(&to).unwrap());
        assert!(!left[1].exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
    }
}
