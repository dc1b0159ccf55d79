use std::io;
use std::path::PathBuf;

use crate::mapping::MappingError;
use indelible_store::error::Holder;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BackingError {
    #[error(
        "memory of an object cannot be kept for the next process: the kernel does not tell which boot this is; mount /proc"
    )]
    NoBoot,
    #[error("the memory of an object, {}, is in use by {holder}", path.display())]
    InUse { path: PathBuf, holder: Holder },
    #[error("the memory of an object, {}, is there already", path.display())]
    Exists { path: PathBuf },
    #[error(
        "the memory of an object, {}, belongs to the pool {}, of which this pool is a copy",
        path.display(), origin.display()
    )]
    OfOriginal { path: PathBuf, origin: PathBuf },
    #[error("{} has the name of an object's memory and is not used: {why}", path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("the memory of an object, {}, is not used: {why}; without the file, the object is as it was last durable", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "the memory of an object, {}, was left by a process of another release: it has version {found}, and this release knows {known}",
        path.display()
    )]
    Version { path: PathBuf, found: u64, known: u64 },
    #[error(
        "cannot keep {len} bytes of an object in memory for the next process: {}: {first}; {}: {second}; \
         enlarge one of the two",
        memory.display(), beside.display()
    )]
    NoRoom { len: usize, memory: PathBuf, first: io::Error, beside: PathBuf, second: io::Error },
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Mapping(#[from] MappingError),
}
