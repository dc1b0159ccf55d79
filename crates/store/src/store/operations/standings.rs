//! Objects' standings by the batches in lanes, for tools, unnoticed by the writers.
//!
//! A visible batch counts as durable if
//! 1. a later batch of the generation has a watermark beyond it, or
//! 2. the lane's process changed nothing at some moment after it was seen: its durable write had
//!    ended. (A failed one leaves a batch that counts here, though only recovery can judge it.)
//!
//! A progress line read after the lane has at least the psyncs of a generation that ended
//! meanwhile; the greater count is newer.

use crate::error::{Result, StoreError};
use crate::format::LINE;
use crate::format::entry::PROGRESS;
use crate::lane::{LaneLog, scan};
use crate::medium::read_struct;
use crate::recovery::Standing;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Located, directory};
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;

#[derive(Clone, Copy, Default)]
pub(super) struct InLane {
    /// After the newest batch that counts: what recovery leaves.
    pub newest: Option<Standing>,
    /// After the newest batch known to be durable.
    pub durable: Option<Standing>,
    pub logged: Logged,
}

/// An object's psyncs in its writer's log, which a checkpoint empties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Generation of the log.
    pub generation: u64,
    /// Psyncs in it.
    pub psyncs: u64,
    /// Bytes of the lines that they changed.
    pub bytes: u64,
}

type Objects = HashMap<(u64, u64), InLane>;

#[derive(Default)]
pub(in crate::store) struct LaneStandings(HashMap<u32, Objects>);

impl LaneStandings {
    pub(super) fn of(
        &mut self,
        store: &Store,
        table: &TableTransaction<'_>,
        lane: u32,
        object: &Located,
    ) -> Result<Option<InLane>> {
        let objects = match self.0.entry(lane) {
            MapEntry::Occupied(known) => known.into_mut(),
            MapEntry::Vacant(unread) => unread.insert(read(store, table, lane)?),
        };
        Ok(objects.get(&(object.offset, object.entry.binding.get())).copied())
    }
}

fn read(store: &Store, table: &TableTransaction<'_>, lane: u32) -> Result<Objects> {
    let mut objects = Objects::new();
    let Some(found) = directory(table, lane)? else { return Ok(objects) };
    let medium = table.pages().medium();
    let start =
        || LaneLog::read(medium, store.seed, found.offset.get(), found.len.get(), found.generation.get());
    let mut log = start()?;
    let mut pending = Vec::new();
    let scanned = scan(medium, store.seed, &mut log, &mut |batch| {
        prove(&mut objects, &mut pending, batch.durable);
        let mut runs = batch.runs.iter();
        for section in batch.sections {
            let lines: u64 = runs.by_ref().take(section.runs.get() as usize).map(|run| run.lines.get()).sum();
            if !section.is_of_object() {
                continue;
            }
            let object = (section.entry.get(), section.binding.get());
            let standing = Standing::of(section);
            let found = objects.entry(object).or_default();
            found.newest = Some(standing);
            found.logged.psyncs += 1;
            found.logged.bytes += lines * LINE;
            pending.push((batch.log.sequence - 1, object, standing));
        }
        Ok(())
    });
    match scanned {
        // The next generation began.
        Err(StoreError::Damaged { .. }) if start()?.generation != log.generation => {}
        scanned => scanned?,
    }
    objects.values_mut().for_each(|found| found.logged.generation = log.generation);
    if !store.apply_locks.is_changing(lane)? {
        prove(&mut objects, &mut pending, u64::MAX);
    }
    Ok(objects)
}

/// Batches before `durable` are.
fn prove(objects: &mut Objects, pending: &mut Vec<(u64, (u64, u64), Standing)>, durable: u64) {
    pending.retain(|(number, object, standing)| {
        if *number < durable {
            objects.entry(*object).or_default().durable = Some(*standing);
        }
        *number >= durable
    });
}

/// The newer of the lane's standing, read before, and the progress line's. `unsettled`: the line
/// may be torn.
pub(super) fn newest(
    store: &Store,
    table: &TableTransaction<'_>,
    object: &Located,
    in_lane: Option<Standing>,
    unsettled: bool,
) -> Result<Standing> {
    let now = || {
        let line = read_struct(&*store.device, object.offset + PROGRESS)?;
        Located { line, ..*object }.progress(store.seed)
    };
    let lines = [now().or_else(|_| now()), table.progress(object)];
    let known = lines.iter().flatten().map(Standing::in_line).chain(in_lane);
    if let Some(newest) = known.max_by_key(|standing| standing.psyncs) {
        return Ok(newest);
    }
    match lines {
        [Err(StoreError::Damaged { .. }), _] if unsettled => Ok(Standing::default()),
        [line, _] => line.map(|line| Standing::in_line(&line)),
    }
}
