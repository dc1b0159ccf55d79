//! The least cost of a group commit: threads change volatile values and are woken together.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_micros(50);

#[derive(Default)]
struct State {
    round: u64,
    waiting: usize,
    over: bool,
}

type Values = Mutex<HashMap<u64, [u64; 8]>>;

#[derive(Default)]
struct Rounds {
    values: Values,
    state: Mutex<State>,
    ended: Condvar,
    complete: Condvar,
}

impl Rounds {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, number: u64) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(number % 10_000, [number; 8]);
    }

    fn wait(&self, threads: usize) {
        loop {
            let mut state = self.lock();
            let round = state.round;
            if state.over {
                break;
            }
            drop(state);
            self.change(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            state = self.lock();
            state.waiting += 1;
            if state.waiting == threads {
                self.complete.notify_one();
            }
            let ends = |state: &mut State| state.round == round && !state.over;
            drop(self.ended.wait_while(state, ends).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn end(&self, threads: usize, slice: Duration) -> u64 {
        let start = Instant::now();
        let mut state = self.lock();
        while start.elapsed() < slice {
            state = self
                .complete
                .wait_while(state, |state| state.waiting < threads)
                .unwrap_or_else(PoisonError::into_inner);
            (state.waiting, state.round) = (0, state.round + 1);
            drop(state);
            self.ended.notify_all();
            state = self.lock();
        }
        state.over = true;
        self.ended.notify_all();
        state.round
    }
}

pub fn changes(threads: usize, slice: Duration) -> f64 {
    let rounds = Rounds::default();
    beside(&rounds, threads, slice, || ())
}

/// Nanoseconds of the longest change by a thread without rounds, beside so many with them.
pub fn longest_stop(threads: usize, slice: Duration) -> f64 {
    let (rounds, mut stop, mut number) = (Rounds::default(), 0.0, 0);
    beside(&rounds, threads, slice, || {
        stop = longest(slice, || {
            rounds.change(number);
            number += 1;
        });
    });
    stop
}

fn beside(rounds: &Rounds, threads: usize, slice: Duration, work: impl FnOnce()) -> f64 {
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(|| rounds.wait(threads))));
        let start = Instant::now();
        let ends = scope.spawn(move || (rounds.end(threads, slice), start.elapsed().as_secs_f64()));
        work();
        let (ended, seconds) = ends.join().unwrap_or((0, f64::NAN));
        (ended * threads as u64) as f64 / seconds
    })
}

pub fn longest(slice: Duration, mut change: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut longest = 0.0_f64;
    while start.elapsed() < slice {
        let begin = Instant::now();
        change();
        longest = longest.max(begin.elapsed().as_nanos() as f64);
        while begin.elapsed() < PAUSE {
            std::thread::yield_now();
        }
    }
    longest
}
