//! The ranges that the SIGSEGV handler knows.
//!
//! Invariants:
//! 1. A slot whose turn has a range describes a live [`Watched`](super::watch::Watched) of process
//!    generation `generation`; `pages` is then null or points to [`Pages`] that live until the turn
//!    was drained after the range had been withdrawn.
//! 2. Chunks of slots are leaked and never move.
//!
//! [`find`] runs in the handler: it allocates nothing and takes no lock.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::pages::Pages;
use super::turn::Turn;
use crate::sys::fork;

const SLOTS: usize = 256;
const CHUNKS: usize = 256;

static REGISTRY: [AtomicPtr<[Slot; SLOTS]>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

#[repr(align(64))]
pub(super) struct Slot {
    taken: AtomicBool,
    pub(super) turn: Turn,
    pub(super) pages: AtomicPtr<Pages>,
    generation: AtomicU32,
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
            pages: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU32::new(0),
        }
    }

    pub(super) fn is_stale(&self) -> bool {
        fork::is_stale(self.generation.load(Ordering::SeqCst))
    }

    pub(super) fn publish(&self, start: usize, len: usize, pages: *mut Pages) {
        self.generation.store(fork::generation(), Ordering::SeqCst);
        self.pages.store(pages, Ordering::SeqCst);
        self.turn.publish(start, len);
    }

    pub(super) fn vacate(&self) {
        self.pages.store(ptr::null_mut(), Ordering::SeqCst);
        self.taken.store(false, Ordering::SeqCst);
    }

    fn take(&self) -> bool {
        if self.turn.end.load(Ordering::Relaxed) != 0 && self.is_stale() {
            // Inherited from the parent process, whose handlers do not exist here.
            self.turn.end.store(0, Ordering::SeqCst);
            self.turn.active.store(0, Ordering::SeqCst);
            self.taken.store(false, Ordering::SeqCst);
        }
        !self.taken.swap(true, Ordering::SeqCst)
    }
}

pub(super) fn claim() -> Option<&'static Slot> {
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
        // SAFETY: published chunks are leaked (2).
        let slots: &'static [Slot; SLOTS] = unsafe { &*slots };
        let free = slots.iter().find(|slot| slot.take());
        if free.is_some() {
            return free;
        }
    }
    None
}

pub(super) fn find<R>(addr: usize, ask: impl Fn(&'static Slot) -> Option<R>) -> Option<R> {
    for chunk in &REGISTRY {
        let slots = chunk.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: published chunks are leaked (2).
        let slots: &'static [Slot; SLOTS] = unsafe { &*slots };
        let said = slots.iter().filter(|slot| slot.turn.covers(addr)).find_map(&ask);
        if said.is_some() {
            return said;
        }
    }
    None
}
