//! An open pool.

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

/// Identity of this process, recorded for people in its attachments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process ID.
    pub pid: u32,
    /// Boot ID of the machine.
    pub boot: [u8; 16],
    /// Number of the pid namespace that `pid` belongs to; 0: the machine's first.
    pub namespace: u64,
}

impl Identity {
    /// The number recorded beside a process ID: the boot and the namespace in which it means this
    /// process.
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
    /// For reading, and for locks. Changes of the medium go through an epoch of `latch`.
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
    /// Lanes that writers had: the next need not acquire one.
    pub(in crate::store) kept: Mutex<Vec<Arc<WriterLane>>>,
    /// Ends of lanes up to which this process, holding them still, has redone them durably.
    pub(in crate::store) redone: Mutex<BTreeMap<u32, LaneLog>>,
    /// Lanes of dead processes that could not be redone when some lane was looked for, with their
    /// generations.
    pub(in crate::store) passed_over: Mutex<BTreeMap<u32, u64>>,
}

impl Store {
    /// Opens the pool on `device`. Costs the same at any size and any number of objects.
    ///
    /// # Errors
    /// `NotAPool`, `Version`, `Features`, `Truncated`, `Damaged`, or the medium's.
    pub fn open(device: Arc<dyn Device>, identity: Identity) -> Result<Arc<Store>> {
        let superblock = in_force(&settled_superblocks(&*device)?, device.len())?;
        Ok(Arc::new(Store::with(superblock, device, identity)))
    }

    /// A pool with this superblock.
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

    /// Whether the pool was opened for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// How long to wait for the table while another process, or another thread, has it, and for
    /// objects that are held still: 20 s at first. Applies to all threads that share this store.
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

    /// Runs `change` on the table and publishes the changes as one batch: durable on return.
    pub(in crate::store) fn update<R>(
        &self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<R>,
    ) -> Result<R> {
        self.update_then(change, |out| out)
    }

    /// As [`update`](Store::update); `after` runs once the change is durable, with the table still
    /// held: the caller that destroyed an object gives up its lock there, as the slot may be
    /// another's next.
    pub(in crate::store) fn update_then<R, S>(
        &self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<R>,
        after: impl FnOnce(R) -> S,
    ) -> Result<S> {
        // Others may have read that an object is bound to one of them, and wait for it.
        let done = self.table.update_then(change, after).inspect_err(|_| self.forget_failed_lanes());
        done.map_err(|error| self.unless_formatted(error))
    }

    /// Runs `look` on the table as it is; in a read-only store more than once, if the table changes
    /// meanwhile.
    pub(in crate::store) fn view<R>(
        &self,
        look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<R> {
        self.view_as_of(look).map(|(seen, _)| seen)
    }

    /// As [`view`](Store::view), and says where the table's lane ended.
    pub(in crate::store) fn view_as_of<R>(
        &self,
        look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<(R, LaneLog)> {
        self.table.view(look).map_err(|error| self.unless_formatted(error))
    }

    /// Whether the table is for certain as it was when its lane ended there, asked without its
    /// lock.
    pub(in crate::store) fn is_table_still_at(&self, end: &LaneLog) -> Result<bool> {
        self.table.is_still_at(end)
    }

    /// Whether the medium has this pool still, and not another one that was formatted over it.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let another = |slot: u64| {
            let found = read_struct::<Superblock>(&*self.device, slot);
            found.is_ok_and(|found| found.verify(self.device.len()).is_ok() && found.id != self.id())
        };
        !SLOTS.into_iter().any(another)
    }

    /// Passes on an error of the table, unless its cause is that this is another pool's by now.
    fn unless_formatted(&self, error: StoreError) -> StoreError {
        let damage = matches!(error, StoreError::Damaged { .. } | StoreError::BatchDamaged { .. });
        if damage && !self.is_there() { MediumError::Gone { what: FORMATTED }.into() } else { error }
    }
}
