//! Threads of Python beside a cut.
//!
//! Stores of such threads come under the GIL, or in calls that released it: `readinto`, or numpy at
//! work. A thread that has the GIL keeps new ones from beginning, so that stores cease as soon as
//! calls that are under way have ended. But it keeps all others waiting as well: so a cut is tried
//! without it first.
//!
//! Invariant: `saved` is the thread's state, as `PyEval_SaveThread` gave it, until it is restored,
//! which the thread does before it does anything with Python.

#![allow(unsafe_code)]

use crate::patience::LOOK;
use indelible::{Beside, Bystanders};
use pyo3::ffi;
use std::time::{Duration, Instant};

/// Bytes of copies that are made without the GIL, and with it.
const ROOM: [usize; 2] = [64 << 20, 1 << 30];
/// The wait with the GIL for running calls.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same after a wait in vain: a thread without Python stores all the time.
const IMPATIENCE: Duration = Duration::from_millis(10);

/// A cut that ends if threads store meanwhile.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) gave_up: bool,
}

impl Bystanders for Running {
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside {
        if round < 2 && bytes <= ROOM[0] {
            return Beside::Copy;
        }
        self.gave_up = true;
        Beside::GiveUp
    }
}

/// A cut with the GIL, which is released once the content is fixed.
pub(crate) struct Stopped {
    /// The begin of the cut's first slice.
    began: Instant,
    slice: Instant,
    patience: Duration,
    saved: *mut ffi::PyThreadState,
    /// Whether stores went on.
    pub(crate) in_vain: bool,
    /// Whether the caller must handle signals and try again.
    pub(crate) gave_up: bool,
}

impl Stopped {
    pub(crate) fn new(began: Instant, in_vain: bool) -> Stopped {
        let (patience, saved) = (if in_vain { IMPATIENCE } else { PATIENCE }, std::ptr::null_mut());
        Stopped { began, slice: Instant::now(), patience, saved, in_vain: false, gave_up: false }
    }
}

impl Bystanders for Stopped {
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside {
        self.in_vain = bytes > ROOM[1] || self.began.elapsed() > self.patience;
        if self.in_vain {
            return Beside::HoldUp;
        }
        if self.slice.elapsed() > LOOK {
            self.gave_up = true;
            return Beside::GiveUp;
        }
        if round > 1 {
            std::thread::sleep(Duration::from_micros(50 << round.min(4)));
        }
        Beside::Copy
    }

    fn go_on(&mut self) {
        // SAFETY: this thread has the GIL, as the caller of `new` says, and restores its state in
        // `drop`.
        self.saved = unsafe { ffi::PyEval_SaveThread() };
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.saved.is_null() {
            // SAFETY: this thread's state, saved above and not restored since.
            unsafe { ffi::PyEval_RestoreThread(self.saved) };
        }
    }
}
