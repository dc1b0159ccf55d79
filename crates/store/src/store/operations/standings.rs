//! Standings of objects by the batches in the lanes, for tools beside the writers, which take no
//! notice of them.
//!
//! A batch can be seen before it is durable. It counts as durable once one of these is known:
//! 1. A later batch of the generation has a watermark beyond it.
//! 2. After it was seen, there was a moment in which the lane's process changed nothing: its
//!    durable write had ended. (One that failed leaves a batch of which only recovery can tell
//!    whether it took place; it counts.)
//!
//! A checkpoint may begin another generation meanwhile. Its progress lines were written before
//! that, so a line that is read after the lane has at least the psyncs in the lane when the call
//! began. Both count durable psyncs: the greater is newer.
//!
//! Cost: a lane is read once for all objects on it, up to the end of its batches.

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

/// Standing of an object by the lane that it is bound to.
#[derive(Clone, Copy, Default)]
pub(super) struct InLane {
    /// After the newest batch that counts: the state that recovery leaves.
    pub newest: Option<Standing>,
    /// After the newest batch that is known to be durable.
    pub durable: Option<Standing>,
    pub logged: Logged,
}

/// Psyncs of an object that its writer's log has: what recovery would bring in place if the writer
/// died now. A checkpoint ends a generation, and the next begins with none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Generation of the log.
    pub generation: u64,
    /// Psyncs in it.
    pub psyncs: u64,
    /// Bytes of the lines that they changed.
    pub bytes: u64,
}

/// Keyed by the offset of the object's entry, and its binding.
type Objects = HashMap<(u64, u64), InLane>;

/// See the module.
#[derive(Default)]
pub(in crate::store) struct LaneStandings(HashMap<u32, Objects>);

impl LaneStandings {
    /// The object's standing by the lane, `None` without a batch of its binding.
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
    // Batches that were seen and are not known to be durable, by number.
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
        // The batch was overwritten by one of the next generation while it was read.
        Err(StoreError::Damaged { .. }) if start()?.generation != log.generation => {}
        scanned => scanned?,
    }
    objects.values_mut().for_each(|found| found.logged.generation = log.generation);
    if !store.apply_locks.is_changing(lane)? {
        prove(&mut objects, &mut pending, u64::MAX);
    }
    Ok(objects)
}

/// The batches before number `durable` are.
fn prove(objects: &mut Objects, pending: &mut Vec<(u64, (u64, u64), Standing)>, durable: u64) {
    pending.retain(|(number, object, standing)| {
        if *number < durable {
            objects.entry(*object).or_default().durable = Some(*standing);
        }
        *number >= durable
    });
}

/// The newest of the standing in the lane, which was read before, and those in the progress line.
/// `unsettled`: the line may be torn, as its writer may be writing it, or have died doing so;
/// recovery then writes it again.
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
    // The table of a read-only store has the line of an object that was created just now, and an
    // older one of others.
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
