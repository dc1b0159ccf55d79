//! The volume of a mount, shared by the threads that serve it and the one that psyncs it.
//!
//! Invariant: a reply in `waiting` is answered when the group ends, its owner dies, or its time is
//! over, once its changes are durable.

use crate::group::{Group, descends, generations};
use fuser::{Errno, ReplyEmpty};
use indelible_posix::{Entry, Error, Result, Synced, Volume};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between unrequested psyncs.
const PERIOD: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    state: Mutex<State>,
    /// An eventfd: a group begins, or the mount ends.
    woken: OwnedFd,
}

pub(crate) struct State {
    pub(crate) volume: Volume,
    /// As of their first read.
    pub(crate) directories: HashMap<u64, Vec<Entry>>,
    pub(crate) last: u64,
    group: Option<Group>,
    /// Groups whose time was over when another began: their ends fail.
    overtaken: Vec<Group>,
    waiting: Vec<ReplyEmpty>,
    closed: bool,
}

impl Shared {
    pub(crate) fn new(volume: Volume) -> io::Result<Shared> {
        let state = State {
            volume,
            directories: HashMap::new(),
            last: 0,
            group: None,
            overtaken: Vec::new(),
            waiting: Vec::new(),
            closed: false,
        };
        let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Shared { state: Mutex::new(state), woken })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn run(&self) {
        let mut state = self.lock();
        while !state.closed {
            let left =
                state.group.as_ref().map(|group| group.until.saturating_duration_since(Instant::now()));
            let pause = left.filter(|left| !left.is_zero()).map_or(PERIOD, |left| left.min(PERIOD));
            let life = state.group.as_ref().and_then(Group::life);
            drop(state);
            self.pause(life.as_deref(), pause);
            state = self.lock();
            state.end_abandoned();
            // It reports its failure; the next psync may succeed.
            let _ = state.sync_and_answer();
        }
    }

    /// Returns early when woken, and when an owner dies.
    fn pause(&self, life: Option<&OwnedFd>, time: Duration) {
        let mut wait: Vec<_> = [Some(&self.woken), life]
            .into_iter()
            .flatten()
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let _ = poll(&mut wait, Some(&time));
        let _ = rustix::io::read(&self.woken, &mut [0; 8]);
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.woken, &1_u64.to_ne_bytes());
    }

    /// Makes all changes durable, an open group's too, and detaches the volume.
    pub(crate) fn close(&self) -> std::result::Result<(), String> {
        let mut state = self.lock();
        state.closed = true;
        self.wake();
        if state.group.take().is_some() {
            let _ = state.volume.end_group();
        }
        state.sync_and_answer().and_then(|()| state.volume.close()).map_err(|error| error.to_string())
    }

    pub(crate) fn begin_group(&self, group: Group) -> Result<()> {
        let mut state = self.lock();
        state.end_abandoned();
        state.volume.begin_group(group.until.saturating_duration_since(Instant::now()))?;
        let owner = group.owner;
        let before = state.group.replace(group);
        state.overtaken.extend(before);
        state.overtaken.retain(|before| before.owner != owner && before.owner_lives());
        self.wake();
        Ok(())
    }

    pub(crate) fn end_group(&self, process: u32) -> std::result::Result<(), Errno> {
        let mut state = self.lock();
        state.end_abandoned();
        // A group that began in another: the nearer owner's is meant.
        let own = state.group.as_ref().and_then(|group| generations(process, group.owner));
        let late = state.overtaken.iter().enumerate();
        let late = late.filter_map(|(at, group)| Some((generations(process, group.owner)?, at))).min();
        if let Some((distance, at)) = late
            && own.is_none_or(|own| distance < own)
        {
            state.overtaken.swap_remove(at);
            return Err(Errno::ETIMEDOUT);
        }
        if own.is_some() {
            let ended = state.volume.end_group();
            state.group = None;
            let _ = state.sync_and_answer();
            return ended.map_err(|error| say(&error));
        }
        Err(if state.group.is_some() { Errno::EPERM } else { Errno::EINVAL })
    }
}

impl State {
    /// Ends a group whose owner is dead. Nothing takes changes back: those until now become
    /// durable.
    fn end_abandoned(&mut self) {
        if let Some(dead) = self.group.take_if(|group| !group.owner_lives()) {
            note(&format!(
                "process {} died before the end of its group, whose changes until then become durable",
                dead.owner
            ));
            // The psync that answers reports its failure.
            let _ = self.volume.end_group();
            let _ = self.sync_and_answer();
        }
    }

    fn sync_and_answer(&mut self) -> Result<()> {
        let synced = self.volume.sync();
        let errno = match &synced {
            Ok(Synced::Later) => return Ok(()),
            Ok(Synced::Durable) => None,
            Err(error) => {
                note(&format!("psync: {error}"));
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
        self.end_abandoned();
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

/// Writes to standard error, which may be full or closed: the mount serves on.
fn note(text: &str) {
    let _ = writeln!(io::stderr(), "pmo-mount: {text}");
}

/// An error's number; damage is also reported on standard error, with the file's name.
pub(crate) fn say(error: &Error) -> Errno {
    if error.errno() == libc::EIO {
        note(&error.to_string());
    }
    Errno::from_i32(error.errno())
}
