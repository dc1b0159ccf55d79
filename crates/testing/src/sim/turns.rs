//! Threads take turns at a medium's operations, by a seed or at given operations, so that a run of
//! simulated processes repeats to the last byte.
//!
//! Exactly one thread runs, from one operation to the next. So no thread may wait for another
//! except at an operation; threads of one process wait for its locks, and run freely instead.

use crate::seed::derived;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

thread_local!(static SEAT: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) });

/// The right of one thread at a time to run.
pub struct Turns {
    state: Mutex<State>,
    called: Vec<Condvar>,
}

enum Order {
    Random(fastrand::Rng),
    /// (thread, turns before the next entry).
    Switches(VecDeque<(usize, u64)>),
}

struct State {
    order: Order,
    missing: usize,
    live: Vec<usize>,
    current: Option<usize>,
    taken: Vec<u64>,
}

impl Turns {
    pub(crate) fn new(threads: usize, seed: u64) -> Arc<Turns> {
        Turns::with(threads, Order::Random(derived(seed, 0)))
    }

    /// Turns of two threads: the first has so many, then the second, then the first until its end.
    /// A waiting thread passes its turn on.
    #[must_use]
    pub fn switching([first, second]: [u64; 2]) -> Arc<Turns> {
        Turns::with(2, Order::Switches([(0, first), (1, second), (0, u64::MAX), (1, u64::MAX)].into()))
    }

    fn with(threads: usize, order: Order) -> Arc<Turns> {
        let (live, taken) = ((0..threads).collect(), vec![0; threads]);
        let state = State { order, missing: threads, live, current: None, taken };
        let called = (0..threads).map(|_| Condvar::new()).collect();
        Arc::new(Turns { state: Mutex::new(state), called })
    }

    #[must_use]
    pub fn taken(&self) -> Vec<u64> {
        self.lock().taken.clone()
    }

    pub fn take_part<R>(self: &Arc<Self>, number: usize, work: impl FnOnce() -> R) -> R {
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
        let live = &state.live;
        state.current = match &mut state.order {
            _ if live.is_empty() => None,
            Order::Random(rng) => Some(live[rng.usize(..live.len())]),
            Order::Switches(switches) => {
                while switches.front().is_some_and(|(thread, turns)| *turns == 0 || !live.contains(thread)) {
                    switches.pop_front();
                }
                let front = switches.front_mut();
                front.map(|(thread, turns)| {
                    *turns -= 1;
                    *thread
                })
            }
        };
        self.call(state);
    }

    fn call(&self, state: &mut State) {
        if let Some(number) = state.current {
            state.taken[number] += 1;
            self.called[number].notify_one();
        }
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, number: usize) {
        while state.current != Some(number) {
            state = self.called[number].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Passes the turn on; returns at this thread's next turn. `false`: this thread takes no part.
pub(super) fn pass() -> bool {
    take_turns(Turns::next)
}

pub(super) fn pause() -> bool {
    take_turns(|turns, state| {
        let waiting = state.current;
        match state.order {
            Order::Random(_) => turns.next(state),
            Order::Switches(_) => {
                state.current =
                    state.live.iter().copied().find(|thread| Some(*thread) != waiting).or(waiting);
                turns.call(state);
            }
        }
    })
}

fn take_turns(next: impl FnOnce(&Turns, &mut State)) -> bool {
    let Ok(Some((turns, number))) = SEAT.try_with(|seat| seat.borrow().clone()) else { return false };
    let mut state = turns.lock();
    next(&turns, &mut state);
    turns.wait(state, number);
    true
}
