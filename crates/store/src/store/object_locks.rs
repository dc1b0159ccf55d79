//! Object locks: the objects that this process has locked, and how.
//!
//! The kernel's lock is between processes; threads of one process share it, so that the rule of one
//! writer or many readers (S0.11) is kept here within the process.

use super::{Store, lock};
use crate::error::{Holder, Result, StoreError};
use crate::format::entry::STATE_W;
use crate::medium::{LockKey, LockMode};
use crate::mutant::Mutant;
use crate::table::Located;
use std::collections::HashMap;
use std::sync::Arc;

/// Object locks of this process: entry offset → readers, 0 for the writer.
#[derive(Default)]
pub(super) struct ObjectLocks(HashMap<u64, usize>);

impl ObjectLocks {
    /// Readers of the object in this process, 0 if it writes, `None` if it does not have it.
    pub(super) fn readers(&self, entry: u64) -> Option<usize> {
        self.0.get(&entry).copied()
    }
}

/// One object's lock; dropping it gives it up.
pub(super) struct ObjectLock {
    store: Arc<Store>,
    entry: u64,
}

impl ObjectLock {
    /// Takes the lock of `object`; the error names its holder.
    pub(super) fn take(store: &Arc<Store>, object: &Located, mode: LockMode) -> Result<ObjectLock> {
        let mut object_locks = lock(&store.object_locks);
        let own = object_locks.0.get(&object.offset).copied();
        match (own, mode) {
            (Some(readers), LockMode::Shared) if readers > 0 => {
                object_locks.0.insert(object.offset, readers + 1);
            }
            (Some(readers), _) => {
                return Err(StoreError::Held { holder: Holder::Own { writer: readers == 0 } });
            }
            (None, _) => {
                let key = LockKey::Object(object.offset);
                if !Mutant::Unlocked.is_on() && !store.device.try_lock(key, mode)? {
                    let writer = !matches!(store.device.probe(key), Ok(Some(LockMode::Shared)));
                    return Err(StoreError::Held { holder: store.holder_of(object, writer) });
                }
                object_locks.0.insert(object.offset, usize::from(mode == LockMode::Shared));
            }
        }
        Ok(ObjectLock { store: store.clone(), entry: object.offset })
    }
}

impl Drop for ObjectLock {
    fn drop(&mut self) {
        let mut object_locks = lock(&self.store.object_locks);
        match object_locks.0.get_mut(&self.entry) {
            Some(readers) if *readers > 1 => *readers -= 1,
            _ => {
                object_locks.0.remove(&self.entry);
                self.store.device.unlock(LockKey::Object(self.entry));
            }
        }
    }
}

impl Store {
    /// The other process that has the object, as writer or reader: a writer is known by the table, unless it is of
    /// another pid namespace, others by their locks.
    pub(super) fn holder_of(&self, object: &Located, writer: bool) -> Holder {
        let recorded = (writer && object.entry.state == STATE_W).then(|| object.entry.pid.get());
        let recorded = recorded.filter(|pid| *pid != 0);
        // A pid means that process only in the boot and namespace in which it was given.
        if let Some(pid) = recorded.filter(|_| object.entry.boot == self.identity.realm()) {
            return Holder::Process { process: self.device.process(pid), writer };
        }
        match (self.device.holder(LockKey::Object(object.offset)), recorded) {
            (Some(process), _) => Holder::Process { process, writer },
            (None, Some(pid)) => Holder::Elsewhere { pid, writer },
            (None, None) => Holder::Unknown,
        }
    }
}
