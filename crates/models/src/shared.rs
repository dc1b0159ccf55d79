//! A medium that several stores, of one process or of several, have open.

use crate::medium::volatile::VolatileMedium;
use crate::medium::{Capabilities, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError};
use std::sync::Arc;

/// Memory whose durable writes are dear, so that commits are grouped.
pub(crate) struct Shared(pub(crate) Arc<VolatileMedium>);

impl Medium for Shared {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.0.read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.0.write(offset, bytes)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        // Others run while this one waits for the medium.
        loom::thread::yield_now();
        self.0.write_durable(offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        self.0.barrier()
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.0.zero(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.0.reserve(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) {
        self.0.discard(offset, len);
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { tear_unit: 8, ..Capabilities::DISK }
    }
    fn verify(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Locks for Shared {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.0.try_lock(key, mode)
    }
    fn unlock(&self, key: LockKey) {
        self.0.unlock(key);
    }
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.0.probe(key)
    }
}
