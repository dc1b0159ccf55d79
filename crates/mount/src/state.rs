//! The volume of a mount, shared by the threads that serve it and the one that psyncs it.
//!
//! Invariant: a reply in `waiting` is answered when the group ends or its time is over, once its
//! changes are durable.

use crate::group::{Group, descends};
use fuser::{Errno, ReplyEmpty};
use indelible_posix::{Entry, Error, Result, Synced, Volume};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between unrequested psyncs.
const PERIOD: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    state: Mutex<State>,
    /// A group begins or ends, or the mount ends.
    woken: Condvar,
}

pub(crate) struct State {
    pub(crate) volume: Volume,
    /// As of their first read.
    pub(crate) directories: HashMap<u64, Vec<Entry>>,
    pub(crate) last: u64,
    group: Option<Group>,
    waiting: Vec<ReplyEmpty>,
    closed: bool,
}

impl Shared {
    pub(crate) fn new(volume: Volume) -> Shared {
        let state = State {
            volume,
            directories: HashMap::new(),
            last: 0,
            group: None,
            waiting: Vec::new(),
            closed: false,
        };
        Shared { state: Mutex::new(state), woken: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Psyncs every `PERIOD`, and when a group's time is over.
    pub(crate) fn run(&self) {
        let mut state = self.lock();
        while !state.closed {
            let pause = match &state.group {
                Some(group) => group.until.saturating_duration_since(Instant::now()).min(PERIOD),
                None => PERIOD,
            };
            state = self.woken.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            // It reports its failure; the next psync may succeed.
            let _ = state.sync_and_answer();
        }
    }

    /// Makes all changes durable, an open group's too, and detaches the volume.
    pub(crate) fn close(&self) -> std::result::Result<(), String> {
        let mut state = self.lock();
        state.closed = true;
        self.woken.notify_all();
        if state.group.take().is_some() {
            let _ = state.volume.end_group();
        }
        state.sync_and_answer().and_then(|()| state.volume.close()).map_err(|error| error.to_string())
    }

    pub(crate) fn begin_group(&self, group: Group) -> Result<()> {
        let mut state = self.lock();
        state.volume.begin_group(group.until.saturating_duration_since(Instant::now()))?;
        state.group = Some(group);
        self.woken.notify_all();
        Ok(())
    }

    pub(crate) fn may_end_group(&self, thread: u32) -> bool {
        self.lock().group.as_ref().is_none_or(|group| descends(thread, group.owner))
    }

    pub(crate) fn end_group(&self) -> Result<()> {
        let mut state = self.lock();
        let ended = state.volume.end_group();
        state.group = None;
        let _ = state.sync_and_answer();
        ended
    }
}

impl State {
    fn sync_and_answer(&mut self) -> Result<()> {
        let synced = self.volume.sync();
        let errno = match &synced {
            Ok(Synced::Later) => return Ok(()),
            Ok(Synced::Durable) => None,
            Err(error) => {
                eprintln!("pmo-mount: psync: {error}");
                Some(Errno::from_i32(error.errno()))
            }
        };
        for reply in self.waiting.drain(..) {
            match errno {
                None => reply.ok(),
                Some(errno) => reply.error(errno),
            }
        }
        synced.map(drop)
    }

    /// A group's own `fsync` returns at once, as its end makes the changes durable; others wait for
    /// that.
    pub(crate) fn sync(&mut self, process: u32, reply: ReplyEmpty) {
        match self.volume.sync() {
            Ok(Synced::Durable) => reply.ok(),
            Ok(Synced::Later) if self.group.as_ref().is_some_and(|group| descends(process, group.owner)) => {
                reply.ok()
            }
            Ok(Synced::Later) => self.waiting.push(reply),
            Err(error) => reply.error(say(&error)),
        }
    }
}

/// An error's number; damage is also reported on standard error, with the file's name.
pub(crate) fn say(error: &Error) -> Errno {
    if error.errno() == libc::EIO {
        eprintln!("pmo-mount: {error}");
    }
    Errno::from_i32(error.errno())
}
