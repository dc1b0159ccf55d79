//! Objects as of one moment, at their last psyncs: unwritten ones are locked, lanes of written ones
//! held still, and revised with a durable log before the change is published.

use crate::error::{Part, Result, StoreError};
use crate::format::LANES;
use crate::format::entry::{FLAG_BASE, NO_LANE, STATE_D, STATE_W};
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::recovery::replay_beside;
use crate::space::TableTransaction;
use crate::store::attachment::undefined;
use crate::store::locks::{ApplyLock, ObjectLock, lock};
use crate::store::pool::Store;
use crate::table::{Class, Key, Located, directory, directory_slot};
use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::little_endian::U32;

type Held = BTreeMap<u32, ApplyLock>;

enum Found<R> {
    All(R),
    /// A writer came, went, or moved one of them.
    Elsewhere(u32),
    /// A direct write to one of them is under way.
    Undefined(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    Upkeep,
    Read,
    Write,
}

impl Right {
    pub(super) fn allows(self, object: &Located, key: Key<'_>) -> bool {
        match self {
            Right::Upkeep => true,
            Right::Read => object.opens_for_reading(key),
            Right::Write => object.opens_for_writing(key),
        }
    }
}

impl Store {
    /// Changes objects' entries (name, key) while no process changes them. `change` makes what it
    /// relies on durable, and may repeat.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `ObjectReadOnly`; `HeldStill`, `Changing`: not within
    /// [`patience`](Store::patience); those of `change`: nothing happened.
    pub(super) fn at_boundary<R>(
        self: &Arc<Self>,
        objects: &[(&str, Key<'_>)],
        right: Right,
        change: impl Fn(&mut TableTransaction<'_>, &mut [Located]) -> Result<R>,
    ) -> Result<R> {
        let mut deadline = self.apply_locks.deadline();
        loop {
            let held = self.hold_lanes(objects)?;
            let found = self.change_held(objects, right, &held, &change);
            drop(held);
            match found {
                Ok(Found::All(out)) => return Ok(out),
                Ok(Found::Elsewhere(lane)) | Err(StoreError::HeldStill { lane, .. }) => {
                    self.apply_locks.pause(lane, &mut deadline)?;
                }
                Ok(Found::Undefined(lane)) => self.apply_locks.pause_changed(lane, &mut deadline)?,
                Err(held @ StoreError::Held { passing: true, .. }) => {
                    self.apply_locks.pause_or(held, &mut deadline)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// In order, so that callers do not wait for each other.
    fn hold_lanes(self: &Arc<Self>, objects: &[(&str, Key<'_>)]) -> Result<Held> {
        let mut lanes = self.view(|table| {
            let mut lanes = Vec::new();
            for (name, _) in objects {
                let object = table.object(name)?;
                if let Some(lane) = self.written_on(&object)? {
                    lanes.push(lane);
                }
            }
            Ok(lanes)
        })?;
        lanes.sort_unstable();
        lanes.dedup();
        let mut held = Held::new();
        for lane in lanes {
            match self.apply_locks.hold(lane, &|| self.is_taken(lane)) {
                Ok(lock) => drop(held.insert(lane, lock)),
                Err(StoreError::NeedsRecovery) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(held)
    }

    pub(super) fn written_on(&self, object: &Located) -> Result<Option<u32>> {
        let lane = object.entry.lane.get();
        let bound = object.entry.state == STATE_W && object.is_bound() && lane < LANES;
        Ok((bound && self.has_writer(object)? && self.is_taken(lane)?).then_some(lane))
    }

    fn change_held<R>(
        self: &Arc<Self>,
        objects: &[(&str, Key<'_>)],
        right: Right,
        held: &Held,
        change: impl Fn(&mut TableTransaction<'_>, &mut [Located]) -> Result<R>,
    ) -> Result<Found<R>> {
        let changed = |table: &mut TableTransaction<'_>| {
            let (mut found, mut locks, mut recovered) = (Vec::new(), Vec::new(), Vec::new());
            for (name, key) in objects {
                let mut object = self.usable(table, name)?;
                Class::expect_bytes(&object.entry)?;
                if !right.allows(&object, *key) {
                    return Err(StoreError::WrongKey);
                }
                if object.entry.has(FLAG_BASE) {
                    return Err(StoreError::ObjectReadOnly);
                }
                match self.written_on(&object)? {
                    Some(lane) if held.contains_key(&lane) => {}
                    Some(lane) => return Ok((Found::Elsewhere(lane), locks, recovered)),
                    None => {
                        // Readers see no change.
                        locks.push(ObjectLock::take(&self.object_locks, &object, LockMode::Shared)?);
                        recovered.push(self.recover(table, &object)?);
                        object.entry.state = STATE_D;
                        object.entry.lane = U32::new(NO_LANE);
                        table.put_entry(&object)?;
                    }
                }
                found.push(object);
            }
            for lane in held.keys().filter(|_| !Mutant::BaseBehind.is_on()) {
                let directory = directory(table, *lane)?
                    .ok_or(StoreError::damaged(Part::LaneDirectory, directory_slot(*lane)))?;
                let redone = lock(&self.redone).remove(lane);
                let (end, _) = replay_beside(table, *lane, &directory, redone)?;
                lock(&self.redone).insert(*lane, end);
            }
            for object in found.iter().filter(|object| object.is_bound()) {
                if undefined(table, object)?.is_some() && !Mutant::BaseUndefined.is_on() {
                    return Ok((Found::Undefined(object.entry.lane.get()), locks, recovered));
                }
            }
            let out = change(table, &mut found)?;
            for lock in held.values() {
                lock.revise(table.pages().medium())?;
            }
            // Given back after publication.
            Ok((Found::All(out), locks, recovered))
        };
        // Under the table's lock, so that no process sees a reader.
        let unlocked = |(found, _locks, recovered)| (found, recovered);
        self.update_then(changed, unlocked).map(|(found, _recovered)| found)
    }
}
