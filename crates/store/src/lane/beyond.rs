//! What lies at the end of a lane, and behind it.

use super::LaneLog;
use crate::error::Result;
use crate::format::LINE;
use crate::format::batch::{Header, MAGIC};
use crate::medium::{Medium, read_struct};
use zerocopy::FromBytes;

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;

/// A batch of the lane's generation that lies behind the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// Its number.
    pub sequence: u64,
    /// Whether it was written after the batch at the end, which does not verify, had become durable: that
    /// one is damaged, and not a commit that was cut short.
    pub proves_damage: bool,
}

/// A batch behind the end of the log, if there is one; one that proves damage before any other.
pub fn beyond(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<Option<Later>> {
    let mut found = None;
    let end = log.offset + log.len;
    let mut at = log.position() + LINE;
    let mut piece = Vec::new();
    while at < end {
        piece.resize((end - at).min(PIECE) as usize, 0);
        medium.read(at, &mut piece)?;
        for (index, line) in piece.chunks_exact(LINE as usize).enumerate() {
            if line[..4] != MAGIC.to_le_bytes() {
                continue;
            }
            let Ok(header) = Header::read_from_bytes(line) else { continue };
            let (sequence, room) = (header.sequence.get(), end - at - index as u64 * LINE);
            if sequence > log.sequence && header.verify(seed, log.generation, sequence, room) {
                let proves_damage = sequence - log.sequence > header.joined.get().into();
                let later = Later { sequence, proves_damage };
                if proves_damage {
                    return Ok(Some(later));
                }
                found = found.or(Some(later));
            }
        }
        at += piece.len() as u64;
    }
    Ok(found)
}

/// Whether a batch of this generation was begun at the end of the log and is not whole: a commit cut short,
/// or, which nobody can tell from that, the last one, damaged. An intact header of an earlier generation
/// may lie there too, and says nothing.
pub fn broken(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<bool> {
    if !log.fits(LINE) {
        return Ok(false);
    }
    let found: Header = read_struct(medium, log.position())?;
    let is_intact = found.head_sum.get() == found.sum(seed);
    let signs = [
        found.magic.get() == MAGIC,
        found.generation.get() == log.generation,
        found.sequence.get() == log.sequence,
    ];
    let fitting = signs.iter().filter(|sign| **sign).count();
    Ok(fitting == signs.len() || (fitting == 2 && !is_intact && log.sequence > 0))
}
