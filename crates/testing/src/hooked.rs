//! A medium on which something happens at a chosen read: what another process does in between, without another thread.

use crate::SimMedium;
use indelible_store::medium::{Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError};
use std::sync::{Mutex, PoisonError};

type Event = Box<dyn FnOnce() + Send>;

/// A [`SimMedium`] that counts down its reads.
pub struct Hooked {
    under: SimMedium,
    /// Reads to go, and what happens before the last of them.
    event: Mutex<Option<(u64, Event)>>,
}

impl Hooked {
    /// `medium`, on which nothing is planned.
    #[must_use]
    pub fn new(medium: SimMedium) -> Hooked {
        Hooked { under: medium, event: Mutex::new(None) }
    }

    /// `event` happens before the read number `nth` from now on, counted from 0.
    pub fn before_read(&self, nth: u64, event: impl FnOnce() + Send + 'static) {
        *self.event.lock().unwrap_or_else(PoisonError::into_inner) = Some((nth, Box::new(event)));
    }

    /// Whether what was planned is still to come; it is dropped.
    pub fn is_due(&self) -> bool {
        self.event.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    fn count_down(&self) {
        let mut planned = self.event.lock().unwrap_or_else(PoisonError::into_inner);
        let due = match planned.take() {
            Some((0, event)) => Some(event),
            Some((left, event)) => {
                *planned = Some((left - 1, event));
                None
            }
            None => None,
        };
        drop(planned);
        if let Some(event) = due {
            event();
        }
    }
}

impl Medium for Hooked {
    fn len(&self) -> u64 {
        self.under.len()
    }
    fn read_only(&self) -> bool {
        self.under.read_only()
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.count_down();
        self.under.read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.under.write(offset, bytes)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.under.write_durable(offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        self.under.barrier()
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.under.zero(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.under.reserve(offset, len)
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

impl Locks for Hooked {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.under.try_lock(key, mode)
    }
    fn unlock(&self, key: LockKey) {
        self.under.unlock(key);
    }
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.under.probe(key)
    }
}
