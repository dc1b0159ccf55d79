//! The table lane and the root page.

use super::{Cure, Severity, Survey};
use crate::error::{Part, Result};
use crate::format::batch;
use crate::format::lane::{BODY, HEADERS, Header};
use crate::format::root::Root;
use crate::format::{DATA, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use crate::lane::{LaneLog, beyond, broken, scan};
use crate::medium::{Medium, read_struct};
use crate::recovery::catch_up;

/// What became of the table lane.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct TableLane {
    /// Generations of the header copies, `None` for a damaged one.
    pub headers: [Option<u64>; 2],
    /// The lane from its first batch on; `None`: nothing in it can be trusted.
    pub start: Option<LaneLog>,
    /// A batch is damaged although later ones are intact; nothing was caught up.
    pub gap: bool,
}

/// The generations that the header copies of the lane at `offset` state; `None`: damaged.
pub(in crate::store) fn read_headers(
    medium: &dyn Medium,
    seed: u64,
    offset: u64,
) -> Result<[Option<u64>; 2]> {
    let mut generations = [None; 2];
    for (generation, copy) in generations.iter_mut().zip(HEADERS) {
        let header: Header = read_struct(medium, offset + copy)?;
        *generation = header.generation(seed, offset);
    }
    Ok(generations)
}

/// The generation of the lane's first batch: whoever used the lane last wrote that first.
pub(in crate::store) fn first_batch(
    medium: &dyn Medium,
    seed: u64,
    offset: u64,
    len: u64,
) -> Result<Option<u64>> {
    let header: batch::Header = read_struct(medium, offset + BODY)?;
    let generation = header.generation.get();
    if !header.verify(seed, generation, 0, len - BODY) {
        return Ok(None);
    }
    let mut log = LaneLog::at_start(offset, len, generation);
    scan(medium, seed, &mut log, &mut |_| Ok(()))?;
    Ok((log.sequence > 0).then_some(generation))
}

impl Survey {
    /// Brings the table up to date in the overlay, if its lane can be trusted.
    pub(super) fn catch_up(&mut self) {
        if let Err(error) = self.try_catch_up() {
            let what = format!("the table lane cannot be replayed: {error}");
            self.find(Severity::Error, Part::Record, TABLE_LANE, Cure::Rebuild, what);
        }
    }

    fn try_catch_up(&mut self) -> Result<()> {
        let (seed, offset, len) = (self.seed, TABLE_LANE, TABLE_LANE_LEN);
        // Unlike other lanes, this one has its headers written when the pool is formatted.
        let headers = read_headers(&*self.medium, seed, offset)?.map(|copy| copy.filter(|found| *found > 0));
        self.table.headers = headers;
        self.judge_headers("the table's lane", offset, headers);
        let generation = match headers.into_iter().flatten().max() {
            Some(generation) => Some(generation),
            None => first_batch(&*self.medium, seed, offset, len)?,
        };
        let Some(generation) = generation else { return Ok(()) };
        let start = LaneLog::at_start(offset, len, generation);
        self.table.start = Some(start);
        let mut end = start;
        scan(&*self.medium, seed, &mut end, &mut |_| Ok(()))?;
        if let Some(later) = beyond(&*self.medium, seed, &end)? {
            self.table.gap = true;
            let what = format!(
                "batch {} is damaged, though batch {} behind it is intact",
                end.sequence, later.sequence
            );
            self.find(Severity::Error, Part::Record, end.position(), Cure::Rewrite, what);
            return Ok(());
        }
        if broken(&*self.medium, seed, &end)? {
            let what =
                "the last change of the table is not whole: it was cut short, or it was made and is damaged";
            self.find(Severity::Note, Part::Record, end.position(), Cure::None, what);
        }
        catch_up(&*self.medium, seed, &mut { start }, false)?;
        Ok(())
    }

    /// Reports damaged header copies.
    pub(super) fn judge_headers(&mut self, lane: &str, offset: u64, headers: [Option<u64>; 2]) {
        let one_serves = headers.iter().any(Option::is_some);
        for (_, copy) in headers.iter().zip(HEADERS).filter(|(generation, _)| generation.is_none()) {
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

    /// Reads the root page.
    pub(super) fn read_root(&mut self) {
        let Some(root) = self.read::<Root>(Part::Root, TABLE_ROOT) else { return };
        if !root.verify(self.seed, self.len) {
            self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, "the table root is damaged");
            return;
        }
        let (next, end) = (root.chunk_next.get(), root.chunk_end.get());
        let fault = if next < end && (next < DATA || !end.is_multiple_of(PAGE)) {
            Some("the table's chunk lies outside the data region")
        } else if root.virgin.get() < DATA {
            Some("all of the data region is said to be untouched")
        } else if root.next_binding.get() == 0 {
            Some("write attaches are numbered from 0")
        } else {
            None
        };
        if let Some(what) = fault {
            self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
        }
        self.root = Some(root);
    }
}
