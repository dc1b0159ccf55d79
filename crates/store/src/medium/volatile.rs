//! A medium in plain memory, for unit tests and Miri.

use super::{Capabilities, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError, Transfers};
use std::sync::Mutex;

/// Bytes in memory.
pub struct VolatileMedium {
    bytes: Mutex<Vec<u8>>,
    transfers: Transfers,
}

impl VolatileMedium {
    /// `len` zero bytes.
    #[must_use]
    pub fn new(len: u64) -> Self {
        Self::with_transfers(len, Transfers::SHIPPED)
    }

    /// [`new`](VolatileMedium::new) with other sizes.
    #[must_use]
    pub fn with_transfers(len: u64, transfers: Transfers) -> Self {
        VolatileMedium { bytes: Mutex::new(vec![0; len as usize]), transfers }
    }

    fn with<R>(&self, offset: u64, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> Result<R, MediumError> {
        let mut bytes = self.bytes.lock().unwrap_or_else(|e| e.into_inner());
        let size = bytes.len() as u64;
        let range = usize::try_from(offset).ok().and_then(|from| Some(from..from.checked_add(len)?));
        match range.and_then(|range| bytes.get_mut(range)) {
            Some(place) => Ok(f(place)),
            None => Err(MediumError::OutOfBounds { offset, len: len as u64, size }),
        }
    }
}

impl Medium for VolatileMedium {
    fn len(&self) -> u64 {
        self.bytes.lock().unwrap_or_else(|e| e.into_inner()).len() as u64
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.with(offset, buf.len(), |place| buf.copy_from_slice(place))
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        Ok(self.with(offset, bytes.len(), |place| place.copy_from_slice(bytes))?)
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        Ok(())
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        Ok(self.with(offset, len as usize, |place| place.fill(0))?)
    }
    fn reserve(&self, _offset: u64, _len: u64) -> Result<(), ReserveError> {
        Ok(())
    }
    fn discard(&self, _offset: u64, _len: u64) {}
    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }
    fn transfers(&self) -> Transfers {
        self.transfers
    }
    fn verify(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Locks for VolatileMedium {
    fn try_lock(&self, _key: LockKey, _mode: LockMode) -> Result<bool, MediumError> {
        Ok(true)
    }
    fn unlock(&self, _key: LockKey) {}
    fn probe(&self, _key: LockKey) -> Result<Option<LockMode>, MediumError> {
        Ok(None)
    }
}
