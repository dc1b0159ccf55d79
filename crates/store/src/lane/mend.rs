//! One wrong bit in a batch.
//!
//! If a checksum of 64 bits fits after one bit was changed, the writer certainly meant those bytes.
//! Then it does not matter whether the batch had been durable and a bit of it went wrong, or its
//! commit was cut short and left all but that bit: a commit that was under way may count as done.

use super::{LaneLog, scan};
use crate::error::Result;
use crate::format::batch::Header;
use crate::format::{LINE, checksum};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use zerocopy::IntoBytes;

/// Bytes of a body whose bits are tried: the work grows with the square.
const LONGEST: u64 = 2048;

/// Puts one wrong bit right in each batch of the lane, from `start` on, that needs it and is short
/// enough. Returns where those batches begin. The caller has the lane.
pub fn mend(medium: &dyn Medium, seed: u64, start: &LaneLog) -> Result<Vec<u64>> {
    let (mut log, mut mended) = (*start, Vec::new());
    loop {
        scan(medium, seed, &mut log, &mut |_| Ok(()))?;
        // Once at each place: a medium that rots while it is read must not keep this going.
        if mended.last() == Some(&log.position()) || !mend_next(medium, seed, &log)? {
            return Ok(mended);
        }
        mended.push(log.position());
    }
}

/// Writes the batch at the end of `log` again if one wrong bit is all that keeps it from verifying.
/// Returns whether it did.
fn mend_next(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<bool> {
    if !log.fits(LINE) || Mutant::BitIgnored.is_on() {
        return Ok(false);
    }
    let (at, room) = (log.position(), log.len - log.tail);
    let mut header: Header = read_struct(medium, at)?;
    let fits = |header: &Header| header.verify(seed, log.generation, log.sequence, room);
    if fits(&header) {
        let len = header.len.get() - LINE;
        if len > LONGEST {
            return Ok(false);
        }
        let mut body = vec![0; len as usize];
        medium.read(at + LINE, &mut body)?;
        let sum = header.body_sum.get();
        let Some(byte) = wrong_bit(&mut body, |body| checksum(seed, &[body]) == sum) else {
            return Ok(false);
        };
        let line = byte / LINE as usize * LINE as usize;
        medium.write_durable(at + LINE + line as u64, &body[line..line + LINE as usize])?;
        return Ok(true);
    }
    let mut bytes = [0; LINE as usize];
    bytes.copy_from_slice(header.as_bytes());
    let found = wrong_bit(&mut bytes, |bytes| {
        header.as_mut_bytes().copy_from_slice(bytes);
        fits(&header)
    });
    if found.is_none() {
        return Ok(false);
    }
    medium.write_durable(at, &bytes)?;
    Ok(true)
}

/// Changes the one bit that makes `bytes` verify, and returns which byte it is in.
pub(crate) fn wrong_bit(bytes: &mut [u8], mut verifies: impl FnMut(&[u8]) -> bool) -> Option<usize> {
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            if verifies(bytes) {
                return Some(at);
            }
            bytes[at] ^= 1 << bit;
        }
    }
    None
}
