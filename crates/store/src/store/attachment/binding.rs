//! Bindings of objects to lanes, and recovery from a dead writer's lane.

use crate::error::{Part, Result, StoreError};
use crate::format::entry::STATE_W;
use crate::format::{LANES, TABLE_ROOT};
use crate::mutant::Mutant;
use crate::recovery::Recovered;
use crate::space::TableTransaction;
use crate::store::lanes::WriterLane;
use crate::store::pool::Store;
use crate::table::{Located, directory, directory_slot};
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};

impl Store {
    fn sign(&self, object: &mut Located, state: u8) {
        object.entry.state = state;
        object.entry.pid = U32::new(self.identity.pid);
        object.entry.boot = self.identity.realm();
    }

    pub(in crate::store) fn bind(
        &self,
        table: &mut TableTransaction<'_>,
        object: &mut Located,
        lane: u32,
    ) -> Result<()> {
        self.sign(object, STATE_W);
        object.entry.lane = U32::new(lane);
        renumber(table, object)?;
        table.put_entry(object)
    }

    pub(in crate::store) fn stale_lane(
        &self,
        table: &TableTransaction<'_>,
        object: &Located,
    ) -> Result<Option<u32>> {
        if !object.is_bound() || Mutant::LaneForgotten.is_on() {
            return Ok(None);
        }
        let lane = object.entry.lane.get();
        if lane >= LANES {
            return Err(StoreError::damaged(Part::Entry, object.offset));
        }
        let Some(directory) = directory(table, lane)? else {
            // Detaching precedes giving up the lane.
            let cause = Box::new(StoreError::damaged(Part::LaneDirectory, directory_slot(lane)));
            return Err(StoreError::LaneRefused { lane, cause });
        };
        let stale = object.entry.binding.get() >= directory.since.get();
        Ok(stale.then_some(lane))
    }

    /// Refuses an object held still.
    ///
    /// # Errors
    /// `HeldStill`.
    pub(in crate::store) fn expect_not_held(&self, object: &Located) -> Result<()> {
        let lane = object.entry.lane.get();
        if object.is_bound() && lane < LANES && self.apply_locks.is_held(lane)? {
            return Err(self.apply_locks.refused(lane));
        }
        Ok(())
    }

    /// # Errors
    /// `MemoryLeft`: commits outside the pool.
    pub(in crate::store) fn recover(
        &self,
        table: &mut TableTransaction<'_>,
        object: &Located,
    ) -> Result<Option<(Arc<WriterLane>, Recovered)>> {
        self.expect_no_memory(object)?;
        self.recover_lane(table, object)
    }

    pub(super) fn recover_lane(
        &self,
        table: &mut TableTransaction<'_>,
        object: &Located,
    ) -> Result<Option<(Arc<WriterLane>, Recovered)>> {
        let Some(lane) = self.stale_lane(table, object)? else { return Ok(None) };
        match self.lane_locks.get(lane) {
            Some(own) if own.is_poisoned() => return Err(StoreError::Poisoned),
            // The last detach failed to update the table.
            Some(_) => {
                self.expect_not_held(object)?;
                return Ok(None);
            }
            None => {}
        }
        match self.acquire(table, lane)? {
            Some(found) => Ok(Some(found)),
            None => Err(self.object_locks.held(object, true)),
        }
    }
}

pub(in crate::store) fn renumber(table: &mut TableTransaction<'_>, object: &mut Located) -> Result<()> {
    object.entry.binding = table.root.next_binding;
    let next = table.root.next_binding.get().checked_add(1);
    table.root.next_binding = U64::new(next.ok_or(StoreError::damaged(Part::Root, TABLE_ROOT))?);
    Ok(())
}
