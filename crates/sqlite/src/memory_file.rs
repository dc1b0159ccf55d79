//! Journals: files in the memory of the process. A crash needs none, as an object takes itself back
//! to its last psync.

use crate::state::lock;
use indelible::PerProcess;
use std::sync::{Mutex, MutexGuard};

/// Names of super-journals, once for each journal in memory that has the name.
static NAMED: PerProcess<Mutex<Vec<Vec<u8>>>> = PerProcess::new();

pub(crate) fn named() -> MutexGuard<'static, Vec<Vec<u8>>> {
    lock(NAMED.get())
}

/// Whether a journal in memory names this super-journal: its database is not rolled back yet.
pub(crate) fn is_named(name: &[u8]) -> bool {
    named().iter().any(|named| named == name)
}

/// Whether SQLite makes such names of super-journals: they end in `-mj` and nine digits.
fn is_super_journal(bytes: &[u8]) -> bool {
    let Some((_, end)) = bytes.split_last_chunk::<12>() else { return false };
    end.starts_with(b"-mj") && end[3..].iter().all(u8::is_ascii_hexdigit)
}

#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    bytes: Vec<u8>,
    super_journal: Option<Vec<u8>>,
}

impl MemoryFile {
    /// Copies bytes at `offset`, with zeros behind the end. Returns whether the file has all of
    /// them.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let from = self.bytes.len().min(offset as usize);
        let there = (self.bytes.len() - from).min(buffer.len());
        let (bytes, rest) = buffer.split_at_mut(there);
        bytes.copy_from_slice(&self.bytes[from..from + there]);
        rest.fill(0);
        rest.is_empty()
    }

    fn name(&mut self, name: Option<&[u8]>) {
        let mut named = named();
        if let Some(at) = self.super_journal.take().and_then(|old| named.iter().position(|name| *name == old))
        {
            named.swap_remove(at);
        }
        self.super_journal = name.map(<[u8]>::to_vec);
        named.extend(self.super_journal.clone());
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if is_super_journal(bytes) {
            self.name(Some(bytes));
        } else if self.super_journal.is_some() && offset == 0 && bytes.iter().all(|byte| *byte == 0) {
            // A journal that persists has ended.
            self.name(None);
        }
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        if from == self.bytes.len() {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        self.bytes[from..to].copy_from_slice(bytes);
    }

    pub(crate) fn truncate(&mut self, len: u64) {
        if len == 0 {
            self.name(None);
        }
        self.bytes.resize(len as usize, 0);
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.name(None);
    }
}
