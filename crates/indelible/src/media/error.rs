use std::io;
use std::path::PathBuf;

use indelible_store::medium::MediumError;

pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "write to";

/// Every variant names the path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MediaError {
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {action} {path}: {source}")]
    Barrier { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} is a {kind}; a pool is a regular file, a block device or a DAX device")]
    Kind { path: PathBuf, kind: &'static str },
    #[error(
        "{path} is on {file_system}, where locks and mappings of several machines do not exclude each other; \
        move the pool to a local file system, or allow remote file systems explicitly"
    )]
    Remote { path: PathBuf, file_system: &'static str },
    #[error("{path} cannot be used as {choice}: {why}")]
    Unsuitable { path: PathBuf, choice: &'static str, why: &'static str },
    #[error("{path} is in use by {by}")]
    InUse { path: PathBuf, by: String },
    #[error(
        "{path} is a loop device over {file}, which cannot be reached from here, so that other programs cannot be kept from using \
         it as well; open that file, or accept it explicitly as a file system of another machine is"
    )]
    Unreachable { path: PathBuf, file: PathBuf },
    #[error("{path} has no bytes; it is not a pool")]
    Empty { path: PathBuf },
    #[error("{path}: {source}")]
    Medium { path: PathBuf, source: MediumError },
}

impl MediaError {
    pub(crate) fn permission(&self) -> Option<&'static str> {
        match self {
            MediaError::Io { action: READ, .. } => Some(
                "get the permission to read the file, and to enter the folders on its path (its owner gives it: `chmod u+r`, g+r or o+r)",
            ),
            MediaError::Io { action: WRITE, .. } => {
                Some("get the permission to write to the file (its owner gives it: `chmod u+w`, g+w or o+w)")
            }
            _ => None,
        }
    }
}
