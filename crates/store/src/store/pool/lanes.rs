//! The choice of an object's lane: this process's, a dead process's, or a new one.

use super::extents::claimed;
use crate::error::{Part, Result, StoreError};
use crate::format::lane::Directory;
use crate::format::{LANES, PAGE};
use crate::lane::LaneLog;
use crate::medium::zero_fresh;
use crate::mutant::Mutant;
use crate::recovery::{Recovered, replay};
use crate::space::TableTransaction;
use crate::store::lanes::{Changing, WriterLane};
use crate::store::locks::lock;
use crate::store::pool::Store;
use crate::table::{directory, directory_slot, put_directory};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::little_endian::{U32, U64};

/// Psyncs on different lanes do not meet.
const LANES_PER_PROCESS: usize = 4;
const LANES_KEPT: usize = 2;

#[derive(Clone, Copy)]
pub(in crate::store) struct Space {
    pub pool: u64,
    pub free: u64,
}

#[derive(Default)]
pub(in crate::store) struct LaneSearch {
    /// A dead lane could not be redone: the epoch is over, and the change must be repeated.
    pub is_to_be_repeated: bool,
}

impl Store {
    /// `None`: another process has it.
    pub(in crate::store) fn acquire(
        &self,
        table: &mut TableTransaction<'_>,
        index: u32,
    ) -> Result<Option<(Arc<WriterLane>, Recovered)>> {
        let Some(mut found) = directory(table, index)? else { return Ok(None) };
        let Some(lane_lock) = self.lane_locks.take(&self.device, index)? else { return Ok(None) };
        self.apply_locks.take_over(index);
        let (medium, revision) = (self.latch.enter(), self.apply_locks.revision(index)?);
        if !self.apply_locks.begin(index)? {
            return Err(self.apply_locks.refused(index));
        }
        let replayed = replay(table, index, &found);
        self.apply_locks.end(index);
        let (log, recovered) = replayed?;
        let log = log.take_over(table.pages().medium(), self.seed)?;
        found.generation = U64::new(log.generation);
        self.put_lane(table, index, found)?;
        let lane = WriterLane::new(lane_lock, self.apply_locks.clone(), medium, self.seed, log, revision);
        Ok(Some((lane, recovered)))
    }

    pub(in crate::store) fn put_lane(
        &self,
        table: &mut TableTransaction<'_>,
        index: u32,
        mut found: Directory,
    ) -> Result<Directory> {
        found.since = table.root.next_binding;
        found.pid = U32::new(self.identity.pid);
        found.boot = self.identity.realm();
        put_directory(table, index, found)?;
        Ok(found)
    }

    pub(in crate::store) fn keep_lane(&self, lane: &Arc<WriterLane>) {
        let mut kept = lock(&self.kept);
        // See `give_up_lane`.
        if lane.given_up.load(Ordering::Relaxed) {
            return;
        }
        if kept.len() < LANES_KEPT && !kept.iter().any(|other| Arc::ptr_eq(other, lane)) {
            kept.push(lane.clone());
        }
    }

    /// Kept only while objects are bound to it.
    pub(in crate::store) fn give_up_lane(&self, lane: &Arc<WriterLane>) {
        let mut kept = lock(&self.kept);
        lane.given_up.store(true, Ordering::Relaxed);
        let given: Vec<_> = kept.extract_if(.., |kept| Arc::ptr_eq(kept, lane)).collect();
        std::mem::drop(kept);
        drop(given);
    }

    pub(in crate::store) fn forget_failed_lanes(&self) {
        let failed: Vec<_> = lock(&self.kept).extract_if(.., |lane| lane.is_poisoned()).collect();
        drop(failed);
    }

    /// Waits until no lane of this process is held still: a detach under a hold would give up the
    /// lane with all its objects.
    ///
    /// # Errors
    /// `HeldStill`: nothing happened.
    pub fn expect_not_held_still(&self) -> Result<()> {
        let mut own = self.lane_locks.all();
        own.retain(|lane| !lane.is_poisoned());
        own.iter().try_for_each(|lane| lane.change().map(drop))
    }

    /// `search` notes unrecoverable lanes.
    pub(in crate::store) fn choose_lane(
        &self,
        table: &mut TableTransaction<'_>,
        found: Option<Arc<WriterLane>>,
        search: &mut LaneSearch,
    ) -> Result<Arc<WriterLane>> {
        if let Some(lane) = found {
            return Ok(lane);
        }
        let mut own = self.lane_locks.all();
        own.retain(|lane| !lane.is_poisoned());
        own.sort_by_key(|lane| (lane.bound.load(Ordering::Relaxed), lane.index));
        let limit = if self.device.capabilities().shares_commits { 1 } else { LANES_PER_PROCESS };
        let idle = own.first().is_some_and(|lane| lane.bound.load(Ordering::Relaxed) == 0);
        if idle || own.len() >= limit {
            return Ok(own.swap_remove(0));
        }
        match (self.acquire_any(table, search), own.into_iter().next()) {
            (Ok(lane), _) => Ok(lane),
            // Other failures may be half-way.
            (Err(StoreError::NoRoom { .. } | StoreError::NoLane { .. }), Some(lane)) => Ok(lane),
            (Err(error), _) => Err(error),
        }
    }

    fn acquire_any(
        &self,
        table: &mut TableTransaction<'_>,
        search: &mut LaneSearch,
    ) -> Result<Arc<WriterLane>> {
        let (mut unused, mut refused) = (None, None);
        for index in 0..LANES {
            match directory(table, index) {
                Ok(Some(found)) if self.is_passed_over(index, &found) => {}
                Ok(Some(found)) => match self.acquire(table, index) {
                    Ok(Some((lane, _))) => return Ok(lane),
                    Ok(None) | Err(StoreError::HeldStill { .. }) => {}
                    // Its objects wait for a repair.
                    Err(error @ StoreError::LaneRefused { .. }) if !Mutant::RefusedBlocksAll.is_on() => {
                        refused = Some(error);
                    }
                    Err(error @ StoreError::Failed(_)) if !Mutant::RefusedBlocksAll.is_on() => {
                        lock(&self.passed_over).insert(index, found.generation.get());
                        search.is_to_be_repeated = true;
                        return Err(error);
                    }
                    Err(error) => return Err(error),
                },
                Ok(None) => unused = unused.or(Some(index)),
                Err(StoreError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
            if unused.is_some() {
                break;
            }
        }
        let Some(index) = unused else { return Err(refused.unwrap_or(StoreError::NoLane { lanes: LANES })) };
        self.make_lane(table, index, LaneLog::default_len(table.pool_len(), index))
    }

    fn is_passed_over(&self, index: u32, found: &Directory) -> bool {
        lock(&self.passed_over).get(&index) == Some(&found.generation.get())
    }

    pub(in crate::store) fn make_lane(
        &self,
        table: &mut TableTransaction<'_>,
        index: u32,
        len: u64,
    ) -> Result<Arc<WriterLane>> {
        let lane_lock =
            self.lane_locks.take(&self.device, index)?.ok_or(StoreError::NoLane { lanes: LANES })?;
        self.apply_locks.take_over(index);
        let (medium, revision) = (self.latch.enter(), self.apply_locks.revision(index)?);
        let found = self.place_lane(table, index, len, 1)?;
        let log = LaneLog::at_start(found.offset.get(), len, 1);
        Ok(WriterLane::new(lane_lock, self.apply_locks.clone(), medium, self.seed, log, revision))
    }

    /// # Errors
    /// `NoRoom`: nothing happened. As for [`WriterLane::relocate`].
    pub(in crate::store) fn exchange_lane(
        &self,
        lane: &WriterLane,
        changing: &Changing,
        len: u64,
    ) -> Result<()> {
        lane.relocate(changing, |old: LaneLog| {
            self.update_then(
                |table| {
                    let index = lane.index;
                    let before = directory(table, index)?
                        .ok_or(StoreError::damaged(Part::LaneDirectory, directory_slot(index)))?;
                    let generation = old.generation + 1;
                    let mut found = self.place_lane(table, index, len, generation)?;
                    table.give_extent(old.offset / PAGE, old.len / PAGE)?;
                    // Objects stay bound.
                    found.since = before.since;
                    put_directory(table, index, found)?;
                    Ok(LaneLog::at_start(found.offset.get(), len, generation))
                },
                |log| {
                    self.device.discard(old.offset, old.len);
                    log
                },
            )
        })
    }

    /// Once unbound, if it has more than an eighth of the free bytes.
    pub(in crate::store) fn shorten_lane(&self, lane: &WriterLane, changing: &Changing, space: Space) {
        let len = LaneLog::default_len(space.pool, lane.index);
        let has = lane.capacity();
        let is_idle = lane.bound.load(Ordering::Relaxed) == 0 && !lane.is_poisoned();
        if is_idle && has > len && has > space.free / 8 {
            // It stays without room.
            let _ = self.exchange_lane(lane, changing, len);
        }
    }

    /// Writes the extent once if that spares later metadata, and enters it. Unpublished space takes
    /// only zeros.
    pub(in crate::store) fn place_lane(
        &self,
        table: &mut TableTransaction<'_>,
        index: u32,
        len: u64,
        generation: u64,
    ) -> Result<Directory> {
        table.stock_up(true)?;
        let offset = table.take_extent(len / PAGE)? * PAGE;
        let used = table.root.virgin.get().saturating_sub(offset).min(len);
        let medium = table.pages().medium();
        claimed(medium, zero_fresh(medium, offset, len, used), offset, len)?;
        medium.barrier()?;
        table.raise_virgin(offset + len);
        let found = Directory {
            magic: U32::new(crate::format::lane::DIRECTORY_MAGIC),
            offset: U64::new(offset),
            len: U64::new(len),
            generation: U64::new(generation),
            ..Directory::default()
        };
        self.put_lane(table, index, found)
    }
}
