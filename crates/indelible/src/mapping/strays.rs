//! The message before a deadly access ends the program: object, reason and remedy.
//!
//! Invariants:
//! 1. [`explain`] runs in a signal handler: it loads atomics, and calls nothing but
//!    [`signal::say`].
//! 2. A slot is taken by `busy`, and belongs to an object while its `base` is not 0; `base` is
//!    stored last, and cleared first. A detached object's slot is not busy, and may be reused. A
//!    handler that races with that names the object wrongly at worst.

use crate::sys::per_process::PerProcess;
use crate::sys::signal;
use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};

const SLOTS: usize = 256;
const NAME: usize = 64;

struct Slot {
    busy: AtomicBool,
    base: AtomicUsize,
    len: AtomicUsize,
    access: AtomicU8,
    name: [AtomicU8; NAME],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Access {
    Transactions,
    Loads,
    All,
    Gone,
}

impl Slot {
    fn is_of(&self, access: Access) -> bool {
        self.access.load(Relaxed) == access as u8
    }

    fn holds(&self, addr: usize) -> bool {
        let base = self.base.load(Acquire);
        base != 0 && addr.wrapping_sub(base) < self.len.load(Relaxed)
    }

    fn take(&self) -> bool {
        !self.busy.load(Relaxed) && !self.busy.swap(true, AcqRel)
    }
}

static SLOTS_OF_OBJECTS: [Slot; SLOTS] = [const {
    Slot {
        busy: AtomicBool::new(false),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        access: AtomicU8::new(0),
        name: [const { AtomicU8::new(0) }; NAME],
    }
}; SLOTS];

pub(crate) struct Named(Option<&'static Slot>);

impl Named {
    pub(crate) fn new(base: usize, len: usize, name: &str, access: Access) -> Named {
        explain_if_asked();
        for slot in SLOTS_OF_OBJECTS.iter().filter(|slot| slot.holds(base) && slot.is_of(Access::Gone)) {
            if slot.take() {
                slot.base.store(0, Release);
                slot.busy.store(false, Release);
            }
        }
        let unused = SLOTS_OF_OBJECTS.iter().find(|slot| slot.base.load(Relaxed) == 0 && slot.take());
        let slot = unused.or_else(|| SLOTS_OF_OBJECTS.iter().find(|slot| slot.take()));
        if let Some(slot) = slot {
            slot.base.store(0, Release);
            let bytes = name.bytes().chain(std::iter::repeat(0));
            slot.name.iter().zip(bytes).for_each(|(to, byte)| to.store(byte, Relaxed));
            slot.len.store(len, Relaxed);
            slot.access.store(access as u8, Relaxed);
            slot.base.store(base, Release);
        }
        Named(slot)
    }

    pub(crate) fn resize(&self, len: usize) {
        if let Some(slot) = self.0 {
            slot.len.store(len, Relaxed);
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.access.store(Access::Gone as u8, Relaxed);
            slot.busy.store(false, Release);
        }
    }
}

pub(crate) fn explain_faults() -> io::Result<()> {
    signal::install_explainer(explain)
}

fn explain_if_asked() {
    static ASKED: PerProcess<()> = PerProcess::new();
    ASKED.get_or(|_| {
        if std::env::var_os("PMO_EXPLAIN_FAULTS").is_some_and(|value| value != "0") {
            let _ = explain_faults();
        }
    });
}

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

fn explain(addr: usize, is_store: bool) {
    let all = || SLOTS_OF_OBJECTS.iter().filter(move |slot| slot.holds(addr));
    let attached = all().find(|slot| !slot.is_of(Access::Gone));
    let Some(slot) = attached.or_else(|| all().next()) else { return };
    let why: &[u8] = match (is_store, slot.access.load(Relaxed)) {
        (true, access) if access == Access::Transactions as u8 => {
            b"\", outside of a transaction: only transactions store to it, by tx.write (pmo_tx_write in C)\n"
        }
        (false, access) if access == Access::Transactions as u8 => {
            b"\", outside of a transaction: only transactions load from it, by tx.read (pmo_tx_read in C)\n"
        }
        (true, access) if access == Access::Loads as u8 => {
            b"\", which is attached for reading: attach it for writing (PMO_WRITE in C)\n"
        }
        (_, access) if access == Access::Gone as u8 => {
            b"\", which was detached: addresses in an object end with its detach\n"
        }
        _ => return,
    };
    let mut line = Line { bytes: [0; 320], len: 0 };
    line.text(if is_store { b"indelible: a store to " } else { b"indelible: a load from " });
    line.hex(addr);
    line.text(b", offset ");
    line.hex(addr.wrapping_sub(slot.base.load(Relaxed)));
    line.text(b" of object \"");
    for byte in &slot.name {
        match byte.load(Relaxed) {
            0 => break,
            // Names come from the pool: a control character could move the terminal's cursor.
            byte if byte.is_ascii_control() => line.text(b"?"),
            byte => line.text(&[byte]),
        }
    }
    line.text(why);
    signal::say(&line.bytes[..line.len]);
}
