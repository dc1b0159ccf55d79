//! A database that this process has open: how its object is opened, attached, and handed over.
//!
//! Lock order: a connection's view, then the database's state.

use crate::failure::{Failure, Result, code};
use crate::header::Header;
use crate::host;
use crate::lease::Lease;
use crate::state::{SharedView, Source, State, View, lock, with_room};
use indelible::{AttachOptions, CreateOptions, ErrorKind, PerProcess, Pool, PoolOptions, Tracking};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of an object that is made for a database.
const FIRST: u64 = 256 << 10;
const POOL: u64 = 1 << 30;
/// A holder keeps the object for so long, at least, so that processes by turns make progress.
const TURN: Duration = Duration::from_millis(10);
/// How long a connection waits for another process to hand the object over before it is busy.
const HAND_OVER: Duration = Duration::from_millis(100);
/// Longest wait of the last connection for threads that have its database.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Database {
    pool: Pool,
    name: String,
    read_only: bool,
    state: Mutex<State>,
    paid: Arc<Condvar>,
    lease: OnceLock<Option<Lease>>,
    watcher: OnceLock<JoinHandle<()>>,
    /// The process that opened it.
    process: usize,
}

pub(crate) static OPEN: PerProcess<Mutex<Vec<Weak<Database>>>> = PerProcess::new();

fn is_plain(path: &Path) -> bool {
    let mut magic = [0; 16];
    File::open(path).is_ok_and(|file| file.read_exact_at(&mut magic, 0).is_ok())
        && magic == *b"SQLite format 3\0"
}

pub(crate) struct Open<'a> {
    pub(crate) path: &'a Path,
    pub(crate) object: &'a str,
    pub(crate) size: Option<u64>,
    pub(crate) create: bool,
}

impl Open<'_> {
    fn pool(&self) -> Result<(Pool, bool)> {
        if let Some(pool) = crate::offered(self.path)? {
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
            Err(error) if error.kind() == ErrorKind::NotAPool && is_plain(self.path) => {
                let text = format!(
                    "{} is a plain database, no pool: `pmo sqlite import` copies it into one",
                    self.path.display()
                );
                Err(Failure::new(code::NOTADB, text))
            }
            opened => Ok((opened?, false)),
        }
    }

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
        let mut open = lock(OPEN.get());
        open.retain(|database| database.strong_count() > 0);
        let same = |database: &Arc<Database>| {
            database.pool.id() == pool.id() && database.name == self.object && database.lock().check().is_ok()
        };
        if let Some(database) = open.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(database);
        }
        let name = self.object.to_owned();
        let grows =
            (self.size.is_none() && !read_only && crate::offered(self.path)?.is_none()).then(|| pool.clone());
        let (state, paid) = (Mutex::new(State::new(grows)), Arc::default());
        let (lease, watcher, process) = (OnceLock::new(), OnceLock::new(), host::process());
        let database = Arc::new(Database { pool, name, read_only, state, paid, lease, watcher, process });
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

    pub(crate) fn is_with(&self, other: &Database) -> bool {
        self.pool.id() == other.pool.id()
    }

    /// Notified once debts became durable, or failed to.
    pub(crate) fn paid(&self) -> Arc<Condvar> {
        self.paid.clone()
    }

    /// Waits for that, for a second at most.
    pub(crate) fn wait_paid<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.paid.wait_timeout(state, Duration::from_secs(1));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The lease; `None`: it cannot be had, and the object is released after each transaction.
    fn lease(&self) -> Option<&Lease> {
        self.lease.get_or_init(|| Lease::of(&self.pool, &self.name).ok()).as_ref()
    }

    fn attach(self: &Arc<Self>, state: &mut State) -> Result<()> {
        let options = AttachOptions::new().tracking(Tracking::Explicit);
        let object = self.pool.attach_with(&self.name, &options)?;
        let commits = Header::of(&object)?.commits;
        let asked = self.lease().and_then(|lease| lease.asked().ok());
        state.attached = asked.map(|asked| (asked, Instant::now()));
        state.release = asked.is_none();
        state.contended |= asked.is_none();
        state.begin(object, commits);
        if let (false, Some(lease), Some(asked)) = (state.watched, self.lease(), asked) {
            state.watched = true;
            let (database, lease, left) = (Arc::downgrade(self), lease.clone(), lease.left()?);
            let watcher = std::thread::Builder::new()
                .name("pmo-lease".into())
                .spawn(move || watch(&database, &lease, asked, left))
                .map_err(|error| Failure::new(code::IOERR, format!("cannot start a thread: {error}")))?;
            let _ = self.watcher.set(watcher);
        }
        Ok(())
    }

    /// Attaches the object for reading its memory if no other process has it, or wants to.
    pub(crate) fn try_attach(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.is_attached() || state.contended {
            return Ok(());
        }
        match self.attach(state) {
            Err(failure) if failure.is_busy() => Ok(()),
            attached => attached,
        }
    }

    pub(crate) fn attach_for_writer(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.is_attached() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut asked: Option<Instant> = None;
        loop {
            match self.attach(state) {
                Err(failure) if failure.is_busy() && begin.elapsed() < HAND_OVER => {}
                attached => return attached,
            }
            let Some(lease) = self.lease() else { return Err(Failure::busy()) };
            // Another process may have got it meanwhile, which has seen no earlier request.
            if asked.is_none_or(|at| at.elapsed() >= TURN) {
                lease.ask()?;
                asked = Some(Instant::now());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Replaces the view's snapshot by the newest psync. Without room, a connection that only
    /// `reads` gets the object, if no writer has it.
    pub(crate) fn show(&self, view: &mut View, reads: bool) -> Result<()> {
        let keeps_writers_out = std::mem::take(&mut view.keeps_writers_out);
        let kept = view.snapshot.take().filter(|_| !self.read_only && !keeps_writers_out);
        let refreshed = kept.and_then(|mut snapshot| snapshot.refresh().is_ok().then_some(snapshot));
        let snapshot = match refreshed {
            Some(snapshot) => snapshot,
            // In a read-only pool it is a copy.
            None if self.read_only => self.pool.attach_read(&self.name)?,
            None => {
                let grows = self.lock().growing_pool();
                let snapshot =
                    with_room(grows.as_ref(), || self.pool.attach_snapshot_anywhere(&self.name, b""));
                match snapshot {
                    Err(error) if error.kind() == ErrorKind::NoRoom && reads => {
                        let object = self.pool.attach_read(&self.name).map_err(|_| error)?;
                        view.keeps_writers_out = true;
                        object
                    }
                    snapshot => snapshot?,
                }
            }
        };
        view.commits = Header::read(&snapshot)?.commits;
        view.snapshot = Some(snapshot);
        view.source = Source::Snapshot;
        Ok(())
    }

    /// Waits for threads that briefly hold a closed database, to pay or to hand its object over:
    /// the process's end would cut them off before the lease's memory is given back.
    pub(crate) fn wait_alone(self: &Arc<Self>) {
        let begin = Instant::now();
        while Arc::strong_count(self) > 1 && self.lock().open == 0 && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Moves a connection from the object's memory to a snapshot of the same psync.
    fn convert(&self, id: u64, view: &SharedView) -> Result<()> {
        let mut view = lock(view);
        if view.source == Source::Object {
            if view.lent > 0 {
                return Err(Failure::busy());
            }
            let commits = view.commits;
            self.show(&mut view, false)?;
            if view.commits != commits {
                view.source = Source::Object;
                return Err(Failure::busy());
            }
        }
        self.lock().direct.retain(|(other, _)| *other != id);
        Ok(())
    }

    /// Moves every connection but `writer` off the object's memory. The state is barred.
    pub(crate) fn convert_all(&self, writer: Option<u64>) -> Result<()> {
        let readers = self.lock().direct.clone();
        readers
            .iter()
            .filter(|(id, _)| Some(*id) != writer)
            .try_for_each(|(id, view)| self.convert(*id, view))
    }

    fn give_up(&self) {
        {
            let mut state = self.lock();
            state.contended = true;
            if !state.is_attached() {
                return;
            }
            state.release = true;
            if state.writer.is_some() || state.barred {
                return;
            }
            // Readers switch to the durable state.
            if let Err(failure) = state.pay() {
                host::tell(&failure);
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

impl Drop for Database {
    fn drop(&mut self) {
        if self.process != host::process() {
            return;
        }
        let Some(lease) = self.lease.take().flatten() else { return };
        if let Some(watcher) = self.watcher.take()
            && lease.leave().is_ok()
            // The thread may be the last that has the database.
            && watcher.thread().id() != std::thread::current().id()
        {
            let _ = watcher.join();
        }
        drop(lease);
        Lease::forget(&self.pool, &self.name);
    }
}

fn watch(database: &Weak<Database>, lease: &Lease, mut seen: u32, mut left: u32) {
    loop {
        if lease.wait(seen, left, Duration::from_secs(1)).is_err() {
            return;
        }
        left = lease.left().unwrap_or(left);
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
