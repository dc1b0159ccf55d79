//! A medium that waits for a model's time after each operation of the one beneath. It offers no
//! mapped memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indelible_store::medium::{
    Capabilities, Device, Extended, Fatal, LockKey, LockMode, LockTable, Locks, Medium, MediumError, Process,
    ReserveError, Transfers,
};

use super::model::{MediumModel, Traffic};
use crate::sys::sync::AtomicU64;

pub(super) struct ModelledMedium {
    beneath: Arc<dyn Device>,
    traffic: Traffic,
}

impl ModelledMedium {
    pub(super) fn new(beneath: Arc<dyn Device>, model: MediumModel) -> ModelledMedium {
        ModelledMedium { beneath, traffic: Traffic::new(model) }
    }
}

impl Medium for ModelledMedium {
    fn len(&self) -> u64 {
        self.beneath.len()
    }

    fn read_only(&self) -> bool {
        self.beneath.read_only()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let begin = Instant::now();
        self.beneath.read(offset, buf)?;
        self.traffic.read(begin, offset, buf.len() as u64);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.write(offset, bytes)?;
        self.traffic.write(begin, offset, bytes.len() as u64);
        Ok(())
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.stream(offset, bytes)?;
        self.traffic.write(begin, offset, bytes.len() as u64);
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.copy(from, to, len)?;
        self.traffic.read(begin, from, len as u64);
        self.traffic.write(Instant::now(), to, len as u64);
        Ok(())
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.write_durable(offset, bytes)?;
        self.traffic.write_durable(begin, offset, bytes.len() as u64);
        Ok(())
    }

    fn barrier(&self) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.barrier()?;
        self.traffic.barrier(begin);
        Ok(())
    }

    fn check_writeback(&self) -> Result<(), Fatal> {
        self.beneath.check_writeback()
    }

    fn check_barriers(&self) -> Result<(), Fatal> {
        self.beneath.check_barriers()
    }

    fn unwritten(&self, offset: u64, len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        self.beneath.unwritten(offset, len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.zero(offset, len)?;
        self.traffic.write(begin, offset, 0);
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.beneath.reserve(offset, len)
    }

    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.beneath.prepare(offset, len)
    }

    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        self.beneath.extend(len)
    }

    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let begin = Instant::now();
        self.beneath.persist(offset, len)?;
        self.traffic.write_durable(begin, offset, len);
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) {
        self.beneath.discard(offset, len);
    }

    fn shared_word(&self, offset: u64) -> Option<&AtomicU64> {
        self.beneath.shared_word(offset)
    }

    fn capabilities(&self) -> Capabilities {
        self.beneath.capabilities()
    }

    fn transfers(&self) -> Transfers {
        self.beneath.transfers()
    }

    fn verify(&self) -> Result<(), MediumError> {
        self.beneath.verify()
    }
}

impl Locks for ModelledMedium {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.beneath.try_lock(key, mode)
    }

    fn unlock(&self, key: LockKey) {
        self.beneath.unlock(key);
    }

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.beneath.probe(key)
    }

    fn may_have_locks(&self, from: LockKey, to: LockKey) -> Result<bool, MediumError> {
        self.beneath.may_have_locks(from, to)
    }

    fn holder(&self, key: LockKey) -> Option<Process> {
        self.beneath.holder(key)
    }

    fn table(&self) -> LockTable {
        self.beneath.table()
    }

    fn pause(&self, moment: Duration) {
        self.beneath.pause(moment);
    }

    fn process(&self, pid: u32) -> Process {
        self.beneath.process(pid)
    }
}
