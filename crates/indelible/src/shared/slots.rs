//! The words by which producers and a consumer agree on a queue's slots. `crates/models` runs this
//! file in every order of threads.
//!
//! *Many producers.* Each slot has a word: phase, lap, and its writer's number or the message's
//! length. A producer claims the slot at the tail by changing its word from free to writing with
//! its own number; then any thread may advance the tail. If the producer dies, the consumer finds
//! its number and skips the slot.
//!
//! *One producer.* The tail moves after the message is stored; a slot's word is the length, with a
//! mark once a request in it is completed.
//!
//! Any words are safe: each call ends, and returns existing slots only.

use crate::sys::sync::{AtomicU32, AtomicU64, Ordering, fence};

const FREE: u64 = 0;
const WRITING: u64 = 1;
const READY: u64 = 2;
const LAPS: u64 = 1 << 30;
const COMPLETED: u64 = 1 << 63;
const ATTEMPTS: usize = 1 << 16;
pub(crate) const NO_MESSAGE: u32 = u32::MAX;

fn word(phase: u64, lap: u64, low: u32) -> u64 {
    phase << 62 | (lap % LAPS) << 32 | u64::from(low)
}

fn parts(word: u64) -> (u64, u64, u32) {
    (word >> 62, word >> 32 & (LAPS - 1), word as u32)
}

/// Reread only when insufficient: its line is in the other side's cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen(u64);

#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    pub(crate) states: &'a [AtomicU64],
    pub(crate) tail: &'a AtomicU64,
    pub(crate) head: &'a AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    At(u64),
    Full,
    Damaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Empty,
    Ready(u32),
    Writing(u32, u64),
    /// A consumer that died had freed it; or it is completed.
    Passed,
    Damaged,
}

impl Slots<'_> {
    pub(crate) fn index(&self, number: u64) -> usize {
        number as usize & (self.states.len() - 1)
    }

    fn lap(&self, number: u64) -> u64 {
        (number >> self.states.len().trailing_zeros()) % LAPS
    }

    fn state(&self, number: u64) -> &AtomicU64 {
        &self.states[self.index(number)]
    }

    /// With many producers.
    pub(crate) fn claim(&self, owner: u32) -> Claim {
        for _ in 0..ATTEMPTS {
            let number = self.tail.load(Ordering::Acquire);
            let state = self.state(number).load(Ordering::Acquire);
            let (phase, found, _) = parts(state);
            let ahead = found.wrapping_sub(self.lap(number)) % LAPS;
            match (phase, ahead) {
                (FREE, 0) => {
                    let mine = word(WRITING, found, owner);
                    let slot = self.state(number);
                    if slot.compare_exchange(state, mine, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                        self.pass(number);
                        return Claim::At(number);
                    }
                }
                // Another thread has or had it, and the tail has not moved yet.
                (WRITING | READY, 0) => self.pass(number),
                (FREE, ahead) if ahead < LAPS / 2 => self.pass(number),
                // The previous lap is still in there, unless the tail has moved.
                (WRITING | READY, ahead) if ahead == LAPS - 1 => {
                    if self.tail.load(Ordering::Acquire) == number {
                        return Claim::Full;
                    }
                }
                _ => {
                    if self.tail.load(Ordering::Acquire) == number {
                        return Claim::Damaged;
                    }
                }
            }
        }
        Claim::Damaged
    }

    fn pass(&self, number: u64) {
        let next = number.wrapping_add(1);
        let _ = self.tail.compare_exchange(number, next, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, number: u64, len: u32) {
        self.state(number).store(word(READY, self.lap(number), len), Ordering::Release);
    }

    pub(crate) fn front(&self, head: u64) -> Front {
        let state = self.state(head).load(Ordering::Acquire);
        let (phase, lap, low) = parts(state);
        match (phase, lap.wrapping_sub(self.lap(head)) % LAPS) {
            (FREE, 0) => Front::Empty,
            (WRITING, 0) => Front::Writing(low, state),
            (READY, 0) => Front::Ready(low),
            (_, 1) => Front::Passed,
            _ => Front::Damaged,
        }
    }

    pub(crate) fn free(&self, number: u64) {
        self.state(number).store(word(FREE, self.lap(number) + 1, 0), Ordering::Release);
    }

    pub(crate) fn skip(&self, number: u64, found: u64) -> bool {
        let none = word(READY, self.lap(number), NO_MESSAGE);
        self.state(number).compare_exchange(found, none, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// With one producer. `head`: as last seen. `None`: impossible words.
    pub(crate) fn has_room(&self, number: u64, head: &mut Seen) -> Option<bool> {
        let slots = self.states.len() as u64;
        if number.wrapping_sub(head.0) >= slots {
            head.0 = self.head.load(Ordering::Acquire);
        }
        let used = number.wrapping_sub(head.0);
        (used <= slots).then_some(used < slots)
    }

    pub(crate) fn put(&self, number: u64, len: u32) {
        self.state(number).store(u64::from(len), Ordering::Relaxed);
        self.tail.store(number.wrapping_add(1), Ordering::Release);
    }

    pub(crate) fn next(&self, head: u64, tail: &mut Seen) -> Front {
        let slots = self.states.len() as u64;
        if !(1..=slots).contains(&tail.0.wrapping_sub(head)) {
            tail.0 = self.tail.load(Ordering::Acquire);
        }
        match tail.0.wrapping_sub(head) {
            0 => Front::Empty,
            used if used <= slots => match self.state(head).load(Ordering::Relaxed) {
                state if state & COMPLETED != 0 => Front::Passed,
                state => Front::Ready(u32::try_from(state).unwrap_or(u32::MAX)),
            },
            _ => Front::Damaged,
        }
    }

    /// By the consumer of a queue with one producer, of a number between head and tail.
    pub(crate) fn complete(&self, number: u64) {
        self.state(number).fetch_or(COMPLETED, Ordering::AcqRel);
    }

    pub(crate) fn is_completed(&self, number: u64) -> bool {
        self.state(number).load(Ordering::Acquire) & COMPLETED != 0
    }
}

/// Arm it, recheck the condition, then sleep while armed.
#[derive(Clone, Copy)]
pub(crate) struct Bell<'a>(pub(crate) &'a AtomicU32);

impl Bell<'_> {
    pub(crate) const ARMED: u32 = 1;

    pub(crate) fn arm(self) {
        self.0.store(Bell::ARMED, Ordering::Relaxed);
        // Before the awaited condition is checked; see `ring`.
        fence(Ordering::SeqCst);
    }

    #[must_use]
    pub(crate) fn ring(self) -> bool {
        // One side sees the other's store: the sleeper the message, or the producer the armed word.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }
}
