//! Object locks of this process.
//!
//! Threads share the kernel's lock, so this keeps one writer or many readers within the process.

use super::lock;
use crate::error::{Holder, Result, StoreError};
use crate::format::entry::STATE_W;
use crate::medium::{Device, LockKey, LockMode, LockTable, Others};
use crate::mutant::Mutant;
use crate::sync::Mutex;
use crate::table::Located;
use std::collections::HashMap;
use std::sync::Arc;

pub(in crate::store) struct ObjectLocks {
    device: Arc<dyn Device>,
    /// Boot and namespace of meaningful process IDs.
    realm: [u8; 16],
    /// Entry offset → readers, 0 for the writer.
    held: Mutex<HashMap<u64, usize>>,
}

impl ObjectLocks {
    pub(in crate::store) fn new(device: Arc<dyn Device>, realm: [u8; 16]) -> Arc<Self> {
        Arc::new(ObjectLocks { device, realm, held: Mutex::default() })
    }

    /// 0: it writes; `None`: not attached.
    pub(in crate::store) fn readers(&self, entry: u64) -> Option<usize> {
        lock(&self.held).get(&entry).copied()
    }

    /// One holder, and the others. The table names writers of this pid namespace, locks in `table`
    /// name readers.
    pub(in crate::store) fn holders_of<'t>(
        &self,
        object: &Located,
        writer: bool,
        table: impl FnOnce() -> &'t LockTable,
    ) -> (Holder, Others) {
        let own = self.readers(object.offset).map(|readers| readers == 0);
        if writer {
            let holder = own.map_or_else(|| self.writer_of(object), |writer| Holder::Own { writer });
            return (holder, Others::default());
        }
        let (mut pids, unseen) = table().holders(LockKey::Object(object.offset).byte());
        let (holder, unseen) = match own {
            Some(writer) => {
                pids.retain(|pid| *pid != std::process::id());
                (Holder::Own { writer }, unseen)
            }
            None if pids.is_empty() => (Holder::Unknown, unseen.saturating_sub(1)),
            None => (Holder::Process { process: self.device.process(pids.remove(0)), writer }, unseen),
        };
        let processes = pids.into_iter().map(|pid| self.device.process(pid)).collect();
        (holder, Others { processes, unseen })
    }

    pub(in crate::store) fn held(&self, object: &Located, writer: bool) -> StoreError {
        let table = std::cell::OnceCell::new();
        let (holder, others) = self.holders_of(object, writer, || table.get_or_init(|| self.device.table()));
        // Lock and state appear in one step.
        StoreError::Held { holder, others, passing: writer && object.entry.state != STATE_W }
    }

    fn writer_of(&self, object: &Located) -> Holder {
        let writer = true;
        let recorded = (object.entry.state == STATE_W).then(|| object.entry.pid.get());
        let recorded = recorded.filter(|pid| *pid != 0);
        // A pid is meaningful only there.
        if let Some(pid) = recorded.filter(|_| object.entry.boot == self.realm) {
            return Holder::Process { process: self.device.process(pid), writer };
        }
        match (self.device.holder(LockKey::Object(object.offset)), recorded) {
            (Some(process), _) => Holder::Process { process, writer },
            (None, Some(pid)) => Holder::Elsewhere { pid, writer },
            (None, None) => Holder::Unknown,
        }
    }
}

pub(in crate::store) struct ObjectLock {
    locks: Arc<ObjectLocks>,
    entry: u64,
}

impl ObjectLock {
    pub(in crate::store) fn take(
        locks: &Arc<ObjectLocks>,
        object: &Located,
        mode: LockMode,
    ) -> Result<ObjectLock> {
        if let Some(lock) = Self::try_take(locks, object, mode)? {
            return Ok(lock);
        }
        let own = locks.readers(object.offset).map(|readers| readers == 0);
        let writer = || {
            let key = LockKey::Object(object.offset);
            !matches!(locks.device.probe(key), Ok(Some(LockMode::Shared)))
        };
        Err(locks.held(object, own.unwrap_or_else(writer)))
    }

    pub(in crate::store) fn try_take(
        locks: &Arc<ObjectLocks>,
        object: &Located,
        mode: LockMode,
    ) -> Result<Option<ObjectLock>> {
        let mut held = lock(&locks.held);
        let own = held.get(&object.offset).copied();
        match (own, mode) {
            (Some(readers), LockMode::Shared) if readers > 0 => {
                held.insert(object.offset, readers + 1);
            }
            (Some(_), _) => return Ok(None),
            (None, _) => {
                let key = LockKey::Object(object.offset);
                if !Mutant::Unlocked.is_on() && !locks.device.try_lock(key, mode)? {
                    return Ok(None);
                }
                held.insert(object.offset, usize::from(mode == LockMode::Shared));
            }
        }
        Ok(Some(ObjectLock { locks: locks.clone(), entry: object.offset }))
    }

    pub(in crate::store) fn share(&self) -> Result<()> {
        let mut held = lock(&self.locks.held);
        if held.get(&self.entry) == Some(&0) {
            let key = LockKey::Object(self.entry);
            if !Mutant::Unlocked.is_on() {
                self.locks.device.try_lock(key, LockMode::Shared)?;
            }
            held.insert(self.entry, 1);
        }
        Ok(())
    }
}

impl Drop for ObjectLock {
    fn drop(&mut self) {
        let mut held = lock(&self.locks.held);
        match held.get_mut(&self.entry) {
            Some(readers) if *readers > 1 => *readers -= 1,
            _ => {
                held.remove(&self.entry);
                self.locks.device.unlock(LockKey::Object(self.entry));
            }
        }
    }
}
