//! Files and folders, with errors that name them.

use crate::command::Result;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn folder(base: &Path, inner: &str) -> Result<PathBuf> {
    let path = base.join(inner);
    fs::create_dir_all(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    Ok(path)
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    folder(to.parent().unwrap_or(Path::new("")), "")?;
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}

pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        let failed = |error: std::io::Error| format!("cannot read {}: {error}", inner.display());
        for entry in fs::read_dir(&inner).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
