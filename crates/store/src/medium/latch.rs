//! The fault latch: knows whether writes of this process to a file may be lost.
//!
//! Linux reports a failed write-back once per file. So a failed change ends the *epoch*: its users
//! (lanes, the table, direct writes, copies) change the medium no more, and a later epoch starts
//! from the bytes that recovery makes durable.
//!
//! A user enters an [`Epoch`] before its first read.
//!
//! Invariants:
//! 1. A failure is counted before its caller, or the next barrier, returns. Barriers run one at a
//!    time, and a successful one waits for overlapping durable writes: these may have got the
//!    report that concerns the barrier's bytes.
//! 2. An epoch whose number is not the count of failures changes nothing on the medium.
//! 3. On media with system write-back, durable writes run one at a time, so that none takes
//!    another's report. Barriers and durable writes may overlap: the medium keeps their reports
//!    apart.
//!
//! A file opened after another got the report gets none. Such a process makes the batches that it
//! finds durable and rewrites their lines before it relies on them (docs/decisions/0003, 0021).

use super::{Capabilities, Device, Extended, Fatal, Medium, MediumError, ReserveError, Transfers};
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use std::ops::Range;
use std::sync::Arc;

pub(crate) struct FaultLatch {
    device: Arc<dyn Device>,
    failures: AtomicU64,
    /// Held during a barrier, until its failure is counted.
    barrier: Mutex<()>,
    /// The same for durable writes.
    durable: Mutex<()>,
}

impl FaultLatch {
    pub(crate) fn new(device: Arc<dyn Device>) -> Arc<Self> {
        let (failures, barrier, durable) = (AtomicU64::new(0), Mutex::new(()), Mutex::new(()));
        Arc::new(FaultLatch { device, failures, barrier, durable })
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Epoch {
        Epoch { number: self.failures.load(Ordering::Acquire), latch: self.clone() }
    }

    #[inline]
    fn note(&self, result: Result<(), Fatal>) -> Result<(), Fatal> {
        let Err(failure) = result else { return Ok(()) };
        self.failures.fetch_add(1, Ordering::AcqRel);
        Err(failure)
    }

    /// Takes and counts the other reports of a counted failure; the caller holds neither lock.
    fn take_reports(&self) {
        let _barrier = lock(&self.barrier);
        let _durable = lock(&self.durable);
        let _ = self.note(self.device.check_barriers());
        let _ = self.note(self.device.check_writeback());
    }

    fn asks_system(&self) -> bool {
        self.device.capabilities().writes_back_later
    }
}

/// The medium until the next failure; see the module.
#[derive(Clone)]
pub(crate) struct Epoch {
    latch: Arc<FaultLatch>,
    number: u64,
}

impl Epoch {
    pub(crate) fn is_over(&self) -> bool {
        self.latch.failures.load(Ordering::Acquire) != self.number
    }

    // Rule L11 of docs/protocol.md.
    fn check(&self) -> Result<(), Fatal> {
        if self.is_over() { Err(Fatal(MediumError::Faulted)) } else { Ok(()) }
    }

    fn change(&self, change: impl FnOnce(&dyn Device) -> Result<(), Fatal>) -> Result<(), Fatal> {
        self.check()?;
        self.latch.note(change(&*self.latch.device))
    }

    #[inline]
    fn reported(&self, done: Result<(), Fatal>) -> Result<(), Fatal> {
        let Err(failure) = done else { return Ok(()) };
        if !Mutant::ReportsLeft.is_on() {
            self.latch.take_reports();
        }
        Err(failure)
    }

    fn claim(&self, claim: impl FnOnce(&dyn Device) -> Result<(), ReserveError>) -> Result<(), ReserveError> {
        self.check()?;
        match claim(&*self.latch.device) {
            Err(ReserveError::Fatal(fatal)) => Ok(self.latch.note(Err(fatal))?),
            done => done,
        }
    }
}

impl Medium for Epoch {
    fn len(&self) -> u64 {
        self.latch.device.len()
    }
    fn read_only(&self) -> bool {
        self.latch.device.read_only()
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.latch.device.read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.change(|device| device.write(offset, bytes))
    }
    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.change(|device| device.stream(offset, bytes))
    }
    fn write_once(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.change(|device| device.write_once(offset, bytes))
    }
    fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Fatal> {
        self.change(|device| device.copy(from, to, len))
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let one = self.latch.asks_system().then(|| lock(&self.latch.durable));
        if Mutant::FaultOfOneWrite.is_on() {
            return self.latch.device.write_durable(offset, bytes);
        }
        let done = self.change(|device| device.write_durable(offset, bytes));
        drop(one);
        self.reported(done)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        let one = lock(&self.latch.barrier);
        if Mutant::BarrierRetried.is_on() {
            return self.latch.device.barrier().or_else(|_| self.latch.device.barrier());
        }
        if Mutant::FailureNotShared.is_on() {
            return self.latch.device.barrier();
        }
        let mut done = self.change(|device| device.barrier());
        if done.is_ok() && self.latch.asks_system() {
            drop(lock(&self.latch.durable));
            done = self.check();
        }
        drop(one);
        self.reported(done)
    }
    fn check_writeback(&self) -> Result<(), Fatal> {
        let one = self.latch.asks_system().then(|| lock(&self.latch.durable));
        let done = self.change(|device| device.check_writeback());
        drop(one);
        self.reported(done)
    }
    fn check_barriers(&self) -> Result<(), Fatal> {
        let one = lock(&self.latch.barrier);
        let done = self.change(|device| device.check_barriers());
        drop(one);
        self.reported(done)
    }
    fn unwritten(&self, offset: u64, len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        self.latch.device.unwritten(offset, len)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let _one = (!self.latch.asks_system()).then(|| lock(&self.latch.durable));
        self.change(|device| device.zero(offset, len))
    }
    fn begin_writeback(&self, offset: u64, len: u64) {
        self.latch.device.begin_writeback(offset, len);
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.claim(|device| device.reserve(offset, len))
    }
    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.claim(|device| device.prepare(offset, len))
    }
    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        let mut extended = Extended { len: self.len(), zeros_from: self.len() };
        self.claim(|device| {
            extended = device.extend(len)?;
            Ok(())
        })?;
        Ok(extended)
    }
    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let one = lock(&self.latch.durable);
        let done = self.change(|device| device.persist(offset, len));
        drop(one);
        self.reported(done)
    }
    fn discard(&self, offset: u64, len: u64) {
        if !self.is_over() {
            self.latch.device.discard(offset, len);
        }
    }
    fn capabilities(&self) -> Capabilities {
        self.latch.device.capabilities()
    }
    fn transfers(&self) -> Transfers {
        self.latch.device.transfers()
    }
    fn verify(&self) -> Result<(), MediumError> {
        self.latch.device.verify()
    }
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
