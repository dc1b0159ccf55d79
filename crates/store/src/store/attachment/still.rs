//! An object as last psynced, read beside its writer: the lane's primaries are held still until the
//! value is dropped, and its log is redone in memory.

use super::attach::undefined;
use super::unlocked::expect_plain;
use crate::error::{Part, Result, StoreError};
use crate::medium::{LockKey, LockMode, Overlay};
use crate::recovery::{clear_left, replay};
use crate::space::TableTransaction;
use crate::store::locks::ApplyLock;
use crate::store::pool::Store;
use crate::table::{Key, Layers, Located, directory, directory_slot, read_pages};
use std::sync::Arc;

/// An object held still.
pub struct StillObject {
    /// Dropped first.
    copy: Overlay,
    object: Located,
    layers: Option<Layers>,
    _held: ApplyLock,
}

impl Store {
    /// Holds an object still that any process has attached for writing. `None`: it has no writer,
    /// and can be attached for reading.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`. `HeldStill`, `Changing`: not within [`patience`](Store::patience).
    /// `NeedsRecovery`: its writer died. `ReadOnly` of the medium: delaying a writer needs write
    /// access.
    pub fn hold_still(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Option<StillObject>> {
        let mut deadline = self.apply_locks.deadline();
        loop {
            let Some(found) = self.written(name, key)? else { return Ok(None) };
            let lane = found.entry.lane.get();
            let held = self.apply_locks.hold(lane, &|| self.is_taken(lane))?;
            let now = self.written(name, key)?;
            if now.is_some_and(|now| same(&now, &found)) {
                return self.still(found, held).map(Some);
            }
            // It was detached, or moved.
            drop(held);
            self.apply_locks.pause(lane, &mut deadline)?;
        }
    }

    fn written(&self, name: &str, key: Key<'_>) -> Result<Option<Located>> {
        let object = self.view(|table| table.object(name))?;
        let instead = "attach what its last psync left, by a seal key";
        expect_plain(&object, "reading beside their writer without a seal key", instead)?;
        if !object.opens_for_reading(key) {
            return Err(StoreError::WrongKey);
        }
        // Its lane may be another process's by now.
        let live =
            object.is_bound() && self.has_writer(&object)? && self.is_taken(object.entry.lane.get())?;
        Ok(live.then_some(object))
    }

    pub(in crate::store) fn has_writer(&self, object: &Located) -> Result<bool> {
        match self.object_locks.readers(object.offset) {
            Some(readers) => Ok(readers == 0),
            None => Ok(self.device.probe(LockKey::Object(object.offset))? == Some(LockMode::Exclusive)),
        }
    }

    pub(in crate::store) fn is_taken(&self, lane: u32) -> Result<bool> {
        Ok(self.lane_locks.get(lane).is_some() || self.device.probe(LockKey::Lane(lane))?.is_some())
    }

    fn still(&self, object: Located, held: ApplyLock) -> Result<StillObject> {
        let copy = Overlay::new(self.device.clone());
        let layers = self.view(|table| {
            let directory = directory(table, held.lane())?
                .ok_or(StoreError::damaged(Part::LaneDirectory, directory_slot(held.lane())))?;
            let table = TableTransaction::begin(&copy, self.seed, self.len)?;
            replay(&table, held.lane(), &directory)?;
            if let Some((from, to)) = undefined(&table, &object)? {
                clear_left(&copy, &object.entry, from, to)?;
            }
            table.layers(&object)
        })?;
        Ok(StillObject { copy, object, layers, _held: held })
    }
}

fn same(now: &Located, then: &Located) -> bool {
    (now.offset, now.entry.binding, now.entry.lane) == (then.offset, then.entry.binding, then.entry.lane)
}

impl StillObject {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Located {
        &self.object
    }

    /// Reads bytes of the object as last psynced.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(read_pages(&self.copy, &self.object, self.layers.as_ref(), offset, bytes)?)
    }
}
