//! Commits of blocks that a compiler made: another library has the memory of words in which they meet, and tells of them here.

use super::attached::Attached;
use crate::error::{Cause, Result};
use indelible_store::error::StoreError;
use indelible_store::store::ChangedLine;
use std::sync::Arc;

/// A line of an object, and its bytes as they are after the commit.
pub(crate) struct BlockLine<'a> {
    pub(crate) object: &'a Attached,
    pub(crate) offset: u64,
    pub(crate) bytes: [u8; 64],
}

/// Bytes that the log is short of for a commit that changes lines at these offsets: 0 if it has room.
pub(crate) fn shortage(lines: &[(&Attached, u64)]) -> u64 {
    let places: Vec<_> = lines.iter().map(|(object, offset)| (object.slot(), *offset)).collect();
    lines.first().map_or(0, |(first, _)| first.space.commits().shortage(places.len(), || places.into_iter()))
}

/// Tells of a commit, while nobody else can change its lines.
///
/// # Errors
/// `DifferentPools`; `Poisoned`: it is not told.
pub(crate) fn tell(lines: &[BlockLine<'_>]) -> Result<()> {
    let Some(BlockLine { object: first, .. }) = lines.first() else { return Ok(()) };
    let failed = |cause: Cause| first.error("commit a block on", cause);
    first.pool.alive().map_err(failed)?;
    if lines.iter().any(|line| !Arc::ptr_eq(&line.object.space, &first.space)) {
        return Err(failed(StoreError::DifferentPools.into()));
    }
    let changed = |line: &BlockLine<'_>| ChangedLine {
        object: line.object.slot(),
        offset: line.offset,
        bytes: line.bytes,
    };
    first.space.tell(lines.iter().map(changed).collect()).map_err(|error| failed(error.into()))
}

impl Attached {
    /// Gives the log room for a commit of so many bytes.
    ///
    /// # Errors
    /// `NoRoom`, `Busy`.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<()> {
        self.space.commits().make_room(bytes).map_err(|error| self.error("commit a block on", error))
    }
}
