//! Who stores to data of a heap under a lock of the data's own, and the consistent cut that has to wait
//! for them: a cut holds whole critical sections, or nothing of them.
//!
//! A thread that is inside already goes on inside, also while a cut waits: it may need several locks.

use crate::sys::sync::{Condvar, Mutex, thread_local};
use crate::sys::total::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::cell::RefCell;

thread_local! {
    /// Gates this thread is inside of, each with how often.
    // The models' threads have no const initializers.
    #[allow(clippy::missing_const_for_thread_local)]
    static INSIDE: RefCell<Vec<(usize, usize)>> = RefCell::new(Vec::new());
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    inside: AtomicUsize,
    closed: AtomicBool,
    cuts: Mutex<()>,
    waiting: Mutex<()>,
    changed: Condvar,
}

impl Gate {
    fn name(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// How often this thread is inside, changed by `by`.
    fn mine(&self, by: isize) -> usize {
        INSIDE.with(|all| {
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
        })
    }

    pub(super) fn enter(&self) {
        if self.mine(1) > 0 {
            self.inside.fetch_add(1, SeqCst);
            return;
        }
        loop {
            // Either the cut sees this one inside, or this one sees that the gate is closed.
            self.inside.fetch_add(1, SeqCst);
            if !self.closed.load(SeqCst) {
                return;
            }
            self.leave_one();
            let mut waiting = self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            while self.closed.load(SeqCst) {
                waiting = self.changed.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
    }

    pub(super) fn leave(&self) {
        self.mine(-1);
        self.leave_one();
    }

    fn leave_one(&self) {
        if self.inside.fetch_sub(1, SeqCst) == 1 && self.closed.load(SeqCst) {
            drop(self.waiting.lock());
            self.changed.notify_all();
        }
    }

    /// Runs `cut` while nobody is inside; `None` if this thread itself is.
    pub(super) fn cut<R>(&self, cut: impl FnOnce() -> R) -> Option<R> {
        if self.mine(0) > 0 {
            return None;
        }
        let _one = self.cuts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.closed.store(true, SeqCst);
        let opened = Opened(self);
        let mut waiting = self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while self.inside.load(SeqCst) > 0 {
            waiting = self.changed.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(waiting);
        let result = cut();
        drop(opened);
        Some(result)
    }
}

/// Opens the gate when dropped, also by a panic.
struct Opened<'a>(&'a Gate);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.closed.store(false, SeqCst);
        drop(self.0.waiting.lock());
        self.0.changed.notify_all();
    }
}
