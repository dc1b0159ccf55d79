//! The commit point: the only file that publishes a batch, which `xtask/tests/tidy` checks.
//!
//! A commit is atomic. If power fails
//!
//! - before the durable write, the lane ends where it ended;
//! - during it, any subset of its units is on the medium. If a byte is missing, a checksum fails
//!   and the lane ends before the batch. Bytes of an earlier lap carry another generation;
//! - after it, replay finds the batch until a checkpoint voids the generation.
//!
//! In memory, a large batch is written in pieces, header last, and one barrier replaces the durable
//! write.
//!
//! Before the write, the commit asks for failed write-backs: lost pages read as older bytes.
//!
//! The primary changes only after the durable write returned.

use crate::error::Result;
use crate::format::{Checksum, LINE};
use crate::lane::{Batch, BatchSource, LaneLog, pointer};
use crate::medium::{Fatal, Medium, write_fresh};
use crate::mutant::Mutant;

/// Makes sealed batches, which must fit, durable at the end of the lane, in order, with one durable
/// write. After an error `log` is unchanged, and the lane needs recovery.
pub fn publish(medium: &dyn Medium, seed: u64, log: &mut LaneLog, batches: &mut [Batch]) -> Result<()> {
    expect_readings(medium)?;
    // Rule L2 of docs/protocol.md.
    let mut after = *log;
    let mut joined = Vec::new();
    let single = batches.len() == 1;
    for batch in batches.iter_mut() {
        debug_assert!(after.fits(batch.len()));
        // Only earlier ones are durable.
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

/// Publishes one batch with borrowed lines; returns where its lines begin.
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

/// Publishes a batch of the table by an image at `place`, in free space, and a batch that points to
/// it. The caller applies it, and checkpoints the lane before it uses free space.
///
/// # Errors
/// Without `Failed`, nothing happened.
pub fn publish_spilled(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    image: &mut Batch,
    place: u64,
) -> Result<()> {
    // The image is durable before any process can meet it.
    let bytes = image.stamp(seed, log.generation, log.sequence, log.sequence);
    if Mutant::SpillUnproven.is_on() {
        medium.reserve(place, bytes.len() as u64)?;
        medium.write(place, bytes)?;
    } else {
        write_fresh(medium, place, bytes)?;
    }
    publish(medium, seed, log, std::slice::from_mut(&mut pointer(seed, place, image)))
}

/// Fails if bytes that the diff read may be lost.
pub(crate) fn expect_readings(medium: &dyn Medium) -> Result<()> {
    match Mutant::ReadingsTrusted.is_on() {
        true => Ok(()),
        false => Ok(medium.check_writeback()?),
    }
}

/// Writes a published batch to its targets, not durably. An error does not undo the commit.
pub fn apply(medium: &dyn Medium, batch: &Batch) -> Result<()> {
    for (target, bytes) in batch.redo() {
        medium.write(target, bytes)?;
    }
    Ok(())
}

/// Applies a batch with borrowed lines at `lines`, read from the lane because the source may have
/// changed.
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
