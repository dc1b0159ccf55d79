use indelible_store::medium::{
    Capabilities, Device, Extended, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError,
    Transfers,
};
use std::ops::{Deref, Range};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub trait Hook: Send + Sync {
    fn before_read(&self) {}

    fn reads(&self, _: Range<u64>) {}

    /// Replaces [`Medium::write_durable`].
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        under.write_durable(offset, bytes)
    }

    /// Replaces [`Medium::check_writeback`].
    fn check_writeback(&self, under: &dyn Device) -> Result<(), Fatal> {
        under.check_writeback()
    }

    fn locking(&self, _: LockKey) {}

    fn unlocked(&self, _: LockKey) {}
}

/// See the module. It dereferences to its hook.
pub struct Hooked<H> {
    under: Arc<dyn Device>,
    hook: H,
}

impl<H: Hook> Hooked<H> {
    #[must_use]
    pub fn new(under: Arc<dyn Device>, hook: H) -> Arc<Hooked<H>> {
        Arc::new(Hooked { under, hook })
    }
}

impl<H> Deref for Hooked<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.hook
    }
}

impl<H: Hook> Medium for Hooked<H> {
    fn len(&self) -> u64 {
        self.under.len()
    }
    fn read_only(&self) -> bool {
        self.under.read_only()
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.hook.before_read();
        self.hook.reads(offset..offset + buf.len() as u64);
        self.under.read(offset, buf)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.under.write(offset, bytes)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.hook.write_durable(&*self.under, offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        self.under.barrier()
    }
    fn check_writeback(&self) -> Result<(), Fatal> {
        self.hook.check_writeback(&*self.under)
    }
    fn check_barriers(&self) -> Result<(), Fatal> {
        self.under.check_barriers()
    }
    fn unwritten(&self, offset: u64, len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        self.under.unwritten(offset, len)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.under.zero(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.under.reserve(offset, len)
    }
    fn keep_near(&self, offset: u64, len: u64) {
        self.under.keep_near(offset, len);
    }
    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        self.under.extend(len)
    }
    fn discard(&self, offset: u64, len: u64) {
        self.under.discard(offset, len);
    }
    fn shared_word(&self, offset: u64) -> Option<&AtomicU64> {
        self.under.shared_word(offset)
    }
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

impl<H: Hook> Locks for Hooked<H> {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        self.hook.locking(key);
        self.under.try_lock(key, mode)
    }
    fn unlock(&self, key: LockKey) {
        self.under.unlock(key);
        self.hook.unlocked(key);
    }
    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.under.probe(key)
    }
    fn pause(&self, moment: Duration) {
        self.under.pause(moment);
    }
}

type Event = Box<dyn FnOnce() + Send>;

/// An action of another process before a chosen read, without another thread.
#[derive(Default)]
pub struct BeforeRead {
    planned: Mutex<Option<(u64, Event)>>,
}

impl BeforeRead {
    /// Plans `event` before the `nth` read from now on, counted from 0.
    pub fn plan(&self, nth: u64, event: impl FnOnce() + Send + 'static) {
        *self.planned.lock().unwrap_or_else(PoisonError::into_inner) = Some((nth, Box::new(event)));
    }

    pub fn is_due(&self) -> bool {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

impl Hook for BeforeRead {
    fn before_read(&self) {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
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
