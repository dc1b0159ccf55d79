//! Commits in memory that outlives the process (docs/decisions/0052-on-demand.md): the memory of
//! on-demand objects, the logs of their transactions, and recovery of a dead process's commits.
//!
//! A process's memory for a pool is a [`Group`] of shared backings with one number: a head, one per
//! object, one log per thread. Objects' entries have the number while the pool lacks commits, so
//! that all objects of the group are recovered together.
//!
//! Invariants:
//! 1. The words of a mapping are accessed as atomics alone, here and by transactions, and by the
//!    process that has the backing's lock.
//! 2. A backing exists before an entry in the pool, or the head, names it, and as long as it does.
//! 3. A valid log has all lines of a commit that may be in memory in part; two valid logs have no
//!    line in common.

mod area;
mod figures;
mod group;
mod log;
mod look;
mod place;
mod recovery;

pub(crate) use area::{Area, Counter, Words};
pub(crate) use figures::now;
pub(crate) use group::Group;
pub(crate) use log::{Log, Logged};
pub(crate) use look::look;
pub(crate) use place::MemoryLocation;
pub(crate) use recovery::{recover, remove_leftovers, remove_of_deleted};

use crate::backing::BackingError;
use indelible_store::error::StoreError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error(transparent)]
    Backing(#[from] BackingError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "commits that a process which is gone left in memory {number:016x} are not to be found: {what} is missing in {}",
        memory.display()
    )]
    Lost { number: u64, what: String, memory: std::path::PathBuf },
    #[error("the log of commits that a process which is gone left in memory {number:016x} is damaged: {why}")]
    Damaged { number: u64, why: &'static str },
}
