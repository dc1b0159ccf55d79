use super::lock;
use crate::error::Result;
use crate::medium::{Device, LockKey, LockMode};
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// By index, with a unique number: threads share the kernel lock.
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
    pub(in crate::store) fn all(&self) -> Vec<Arc<L>> {
        lock(&self.held).values().filter_map(|(_, lane)| lane.upgrade()).collect()
    }

    pub(in crate::store) fn get(&self, index: u32) -> Option<Arc<L>> {
        lock(&self.held).get(&index).and_then(|(_, lane)| lane.upgrade())
    }

    /// `None`: in use.
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
        // A lane being dropped lost its lock.
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        held.insert(index, (number, Weak::new()));
        Ok(Some(LaneLock { locks: self.clone(), device: device.clone(), index, number }))
    }
}

pub(in crate::store) struct LaneLock<L> {
    locks: Arc<LaneLocks<L>>,
    device: Arc<dyn Device>,
    pub(in crate::store) index: u32,
    number: u64,
}

impl<L> LaneLock<L> {
    pub(in crate::store) fn is_of(&self, lane: &Arc<L>) {
        lock(&self.locks.held).insert(self.index, (self.number, Arc::downgrade(lane)));
    }

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
