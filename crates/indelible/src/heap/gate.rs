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
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cutting: bool,
    /// Threads that wait for `changed`: without one, a change wakes none.
    waiting: usize,
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
            let mut state = self.lock();
            state.waiting += 1;
            while self.closed.load(SeqCst) {
                state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            state.waiting -= 1;
        }
    }

    pub(super) fn leave(&self) {
        self.mine(-1);
        self.leave_one();
    }

    fn leave_one(&self) {
        if self.inside.fetch_sub(1, SeqCst) == 1 && self.closed.load(SeqCst) {
            self.tell(&self.lock());
        }
    }

    fn tell(&self, state: &State) {
        if state.waiting > 0 {
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
        let mut state = self.wait(self.lock(), end, |cutting| !cutting)?;
        state.cutting = true;
        self.closed.store(true, SeqCst);
        let closed = Closed { gate: self, open: false };
        drop(self.wait(state, end, |_| self.inside.load(SeqCst) == 0)?);
        Ok(closed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        end: Option<Instant>,
        ready: impl Fn(bool) -> bool,
    ) -> Result<MutexGuard<'g, State>, Refused> {
        while !ready(state.cutting) {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Refused::Busy);
            }
            state.waiting += 1;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            state.waiting -= 1;
        }
        Ok(state)
    }
}

/// Dropping it opens the gate. Not to be dropped with the state locked.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    gate: &'a Gate,
    open: bool,
}

impl Closed<'_> {
    pub(super) fn open(&mut self) {
        if !std::mem::replace(&mut self.open, true) {
            self.gate.closed.store(false, SeqCst);
            self.gate.tell(&self.gate.lock());
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.open();
        let mut state = self.gate.lock();
        state.cutting = false;
        self.gate.tell(&state);
    }
}
