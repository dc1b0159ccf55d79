//! Errors of replication, each with the object of the store, the cause, and the remedy.

use crate::names;
use indelible_backup::BackupError;
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = ReplicateError> = std::result::Result<T, E>;

/// Why shipping, taking ownership, or a restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicateError {
    /// The pool.
    #[error(transparent)]
    Pool(#[from] indelible::Error),

    /// The pool's store.
    #[error("the pool: {0}")]
    Store(#[from] StoreError),

    /// The new pool's file.
    #[error(transparent)]
    New(BackupError),

    /// An object of the pool.
    #[error("object {name:?}: {cause}")]
    Object {
        /// Its name.
        name: String,
        /// The cause.
        cause: StoreError,
    },

    /// No snapshot could be taken: the pool is full.
    #[error("no room for a snapshot of {name:?}: {cause}; make the pool longer with `pmo grow`")]
    NoRoom {
        /// The object.
        name: String,
        /// The cause.
        cause: StoreError,
    },

    /// The objects changed during each of several looks.
    #[error("the pool's objects changed during every look; the next tick tries again")]
    Restless,

    /// A file of this machine.
    #[error("cannot {what} {path}: {cause}")]
    File {
        /// The attempt.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },

    /// The new pool's path is taken.
    #[error("{0} exists; restore to another path, or remove it first")]
    Exists(PathBuf),

    /// The URL names no store.
    #[error("{url:?} names no store: {why}; use file:///FOLDER or s3://BUCKET/PREFIX")]
    Url {
        /// The URL.
        url: String,
        /// The cause.
        why: String,
    },

    /// An object of the store is not there.
    #[error("{name} is not in the store, and {needs} needs it; {}", remedy_of_missing(.name))]
    Missing {
        /// The object of the store.
        name: String,
        /// The object or record that needs it.
        needs: String,
    },

    /// An object of the store is not as it was put.
    #[error(
        "{name} is damaged: {why}; copy it back from a replica of the store, or restore an earlier moment"
    )]
    Damaged {
        /// The object of the store.
        name: String,
        /// The finding.
        why: String,
    },

    /// An object of the store belongs to another chain.
    #[error(
        "{name} does not continue {before}: {why}; it comes from elsewhere, remove it and copy the right one back"
    )]
    Foreign {
        /// The object of the store.
        name: String,
        /// The segment before it.
        before: String,
        /// The difference.
        why: String,
    },

    /// A newer version of this crate wrote it.
    #[error("{name} has format {version}, which this release does not read; use a newer release")]
    Version {
        /// The object of the store.
        name: String,
        /// Its version.
        version: u32,
    },

    /// The store has no whole moment.
    #[error("the store has no moment to restore: {0}; ship the pool first with `pmo replicate run`")]
    Empty(String),

    /// Restores would read too many segments.
    #[error("a restore would read {segments} segments; the whole pool is shipped anew")]
    TooLong {
        /// Segments below the newest.
        segments: u32,
    },

    /// No such moment.
    #[error("{asked} is no moment of the store; `pmo replicate status --moments` lists them")]
    NoMoment {
        /// The requested moment.
        asked: String,
    },

    /// The prefix holds another pool.
    #[error("the store has pool {found} at this prefix, and this is pool {own}; use another prefix")]
    OtherPool {
        /// ID of the pool in the store.
        found: String,
        /// ID of the pool to ship.
        own: String,
    },

    /// The pool to promote has no object of the store's pool.
    #[error(
        "the store has pool {found} at this prefix, and this is pool {own}, which has none of its objects; promote a pool that `pmo replicate restore` made from this store, or use another prefix"
    )]
    Unrelated {
        /// ID of the pool in the store.
        found: String,
        /// ID of the pool to ship.
        own: String,
    },

    /// Another process ships.
    #[error(
        "{owner} ships to this prefix as epoch {epoch}; stop it, or wait until its lease of {seconds} s runs out"
    )]
    Owned {
        /// The owner.
        owner: String,
        /// Its epoch.
        epoch: u64,
        /// Length of its lease.
        seconds: u64,
    },

    /// A later owner ended this process's epoch.
    #[error(
        "{name}: another owner ended epoch {epoch}; this pool no longer ships. Keep one of the two pools, and start `pmo replicate run` there"
    )]
    Fenced {
        /// The object of the store.
        name: String,
        /// The epoch of this process.
        epoch: u64,
    },

    /// Stopped before the store took a segment.
    #[error("stopped before the store took {name}: {why}")]
    Stopped {
        /// The object of the store.
        name: String,
        /// The last failure.
        why: String,
    },

    /// The store refused.
    #[error("the store refused {what} {name}: {why}; check the bucket, its name, and the credentials")]
    Refused {
        /// The attempt.
        what: &'static str,
        /// The object of the store.
        name: String,
        /// The store's answer.
        why: String,
    },

    /// The store does not answer.
    #[error("the store does not {what} {name}: {why}; check the network and the endpoint, then try again")]
    Unreachable {
        /// The attempt.
        what: &'static str,
        /// The object of the store.
        name: String,
        /// The last failure.
        why: String,
    },
}

/// No moment can be restored without the records of epochs.
fn remedy_of_missing(name: &str) -> &'static str {
    match name.starts_with(names::EPOCHS) {
        true => "copy it back from a replica of the store; to ship on without it, use another prefix",
        false => "copy it back, or restore an earlier moment",
    }
}

impl From<BackupError> for ReplicateError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Exists(path) => ReplicateError::Exists(path),
            BackupError::Pool(error) => ReplicateError::Pool(error),
            error => ReplicateError::New(error),
        }
    }
}

impl ReplicateError {
    /// Whether the pool was deleted or truncated: no later try succeeds.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match self {
            ReplicateError::Pool(error) => error.kind() == indelible::ErrorKind::Gone,
            ReplicateError::Store(error)
            | ReplicateError::Object { cause: error, .. }
            | ReplicateError::NoRoom { cause: error, .. } => is_gone(error),
            _ => false,
        }
    }

    pub(crate) fn object(name: &str) -> impl Fn(StoreError) -> Self + '_ {
        move |cause| ReplicateError::Object { name: name.to_owned(), cause }
    }

    pub(crate) fn file<'a>(
        what: &'static str,
        path: &'a std::path::Path,
    ) -> impl Fn(std::io::Error) -> Self + 'a {
        move |cause| ReplicateError::File { what, path: path.to_owned(), cause }
    }

    pub(crate) fn damaged(name: &str, why: impl Into<String>) -> Self {
        ReplicateError::Damaged { name: name.to_owned(), why: why.into() }
    }
}

fn is_gone(error: &StoreError) -> bool {
    match error {
        StoreError::Medium(error) | StoreError::Failed(error) | StoreError::NotApplied(error) => {
            matches!(error, MediumError::Gone { .. })
        }
        StoreError::LaneRefused { cause, .. } | StoreError::Part { cause, .. } => is_gone(cause),
        StoreError::Truncated { .. } => true,
        _ => false,
    }
}
