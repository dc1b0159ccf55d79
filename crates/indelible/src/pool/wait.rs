//! Waiting for objects and devices that another process has: only if the caller asked for it, and never longer.

use super::{Inner, Pool};
use crate::backing::BackingError;
use crate::error::Cause;
use crate::media::MediaError;
use crate::memory::MemoryError;
use crate::sys::ofd;
use indelible_store::error::StoreError;
use indelible_store::slices;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long this process waits for objects of a pool; at first not at all.
#[derive(Debug, Default)]
pub(super) struct Wait(AtomicU64);

impl Pool {
    /// How long attach, resize, rename and destroy wait for an object in use, how long every
    /// operation waits for the table while another process has it, and how long a consistent cut
    /// waits for locks of the object. At first they do not wait for an object, and 20 s for the
    /// rest. Holds for all handles of this pool in the process. See
    /// [`PoolOptions::wait`](super::PoolOptions::wait).
    pub fn set_wait(&self, wait: Duration) {
        self.inner.set_wait(wait);
    }
}

impl Inner {
    pub(super) fn set_wait(&self, wait: Duration) {
        self.store.set_patience(wait);
        self.wait.0.store(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Makes `attempt`, again and again while another process has the object, until the wait is over.
    /// Commits of an object that a process which is gone left in memory are brought to the pool first.
    pub(crate) fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
        let wait = Duration::from_nanos(self.wait.0.load(Ordering::Relaxed));
        patiently(wait, || {
            loop {
                match attempt() {
                    Err(Cause::Store(StoreError::MemoryLeft { memory })) => self.recover_memory(memory)?,
                    done => return done,
                }
            }
        })
    }
}

/// Makes `attempt`, again and again for as long as `wait` while a lock of others prevents it. The error of the last attempt alone names the holder of the lock.
pub(crate) fn patiently<T>(
    wait: Duration,
    mut attempt: impl FnMut() -> Result<T, Cause>,
) -> Result<T, Cause> {
    let begin = slices::begin();
    let mut pause = Duration::from_micros(100);
    loop {
        let left = wait.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return attempt();
        }
        match ofd::unnamed(&mut attempt) {
            Err(error) if is_others(&error) => {
                if slices::is_over() {
                    return Err(error);
                }
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

/// Whether another process has the object or device; one that has its memory recovers it, or is dying.
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

#[cfg(test)]
mod tests {
    use super::*;
    use indelible_store::error::Holder;
    use indelible_store::medium::LockMode;
    use std::os::fd::AsFd;

    /// A look for the holder reads all of /proc.
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
}
