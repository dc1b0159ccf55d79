//! The ranges that the SIGSEGV handler knows, and its part in mapping them.
//!
//! Invariants:
//! 1. A slot's `start`, `end`, `whole` and `generation` change only while its state is [`FREE`], by
//!    the thread that has it `taken`.
//! 2. Chunks of slots are leaked and never move.
//! 3. [`touched`] runs in the handler: it allocates nothing and takes no lock. It sleeps in a futex
//!    with all signals blocked, for at most [`LONGEST`] turns.
//! 4. A thread retries an access without asking at most once per mapping of the range: a recurring
//!    fault is not the range's.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;

use crate::sys::fork;
use crate::sys::signal::Verdict;

const SLOTS: usize = 256;
const CHUNKS: usize = 1024;

const FREE: u32 = 0;
const RESERVED: u32 = 1;
const ASKED: u32 = 2;
const MAPPED: u32 = 3;
const REFUSED: u32 = 4;

/// Turns of one second. No answer takes as long: the answering thread is gone.
const LONGEST: u32 = 120;

static TABLE: [AtomicPtr<[Slot; SLOTS]>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

/// Descriptor and thread ID; −1 and 0 without one.
pub(super) static BELL: AtomicI32 = AtomicI32::new(-1);
pub(super) static ANSWERS: AtomicI32 = AtomicI32::new(0);

thread_local! {
    /// No destructor: handlers use it.
    static AGAIN: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

#[repr(align(64))]
pub(super) struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    /// A window, in which ranges may appear: touching it asks for new ones.
    whole: AtomicBool,
    generation: AtomicU32,
    state: AtomicU32,
    maps: AtomicU32,
}

impl Slot {
    const fn empty() -> Slot {
        Slot {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            whole: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            state: AtomicU32::new(FREE),
            maps: AtomicU32::new(0),
        }
    }

    pub(super) fn publish(start: usize, end: usize, whole: bool) -> Option<&'static Slot> {
        let slot = Slot::take()?;
        slot.start.store(start, Ordering::SeqCst);
        slot.end.store(end, Ordering::SeqCst);
        slot.whole.store(whole, Ordering::SeqCst);
        slot.generation.store(fork::generation(), Ordering::SeqCst);
        slot.state.store(RESERVED, Ordering::SeqCst);
        Some(slot)
    }

    fn take() -> Option<&'static Slot> {
        let free = |slot: &&'static Slot| {
            slot.taken.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        TABLE.iter().find_map(|place| chunk_or_new(place).iter().find(free))
    }

    pub(super) fn vacate(&self) {
        self.settle(FREE);
        self.taken.store(false, Ordering::SeqCst);
    }

    pub(super) fn mapped(&self) {
        self.maps.fetch_add(1, Ordering::SeqCst);
        self.settle(MAPPED);
    }

    pub(super) fn reserved(&self) {
        self.settle(RESERVED);
    }

    pub(super) fn refused(&self) {
        self.settle(REFUSED);
    }

    fn settle(&self, state: u32) {
        self.state.store(state, Ordering::SeqCst);
        let _ = futex::wake(&self.state, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    fn has(&self, addr: usize) -> bool {
        self.state.load(Ordering::SeqCst) != FREE
            && self.start.load(Ordering::SeqCst) <= addr
            && addr < self.end.load(Ordering::SeqCst)
            && !fork::is_stale(self.generation.load(Ordering::SeqCst))
    }

    pub(super) fn is_asked(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASKED && !fork::is_stale(self.generation.load(Ordering::SeqCst))
    }

    fn ask(&self) -> Verdict {
        let mut asked = false;
        let mut turns = 0;
        loop {
            match self.state.load(Ordering::SeqCst) {
                MAPPED if asked => return Verdict::Resolved,
                MAPPED => return self.once_more(),
                REFUSED if asked => return Verdict::Foreign,
                state @ (RESERVED | REFUSED) => {
                    asked = true;
                    let to = self.state.compare_exchange(state, ASKED, Ordering::SeqCst, Ordering::SeqCst);
                    if to.is_ok() && !ring() {
                        self.settle(state);
                        return Verdict::Foreign;
                    }
                }
                ASKED => {
                    asked = true;
                    turns += 1;
                    if turns > LONGEST {
                        return Verdict::Foreign;
                    }
                    let second = futex::Timespec { tv_sec: 1, tv_nsec: 0 };
                    let _ = futex::wait(&self.state, futex::Flags::PRIVATE, ASKED, Some(&second));
                }
                // Free: the range has another owner.
                _ => return Verdict::Foreign,
            }
        }
    }

    fn once_more(&self) -> Verdict {
        let now = (ptr::from_ref(self).addr(), self.maps.load(Ordering::SeqCst));
        if AGAIN.replace(now) == now { Verdict::Foreign } else { Verdict::Resolved }
    }
}

fn chunk_or_new(place: &'static AtomicPtr<[Slot; SLOTS]>) -> &'static [Slot; SLOTS] {
    // SAFETY: null, or a chunk that was leaked (2).
    if let Some(chunk) = unsafe { place.load(Ordering::SeqCst).as_ref() } {
        return chunk;
    }
    let fresh = Box::into_raw(Box::new([const { Slot::empty() }; SLOTS]));
    match place.compare_exchange(ptr::null_mut(), fresh, Ordering::SeqCst, Ordering::SeqCst) {
        // SAFETY: leaked from here on (2).
        Ok(_) => unsafe { &*fresh },
        Err(winner) => {
            // SAFETY: `fresh` came from `Box::into_raw` and was not published.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: another thread published it, leaked (2).
            unsafe { &*winner }
        }
    }
}

/// Async-signal-safe.
pub(super) fn slots() -> impl Iterator<Item = &'static Slot> {
    let chunks = TABLE.iter().map(|place| {
        // SAFETY: null, or a chunk that was leaked (2).
        unsafe { place.load(Ordering::SeqCst).as_ref() }
    });
    chunks.map_while(|chunk: Option<&'static [Slot; SLOTS]>| chunk).flatten()
}

fn ring() -> bool {
    let bell: RawFd = BELL.load(Ordering::SeqCst);
    if bell < 0 || ANSWERS.load(Ordering::SeqCst) == rustix::thread::gettid().as_raw_nonzero().get() {
        return false;
    }
    // SAFETY: the service never closes its descriptor.
    let bell = unsafe { std::os::fd::BorrowedFd::borrow_raw(bell) };
    rustix::io::write(bell, &1_u64.to_ne_bytes()).is_ok()
}

pub(super) fn touched(addr: usize, mapped: bool) -> Verdict {
    let own = || slots().find(|slot| !slot.whole.load(Ordering::SeqCst) && slot.has(addr));
    if let Some(slot) = own() {
        return slot.ask();
    }
    if mapped {
        return Verdict::Foreign;
    }
    for around in slots().filter(|slot| slot.whole.load(Ordering::SeqCst) && slot.has(addr)) {
        // A new range may be there, even after a refusal.
        around.ask();
        if let Some(slot) = own() {
            return slot.ask();
        }
    }
    Verdict::Foreign
}
