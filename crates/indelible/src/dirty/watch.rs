//! What the SIGSEGV handler knows: the ranges whose stores it may let pass or hold up.
//!
//! Invariants:
//! 1. A slot whose turn has a range describes a live [`Watched`] of process generation `generation`;
//!    `table` is then null or points to a [`Table`] that lives until the turn was drained after
//!    the range had been withdrawn.
//! 2. A handler touches `table` and the range's protection only within [`Turn::pass`].
//! 3. Who holds the range protects it within [`Turn::hold`]: from then to [`Watched::release`] nobody
//!    makes a page writable.
//! 4. Chunks of slots are leaked and never move.
//!
//! The handler allocates nothing and takes no lock; while it waits it sleeps in a futex.

#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;

use super::bitmap::Tree;
use super::turn::{Passed, Turn};
use crate::sys::mmap::{self, Protection};
use crate::sys::signal::{self, Verdict};
use crate::sys::{PAGE, fork};

const SLOTS: usize = 256;
const CHUNKS: usize = 256;

static REGISTRY: [AtomicPtr<[Slot; SLOTS]>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

#[repr(align(64))]
struct Slot {
    taken: AtomicBool,
    turn: Turn,
    table: AtomicPtr<Table>,
    generation: AtomicU32,
}

/// The pages of a range that the handler made writable.
#[derive(Debug)]
pub(super) struct Table {
    /// Set before the page becomes writable; cleared by the owner after it is protected again.
    pub(super) writable: Tree,
    /// Pages that the tree has room for.
    capacity: usize,
    /// Pages of the range, at most `capacity`; grows only.
    pages: AtomicUsize,
    /// Pages made writable since the range was last protected as a whole: an upper bound of half
    /// the mappings that the range was split into.
    pub(super) splits: AtomicUsize,
    /// From so many splits on, neighbours are made writable, too.
    pub(super) budget: usize,
}

impl Table {
    /// With room to grow to twice the size: untouched bits cost nothing.
    pub(super) fn new(pages: usize, budget: usize) -> Table {
        let capacity = pages.saturating_mul(2);
        Table {
            writable: Tree::new(capacity),
            capacity,
            pages: AtomicUsize::new(pages),
            splits: AtomicUsize::new(0),
            budget: budget.max(1),
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }

    /// Lets stores to `page` pass. Bits come first: a page is never writable without its bit.
    fn open(&self, start: usize, page: usize) -> bool {
        let splits = self.splits.fetch_add(1, Ordering::Relaxed);
        let pages = self.pages();
        let mut cluster = match splits / self.budget {
            0 => 1,
            1 => 64,
            _ => pages.next_power_of_two(),
        };
        loop {
            let first = page / cluster * cluster;
            let end = (first + cluster).min(pages);
            for page in first..end {
                self.writable.set(page);
            }
            // SAFETY: the pages belong to the live range of this slot (1), and access is only added.
            if unsafe { mmap::protect(start + first * PAGE, (end - first) * PAGE, Protection::ReadWrite) }
                .is_ok()
            {
                return true;
            }
            // No mapping left for a split. The whole range needs none.
            if first == 0 && end == pages {
                return false;
            }
            cluster = (cluster * 64).min(pages.next_power_of_two());
        }
    }
}

/// A range known to the handler, until drop.
pub(super) struct Watched {
    slot: &'static Slot,
    start: usize,
    /// Invariant: what `slot.table` points to, or null; made by `Box::into_raw`.
    table: *mut Table,
    generation: u32,
}

// SAFETY: `table` is only read through shared references to a `Sync` value.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    /// Makes the handler know `[start, start + len)`. Without a table a fault there, outside a
    /// hold, is taken for a late one, and the page is made writable.
    pub(super) fn new(start: usize, len: usize, table: Option<Table>) -> io::Result<Watched> {
        signal::install(resolve)?;
        let slot = claim().ok_or(io::ErrorKind::OutOfMemory)?;
        let table = table.map_or(ptr::null_mut(), |table| Box::into_raw(Box::new(table)));
        slot.generation.store(fork::generation(), Ordering::SeqCst);
        slot.table.store(table, Ordering::SeqCst);
        slot.turn.publish(start, len);
        Ok(Watched { slot, start, table, generation: fork::generation() })
    }

    pub(super) fn table(&self) -> Option<&Table> {
        // SAFETY: null, or a table that lives as long as `self`; shared access only.
        unsafe { self.table.as_ref() }
    }

    /// Makes the handler know a longer range at the same start. `false`: the table has no room.
    pub(super) fn extend(&self, len: usize) -> bool {
        if let Some(table) = self.table() {
            if len / PAGE > table.capacity {
                return false;
            }
            table.pages.store(len / PAGE, Ordering::SeqCst);
        }
        self.slot.turn.end.store(self.start + len, Ordering::SeqCst);
        true
    }

    /// From now on stores wait, until [`release`](Self::release).
    pub(super) fn hold(&self) -> io::Result<()> {
        self.slot.turn.hold(me(), std::thread::yield_now);
        let (start, end) = (self.start, self.slot.turn.end.load(Ordering::Relaxed));
        // SAFETY: the owner's own range; a store that meets the protection waits in the handler.
        let done = unsafe { mmap::protect(start, end - start, Protection::Read) };
        if done.is_err() {
            self.wake();
        }
        done
    }

    /// Ends a hold; `writable` makes the whole range writable again.
    pub(super) fn release(&self, writable: bool) -> io::Result<()> {
        let (start, end) = (self.start, self.slot.turn.end.load(Ordering::Relaxed));
        let done = if writable {
            // SAFETY: the owner's own range; access is only added.
            unsafe { mmap::protect(start, end - start, Protection::ReadWrite) }
        } else {
            Ok(())
        };
        self.wake();
        done
    }

    fn wake(&self) {
        self.slot.turn.release();
        // Nobody waiting is no error.
        let _ = futex::wake(&self.slot.turn.held, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !fork::is_stale(self.generation) {
            self.slot.turn.withdraw();
            self.wake();
            self.slot.turn.drain(std::thread::yield_now);
            self.slot.table.store(ptr::null_mut(), Ordering::SeqCst);
            self.slot.taken.store(false, Ordering::SeqCst);
        }
        if !self.table.is_null() {
            // SAFETY: from `Box::into_raw`; no handler is left that knows it (1), and in a forked
            // child none can find it (its generation is over).
            drop(unsafe { Box::from_raw(self.table) });
        }
    }
}

fn claim() -> Option<&'static Slot> {
    for chunk in &REGISTRY {
        let mut slots = chunk.load(Ordering::Acquire);
        if slots.is_null() {
            let fresh = Box::into_raw(Box::new([const { Slot::empty() }; SLOTS]));
            match chunk.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => slots = fresh,
                Err(winner) => {
                    // SAFETY: never published.
                    drop(unsafe { Box::from_raw(fresh) });
                    slots = winner;
                }
            }
        }
        // SAFETY: published chunks are leaked (4).
        let slots: &'static [Slot; SLOTS] = unsafe { &*slots };
        let free = slots.iter().find(|slot| {
            let gone = slot.turn.end.load(Ordering::Relaxed) != 0
                && fork::is_stale(slot.generation.load(Ordering::Relaxed));
            if gone {
                // Left by the parent of this process: its handlers do not exist here.
                slot.turn.end.store(0, Ordering::SeqCst);
                slot.turn.active.store(0, Ordering::SeqCst);
                slot.taken.store(false, Ordering::SeqCst);
            }
            !slot.taken.swap(true, Ordering::SeqCst)
        });
        if free.is_some() {
            return free;
        }
    }
    None
}

impl Slot {
    const fn empty() -> Slot {
        Slot {
            taken: AtomicBool::new(false),
            turn: Turn {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                active: AtomicU32::new(0),
                held: AtomicU32::new(0),
            },
            table: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU32::new(0),
        }
    }
}

/// This thread, as `held` has it.
fn me() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The handler's part. Async-signal-safe.
fn resolve(addr: usize, forbidden: bool) -> Verdict {
    if !forbidden {
        // Nothing is mapped there: never ours to resolve.
        return Verdict::Foreign;
    }
    for chunk in &REGISTRY {
        let slots = chunk.load(Ordering::Acquire);
        if slots.is_null() {
            return Verdict::Foreign;
        }
        // SAFETY: published chunks are leaked (4).
        let slots: &'static [Slot; SLOTS] = unsafe { &*slots };
        for slot in slots {
            if slot.turn.covers(addr)
                && let Some(verdict) = pass(slot, addr)
            {
                return verdict;
            }
        }
    }
    Verdict::Foreign
}

/// `None`: the slot was given up meanwhile.
fn pass(slot: &'static Slot, addr: usize) -> Option<Verdict> {
    let is_stale = || fork::is_stale(slot.generation.load(Ordering::SeqCst));
    let open = |start: usize| {
        let page = (addr - start) / PAGE;
        // SAFETY: null, or alive while it is this handler's turn (1, 2).
        match unsafe { slot.table.load(Ordering::SeqCst).as_ref() } {
            Some(table) => table.open(start, page),
            // SAFETY: a page of the live range (1); access is only added.
            None => unsafe { mmap::protect(start + page * PAGE, PAGE, Protection::ReadWrite) }.is_ok(),
        }
    };
    Some(match slot.turn.pass(addr, is_stale, me, open) {
        Passed::Gone => return None,
        Passed::Own | Passed::Done(false) => Verdict::Foreign,
        Passed::Done(true) => Verdict::Resolved,
        Passed::Held(held) => {
            // Whatever ends the wait, the store is tried again and comes back here if it must.
            let _ = futex::wait(&slot.turn.held, futex::Flags::PRIVATE, held, None);
            Verdict::Resolved
        }
    })
}
