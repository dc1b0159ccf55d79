//! Pages exposed to one thread: a block of GCC that cannot be undone runs alone, as ordinary code
//! that uses objects at their own addresses (docs/decisions/0053-transactions-in-c.md).
//!
//! A touched page is copied there from the transactions' memory. When the block ends, its changed
//! words become words of its transaction, and the pages are closed by mapping them anew: after
//! `mprotect` the kernel would not merge touched mappings. At the kernel's limit of mappings (some
//! 65,000), the pages up to the nearest exposed one are exposed, too, which adds none.
//!
//! Invariants:
//!
//! 1. [`expose`] runs in a signal handler: it loads, repairs and stores words, and calls nothing
//!    but `gettid`, `mprotect` and, if pages stay open that must not, [`signal::die`].
//! 2. A slot has an object while `len` is not 0: it is stored last, and cleared first. Slots change
//!    while no block of their objects runs, or by the block that is alone. `marks` is null, or that
//!    of the slot's [`Exposed`].
//! 3. Marked pages are exposed until they are closed, and only the thread [`TO`] marks pages.
//! 4. Memory for transactions has no other user while a page is exposed: the block is alone.

#![allow(unsafe_code)]

use super::marks::Marks;
use crate::error::{Cause, TransactionError};
use crate::sys::mmap::{self, Place, Protection};
use crate::sys::signal::{self, Verdict};
use crate::sys::{PAGE, process};
use indelible_stm::pairs::repaired;
use indelible_store::format::LINE;
use std::ops::Range;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};

const SLOTS: usize = 64;
const WORD: usize = size_of::<u64>();
const SCALE: usize = PAGE / LINE as usize;

struct Slot {
    busy: AtomicBool,
    own: AtomicUsize,
    view: AtomicUsize,
    pairs: AtomicBool,
    len: AtomicUsize,
    marks: AtomicPtr<Marks>,
}

static OBJECTS: [Slot; SLOTS] = [const {
    Slot {
        busy: AtomicBool::new(false),
        own: AtomicUsize::new(0),
        view: AtomicUsize::new(0),
        pairs: AtomicBool::new(false),
        len: AtomicUsize::new(0),
        marks: AtomicPtr::new(null_mut()),
    }
}; SLOTS];

static TO: AtomicI32 = AtomicI32::new(0);

pub(super) struct Exposed {
    slot: Option<&'static Slot>,
    marks: Box<Marks>,
}

impl Exposed {
    pub(super) fn new(
        own: usize,
        (view, pairs): (usize, bool),
        len: usize,
        room: usize,
    ) -> Result<Exposed, Cause> {
        signal::install_exposer(expose).map_err(TransactionError::Handler)?;
        let marks = Box::new(Marks::new((len.div_ceil(SCALE), room.div_ceil(SCALE)), None)?);
        let free = |slot: &&Slot| !slot.busy.load(Relaxed) && !slot.busy.swap(true, AcqRel);
        let slot = OBJECTS.iter().find(free);
        if let Some(slot) = slot {
            slot.own.store(own, Relaxed);
            slot.view.store(view, Relaxed);
            slot.pairs.store(pairs, Relaxed);
            slot.marks.store((&raw const *marks).cast_mut(), Relaxed);
            slot.len.store(len, Release);
        }
        Ok(Exposed { slot, marks })
    }

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

pub(crate) fn begin() {
    TO.store(process::thread_id(), Release);
}

pub(crate) fn close(mut store: impl FnMut(usize, u64) -> Result<(), Cause>) -> Result<(), Cause> {
    if TO.compare_exchange(process::thread_id(), 0, AcqRel, Relaxed).is_err() {
        return Ok(());
    }
    let mut failed = None;
    for slot in &OBJECTS {
        let (own, len) = (slot.own.load(Relaxed), slot.len.load(Acquire));
        // SAFETY: null, or the marks of a live `Exposed` (2).
        let Some(marks) = (unsafe { slot.marks.load(Acquire).as_ref() }) else { continue };
        let mut run = own..own;
        marks.take(|page| {
            let page = page * PAGE..len.min((page + 1) * PAGE);
            failed = failed.take().or(changed(slot, page.clone(), &mut store).err());
            if own + page.start != run.end {
                shut(run.clone());
                run.start = own + page.start;
            }
            run.end = own + page.end;
        });
        shut(run);
    }
    failed.map_or(Ok(()), Err)
}

fn changed(
    slot: &Slot,
    page: Range<usize>,
    store: &mut impl FnMut(usize, u64) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let own = slot.own.load(Relaxed);
    page.step_by(WORD).try_for_each(|at| {
        // SAFETY: words of an exposed page (3), and of its object's view, which is alone (4).
        let (word, before) = unsafe { (word(own + at), slot.word(at)) };
        if Some(word) == before { Ok(()) } else { store(own + at, word) }
    })
}

impl Slot {
    /// `false`: a word is damaged beyond repair.
    ///
    /// # Safety
    /// The words are open there, and no other code touches them.
    unsafe fn copy(&self, words: Range<usize>) -> bool {
        let (own, view) = (self.own.load(Relaxed), self.view.load(Relaxed));
        let to = |at| with_exposed_provenance_mut::<u64>(own + at);
        if !self.pairs.load(Relaxed) {
            let (from, to) = (with_exposed_provenance::<u64>(view + words.start), to(words.start));
            // SAFETY: the caller's promise.
            unsafe { from.copy_to_nonoverlapping(to, words.len() / WORD) };
            return true;
        }
        words.step_by(WORD).all(|at| {
            // SAFETY: the caller's promise.
            unsafe {
                self.word(at).is_some_and(|word| {
                    to(at).write(word);
                    true
                })
            }
        })
    }

    /// `None`: damaged beyond repair.
    ///
    /// # Safety
    /// There is a word, to which no thread stores.
    unsafe fn word(&self, at: usize) -> Option<u64> {
        let view = self.view.load(Relaxed);
        // SAFETY: the caller's promise.
        unsafe { if self.pairs.load(Relaxed) { repaired(view + 2 * at) } else { Some(word(view + at)) } }
    }
}

/// # Safety
/// There is a word at this address, a multiple of 8.
unsafe fn word(at: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(with_exposed_provenance_mut(at)).load(Relaxed) }
}

fn shut(pages: Range<usize>) {
    let (addr, len) = (pages.start, pages.len());
    if len == 0 {
        return;
    }
    // As closed pages of a [`Mapping`](crate::mapping::Mapping). SAFETY: pages at the object's own
    // address (2), without references to them.
    let closed = unsafe {
        mmap::private(addr, len, Protection::None, None, Place::Over)
            .and_then(|()| mmap::dont_fork(addr, len))
    };
    if closed.is_err() {
        protect_or_die(addr, len);
    }
}

fn protect_or_die(addr: usize, len: usize) {
    // SAFETY: pages at an object's own address (2), without references to them.
    if unsafe { mmap::protect(addr, len, Protection::None) }.is_err() {
        signal::die("pages of an object that a block has exposed cannot be closed");
    }
}

fn expose(addr: usize) -> Verdict {
    if TO.load(Acquire) != process::thread_id() {
        return Verdict::Foreign;
    }
    let around = |slot: &&Slot| addr.wrapping_sub(slot.own.load(Relaxed)) < slot.len.load(Acquire);
    let Some(slot) = OBJECTS.iter().find(around) else { return Verdict::Foreign };
    let own = slot.own.load(Relaxed);
    // SAFETY: the marks of the slot (2).
    let Some(marks) = (unsafe { slot.marks.load(Acquire).as_ref() }) else { return Verdict::Foreign };
    let Some(pages) = open(own, (addr - own) / PAGE, slot.len.load(Acquire).div_ceil(PAGE), marks) else {
        return Verdict::Foreign;
    };
    // SAFETY: pages of an attached object, touched only by this thread (4), and open to it.
    if unsafe { slot.copy(pages.start * PAGE..pages.end * PAGE) } {
        pages.for_each(|page| marks.set(page));
        return Verdict::Resolved;
    }
    protect_or_die(own + pages.start * PAGE, pages.len() * PAGE);
    Verdict::Foreign
}

/// At the limit of mappings, opens all pages up to the nearest open one.
fn open(own: usize, page: usize, count: usize, marks: &Marks) -> Option<Range<usize>> {
    let addr = |pages: &Range<usize>| own + pages.start * PAGE;
    // SAFETY: closed pages at the object's own address (2), without references to them.
    let open = |pages: &Range<usize>| unsafe {
        mmap::protect(addr(pages), pages.len() * PAGE, Protection::ReadWrite).is_ok()
    };
    let alone = page..page + 1;
    if open(&alone) {
        return Some(alone);
    }
    let below = (0..page).rev().find(|&other| marks.has(other)).map(|other| other + 1..page + 1);
    let above = (page + 1..count).find(|&other| marks.has(other)).map(|other| page..other);
    let mut gaps = [below, above];
    gaps.sort_unstable_by_key(|gap| gap.as_ref().map_or(0, Range::len));
    for gap in gaps.into_iter().flatten() {
        if open(&gap) {
            return Some(gap);
        }
        // If the program gave these pages different flags (madvise), the kernel may have opened
        // some of them, as zeros.
        protect_or_die(addr(&gap), gap.len() * PAGE);
    }
    None
}
