//! The store: a pool as the processes that share it see it.
//!
//! Lock order, outermost first: an object (kernel lock, never waited for) → a writer lane's state → an
//! object's page cache → the table (mutex in the process, then the kernel lock) → the lane locks, the object
//! locks, the kept lanes. A lane's kernel lock is taken under the table and never waited for.
//!
//! A store that is opened read-only takes no lock at all, so that a reader without write permission is never in
//! a writer's way: it reads the table as it is, and once more if it changed meanwhile (access.rs); its readers
//! copy their object and look whether it is still the same (attach.rs; docs/decisions/0025).

mod access;
mod attach;
mod check;
mod direct;
mod format;
mod inspect;
mod lane_locks;
mod lane_state;
mod lanes;
mod listing;
mod object_locks;
mod objects;
mod page_cache;
mod primary;
mod psync;
mod repair;
mod resize;
mod trust;
mod wait;
mod window;
mod writer_lane;

pub use attach::{Reader, Writer};
pub use check::{Finding, Report, Severity, SuperblockSlot};
pub use format::FormatOptions;
pub use inspect::{BatchDump, LaneDump, Status, StoreInfo};
pub use objects::Listing;
pub use page_cache::PageImage;
pub use primary::{Pending, Primary};
pub use psync::{Changes, Staged, psync_all, stage};
pub use repair::{RepairAction, RepairOptions};
pub use window::{Window, likely_use};
pub use writer_lane::LaneUse;

use crate::error::{Result, StoreError};
use crate::format::superblock::{SLOTS, SlotFault, Superblock};
use crate::format::{VERSION, superblock};
use crate::medium::{Device, FaultLatch, Medium, read_struct};
use crate::sync::{Mutex, MutexGuard};
use access::Table;
use lane_locks::LaneLocks;
use object_locks::ObjectLocks;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wait::Patience;
use writer_lane::WriterLane;

/// Identity of this process, as recorded for people in what it attaches.
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
    /// The number recorded beside a process ID: the boot and the namespace in which it means this process.
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
    device: Arc<dyn Device>,
    latch: Arc<FaultLatch>,
    superblock: Superblock,
    seed: u64,
    len: u64,
    read_only: bool,
    identity: Identity,
    table: Table,
    patience: Patience,
    lane_locks: Arc<LaneLocks>,
    object_locks: Mutex<ObjectLocks>,
    /// Lanes that writers had: the next need not acquire one.
    kept: Mutex<Vec<Arc<WriterLane>>>,
    /// Lanes of dead processes that could not be redone when some lane was looked for, with their generations.
    passed_over: Mutex<BTreeMap<u32, u64>>,
}

impl Store {
    /// Opens the pool on `device`. Costs the same at any size and any number of objects.
    ///
    /// # Errors
    /// `NotAPool`, `Version`, `Features`, `Truncated`, `Damaged`, or the medium's.
    pub fn open(device: Arc<dyn Device>, identity: Identity) -> Result<Arc<Store>> {
        Ok(Arc::new(Store::with(read_superblock(&*device)?, device, identity)))
    }

    /// A pool with this superblock.
    fn with(superblock: Superblock, device: Arc<dyn Device>, identity: Identity) -> Store {
        Store {
            seed: superblock.seed.get(),
            len: superblock.length.get(),
            read_only: device.read_only(),
            superblock,
            identity,
            table: Table::default(),
            patience: Patience::default(),
            lane_locks: Arc::default(),
            object_locks: Mutex::new(ObjectLocks::default()),
            kept: Mutex::default(),
            passed_over: Mutex::default(),
            latch: FaultLatch::new(device.clone()),
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

    /// How long to wait for the table while another process, or another thread, has it: 20 s at first. Applies
    /// to all threads that share this store.
    pub fn set_patience(&self, wait: Duration) {
        self.patience.set(wait);
    }

    /// See [`set_patience`](Store::set_patience).
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience.get()
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

    fn writable(&self) -> Result<()> {
        if self.read_only { Err(crate::medium::MediumError::ReadOnly.into()) } else { Ok(()) }
    }
}

/// The superblock slot in force.
fn read_superblock(medium: &dyn Medium) -> Result<Superblock> {
    let len = medium.len();
    let mut best: Option<Superblock> = None;
    let mut faults = Vec::new();
    for slot in SLOTS {
        if slot + size_of::<Superblock>() as u64 > len {
            continue;
        }
        let found: Superblock = read_struct(medium, slot)?;
        match found.verify(len) {
            Ok(()) if best.is_none_or(|b| b.sequence < found.sequence) => best = Some(found),
            Ok(()) => {}
            Err(fault) => faults.push((fault, found)),
        }
    }
    best.ok_or_else(|| why_unusable(&faults, len))
}

/// The most telling of the faults of both slots.
fn why_unusable(faults: &[(SlotFault, Superblock)], medium: u64) -> StoreError {
    for (fault, slot) in faults {
        match *fault {
            SlotFault::Version(found) => return StoreError::Version { found, known: VERSION },
            SlotFault::Features(bits) => return StoreError::Features { bits },
            SlotFault::Geometry if slot.length.get() > medium => {
                return StoreError::Truncated { pool: slot.length.get(), medium };
            }
            _ => {}
        }
    }
    if faults.iter().all(|(fault, _)| *fault == SlotFault::NoMagic) {
        return StoreError::NotAPool;
    }
    StoreError::damaged(crate::error::Part::Superblock, superblock::SLOTS[0])
}

/// A mutex whose poisoning (a panic elsewhere) does not spread: every guarded state here is whole
/// between statements that can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
