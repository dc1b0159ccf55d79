//! The commit point. This is the only file that publishes a batch; `xtask/tests/tidy` checks that.
//!
//! Why a commit is atomic, case by case. Power fails
//!
//! - before the durable write begins: the lane ends where it ended; nothing happened;
//! - during it: any subset of its units is on the medium. Either all of the batch is there, and it
//!   happened; or some byte of it is not, one of the two checksums fails, and the lane ends before
//!   it. Bytes of an earlier lap in the holes do not help it pass: they carry another generation,
//!   and a header of this generation and sequence is written here only once, or again after the
//!   attempt before was reported as failed;
//! - after it: the batch is found, and replayed until a checkpoint voids the generation.
//!
//! A large batch of a medium that is memory is written in pieces, its header last, and one barrier
//! after all of it takes the place of the durable write: until it returned, any subset may be on
//! the medium, as above.
//!
//! Before anything is written, the system is asked whether it failed to write pages back: lines of
//! the batch that were read from such pages may be older than the last psync, and a batch whose
//! durable write reports the failure is on the medium all the same, for recovery to redo.
//!
//! The batch is applied to the primary only after the durable write returned. Until then no byte of
//! the primary changed, so that a batch that did not happen leaves nothing behind.

use crate::error::Result;
use crate::format::{Checksum, LINE};
use crate::lane::{Batch, BatchSource, LaneLog};
use crate::medium::{Fatal, Medium};
use crate::mutant::Mutant;

/// Makes sealed batches durable, in order, at the end of the lane: with one durable write.
///
/// The batches must fit. After an error `log` is unchanged, and the lane must not be used again
/// before it was recovered.
pub fn publish(medium: &dyn Medium, seed: u64, log: &mut LaneLog, batches: &mut [Batch]) -> Result<()> {
    expect_readings(medium)?;
    // Rule L2 of docs/protocol.md: the caller acknowledges once this returns.
    let mut after = *log;
    let mut joined = Vec::new();
    let single = batches.len() == 1;
    for batch in batches.iter_mut() {
        debug_assert!(after.fits(batch.len()));
        // All that was published before is durable; what goes with this write is not yet.
        let durable = if Mutant::WatermarkAhead.is_on() { after.sequence } else { log.sequence };
        let bytes = batch.stamp(seed, after.generation, after.sequence, durable);
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

/// As [`publish`], of one batch whose lines are borrowed. Returns where its lines begin.
pub fn publish_borrowed(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    batch: &mut Batch,
    source: &dyn BatchSource,
) -> Result<u64> {
    debug_assert!(log.fits(batch.len()));
    let lines = log.position() + LINE;
    let mut sum = Checksum::new(seed);
    let mut at = lines;
    let most = medium.transfers().append();
    let mut piece = vec![0; most as usize];
    let mut filled = 0;
    let mut write = |bytes: &[u8]| {
        sum.add(bytes);
        medium.stream(at, bytes)?;
        at += bytes.len() as u64;
        Ok::<(), Fatal>(())
    };
    for (target, lines) in batch.pieces(0..batch.count(), most / LINE) {
        let len = (lines * LINE) as usize;
        if filled + len > piece.len() {
            write(&piece[..filled])?;
            filled = 0;
        }
        source.copy(target, &mut piece[filled..filled + len]);
        filled += len;
    }
    write(&piece[..filled])?;
    write(batch.tail())?;
    batch.set_body_sum(sum.get());
    expect_readings(medium)?;
    let bytes = batch.stamp(seed, log.generation, log.sequence, log.sequence);
    medium.write(log.position(), &bytes[..LINE as usize])?;
    if Mutant::ApplyPiecesFirst.is_on() {
        let _ = apply_borrowed(medium, batch, lines, source);
    }
    if !Mutant::PiecesNotDurable.is_on() {
        medium.barrier()?;
    }
    log.tail += batch.len();
    log.sequence += 1;
    Ok(lines)
}

/// Fails if the system may have lost bytes that were read for the batch, or found equal.
pub(crate) fn expect_readings(medium: &dyn Medium) -> Result<()> {
    match Mutant::ReadingsTrusted.is_on() {
        true => Ok(()),
        false => Ok(medium.check_writeback()?),
    }
}

/// Brings a published batch into the places it redoes. Not durable: the lane still has it.
///
/// An error does not undo the commit.
pub fn apply(medium: &dyn Medium, batch: &Batch) -> Result<()> {
    for (target, bytes) in batch.redo() {
        medium.write(target, bytes)?;
    }
    Ok(())
}

/// As [`apply`], of a batch with borrowed lines, which begin at `lines`. The lane's bytes count,
/// not the source's, which may have changed by now: otherwise the primary would have a store that
/// the lane lacks, and a later psync would find no difference and not log it.
pub fn apply_borrowed(
    medium: &dyn Medium,
    batch: &Batch,
    lines: u64,
    source: &dyn BatchSource,
) -> Result<()> {
    let most = medium.transfers().append();
    let done = source.share(batch.count(), &|range| {
        let mut piece = vec![0; most as usize];
        let mut from = lines + range.start * LINE;
        for (target, count) in batch.pieces(range, most / LINE) {
            let bytes = &mut piece[..(count * LINE) as usize];
            medium.read(from, bytes)?;
            medium.stream(target, bytes)?;
            from += count * LINE;
        }
        Ok(())
    });
    Ok(done?)
}
