//! Words to wait for (S2.19).

use super::memory::Memory;
use crate::error::{Cause, Error, Result, SharedError};
use crate::sys::futex;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_secs(1);

/// Four bytes of a shared object that any sharing process may change, and wait for.
///
/// A change wakes no thread by itself: store, then [`wake`](Word::wake).
#[derive(Clone, Copy)]
pub struct Word<'a> {
    pub(super) memory: &'a Memory,
    pub(super) value: &'a AtomicU32,
}

impl Deref for Word<'_> {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        self.value
    }
}

impl Word<'_> {
    /// Sleeps while the word is `expected`, up to `timeout` (`None`: for ever); returns whether it
    /// changed. The death of the changing process goes unnoticed: give a timeout, or also wait for
    /// [its end](super::SharedObject::wait_end).
    ///
    /// # Errors
    /// `Gone`: the object's memory was truncated. `Forked`.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) -> Result<bool> {
        Ok(wait_any(&[(*self, expected)], timeout)?.is_some())
    }

    /// Wakes up to `most` sleepers on the word, in any process; returns their number.
    ///
    /// # Errors
    /// As for [`wait`](Word::wait).
    pub fn wake(&self, most: u32) -> Result<usize> {
        let woken = self.memory.check().and_then(|()| waited(self.memory, futex::wake(self.value, most)));
        woken.map_err(|cause| error(self.memory, "wake those who wait for", cause))
    }
}

impl std::fmt::Debug for Word<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Word").field(&self.load(Ordering::Relaxed)).finish()
    }
}

/// Sleeps until one of up to 128 words, of any shared objects, differs from its expected value.
/// Returns the index of the first changed one; `None`: timeout. Before Linux 5.16 the words are
/// polled every 2 ms.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{Class, CreateOptions, wait_any};
/// use std::sync::atomic::Ordering;
/// use std::time::Duration;
///
/// pool.create_with("doors", &CreateOptions::new(4096).class(Class::Shared))?;
/// let doors = pool.attach_shared("doors")?;
/// let (front, back) = (doors.word(0)?, doors.word(64)?);
/// back.store(1, Ordering::Release); // by another process, say
/// back.wake(1)?;
/// let opened = wait_any(&[(front, 0), (back, 0)], Some(Duration::from_secs(1)))?;
/// assert_eq!(opened, Some(1));
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// # Errors
/// `BadSize`: no words, or too many. `Gone`: the memory of an object was truncated. `Forked`.
pub fn wait_any(words: &[(Word<'_>, u32)], timeout: Option<Duration>) -> Result<Option<usize>> {
    let Some((first, _)) = words.first().filter(|_| words.len() <= futex::MOST) else {
        let cause = SharedError::Words { words: words.len(), most: futex::MOST };
        return Err(Error::new("wait for words", cause));
    };
    let wait = || {
        let begin = Instant::now();
        let slept: Vec<(&AtomicU32, u32)> =
            words.iter().map(|(word, expected)| (word.value, *expected)).collect();
        loop {
            let changed = words.iter().position(|(word, expected)| word.load(Ordering::Acquire) != *expected);
            // After the words were read: a lost page is known by then.
            for (word, _) in words {
                word.memory.check()?;
            }
            let left = timeout.map_or(LOOK, |timeout| timeout.saturating_sub(begin.elapsed()));
            if changed.is_some() || left.is_zero() {
                return Ok(changed);
            }
            waited(first.memory, futex::wait_any(&slept, Some(left.min(LOOK))))?;
        }
    };
    wait().map_err(|cause: Cause| error(first.memory, "wait for", cause))
}

fn waited<T>(memory: &Memory, result: std::io::Result<T>) -> Result<T, Cause> {
    match result {
        Ok(done) => Ok(done),
        Err(error) => {
            memory.check_whole()?;
            Err(SharedError::Wait(error).into())
        }
    }
}

pub(super) fn error(memory: &Memory, operation: &'static str, cause: impl Into<Cause>) -> Error {
    Error::new(operation, cause).pool(&memory.pool.path).object(&memory.name)
}
