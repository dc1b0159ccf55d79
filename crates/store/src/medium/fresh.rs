//! First writes to space, also to space that had an earlier user.
//!
//! A write that failed, perhaps in a process that is gone, may have left pages that take no write
//! any more, although every barrier succeeds, until they are zeroed (see the module above, 7). A
//! caller that begins to use space, and goes on to write there what must be durable, makes its
//! first write by these functions.

use super::{Fatal, Medium, MediumError, ReserveError};
use crate::mutant::Mutant;
use std::io;

/// Bytes written at a time.
const PIECE: u64 = 1 << 20;

/// Makes unused space read as zeros, after a barrier also for good. Only its first `used` bytes
/// were ever published.
///
/// If the medium reserves blocks, the rest is zeroed too: a process that failed, and published
/// nothing, may have written there.
///
/// # Errors
/// Those of [`Medium::zero`].
pub fn clear_fresh(medium: &dyn Medium, offset: u64, len: u64, used: u64) -> Result<(), Fatal> {
    let all = medium.capabilities().reserves_blocks && !Mutant::SpaceUnproven.is_on();
    match if all { len } else { used } {
        0 => Ok(()),
        cleared => medium.zero(offset, cleared),
    }
}

/// Writes zeros to unused space: after a barrier, later writes find blocks that were written. Only
/// the first `used` bytes must be zeros on a medium without such blocks, which is only cleared and
/// prepared.
///
/// # Errors
/// Those of [`clear_fresh`], of [`Medium::prepare`] and of [`Medium::write`].
pub fn zero_fresh(medium: &dyn Medium, offset: u64, len: u64, used: u64) -> Result<(), ReserveError> {
    clear_fresh(medium, offset, len, used)?;
    medium.prepare(offset, len)?;
    if !medium.capabilities().reserves_blocks {
        return Ok(());
    }
    let zeros = vec![0; PIECE.min(len) as usize];
    let (mut at, end) = (offset, offset + len);
    while at < end && !Mutant::FirstWriteLeft.is_on() {
        let piece = PIECE.min(end - at);
        medium.write(at, &zeros[..piece as usize])?;
        at += piece;
    }
    Ok(())
}

/// Makes the rest of a page, whose first bytes are in use, read as zeros, durably.
///
/// Blocks that were never written are left alone. They read as zeros; if a first write failed
/// there, every later writer to the page would meet the failure, as the page is never zeroed again.
///
/// # Errors
/// Those of [`Medium::unwritten`], of [`Medium::reserve`] and of [`Medium::write_durable`].
pub fn clear_rest(medium: &dyn Medium, offset: u64, len: u64) -> Result<(), ReserveError> {
    let unwritten = if Mutant::SpaceUnproven.is_on() { vec![] } else { medium.unwritten(offset, len)? };
    let mut at = offset;
    for hole in unwritten.into_iter().chain(std::iter::once(offset + len..offset + len)) {
        if at < hole.start {
            // The last page of a sparse object may have no block yet.
            medium.reserve(at, hole.start - at)?;
            medium.write_durable(at, &vec![0; (hole.start - at) as usize])?;
        }
        at = hole.end;
    }
    Ok(())
}

/// Writes `bytes` to unused space, durably.
///
/// # Errors
/// Those of [`Medium::reserve`] and of [`Medium::write_durable`].
pub fn write_fresh(medium: &dyn Medium, offset: u64, bytes: &[u8]) -> Result<(), ReserveError> {
    let len = bytes.len() as u64;
    medium.reserve(offset, len)?;
    medium.write_durable(offset, bytes)?;
    if Mutant::SpaceUnproven.is_on() || medium.unwritten(offset, len)?.is_empty() {
        return Ok(());
    }
    medium.zero(offset, len)?;
    medium.reserve(offset, len)?;
    medium.write_durable(offset, bytes)?;
    if medium.unwritten(offset, len)?.is_empty() { Ok(()) } else { Err(not_kept(offset).into()) }
}

/// The error for bytes that were redone beside the object's writer, and are lost: zeroing the
/// blocks would show it zeros.
pub(crate) fn not_kept_beside(offset: u64) -> Fatal {
    let what = format!(
        "the file system does not keep what is written at {offset} since a write there failed; that is mended once no process has the \
         object for writing and one attaches it: have its writer attach it anew, which its next psync, or checkpoint, asks for, too"
    );
    Fatal(MediumError::Io(io::Error::other(what)))
}

/// The error for a write that was made anew, and is lost again.
pub(crate) fn not_kept(offset: u64) -> Fatal {
    let what =
        format!("the file system does not keep what is written at {offset}, although it reports success");
    Fatal(MediumError::Io(io::Error::other(what)))
}
