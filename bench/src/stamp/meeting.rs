//! A barrier that fails for all if one thread cannot go on.

use super::memory::{Outcome, Stop};
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
struct State {
    waiting: usize,
    turn: u64,
    cancelled: bool,
}

pub struct Meeting {
    threads: usize,
    state: Mutex<State>,
    all: Condvar,
}

pub struct Attended<'m>(&'m Meeting);

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl Meeting {
    pub fn new(threads: usize) -> Self {
        Meeting { threads, state: Mutex::default(), all: Condvar::new() }
    }

    pub fn attended(&self) -> Attended<'_> {
        Attended(self)
    }

    /// # Errors
    /// [`Stop::Cancelled`]: another thread cannot go on.
    pub fn meet(&self) -> Outcome<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = state.turn;
        state.waiting += 1;
        if state.waiting == self.threads {
            (state.waiting, state.turn) = (0, turn + 1);
            self.all.notify_all();
        }
        while state.turn == turn && !state.cancelled {
            state = self.all.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.cancelled { Err(Stop::Cancelled) } else { Ok(()) }
    }

    pub fn cancel(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).cancelled = true;
        self.all.notify_all();
    }
}
