//! Recovery: replay what lanes hold.
//!
//! Replaying is redo of whole lines in the order of commits, so doing it twice, or starting again
//! after dying half-way, ends in the same bytes. Nothing is voided before what was replayed is
//! durable.
//!
//! A lane is judged whole ([`judge`]) before anything of it is redone: a batch that is damaged, or an object whose
//! entry cannot be read, refuses the lane. Nothing is voided then, so that nothing is lost: a failing read may
//! succeed the next time, and repair can do more.
//!
//! Batches found in a lane are visible, which is less than durable: their writer may have died, or failed,
//! between the two. They are made durable (`LaneLog::confirm`) before any of them is redone; otherwise a
//! power cut could keep a part of the redo and lose the batch.
//!
//! Primaries may go back for a moment, where a lane has more than is gathered at once. Nobody sees them
//! before the whole lane was replayed.

mod judge;
mod progress;
mod table;

pub use judge::{Judgement, LaneView, Waiting, judge};
pub use progress::{Standing, clear, put_progress, put_progress_at};
pub use table::catch_up;
pub(crate) use table::redo_table;

use crate::error::{Result, StoreError};
use crate::format::lane::Directory;
use crate::lane::{BatchView, LaneLog, Search, damaged, mend, scan};
use crate::medium::{Gather, Medium};
use crate::mutant::Mutant;
use crate::space::Draft;

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
/// The lane is read four times: to put single wrong bits right, to be judged, to be judged again once it is durable, and
/// to be redone. Memory: that of [`Gather`], 64 MiB at most, that of [`scan`], and 1 KiB for each object in the lane.
///
/// # Errors
/// `LaneRefused`: nothing was written. Others are the medium's, which failed a write.
pub fn replay(draft: &Draft<'_>, lane: u32, directory: &Directory) -> Result<(LaneLog, Recovered)> {
    let (medium, seed) = (draft.pages().medium(), draft.seed());
    let refused = |cause| match cause {
        // A write failed: that is no judgement.
        StoreError::Failed(_) => cause,
        cause => StoreError::LaneRefused { lane, cause: Box::new(cause) },
    };
    mend_lane(medium, seed, directory).map_err(refused)?;
    let judged = || judge(&LaneView::of(draft), lane, directory, Search::Near).and_then(Judgement::accepted);
    let mut found = judged().map_err(refused)?;
    // An empty lane's generation is confirmed by the directory, into which the caller enters the next.
    if found.end.sequence > 0 {
        found.end.confirm(medium, seed, found.start.position())?;
        // Of a write that failed, pages that were seen may be gone by then: what counts is what is there now.
        found = judged().map_err(refused)?;
    }
    let Judgement { start, end, objects, .. } = found;
    let mut redo = Redo { medium, pages: Gather::new(medium), long: medium.transfers().direct(), direct: 0 };
    let mut log = start;
    scan(medium, seed, &mut log, &mut |batch| {
        if Mutant::LastBatchForgotten.is_on() && batch.log == end {
            return Ok(());
        }
        redo.batch(batch, |entry, binding| {
            objects.get(&entry).is_some_and(|object| object.takes(directory, binding))
        })
    })?;
    if log != end {
        return Err(refused(damaged(&log, "it was intact a moment ago".into())));
    }
    let mut done = Recovered {
        batches: end.sequence,
        lane_bytes: end.used(),
        objects: objects.len() as u64,
        bytes: redo.pages.flush()? + redo.direct,
    };
    for object in objects.values() {
        put_progress(medium, seed, &object.located, &object.standing)?;
    }
    if objects.is_empty() {
        done.bytes = 0;
    } else if !Mutant::EarlyVoid.is_on() {
        medium.barrier()?;
    }
    Ok((log, done))
}

/// Puts single wrong bits of the lane's batches right; returns where.
pub(crate) fn mend_lane(medium: &dyn Medium, seed: u64, directory: &Directory) -> Result<Vec<u64>> {
    let (offset, len) = (directory.offset.get(), directory.len.get());
    mend(medium, seed, &LaneLog::read(medium, seed, offset, len, directory.generation.get())?)
}

/// Redo on its way from a lane to primaries.
struct Redo<'m> {
    medium: &'m dyn Medium,
    pages: Gather<'m>,
    /// Redo of so many bytes in one piece goes past `pages`.
    long: usize,
    /// Bytes written past `pages`.
    direct: u64,
}

impl Redo<'_> {
    /// Takes the sections of a batch that `counts(entry, binding)`.
    fn batch(&mut self, batch: &mut BatchView<'_, '_>, counts: impl Fn(u64, u64) -> bool) -> Result<()> {
        for index in 0..batch.sections.len() {
            let section = batch.sections[index];
            if counts(section.entry.get(), section.binding.get()) {
                batch.redo(index, &mut |target, bytes| self.put(target, bytes))?;
            }
        }
        Ok(())
    }

    /// Writes a long run to its place at once, without gathering it.
    ///
    /// A later batch may have some of these lines anew, so that the primary goes back for a moment: nobody
    /// sees it before the lane was replayed to its end.
    fn put(&mut self, target: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= self.long {
            self.pages.forget(target, bytes.len() as u64);
            self.medium.prepare(target, bytes.len() as u64)?;
            self.direct += bytes.len() as u64;
            return Ok(self.medium.write(target, bytes)?);
        }
        self.pages.put(target, bytes);
        if self.pages.is_full() {
            self.pages.flush()?;
        }
        Ok(())
    }
}
