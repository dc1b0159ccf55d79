//! Threads take turns at a medium's operations: which runs next is decided by a seed, so that a run of several
//! simulated processes can be repeated to the last byte.
//!
//! Exactly one of the threads runs at any time: it has the turn from one operation to the next. Therefore none of
//! them may wait for another except at an operation, as those of one process do that share its locks: these run
//! freely.

use crate::seed::derived;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

thread_local!(static SEAT: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) });

/// The right of one thread at a time to run.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Of each thread: it has the turn.
    called: Vec<Condvar>,
}

struct State {
    rng: fastrand::Rng,
    /// Threads that have not begun yet.
    missing: usize,
    /// Threads that are not done yet, ascending.
    live: Vec<usize>,
    current: Option<usize>,
}

impl Turns {
    /// Of so many threads.
    pub(crate) fn new(threads: usize, seed: u64) -> Arc<Turns> {
        let state =
            State { rng: derived(seed, 0), missing: threads, live: (0..threads).collect(), current: None };
        let called = (0..threads).map(|_| Condvar::new()).collect();
        Arc::new(Turns { state: Mutex::new(state), called })
    }

    /// Runs `work` as thread `number`, taking turns with the others.
    pub(crate) fn take_part<R>(self: &Arc<Self>, number: usize, work: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                if let Some((turns, number)) = SEAT.take() {
                    let mut state = turns.lock();
                    state.live.retain(|other| *other != number);
                    turns.next(&mut state);
                }
            }
        }
        SEAT.set(Some((self.clone(), number)));
        let _leave = Leave;
        let mut state = self.lock();
        state.missing -= 1;
        if state.missing == 0 {
            self.next(&mut state);
        }
        self.wait(state, number);
        work()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, state: &mut State) {
        let among = state.live.len();
        state.current = if among == 0 { None } else { Some(state.live[state.rng.usize(..among)]) };
        if let Some(number) = state.current {
            self.called[number].notify_one();
        }
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, number: usize) {
        while state.current != Some(number) {
            state = self.called[number].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Whether this thread takes turns with others: while it waits for them, it passes its turn on by asking again.
pub(super) fn are_taken() -> bool {
    SEAT.with_borrow(Option::is_some)
}

/// The turn passes to whoever the seed chooses; returns when it is this thread's again. Threads that take no part
/// go on.
pub(super) fn pass() {
    // A thread at its end has left.
    let seat = SEAT.try_with(|seat| seat.borrow().clone());
    if let Ok(Some((turns, number))) = seat {
        let mut state = turns.lock();
        turns.next(&mut state);
        turns.wait(state, number);
    }
}
