//! Access to the table: one process at a time, which first catches up with the batches of others.
//!
//! Invariants, while the table is held:
//! 1. Every batch of the table lane has been applied to the table's pages.
//! 2. `TableLog::known` is the end of the table lane.
//! 3. A transaction is published as one batch, then applied; a failed transaction leaves no trace.
//! 4. `TableLog::nodes` has only nodes as they are on the medium.
//! 5. One thread of the process has the table at a time; others wait no longer than for another
//!    process.
//! 6. A read-only store changes and locks nothing: it works on an overlay with the lane caught up,
//!    and its findings count only if the lane is the same afterwards. Until then the table's pages
//!    change only by applied batches, which the overlay has too. The overlay serves later looks
//!    while the lane ends where it did: the progress lines in it are final, or of bound objects,
//!    whose lines are read from the medium.
//! 7. Reads count once the system, asked after them, reports no failed write-back.
//! 8. A failed publication has an unknown outcome and ends the epoch: the lane is read, made
//!    durable and redone as by a new process.

use crate::error::{Holder, Result, StoreError};
use crate::format::batch::Header;
use crate::format::{LINE, TABLE_LANE, TABLE_LANE_LEN};
use crate::lane::scan;
use crate::lane::{Batch, LaneLog};
use crate::medium::{
    Device, Epoch, Fatal, FaultLatch, LockKey, LockMode, Medium, MediumError, Overlay, read_struct,
};
use crate::mutant::Mutant;
use crate::recovery::catch_up;
use crate::space::{Nodes, TableTransaction};
use crate::store::locks::{Deadline, Patience, lock, lock_table};
use crate::store::publication::{append, fill, spill};
use crate::sync::{Condvar, Mutex, Ordering, fence};
use std::sync::Arc;

pub(in crate::store) struct TableLog {
    /// `None`: the lane must be read from its beginning.
    known: Option<Known>,
    batch: Batch,
    nodes: Nodes,
}

impl TableLog {
    pub(in crate::store) fn unread() -> Self {
        TableLog { known: None, batch: Batch::new(), nodes: Nodes::default() }
    }
}

#[derive(Clone)]
struct Known {
    log: LaneLog,
    epoch: Epoch,
}

pub(in crate::store) struct Table {
    device: Arc<dyn Device>,
    latch: Arc<FaultLatch>,
    seed: u64,
    len: u64,
    read_only: bool,
    pub(in crate::store) patience: Arc<Patience>,
    turns: Mutex<Turns>,
    given_back: Condvar,
    /// In a read-only store.
    caught_up: Mutex<Option<CaughtUp>>,
}

/// The table as of an end of its lane.
#[derive(Clone)]
struct CaughtUp {
    pages: Arc<Overlay>,
    log: LaneLog,
}

struct Turns {
    /// `None` while a thread has it.
    log: Option<TableLog>,
    waiting: usize,
}

impl Table {
    pub(in crate::store) fn new(
        device: Arc<dyn Device>,
        latch: Arc<FaultLatch>,
        seed: u64,
        len: u64,
    ) -> Self {
        let turns = Turns { log: Some(TableLog::unread()), waiting: 0 };
        Table {
            read_only: device.read_only(),
            device,
            latch,
            seed,
            len,
            patience: Arc::default(),
            turns: Mutex::new(turns),
            given_back: Condvar::new(),
            caught_up: Mutex::default(),
        }
    }

    fn take(&self, deadline: &Deadline) -> Result<TableLog> {
        let mut turns = lock(&self.turns);
        loop {
            if let Some(log) = turns.log.take() {
                return Ok(log);
            }
            let left = deadline.left();
            if left.is_zero() {
                let holder = Holder::Own { writer: true };
                return Err(StoreError::TableBusy { seconds: deadline.seconds(), holder });
            }
            turns.waiting += 1;
            let waited = self.given_back.wait_timeout(turns, left);
            turns = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            turns.waiting -= 1;
        }
    }

    fn give_back(&self, log: TableLog) {
        let mut turns = lock(&self.turns);
        turns.log = Some(log);
        if turns.waiting > 0 {
            self.given_back.notify_one();
        }
    }
}

struct Held<'t> {
    table: &'t Table,
    state: TableLog,
    locked: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.locked {
            self.table.device.unlock(LockKey::Table);
        }
        self.table.give_back(std::mem::replace(&mut self.state, TableLog::unread()));
    }
}

impl Table {
    /// Publishes `change` as one batch, then runs `after` with the table held.
    pub(in crate::store) fn update_then<R, S>(
        &self,
        change: impl FnOnce(&mut TableTransaction<'_>) -> Result<R>,
        after: impl FnOnce(R) -> S,
    ) -> Result<S> {
        if self.read_only {
            return Err(MediumError::ReadOnly.into());
        }
        let mut held = self.hold_table()?;
        let known = held.catch_up()?;
        let nodes = std::mem::take(&mut held.state.nodes);
        let changed = trusted(&known.epoch, || {
            let mut table = TableTransaction::begin(&known.epoch, self.seed, self.len)?.with_nodes(&nodes);
            let out = change(&mut table)?;
            Ok((table, out))
        });
        let changed = changed.and_then(|(table, out)| held.publish(&known, table).map(|()| out));
        held.state.nodes = nodes;
        changed.map(after)
    }

    /// A read-only store repeats `look` if the table changes; returns the lane's end.
    pub(in crate::store) fn view<R>(
        &self,
        mut look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<(R, LaneLog)> {
        if self.read_only {
            return self.view_unlocked(look);
        }
        let mut held = self.hold_table()?;
        let Known { epoch, log } = held.catch_up()?;
        let seen = trusted(&epoch, || {
            look(&TableTransaction::begin(&epoch, self.seed, self.len)?.with_nodes(&held.state.nodes))
        })?;
        Ok((seen, log))
    }

    fn view_unlocked<R>(
        &self,
        mut look: impl FnMut(&TableTransaction<'_>) -> Result<R>,
    ) -> Result<(R, LaneLog)> {
        let mut look = |seen: &CaughtUp| look(&TableTransaction::begin(&*seen.pages, self.seed, self.len)?);
        let kept = lock(&self.caught_up).clone();
        if let Some(seen) = kept {
            self.device.verify()?;
            if self.ends_at(&seen.log) {
                let found = look(&seen);
                self.device.verify()?;
                if Mutant::ReadUnchecked.is_on() || self.ends_at(&seen.log) {
                    return found.map(|found| (found, seen.log));
                }
            }
        }
        let deadline = Deadline::after(self.patience.get());
        let (found, seen) = unlocked(&*self.device, self.seed, deadline, || {
            let pages = Arc::new(Overlay::new(self.device.clone()));
            let mut log = read_table_log(&*pages, self.seed)?;
            catch_up(&*pages, self.seed, &mut log, false)?;
            let seen = CaughtUp { pages, log };
            Ok((look(&seen)?, seen))
        })?;
        let log = seen.log;
        *lock(&self.caught_up) = Some(seen);
        Ok((found, log))
    }

    /// Whether the table's lane still ends there. The generation is read last: a checkpoint
    /// overwrites batches.
    fn ends_at(&self, end: &LaneLog) -> bool {
        let (device, mut now) = (&*self.device, *end);
        fence(Ordering::Acquire);
        let scanned = scan(device, self.seed, &mut now, &mut |_| Ok(()));
        fence(Ordering::Acquire);
        scanned.is_ok() && now == *end && end.is_current(device, self.seed).is_ok_and(|current| current)
    }

    /// Whether the table is certainly as it was at the lane's end `end`; without lock or, in
    /// memory, system call. `false` where invariant 7 applies.
    pub(in crate::store) fn is_still_at(&self, end: &LaneLog) -> Result<bool> {
        if self.device.capabilities().writes_back_later || !end.fits(LINE) {
            return Ok(false);
        }
        if Mutant::TableUnasked.is_on() {
            return Ok(true);
        }
        self.device.keep_near(end.offset, end.len);
        // Orders the caller's reads before these, and the next batch before the generation.
        fence(Ordering::Acquire);
        let next: Header = read_struct(&*self.device, end.position())?;
        fence(Ordering::Acquire);
        let published = next.verify(self.seed, end.generation, end.sequence, end.len - end.tail);
        Ok(!published && end.is_current(&*self.device, self.seed)?)
    }

    fn hold_table(&self) -> Result<Held<'_>> {
        let mut deadline = Deadline::after(self.patience.get());
        let state = self.take(&deadline)?;
        let mut held = Held { table: self, state, locked: false };
        lock_table(&*self.device, LockMode::Exclusive, &mut deadline)?;
        held.locked = true;
        self.device.verify()?;
        Ok(held)
    }
}

/// Fails if pages were lost: a batch made of old bytes could be redone.
fn trusted<R>(epoch: &Epoch, read: impl FnOnce() -> Result<R>) -> Result<R> {
    let early = Mutant::AskedTooEarly.is_on().then(|| epoch.check_writeback());
    let outcome = read();
    if Mutant::ReadingsTrusted.is_on() {
        return outcome;
    }
    match (early.unwrap_or_else(|| epoch.check_writeback()), outcome) {
        (Err(Fatal(MediumError::Faulted)), Err(error @ StoreError::Failed(_))) => Err(error),
        (Err(fatal), _) => Err(fatal.into()),
        (Ok(()), outcome) => outcome,
    }
}

/// Repeats `look` without locks until the table is stable.
pub(in crate::store) fn unlocked<R>(
    device: &dyn Medium,
    seed: u64,
    mut deadline: Deadline,
    mut look: impl FnMut() -> Result<R>,
) -> Result<R> {
    device.verify()?;
    let mut before = table_end(device, seed);
    loop {
        let found = look();
        device.verify()?;
        let after = table_end(device, seed);
        match (&before, &after) {
            (Ok(before), Ok(after)) if before != after && !Mutant::ReadUnchecked.is_on() => {}
            _ => return found,
        }
        if !deadline.pause(std::thread::sleep) {
            return Err(StoreError::TableInMotion { seconds: deadline.seconds() });
        }
        before = after;
    }
}

fn table_end(medium: &dyn Medium, seed: u64) -> Result<LaneLog> {
    let mut log = read_table_log(medium, seed)?;
    scan(medium, seed, &mut log, &mut |_| Ok(()))?;
    Ok(log)
}

pub(in crate::store) fn read_table_log(medium: &dyn Medium, seed: u64) -> Result<LaneLog> {
    LaneLog::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1)
}

impl Held<'_> {
    fn catch_up(&mut self) -> Result<Known> {
        let seed = self.table.seed;
        let state = &mut self.state;
        let known = state.known.take().filter(|known| !known.epoch.is_over());
        if Mutant::StaleTable.is_on()
            && let Some(known) = known
        {
            state.known = Some(known.clone());
            return Ok(known);
        }
        let (known, epoch) = match known {
            Some(Known { log, epoch }) if log.is_current(&epoch, seed)? => (Some(log), epoch),
            _ => (None, self.table.latch.enter()),
        };
        let mut log = match known {
            Some(log) => log,
            None => read_table_log(&epoch, seed)?,
        };
        catch_up(&epoch, seed, &mut log, known.is_some())?;
        if known != Some(log) && !Mutant::NodesKept.is_on() {
            state.nodes.clear();
        }
        let known = Known { log, epoch };
        state.known = Some(known.clone());
        Ok(known)
    }

    fn publish(&mut self, known: &Known, mut table: TableTransaction<'_>) -> Result<()> {
        let seed = self.table.seed;
        let state = &mut self.state;
        if table.root_changed() {
            table.seal_root()?;
        }
        let batch = &mut state.batch;
        fill(batch, &table, seed);
        if batch.is_empty() {
            return Ok(());
        }
        state.known = None;
        let Known { mut log, epoch } = known.clone();
        match batch.len() > log.capacity() {
            false => append(&epoch, seed, &mut log, batch)?,
            true => spill(&epoch, (seed, self.table.len), &mut log, &mut table, batch)?,
        }
        state.known = Some(Known { log, epoch });
        table.forget_changed();
        Ok(())
    }
}
