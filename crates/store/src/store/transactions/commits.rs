//! A process's transactions in one pool, made durable in the order of their numbers, several per
//! batch.
//!
//! Transactions number each commit, tell it here, and wait. One waiting thread makes all told
//! commits durable by one psync.
//!
//! Invariants:
//! 1. One thread at a time publishes, in the order of numbers: see the queue. So the durable
//!    commits are a prefix of all commits, over all objects.
//! 2. A number is acknowledged only when all commits up to it are durable: a transaction that read
//!    another's writes waits for that one too.
//! 3. After a failed publication nothing is published or acknowledged: memory stays ahead of the
//!    durable state.
//! 4. `writers` is locked only before the locks of a psync; `state` is not locked meanwhile.
//! 5. `durable` and `failed` change under the lock of `state`. A thread without it that sees a
//!    number below `durable`, or no failure, sees the state of one moment.
//! 6. `refused` is set before `failed`.

use super::queue::{ChangedLine, Group, Queue, fitting, pages, weight};
use crate::company::{Company, Watch};
use crate::error::{Result, StoreError};
use crate::format::LINE;
use crate::lane::Batch;
use crate::mutant::Mutant;
use crate::store::attachment::{Changes, Psync, Writer};
use crate::store::locks::lock;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, since, wait_for,
};
use crate::table::Located;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[derive(Debug)]
struct State {
    queue: Queue,
    leading: bool,
    waiting: usize,
    apart: usize,
    company: Company,
}

/// The commits of a process in one pool.
pub struct Commits {
    state: Mutex<State>,
    changed: Condvar,
    /// Smaller numbers are durable.
    durable: AtomicU64,
    failed: AtomicBool,
    /// Cause of the failure, if the medium is not.
    refused: OnceLock<Arc<StoreError>>,
    /// The objects, by entry; all on one lane.
    writers: Mutex<BTreeMap<u64, Writer>>,
    capacity: AtomicU64,
    objects: AtomicUsize,
    based: AtomicBool,
}

impl Default for Commits {
    fn default() -> Self {
        Commits::with_pace(Duration::ZERO)
    }
}

impl Commits {
    pub(crate) fn with_pace(pace: Duration) -> Self {
        let state = State {
            queue: Queue::new(),
            leading: false,
            waiting: 0,
            apart: 0,
            company: Company::with_pace(pace),
        };
        Commits {
            durable: AtomicU64::new(state.queue.durable()),
            failed: AtomicBool::new(false),
            refused: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            writers: Mutex::default(),
            capacity: AtomicU64::new(0),
            objects: AtomicUsize::new(0),
            based: AtomicBool::new(false),
        }
    }

    /// Adds an object, and moves it to the others' lane.
    ///
    /// # Errors
    /// `DifferentPools`, `HeldStill`; `Poisoned`, also after a failed publication; those of the
    /// table: the object is detached.
    pub fn join(&self, writer: Writer) -> Result<()> {
        self.take_in(writer).map_err(|(_, error)| error)
    }

    /// [`join`](Self::join) that returns the writer with an error.
    pub fn take_in(&self, writer: Writer) -> std::result::Result<(), (Box<Writer>, StoreError)> {
        if let Err(error) = self.check() {
            return Err((Box::new(writer), error));
        }
        let mut writers = lock(&self.writers);
        let slot = writer.object().offset;
        writers.insert(slot, writer);
        let united = Psync::begin(writers.values_mut()).map(drop);
        match (united, writers.remove(&slot)) {
            (Err(error), Some(writer)) => Err((Box::new(writer), error)),
            (_, writer) => {
                writers.extend(writer.map(|writer| (slot, writer)));
                self.measure(&writers);
                Ok(())
            }
        }
    }

    /// Lines of a commit that fit the present lane, wherever they are.
    #[must_use]
    pub fn fitting(&self) -> u64 {
        let (room, objects) = (self.capacity.load(Ordering::Relaxed), self.objects.load(Ordering::Relaxed));
        fitting(room, objects, self.based.load(Ordering::Relaxed))
    }

    /// Makes room in the lane for a commit of `lines` lines, wherever they are.
    pub fn make_room_for(&self, lines: u64) -> Result<()> {
        let pages = if self.based.load(Ordering::Relaxed) { lines as usize } else { 0 };
        self.make_room(weight(lines as usize, self.objects.load(Ordering::Relaxed), pages))
    }

    /// Removes an object, which no transaction changes any more, once all told commits are durable,
    /// or cannot be. `None`: unknown object.
    pub fn leave(&self, object: u64) -> (Option<Writer>, Result<()>) {
        let flushed = self.flush();
        let mut writers = lock(&self.writers);
        (writers.remove(&object), flushed)
    }

    /// Grows an object durably while its memory stays: see [`Writer::grow_beside`]. `shown`: offset
    /// of the extent that its memory is mapped from.
    ///
    /// # Errors
    /// `NotFound`: unknown object. `Poisoned`: a publication failed. As for
    /// [`Writer::grow_beside`]; if the growth may have happened despite an error, nothing is
    /// published any more.
    pub fn grow(&self, object: u64, size: u64, shown: Option<u64>) -> Result<Located> {
        self.check()?;
        let mut writers = lock(&self.writers);
        let writer = writers.get_mut(&object).ok_or(StoreError::NotFound)?;
        let mapped = shown == Some(writer.object().entry.primary_offset());
        let grown = writer.grow_beside(size, mapped).map(|_| *writer.object());
        self.measure(&writers);
        drop(writers);
        if grown.as_ref().is_err_and(|error| !error.is_refusal()) {
            self.fail();
        }
        grown
    }

    fn fail(&self) {
        let _state = self.state();
        self.failed.store(true, Ordering::Release);
    }

    fn measure(&self, writers: &BTreeMap<u64, Writer>) {
        let capacity = writers.values().map(Writer::lane_capacity).min().unwrap_or(0);
        self.capacity.store(capacity, Ordering::Relaxed);
        self.objects.store(writers.len(), Ordering::Relaxed);
        self.based.store(writers.values().any(Writer::has_base), Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether transactions may still become durable.
    ///
    /// # Errors
    /// `Poisoned`: a publication failed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// Why a publication failed, if the pool refused it and nothing of it reached the medium.
    pub fn refused(&self) -> Option<Arc<StoreError>> {
        self.refused.get().cloned()
    }

    /// Looks again for how much the lane has room: other processes' snapshots change it. May wait
    /// for a publication.
    pub fn look(&self) {
        let mut writers = lock(&self.writers);
        // An error is the next publication's.
        drop(Psync::begin(writers.values_mut()));
        self.measure(&writers);
    }

    /// Whether so many lines fit the present lane whatever the objects rest on.
    #[must_use]
    pub fn fits_on_bases(&self, lines: u64) -> bool {
        let (room, objects) = (self.capacity.load(Ordering::Relaxed), self.objects.load(Ordering::Relaxed));
        lines <= fitting(room, objects, true)
    }

    /// Makes lines durable as one commit, of which no thread is told: an epoch. Sorts them.
    ///
    /// # Errors
    /// `NoRoom`, `NoSpace`, `HeldStill`, `TableBusy`: nothing happened, and the call may be
    /// repeated. After any other error nothing is published any more.
    pub fn publish_epoch(&self, lines: &mut [ChangedLine]) -> Result<()> {
        self.check()?;
        lines.sort_unstable_by_key(|line| (line.object, line.offset));
        let end = EndEpoch(self);
        let mut writers = lock(&self.writers);
        let published = publish_lines(&mut writers, lines);
        self.measure(&writers);
        drop(writers);
        std::mem::forget(end);
        if published.as_ref().is_err_and(|error| !error.is_refusal()) {
            self.fail();
        }
        published
    }

    /// Bytes that the lane lacks for a commit of `lines` lines at `places` (object, offset); 0: it
    /// fits.
    #[must_use]
    pub fn shortage<I: Iterator<Item = (u64, u64)>>(&self, lines: usize, places: impl FnOnce() -> I) -> u64 {
        let needed = self.weigh(lines, places);
        if needed > self.capacity.load(Ordering::Relaxed) { needed } else { 0 }
    }

    fn weigh<I: Iterator<Item = (u64, u64)>>(&self, lines: usize, places: impl FnOnce() -> I) -> u64 {
        let pages = if self.based.load(Ordering::Relaxed) { pages(places()) } else { 0 };
        weight(lines, self.objects.load(Ordering::Relaxed), pages)
    }

    /// Makes room in the lane for a commit of `bytes`.
    ///
    /// # Errors
    /// `NoRoom`: nothing happened. `HeldStill`; those of the table.
    pub fn make_room(&self, bytes: u64) -> Result<()> {
        let mut writers = lock(&self.writers);
        if let Some(writer) = writers.values_mut().next() {
            writer.make_room(bytes)?;
        }
        self.measure(&writers);
        Ok(())
    }

    /// Tells the commit of this number, whose lines cannot change meanwhile. All numbers from 1 on
    /// are told once, in any order.
    ///
    /// # Errors
    /// `Poisoned`: not told; the caller must [skip](Self::skip) the number.
    pub fn tell(&self, sequence: u64, lines: Vec<ChangedLine>) -> Result<()> {
        let weight = self.weigh(lines.len(), || lines.iter().map(|line| (line.object, line.offset)));
        let mut state = self.state();
        if !Mutant::CommitFailureForgotten.is_on() {
            self.check()?;
        }
        state.queue.tell(sequence, lines, weight);
        self.notify(&state);
        Ok(())
    }

    /// Tells that this number has no commit.
    pub fn skip(&self, sequence: u64) {
        let mut state = self.state();
        state.queue.tell(sequence, Vec::new(), 0);
        self.notify(&state);
    }

    /// Wakes waiting threads, except those that wait for company.
    fn notify(&self, state: &State) {
        if state.apart > 0 && !state.leading {
            self.changed.notify_all();
        }
    }

    /// Returns when all commits up to this number are durable.
    ///
    /// # Errors
    /// The cause, for the publishing thread; `Poisoned` for others. After a failure of the medium
    /// the next attach tells whether the commits happened; after any other they did not.
    #[inline]
    pub fn wait(&self, sequence: u64) -> Result<()> {
        // See invariant 5. The last number of a transaction that only read is mostly durable.
        if sequence < self.durable.load(Ordering::Acquire) || Mutant::CommitNotAwaited.is_on() {
            return Ok(());
        }
        self.wait_for_publication(sequence)
    }

    fn wait_for_publication(&self, sequence: u64) -> Result<()> {
        let mut state = self.state();
        if state.queue.is_durable(sequence) {
            return Ok(());
        }
        let joins = !state.queue.is_taken(sequence);
        state.company.arrive(joins);
        // See invariant 3.
        let (mut state, outcome) = loop {
            if state.queue.is_durable(sequence) {
                break (state, Ok(()));
            }
            if let Err(poisoned) = self.check() {
                break (state, Err(poisoned));
            }
            let closes = !state.leading && state.company.is_complete();
            if !state.leading
                && !closes
                && let Some(watch) = state.company.watch()
            {
                state = self.gather(state, watch);
                continue;
            }
            let room = self.capacity.load(Ordering::Relaxed);
            state = match if closes { state.queue.take(room) } else { None } {
                Some(group) => match self.lead(state, group) {
                    (state, Ok(())) => state,
                    failed => break failed,
                },
                None => {
                    state.waiting += 1;
                    state.apart += usize::from(closes);
                    let mut state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
                    state.waiting -= 1;
                    state.apart -= usize::from(closes);
                    state
                }
            };
        };
        state.company.leave();
        outcome
    }

    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State>, watch: Watch) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let (mut state, in_time) = wait_for(&self.changed, &self.state, state, watch.patience);
        state.waiting -= 1;
        state.company.end_watch(watch, in_time);
        state
    }

    /// Makes all told commits durable.
    pub fn flush(&self) -> Result<()> {
        let last = self.state().queue.last();
        self.wait(last)
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        group: Group,
    ) -> (MutexGuard<'a, State>, Result<()>) {
        state.leading = true;
        state.company.close();
        // A lone thread has no company.
        let begin = (state.company.waiting() > 1).then(Instant::now);
        drop(state);
        let lead = Lead { commits: self, begin };
        let result = self.publish(group);
        let done = result.is_ok() || Mutant::CommitFailureForgotten.is_on();
        if let Some(refused) = result.as_ref().err().and_then(StoreError::refusal) {
            let _ = self.refused.set(Arc::new(refused));
        }
        std::mem::forget(lead);
        (self.end_lead(begin, done), result)
    }

    fn end_lead(&self, begin: Option<Instant>, done: bool) -> MutexGuard<'_, State> {
        let took = begin.map(since);
        let mut state = self.state();
        state.leading = false;
        state.company.expect_again(took);
        if done {
            state.queue.made_durable();
            self.durable.store(state.queue.durable(), Ordering::Release);
        } else {
            self.failed.store(true, Ordering::Release);
        }
        if state.waiting > 0 {
            self.changed.notify_all();
        }
        state
    }

    fn publish(&self, group: Group) -> Result<()> {
        let mut writers = lock(&self.writers);
        if Mutant::CommitsReordered.is_on()
            && let Some(newest) = group.newest()
        {
            publish(&mut writers, &newest.into_lines())?;
        }
        publish_lines(&mut writers, &group.into_lines())?;
        self.measure(&writers);
        Ok(())
    }
}

fn publish_lines(writers: &mut BTreeMap<u64, Writer>, lines: &[ChangedLine]) -> Result<()> {
    if Mutant::CommitApart.is_on() {
        let mut objects = lines.chunk_by(|one, next| one.object == next.object);
        return objects.try_for_each(|lines| publish(writers, lines));
    }
    publish(writers, lines)
}

/// `lines`: of each object together, in order, each once.
fn publish(writers: &mut BTreeMap<u64, Writer>, lines: &[ChangedLine]) -> Result<()> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Ok(()) };
    if first.object == last.object {
        let writer = writers.get_mut(&first.object).ok_or(StoreError::NotFound)?;
        let mut changes = changes(lines);
        return Psync::begin([writer])?.stage([&mut changes as &mut dyn Changes], None)?.commit();
    }
    let mut of_objects = BTreeMap::new();
    for lines in lines.chunk_by(|one, next| one.object == next.object) {
        of_objects.insert(lines[0].object, changes(lines));
    }
    if of_objects.keys().any(|object| !writers.contains_key(object)) {
        return Err(StoreError::NotFound);
    }
    let writers = writers.iter_mut().filter(|(object, _)| of_objects.contains_key(object));
    let begun = Psync::begin(writers.map(|(_, writer)| writer))?;
    begun.stage(of_objects.values_mut().map(|changes| changes as &mut dyn Changes), None)?.commit()
}

fn changes(lines: &[ChangedLine]) -> impl FnMut(u64, &mut Batch) -> Result<u64> {
    move |primary, batch| {
        lines.iter().for_each(|line| batch.copy_lines(primary + line.offset, &line.bytes));
        Ok(lines.last().map_or(0, |line| line.offset + LINE))
    }
}

/// Ends a publication that panics.
struct Lead<'a> {
    commits: &'a Commits,
    begin: Option<Instant>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        drop(self.commits.end_lead(self.begin, false));
    }
}

/// Ends an epoch's publication that panics.
struct EndEpoch<'a>(&'a Commits);

impl Drop for EndEpoch<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}
