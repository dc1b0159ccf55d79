//! Unfinished files that no process makes any more.

use crate::{DIRECT, folder_of, is_at};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const END: &[u8] = b".partial";
/// Bytes of the final name in the partial one, which has 255 at most.
const KEPT: usize = 230;

/// The name under which this process makes `to`.
#[must_use]
pub fn unfinished_name(to: &Path) -> PathBuf {
    let pid = format!(".{}", std::process::id());
    folder_of(to).join(OsStr::from_bytes(&[stem(to), pid.as_bytes(), END].concat()))
}

fn stem(path: &Path) -> &[u8] {
    let name = path.file_name().unwrap_or_default().as_bytes();
    &name[..name.len().min(KEPT)]
}

/// Files that killed processes left when they made `path`.
#[must_use]
pub fn left_beside(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    each(path, false, &mut |left, _| found.push(left.to_owned()));
    found
}

/// Removes those of [`left_beside`], as far as permitted; returns their number.
pub fn remove_left_beside(path: &Path) -> u64 {
    remove_left(path, false)
}

/// `folders`: those as well.
pub(crate) fn remove_left(path: &Path, folders: bool) -> u64 {
    let mut removed = 0;
    each(path, folders, &mut |left, is_folder| removed += u64::from(remove(left, is_folder)));
    removed
}

/// Returns whether it is gone.
pub(crate) fn remove(path: &Path, is_folder: bool) -> bool {
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }.is_ok()
}

fn each(to: &Path, folders: bool, found: &mut dyn FnMut(&Path, bool)) {
    let Ok(entries) = fs::read_dir(folder_of(to)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = name.as_bytes().strip_prefix(stem(to));
        let middle = middle.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(END));
        if !middle.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit)) {
            continue;
        }
        // Locked meanwhile: otherwise a process could begin to make it.
        if let Ok(kind) = entry.file_type()
            && (kind.is_file() || folders && kind.is_dir())
            && let Ok(file) = File::options().read(true).custom_flags(DIRECT).open(entry.path())
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            found(&entry.path(), kind.is_dir());
        }
    }
}
