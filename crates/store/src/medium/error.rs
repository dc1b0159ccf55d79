//! Errors of a medium. The type of an error tells the possible effects:
//!
//! - [`MediumError`]: a read, a lock or a look failed. Nothing on the medium changed.
//! - [`ReserveError::NoSpace`]: there was no space to claim, and nothing happened. Only a
//!   reservation returns it.
//! - [`Fatal`]: a change failed, or a barrier. How much of it took place is unknown, and so is
//!   whether earlier writes to the same file are durable.

use std::io;

/// Fate of a file that holds another pool now.
pub const FORMATTED: &str = "formatted anew";

/// Why a medium could not be accessed.
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
    /// The file under the medium was truncated, unlinked or replaced while in use.
    #[error("the pool's file was {what} while in use")]
    Gone {
        /// "truncated", "deleted", [`FORMATTED`].
        what: &'static str,
    },
    /// The medium was opened for reading only.
    #[error("the medium is read-only")]
    ReadOnly,
    /// The file system keeps no locks that die with their holder.
    #[error("the file system does not support open-file-description locks")]
    NoLocks,
    /// An earlier change of the medium failed. This one was not begun.
    #[error("an earlier write to the medium failed")]
    Faulted,
    /// Any other failure of the operating system. "No space" of a write is one: the system may have
    /// accepted the bytes long before.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A change of the medium that failed.
///
/// Linux reports a failed write-back once for each open file, to the next call that asks for
/// durability, and marks the pages clean although they may be lost. So this concerns every
/// process's writes to the file since the last barrier that succeeded, and trying again proves
/// nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Fatal(#[from] pub MediumError);

impl From<io::Error> for Fatal {
    fn from(error: io::Error) -> Self {
        Fatal(MediumError::Io(error))
    }
}

/// Why space could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// There is not enough of it. Nothing happened; the call may be made again.
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
