//! Errors of a medium. The type tells the effects:
//!
//! - [`MediumError`]: a read, a lock or an inspection failed. Nothing on the medium changed.
//! - [`ReserveError::NoSpace`]: a reservation found no space. Nothing happened.
//! - [`Fatal`]: a change or a barrier failed. Its effect is unknown, and so is the durability of
//!   earlier writes to the file.

use std::io;

/// `what` of [`MediumError::Gone`]: the file holds another pool now.
pub const FORMATTED: &str = "formatted anew";

/// Failed access to a medium.
#[derive(Debug, thiserror::Error)]
pub enum MediumError {
    /// The access lies beyond the end of the medium.
    #[error("access to {len} bytes at {offset} lies beyond the medium's {size} bytes")]
    OutOfBounds {
        /// First byte of the access.
        offset: u64,
        /// Length of the access in bytes.
        len: u64,
        /// Length of the medium in bytes.
        size: u64,
    },
    /// The file was truncated, unlinked or replaced while in use.
    #[error("the pool's file was {what} while in use")]
    Gone {
        /// "truncated", "deleted", [`FORMATTED`].
        what: &'static str,
    },
    /// The medium was opened for reading only.
    #[error("the medium is read-only")]
    ReadOnly,
    /// The file system has no locks that end with their holder.
    #[error("the file system does not support open-file-description locks")]
    NoLocks,
    /// An earlier change failed; this one was not begun.
    #[error("an earlier write to the medium failed")]
    Faulted,
    /// Another error of the system, "no space" of a write included.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A failed change.
///
/// Linux reports a failed write-back once per open file, and marks the pages clean though they may
/// be lost. So it concerns all writes since the last successful barrier, and a second attempt
/// proves nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Fatal(#[from] pub MediumError);

impl From<io::Error> for Fatal {
    fn from(error: io::Error) -> Self {
        Fatal(MediumError::Io(error))
    }
}

/// Failed reservation.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// No space. Nothing happened; the call may be repeated.
    #[error("no space left on the medium")]
    NoSpace,
    /// The medium failed.
    #[error(transparent)]
    Fatal(#[from] Fatal),
}

impl From<MediumError> for ReserveError {
    fn from(error: MediumError) -> Self {
        ReserveError::Fatal(Fatal(error))
    }
}
