//! A lane held by this process: commits of several threads, checkpoints, poisoning.
//!
//! Invariants:
//! 1. `log` is the end of the lane; only the thread that set `writing`, or that holds `state`
//!    throughout, appends.
//! 2. A batch counted in `applying` is durable in the lane and being brought into primaries or page caches;
//!    the generation does not change while there is one.
//! 3. `progress` has every object with a batch in this generation; only their page caches have pending lines,
//!    and those are written out before the generation changes.
//! 4. Once `poisoned`, nothing is appended or voided: the next attach recovers from the lane. It is set
//!    with `state` held and never reset: a reader holding `state` sees the current value.

use super::lane_locks::LaneLock;
use super::lock;
use super::page_cache::PageCache;
use crate::commit;
use crate::error::{Result, StoreError};
use crate::lane::{Batch, BatchSource, LaneLog};
use crate::medium::{Epoch, Medium};
use crate::mutant::Mutant;
use crate::recovery::{Standing, put_progress_at};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use crate::table::Located;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counters of a lane since this process has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUse {
    /// Batches made durable.
    pub batches: u64,
    /// Durable writes they took.
    pub commits: u64,
    /// Bytes written to the lane.
    pub bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Time in durable writes, if times are taken.
    pub publish: Duration,
    /// Time bringing batches into primaries or page caches, if times are taken.
    pub apply: Duration,
}

/// Standing of an object after its newest batch.
#[derive(Clone)]
pub(super) struct Advance {
    /// Offset of its slot.
    pub slot: u64,
    id: [u8; 16],
    pub standing: Standing,
    page_cache: Option<Arc<Mutex<PageCache>>>,
}

impl Advance {
    pub(super) fn new(
        object: &Located,
        standing: Standing,
        page_cache: Option<Arc<Mutex<PageCache>>>,
    ) -> Self {
        Advance { slot: object.offset, id: object.entry.id, standing, page_cache }
    }
}

struct State {
    log: LaneLog,
    writing: bool,
    applying: usize,
    /// Threads that wait for `changed`: without one, the system call that wakes them is spared.
    waiting: usize,
    progress: BTreeMap<u64, Advance>,
    queue: Vec<(u64, Batch)>,
    done: HashMap<u64, (Batch, Result<()>)>,
    ticket: u64,
    used: LaneUse,
}

/// See the module.
pub(super) struct WriterLane {
    pub index: u32,
    lock: LaneLock,
    /// The epoch in which this process has the lane.
    medium: Epoch,
    seed: u64,
    state: Mutex<State>,
    changed: Condvar,
    poisoned: AtomicBool,
    /// As `log.capacity()`.
    capacity: AtomicU64,
    /// Objects bound to the lane by this process.
    pub bound: AtomicUsize,
    /// Whether `LaneUse` has times.
    pub timed: AtomicBool,
    /// An object that nobody has attached is still bound to the lane in the table: others wait for the lane, so that it
    /// is not kept beyond the attachments that use it.
    pub given_up: AtomicBool,
}

impl WriterLane {
    /// The locked lane, empty from `log` on; `medium` was entered before anything of it was read.
    pub(super) fn new(lane_lock: LaneLock, medium: Epoch, seed: u64, log: LaneLog) -> Arc<Self> {
        let locks = lane_lock.locks.clone();
        let lane = Arc::new(WriterLane {
            index: lane_lock.index,
            lock: lane_lock,
            medium,
            seed,
            state: Mutex::new(State {
                log,
                writing: false,
                applying: 0,
                waiting: 0,
                progress: BTreeMap::new(),
                queue: Vec::new(),
                done: HashMap::new(),
                ticket: 0,
                used: LaneUse::default(),
            }),
            changed: Condvar::new(),
            poisoned: AtomicBool::new(false),
            capacity: AtomicU64::new(log.capacity()),
            bound: AtomicUsize::new(0),
            timed: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        });
        lock(&locks.held).insert(lane.index, (lane.lock.number, Arc::downgrade(&lane)));
        lane
    }

    /// Whether this lane failed, or a change of the file that it relies on.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire) || self.medium.is_over()
    }

    /// The medium, for changes to anything that the lane owns.
    pub(super) fn medium(&self) -> &Epoch {
        &self.medium
    }

    pub(super) fn poison(&self) {
        self.poison_held(&lock(&self.state));
    }

    fn poison_held(&self, _held: &State) {
        self.poisoned.store(true, Ordering::Release);
    }

    pub(super) fn used(&self) -> LaneUse {
        lock(&self.state).used
    }

    /// Bytes a batch may have at most.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    /// Makes a batch durable and applies it. The batch keeps its memory for reuse. `source`: of its lines, if they
    /// are borrowed.
    pub(super) fn commit(
        &self,
        batch: &mut Batch,
        advances: &[Advance],
        source: Option<&dyn BatchSource>,
    ) -> Result<()> {
        let source = source.filter(|_| batch.is_borrowed());
        batch.seal(self.seed);
        if Mutant::ApplyFirst.is_on() && source.is_none() {
            let _ = commit::apply(&self.medium, batch);
        }
        let mut borrowed = None;
        let begin = self.timed.load(Ordering::Relaxed).then(Instant::now);
        if self.medium.capabilities().shares_commits {
            let result;
            (*batch, result) = self.publish_grouped(std::mem::take(batch));
            result?;
        } else {
            borrowed = source.zip(self.publish_alone(batch, source)?);
        }
        let published = begin.map(|begin| (begin.elapsed(), Instant::now()));
        let applied = match borrowed {
            Some((source, lines)) => commit::apply_borrowed(&self.medium, batch, lines, source),
            None => self.apply(batch, advances),
        };
        let mut state = lock(&self.state);
        if let Some((publish, apply)) = published {
            state.used.publish += publish;
            state.used.apply += apply.elapsed();
        }
        state.applying -= 1;
        if applied.is_err() {
            self.poison_held(&state);
        }
        for advance in advances {
            state.progress.insert(advance.slot, advance.clone());
        }
        self.tell(&state);
        drop(state);
        applied
    }

    /// Brings a durable batch into the page caches of its objects, or into the primaries.
    fn apply(&self, batch: &Batch, advances: &[Advance]) -> Result<()> {
        if advances.iter().all(|advance| advance.page_cache.is_none()) {
            return commit::apply(&self.medium, batch);
        }
        let mut redo = batch.redo();
        for section in batch.sections() {
            let runs = redo.by_ref().take(section.runs.get() as usize);
            let advance = advances.iter().find(|advance| advance.slot == section.entry.get());
            if let Some(page_cache) = advance.and_then(|advance| advance.page_cache.as_ref()) {
                lock(page_cache).apply(&self.medium, runs)?;
            }
        }
        Ok(())
    }

    /// The page cache of an object that may have pending lines.
    pub(super) fn page_cache(&self, slot: u64) -> Option<Arc<Mutex<PageCache>>> {
        lock(&self.state).progress.get(&slot)?.page_cache.clone()
    }

    /// Returns where the lines begin in the lane if they were borrowed.
    fn publish_alone(&self, batch: &mut Batch, source: Option<&dyn BatchSource>) -> Result<Option<u64>> {
        let mut state = self.with_room(batch.len())?;
        let State { log, .. } = &mut *state;
        let result = match source {
            Some(source) => commit::publish_borrowed(&self.medium, self.seed, log, batch, source).map(Some),
            None => commit::publish(&self.medium, self.seed, log, std::slice::from_mut(batch)).map(|()| None),
        };
        self.account(&mut state, &result, 1, batch.len());
        result
    }

    /// Joins the batches that threads bring while one durable write is under way into the next.
    fn publish_grouped(&self, batch: Batch) -> (Batch, Result<()>) {
        let mut state = lock(&self.state);
        let ticket = state.ticket;
        state.ticket += 1;
        state.queue.push((ticket, batch));
        loop {
            if let Some(done) = state.done.remove(&ticket) {
                return done;
            }
            if state.writing {
                state = self.wait(state);
                continue;
            }
            state = self.lead(state);
        }
    }

    /// Publishes the queued batches, as one write.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.writing = true;
        let first = state.queue.first().map_or(0, |(_, batch)| batch.len());
        state = match self.make_room(state, first, true) {
            Ok(state) => state,
            Err((mut state, error)) => {
                // Only the first is known not to fit; the others get their turn.
                let (ticket, batch) = state.queue.remove(0);
                state.done.insert(ticket, (batch, Err(error)));
                state.writing = false;
                self.tell(&state);
                return state;
            }
        };
        let mut room = state.log.len - state.log.tail;
        let mut take = 0;
        while let Some((_, batch)) = state.queue.get(take) {
            if batch.len() > room {
                break;
            }
            room -= batch.len();
            take += 1;
        }
        let (tickets, mut batches): (Vec<_>, Vec<_>) = state.queue.drain(..take).unzip();
        let mut log = state.log;
        drop(state);
        let result = commit::publish(&self.medium, self.seed, &mut log, &mut batches);
        let mut state = lock(&self.state);
        state.writing = false;
        state.log = log;
        self.account(&mut state, &result, take, batches.iter().map(Batch::len).sum());
        let mut error = result.err();
        for (ticket, batch) in tickets.into_iter().zip(batches) {
            let own = match &error {
                None => Ok(()),
                Some(_) => Err(error.take().unwrap_or(StoreError::Poisoned)),
            };
            if own.is_err() && error.is_none() {
                error = Some(StoreError::Poisoned);
            }
            state.done.insert(ticket, (batch, own));
        }
        self.tell(&state);
        state
    }

    /// The state, with room for `bytes` in the lane.
    fn with_room(&self, bytes: u64) -> Result<MutexGuard<'_, State>> {
        self.make_room(lock(&self.state), bytes, false).map_err(|(_, error)| error)
    }

    /// Checkpoints if the lane has no room for `bytes`. `own`: the caller itself set `writing`.
    #[allow(clippy::type_complexity)]
    fn make_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        bytes: u64,
        own: bool,
    ) -> std::result::Result<MutexGuard<'a, State>, (MutexGuard<'a, State>, StoreError)> {
        loop {
            if self.is_poisoned() {
                return Err((state, StoreError::Poisoned));
            }
            if state.log.fits(bytes) {
                return Ok(state);
            }
            if bytes > state.log.capacity() {
                let needed = bytes;
                let largest = state.log.capacity();
                return Err((state, StoreError::NoRoom { needed, largest, free: largest }));
            }
            if state.applying > 0 || (state.writing && !own) {
                state = self.wait(state);
                continue;
            }
            if let Err(error) = self.checkpoint_idle(&mut state) {
                return Err((state, error));
            }
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.waiting -= 1;
        state
    }

    /// Wakes the waiting threads: a thread that begins to wait later sees the state as it is now.
    fn tell(&self, held: &State) {
        if held.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Makes everything applied durable and voids the lane's batches.
    pub(super) fn checkpoint(&self) -> Result<()> {
        drop(self.idle()?);
        Ok(())
    }

    fn idle(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = lock(&self.state);
        while state.applying > 0 || state.writing {
            state = self.wait(state);
        }
        if self.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        self.checkpoint_idle(&mut state)?;
        Ok(state)
    }

    /// The state must be idle: nothing being written or applied.
    fn checkpoint_idle(&self, state: &mut State) -> Result<()> {
        let device = &self.medium;
        let result = (|| {
            for advance in state.progress.values() {
                if let Some(page_cache) = &advance.page_cache {
                    lock(page_cache).write_out(device)?;
                }
                if !Mutant::ProgressForgotten.is_on() {
                    put_progress_at(device, self.seed, advance.slot, advance.id, &advance.standing)?;
                }
            }
            if !Mutant::EarlyCheckpoint.is_on() {
                device.barrier()?;
            }
            // Lines of an object of this lane may be lost without a failed write, if a read that applying them needed failed.
            if self.is_poisoned() {
                return Err(StoreError::Poisoned);
            }
            state.log.next_generation(device, self.seed)
        })();
        match result {
            Ok(()) => {
                state.progress.clear();
                state.used.checkpoints += 1;
                Ok(())
            }
            Err(error) => {
                self.poison_held(state);
                Err(error)
            }
        }
    }

    /// Checkpoints and moves the lane to the extent `relocate` returns (with its generation durable).
    pub(super) fn relocate(&self, relocate: impl FnOnce(LaneLog) -> Result<LaneLog>) -> Result<()> {
        let mut state = self.idle()?;
        state.log = relocate(state.log)?;
        self.capacity.store(state.log.capacity(), Ordering::Release);
        Ok(())
    }

    fn account<T>(&self, state: &mut State, result: &Result<T>, batches: usize, bytes: u64) {
        match result {
            Ok(_) => {
                state.applying += batches;
                state.used.batches += batches as u64;
                state.used.commits += 1;
                state.used.bytes += bytes;
            }
            Err(_) => self.poison_held(state),
        }
    }

    /// Forgets an object that leaves the lane, whose primary is durable.
    pub(super) fn forget(&self, entry: u64) {
        lock(&self.state).progress.remove(&entry);
        self.bound.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for WriterLane {
    fn drop(&mut self) {
        let state = lock(&self.state);
        self.lock.release(|| {
            let unused = self.bound.load(Ordering::Relaxed) == 0;
            if unused && state.used.checkpoints > 0 && !self.is_poisoned() {
                let _ = state.log.retire(&self.medium, self.seed);
            }
        });
    }
}
