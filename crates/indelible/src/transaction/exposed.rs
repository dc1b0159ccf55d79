//! Pages that are exposed to one thread: a block of GCC that cannot be undone runs alone, and compiled as any code is, loads and stores objects at their own addresses
//! (docs/decisions/0053-transactions-in-c.md).
//!
//! A page is copied there from the place of transactions when it is touched. The words that the block changed become words of its transaction when it ends, and the pages are closed again.
//!
//! Invariants:
//! 1. [`expose`] runs in a signal handler: it loads and stores atomics, and calls nothing but `gettid` and `mprotect`.
//! 2. A slot has an object while `len` is not 0: it is stored last, and cleared first. Slots change while no block of their objects runs, or by the block that is alone. `marks` is that of
//!    the [`Exposed`] of the slot, or null.
//! 3. A page is marked from before it is exposed until it is closed, and only the thread [`TO`] marks pages.
//! 4. Memory for transactions has no other user while a page is exposed: the block is alone.

#![allow(unsafe_code)]

use super::marks::Marks;
use crate::error::{Cause, TransactionError};
use crate::mapping::MappingError;
use crate::sys::mmap::{self, Protection};
use crate::sys::signal::{self, Verdict};
use crate::sys::{PAGE, process};
use indelible_store::format::LINE;
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};

/// Objects that blocks have at most.
const SLOTS: usize = 64;
const WORD: usize = size_of::<u64>();
/// Bytes of an object for each bit of its [`Marks`], which are of lines, to those for each page.
const SCALE: usize = PAGE / LINE as usize;

struct Slot {
    busy: AtomicBool,
    own: AtomicUsize,
    view: AtomicUsize,
    len: AtomicUsize,
    marks: AtomicPtr<Marks>,
}

static OBJECTS: [Slot; SLOTS] = [const {
    Slot {
        busy: AtomicBool::new(false),
        own: AtomicUsize::new(0),
        view: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        marks: AtomicPtr::new(null_mut()),
    }
}; SLOTS];

/// The thread to which pages are exposed when it touches them; 0: none.
static TO: AtomicI32 = AtomicI32::new(0);

/// An object whose pages a block may have exposed, until this is dropped.
pub(super) struct Exposed {
    /// `None`: there are as many as there can be.
    slot: Option<&'static Slot>,
    /// Its pages that are.
    marks: Box<Marks>,
}

impl Exposed {
    /// An object of `len` bytes at its own address, closed, that may get as many as there is `room` for; transactions have it at `view`.
    pub(super) fn new(own: usize, view: usize, len: usize, room: usize) -> Result<Exposed, Cause> {
        signal::install_exposer(expose).map_err(TransactionError::Handler)?;
        let marks = Box::new(Marks::new((len.div_ceil(SCALE), room.div_ceil(SCALE)), None)?);
        let free = |slot: &&Slot| !slot.busy.load(Relaxed) && !slot.busy.swap(true, AcqRel);
        let slot = OBJECTS.iter().find(free);
        if let Some(slot) = slot {
            slot.own.store(own, Relaxed);
            slot.view.store(view, Relaxed);
            slot.marks.store((&raw const *marks).cast_mut(), Relaxed);
            slot.len.store(len, Release);
        }
        Ok(Exposed { slot, marks })
    }

    /// The object has so many bytes now.
    pub(super) fn lengthen(&self, len: usize) {
        self.marks.lengthen(len.div_ceil(SCALE));
        if let Some(slot) = self.slot {
            slot.len.store(len, Release);
        }
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        slot.len.store(0, Release);
        slot.marks.store(null_mut(), Release);
        slot.busy.store(false, Release);
    }
}

/// Has pages that this thread touches be exposed to it until [`close`].
pub(crate) fn begin() {
    TO.store(process::thread_id(), Release);
}

/// Closes all pages that are exposed to this thread. `store` gets each word that changed, by its place at the object's own address; the first error is returned.
///
/// # Errors
/// Pages cannot be closed: what else would touch them is no error then.
pub(crate) fn close(mut store: impl FnMut(usize, u64) -> Result<(), Cause>) -> Result<(), Cause> {
    if TO.compare_exchange(process::thread_id(), 0, AcqRel, Relaxed).is_err() {
        return Ok(());
    }
    let mut closed = Ok(());
    for slot in &OBJECTS {
        let (own, view, len) = (slot.own.load(Relaxed), slot.view.load(Relaxed), slot.len.load(Acquire));
        // SAFETY: null, or the marks of an `Exposed` that is not dropped meanwhile (2).
        let Some(marks) = (unsafe { slot.marks.load(Acquire).as_ref() }) else { continue };
        marks.take(|page| {
            let page = page * PAGE..len.min((page + 1) * PAGE);
            let stored = changed(own, view, page.clone(), &mut store);
            let shut = shut(own + page.start);
            if closed.is_ok() {
                closed = stored.and(shut);
            }
        });
    }
    closed
}

/// The words of a page of an object that differ from those of transactions.
fn changed(
    own: usize,
    view: usize,
    page: Range<usize>,
    store: &mut impl FnMut(usize, u64) -> Result<(), Cause>,
) -> Result<(), Cause> {
    page.step_by(WORD).try_for_each(|at| {
        // SAFETY: words of a page that is exposed (3), and of the view of its object, which is alone (4).
        let (word, before) = unsafe { (word(own + at), word(view + at)) };
        if word == before { Ok(()) } else { store(own + at, word) }
    })
}

/// # Safety
/// There is a word at this address, a multiple of 8.
unsafe fn word(at: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(with_exposed_provenance_mut(at)).load(Relaxed) }
}

/// Closes a page, whose bytes nobody needs.
fn shut(page: usize) -> Result<(), Cause> {
    let failed = |source| MappingError::Io { addr: page, len: PAGE, source };
    // SAFETY: a page at the object's own address (2), to which nobody has references.
    unsafe { mmap::protect(page, PAGE, Protection::None).and_then(|()| mmap::empty(page, PAGE)) }
        .map_err(failed)?;
    Ok(())
}

/// Has the page at an address be exposed, if it is one of an object, and this the thread that may touch it.
fn expose(addr: usize) -> Verdict {
    if TO.load(Acquire) != process::thread_id() {
        return Verdict::Foreign;
    }
    let around = |slot: &&Slot| addr.wrapping_sub(slot.own.load(Relaxed)) < slot.len.load(Acquire);
    let Some(slot) = OBJECTS.iter().find(around) else { return Verdict::Foreign };
    let page = (addr - slot.own.load(Relaxed)) & !(PAGE - 1);
    let (to, from) = (slot.own.load(Relaxed) + page, slot.view.load(Relaxed) + page);
    // SAFETY: the marks of the slot (2), and a page of an attached object, which only this thread touches (4).
    unsafe {
        let Some(marks) = slot.marks.load(Acquire).as_ref() else { return Verdict::Foreign };
        marks.set(page / PAGE);
        if mmap::protect(to, PAGE, Protection::ReadWrite).is_err() {
            return Verdict::Foreign;
        }
        with_exposed_provenance::<u64>(from)
            .copy_to_nonoverlapping(with_exposed_provenance_mut(to), PAGE / WORD);
    }
    Verdict::Resolved
}
