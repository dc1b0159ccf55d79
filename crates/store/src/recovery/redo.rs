//! Redo of a writers' lane, and the proof that it is durable.
//!
//! The process that redoes a lane may have opened the file after the failure of an earlier writer
//! was reported, so that no barrier tells of it. If that was the first write to a block, barriers
//! succeed from then on, and the block is lost all the same ([`Medium::unwritten`]). So the medium
//! is asked after the barrier. Blocks that were redone and are not there are zeroed, which ends the
//! consequences of the failure, and redone again.
//!
//! Zeroing such a block loses nothing. No barrier was ever made for the bytes in it, so its only
//! psyncs are those in the lane: psyncs of earlier generations and bindings, and published direct
//! writes, were made durable by processes that were told of every failure since.

use super::{Waiting, put_progress};
use crate::error::Result;
use crate::format::PAGE;
use crate::format::lane::Directory;
use crate::lane::{BatchView, LaneLog, damaged, scan};
use crate::medium::{Medium, Runs, WriteCombiner, not_kept, not_kept_beside};
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Batches of a lane that were judged, and the objects that they go to.
pub(super) struct Redo<'r> {
    pub(super) medium: &'r dyn Medium,
    pub(super) seed: u64,
    pub(super) directory: &'r Directory,
    /// Before the first batch.
    pub(super) start: LaneLog,
    /// After the last one.
    pub(super) end: LaneLog,
    pub(super) objects: &'r BTreeMap<u64, Waiting>,
    /// Whether readers see the primaries meanwhile, so that no byte may go back to an earlier
    /// psync.
    pub(super) seen: bool,
}

impl Redo<'_> {
    /// Writes everything to its place, durably; returns the number of bytes.
    ///
    /// # Errors
    /// `Damaged`: the lane has changed since it was judged. Otherwise the medium's.
    pub(super) fn make_durable(&self) -> Result<u64> {
        // Rule L9 of docs/protocol.md.
        let (bytes, runs) = self.write()?;
        for object in self.objects.values() {
            put_progress(self.medium, self.seed, &object.located, &object.standing)?;
        }
        if self.objects.is_empty() || Mutant::EarlyVoid.is_on() {
            return Ok(bytes);
        }
        self.medium.barrier()?;
        if Mutant::RedoUnproven.is_on() {
            return Ok(bytes);
        }
        let lost = self.lost(&runs)?;
        match lost.first() {
            None => return Ok(bytes),
            // Zeros would be seen, too.
            Some(pages) if self.seen => return Err(not_kept_beside(pages.start).into()),
            Some(_) => {}
        }
        for pages in &lost {
            self.medium.zero(pages.start, pages.end - pages.start)?;
        }
        let (_, runs) = self.write()?;
        self.medium.barrier()?;
        match self.lost(&runs)?.first() {
            Some(pages) => Err(not_kept(pages.start).into()),
            None => Ok(bytes),
        }
    }

    /// Writes everything to its place; returns the number of bytes, and where they are.
    fn write(&self) -> Result<(u64, Vec<Range<u64>>)> {
        let mut runs = Runs::default();
        let mut pages = WriteCombiner::new(self.medium).recording(&mut runs);
        let mut log = self.start;
        scan(self.medium, self.seed, &mut log, &mut |batch| {
            if Mutant::LastBatchForgotten.is_on() && batch.log == self.end {
                return Ok(());
            }
            self.batch(batch, &mut pages)
        })?;
        if log != self.end {
            return Err(damaged(&log, "it was intact a moment ago".into()));
        }
        let bytes = pages.flush()?;
        Ok((bytes, runs.joined()))
    }

    /// Takes the sections of a batch that count.
    fn batch(&self, batch: &mut BatchView<'_, '_>, pages: &mut WriteCombiner<'_>) -> Result<()> {
        let long = if self.seen { usize::MAX } else { self.medium.transfers().direct() };
        for index in 0..batch.sections.len() {
            let section = batch.sections[index];
            let (entry, binding) = (section.entry.get(), section.binding.get());
            if !section.is_of_object()
                || !self.objects.get(&entry).is_some_and(|object| object.takes(self.directory, binding))
            {
                continue;
            }
            batch.redo(index, &mut |target, bytes| {
                if bytes.len() >= long {
                    // A later batch may have some of these lines anew, so the primary goes back for
                    // a moment: no reader sees it before the lane was replayed to its end.
                    return Ok(pages.write_past(target, bytes)?);
                }
                pages.put(target, bytes);
                if pages.is_full() && !self.seen {
                    pages.flush()?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Pages of the objects, ascending for each, that a barrier left unwritten although one of
    /// `runs` is in them.
    fn lost(&self, runs: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        let mut lost = Runs::default();
        for range in self.objects.values().flat_map(|object| object.located.entry.ranges()) {
            for hole in self.medium.unwritten(range.start, range.end - range.start)? {
                let first = runs.partition_point(|run| run.end <= hole.start);
                for run in runs[first..].iter().take_while(|run| run.start < hole.end) {
                    let (start, end) = (run.start.max(hole.start), run.end.min(hole.end));
                    lost.add(start / PAGE * PAGE..end.next_multiple_of(PAGE));
                }
            }
        }
        Ok(lost.joined())
    }
}
