//! Errors of backups.

use indelible_store::error::StoreError;
use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T, E = BackupError> = std::result::Result<T, E>;

/// A failed backup, verification or restore. A failed backup leaves no apparent backup; a failed
/// restore replaces nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The pool.
    #[error(transparent)]
    Pool(#[from] indelible::Error),
    /// An object of the pool.
    #[error("object {name:?}: {cause}")]
    Object {
        /// Which.
        name: String,
        /// Why.
        cause: StoreError,
    },
    /// The pool's store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file, or a stream.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// The failed action.
        action: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is no backup.
    #[error("{} is no backup", .0.display())]
    NotABackup(PathBuf),
    /// A folder has backups of several pools.
    #[error("{} has backups of several pools: {}", folder.display(), listed(pools))]
    SeveralPools {
        /// Which.
        folder: PathBuf,
        /// ID of each pool, and its newest backup.
        pools: Vec<(String, PathBuf)>,
    },
    /// A folder has no backup of that pool.
    #[error("{} has no backup of a pool whose ID begins with {pool:?}", folder.display())]
    NoBackupOf {
        /// The folder.
        folder: PathBuf,
        /// Digits of the ID.
        pool: String,
    },
    /// Another version of the format.
    #[error("{} has version {found} of the format of backups; this release knows {known}", path.display())]
    Version {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// Its bytes differ from the written ones.
    #[error("{} is damaged at byte {at}: {what}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Byte of the file.
        at: u64,
        /// The damaged part, with the object.
        what: String,
    },
    /// A base is missing.
    #[error("{} has only what changed since backup {parent}, which is not in {}", path.display(), folder.display())]
    BaseMissing {
        /// Which.
        path: PathBuf,
        /// The base's ID.
        parent: String,
        /// The searched folder.
        folder: PathBuf,
    },
    /// A base has other content than when the backup was made.
    #[error("{} does not rest on {}: that one has other content than when it was made", path.display(), base.display())]
    BaseSwapped {
        /// Which.
        path: PathBuf,
        /// The base.
        base: PathBuf,
    },
    /// It was interrupted: it has a part of its content.
    #[error("{} was interrupted: it is no backup, but later ones may rest on it", .0.display())]
    Interrupted(PathBuf),
    /// A backup into a folder failed; its written part stays there.
    #[error("{cause}; the {bytes} bytes that were written are kept in {}", path.display())]
    Kept {
        /// The cause.
        cause: Box<BackupError>,
        /// The file, no backup.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Another process makes a backup there.
    #[error("another backup into {} is under way", .0.display())]
    FolderBusy(PathBuf),
    /// Something exists there.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The path holds a file of another kind, which is not replaced.
    #[error("{} is {found}, and is not replaced", path.display())]
    NotReplaced {
        /// Which.
        path: PathBuf,
        /// `no backup` or `no pool`.
        found: &'static str,
    },
    /// The pool to replace is in use.
    #[error("the pool {} is in use: {by}", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
        /// The user.
        by: String,
    },
    /// It is a device.
    #[error("cannot clone {}: it is no file", .0.display())]
    NoFile(PathBuf),
    /// The pool or the backup lacks the object.
    #[error("there is no object {0:?}")]
    NoObject(String),
    /// A stream of objects has two of one name.
    #[error("two objects of different pools have the name {0:?}")]
    SameName(String),
    /// An incremental backup is no stream of objects.
    #[error("{} has only what changed since another backup", .0.display())]
    NotAlone(PathBuf),
    /// An object that must keep its addresses overlaps another one.
    #[error("object {name:?} is not position-independent, and object {has:?} of the pool has its addresses")]
    Addresses {
        /// Which.
        name: String,
        /// The other object.
        has: String,
    },
    /// No room for the snapshots.
    #[error("objects that processes are writing cannot be kept for the time of the backup: {0}")]
    NoRoomToKeep(StoreError),
    /// A pool opened for reading was written to meanwhile.
    #[error("the pool was written to while it was read")]
    Changed,
    /// An object was replaced while it was kept.
    #[error("object {0:?} was replaced meanwhile")]
    Replaced(String),
}

fn listed(pools: &[(String, PathBuf)]) -> String {
    let one = |(id, path): &(String, PathBuf)| {
        let file = path.file_name().unwrap_or_default();
        format!("{id} (newest: {})", file.display())
    };
    pools.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl BackupError {
    /// Advice, one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            BackupError::Pool(error) => error.remedy(),
            BackupError::Object { cause: StoreError::WrongKey, .. } => {
                "give the object's key, or name the objects without one"
            }
            BackupError::Object { cause: StoreError::Held { .. }, .. } => {
                "wait until that process is done with it"
            }
            BackupError::Object { cause: StoreError::NeedsRecovery, .. } => {
                "`pmo recover` of the pool, where it can be written to, completes what its dead writer psynced"
            }
            BackupError::Object { cause: StoreError::AddressesTaken { .. }, .. } => {
                "restore into a new pool, as objects keep their addresses, or with other ones (`--rebase`), which needs objects whose pointers are all described"
            }
            BackupError::Object { cause: StoreError::Exists, .. } => {
                "rename or destroy the one that is there, or restore into a new pool"
            }
            BackupError::Object { cause: StoreError::NoRoom { .. } | StoreError::NoSpace, .. } => {
                "choose a larger size for the pool"
            }
            BackupError::Object { .. } | BackupError::Store(_) => {
                "`pmo check` says whether the pool is damaged"
            }
            BackupError::File { .. } => {
                "look at the path, its permissions and the free space of its file system"
            }
            BackupError::NotABackup(_) => "name a file that `pmo backup` made, or a folder with such files",
            BackupError::SeveralPools { .. } => "choose a pool by the first digits of its ID (`--pool-id`)",
            BackupError::NoBackupOf { .. } => "`pmo verify` of the folder lists its pools",
            BackupError::Version { .. } => "use the release that made it, or a later one",
            BackupError::Damaged { .. } => "use another backup; `pmo verify` lists all that is damaged",
            BackupError::BaseMissing { .. } => "bring the backups that it rests on to the same folder",
            BackupError::BaseSwapped { .. } => "bring back the backup that it was made for, or use another",
            BackupError::Interrupted(_) => {
                "use the backup after it; `pmo backup` into its folder goes on from it"
            }
            BackupError::Kept { .. } => {
                "end the cause and make the backup again: it goes on from there; or remove that file, if its space is needed"
            }
            BackupError::FolderBusy(_) => "wait until it is done",
            BackupError::Exists(_) => "choose another path, or --force",
            BackupError::NotReplaced { .. } => "choose another path, or remove that file first",
            BackupError::InUse { .. } => "end the processes that use it, or restore to another path",
            BackupError::NoFile(_) => "use `pmo backup` and `pmo restore`",
            BackupError::SameName(_) => "rename one of them",
            BackupError::NotAlone(_) => {
                "use `pmo restore`, which brings the backups together, or make a full one"
            }
            BackupError::Addresses { .. } => {
                "import it into another pool, or give it other addresses (`--rebase`), which needs pointers that are all described"
            }
            BackupError::NoObject(_) => {
                "`pmo ls` lists the objects of a pool, `pmo verify` those of a backup"
            }
            BackupError::NoRoomToKeep(_) => {
                "detach the objects for the time of the backup, or leave free pieces as large as they are in the pool"
            }
            BackupError::Replaced(_) => "make the backup again",
            BackupError::Changed => {
                "make the backup again; a process that may write to the pool makes one beside its writers"
            }
        }
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> BackupError {
        move |cause| BackupError::File { action, path: path.to_owned(), cause }
    }

    pub(crate) fn object(name: &str) -> impl Fn(StoreError) -> BackupError {
        move |cause| BackupError::Object { name: name.to_owned(), cause }
    }
}
