//! The words by which producers and a consumer agree on the slots of a queue. `crates/models` runs
//! this file in every order of threads.
//!
//! *Many producers.* Each slot has a word: phase, lap, and the number of its writer or the length
//! of its message. A producer claims the slot at the tail by changing its word from free to
//! writing, with its own number in it, so that from the first instant on its owner is known; then
//! the tail moves on, by any thread that sees that it has not yet. So a producer may die at any
//! instruction: the consumer finds its number, asks whether it lives, and skips the slot.
//!
//! *One producer.* The tail moves once the message is there; the word of a slot is the length. A
//! producer that dies before that has left nothing.
//!
//! Any words are safe: each call ends, and tells of no slot but those that there are.

use crate::sys::sync::{AtomicU32, AtomicU64, Ordering, fence};

const FREE: u64 = 0;
const WRITING: u64 = 1;
const READY: u64 = 2;
/// Laps are counted modulo so many.
const LAPS: u64 = 1 << 30;
/// Attempts to claim a slot. Each that fails is another producer's success, or the work of one that
/// scribbles.
const ATTEMPTS: usize = 1 << 16;
/// Length of the message that a slot has whose producer gave it up, or died.
pub(crate) const NO_MESSAGE: u32 = u32::MAX;

fn word(phase: u64, lap: u64, low: u32) -> u64 {
    phase << 62 | (lap % LAPS) << 32 | u64::from(low)
}

/// Phase, lap, and the low half.
fn parts(word: u64) -> (u64, u64, u32) {
    (word >> 62, word >> 32 & (LAPS - 1), word as u32)
}

/// The tail or the head, as the side that does not move it saw it last: it looks again when that is
/// not enough, as the word's line is in the other side's cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen(u64);

/// The words of a queue. There are as many states as slots, a power of two.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    pub(crate) states: &'a [AtomicU64],
    /// Number of the next message that is put in.
    pub(crate) tail: &'a AtomicU64,
    /// Number of the next message that is taken out.
    pub(crate) head: &'a AtomicU64,
}

/// Outcome of an attempt to have a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// That of the message of this number.
    At(u64),
    Full,
    Damaged,
}

/// The slot at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Empty,
    /// A message of so many bytes, as its producer says.
    Ready(u32),
    /// The one with this number is writing it; its word, whole.
    Writing(u32, u64),
    /// A consumer that died had freed it.
    Passed,
    Damaged,
}

impl Slots<'_> {
    /// Index of the slot of message `number`.
    pub(crate) fn index(&self, number: u64) -> usize {
        number as usize & (self.states.len() - 1)
    }

    fn lap(&self, number: u64) -> u64 {
        (number >> self.states.len().trailing_zeros()) % LAPS
    }

    fn state(&self, number: u64) -> &AtomicU64 {
        &self.states[self.index(number)]
    }

    /// With many producers: claims the slot at the tail for the one with this number.
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
                // Another thread has it, or has had it, and the tail has not moved.
                (WRITING | READY, 0) => self.pass(number),
                (FREE, ahead) if ahead < LAPS / 2 => self.pass(number),
                // The lap before is still in there, unless the tail has moved since it was read.
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

    /// Moves the tail beyond a message, unless it was moved.
    fn pass(&self, number: u64) {
        let next = number.wrapping_add(1);
        let _ = self.tail.compare_exchange(number, next, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// With many producers: the message is in its slot.
    pub(crate) fn publish(&self, number: u64, len: u32) {
        self.state(number).store(word(READY, self.lap(number), len), Ordering::Release);
    }

    /// With many producers: the message at the head.
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

    /// With many producers: the slot of a message that was taken out is free for the next lap.
    pub(crate) fn free(&self, number: u64) {
        self.state(number).store(word(FREE, self.lap(number) + 1, 0), Ordering::Release);
    }

    /// With many producers: the slot of a dead producer has no message, if its word is still
    /// `found`.
    pub(crate) fn skip(&self, number: u64, found: u64) -> bool {
        let none = word(READY, self.lap(number), NO_MESSAGE);
        self.state(number).compare_exchange(found, none, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// With one producer: whether there is room for message `number`. `head`: as it was seen last.
    /// `None`: the words cannot be.
    pub(crate) fn has_room(&self, number: u64, head: &mut Seen) -> Option<bool> {
        let slots = self.states.len() as u64;
        if number.wrapping_sub(head.0) >= slots {
            head.0 = self.head.load(Ordering::Acquire);
        }
        let used = number.wrapping_sub(head.0);
        (used <= slots).then_some(used < slots)
    }

    /// With one producer: the message is in its slot.
    pub(crate) fn put(&self, number: u64, len: u32) {
        self.state(number).store(u64::from(len), Ordering::Relaxed);
        self.tail.store(number.wrapping_add(1), Ordering::Release);
    }

    /// With one producer: the message at the head.
    pub(crate) fn next(&self, head: u64, tail: &mut Seen) -> Front {
        let slots = self.states.len() as u64;
        if !(1..=slots).contains(&tail.0.wrapping_sub(head)) {
            tail.0 = self.tail.load(Ordering::Acquire);
        }
        match tail.0.wrapping_sub(head) {
            0 => Front::Empty,
            used if used <= slots => {
                Front::Ready(u32::try_from(self.state(head).load(Ordering::Relaxed)).unwrap_or(u32::MAX))
            }
            _ => Front::Damaged,
        }
    }
}

/// A word that says whether a thread sleeps, or is about to. It is armed, then the awaited
/// condition is checked once more, then the word is slept on as long as it is armed.
#[derive(Clone, Copy)]
pub(crate) struct Bell<'a>(pub(crate) &'a AtomicU32);

impl Bell<'_> {
    /// The value of a word that is slept on.
    pub(crate) const ARMED: u32 = 1;

    pub(crate) fn arm(self) {
        self.0.store(Bell::ARMED, Ordering::Relaxed);
        // Before the awaited condition is checked; see `ring`.
        fence(Ordering::SeqCst);
    }

    /// Notes that the event has happened; returns whether a thread must be woken.
    #[must_use]
    pub(crate) fn ring(self) -> bool {
        // One of the two sees the other's store: the sleeper the message, or the producer the armed
        // word.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }
}
