//! Views for tools: objects' states, lanes, space.

use super::standings::{LaneStandings, Logged, newest};
use crate::error::{Holder, Result, StoreError};
use crate::format::batch::Section;
use crate::format::entry::{STATE_R, STATE_W};
use crate::format::root::{Root, TreeId};
use crate::format::{LANES, PAGE, TABLE_LANE, TABLE_LANE_LEN};
use crate::lane::{LaneLog, scan};
use crate::medium::{LockKey, LockMode, LockTable, Others};
use crate::recovery::Standing;
use crate::space::{PAGES, TableTransaction};
use crate::store::access::read_table_log;
use crate::store::pool::Store;
use crate::table::{Located, directory};
use std::cell::OnceCell;
use std::ops::RangeInclusive;

/// State of an object, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// 'D', 'R', 'W', 'P' or 'C'.
    pub state: char,
    /// Its holder; of several readers, one.
    pub holder: Option<Holder>,
    /// Further readers.
    pub others: Others,
    /// Whether a dead writer left something to recover.
    pub needs_recovery: bool,
    /// High-water mark of psynced bytes.
    pub published: u64,
    /// Durable psyncs; with a dead writer, those that recovery finds. 0 if the progress line is
    /// torn and the lane is empty.
    pub psyncs: u64,
    /// Bytes of its own pages in the pool, not its base's.
    pub own: u64,
    /// Psyncs in the log.
    pub logged: Logged,
}

/// Figures of a pool.
#[derive(Clone, Debug)]
pub struct StoreInfo {
    /// Bytes of the pool.
    pub length: u64,
    /// Objects.
    pub objects: u64,
    /// Free bytes.
    pub free: u64,
    /// Largest free piece.
    pub largest: u64,
    /// Free extents.
    pub extents: u64,
    /// The table root.
    pub root: Root,
    /// Generation of the table's lane, and batches in it: only rises.
    pub position: (u64, u64),
}

/// Figures of a lane.
#[derive(Clone, Debug)]
pub struct LaneDump {
    /// Index; `None`: the table's.
    pub index: Option<u32>,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Generation.
    pub generation: u64,
    /// Process that acquired it last.
    pub pid: u32,
    /// Whether a process has it.
    pub held: bool,
    /// Lowest binding that may be in it.
    pub since: u64,
    /// Valid batches.
    pub batches: Vec<BatchDump>,
}

/// Figures of a batch.
#[derive(Clone, Debug)]
pub struct BatchDump {
    /// Number in the generation.
    pub sequence: u64,
    /// Its sections.
    pub sections: Vec<Section>,
    /// Lines of data.
    pub lines: u64,
}

#[derive(Default)]
pub(super) struct Looked {
    lanes: LaneStandings,
    locks: OnceCell<LockTable>,
    unlocked: Option<RangeInclusive<u64>>,
}

impl Looked {
    /// Only other processes' locks are known.
    pub fn unlocked(unlocked: Option<RangeInclusive<u64>>) -> Looked {
        Looked { unlocked, ..Looked::default() }
    }
}

impl Store {
    /// State and holder of an object.
    pub fn status(&self, object: &Located) -> Result<Status> {
        self.view(|table| {
            let object = table.entry(object.offset)?;
            self.status_in(table, &object, &mut Looked::default())
        })
    }

    /// The object of that name, with state and holder.
    pub fn stat(&self, name: &str) -> Result<(Located, Status)> {
        self.view(|table| {
            let object = table.find(name)?.ok_or(StoreError::NotFound)?;
            let status = self.status_in(table, &object, &mut Looked::default())?;
            Ok((object, status))
        })
    }

    /// [`stat`](Store::stat) by ID.
    pub fn stat_id(&self, id: &[u8; 16]) -> Result<(Located, Status)> {
        self.view(|table| {
            let object = table.find_id(id)?.ok_or(StoreError::NotFound)?;
            let status = self.status_in(table, &object, &mut Looked::default())?;
            Ok((object, status))
        })
    }

    pub(super) fn status_in(
        &self,
        table: &TableTransaction<'_>,
        object: &Located,
        Looked { lanes, locks, unlocked }: &mut Looked,
    ) -> Result<Status> {
        let lock = match unlocked {
            Some(entries) if entries.contains(&object.offset) => None,
            _ => self.device.probe(LockKey::Object(object.offset))?,
        };
        let stale = self.stale_lane(table, object)?;
        let mine = self.object_locks.readers(object.offset);
        let held = match (mine, lock) {
            (Some(0), _) | (None, Some(LockMode::Exclusive)) => Some(STATE_W),
            (Some(_), _) | (None, Some(LockMode::Shared)) => Some(STATE_R),
            (None, None) => None,
        };
        let (holder, others) = match held {
            Some(state) => {
                let look = || locks.get_or_init(|| self.device.table());
                let (holder, others) = self.object_locks.holders_of(object, state == STATE_W, look);
                (Some(holder), others)
            }
            None => (None, Others::default()),
        };
        // A later checkpoint leaves them in the progress line.
        let found = match stale {
            Some(lane) => lanes.of(self, table, lane, object)?,
            None => None,
        };
        let state = match (held, stale) {
            (Some(STATE_R), _) => 'R',
            (Some(_), _) => 'W',
            (None, Some(_)) if found.is_some() => 'C',
            (None, Some(_)) => 'W',
            (None, None) => 'D',
        };
        let abandoned = held.is_none() && stale.is_some();
        let in_lane = found.map(|found| if abandoned { found.newest } else { found.durable });
        let in_memory = held.is_none() && object.entry.memory_in(&self.identity.boot).is_some();
        // A detached object's line is current.
        let settled = held.is_none() && !object.is_bound();
        let now = match object.progress(self.seed) {
            Ok(line) if settled => Standing::in_line(&line),
            _ => newest(self, table, object, in_lane.flatten(), stale.is_some())?,
        };
        let own = table.own_bytes(object)?;
        Ok(Status {
            state,
            holder,
            others,
            needs_recovery: abandoned || in_memory,
            published: now.published,
            psyncs: now.psyncs,
            own,
            logged: found.map(|found| found.logged).unwrap_or_default(),
        })
    }

    /// Figures of the pool.
    pub fn info(&self) -> Result<StoreInfo> {
        let (mut info, end) = self.view_as_of(|table| {
            Ok(StoreInfo {
                length: table.pool_len(),
                objects: table.root.objects.get(),
                free: table.root.free_pages.get() * PAGE,
                largest: PAGES.largest(table)? * PAGE,
                extents: table.root.trees[TreeId::FreeByPage as usize].count.get(),
                root: table.root,
                position: (0, 0),
            })
        })?;
        info.position = (end.generation, end.sequence);
        Ok(info)
    }

    /// Free extents of the data region, ascending: first byte and bytes.
    ///
    /// # Errors
    /// The tree of free space cannot be read.
    pub fn free_extents(&self) -> Result<Vec<(u64, u64)>> {
        self.view(|table| {
            let mut all = Vec::new();
            table.walk(TreeId::FreeByPage, &mut |_, level, slots| {
                if level == 0 {
                    let bytes = |pages: u64| pages.saturating_mul(PAGE);
                    all.extend(slots.iter().map(|slot| (bytes(slot.key().0), bytes(slot.value.get()))));
                }
                Ok(())
            })?;
            Ok(all)
        })
    }

    /// Every lane with space, the table's first, with its valid batches.
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
