//! A connection's file: SQLite's locks, as readers beside a writer have them.
//!
//! A reader sees the last psync at its SHARED lock, and blocks no writer. A writer must have seen
//! the newest one: else its RESERVED lock is refused, and it begins again.

use crate::database::Database;
use crate::failure::{Failure, Result, code};
use crate::header::{Header, START, copy};
use crate::host;
use crate::state::{SharedView, Source, State, View, lock};
use crate::{tickets, together};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    None,
    Shared,
    Reserved,
    Exclusive,
}

static IDS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Connection {
    database: Arc<Database>,
    id: u64,
    level: Level,
    view: SharedView,
    read_only: bool,
    by_ticket: bool,
    /// The limit that SQLite set for [`fetch`](Connection::fetch).
    mapped: i64,
}

impl Connection {
    pub(crate) fn new(database: Arc<Database>, read_only: bool) -> Connection {
        database.lock().open += 1;
        let read_only = read_only || database.is_read_only();
        let (id, view) = (IDS.fetch_add(1, Ordering::Relaxed), SharedView::default());
        Connection { database, id, level: Level::None, view, read_only, by_ticket: false, mapped: 0 }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    pub(crate) fn belong_to(&self, owner: usize) {
        together::join(self.id, owner, &self.database);
    }

    /// SQLite is about to sync it, with the super-journal that the transaction has.
    pub(crate) fn announce(&self, journal: Option<&[u8]>) -> Result<()> {
        together::announce(self.id, &self.database, journal)
    }

    /// Sets the limit of pages that SQLite reads in place, unless it is negative, or SQLite has
    /// some of them; returns the former limit.
    pub(crate) fn set_mapped(&mut self, limit: i64) -> i64 {
        let before = self.mapped;
        if limit >= 0 && lock(&self.view).lent == 0 {
            self.mapped = limit;
        }
        before
    }

    pub(crate) fn lock(&mut self, level: Level) -> Result<()> {
        if self.level == Level::None && level >= Level::Shared {
            self.share()?;
            self.level = Level::Shared;
        }
        if self.level == Level::Shared && level >= Level::Reserved {
            self.reserve()?;
            self.level = Level::Reserved;
        }
        if self.level == Level::Reserved && level >= Level::Exclusive {
            self.exclude()?;
            self.level = Level::Exclusive;
        }
        Ok(())
    }

    /// Begins to read: the object's memory if this process has it, else a snapshot.
    fn share(&self) -> Result<()> {
        let mut view = lock(&self.view);
        {
            let mut state = self.database.lock();
            state.check()?;
            if !self.read_only {
                self.database.try_attach(&mut state)?;
            }
            if state.is_open_to_readers() {
                (view.commits, view.source) = (state.committed, Source::Object);
                view.snapshot = None;
                state.direct.push((self.id, self.view.clone()));
                return Ok(());
            }
            // The snapshot has what is durable: all that was committed.
            state.pay()?;
        }
        self.database.show(&mut view, self.read_only)
    }

    fn reserve(&self) -> Result<()> {
        if self.read_only {
            return Err(Failure::new(code::READONLY, "the database was opened for reading"));
        }
        let mut view = lock(&self.view);
        let mut state = self.database.lock();
        state.check()?;
        if state.writer.is_some() || state.barred {
            return Err(Failure::busy());
        }
        self.database.attach_for_writer(&mut state)?;
        if view.source == Source::Snapshot && view.commits != state.committed {
            return Err(Failure::new(code::BUSY_SNAPSHOT, ""));
        }
        // A snapshot stays mapped: SQLite may have pointers to it until the transaction ends.
        view.source = Source::Object;
        state.direct.retain(|(id, _)| *id != self.id);
        state.writer = Some(self.id);
        Ok(())
    }

    fn exclude(&self) -> Result<()> {
        {
            let mut state = self.database.lock();
            // Connections that read beside it see what is durable.
            if state.open > 1 || state.unpaid.is_some() {
                state.pay()?;
            }
            state.barred = true;
        }
        let converted = self.database.convert_all(Some(self.id));
        if converted.is_err() {
            self.database.lock().barred = false;
        }
        converted
    }

    pub(crate) fn unlock(&mut self, level: Level) {
        if level >= self.level {
            return;
        }
        let mut view = lock(&self.view);
        let stays = together::unlock(self.id, &self.database);
        let mut state = self.database.lock();
        if state.writer == Some(self.id) {
            if !stays {
                state.end_writer();
            }
            state.direct.push((self.id, self.view.clone()));
            // The psync that makes the undoing durable takes the next number.
            view.commits = state.committed + u64::from(stays);
        }
        if level == Level::None {
            state.direct.retain(|(id, _)| *id != self.id);
            (view.source, view.lent) = (Source::Nothing, 0);
            if std::mem::take(&mut view.keeps_writers_out) {
                view.snapshot = None;
            }
        }
        state.settle();
        self.level = level;
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.database.lock().writer.is_some()
    }

    /// Without a lock SQLite reads the page size, and its test programs more: from the last psync.
    /// An object that is no database is refused at the first lock.
    fn look(&self, view: &mut View) {
        if view.source == Source::Nothing {
            let _ = self.database.show(view, false);
            view.source = Source::Nothing;
        }
    }

    /// Copies bytes of the file, with zeros behind its end. Returns whether the file has all of
    /// them.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<bool> {
        let mut view = lock(&self.view);
        self.look(&mut view);
        match (view.source, &view.snapshot) {
            (Source::Object, _) => self.database.lock().read(offset, buffer),
            (_, Some(snapshot)) => {
                let length = snapshot.root::<Header>()?.length.min((snapshot.len() - START) as u64);
                Ok(copy(snapshot.as_slice(), length, offset, buffer))
            }
            _ => Ok(copy(&[], 0, 0, buffer)),
        }
    }

    pub(crate) fn len(&self) -> Result<u64> {
        let mut view = lock(&self.view);
        self.look(&mut view);
        match (view.source, &view.snapshot) {
            (Source::Object, _) => self.database.lock().len(),
            (_, Some(snapshot)) => Ok(Header::read(snapshot)?.length),
            _ => Ok(0),
        }
    }

    fn as_writer<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.database.lock();
        if state.writer != Some(self.id) || self.level < Level::Exclusive {
            return Err(Failure::new(code::MISUSE, "a connection wrote without its EXCLUSIVE lock"));
        }
        state.check()?;
        work(&mut state)
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.as_writer(|state| state.write(offset, bytes))
    }

    pub(crate) fn truncate(&self, length: u64) -> Result<()> {
        self.as_writer(|state| state.truncate(length))
    }

    /// Makes the writer's stores durable, with those of the transaction's other files.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.level < Level::Exclusive {
            return Ok(());
        }
        together::sync(self.id, &self.database, self.by_ticket)
    }

    pub(crate) fn committed(&self) -> Result<()> {
        if self.level < Level::Exclusive {
            return Ok(());
        }
        together::commit(self.id, &self.database, self.by_ticket)
    }

    /// Switches commits by ticket on or off; without a word only tells.
    pub(crate) fn commit_by_ticket(&mut self, set: Option<bool>) -> bool {
        self.by_ticket = set.unwrap_or(self.by_ticket);
        self.by_ticket
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.database.lock().committed
    }

    pub(crate) fn durable(&self) -> u64 {
        self.database.lock().durable
    }

    pub(crate) fn wait(&self, ticket: Option<u64>) -> Result<u64> {
        tickets::wait(&self.database, ticket)
    }

    pub(crate) fn make_room(&self, length: u64) -> Result<()> {
        if self.level < Level::Exclusive {
            return Ok(());
        }
        self.as_writer(|state| state.reserve(length))
    }

    /// A pointer to bytes of the file, valid until SQLite gives it back; `None`: read them.
    pub(crate) fn fetch(&self, offset: u64, len: usize) -> Result<Option<*const u8>> {
        let mut view = lock(&self.view);
        let within = |object: &[u8], length: u64| {
            let end = offset.checked_add(len as u64)?;
            (end as i64 <= self.mapped).then_some(())?;
            let from = START + offset as usize;
            (end <= length).then(|| object.get(from..from + len))?.map(<[u8]>::as_ptr)
        };
        match (view.source, &view.snapshot) {
            (Source::Object, _) => {
                let state = self.database.lock();
                // A connection that reads beside it could not begin to write while the pointer is
                // out.
                if state.open > 1 {
                    return Ok(None);
                }
                let object = state.object()?;
                let pointer = within(object.as_slice(), object.root::<Header>()?.length);
                drop(state);
                view.lent += usize::from(pointer.is_some());
                Ok(pointer)
            }
            (Source::Snapshot, Some(snapshot)) => {
                let pointer = within(snapshot.as_slice(), snapshot.root::<Header>()?.length);
                view.lent += usize::from(pointer.is_some());
                Ok(pointer)
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn give_back(&self) {
        let mut view = lock(&self.view);
        view.lent = view.lent.saturating_sub(1);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.unlock(Level::None);
        together::leave(self.id);
        let mut state = self.database.lock();
        state.open -= 1;
        // The last one pays what is owed, and detaches.
        if state.open == 0 {
            if let Err(failure) = state.pay() {
                host::tell(&failure);
            }
            state.release = state.is_attached();
            state.settle();
            drop(state);
            self.database.wait_alone();
        }
    }
}
