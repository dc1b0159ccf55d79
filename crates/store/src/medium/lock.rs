//! Locks between the processes that share a pool. They die with their holder.

use super::{LockTable, MediumError, Process};
use std::time::Duration;

/// The subject of a lock. Keys are mapped to byte offsets far beyond any pool, so that a lock never
/// covers data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKey {
    /// The object table, its lane and the lane directory.
    Table,
    /// One lane, by index.
    Lane(u32),
    /// One object, by the offset of its table entry.
    Object(u64),
    /// The primaries of the objects on a lane: shared by the process that changes them, exclusively
    /// by one that holds them still. Only where the pool has no
    /// [`shared_word`](super::Medium::shared_word).
    Apply(u32),
    /// The right to hold those primaries still, exclusively from the moment that it is wanted.
    ApplyGate(u32),
}

impl LockKey {
    /// The byte that stands for this key: above 2^62, where no pool has data.
    #[must_use]
    pub fn byte(self) -> u64 {
        const BASE: u64 = 1 << 62;
        match self {
            LockKey::Table => BASE,
            LockKey::Lane(index) => BASE + 1 + u64::from(index),
            LockKey::Object(entry) => BASE + (1 << 33) + entry,
            LockKey::Apply(lane) => BASE + (1 << 61) + u64::from(lane),
            LockKey::ApplyGate(lane) => BASE + (1 << 61) + (1 << 33) + u64::from(lane),
        }
    }
}

/// How a key is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Many holders, none exclusive.
    Shared,
    /// One holder.
    Exclusive,
}

/// Locks that never wait. One holder is one open medium: threads that share it share its locks.
pub trait Locks: Send + Sync {
    /// Takes the lock, or changes the mode of one already held. `Ok(false)`: another holder is in
    /// the way (a held lock then keeps its mode).
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError>;

    /// Releases the lock; nothing happens if it is not held.
    fn unlock(&self, key: LockKey);

    /// The strongest mode in which *another* holder has the key; `None`: no holder.
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError>;

    /// Whether another holder may have a lock from one key's byte to the other's: one call for many
    /// objects, as a pool has few locks.
    fn may_have_locks(&self, _from: LockKey, _to: LockKey) -> Result<bool, MediumError> {
        Ok(true)
    }

    /// A process that has the lock, for messages to people. `None` where the system cannot tell.
    fn holder(&self, _key: LockKey) -> Option<Process> {
        None
    }

    /// All locks with their holders, for messages to people. It costs a look at every process.
    fn table(&self) -> LockTable {
        LockTable::default()
    }

    /// Lets a moment pass before a lock is asked for again. A simulation lets its other processes
    /// work instead.
    fn pause(&self, moment: Duration) {
        std::thread::sleep(moment);
    }

    /// Describes a process of this pid namespace.
    fn process(&self, pid: u32) -> Process {
        Process::new(pid)
    }
}
