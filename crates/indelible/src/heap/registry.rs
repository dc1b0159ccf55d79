//! The registry of attached heaps, by address. Each lookup by type registers its heap, as it may
//! have moved since; dropping it removes the entry.

use crate::sys::per_process::PerProcess;
use std::cell::Cell;
use std::sync::RwLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) base: usize,
    pub(crate) len: usize,
    pub(crate) access: Access,
    owner: u64,
    pub(crate) attachment: u32,
    explicit: bool,
}

/// Word by word: without store-buffer stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Reading,
    /// For writing, by the `Heap` at this address.
    Writing {
        heap: usize,
    },
}

const NONE: Entry =
    Entry { base: 0, len: 0, access: Access::Reading, owner: 0, attachment: 0, explicit: false };

static HEAPS: PerProcess<RwLock<Vec<Entry>>> = PerProcess::new();
/// Changes with `HEAPS`.
static ANY_EXPLICIT: AtomicBool = AtomicBool::new(false);
static EPOCH: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static LAST: Cell<(u64, Entry)> = const { Cell::new((0, NONE)) };
}

/// A value's address is handed out only after its heap is registered.
#[inline]
pub(crate) fn any_explicit() -> bool {
    ANY_EXPLICIT.load(Relaxed)
}

#[inline]
pub(crate) fn find(address: usize) -> Option<Entry> {
    let (epoch, entry) = LAST.get();
    if address.wrapping_sub(entry.base) < entry.len && epoch == EPOCH.load(Acquire) {
        return Some(entry);
    }
    search(address)
}

#[cold]
fn search(address: usize) -> Option<Entry> {
    let heaps = HEAPS.get().read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let epoch = EPOCH.load(Acquire);
    let entry = heaps.iter().copied().find(|entry| address.wrapping_sub(entry.base) < entry.len)?;
    LAST.set((epoch, entry));
    Some(entry)
}

/// Numbers differ between processes: locks of a dead one tell by it.
fn attachment(id: u64) -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let parts: [&[u8]; 3] =
        [&id.to_le_bytes(), &now.as_nanos().to_le_bytes(), &std::process::id().to_le_bytes()];
    (indelible_store::format::checksum(0, &parts) as u32).max(1)
}

#[derive(Debug)]
pub(super) struct Registration(u64);

impl Registration {
    pub(super) fn new() -> Registration {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Registration(NEXT.fetch_add(1, Relaxed))
    }

    pub(super) fn register(&self, base: usize, len: usize, access: Access, explicit: bool) -> Entry {
        let mut entry = Entry { base, len, access, owner: self.0, attachment: 0, explicit };
        let mine = |old: &&Entry| old.owner == self.0;
        if let Some(old) =
            HEAPS.get().read().unwrap_or_else(|poisoned| poisoned.into_inner()).iter().find(mine)
        {
            entry.attachment = old.attachment;
            if *old == entry {
                return entry;
            }
        } else {
            entry.attachment = attachment(self.0);
        }
        let mut heaps = HEAPS.get().write().unwrap_or_else(|poisoned| poisoned.into_inner());
        heaps.retain(|old| old.owner != self.0);
        heaps.push(entry);
        changed(&heaps);
        entry
    }
}

fn changed(heaps: &[Entry]) {
    ANY_EXPLICIT.store(heaps.iter().any(|entry| entry.explicit), Relaxed);
    EPOCH.fetch_add(1, Release);
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut heaps = HEAPS.get().write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = heaps.len();
        heaps.retain(|entry| entry.owner != self.0);
        if heaps.len() < before {
            changed(&heaps);
        }
    }
}
