//! The state of a database in a process: the attached object, and the locks of its connections.
//!
//! Invariants:
//! 1. `writer` alone may store to the object, and only while `barred`: no other connection reads
//!    the object's memory then.
//! 2. Without `dirty` stores the object is as the last transaction left it; unless some are `owed`,
//!    that is its last psync.
//! 3. The object is detached only when no connection reads its memory, and nothing is owed.

use crate::failure::{Failure, Result, code};
use crate::header::{Header, START, copy};
use crate::undo::Undo;
use indelible::{ErrorKind, Object, Pool, ReadObject, psync_all};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const STEP: (u64, u64) = (256 << 10, 64 << 20);

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Source {
    #[default]
    Nothing,
    Object,
    Snapshot,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) source: Source,
    /// Kept from one transaction to the next.
    pub(crate) snapshot: Option<ReadObject>,
    /// Whether the snapshot is the object itself, for want of room: it keeps writers out.
    pub(crate) keeps_writers_out: bool,
    pub(crate) commits: u64,
    /// Pages of the object's memory that SQLite has pointers to.
    pub(crate) lent: usize,
}

pub(crate) type SharedView = Arc<Mutex<View>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a written transaction is not psynced yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Syncs of the other databases of the pool that the transaction changes.
    Others,
    /// The deletion of a super-journal.
    Journal,
}

/// A psynced transaction that SQLite has not committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synced {
    Alone,
    /// As one step with other databases.
    Together,
    /// SQLite has committed another database of the step: this one cannot be undone.
    Bound,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    object: Option<Object>,
    /// The pool, if it gets longer where it has no room.
    grows: Option<Pool>,
    dirty: bool,
    /// Whether commits by ticket are not durable yet.
    owed: bool,
    /// Pages before the transaction, while a revert would also undo commits by ticket.
    undo: Undo,
    /// The newest commit, and the newest durable one, by their numbers in the header.
    pub(crate) committed: u64,
    pub(crate) durable: u64,
    pub(crate) unpaid: Option<Failure>,
    pub(crate) writer: Option<u64>,
    /// Set from the writer's last store of a transaction to its psync.
    pub(crate) wait: Option<Wait>,
    pub(crate) synced: Option<Synced>,
    /// Whether the writer has unlocked it, and stays until its undoing is durable.
    pub(crate) leaving: bool,
    /// Whether new readers may not read the object's memory.
    pub(crate) barred: bool,
    pub(crate) direct: Vec<(u64, SharedView)>,
    pub(crate) open: usize,
    /// Whether another process has asked for the object since it was attached.
    pub(crate) release: bool,
    /// Whether another process ever asked: then only writers attach the object.
    pub(crate) contended: bool,
    /// The lease's word at the attach, and its time.
    pub(crate) attached: Option<(u32, Instant)>,
    pub(crate) watched: bool,
    /// A write failed: nothing is known of the object but by another attach.
    failed: bool,
}

/// Does the work; while the pool has no room, doubles it and tries again.
pub(crate) fn with_room<T>(
    pool: Option<&Pool>,
    mut work: impl FnMut() -> indelible::Result<T>,
) -> indelible::Result<T> {
    loop {
        let done = work();
        let lacks = done.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoRoom);
        let longer = |pool: &Pool| pool.info().and_then(|info| pool.grow(info.length.saturating_mul(2)));
        if !lacks || pool.is_none_or(|pool| longer(pool).is_err()) {
            return done;
        }
    }
}

impl State {
    pub(crate) fn new(grows: Option<Pool>) -> State {
        State { grows, ..State::default() }
    }

    pub(crate) fn begin(&mut self, object: Object, commits: u64) {
        self.object = Some(object);
        (self.dirty, self.owed) = (false, false);
        (self.committed, self.durable) = (commits, commits);
    }

    pub(crate) fn growing_pool(&self) -> Option<Pool> {
        self.grows.clone()
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.object.is_some()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Failure::new(
                code::IOERR,
                "a write failed earlier; close and open the database again",
            ));
        }
        Ok(())
    }

    /// Refuses another connection's commit, under its EXCLUSIVE lock.
    pub(crate) fn check_writer(&self, id: u64) -> Result<()> {
        if self.writer != Some(id) || !self.barred {
            return Err(Failure::new(code::MISUSE, "a connection synced without its EXCLUSIVE lock"));
        }
        self.check()
    }

    pub(crate) fn is_open_to_readers(&self) -> bool {
        self.object.is_some() && !self.barred && !self.release
    }

    pub(crate) fn object(&self) -> Result<&Object> {
        self.object.as_ref().ok_or_else(|| Failure::new(code::IOERR, "the object is not attached"))
    }

    fn object_mut(&mut self) -> Result<&mut Object> {
        self.object.as_mut().ok_or_else(|| Failure::new(code::IOERR, "the object is not attached"))
    }

    fn header(&self) -> Result<&Header> {
        Ok(self.object()?.root::<Header>()?)
    }

    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<bool> {
        let object = self.object()?;
        let length = object.root::<Header>()?.length.min((object.len() - START) as u64);
        Ok(copy(object.as_slice(), length, offset, buffer))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.header()?.length)
    }

    /// Gives the object room for a file of `length` bytes, if possible with some to spare.
    pub(crate) fn reserve(&mut self, length: u64) -> Result<()> {
        let (needed, len) = (START as u64 + length, self.object()?.len() as u64);
        if needed <= len {
            return Ok(());
        }
        let roomy = needed.max(len + (len / 4).clamp(STEP.0, STEP.1)).next_multiple_of(START as u64);
        let pool = self.grows.clone();
        let object = self.object_mut()?;
        Ok(with_room(pool.as_ref(), || match object.grow(roomy) {
            Err(error) if Failure::from(error.clone()).code == code::FULL => object.grow(needed),
            grown => grown,
        })?)
    }

    fn keep(&mut self, bytes: Range<usize>) {
        if let (true, Some(object)) = (self.owed, &self.object) {
            self.undo.keep(object.as_slice(), 0..START);
            self.undo.keep(object.as_slice(), bytes);
        }
        (self.dirty, self.wait) = (true, None);
    }

    pub(crate) fn finish(&mut self, id: u64, wait: Wait) {
        if self.check_writer(id).is_ok() {
            self.wait = Some(wait);
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset + bytes.len() as u64;
        self.reserve(end)?;
        let before = self.len()?;
        self.keep(START + offset.min(before) as usize..START + end as usize);
        let object = self.object_mut()?;
        let mut header = *object.root::<Header>()?;
        if header.is_blank() || end > header.length {
            if header.is_blank() {
                header = Header::empty();
            }
            if offset > header.length {
                object.range_mut(START + header.length as usize..START + offset as usize).fill(0);
            }
            header.length = end;
            *object.root_mut::<Header>()? = header;
        }
        object.range_mut(START + offset as usize..START + end as usize).copy_from_slice(bytes);
        Ok(())
    }

    /// Cuts the file. Its bytes stay until it grows over them.
    pub(crate) fn truncate(&mut self, length: u64) -> Result<()> {
        if length < self.len()? {
            self.keep(0..START);
            self.object_mut()?.root_mut::<Header>()?.length = length;
        }
        Ok(())
    }

    /// Whether a connection has stores that are neither durable nor owed.
    pub(crate) fn is_unsynced(&self, writer: u64) -> bool {
        self.dirty && self.writer == Some(writer)
    }

    /// Whether the writer's transaction was psynced, and its undoing waits for other files.
    pub(crate) fn is_undone(&self, writer: u64) -> bool {
        self.is_unsynced(writer) && self.synced.is_some() && self.wait == Some(Wait::Others)
    }

    /// Refuses every use until the object is attached again; a writer that is leaving goes.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
        self.leave();
    }

    pub(crate) fn leave(&mut self) {
        if self.leaving {
            self.end_writer();
            self.settle();
        }
    }

    /// Whether a committed state of the object is not durable.
    pub(crate) fn is_payable(&self) -> bool {
        self.owed && !self.dirty && !self.failed
    }

    pub(crate) fn is_owing(&self) -> bool {
        self.owed && !self.failed
    }

    fn number(&mut self) -> Result<()> {
        let header = self.object_mut()?.root_mut::<Header>()?;
        header.commits += 1;
        self.committed = header.commits;
        Ok(())
    }

    /// Commits the writer's stores by ticket. Returns whether nothing was owed before.
    pub(crate) fn owe(&mut self) -> Result<bool> {
        if !self.dirty {
            return Ok(false);
        }
        self.number()?;
        (self.dirty, self.wait) = (false, None);
        self.undo.clear();
        Ok(!std::mem::replace(&mut self.owed, true))
    }

    /// Makes the writers' stores, and commits by ticket, durable as one step.
    pub(crate) fn sync(states: &mut [&mut State]) -> Result<()> {
        let pool = states.iter().find_map(|state| state.grows.clone());
        let mut objects = Vec::with_capacity(states.len());
        for state in states.iter_mut().filter(|state| state.dirty || state.owed) {
            if state.dirty {
                state.number()?;
            }
            objects.push(state.object_mut()?);
        }
        if objects.is_empty() {
            return Ok(());
        }
        let done = with_room(pool.as_ref(), || match &mut objects[..] {
            [object] => object.psync(),
            objects => psync_all(objects),
        });
        let done = done.map_err(Failure::from);
        for state in states.iter_mut().filter(|state| state.dirty || state.owed) {
            state.unpaid = done.as_ref().err().cloned();
            if done.is_ok() {
                (state.dirty, state.owed, state.durable) = (false, false, state.committed);
                state.undo.clear();
            }
            state.failed = done.as_ref().is_err_and(|failure| failure.code != code::FULL);
        }
        done
    }

    pub(crate) fn pay(&mut self) -> Result<()> {
        match (self.is_owing(), self.dirty) {
            (false, _) => Ok(()),
            (true, true) => Err(Failure::busy()),
            (true, false) => State::sync(&mut [self]),
        }
    }

    pub(crate) fn end_writer(&mut self) {
        if std::mem::take(&mut self.dirty) && !self.failed {
            let (owed, undo) = (self.owed, std::mem::take(&mut self.undo));
            let undone = self.object_mut().and_then(|object| {
                if owed {
                    undo.restore(object);
                    return Ok(());
                }
                Ok(object.revert()?)
            });
            self.failed = undone.is_err();
            self.committed = self.header().map_or(self.committed, |header| header.commits);
        }
        (self.writer, self.wait, self.synced) = (None, None, None);
        (self.barred, self.leaving) = (false, false);
    }

    pub(crate) fn settle(&mut self) {
        let idle = self.writer.is_none() && self.direct.is_empty() && !self.barred;
        if idle && (self.failed || self.release && self.pay().is_ok()) {
            (self.object, self.release, self.attached) = (None, false, None);
        }
    }
}
