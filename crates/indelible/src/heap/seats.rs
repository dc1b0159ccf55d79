//! Which heaps are attached, by address: how a container that lies in an object finds its heap.
//!
//! A heap takes its seat when somebody asks for data by type, and again at each such time, as it may have
//! been moved in between; while such data are borrowed it cannot move. It leaves when it is dropped.

use super::read::ReadHeap;
use super::writer::Heap;
use std::cell::Cell;
use std::sync::RwLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// An attached heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// First byte.
    pub(crate) base: usize,
    /// Bytes.
    pub(crate) len: usize,
    /// Address of the `Heap`; 0: attached for reading.
    pub(crate) heap: usize,
    /// Number of the attachment.
    pub(crate) attachment: u32,
    /// Whether stores have to be named.
    named: bool,
    owner: u64,
}

const NOBODY: Seat = Seat { base: 0, len: 0, heap: 0, attachment: 0, named: false, owner: 0 };

static SEATS: RwLock<Vec<Seat>> = RwLock::new(Vec::new());
/// Whether stores to some heap that has a seat have to be named. Changes with `SEATS`.
static NAMED: AtomicBool = AtomicBool::new(false);
/// Changes when a seat is left or taken anew.
static EPOCH: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static LAST: Cell<(u64, Seat)> = const { Cell::new((0, NOBODY)) };
}

/// Whether stores may have to be marked. A value's address is only handed out after its heap is registered,
/// so that the answer is not too early.
#[inline]
pub(crate) fn any_named() -> bool {
    NAMED.load(Relaxed)
}

/// The heap in whose object an address lies.
#[inline]
pub(crate) fn find(address: usize) -> Option<Seat> {
    let (epoch, seat) = LAST.get();
    if address.wrapping_sub(seat.base) < seat.len && epoch == EPOCH.load(Acquire) {
        return Some(seat);
    }
    search(address)
}

#[cold]
fn search(address: usize) -> Option<Seat> {
    let seats = SEATS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let epoch = EPOCH.load(Acquire);
    let seat = seats.iter().copied().find(|seat| address.wrapping_sub(seat.base) < seat.len)?;
    LAST.set((epoch, seat));
    Some(seat)
}

/// Numbers of attachments differ between processes, too: locks that a dead one left tell by it.
fn attachment(id: u64) -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let parts: [&[u8]; 3] =
        [&id.to_le_bytes(), &now.as_nanos().to_le_bytes(), &std::process::id().to_le_bytes()];
    (indelible_store::format::checksum(0, &parts) as u32).max(1)
}

/// The right of a heap to a seat, which it leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket(u64);

impl Ticket {
    pub(super) fn new() -> Ticket {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ticket(NEXT.fetch_add(1, Relaxed))
    }

    /// Takes the seat, or says where it is now.
    fn sit(&self, base: usize, len: usize, heap: usize, named: bool) -> Seat {
        let mut seat = Seat { base, len, heap, attachment: 0, named, owner: self.0 };
        let mine = |old: &&Seat| old.owner == self.0;
        if let Some(old) = SEATS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).iter().find(mine) {
            seat.attachment = old.attachment;
            if *old == seat {
                return seat;
            }
        } else {
            seat.attachment = attachment(self.0);
        }
        let mut seats = SEATS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        seats.retain(|old| old.owner != self.0);
        seats.push(seat);
        changed(&seats);
        seat
    }
}

/// To be said before others may look at the seats again.
fn changed(seats: &[Seat]) {
    NAMED.store(seats.iter().any(|seat| seat.named), Relaxed);
    EPOCH.fetch_add(1, Release);
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut seats = SEATS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = seats.len();
        seats.retain(|seat| seat.owner != self.0);
        if seats.len() < before {
            changed(&seats);
        }
    }
}

impl Heap {
    /// Takes the seat.
    pub(crate) fn sit(&self) -> Seat {
        let (base, len) = (self.base().addr(), self.size());
        let heap = std::ptr::from_ref(self).expose_provenance();
        self.ticket.sit(base, len, heap, self.object.explicit_marks().is_some())
    }
}

impl ReadHeap {
    /// Takes a seat. Several read attachments of a process share memory, not seats.
    pub(crate) fn sit(&self) -> Seat {
        self.ticket.sit(self.object().as_ptr().addr(), self.object().len(), 0, false)
    }
}
