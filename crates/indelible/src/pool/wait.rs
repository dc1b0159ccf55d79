//! Waiting for objects and devices of other processes: on request, or for a dying process, never
//! longer.

use super::{Inner, Pool};
use crate::backing::BackingError;
use crate::error::Cause;
use crate::media::MediaError;
use crate::memory::MemoryError;
use crate::sys::ofd;
use indelible_store::error::{Holder, StoreError};
use indelible_store::slices::Wait as Waiting;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A killed process keeps its locks until the kernel has ended it.
const ENDING: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Wait(AtomicU64);

impl Pool {
    /// Sets how long attach, resize, rename and destroy wait for an object in use (by default not
    /// at all), and how long operations wait for the table, and consistent cuts for locks of the
    /// object (20 s).
    pub fn set_wait(&self, wait: Duration) {
        self.inner.set_wait(wait);
    }
}

impl Inner {
    pub(super) fn set_wait(&self, wait: Duration) {
        self.store.set_patience(wait);
        self.wait.0.store(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn patiently<T>(&self, attempt: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
        self.patiently_for(None, attempt)
    }

    /// `None`: as long as the pool waits. First applies commits that a dead process left in memory.
    pub(crate) fn patiently_for<T>(
        &self,
        wait: Option<Duration>,
        mut attempt: impl FnMut() -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let of_pool = || Duration::from_nanos(self.wait.0.load(Ordering::Relaxed));
        patiently(wait.unwrap_or_else(of_pool), || {
            loop {
                match attempt() {
                    Err(Cause::Store(StoreError::MemoryLeft { memory })) => self.recover_memory(memory)?,
                    done => return done,
                }
            }
        })
    }
}

pub(crate) fn patiently<T>(wait: Duration, attempt: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
    patiently_within(wait, ENDING, attempt)
}

/// `ending`: the longest wait for a process that is ending.
fn patiently_within<T>(
    wait: Duration,
    ending: Duration,
    mut attempt: impl FnMut() -> Result<T, Cause>,
) -> Result<T, Cause> {
    let waiting = Waiting::begin();
    let mut pause = Duration::from_micros(100);
    loop {
        let left = wait.saturating_sub(waiting.elapsed());
        if left.is_zero() {
            match attempt() {
                Err(error)
                    if waiting.elapsed() < ending && !waiting.is_over() && is_of_ending_process(&error) =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                done => return done,
            }
        }
        match ofd::unnamed(&mut attempt) {
            Err(error) if is_others(&error) => {
                if waiting.is_over() {
                    return Err(error);
                }
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

fn is_others(error: &Cause) -> bool {
    matches!(
        error,
        Cause::Store(StoreError::Held { .. })
            | Cause::Media(MediaError::InUse { .. })
            | Cause::Memory(
                MemoryError::Store(StoreError::Held { .. })
                    | MemoryError::Backing(BackingError::InUse { .. }),
            )
    )
}

fn is_of_ending_process(error: &Cause) -> bool {
    let holder = match error {
        Cause::Store(StoreError::Held { holder, .. })
        | Cause::Memory(
            MemoryError::Store(StoreError::Held { holder, .. })
            | MemoryError::Backing(BackingError::InUse { holder, .. }),
        ) => holder,
        _ => return false,
    };
    matches!(holder, Holder::Process { process, .. } if process.ending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;
    use indelible_store::medium::LockMode;
    use std::os::fd::AsFd;

    #[test]
    fn the_holder_is_looked_for_once_however_long_the_wait() {
        let file = tempfile::tempfile().unwrap();
        assert!(ofd::try_lock(file.as_fd(), 0, LockMode::Exclusive).unwrap());
        for wait in [0, 30] {
            let mut named = Vec::new();
            let waited = patiently(Duration::from_millis(wait), || {
                named.push(ofd::holder(file.as_fd(), 0).is_some());
                let path = "memory".into();
                Err::<(), _>(MemoryError::from(BackingError::InUse { path, holder: Holder::Unknown }).into())
            });
            assert!(matches!(waited, Err(Cause::Memory(MemoryError::Backing(BackingError::InUse { .. })))));
            assert_eq!(named.pop(), Some(true), "the caller sees this one");
            assert!(!named.contains(&true) && named.is_empty() == (wait == 0), "{named:?}");
        }
    }

    #[test]
    fn a_process_that_is_ending_is_waited_for_and_no_other() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let held = |pid| {
            let holder = Holder::Process { process: process::seen(pid), writer: true };
            Cause::Store(StoreError::Held { holder, others: Default::default(), passing: false })
        };
        let mut attempts = 0;
        let attempt = |attempts: &mut u32, pid| {
            *attempts += 1;
            if *attempts < 3 { Err(held(pid)) } else { Ok(()) }
        };
        let refused = patiently(Duration::ZERO, || attempt(&mut attempts, child.id()));
        assert!(refused.is_err() && attempts == 1, "one that lives is not waited for");
        child.kill().unwrap();
        // It is dead, and stays until it is waited for: between signal and end the kernel shows for
        // a moment that the process lives.
        let pid = rustix::process::Pid::from_child(&child);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        attempts = 0;
        let waited = patiently_within(Duration::ZERO, Duration::MAX, || attempt(&mut attempts, child.id()));
        assert!(waited.is_ok() && attempts == 3, "{attempts} attempts");
        child.wait().unwrap();
    }
}
