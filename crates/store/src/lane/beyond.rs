//! What lies at the end of a lane, and behind it.

use super::LaneLog;
use crate::error::Result;
use crate::format::LINE;
use crate::format::batch::{Header, MAGIC};
use crate::medium::{Medium, read_struct};
use zerocopy::FromBytes;

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;
/// Bytes behind the end of a log that are looked at, of a short one and of any.
const NEAR: u64 = 64 << 10;
const FAR: u64 = 1 << 20;

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
    within(medium, seed, log, log.len)
}

/// Whether the log ends with damage, as far as that is known at the cost of reading the log: where a batch
/// was begun, everything behind it is searched; where none is to be seen, as much as the log has, and a megabyte
/// at most.
pub fn ends_damaged(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<bool> {
    let reach = if broken(medium, seed, log)? { log.len } else { log.used().clamp(NEAR, FAR) };
    Ok(within(medium, seed, log, reach)?.is_some_and(|later| later.proves_damage))
}

/// As [`beyond`], in the next `reach` bytes.
fn within(medium: &dyn Medium, seed: u64, log: &LaneLog, reach: u64) -> Result<Option<Later>> {
    let mut found = None;
    let end = (log.offset + log.len).min(log.position().saturating_add(reach));
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
            let room = log.offset + log.len - at - index as u64 * LINE;
            let sequence = header.sequence.get();
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
