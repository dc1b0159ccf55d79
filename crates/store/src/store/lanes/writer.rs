//! A lane held by this process: group commits, checkpoints, poisoning.
//!
//! Invariants, beside those of the states (`state`):
//! 1. `progress` has every object with a batch in this generation; only their page caches have
//!    pending lines, which are written out before the generation changes.
//! 2. A lane counts as poisoned once its medium's epoch is over.
//! 3. Primaries and progress lines of the lane's objects change, and the lane gets batches, only
//!    during a [`Changing`]: `changing` counts them, and the apply lock is begun while it is not
//!    zero.
//! 4. If the lane was revised, page caches have no pending lines: they are in the primaries.

mod changing;

pub(in crate::store) use changing::Changing;

use super::advance::Advance;
use super::lane_use::LaneUse;
use super::page_cache::PageCache;
use super::state::{Asked, Durable, LaneState, Room, Turn};
use crate::commit;
use crate::error::{Result, StoreError};
use crate::lane::{Batch, BatchSource, LaneLog};
use crate::medium::{Epoch, Medium};
use crate::mutant::Mutant;
use crate::recovery::put_progress_at;
use crate::store::locks::{ApplyLocks, LaneLock, lock};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

struct State {
    lane: LaneState,
    changing: usize,
    /// Without any, no system call wakes.
    waiting: usize,
    progress: BTreeMap<u64, Advance>,
    queue: Vec<(u64, Batch)>,
    done: HashMap<u64, (Batch, Result<Durable>)>,
    ticket: u64,
    used: LaneUse,
    revision: u64,
    /// Whether a generation began here, in the first header copy.
    begun: bool,
}

impl State {
    fn revised(&mut self, revision: u64) {
        self.revision = revision;
        for advance in self.progress.values() {
            if let Some(page_cache) = &advance.page_cache {
                lock(page_cache).written_out();
            }
        }
    }

    fn refuse_first(&mut self, error: StoreError) {
        let (ticket, batch) = self.queue.remove(0);
        self.done.insert(ticket, (batch, Err(error)));
    }

    fn take_fitting(&mut self) -> (Vec<u64>, Vec<Batch>) {
        let log = self.lane.log();
        let mut room = log.len - log.tail;
        let fits = |(_, batch): &&(u64, Batch)| {
            let left = room.checked_sub(batch.len());
            room = left.unwrap_or(room);
            left.is_some()
        };
        let take = self.queue.iter().take_while(fits).count();
        self.queue.drain(..take).unzip()
    }
}

pub(in crate::store) struct WriterLane {
    pub index: u32,
    lock: LaneLock<WriterLane>,
    apply_locks: Arc<ApplyLocks>,
    /// Epoch in which this process has the lane.
    medium: Epoch,
    seed: u64,
    state: Mutex<State>,
    changed: Condvar,
    poisoned: Arc<AtomicBool>,
    capacity: AtomicU64,
    /// Objects that this process bound to the lane.
    pub bound: AtomicUsize,
    /// Whether `LaneUse` has times.
    pub timed: AtomicBool,
    /// Whether the table still binds an unattached object to the lane: it ends with its
    /// attachments.
    pub given_up: AtomicBool,
}

impl WriterLane {
    /// Empty from `log` on; `medium` was entered before the first read.
    pub(in crate::store) fn new(
        lane_lock: LaneLock<Self>,
        apply_locks: Arc<ApplyLocks>,
        medium: Epoch,
        seed: u64,
        log: LaneLog,
        revision: u64,
    ) -> Arc<Self> {
        let poisoned = Arc::new(AtomicBool::new(false));
        let lane = Arc::new(WriterLane {
            index: lane_lock.index,
            lock: lane_lock,
            apply_locks,
            medium,
            seed,
            state: Mutex::new(State {
                lane: LaneState::new(log, poisoned.clone()),
                changing: 0,
                waiting: 0,
                progress: BTreeMap::new(),
                queue: Vec::new(),
                done: HashMap::new(),
                ticket: 0,
                used: LaneUse::default(),
                revision,
                begun: false,
            }),
            changed: Condvar::new(),
            poisoned,
            capacity: AtomicU64::new(log.capacity()),
            bound: AtomicUsize::new(0),
            timed: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        });
        lane.lock.is_of(&lane);
        lane
    }

    pub(in crate::store) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire) || self.medium.is_over()
    }

    pub(in crate::store) fn medium(&self) -> &Epoch {
        &self.medium
    }

    pub(in crate::store) fn poison(&self) {
        lock(&self.state).lane.poison();
    }

    pub(in crate::store) fn used(&self) -> LaneUse {
        lock(&self.state).used
    }

    pub(in crate::store) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    /// Makes a batch durable and applies it; ends the change. `source` has borrowed lines.
    pub(in crate::store) fn commit(
        &self,
        changing: &mut Changing,
        batch: &mut Batch,
        advances: &[Advance],
        source: Option<&dyn BatchSource>,
    ) -> Result<()> {
        let source = source.filter(|_| batch.is_borrowed());
        batch.seal(self.seed);
        if Mutant::ApplyFirst.is_on() && source.is_none() {
            let _ = commit::apply(&self.medium, batch);
        }
        let begin = self.timed.load(Ordering::Relaxed).then(Instant::now);
        let state = lock(&self.state);
        let (durable, borrowed);
        if self.medium.capabilities().shares_commits {
            let result;
            (*batch, result) = self.publish_grouped(state, std::mem::take(batch));
            (durable, borrowed) = (result?, None);
        } else {
            let lines;
            (lines, durable) = self.publish_alone(state, batch, source)?;
            borrowed = source.zip(lines);
        }
        let published = begin.map(|begin| (begin.elapsed(), Instant::now()));
        // Rule L3 of docs/protocol.md.
        let applied = match borrowed {
            Some((source, lines)) => commit::apply_borrowed(&self.medium, batch, lines, source),
            None => self.apply(batch, advances),
        };
        let mut state = lock(&self.state);
        if let Some((publish, apply)) = published {
            state.used.publish += publish;
            state.used.apply += apply.elapsed();
        }
        state.lane.applied(durable, applied.is_ok());
        for advance in advances {
            state.progress.insert(advance.slot, advance.clone());
        }
        self.tell(&state);
        changing.end(&mut state);
        drop(state);
        applied.map_err(StoreError::behind_commit)
    }

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

    pub(in crate::store) fn page_cache(&self, slot: u64) -> Option<Arc<Mutex<PageCache>>> {
        lock(&self.state).progress.get(&slot)?.page_cache.clone()
    }

    fn publish_alone<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        batch: &mut Batch,
        source: Option<&dyn BatchSource>,
    ) -> Result<(Option<u64>, Durable)> {
        let mut state = self.make_room(state, batch.len(), None).map_err(|(_, error)| error)?;
        let (medium, seed, len) = (&self.medium, self.seed, batch.len());
        let appended = state.lane.append(|log| match source {
            Some(source) => commit::publish_borrowed(medium, seed, log, batch, source).map(Some),
            None => commit::publish(medium, seed, log, std::slice::from_mut(batch)).map(|()| None),
        })?;
        state.used.count(1, len);
        Ok(appended)
    }

    fn publish_grouped<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        batch: Batch,
    ) -> (Batch, Result<Durable>) {
        let ticket = state.ticket;
        state.ticket += 1;
        state.queue.push((ticket, batch));
        loop {
            if let Some(done) = state.done.remove(&ticket) {
                return done;
            }
            state = match state.lane.ask() {
                Asked::Granted(turn) => self.lead(state, turn),
                Asked::Taken => self.wait(state),
                Asked::Refused => {
                    state.refuse_first(StoreError::Poisoned);
                    self.tell(&state);
                    state
                }
            };
        }
    }

    fn lead<'a>(&'a self, state: MutexGuard<'a, State>, turn: Turn) -> MutexGuard<'a, State> {
        let first = state.queue.first().map_or(0, |(_, batch)| batch.len());
        let mut state = match self.make_room(state, first, Some(&turn)) {
            Ok(state) => state,
            Err((mut state, error)) => {
                // Only the first is known not to fit.
                state.refuse_first(error);
                state.lane.give_back(turn);
                self.tell(&state);
                return state;
            }
        };
        let (tickets, mut batches) = state.take_fitting();
        let mut log = state.lane.log();
        drop(state);
        let result = commit::publish(&self.medium, self.seed, &mut log, &mut batches);
        let mut state = lock(&self.state);
        let outcomes: Vec<Result<Durable>> = match result {
            Ok(()) => {
                state.used.count(batches.len(), batches.iter().map(Batch::len).sum());
                state.lane.written(turn, log, batches.len()).into_iter().map(Ok).collect()
            }
            Err(error) => {
                state.lane.not_written(turn);
                let others = std::iter::repeat_with(|| Err(StoreError::Poisoned));
                std::iter::once(Err(error)).chain(others).take(batches.len()).collect()
            }
        };
        for ((ticket, batch), outcome) in tickets.into_iter().zip(batches).zip(outcomes) {
            state.done.insert(ticket, (batch, outcome));
        }
        self.tell(&state);
        state
    }

    /// Checkpoints for `bytes` if needed. `turn`: the caller's.
    #[allow(clippy::type_complexity)]
    fn make_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        bytes: u64,
        turn: Option<&Turn>,
    ) -> std::result::Result<MutexGuard<'a, State>, (MutexGuard<'a, State>, StoreError)> {
        loop {
            if self.medium.is_over() {
                return Err((state, StoreError::Poisoned));
            }
            state = match state.lane.room(turn, bytes) {
                Room::Fits => return Ok(state),
                Room::Refused => return Err((state, StoreError::Poisoned)),
                Room::TooLarge => {
                    let largest = state.lane.log().capacity();
                    return Err((state, StoreError::NoRoom { needed: bytes, largest, free: largest }));
                }
                Room::Taken => self.wait(state),
                Room::Full => match self.try_checkpoint(&mut state, turn) {
                    Ok(true) => state,
                    Ok(false) => self.wait(state),
                    Err(error) => return Err((state, error)),
                },
            };
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.waiting -= 1;
        state
    }

    fn tell(&self, held: &State) {
        if held.waiting > 0 {
            self.changed.notify_all();
        }
    }

    pub(in crate::store) fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let mut changing = self.change()?;
        changing.end(&mut *self.idle(lock(&self.state))?);
        Ok(())
    }

    /// Just checkpointed. The caller has begun a change.
    fn idle<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        loop {
            if state.lane.is_idle(None) && self.is_poisoned() {
                return Err(StoreError::Poisoned);
            }
            if self.try_checkpoint(&mut state, None)? {
                return Ok(state);
            }
            state = self.wait(state);
        }
    }

    /// `false`: not idle.
    fn try_checkpoint(&self, state: &mut State, turn: Option<&Turn>) -> Result<bool> {
        let (device, State { lane, progress, used, begun, .. }) = (&self.medium, state);
        let done = lane.checkpoint(turn, |log| {
            for advance in progress.values() {
                if let Some(page_cache) = &advance.page_cache {
                    lock(page_cache).write_out(device)?;
                }
                if !Mutant::ProgressForgotten.is_on() {
                    put_progress_at(device, self.seed, advance.slot, advance.id, &advance.standing)?;
                }
            }
            // Rule L5 of docs/protocol.md.
            if !Mutant::EarlyCheckpoint.is_on() {
                device.barrier()?;
            }
            // A failed read may lose lines.
            if self.is_poisoned() {
                return Err(StoreError::Poisoned);
            }
            log.next_generation(device, self.seed)
        })?;
        if done {
            progress.clear();
            used.checkpoints += 1;
            *begun = true;
        }
        Ok(done)
    }

    /// `relocate` returns an extent with a durable generation.
    pub(in crate::store) fn relocate(
        &self,
        _changing: &Changing,
        relocate: impl FnOnce(LaneLog) -> Result<LaneLog>,
    ) -> Result<()> {
        let mut state = self.idle(lock(&self.state))?;
        let log = state.lane.relocate(relocate)?;
        state.begun = false;
        self.capacity.store(log.capacity(), Ordering::Release);
        Ok(())
    }

    /// The object's primary is durable.
    pub(in crate::store) fn forget(&self, entry: u64) {
        lock(&self.state).progress.remove(&entry);
        self.bound.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for WriterLane {
    fn drop(&mut self) {
        let state = lock(&self.state);
        self.lock.release(|| {
            let unused = self.bound.load(Ordering::Relaxed) == 0;
            if unused && state.begun && !self.is_poisoned() {
                let _ = state.lane.log().retire(&self.medium, self.seed);
            }
        });
    }
}
