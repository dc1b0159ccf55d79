//! Lane locks: the lanes that this process has locked.

use super::lock;
use crate::error::Result;
use crate::medium::{Device, LockKey, LockMode};
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The lanes of this process, by index, each with a number of its own. Threads share the kernel's
/// lock on a lane, so that the thread that has it is recorded here.
pub(in crate::store) struct LaneLocks<L> {
    held: Mutex<BTreeMap<u32, (u64, Weak<L>)>>,
    taken: AtomicU64,
}

impl<L> Default for LaneLocks<L> {
    fn default() -> Self {
        LaneLocks { held: Mutex::default(), taken: AtomicU64::default() }
    }
}

impl<L> LaneLocks<L> {
    /// The lanes in use.
    pub(in crate::store) fn all(&self) -> Vec<Arc<L>> {
        lock(&self.held).values().filter_map(|(_, lane)| lane.upgrade()).collect()
    }

    /// Lane `index`, if this process uses it.
    pub(in crate::store) fn get(&self, index: u32) -> Option<Arc<L>> {
        lock(&self.held).get(&index).and_then(|(_, lane)| lane.upgrade())
    }

    /// Takes the lock on lane `index`; `None` if it is in use, here or elsewhere.
    pub(in crate::store) fn take(
        self: &Arc<Self>,
        device: &Arc<dyn Device>,
        index: u32,
    ) -> Result<Option<LaneLock<L>>> {
        let mut held = lock(&self.held);
        let in_use = held.get(&index).is_some_and(|(_, lane)| lane.strong_count() > 0);
        if in_use {
            return Ok(None);
        }
        // Rule L1 of docs/protocol.md.
        if !Mutant::LaneUnclaimed.is_on() && !device.try_lock(LockKey::Lane(index), LockMode::Exclusive)? {
            return Ok(None);
        }
        // A lane of ours that is just being dropped has lost its lock to this one.
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        held.insert(index, (number, Weak::new()));
        Ok(Some(LaneLock { locks: self.clone(), device: device.clone(), index, number }))
    }
}

/// The lock on a lane; dropping it gives it up.
pub(in crate::store) struct LaneLock<L> {
    locks: Arc<LaneLocks<L>>,
    device: Arc<dyn Device>,
    pub(in crate::store) index: u32,
    number: u64,
}

impl<L> LaneLock<L> {
    /// Records `lane` as the one that has the lock: others find it by its index.
    pub(in crate::store) fn is_of(&self, lane: &Arc<L>) {
        lock(&self.locks.held).insert(self.index, (self.number, Arc::downgrade(lane)));
    }

    /// Gives the lock up, after `last`, unless a later lock took it over.
    pub(in crate::store) fn release(&self, last: impl FnOnce()) {
        let mut held = lock(&self.locks.held);
        if held.get(&self.index).is_some_and(|(number, _)| *number == self.number) {
            last();
            held.remove(&self.index);
            self.device.unlock(LockKey::Lane(self.index));
        }
    }
}

impl<L> Drop for LaneLock<L> {
    fn drop(&mut self) {
        self.release(|| {});
    }
}
