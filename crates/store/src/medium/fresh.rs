//! First writes to space whose later writes must be durable: a failed write may leave pages that
//! lose writes until they are zeroed (exception 7 of the module above).

use super::{Fatal, Medium, MediumError, ReserveError};
use crate::mutant::Mutant;
use std::io;

const PIECE: u64 = 1 << 20;

/// Makes unused space with `used` bytes ever published read as zeros after a barrier; all of it if
/// the medium reserves blocks.
pub fn clear_fresh(medium: &dyn Medium, offset: u64, len: u64, used: u64) -> Result<(), Fatal> {
    let all = medium.capabilities().reserves_blocks && !Mutant::SpaceUnproven.is_on();
    match if all { len } else { used } {
        0 => Ok(()),
        cleared => medium.zero(offset, cleared),
    }
}

/// Writes zeros to unused space, for durable later writes. A medium that reserves no blocks is only
/// prepared, and cleared in its first `used` bytes.
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

/// Makes the rest of a partly used page read as zeros, durably; leaves unwritten blocks alone.
pub fn clear_rest(medium: &dyn Medium, offset: u64, len: u64) -> Result<(), ReserveError> {
    let unwritten = if Mutant::SpaceUnproven.is_on() { vec![] } else { medium.unwritten(offset, len)? };
    let mut at = offset;
    for hole in unwritten.into_iter().chain(std::iter::once(offset + len..offset + len)) {
        if at < hole.start {
            medium.reserve(at, hole.start - at)?;
            medium.write_durable(at, &vec![0; (hole.start - at) as usize])?;
        }
        at = hole.end;
    }
    Ok(())
}

/// Writes `bytes` to unused space, durably.
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

/// Lost redo beside a writer.
pub(crate) fn not_kept_beside(offset: u64) -> Fatal {
    let what = format!(
        "the file system does not keep what is written at {offset} since a write there failed; that is mended once no process has the \
         object for writing and one attaches it: have its writer attach it anew, which its next psync, or checkpoint, asks for, too"
    );
    Fatal(MediumError::Io(io::Error::other(what)))
}

pub(crate) fn not_kept(offset: u64) -> Fatal {
    let what =
        format!("the file system does not keep what is written at {offset}, although it reports success");
    Fatal(MediumError::Io(io::Error::other(what)))
}
