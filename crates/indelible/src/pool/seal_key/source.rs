use crate::error::{CREDENTIALS, KeySourceError};
use crate::pool::command::LIMIT;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

pub(super) fn contents(path: &Path) -> Result<Vec<u8>, KeySourceError> {
    let failed = |error| KeySourceError::File { path: path.to_owned(), error };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(LIMIT));
    file.take(LIMIT as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(std::mem::take(&mut bytes))
}

pub(super) fn text(path: &Path) -> Result<String, KeySourceError> {
    let mut bytes = contents(path)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        KeySourceError::NotText(path.to_owned())
    })
}

pub(super) fn credential(name: &str) -> Result<PathBuf, KeySourceError> {
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(KeySourceError::CredentialName(name.to_owned()));
    }
    let folder = std::env::var_os(CREDENTIALS).filter(|folder| !folder.is_empty());
    Ok(Path::new(&folder.ok_or(KeySourceError::NoCredentials)?).join(name))
}
