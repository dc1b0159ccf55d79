//! A medium whose writes stay in memory, for dry runs of recovery and checks.

use super::{
    Capabilities, Device, Fatal, LockKey, LockMode, LockTable, Locks, Medium, MediumError, Process,
    ReserveError, Transfers,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const PAGE: u64 = 4096;

/// The pool under private writes.
pub struct Overlay {
    under: Arc<dyn Device>,
    pages: Mutex<BTreeMap<u64, Box<[u8]>>>,
    unread: AtomicBool,
}

impl Overlay {
    /// An overlay without writes.
    #[must_use]
    pub fn new(under: Arc<dyn Device>) -> Self {
        Overlay { under, pages: Mutex::new(BTreeMap::new()), unread: AtomicBool::new(false) }
    }

    /// Whether a read of the pool has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    fn read_under(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.under.read_once(offset, buf).inspect_err(|_| self.unread.store(true, Ordering::Relaxed))
    }

    /// Written pages: offset in the pool, content.
    #[must_use]
    pub fn changed(&self) -> Vec<(u64, Vec<u8>)> {
        let pages = self.pages.lock().unwrap_or_else(|e| e.into_inner());
        pages.iter().map(|(page, bytes)| (*page, bytes.to_vec())).collect()
    }

    fn bounds(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(MediumError::OutOfBounds { offset, len, size: self.len() }),
        }
    }
}

impl Medium for Overlay {
    fn len(&self) -> u64 {
        self.under.len()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.read_under(offset, buf)?;
        let pages = self.pages.lock().unwrap_or_else(|e| e.into_inner());
        let end = offset + buf.len() as u64;
        for (&page, bytes) in pages.range(offset / PAGE * PAGE..end) {
            let (from, to) = (page.max(offset), (page + PAGE).min(end));
            buf[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&bytes[(from - page) as usize..(to - page) as usize]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.bounds(offset, bytes.len() as u64)?;
        let mut pages = self.pages.lock().unwrap_or_else(|e| e.into_inner());
        let end = offset + bytes.len() as u64;
        let mut page = offset / PAGE * PAGE;
        while page < end {
            let slot = match pages.entry(page) {
                std::collections::btree_map::Entry::Occupied(slot) => slot.into_mut(),
                std::collections::btree_map::Entry::Vacant(slot) => {
                    let mut image = vec![0; PAGE.min(self.under.len() - page) as usize];
                    self.read_under(page, &mut image)?;
                    slot.insert(image.into_boxed_slice())
                }
            };
            let (from, to) = (page.max(offset), (page + PAGE).min(end));
            slot[(from - page) as usize..(to - page) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            page += PAGE;
        }
        Ok(())
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }

    fn barrier(&self) -> Result<(), Fatal> {
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        self.bounds(offset, len)?;
        let zeros = vec![0; len.min(1 << 20) as usize];
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(zeros.len() as u64);
            self.write(offset + done, &zeros[..piece as usize])?;
            done += piece;
        }
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        Ok(self.bounds(offset, len)?)
    }

    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        Ok(self.bounds(offset, len)?)
    }

    fn discard(&self, _offset: u64, _len: u64) {}

    fn capabilities(&self) -> Capabilities {
        Capabilities { tear_unit: self.under.capabilities().tear_unit, ..Capabilities::MEMORY }
    }

    fn transfers(&self) -> Transfers {
        self.under.transfers()
    }

    fn verify(&self) -> Result<(), MediumError> {
        self.under.verify()
    }
}

impl Locks for Overlay {
    fn try_lock(&self, _key: LockKey, _mode: LockMode) -> Result<bool, MediumError> {
        Ok(true)
    }

    fn unlock(&self, _key: LockKey) {}

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        self.under.probe(key)
    }

    fn may_have_locks(&self, from: LockKey, to: LockKey) -> Result<bool, MediumError> {
        self.under.may_have_locks(from, to)
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
