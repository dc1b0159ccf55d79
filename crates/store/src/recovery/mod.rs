//! Recovery: replays lanes.
//!
//! Replaying is redo of whole lines in the order of commits, so doing it twice, or starting again
//! after dying half-way, ends in the same bytes. Nothing is voided before the replayed lines are
//! durable.
//!
//! A lane is judged whole ([`judge`]) before anything of it is redone: a batch that is damaged, or
//! an object whose entry cannot be read, refuses the lane. Nothing is voided then, so that nothing
//! is lost: a failing read may succeed the next time, and repair can do more.
//!
//! Batches found in a lane are visible, which is less than durable: their writer may have died, or
//! failed, between the two. They are made durable (`LaneLog::confirm`) before any of them is
//! redone; otherwise a power cut could keep a part of the redo and lose the batch.
//!
//! A barrier alone does not prove that redone bytes are durable: the lane's writer, or an earlier
//! recovery, may have failed to write the same blocks (`redo`).
//!
//! Primaries may go back for a moment, where a lane has more than is combined at once. No reader
//! sees them before the whole lane was replayed.

mod judge;
mod progress;
mod redo;
mod table;

use judge::judge_from;
pub use judge::{Judgement, LaneView, Waiting, judge};
pub use progress::{Standing, clear, clear_left, put_progress, put_progress_at};
pub use table::catch_up;
pub(crate) use table::redo_table;

use crate::error::{Result, StoreError};
use crate::format::lane::Directory;
use crate::lane::{LaneLog, Search, mend};
use crate::medium::Medium;
use crate::space::TableTransaction;
use redo::Redo;

/// Result of recovering a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Batches found.
    pub batches: u64,
    /// Bytes of lane read.
    pub lane_bytes: u64,
    /// Objects that had something to recover.
    pub objects: u64,
    /// Bytes written to primaries.
    pub bytes: u64,
}

/// Replays the lane that `directory` describes into the objects bound to it and makes that durable.
/// The caller holds the table and the lane, and voids the lane afterwards.
///
/// The lane is read four times: to put single wrong bits right, to be judged, to be judged again
/// once it is durable, and to be redone. Memory: that of `WriteCombiner`, 64 MiB at most, that of
/// `scan`, and 1 KiB for each object in the lane.
///
/// # Errors
/// `LaneRefused`: nothing was written. Others are the medium's, which failed a write.
pub fn replay(
    table: &TableTransaction<'_>,
    lane: u32,
    directory: &Directory,
) -> Result<(LaneLog, Recovered)> {
    let (medium, seed) = (table.pages().medium(), table.seed());
    mend_lane(medium, seed, directory).map_err(|cause| refused(lane, cause))?;
    let judged = || judge(&LaneView::of(table), lane, directory, Search::Near).and_then(Judgement::accepted);
    let mut found = judged().map_err(|cause| refused(lane, cause))?;
    // An empty lane's generation is confirmed by the directory, into which the caller enters the
    // next.
    if found.end.sequence > 0 {
        found.end.confirm(medium, seed, found.start.position())?;
        // After a failed write, pages that were seen may be gone: the present bytes count.
        found = judged().map_err(|cause| refused(lane, cause))?;
    }
    redo(table, lane, directory, &found, false)
}

/// As [`replay`], of a lane that a process has, which is held still, and goes on with the lane as
/// it is afterwards. No byte of a primary goes back to an earlier psync meanwhile, as that process
/// may see it. `redone`: the end of the lane when this process replayed it before.
///
/// The lane is read twice, from there on; only batches that no later one says to be durable are
/// made durable first. Memory: that of `WriteCombiner` for all of the lane.
///
/// # Errors
/// As for [`replay`]; `Failed`: blocks that the system lost, which only recovery mends.
pub fn replay_beside(
    table: &TableTransaction<'_>,
    lane: u32,
    directory: &Directory,
    redone: Option<LaneLog>,
) -> Result<(LaneLog, Recovered)> {
    let (medium, seed) = (table.pages().medium(), table.seed());
    let view = LaneView::of(table);
    let (offset, len) = (directory.offset.get(), directory.len.get());
    let start = LaneLog::read(medium, seed, offset, len, directory.generation.get())
        .map_err(|cause| refused(lane, cause))?;
    let start = redone.filter(|redone| redone.is_of_generation(&start)).unwrap_or(start);
    let judged = |from| {
        let judged = judge_from(&view, lane, directory, Search::Near, from).and_then(Judgement::accepted);
        judged.map_err(|cause| refused(lane, cause))
    };
    let mut judgement = judged(start);
    // A single wrong bit may be all that is wrong with the batch at which it ends.
    let end = judgement.as_ref().map_or(start, |found| found.end);
    if !mend(medium, seed, &end).map_err(|cause| refused(lane, cause))?.is_empty() {
        judgement = judged(start);
    }
    let mut found = judgement?;
    if found.durable != found.end {
        found.end.confirm(medium, seed, found.durable.position())?;
        if judged(found.durable)?.end != found.end {
            found = judged(start)?;
        }
    }
    redo(table, lane, directory, &found, true)
}

fn refused(lane: u32, cause: StoreError) -> StoreError {
    match cause {
        // A write failed: that is no judgement.
        StoreError::Failed(_) => cause,
        cause => StoreError::LaneRefused { lane, cause: Box::new(cause) },
    }
}

fn redo(
    table: &TableTransaction<'_>,
    lane: u32,
    directory: &Directory,
    found: &Judgement,
    seen: bool,
) -> Result<(LaneLog, Recovered)> {
    let Judgement { start, end, objects, .. } = found;
    let (medium, seed) = (table.pages().medium(), table.seed());
    let redo = Redo { medium, seed, directory, start: *start, end: *end, objects, seen };
    let bytes = redo.make_durable().map_err(|cause| match cause {
        cause @ StoreError::Damaged { .. } => refused(lane, cause),
        cause => cause,
    })?;
    let (batches, lane_bytes) = (end.sequence - start.sequence, end.tail - start.tail);
    Ok((*end, Recovered { batches, lane_bytes, objects: objects.len() as u64, bytes }))
}

/// Puts single wrong bits of the lane's batches right; returns where.
pub(crate) fn mend_lane(medium: &dyn Medium, seed: u64, directory: &Directory) -> Result<Vec<u64>> {
    let (offset, len) = (directory.offset.get(), directory.len.get());
    mend(medium, seed, &LaneLog::read(medium, seed, offset, len, directory.generation.get())?)
}
