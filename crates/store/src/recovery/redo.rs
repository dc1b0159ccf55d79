//! Durable redo of a writers' lane.
//!
//! If an earlier process's first write to a block failed, barriers succeed and the block is lost
//! all the same ([`Medium::unwritten`]). So redo asks the medium after the barrier, zeroes missing
//! blocks and redoes them.
//!
//! Zeroing such a block loses nothing: no barrier covered its bytes, so its only psyncs are in the
//! lane.

use super::{Waiting, put_progress};
use crate::error::Result;
use crate::format::PAGE;
use crate::format::lane::Directory;
use crate::lane::{BatchView, LaneLog, damaged, scan};
use crate::medium::{Medium, Runs, WriteCombiner, not_kept, not_kept_beside};
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) struct Redo<'r> {
    pub(super) medium: &'r dyn Medium,
    pub(super) seed: u64,
    pub(super) directory: &'r Directory,
    pub(super) start: LaneLog,
    pub(super) end: LaneLog,
    pub(super) objects: &'r BTreeMap<u64, Waiting>,
    /// Readers see the primaries.
    pub(super) seen: bool,
}

impl Redo<'_> {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// `Damaged`: the lane changed since the judgement. Otherwise the medium's.
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
                    // Later batches may have some.
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
