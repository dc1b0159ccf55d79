//! Sleeping on words in shared memory, and waking the sleepers.
//!
//! The kernel identifies a word by its place in the file. A sleep may end without a wake.

#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::thread::{ClockId, Timespec};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const MOST: usize = 128;

/// Turn of a word where the kernel waits for one at a time.
const TURN: Duration = Duration::from_millis(2);

pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.map(timespec);
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
        Err(Errno::TIMEDOUT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// For at most [`MOST`] words. Waits in turns of 2 ms before Linux 5.16 and under system-call
/// filters that lack the call.
pub(crate) fn wait_any(words: &[(&AtomicU32, u32)], timeout: Option<Duration>) -> io::Result<bool> {
    if let [(word, expected)] = words {
        return wait(word, *expected, timeout);
    }
    let waiters: Vec<Wait> = words
        .iter()
        .map(|(word, expected)| {
            let mut wait = Wait::new();
            wait.val = u64::from(*expected);
            wait.uaddr = WaitPtr::new(from_ref(*word).cast_mut().cast());
            wait.flags = WaitFlags::SIZE_U32;
            wait
        })
        .collect();
    let deadline = timeout.map(|timeout| {
        now().checked_add(timespec(timeout)).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
    });
    match futex::waitv(&waiters, WaitvFlags::empty(), deadline.as_ref(), ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
        Err(Errno::TIMEDOUT) => Ok(false),
        Err(Errno::NOSYS | Errno::PERM) => wait_by_turns(words, timeout),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn wait_by_turns(words: &[(&AtomicU32, u32)], timeout: Option<Duration>) -> io::Result<bool> {
    let begin = Instant::now();
    for (word, expected) in words.iter().cycle() {
        if words.iter().any(|(word, expected)| word.load(Ordering::Acquire) != *expected) {
            return Ok(true);
        }
        let left = timeout.map_or(TURN, |timeout| timeout.saturating_sub(begin.elapsed()));
        if left.is_zero() {
            return Ok(false);
        }
        wait(word, *expected, Some(left.min(TURN)))?;
    }
    Ok(true)
}

pub(crate) fn wake(word: &AtomicU32, most: u32) -> io::Result<usize> {
    // The kernel's number is signed.
    Ok(futex::wake(word, Flags::empty(), most.min(i32::MAX as u32))?)
}

fn now() -> Timespec {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call fills the given struct, and this clock always exists; zeros are a time, too.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    Timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec }
}

fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    type Waits = fn(&[(&AtomicU32, u32)], Option<Duration>) -> io::Result<bool>;

    #[test]
    fn s2_19_a_change_of_any_word_ends_a_wait_with_either_call() {
        for waits in [wait_any as Waits, wait_by_turns] {
            let words: Vec<AtomicU32> = (0..5).map(AtomicU32::new).collect();
            let expected = || words.iter().zip(0..).collect::<Vec<_>>();
            assert!(!waits(&expected(), Some(Duration::from_millis(5))).unwrap(), "nothing changed");
            for word in &words {
                let before = word.load(Ordering::Relaxed);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        word.store(99, Ordering::Release);
                        wake(word, 1).unwrap();
                    });
                    while word.load(Ordering::Acquire) == before {
                        assert!(waits(&expected(), None).unwrap());
                    }
                });
                assert!(waits(&expected(), None).unwrap(), "it has changed before");
                word.store(before, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn times_that_no_clock_has_are_as_good_as_none() {
        let word = AtomicU32::new(1);
        for timeout in [Duration::MAX, Duration::from_secs(u64::MAX)] {
            assert!(wait_any(&[(&word, 0), (&word, 0)], Some(timeout)).unwrap());
            assert!(wait(&word, 0, Some(timeout)).unwrap());
        }
        assert!(!wait(&word, 1, Some(Duration::ZERO)).unwrap());
    }
}
