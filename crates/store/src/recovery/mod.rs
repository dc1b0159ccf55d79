//! Recovery: replays lanes.
//!
//! Replay redoes whole lines in order and voids nothing before they are durable. It first judges
//! the whole lane ([`judge`]): a damaged batch or an unreadable entry refuses it without loss.
//!
//! Visible batches become durable (`LaneLog::confirm`) before the redo: otherwise a power cut could
//! keep a part of the redo and lose the batch. A barrier alone does not prove redone bytes durable
//! (`redo`).
//!
//! Primaries may go back for a moment; readers see them only after the whole replay.

mod judge;
mod progress;
mod redo;
mod table;

use judge::judge_from;
pub use judge::{Judgement, LaneView, Waiting, judge};
pub use progress::{Standing, clear, clear_left, put_progress, put_progress_at};
pub use table::catch_up;
pub(crate) use table::{redo_batch, redo_table};

use crate::error::{Result, StoreError};
use crate::format::lane::Directory;
use crate::lane::{LaneLog, Search, mend};
use crate::medium::Medium;
use crate::space::TableTransaction;
use redo::Redo;

/// Result of a lane's recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Batches found.
    pub batches: u64,
    /// Bytes of lane read.
    pub lane_bytes: u64,
    /// Recovered objects.
    pub objects: u64,
    /// Bytes written to primaries.
    pub bytes: u64,
}

/// Replays the lane of `directory` into the objects bound to it, durably. The caller holds the
/// table and the lane, and voids the lane afterwards.
///
/// Memory: `WriteCombiner`'s, 64 MiB at most, `scan`'s, and 1 KiB per object.
///
/// # Errors
/// `LaneRefused`: nothing was written. Otherwise a failed write of the medium.
pub fn replay(
    table: &TableTransaction<'_>,
    lane: u32,
    directory: &Directory,
) -> Result<(LaneLog, Recovered)> {
    let (medium, seed) = (table.pages().medium(), table.seed());
    mend_lane(medium, seed, directory).map_err(|cause| refused(lane, cause))?;
    let judged = || judge(&LaneView::of(table), lane, directory, Search::Near).and_then(Judgement::accepted);
    let mut found = judged().map_err(|cause| refused(lane, cause))?;
    if found.end.sequence > 0 {
        found.end.confirm(medium, seed, found.start.position())?;
        found = judged().map_err(|cause| refused(lane, cause))?;
    }
    redo(table, lane, directory, &found, false)
}

/// [`replay`] of another process's held-still lane, whose process sees the primaries: no byte goes
/// back. `redone`: the lane's end at this process's last replay.
///
/// It makes only batches durable that no later batch proves durable. Memory: `WriteCombiner`'s for
/// the whole lane.
///
/// # Errors
/// As for [`replay`]; `Failed`: the system lost blocks, which only recovery mends.
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

pub(crate) fn mend_lane(medium: &dyn Medium, seed: u64, directory: &Directory) -> Result<Vec<u64>> {
    let (offset, len) = (directory.offset.get(), directory.len.get());
    mend(medium, seed, &LaneLog::read(medium, seed, offset, len, directory.generation.get())?)
}
