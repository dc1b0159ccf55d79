//! File descriptors that become readable when a word changes, for `poll`.

use super::memory::Memory;
use super::object::SharedObject;
use super::word::error;
use crate::error::{Cause, Result, SharedError};
use crate::sys::futex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOK: Duration = Duration::from_secs(1);

/// A watched word: its descriptor is readable after a change, until [`take`](Event::take).
pub struct Event {
    memory: Arc<Memory>,
    fd: Arc<OwnedFd>,
    stop: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl SharedObject {
    /// Watches the four bytes at `offset`, last `seen` by the caller: a later change with a wake,
    /// or the memory's end, makes the descriptor readable.
    ///
    /// # Errors
    /// `BadSize`: see [`word`](Self::word). `Io`: there is no descriptor, or no thread.
    pub fn event(&self, offset: usize, seen: u32) -> Result<Event> {
        self.word(offset)?;
        self.about("watch a word of", || {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            let fd = Arc::new(made.map_err(|error| SharedError::Wait(error.into()))?);
            let (memory, stop) = (self.memory.clone(), Arc::new(AtomicU32::new(0)));
            let (watched, told, stopped) = (memory.clone(), fd.clone(), stop.clone());
            let thread = std::thread::Builder::new()
                .name("pmo event".into())
                .spawn(move || watch(&watched, offset, seen, &told, &stopped))
                .map_err(SharedError::Wait)?;
            Ok(Event { memory, fd, stop, thread: Some(thread) })
        })
    }
}

fn watch(memory: &Memory, offset: usize, mut seen: u32, fd: &OwnedFd, stop: &AtomicU32) {
    let Some(word) = memory.half(offset) else { return };
    let tell = || {
        let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
    };
    while stop.load(Ordering::Acquire) == 0 {
        if memory.check_whole().is_err() {
            return tell();
        }
        let now = word.load(Ordering::Acquire);
        if now != seen {
            seen = now;
            tell();
        }
        let _ = futex::wait_any(&[(word, seen), (stop, 0)], Some(LOOK));
    }
}

impl Event {
    /// Resets the descriptor; returns the number of changes seen since the last call.
    ///
    /// # Errors
    /// `Gone`: the object's memory was truncated. `Io`.
    pub fn take(&self) -> Result<u64> {
        let take = || {
            self.memory.check_whole()?;
            let mut count = [0; 8];
            match rustix::io::read(&*self.fd, &mut count) {
                Ok(_) => Ok(u64::from_ne_bytes(count)),
                Err(Errno::AGAIN) => Ok(0),
                Err(error) => Err(SharedError::Wait(error.into()).into()),
            }
        };
        take().map_err(|cause: Cause| error(&self.memory, "watch a word of", cause))
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.stop.store(1, Ordering::Release);
        let _ = futex::wake(&self.stop, u32::MAX);
        if let Some(thread) = self.thread.take().filter(|_| self.memory.pool.alive().is_ok()) {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("fd", &self.fd).finish()
    }
}
