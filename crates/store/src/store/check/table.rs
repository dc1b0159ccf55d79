//! The table lane and the root page.

use super::{Cure, Severity, Survey};
use crate::error::{Part, Result, StoreError};
use crate::format::lane::HEADERS;
use crate::format::root::Root;
use crate::format::{DATA, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use crate::lane::{Ending, LaneLog, Search, Witnesses, ending, mend, scan};
use crate::medium::Medium;
use crate::recovery::catch_up;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct TableLane {
    pub witnesses: Witnesses,
    /// The lane from its first batch on, if reliable.
    pub start: Option<LaneLog>,
    /// A damaged batch precedes intact ones.
    pub gap: bool,
}

impl Survey {
    pub(super) fn catch_up(&mut self) {
        if let Err(error) = self.try_catch_up() {
            self.note_later(&error);
            let what = format!("the table lane cannot be replayed: {error}");
            self.find(Severity::Error, Part::Record, TABLE_LANE, Cure::Rebuild, what);
        }
    }

    fn try_catch_up(&mut self) -> Result<()> {
        let (seed, offset, len) = (self.seed, TABLE_LANE, TABLE_LANE_LEN);
        let witnesses = Witnesses::read(&*self.medium, seed, offset, len)?;
        self.table.witnesses = witnesses;
        self.judge_headers("the table's lane", offset, &witnesses);
        let Some(generation) = witnesses.generation(1) else { return Ok(()) };
        let start = LaneLog::at_start(offset, len, generation);
        self.table.start = Some(start);
        for at in mend(&*self.medium, seed, &start)? {
            self.find_mended(at);
        }
        let mut end = start;
        scan(&*self.medium, seed, &mut end, &mut |_| Ok(()))?;
        match ending(&*self.medium, seed, &end, Search::Whole)? {
            Ending::Clean => {}
            Ending::Damaged { proof } => {
                self.table.gap = true;
                let what = format!("batch {} is damaged, though {proof}", end.sequence);
                self.find(Severity::Error, Part::Record, end.position(), Cure::Rewrite, what);
                return Ok(());
            }
            Ending::Torn { .. } => {
                let what = "the last change of the table is not whole: it was cut short, or it was made and is damaged";
                self.find(Severity::Note, Part::Record, end.position(), Cure::None, what);
            }
        }
        match catch_up(&*self.medium, seed, &mut { start }, false) {
            Err(cause @ StoreError::BatchDamaged { .. }) => {
                self.table.gap = true;
                let what = cause.to_string();
                self.find(Severity::Error, Part::Record, end.position(), Cure::Rewrite, what);
                Ok(())
            }
            caught_up => caught_up,
        }
    }

    pub(super) fn find_mended(&mut self, at: u64) {
        let what = "one bit of this batch is wrong, its checksum says which";
        self.find(Severity::Note, Part::Record, at, Cure::Recover, what);
    }

    pub(super) fn judge_headers(&mut self, lane: &str, offset: u64, witnesses: &Witnesses) {
        let copies = witnesses.copies;
        let one_serves = copies.iter().any(Option::is_some);
        for (_, copy) in copies.iter().zip(HEADERS).filter(|(generation, _)| generation.is_none()) {
            let (severity, what) = if one_serves {
                (
                    Severity::Note,
                    format!("this copy of {lane} is damaged, or torn by a power cut; the other serves"),
                )
            } else {
                (Severity::Error, format!("both copies of {lane} are damaged"))
            };
            self.find(severity, Part::LaneHeader, offset + copy, Cure::Rewrite, what);
        }
    }

    pub(super) fn read_root(&mut self) -> Result<()> {
        let Some(root) = self.read::<Root>(Part::Root, TABLE_ROOT) else { return Ok(()) };
        if !root.verify(self.seed, self.len) {
            self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, "the table root is damaged");
            return Ok(());
        }
        self.len = root.pool_len(self.len);
        if self.len > self.medium.len() {
            return Err(StoreError::Truncated { pool: self.len, medium: self.medium.len() });
        }
        let (next, end) = (root.chunk_next.get(), root.chunk_end.get());
        let fault = if next < end && (next < DATA || !end.is_multiple_of(PAGE)) {
            Some("the table's chunk lies outside the data region")
        } else if root.virgin.get() < DATA {
            Some("the whole data region counts as never used")
        } else if root.next_binding.get() == 0 {
            Some("write attaches are numbered from 0")
        } else {
            None
        };
        if let Some(what) = fault {
            self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
        }
        self.root = Some(root);
        Ok(())
    }
}
