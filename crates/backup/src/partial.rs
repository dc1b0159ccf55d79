//! Unfinished pools and backups.

use crate::error::{BackupError, Result};
use indelible_files::{Partial, unfinished_name};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Private, as pools are.
pub(crate) const FOR_OWNER: u32 = 0o600;

/// Begins the file that will be `path`, and removes leftovers.
pub(crate) fn begin(path: &Path) -> Result<Partial> {
    Partial::file(path, FOR_OWNER).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if is_file(&unfinished_name(path)) => {
            BackupError::InUse { path: path.to_owned(), by: "it is being made already".to_owned() }
        }
        _ => BackupError::file("create", path)(error),
    })
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

pub(crate) fn handle(partial: &Partial) -> Result<File> {
    partial.opened().try_clone().map_err(BackupError::file("open", partial.path()))
}
