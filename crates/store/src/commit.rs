//! The commit point. This is the only file that publishes a batch, and `tests/layers.rs` of the
//! workspace holds it to that.
//!
//! Why a commit is atomic, case by case. Power fails
//!
//! - before the durable write begins: the lane ends where it ended; nothing happened;
//! - during it: any subset of its units is on the medium. Either all of the batch is there, and it
//!   happened; or some byte of it is not, one of the two checksums fails, and the lane ends before
//!   it. Bytes of an earlier lap in the holes do not help it pass: they carry another generation, and
//!   a header of this generation and sequence is written here only once, or again after the attempt
//!   before was reported as failed;
//! - after it: the batch is found, and replayed until a checkpoint voids the generation.
//!
//! The batch is applied to the primary only after the durable write returned. Until then no byte of
//! the primary changed, so that a batch that did not happen leaves nothing behind.

use crate::error::Result;
use crate::lane::{Batch, LaneLog};
use crate::medium::{Medium, MediumError};
use crate::mutant::Mutant;

/// Makes sealed batches durable, in order, at the end of the lane: with one durable write.
///
/// The batches must fit. After an error `log` is unchanged; unless the error is `NoSpace`, the lane
/// must not be used again before it was recovered.
pub fn publish(medium: &dyn Medium, seed: u64, log: &mut LaneLog, batches: &mut [Batch]) -> Result<()> {
    let mut after = *log;
    let mut joined = Vec::new();
    let single = batches.len() == 1;
    for (place, batch) in (0..).zip(batches.iter_mut()) {
        debug_assert!(after.fits(batch.len()));
        let bytes = batch.stamp(seed, after.generation, after.sequence, place);
        if Mutant::NotDurable.is_on() {
            medium.write(log.offset + after.tail, bytes)?;
        } else if single {
            medium.write_durable(log.position(), bytes)?;
        } else {
            joined.extend_from_slice(bytes);
        }
        after.tail += batch.len();
        after.sequence += 1;
    }
    if !joined.is_empty() {
        medium.write_durable(log.position(), &joined)?;
    }
    *log = after;
    Ok(())
}

/// Brings a published batch into the places it redoes. Not durable: the lane still has it.
///
/// An error does not undo the commit, so that it is never `NoSpace`, which would say that nothing
/// happened.
pub fn apply(medium: &dyn Medium, batch: &Batch) -> Result<()> {
    for (target, bytes) in batch.redo() {
        medium.write(target, bytes).map_err(MediumError::settled)?;
    }
    Ok(())
}
