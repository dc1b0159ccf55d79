//! What lies behind the end of a lane.

use super::LaneLog;
use crate::error::Result;
use crate::format::LINE;
use crate::format::batch::{Header, MAGIC};
use crate::medium::Medium;
use zerocopy::FromBytes;

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;

/// The sequence of a batch of the lane's generation that comes after the end of the log, if there is
/// one. Where batches are made durable one by one, that proves that the batch at the end, which does
/// not verify, was whole once: it is damaged, and not a commit that was cut short.
pub fn beyond(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<Option<u64>> {
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
                return Ok(Some(sequence));
            }
        }
        at += piece.len() as u64;
    }
    Ok(None)
}
