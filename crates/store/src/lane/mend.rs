//! Repair of one wrong bit in a batch, confirmed by a 64-bit checksum.

use super::{LaneLog, scan};
use crate::error::Result;
use crate::format::batch::Header;
use crate::format::{LINE, checksum};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use zerocopy::IntoBytes;

/// The work is quadratic.
const LONGEST: u64 = 2048;

/// Corrects one wrong bit in each short invalid batch from `start` on; returns their offsets. The
/// caller has the lane.
pub fn mend(medium: &dyn Medium, seed: u64, start: &LaneLog) -> Result<Vec<u64>> {
    let (mut log, mut mended) = (*start, Vec::new());
    loop {
        scan(medium, seed, &mut log, &mut |_| Ok(()))?;
        if mended.last() == Some(&log.position()) || !mend_next(medium, seed, &log)? {
            return Ok(mended);
        }
        mended.push(log.position());
    }
}

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

/// Flips the bit that makes `bytes` verify; returns its byte.
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
