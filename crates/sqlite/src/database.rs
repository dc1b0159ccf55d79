//! A database that this process has open: its object, and the locks of the process's connections.
//!
//! Invariants:
//! 1. `writer` is the one connection that may store to the object, and it does so only while
//!    `barred`: no other connection reads the object's memory then.
//! 2. Without a writer, the object is as its last psync left it.
//! 3. The object is detached only when no connection reads its memory.
//!
//! Lock order: a connection's view, then the database's state.

use crate::failure::{Failure, Result, code};
use crate::header::{Header, START, copy};
use crate::lease::Lease;
use indelible::{
    AttachOptions, CreateOptions, ErrorKind, Object, Pool, PoolOptions, ReadObject, Tracking, psync_all,
};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Bytes of an object that is made for a database.
const FIRST: u64 = 256 << 10;
/// Least and most bytes by which an object grows.
const STEP: (u64, u64) = (256 << 10, 64 << 20);
/// Length of a pool that is made.
const POOL: u64 = 1 << 30;
/// A holder keeps the object for so long, at least, so that processes by turns make progress.
const TURN: Duration = Duration::from_millis(10);
/// How long a connection waits for another process to hand the object over before it is busy.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The place from which a connection reads.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Source {
    /// It has no lock.
    #[default]
    Nothing,
    /// The object, which this process has attached for writing.
    Object,
    /// A snapshot of its own.
    Snapshot,
}

/// The state that a connection reads, from its SHARED lock on.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) source: Source,
    /// Kept from one transaction to the next.
    pub(crate) snapshot: Option<ReadObject>,
    /// Psyncs of that state.
    pub(crate) commits: u64,
    /// Pages of the object's memory that SQLite has pointers to.
    pub(crate) lent: usize,
}

pub(crate) type SharedView = Arc<Mutex<View>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
pub(crate) struct State {
    object: Option<Object>,
    /// Whether the object differs from its last psync.
    unsynced: bool,
    pub(crate) writer: Option<u64>,
    /// Whether connections that begin to read may not read the object's memory.
    pub(crate) barred: bool,
    /// Connections that read the object's memory, but the writer.
    pub(crate) direct: Vec<(u64, SharedView)>,
    /// Connections.
    pub(crate) open: usize,
    /// Whether another process has asked for the object since it was attached.
    release: bool,
    /// Whether another process ever asked: then only writers attach the object.
    contended: bool,
    /// The lease's word at the attach, and its time.
    attached: Option<(u32, Instant)>,
    /// Whether a thread waits for processes that ask.
    watched: bool,
    /// A write failed: nothing is known of the object but by another attach.
    failed: bool,
}

/// A database that this process has open.
pub(crate) struct Database {
    pool: Pool,
    name: String,
    read_only: bool,
    state: Mutex<State>,
    lease: OnceLock<Option<Lease>>,
}

/// The databases that are open.
static OPEN: Mutex<Vec<Weak<Database>>> = Mutex::new(Vec::new());

/// How to open a database.
pub(crate) struct Open<'a> {
    pub(crate) path: &'a Path,
    pub(crate) object: &'a str,
    pub(crate) size: Option<u64>,
    pub(crate) create: bool,
}

impl Open<'_> {
    /// The pool, and whether it can only be read.
    fn pool(&self) -> Result<(Pool, bool)> {
        if let Some(pool) = crate::offered(self.path) {
            return Ok((pool, false));
        }
        let opened = match self.create {
            true => Pool::open_or_format(self.path, self.size.unwrap_or(POOL)),
            false => Pool::open(self.path),
        };
        match opened {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                Ok((PoolOptions::new().read_only(true).open(self.path)?, true))
            }
            opened => Ok((opened?, false)),
        }
    }

    /// The database, which connections of this process share.
    pub(crate) fn database(&self) -> Result<Arc<Database>> {
        let (pool, read_only) = self.pool()?;
        match pool.stat(self.object) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.create && !read_only => {
                let options = CreateOptions::new(FIRST).position_independent(true);
                match pool.create_with(self.object, &options) {
                    // Another process was faster.
                    Err(error) if error.kind() == ErrorKind::Exists => {}
                    created => created?,
                }
            }
            found => drop(found?),
        }
        let mut open = lock(&OPEN);
        open.retain(|database| database.strong_count() > 0);
        let same = |database: &Arc<Database>| {
            database.pool.id() == pool.id() && database.name == self.object && !database.lock().failed
        };
        if let Some(database) = open.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(database);
        }
        let name = self.object.to_owned();
        let database =
            Arc::new(Database { pool, name, read_only, state: Mutex::default(), lease: OnceLock::new() });
        open.push(Arc::downgrade(&database));
        Ok(database)
    }
}

impl Database {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether another database is in the same pool.
    pub(crate) fn is_with(&self, other: &Database) -> bool {
        self.pool.id() == other.pool.id()
    }

    /// The lease; `None`: it cannot be had, and the object is released after each transaction.
    fn lease(&self) -> Option<&Lease> {
        self.lease.get_or_init(|| Lease::of(&self.pool, &self.name).ok()).as_ref()
    }

    /// Attaches the object for writing.
    fn attach(self: &Arc<Self>, state: &mut State) -> Result<()> {
        let options = AttachOptions::new().tracking(Tracking::Explicit);
        let object = self.pool.attach_with(&self.name, &options)?;
        Header::of(&object)?;
        let asked = self.lease().and_then(|lease| lease.asked().ok());
        state.attached = asked.map(|asked| (asked, Instant::now()));
        state.release = asked.is_none();
        state.contended |= asked.is_none();
        (state.object, state.unsynced) = (Some(object), false);
        if let (false, Some(lease), Some(asked)) = (state.watched, self.lease(), asked) {
            state.watched = true;
            let (database, lease) = (Arc::downgrade(self), lease.clone());
            std::thread::Builder::new()
                .name("pmo-lease".into())
                .spawn(move || watch(&database, &lease, asked))
                .map_err(|error| Failure::new(code::IOERR, format!("cannot start a thread: {error}")))?;
        }
        Ok(())
    }

    /// Attaches the object for reading its memory if no other process has it, or wants to.
    pub(crate) fn try_attach(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.object.is_some() || state.contended {
            return Ok(());
        }
        match self.attach(state) {
            Err(failure) if failure.is_busy() => Ok(()),
            attached => attached,
        }
    }

    /// Attaches the object for a writer; asks another process for it.
    pub(crate) fn attach_for_writer(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.object.is_some() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut asked = false;
        loop {
            match self.attach(state) {
                Err(failure) if failure.is_busy() && begin.elapsed() < HAND_OVER => {}
                attached => return attached,
            }
            let Some(lease) = self.lease() else { return Err(Failure::busy()) };
            if !asked {
                lease.ask()?;
                asked = true;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// A snapshot of the newest psync, in the place of the one that the view has.
    pub(crate) fn show(&self, view: &mut View) -> Result<()> {
        let kept = view.snapshot.take().filter(|_| !self.read_only);
        let refreshed = kept.and_then(|mut snapshot| snapshot.refresh().is_ok().then_some(snapshot));
        let snapshot = match refreshed {
            Some(snapshot) => snapshot,
            // In a read-only pool it is a copy.
            None if self.read_only => self.pool.attach_read(&self.name)?,
            None => self.pool.attach_snapshot_anywhere(&self.name, b"")?,
        };
        view.commits = Header::read(&snapshot)?.commits;
        view.snapshot = Some(snapshot);
        view.source = Source::Snapshot;
        Ok(())
    }

    /// Has a connection that reads the object's memory read a snapshot of the same psync.
    fn convert(&self, id: u64, view: &SharedView) -> Result<()> {
        let mut view = lock(view);
        if view.source == Source::Object {
            if view.lent > 0 {
                return Err(Failure::busy());
            }
            let commits = view.commits;
            self.show(&mut view)?;
            if view.commits != commits {
                view.source = Source::Object;
                return Err(Failure::busy());
            }
        }
        self.lock().direct.retain(|(other, _)| *other != id);
        Ok(())
    }

    /// Has every connection but `writer` leave the object's memory. The state is barred.
    pub(crate) fn convert_all(&self, writer: Option<u64>) -> Result<()> {
        let readers = self.lock().direct.clone();
        readers
            .iter()
            .filter(|(id, _)| Some(*id) != writer)
            .try_for_each(|(id, view)| self.convert(*id, view))
    }

    /// Another process wants the object: detaches it now, or after the transactions that use it.
    fn give_up(&self) {
        {
            let mut state = self.lock();
            state.contended = true;
            if state.object.is_none() {
                return;
            }
            state.release = true;
            if state.writer.is_some() || state.barred {
                return;
            }
            state.barred = true;
        }
        // Readers that stay delay it until they end.
        let _ = self.convert_all(None);
        let mut state = self.lock();
        state.barred = false;
        state.settle();
    }
}

/// Waits for other processes that ask for the object.
fn watch(database: &Weak<Database>, lease: &Lease, mut seen: u32) {
    loop {
        if lease.wait(seen, Duration::from_secs(1)).is_err() {
            return;
        }
        let Some(database) = database.upgrade() else { return };
        let Ok(asked) = lease.asked() else { return };
        if asked == seen {
            continue;
        }
        seen = asked;
        let since = match database.lock().attached {
            Some((at, since)) if at != asked => since,
            _ => continue,
        };
        std::thread::sleep(TURN.saturating_sub(since.elapsed()));
        database.give_up();
    }
}

impl State {
    /// Refuses a database that failed.
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Failure::new(
                code::IOERR,
                "a write failed earlier; close and open the database again",
            ));
        }
        Ok(())
    }

    /// Whether a connection may begin to read the object's memory.
    pub(crate) fn is_open_to_readers(&self) -> bool {
        self.object.is_some() && !self.barred && !self.release
    }

    /// The attached object.
    pub(crate) fn object(&self) -> Result<&Object> {
        self.object.as_ref().ok_or_else(|| Failure::new(code::IOERR, "the object is not attached"))
    }

    fn object_mut(&mut self) -> Result<&mut Object> {
        self.object.as_mut().ok_or_else(|| Failure::new(code::IOERR, "the object is not attached"))
    }

    pub(crate) fn header(&self) -> Result<Header> {
        Header::of(self.object()?)
    }

    /// Copies bytes of the file; see [`copy`].
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<bool> {
        let object = self.object()?;
        let length = object.root::<Header>()?.length.min((object.len() - START) as u64);
        Ok(copy(object.as_slice(), length, offset, buffer))
    }

    /// Gives the object room for a file of `length` bytes, and some more if that is to be had.
    pub(crate) fn reserve(&mut self, length: u64) -> Result<()> {
        let object = self.object_mut()?;
        let (needed, len) = (START as u64 + length, object.len() as u64);
        if needed <= len {
            return Ok(());
        }
        let roomy = needed.max(len + (len / 4).clamp(STEP.0, STEP.1)).next_multiple_of(START as u64);
        match object.grow(roomy) {
            Err(error) if Failure::from(error.clone()).code == code::FULL => Ok(object.grow(needed)?),
            grown => Ok(grown?),
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset + bytes.len() as u64;
        self.reserve(end)?;
        self.unsynced = true;
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
        let object = self.object_mut()?;
        if length < object.root::<Header>()?.length {
            object.root_mut::<Header>()?.length = length;
            self.unsynced = true;
        }
        Ok(())
    }

    /// Whether a connection has stores that are not durable.
    pub(crate) fn is_unsynced(&self, writer: u64) -> bool {
        self.unsynced && self.writer == Some(writer)
    }

    /// Makes the writers' stores durable, as one step.
    pub(crate) fn sync(states: &mut [&mut State]) -> Result<()> {
        let mut objects = Vec::with_capacity(states.len());
        for state in states.iter_mut().filter(|state| state.unsynced) {
            let object = state.object_mut()?;
            object.root_mut::<Header>()?.commits += 1;
            objects.push(object);
        }
        let done = match &mut objects[..] {
            [] => return Ok(()),
            [object] => object.psync(),
            objects => psync_all(objects),
        };
        let done = done.map_err(Failure::from);
        for state in states.iter_mut().filter(|state| state.unsynced) {
            state.unsynced = done.is_err();
            state.failed = done.as_ref().is_err_and(|failure| failure.code != code::FULL);
        }
        done
    }

    /// Ends the writer's transaction: stores that were not psynced are undone.
    pub(crate) fn end_writer(&mut self) {
        if std::mem::take(&mut self.unsynced) && !self.failed {
            self.failed = self.object_mut().is_ok_and(|object| object.revert().is_err());
        }
        (self.writer, self.barred) = (None, false);
    }

    /// Detaches the object if that is due, and no connection uses it.
    pub(crate) fn settle(&mut self) {
        let idle = self.writer.is_none() && self.direct.is_empty() && !self.barred;
        if idle && (self.release || self.failed) {
            (self.object, self.release, self.attached) = (None, false, None);
        }
    }
}
