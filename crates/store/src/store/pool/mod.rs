mod extents;
mod lanes;
mod spare;
mod superblocks;

pub(in crate::store) use extents::KEEP;
pub(in crate::store) use lanes::{LaneSearch, Space};
pub(in crate::store) use spare::{find_spare, has_room, is_spared, wipe_spare, write_spare};
pub use superblocks::SuperblockSlot;
pub(in crate::store) use superblocks::{
    faults, in_force, settled_superblocks, superblocks, why_unusable, write_superblocks,
};

use crate::error::{Result, StoreError};
use crate::format::superblock::{SLOTS, Superblock};
use crate::lane::LaneLog;
use crate::medium::{Device, FORMATTED, FaultLatch, MediumError, read_struct};
use crate::space::TableTransaction;
use crate::store::access::Table;
use crate::store::lanes::WriterLane;
use crate::store::locks::{ApplyLocks, LaneLocks, ObjectLocks};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Identity of this process, recorded in its attachments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process ID.
    pub pid: u32,
    /// Boot ID of the machine.
    pub boot: [u8; 16],
    /// Number of `pid`'s namespace; 0: the machine's first.
    pub namespace: u64,
}

impl Identity {
    /// Boot and namespace in which the process ID means this process.
    #[must_use]
    pub fn realm(&self) -> [u8; 16] {
        let mut realm = self.boot;
        for (byte, number) in realm[8..].iter_mut().zip(self.namespace.to_le_bytes()) {
            *byte ^= number;
        }
        realm
    }
}

/// An open pool.
pub struct Store {
    /// Changes go through an epoch of `latch`.
    pub(in crate::store) device: Arc<dyn Device>,
    pub(in crate::store) latch: Arc<FaultLatch>,
    pub(in crate::store) superblock: Superblock,
    pub(in crate::store) seed: u64,
    pub(in crate::store) len: u64,
    pub(in crate::store) read_only: bool,
    pub(in crate::store) identity: Identity,
    pub(in crate::store) table: Table,
    pub(in crate::store) lane_locks: Arc<LaneLocks<WriterLane>>,
    pub(in crate::store) apply_locks: Arc<ApplyLocks>,
    pub(in crate::store) object_locks: Arc<ObjectLocks>,
    pub(in crate::store) kept: Mutex<Vec<Arc<WriterLane>>>,
    /// Ends of others' lanes that this process redid durably.
    pub(in crate::store) redone: Mutex<BTreeMap<u32, LaneLog>>,
    pub(in crate::store) passed_over: Mutex<BTreeMap<u32, u64>>,
}

impl Store {
    /// Opens the pool on `device`, at constant cost.
    ///
    /// # Errors
    /// `NotAPool`, `Version`, `Features`, `Truncated`, `Damaged`, or the medium's.
    pub fn open(device: Arc<dyn Device>, identity: Identity) -> Result<Arc<Store>> {
        let superblock = in_force(&settled_superblocks(&*device)?, device.len())?;
        Ok(Arc::new(Store::with(superblock, device, identity)))
    }

    pub(in crate::store) fn with(
        superblock: Superblock,
        device: Arc<dyn Device>,
        identity: Identity,
    ) -> Store {
        let (seed, len) = (superblock.seed.get(), superblock.length.get());
        let latch = FaultLatch::new(device.clone());
        let table = Table::new(device.clone(), latch.clone(), seed, len);
        Store {
            seed,
            len,
            read_only: device.read_only(),
            superblock,
            identity,
            apply_locks: ApplyLocks::new(device.clone(), table.patience.clone()),
            table,
            lane_locks: Arc::default(),
            object_locks: ObjectLocks::new(device.clone(), identity.realm()),
            kept: Mutex::default(),
            redone: Mutex::default(),
            passed_over: Mutex::default(),
            latch,
            device,
        }
    }

    /// The medium.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Whether the pool is open only for reading.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Sets the wait of all threads for the table and for held-still objects: 20 s by default.
    pub fn set_patience(&self, wait: Duration) {
        self.table.patience.set(wait);
    }

    /// See [`set_patience`](Store::set_patience).
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.table.patience.get()
    }

    /// Random identity of the pool.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.superblock.id
    }

    /// The superblock in force.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    pub(in crate::store) fn update<R>(
        &self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<R>,
    ) -> Result<R> {
        self.update_then(change, |out| out)
    }

    /// `after` runs with the table held: a destroyed object's lock ends before its slot is reused.
    pub(in crate::store) fn update_then<R, S>(
        &self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<R>,
        after: impl FnOnce(R) -> S,
    ) -> Result<S> {
        let done = self.table.update_then(change, after).inspect_err(|_| self.forget_failed_lanes());
        done.map_err(|error| self.unless_formatted(error))
    }

    pub(in crate::store) fn view<R>(
        &self,
        look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<R> {
        self.view_as_of(look).map(|(seen, _)| seen)
    }

    pub(in crate::store) fn view_as_of<R>(
        &self,
        look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<(R, LaneLog)> {
        self.table.view(look).map_err(|error| self.unless_formatted(error))
    }

    pub(in crate::store) fn is_table_still_at(&self, end: &LaneLog) -> Result<bool> {
        self.table.is_still_at(end)
    }

    /// Whether the medium still has this pool, and not a later format.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let another = |slot: u64| {
            let found = read_struct::<Superblock>(&*self.device, slot);
            found.is_ok_and(|found| found.verify(self.device.len()).is_ok() && found.id != self.id())
        };
        !SLOTS.into_iter().any(another)
    }

    fn unless_formatted(&self, error: StoreError) -> StoreError {
        let damage = matches!(error, StoreError::Damaged { .. } | StoreError::BatchDamaged { .. });
        if damage && !self.is_there() { MediumError::Gone { what: FORMATTED }.into() } else { error }
    }
}
