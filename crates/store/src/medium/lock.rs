//! Locks between processes that share a pool. They end with their holder.

use super::{LockTable, MediumError, Process};
use crate::format::entry;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Subject of a lock, mapped to a byte far beyond any pool's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKey {
    /// The object table, its lane and the lane directory.
    Table,
    /// One lane, by index.
    Lane(u32),
    /// One object, by the offset of its table entry.
    Object(u64),
    /// The primaries of a lane's objects: shared by the process that changes them, exclusive for a
    /// hold; only without [`shared_word`](super::Medium::shared_word).
    Apply(u32),
    /// The right to hold these primaries still, exclusive from the first attempt.
    ApplyGate(u32),
}

impl LockKey {
    /// The key's byte, above 2^62.
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

    /// The bytes to lock: an object's reach up to the next entry's. The kernel makes one record of
    /// a holder's adjacent locks, and walks the list of records at each call.
    #[must_use]
    pub fn bytes(self) -> RangeInclusive<u64> {
        let others = match self {
            LockKey::Object(_) => entry::SIZE - 1,
            _ => 0,
        };
        self.byte()..=self.byte() + others
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

/// Locks that never wait. An open medium is one holder, whose threads share its locks.
pub trait Locks: Send + Sync {
    /// Takes the lock, or changes its mode. `Ok(false)`: another holder is in the way; a held lock
    /// keeps its mode.
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError>;

    /// Releases the lock, if held.
    fn unlock(&self, key: LockKey);

    /// The strongest mode of *another* holder; `None`: no other holder.
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError>;

    /// Whether other holders may have locks between the bytes of two keys: one call for many
    /// objects.
    fn may_have_locks(&self, _from: LockKey, _to: LockKey) -> Result<bool, MediumError> {
        Ok(true)
    }

    /// A holder of the lock, for messages; `None`: unknown.
    fn holder(&self, _key: LockKey) -> Option<Process> {
        None
    }

    /// All locks with holders, for messages. Inspects every process.
    fn table(&self) -> LockTable {
        LockTable::default()
    }

    /// Waits before another attempt; a simulation runs its other processes.
    fn pause(&self, moment: Duration) {
        std::thread::sleep(moment);
    }

    /// Describes a process of this pid namespace.
    fn process(&self, pid: u32) -> Process {
        Process::new(pid)
    }
}
