//! A medium that remembers whether a barrier failed.
//!
//! What was pending at a failed barrier may be lost even if a later barrier succeeds: the system
//! reports the failure once, to whichever thread asked. A barrier speaks for all lanes of the process
//! and for its table pages, so that all of them must stop trusting what they wrote before.

use super::{Device, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError};
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::sync::Arc;

/// See the module.
pub(crate) struct Guard {
    under: Arc<dyn Device>,
    failures: AtomicU64,
    /// Held during a barrier, so that one that fails is counted before another can succeed.
    order: Mutex<()>,
}

impl Guard {
    pub(crate) fn new(under: Arc<dyn Device>) -> Self {
        Guard { under, failures: AtomicU64::new(0), order: Mutex::new(()) }
    }

    /// Grows when writes of this process may have been lost: what was written before then must be
    /// written again before it is relied on.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// Counts a failure before anybody learns of it.
    fn noted(&self, result: Result<(), Fatal>) -> Result<(), Fatal> {
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Notes that what this process wrote can no longer be relied on.
    pub(crate) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::AcqRel);
    }
}

impl Medium for Guard {
    fn len(&self) -> u64 {
        self.under.len()
    }
    fn read_only(&self) -> bool {
        self.under.read_only()
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.under.read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.under.write(offset, bytes)
    }
    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.under.stream(offset, bytes)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.noted(self.under.write_durable(offset, bytes))
    }
    fn barrier(&self) -> Result<(), Fatal> {
        let _order = self.order.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if Mutant::BarrierRetried.is_on() {
            return self.under.barrier().or_else(|_| self.under.barrier());
        }
        self.under.barrier().map_err(|error| {
            if !Mutant::FailureNotShared.is_on() {
                self.fail();
            }
            error
        })
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.under.zero(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.under.reserve(offset, len)
    }
    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.under.prepare(offset, len)
    }
    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.noted(self.under.persist(offset, len))
    }
    fn discard(&self, offset: u64, len: u64) {
        self.under.discard(offset, len);
    }
    fn tear_unit(&self) -> usize {
        self.under.tear_unit()
    }
    fn prefers_group_commit(&self) -> bool {
        self.under.prefers_group_commit()
    }
    fn verify(&self) -> Result<(), MediumError> {
        self.under.verify()
    }
}

impl Locks for Guard {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.under.try_lock(key, mode)
    }
    fn unlock(&self, key: LockKey) {
        self.under.unlock(key);
    }
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.under.probe(key)
    }

    fn holder(&self, key: LockKey) -> Option<u32> {
        self.under.holder(key)
    }
}
