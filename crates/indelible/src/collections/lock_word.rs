//! The word of a lock in an object: the attachment's number in its upper half, the holders in the
//! lower. A word of another attachment is free.

use super::parking::{SPINS, parking_lot};
use crate::sys::total::AtomicU64;
use crate::sys::total::Ordering::{Acquire, Relaxed, Release};

pub(super) const WRITER: u32 = 1 << 31;
const PARKED: u32 = 1 << 30;
const READERS: u32 = PARKED - 1;

fn state(word: u64, attachment: u32) -> u32 {
    if (word >> 32) as u32 == attachment { word as u32 } else { 0 }
}

fn compose(state: u32, attachment: u32) -> u64 {
    if state == 0 { 0 } else { u64::from(attachment) << 32 | u64::from(state) }
}

pub(super) fn exclusive(state: u32) -> Option<u32> {
    (state & !PARKED == 0).then_some(state | WRITER)
}

pub(super) fn shared(state: u32) -> Option<u32> {
    (state & WRITER == 0 && state & READERS < READERS).then_some(state + 1)
}

pub(super) fn try_acquire(word: &AtomicU64, attachment: u32, next: fn(u32) -> Option<u32>) -> bool {
    loop {
        let old = word.load(Relaxed);
        let Some(new) = next(state(old, attachment)) else { return false };
        if word.compare_exchange_weak(old, compose(new, attachment), Acquire, Relaxed).is_ok() {
            return true;
        }
    }
}

pub(super) fn acquire(word: &AtomicU64, attachment: u32, next: fn(u32) -> Option<u32>) {
    for _ in 0..SPINS {
        if try_acquire(word, attachment, next) {
            return;
        }
        std::hint::spin_loop();
    }
    let lot = parking_lot(word);
    let mut queue = lot.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    while !try_acquire(word, attachment, next) {
        let old = word.load(Relaxed);
        let state = state(old, attachment);
        // The releasing thread sees `PARKED`, and notifies once `queue` is free.
        let parked = compose(state | PARKED, attachment);
        if next(state).is_none() && word.compare_exchange(old, parked, Relaxed, Relaxed).is_ok() {
            queue = lot.wake.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

fn notify(word: &AtomicU64) {
    let lot = parking_lot(word);
    drop(lot.queue.lock());
    lot.wake.notify_all();
}

pub(super) fn release_exclusive(word: &AtomicU64) {
    if word.swap(0, Release) as u32 & PARKED != 0 {
        notify(word);
    }
}

pub(super) fn release_shared(word: &AtomicU64, attachment: u32) {
    loop {
        let old = word.load(Relaxed);
        let state = state(old, attachment);
        let last = state & READERS <= 1;
        let new = if last { 0 } else { compose(state - 1, attachment) };
        if word.compare_exchange_weak(old, new, Release, Relaxed).is_ok() {
            if last && state & PARKED != 0 {
                notify(word);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_another_attachment_is_free() {
        let word = AtomicU64::new(0);
        assert!(try_acquire(&word, 7, exclusive));
        assert!(!try_acquire(&word, 7, exclusive) && !try_acquire(&word, 7, shared));
        assert!(try_acquire(&word, 8, shared) && try_acquire(&word, 8, shared));
        assert!(!try_acquire(&word, 8, exclusive));
        release_shared(&word, 8);
        assert!(!try_acquire(&word, 8, exclusive));
        release_shared(&word, 8);
        assert_eq!(word.load(Relaxed), 0);
        assert!(try_acquire(&word, 8, exclusive));
        release_exclusive(&word);
        assert_eq!(word.load(Relaxed), 0);
    }

    #[test]
    fn no_thread_waits_forever() {
        let word = AtomicU64::new(0);
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (word, count) = (&word, &count);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        if (round + number) % 3 == 0 {
                            acquire(word, 1, shared);
                            std::thread::yield_now();
                            release_shared(word, 1);
                        } else {
                            acquire(word, 1, exclusive);
                            let before = count.load(Relaxed);
                            std::thread::yield_now();
                            count.store(before + 1, Relaxed);
                            release_exclusive(word);
                        }
                    }
                });
            }
        });
        let alone = (0..4).map(|n| (0..2_000).filter(|round| (round + n) % 3 != 0).count()).sum::<usize>();
        assert_eq!(count.into_inner(), alone as u64);
    }
}
