//! Key files of erasable objects. Bytes whose key file is destroyed cannot be read.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use indelible_files::{DIRECT, sync_folder_of};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A key file that is to be destroyed.
pub struct LastKey {
    path: PathBuf,
    file: File,
}

impl LastKey {
    /// # Errors
    /// A file that cannot be written, is no regular file of one name, or is a symbolic link: its
    /// bytes would stay elsewhere.
    pub fn open(path: &Path) -> Result<LastKey> {
        let several = || {
            let message = format!("the key file {} is no regular file of one name", path.display());
            Failure::new(Exit::Usage, message, "name the file itself, and remove its other names first")
        };
        let of_one_name = |found: &fs::Metadata| found.is_file() && found.nlink() == 1;
        let named = fs::symlink_metadata(path).map_err(|error| Failure::file("open", path, &error))?;
        if !of_one_name(&named) {
            return Err(several());
        }
        let opened = OpenOptions::new().write(true).custom_flags(DIRECT).open(path);
        let file = opened.map_err(|error| Failure::file("open", path, &error))?;
        let found = file.metadata().map_err(|error| Failure::file("read", path, &error))?;
        if !of_one_name(&found) {
            return Err(several());
        }
        Ok(LastKey { path: path.to_owned(), file })
    }

    /// Overwrites it, and then removes its name, each durably.
    pub fn destroy(mut self) -> Result {
        self.overwrite()
            .and_then(|()| fs::remove_file(&self.path))
            .and_then(|()| sync_folder_of(&self.path))
            .map_err(|error| {
                let message = format!("the key file {} is not destroyed: {error}", self.path.display());
                Failure::new(
                    Exit::Failed,
                    message,
                    "destroy it with each of its copies: older copies of the object open by it",
                )
            })
    }

    fn overwrite(&mut self) -> io::Result<()> {
        let mut left = self.file.metadata()?.len();
        self.file.rewind()?;
        while left > 0 {
            let mut noise = [0; 4096];
            let noise = &mut noise[..left.min(4096) as usize];
            getrandom::fill(noise).map_err(|error| io::Error::other(error.to_string()))?;
            self.file.write_all(noise)?;
            left -= noise.len() as u64;
        }
        self.file.sync_all()
    }
}

/// Makes the key file and its name durable, before its predecessor goes.
pub fn keep(path: &Path) -> Result {
    let kept = File::open(path).and_then(|file| file.sync_all()).and_then(|()| sync_folder_of(path));
    kept.map_err(|error| Failure::file("write", path, &error))
}
