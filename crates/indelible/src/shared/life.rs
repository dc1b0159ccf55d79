//! Lives: whether a process or thread still exists, as seen by all that share an object (S2.20). A
//! life is a kernel lock on a byte of the object's memory, under a never reused number.

use super::memory::Memory;
use super::object::SharedObject;
use crate::error::{Cause, Result};
use crate::sys::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(10);

/// A life that others know by its [number](Life::number); it ends with its drop or the process. For
/// a thread's life, keep it in the thread.
pub struct Life {
    memory: Arc<Memory>,
    number: u32,
}

impl Life {
    /// Its number for others; not 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.memory.check().is_ok() {
            self.memory.give_up(u64::from(self.number));
            self.memory.tell_end();
        }
    }
}

impl std::fmt::Debug for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Life").field(&self.number).finish()
    }
}

impl SharedObject {
    /// Begins a life, for example a thread's. Store its number in the object to let others check
    /// it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # use indelible::{Class, CreateOptions};
    /// # pool.create_with("crew", &CreateOptions::new(4096).class(Class::Shared))?;
    /// let crew = pool.attach_shared("crew")?;
    /// let life = crew.begin_life()?;
    /// let number = life.number();
    /// assert!(crew.is_alive(number)?);
    /// std::thread::spawn(move || drop(life)); // or its process dies
    /// assert!(crew.wait_end(number, None)?);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Gone`: the object's memory was truncated. `Forked`, `Io`.
    pub fn begin_life(&self) -> Result<Life> {
        self.about("begin a life in", || {
            self.memory.check()?;
            Ok(Life { memory: self.memory.clone(), number: self.memory.begin_life()? })
        })
    }

    /// The number of this process's life, which ends when it has detached the object everywhere.
    #[must_use]
    pub fn life(&self) -> u32 {
        self.memory.life()
    }

    /// Whether the life of this number goes on, in any process.
    ///
    /// # Errors
    /// As for [`begin_life`](Self::begin_life).
    pub fn is_alive(&self, number: u32) -> Result<bool> {
        self.about("look for a life in", || is_alive(&self.memory, number))
    }

    /// Waits up to `timeout` for the end of a life; returns whether it ended. An orderly end wakes
    /// waiters, a death is noticed within 10 ms.
    ///
    /// # Errors
    /// As for [`begin_life`](Self::begin_life).
    pub fn wait_end(&self, number: u32, timeout: Option<Duration>) -> Result<bool> {
        let begin = Instant::now();
        self.about("wait for the end of a life in", || {
            loop {
                let seen = self.memory.ends().load(Ordering::Acquire);
                if !is_alive(&self.memory, number)? {
                    return Ok(true);
                }
                let left = timeout.map_or(LOOK, |timeout| timeout.saturating_sub(begin.elapsed()));
                if left.is_zero() {
                    return Ok(false);
                }
                // The next look reports a lost page.
                let _ = futex::wait(self.memory.ends(), seen, Some(left.min(LOOK)));
            }
        })
    }
}

fn is_alive(memory: &Memory, number: u32) -> Result<bool, Cause> {
    memory.check()?;
    Ok(memory.is_claimed(u64::from(number))?)
}
