use indelible_store::medium::{
    Capabilities, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

const OPERATIONS: u64 = 1 << 20;
const LAPS: u64 = 1 << 12;

#[derive(Clone, Default)]
struct State {
    changed: HashMap<u64, Box<[u8; PAGE as usize]>>,
    operations: u64,
    bytes: u64,
    writes: u64,
}

/// A private image in memory: locks are always free.
pub struct Image {
    base: Arc<[u8]>,
    state: Mutex<State>,
}

impl Image {
    #[must_use]
    pub fn new(base: Arc<[u8]>) -> Image {
        assert!((base.len() as u64).is_multiple_of(PAGE), "an image has whole pages");
        Image { base, state: Mutex::default() }
    }

    #[must_use]
    pub fn copy(&self) -> Image {
        let changed = self.state().changed.clone();
        Image { base: self.base.clone(), state: Mutex::new(State { changed, ..State::default() }) }
    }

    /// Takes the contents of another image of the same base.
    pub fn take(&self, other: &Image) {
        assert!(Arc::ptr_eq(&self.base, &other.base), "images of different pools");
        let changed = other.state().changed.clone();
        self.state().changed = changed;
    }

    pub fn flip(&self, byte: u64, bit: u32) {
        let mut old = [0];
        self.get(byte, &mut old);
        self.put(byte, &[old[0] ^ 1 << bit]);
    }

    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    pub fn get(&self, offset: u64, buf: &mut [u8]) {
        assert!(self.holds(offset, buf.len() as u64), "{} bytes at {offset}", buf.len());
        let state = self.state();
        let mut at = offset;
        let mut rest = buf;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let step = rest.len().min(PAGE as usize - within);
            let (head, tail) = rest.split_at_mut(step);
            match state.changed.get(&page) {
                Some(bytes) => head.copy_from_slice(&bytes[within..within + step]),
                None => head.copy_from_slice(&self.base[at as usize..at as usize + step]),
            }
            (rest, at) = (tail, at + step as u64);
        }
    }

    pub fn put(&self, offset: u64, bytes: &[u8]) {
        assert!(self.holds(offset, bytes.len() as u64), "{} bytes at {offset}", bytes.len());
        let mut state = self.state();
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let step = rest.len().min(PAGE as usize - within);
            let (head, tail) = rest.split_at(step);
            let place = state.changed.entry(page).or_insert_with(|| {
                let start = (page * PAGE) as usize;
                let mut copy = Box::new([0; PAGE as usize]);
                copy.copy_from_slice(&self.base[start..start + PAGE as usize]);
                copy
            });
            place[within..within + step].copy_from_slice(head);
            (rest, at) = (tail, at + step as u64);
        }
    }

    fn holds(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.base.len() as u64)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, offset: u64, len: u64, write: bool) -> Result<(), MediumError> {
        let mut state = self.state();
        state.operations += 1;
        state.bytes = state.bytes.saturating_add(len);
        state.writes += u64::from(write);
        let size = self.base.len() as u64;
        assert!(state.operations <= OPERATIONS, "a hang: {OPERATIONS} operations on {size} bytes");
        assert!(state.bytes <= LAPS * size, "a hang: {} bytes asked of {size}", state.bytes);
        match self.holds(offset, len) {
            true => Ok(()),
            false => Err(MediumError::OutOfBounds { offset, len, size }),
        }
    }
}

impl Medium for Image {
    fn len(&self) -> u64 {
        self.base.len() as u64
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.enter(offset, buf.len() as u64, false)?;
        self.get(offset, buf);
        Ok(())
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.enter(offset, bytes.len() as u64, true)?;
        self.put(offset, bytes);
        Ok(())
    }
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }
    fn barrier(&self) -> Result<(), Fatal> {
        Ok(self.enter(0, 0, false)?)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.enter(offset, len, true)?;
        (offset..offset + len)
            .step_by(PAGE as usize)
            .for_each(|at| self.put(at, &[0; PAGE as usize][..PAGE.min(offset + len - at) as usize]));
        Ok(())
    }
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        Ok(self.enter(offset, len, false)?)
    }
    fn discard(&self, _offset: u64, _len: u64) {}
    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }
    fn verify(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Locks for Image {
    fn try_lock(&self, _key: LockKey, _mode: LockMode) -> Result<bool, MediumError> {
        Ok(true)
    }
    fn unlock(&self, _key: LockKey) {}
    fn probe(&self, _key: LockKey) -> Result<Option<LockMode>, MediumError> {
        Ok(None)
    }
}
