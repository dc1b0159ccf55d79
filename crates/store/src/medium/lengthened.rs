//! A pool whose truncated file reads as long as before.

use super::{
    Capabilities, Device, Fatal, LockKey, LockMode, LockTable, Locks, Medium, MediumError, Process,
    ReserveError, Transfers,
};
use std::sync::Arc;

/// A read-only medium with zeros behind the end of another.
pub struct Lengthened {
    under: Arc<dyn Device>,
    len: u64,
}

impl Lengthened {
    /// The medium, extended to `len` bytes.
    #[must_use]
    pub fn new(under: Arc<dyn Device>, len: u64) -> Self {
        Lengthened { under, len }
    }
}

impl Medium for Lengthened {
    fn len(&self) -> u64 {
        self.len.max(self.under.len())
    }

    fn read_only(&self) -> bool {
        self.under.read_only()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let (len, size) = (buf.len() as u64, self.len());
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(MediumError::OutOfBounds { offset, len, size });
        }
        let there = self.under.len().saturating_sub(offset).min(len) as usize;
        let (there, behind) = buf.split_at_mut(there);
        behind.fill(0);
        if there.is_empty() { Ok(()) } else { self.under.read(offset, there) }
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }

    fn write_durable(&self, _offset: u64, _bytes: &[u8]) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }

    fn barrier(&self) -> Result<(), Fatal> {
        Ok(())
    }

    fn zero(&self, _offset: u64, _len: u64) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }

    fn reserve(&self, _offset: u64, _len: u64) -> Result<(), ReserveError> {
        Err(MediumError::ReadOnly.into())
    }

    fn discard(&self, _offset: u64, _len: u64) {}

    fn capabilities(&self) -> Capabilities {
        self.under.capabilities()
    }

    fn transfers(&self) -> Transfers {
        self.under.transfers()
    }

    fn verify(&self) -> Result<(), MediumError> {
        self.under.verify()
    }
}

impl Locks for Lengthened {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.under.try_lock(key, mode)
    }

    fn unlock(&self, key: LockKey) {
        self.under.unlock(key);
    }

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.under.probe(key)
    }

    fn holder(&self, key: LockKey) -> Option<Process> {
        self.under.holder(key)
    }

    fn table(&self) -> LockTable {
        self.under.table()
    }

    fn process(&self, pid: u32) -> Process {
        self.under.process(pid)
    }
}
