//! The table lane: applied, then voided, so that repair starts from the bytes in place.

use super::Repair;
use super::plan::next_binding;
use super::settled::SettledRepair;
use crate::error::{Part, Result};
use crate::format::batch;
use crate::format::lane::{HEADERS, Header};
use crate::format::root::Root;
use crate::format::{LINE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use crate::lane::{LaneLog, scan};
use crate::medium::{Medium, Overlay, WriteCombiner, read_struct};
use crate::mutant::Mutant;
use crate::recovery::{catch_up, redo_batch, redo_table};
use crate::store::check::{Severity, Survey};
use std::collections::HashMap;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

pub(super) fn highest_generation(medium: &dyn Medium, seed: u64, offset: u64, len: u64) -> Result<u64> {
    let mut highest = 0;
    for at in (offset..offset + len).step_by(LINE as usize) {
        let header: batch::Header = read_struct(medium, at)?;
        let (generation, sequence) = (header.generation.get(), header.sequence.get());
        if header.magic.get() == batch::MAGIC && header.verify(seed, generation, sequence, offset + len - at)
        {
            highest = highest.max(generation);
        }
    }
    Ok(highest)
}

impl Repair {
    pub(super) fn rewrite_headers(
        &mut self,
        offset: u64,
        found: [Option<u64>; 2],
        generation: u64,
    ) -> Result<()> {
        for (_, copy) in found.iter().zip(HEADERS).filter(|(found, _)| found.is_none()) {
            let header = Header::new(self.seed, offset, generation);
            self.medium.write_durable(offset + copy, header.as_bytes())?;
            self.did(
                Part::LaneHeader,
                offset + copy,
                None,
                format!("written again, of generation {generation}"),
            );
        }
        Ok(())
    }

    pub(super) fn settle_table(
        &mut self,
        survey: &Survey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SettledRepair<'_>> {
        let (medium, seed) = (self.medium.clone(), self.seed);
        let (offset, len) = (TABLE_LANE, TABLE_LANE_LEN);
        let start = match survey.table.start {
            Some(start) => start,
            None => LaneLog::at_start(offset, len, highest_generation(&*medium, seed, offset, len)? + 1),
        };
        if survey.table.start.is_none() {
            self.doubt(survey, progress)?;
        }
        self.rewrite_headers(offset, survey.table.witnesses.copies, start.generation)?;
        if survey.table.start.is_none() {
            self.losing("changes to the table since the lane was last voided, if there were any and they were not in place");
        }
        let mut log = start;
        if survey.table.gap {
            self.close_gap(survey, start, progress)?;
            self.doubt(survey, progress)?;
        } else if let Err(error) = catch_up(&*medium, seed, &mut log, false) {
            let error = self.damage(error)?;
            self.doubt(survey, progress)?;
            self.did(
                Part::Record,
                offset,
                None,
                format!("the table's lane is voided, it cannot be replayed: {error}"),
            );
            self.losing("changes to the table that were not in place");
        }
        log.state_again(&*medium, seed)?;
        medium.barrier()?;
        log.next_generation(&*medium, seed)?;
        medium.barrier()?;
        Ok(SettledRepair::new(self, log))
    }

    fn doubt(&mut self, survey: &Survey, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.distrust_all(progress)?;
        self.doubt_root(survey)
    }

    /// All space counts as written, and bindings continue above all known ones, as lost changes may
    /// include first writes and attaches. In place, while the lane shows the damage.
    fn doubt_root(&mut self, survey: &Survey) -> Result<()> {
        let mut root: Root = read_struct(&*self.medium, TABLE_ROOT)?;
        if !root.verify(self.seed, self.len) || Mutant::UnwrittenKept.is_on() {
            return Ok(());
        }
        let next = next_binding(survey, &survey.objects);
        root.virgin = U64::new(root.pool_len(self.superblock.length.get()));
        root.next_binding = U64::new(root.next_binding.get().max(next));
        self.medium.write(TABLE_ROOT, root.sealed(self.seed).as_bytes())?;
        Ok(self.medium.barrier()?)
    }

    /// One batch before intact ones is damaged. If the table in place, perhaps newer, is unsound,
    /// all others are redone, unless that loses an attach of the damaged batch, with its psyncs,
    /// and gains only what can be rebuilt.
    fn close_gap(
        &mut self,
        survey: &Survey,
        start: LaneLog,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let errors = |survey: &Survey| {
            let found = survey.report.findings.iter();
            found.filter(|finding| finding.severity == Severity::Error).count()
        };
        let tried = Arc::new(Overlay::new(self.medium.clone()));
        redo_around(&*tried, self.seed, start)?;
        let redone = Survey::make(tried, self.superblock, progress)?;
        let better = if takes_back(survey, &redone) {
            redone.report.incurable() < survey.report.incurable()
        } else {
            errors(&redone) < errors(survey)
        };
        let what = if better {
            redo_around(&*self.medium, self.seed, start)?;
            "a damaged batch of the table's lane was left out, all others redone"
        } else {
            "the table's lane, which has a damaged batch, was not redone: the table in place is as good"
        };
        self.did(Part::Record, TABLE_LANE, None, what);
        self.losing("changes of the damaged batch that were not in place yet");
        Ok(())
    }
}

fn takes_back(now: &Survey, then: &Survey) -> bool {
    let bindings: HashMap<u64, u64> =
        then.objects.iter().map(|object| (object.offset, object.binding)).collect();
    now.objects
        .iter()
        .any(|object| bindings.get(&object.offset).is_some_and(|binding| *binding < object.binding))
}

fn redo_around(medium: &dyn Medium, seed: u64, start: LaneLog) -> Result<()> {
    let end = start.offset + start.len;
    let mut log = start;
    let mut pages = WriteCombiner::new(medium);
    while log.fits(LINE) {
        let before = log;
        scan(medium, seed, &mut log, &mut |batch| {
            redo_batch(medium, seed, batch, &mut |target, bytes| redo_table(&mut pages, target, bytes))
                .map(drop)
        })?;
        if log != before {
            continue;
        }
        log.tail += LINE;
        // The scan continues at a later batch's header.
        if log.fits(LINE) {
            let header: batch::Header = read_struct(medium, log.position())?;
            let (sequence, room) = (header.sequence.get(), end - log.position());
            if header.magic.get() == batch::MAGIC
                && sequence > start.sequence
                && header.verify(seed, start.generation, sequence, room)
            {
                log.sequence = sequence;
            }
        }
    }
    pages.flush()?;
    Ok(())
}
