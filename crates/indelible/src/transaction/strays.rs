//! A message for an access to an object that only transactions use, at the object's own address: which object it was, before the program dies of it.
//!
//! Invariants:
//! 1. [`explain`] runs in a signal handler: it loads atomics, and calls nothing but [`signal::say`].
//! 2. A slot is taken by `busy`, and is of an object while its `base` is not 0; `base` is stored last, and cleared first. A handler that meets a change of a slot names the
//!    object wrongly at worst.

use crate::error::{Error, Result, TransactionError};
use crate::sys::signal;
use std::sync::Once;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};

/// Objects that are named; others are not.
const SLOTS: usize = 256;
/// Bytes of a name that are shown.
const NAME: usize = 64;

struct Slot {
    busy: AtomicBool,
    base: AtomicUsize,
    len: AtomicUsize,
    name: [AtomicU8; NAME],
}

static SLOTS_OF_OBJECTS: [Slot; SLOTS] = [const {
    Slot {
        busy: AtomicBool::new(false),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        name: [const { AtomicU8::new(0) }; NAME],
    }
}; SLOTS];

/// An object whose addresses are closed, or read-only, until this is dropped.
pub(super) struct Named(Option<&'static Slot>);

impl Named {
    /// `len`: bytes that may become its own, all of them.
    pub(super) fn new(base: usize, len: usize, name: &str) -> Named {
        let free = |slot: &&Slot| !slot.busy.load(Relaxed) && !slot.busy.swap(true, AcqRel);
        let slot = SLOTS_OF_OBJECTS.iter().find(free);
        if let Some(slot) = slot {
            let bytes = name.bytes().chain(std::iter::repeat(0));
            slot.name.iter().zip(bytes).for_each(|(to, byte)| to.store(byte, Relaxed));
            slot.len.store(len, Relaxed);
            slot.base.store(base, Release);
        }
        Named(slot)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.base.store(0, Release);
            slot.busy.store(false, Release);
        }
    }
}

/// Makes this process report, on its standard error, the object of a deadly load or store outside
/// of a transaction, in an object for transactions alone: its name, the offset, and the remedy. One
/// line, before the program's or a debugger's own reaction to the SIGSEGV.
///
/// `PMO_EXPLAIN_FAULTS=1` in the environment does the same for a program that does not call it.
///
/// # Errors
/// `Io`: the system takes no handler for SIGSEGV.
pub fn explain_faults() -> Result<()> {
    let installed = signal::install_explainer(explain);
    installed.map_err(|error| Error::new("explain faults", TransactionError::Handler(error)))
}

/// As [`explain_faults`], if the environment asks for it when the first object is attached.
pub(super) fn explain_if_asked() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        if std::env::var_os("PMO_EXPLAIN_FAULTS").is_some_and(|value| value != "0") {
            // Without a message the fault is as before.
            let _ = explain_faults();
        }
    });
}

/// Text that grows in place.
struct Line {
    bytes: [u8; 320],
    len: usize,
}

impl Line {
    fn text(&mut self, text: &[u8]) {
        for byte in text {
            if self.len < self.bytes.len() {
                self.bytes[self.len] = *byte;
                self.len += 1;
            }
        }
    }

    fn hex(&mut self, number: usize) {
        let digits = (number.max(1).ilog2() / 4 + 1) as usize;
        self.text(b"0x");
        for digit in (0..digits).rev() {
            self.text(&[b"0123456789abcdef"[number >> (4 * digit) & 15]]);
        }
    }
}

/// Says of which object a fault's address is, if it is of one.
fn explain(addr: usize, is_store: bool) {
    let around = |slot: &&Slot| {
        let base = slot.base.load(Acquire);
        base != 0 && addr.wrapping_sub(base) < slot.len.load(Relaxed)
    };
    let Some(slot) = SLOTS_OF_OBJECTS.iter().find(around) else { return };
    let mut line = Line { bytes: [0; 320], len: 0 };
    line.text(if is_store { b"indelible: a store to " } else { b"indelible: a load from " });
    line.hex(addr);
    line.text(b", offset ");
    line.hex(addr.wrapping_sub(slot.base.load(Relaxed)));
    line.text(b" of object \"");
    for byte in &slot.name {
        match byte.load(Relaxed) {
            0 => break,
            // Names come from the pool: nothing of them is to move a terminal's cursor.
            byte if byte.is_ascii_control() => line.text(b"?"),
            byte => line.text(&[byte]),
        }
    }
    line.text(b"\", outside of a transaction: only transactions ");
    line.text(if is_store {
        b"store to it, by tx.write (pmo_tx_write in C)\n"
    } else {
        b"load from it, by tx.read (pmo_tx_read in C)\n"
    });
    signal::say(&line.bytes[..line.len]);
}
