use crate::medium::volatile::VolatileMedium;
use crate::medium::{Capabilities, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError};
use crate::sync::AtomicU64;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// Memory with expensive durable writes, for grouped commits; or plain memory, with two words for
/// the lane.
///
/// Threads may be interrupted at any read and write if `steps`, else only while a durable write
/// waits.
pub(crate) struct Shared {
    /// Weak: a process that plays dead keeps its store for ever, but not a megabyte per order of
    /// threads.
    memory: Weak<VolatileMedium>,
    words: Option<[AtomicU64; 2]>,
    steps: Option<AtomicU64>,
    /// Durable writes until a failure; `NEVER`: none. Invisible to loom: the order of the writes
    /// decides.
    until_failure: AtomicU32,
}

const NEVER: u32 = u32::MAX;

impl Shared {
    pub(crate) fn new(memory: &Arc<VolatileMedium>) -> Self {
        Shared {
            memory: Arc::downgrade(memory),
            words: None,
            steps: None,
            until_failure: AtomicU32::new(NEVER),
        }
    }

    /// Reads and writes are steps; with a word it is memory.
    pub(crate) fn in_steps(memory: &Arc<VolatileMedium>, word: bool) -> Self {
        let words = word.then(|| [AtomicU64::new(0), AtomicU64::new(0)]);
        Shared { words, steps: Some(AtomicU64::new(0)), ..Self::new(memory) }
    }

    fn memory(&self) -> Arc<VolatileMedium> {
        self.memory.upgrade().expect("the model has it until its last thread ended")
    }

    fn step(&self) {
        if let Some(steps) = &self.steps {
            steps.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn fail_after(&self, writes: u32) {
        self.until_failure.store(writes, Ordering::Relaxed);
    }

    fn fails(&self) -> bool {
        let left = self.until_failure.load(Ordering::Relaxed);
        if left != NEVER {
            self.until_failure.store(left.checked_sub(1).unwrap_or(NEVER), Ordering::Relaxed);
        }
        left == 0
    }
}

impl Medium for Shared {
    fn len(&self) -> u64 {
        self.memory().len()
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.step();
        self.memory().read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.step();
        self.memory().write(offset, bytes)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        loom::thread::yield_now();
        if self.fails() {
            return Err(MediumError::Io(io::Error::other("the disk failed")).into());
        }
        self.memory().write_durable(offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        self.memory().barrier()
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.memory().zero(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.memory().reserve(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) {
        self.memory().discard(offset, len);
    }
    fn capabilities(&self) -> Capabilities {
        let of = if self.words.is_some() { Capabilities::MEMORY } else { Capabilities::DISK };
        Capabilities { tear_unit: 8, ..of }
    }
    fn shared_word(&self, offset: u64) -> Option<&AtomicU64> {
        self.words.as_ref().map(|words| &words[(offset / 8 % 2) as usize])
    }
    fn verify(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Locks for Shared {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.memory().try_lock(key, mode)
    }
    fn unlock(&self, key: LockKey) {
        self.memory().unlock(key);
    }
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.memory().probe(key)
    }
}
