//! The gate of a heap: threads enter it to store under a lock of the heap's data, and a consistent
//! cut waits until all have left.
//!
//! 1. A thread inside continues while a cut waits: it may need several locks.
//! 2. A cut waits for a bounded time. After a forgotten guard (`mem::forget`) the cut fails, and
//!    the gate opens again.
//! 3. The gate opens as soon as the cut's content is fixed. The next cut waits for the durable
//!    write with the gate open, so that no thread waits at the gate for the medium.

use crate::sys::sync::{Condvar, Mutex, MutexGuard, thread_local};
use crate::sys::total::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::cell::RefCell;
use std::time::{Duration, Instant};

thread_local! {
    #[allow(clippy::missing_const_for_thread_local)]
    static INSIDE: RefCell<Vec<(usize, usize)>> = RefCell::new(Vec::new());
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    inside: AtomicUsize,
    closed: AtomicBool,
    cutting: Mutex<bool>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Inside,
    Busy,
}

impl Gate {
    fn name(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn mine(&self, by: isize) -> usize {
        let counted = INSIDE.try_with(|all| {
            let mut all = all.borrow_mut();
            let name = self.name();
            let at = match all.iter().position(|(gate, _)| *gate == name) {
                Some(at) => at,
                None => {
                    all.push((name, 0));
                    all.len() - 1
                }
            };
            let before = all[at].1;
            all[at].1 = before.saturating_add_signed(by);
            if all[at].1 == 0 {
                all.swap_remove(at);
            }
            before
        });
        counted.unwrap_or(0)
    }

    pub(super) fn enter(&self) {
        if self.mine(1) > 0 {
            self.inside.fetch_add(1, SeqCst);
            return;
        }
        loop {
            // Either the cut sees this thread inside, or this thread sees the gate closed.
            self.inside.fetch_add(1, SeqCst);
            if !self.closed.load(SeqCst) {
                return;
            }
            self.leave_one();
            let mut cutting = self.lock();
            while self.closed.load(SeqCst) {
                cutting = self.changed.wait(cutting).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
    }

    pub(super) fn leave(&self) {
        self.mine(-1);
        self.leave_one();
    }

    fn leave_one(&self) {
        if self.inside.fetch_sub(1, SeqCst) == 1 && self.closed.load(SeqCst) {
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    pub(super) fn is_inside(&self) -> bool {
        self.mine(0) > 0
    }

    /// Waits for `patience` at most.
    pub(super) fn close(&self, patience: Duration) -> Result<Closed<'_>, Refused> {
        if self.is_inside() {
            return Err(Refused::Inside);
        }
        let end = Instant::now().checked_add(patience);
        let mut cutting = self.wait(self.lock(), end, |cutting| !cutting)?;
        *cutting = true;
        self.closed.store(true, SeqCst);
        let closed = Closed { gate: self, open: false };
        drop(self.wait(cutting, end, |_| self.inside.load(SeqCst) == 0)?);
        Ok(closed)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.cutting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'g>(
        &'g self,
        mut cutting: MutexGuard<'g, bool>,
        end: Option<Instant>,
        ready: impl Fn(bool) -> bool,
    ) -> Result<MutexGuard<'g, bool>, Refused> {
        while !ready(*cutting) {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Refused::Busy);
            }
            let waited = self.changed.wait_timeout(cutting, left);
            cutting = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        Ok(cutting)
    }
}

/// Dropping it opens the gate. Not to be dropped with `cutting` held.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    gate: &'a Gate,
    open: bool,
}

impl Closed<'_> {
    pub(super) fn open(&mut self) {
        if !std::mem::replace(&mut self.open, true) {
            self.gate.closed.store(false, SeqCst);
            drop(self.gate.lock());
            self.gate.changed.notify_all();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.open();
        *self.gate.lock() = false;
        self.gate.changed.notify_all();
    }
}
