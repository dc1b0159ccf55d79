//! Views for tools: state and holder of objects, lanes and their batches, space.

use crate::error::{Holder, Result, StoreError};
use crate::format::batch::Section;
use crate::format::entry::{Progress, STATE_R, STATE_W};
use crate::format::root::Root;
use crate::format::{LANES, PAGE, TABLE_LANE, TABLE_LANE_LEN};
use crate::lane::{LaneLog, scan};
use crate::medium::{LockKey, LockMode};
use crate::space::{PAGES, TableTransaction};
use crate::store::access::read_table_log;
use crate::store::pool::Store;
use crate::table::{Located, directory};
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};

/// An object's state as a person would name it (S0.25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// 'D', 'R', 'W', 'P' or 'C'.
    pub state: char,
    /// Its holder, if any.
    pub holder: Option<Holder>,
    /// Its last writer is gone and left something to recover.
    pub needs_recovery: bool,
    /// Bytes ever psynced, as a high-water mark; 0 if the writer is just writing the progress line, or died doing so.
    pub published: u64,
    /// Psyncs completed, as far as they have been checkpointed; 0 as above.
    pub psyncs: u64,
}

/// A pool in numbers.
#[derive(Clone, Debug)]
pub struct StoreInfo {
    /// Bytes of the pool.
    pub length: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes no object, lane or table page has.
    pub free: u64,
    /// Largest piece of them.
    pub largest: u64,
    /// Free extents.
    pub extents: u64,
    /// The table root.
    pub root: Root,
}

/// A lane in numbers.
#[derive(Clone, Debug)]
pub struct LaneDump {
    /// Its index, `None` for the table's.
    pub index: Option<u32>,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Generation.
    pub generation: u64,
    /// Process that acquired it last.
    pub pid: u32,
    /// Whether a process has it now.
    pub held: bool,
    /// Bindings below this are not in it.
    pub since: u64,
    /// Its valid batches.
    pub batches: Vec<BatchDump>,
}

/// A batch in numbers.
#[derive(Clone, Debug)]
pub struct BatchDump {
    /// Number in the generation.
    pub sequence: u64,
    /// Its sections.
    pub sections: Vec<Section>,
    /// Lines of data.
    pub lines: u64,
}

/// Bindings that have batches in a lane, by lane: a lane is read once for all objects on it.
#[derive(Default)]
pub(in crate::store) struct Waiting(HashMap<u32, HashSet<u64>>);

impl Store {
    /// State and holder of an object.
    pub fn status(&self, object: &Located) -> Result<Status> {
        self.view(|table| {
            let object = table.entry(object.offset)?;
            self.status_in(table, &object, &mut Waiting::default())
        })
    }

    /// The object of that name, with its state and holder.
    pub fn stat(&self, name: &str) -> Result<(Located, Status)> {
        self.view(|table| {
            let object = table.find(name)?.ok_or(StoreError::NotFound)?;
            let status = self.status_in(table, &object, &mut Waiting::default())?;
            Ok((object, status))
        })
    }

    /// State and holder of an object as `table` has it.
    pub(in crate::store) fn status_in(
        &self,
        table: &TableTransaction<'_>,
        object: &Located,
        waiting: &mut Waiting,
    ) -> Result<Status> {
        let lock = self.device.probe(LockKey::Object(object.offset))?;
        let stale = self.stale_lane(table, object)?;
        let mine = self.object_locks.readers(object.offset);
        let held = match (mine, lock) {
            (Some(0), _) | (None, Some(LockMode::Exclusive)) => Some(STATE_W),
            (Some(_), _) | (None, Some(LockMode::Shared)) => Some(STATE_R),
            (None, None) => None,
        };
        let holder = held.map(|state| match mine {
            Some(_) => Holder::Own { writer: state == STATE_W },
            None => self.object_locks.holder_of(object, state == STATE_W),
        });
        let state = match (held, stale) {
            (Some(STATE_R), _) => 'R',
            (Some(_), _) => 'W',
            (None, Some(lane)) if self.waits(table, lane, object, waiting)? => 'C',
            (None, Some(_)) => 'W',
            (None, None) => 'D',
        };
        let needs_recovery = held.is_none() && stale.is_some();
        // The writer may be writing the line, or have died doing so: then recovery writes it again.
        let progress = match object.progress(table.seed()).or_else(|_| table.progress(object)) {
            Err(StoreError::Damaged { .. }) if held == Some(STATE_W) || stale.is_some() => {
                Progress::default()
            }
            found => found?,
        };
        let (published, psyncs) = (progress.published.get(), progress.psyncs.get());
        Ok(Status { state, holder, needs_recovery, published, psyncs })
    }

    /// Whether the lane of a writer that is gone has a batch to be brought into the object's primary.
    /// (State P leaves no trace: a batch that is not whole is not there.)
    fn waits(
        &self,
        table: &TableTransaction<'_>,
        lane: u32,
        object: &Located,
        waiting: &mut Waiting,
    ) -> Result<bool> {
        if let MapEntry::Vacant(slot) = waiting.0.entry(lane) {
            let batches = self.dump_lane(table, lane)?.map_or_else(Vec::new, |dump| dump.batches);
            let sections = batches.iter().flat_map(|batch| &batch.sections);
            slot.insert(sections.map(|section| section.binding.get()).collect());
        }
        Ok(waiting.0.get(&lane).is_some_and(|bindings| bindings.contains(&object.entry.binding.get())))
    }

    /// The pool in numbers.
    pub fn info(&self) -> Result<StoreInfo> {
        self.view(|table| {
            Ok(StoreInfo {
                length: self.len,
                objects: table.root.objects.get(),
                free: table.root.free_pages.get() * PAGE,
                largest: PAGES.largest(table)? * PAGE,
                extents: table.root.trees[crate::format::root::TreeId::FreeByPage as usize].count.get(),
                root: table.root,
            })
        })
    }

    /// Every lane that has space, the table's first, with its valid batches.
    pub fn lanes(&self) -> Result<Vec<LaneDump>> {
        self.view(|table| {
            let medium = table.pages().medium();
            let mut log = read_table_log(medium, self.seed)?;
            let mut all = vec![LaneDump {
                index: None,
                offset: TABLE_LANE,
                len: TABLE_LANE_LEN,
                generation: log.generation,
                pid: 0,
                held: false,
                since: 0,
                batches: Vec::new(),
            }];
            all[0].batches = batches(table, &mut log)?;
            for index in 0..LANES {
                all.extend(self.dump_lane(table, index)?);
            }
            Ok(all)
        })
    }

    fn dump_lane(&self, table: &TableTransaction<'_>, index: u32) -> Result<Option<LaneDump>> {
        let Some(found) = directory(table, index)? else { return Ok(None) };
        let medium = table.pages().medium();
        let (offset, len) = (found.offset.get(), found.len.get());
        let mut log = LaneLog::read(medium, self.seed, offset, len, found.generation.get())?;
        let generation = log.generation;
        let own = self.lane_locks.get(index).is_some();
        Ok(Some(LaneDump {
            index: Some(index),
            offset,
            len,
            generation,
            pid: found.pid.get(),
            held: own || self.device.probe(LockKey::Lane(index))?.is_some(),
            since: found.since.get(),
            batches: batches(table, &mut log)?,
        }))
    }
}

fn batches(table: &TableTransaction<'_>, log: &mut LaneLog) -> Result<Vec<BatchDump>> {
    let mut all = Vec::new();
    scan(table.pages().medium(), table.seed(), log, &mut |batch| {
        all.push(BatchDump {
            sequence: all.len() as u64,
            sections: batch.sections.to_vec(),
            lines: batch.runs.iter().map(|run| run.lines.get()).sum(),
        });
        Ok(())
    })?;
    Ok(all)
}
