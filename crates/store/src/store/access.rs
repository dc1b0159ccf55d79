//! Access to the table: one process at a time, each first catching up with what others published.
//!
//! Invariants, while the table is held:
//! 1. Every batch of the table lane has been applied to the table's pages.
//! 2. `TableLog::log` is the end of the table lane.
//! 3. A draft is published as one batch, then applied; a draft that fails leaves no trace.
//! 4. `TableLog::nodes` has only nodes as they are on the medium.
//! 5. What was read counts once the system, asked after it, reports no failed write-back.
//! 6. Whether a publication that failed took place is unknown, and it ends the epoch: the table's lane is read,
//!    made durable and redone anew, as by a process that has just come.

use super::{Store, lock};
use crate::commit;
use crate::error::{Result, StoreError};
use crate::format::batch::kind;
use crate::format::{TABLE_LANE, TABLE_LANE_LEN};
use crate::lane::{Batch, LaneLog};
use crate::medium::{Epoch, LockKey, LockMode, Medium, Overlay};
use crate::mutant::Mutant;
use crate::recovery::catch_up;
use crate::space::{Draft, Nodes};
use crate::sync::MutexGuard;
use std::time::{Duration, Instant};

/// How long another process may hold the table before this one gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What this process knows of the table lane.
pub(super) struct TableLog {
    log: Option<LaneLog>,
    /// Of which `log` and `nodes` are.
    epoch: Option<Epoch>,
    batch: Batch,
    nodes: Nodes,
}

impl TableLog {
    pub(super) fn unread() -> Self {
        TableLog { log: None, epoch: None, batch: Batch::new(), nodes: Nodes::default() }
    }
}

/// The table, held.
struct Held<'s> {
    store: &'s Store,
    state: MutexGuard<'s, TableLog>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.store.device.unlock(LockKey::Table);
    }
}

impl Store {
    /// Runs `change` on the table and publishes what it changed as one batch: durable on return.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut Draft<'_>) -> Result<R>) -> Result<R> {
        self.update_then(change, |out| out)
    }

    /// As [`update`](Store::update); `after` runs once the change is durable, with the table still
    /// held: whoever destroyed an object gives up its hold there, as the slot may be another's next.
    pub(super) fn update_then<R, S>(
        &self,
        change: impl FnOnce(&mut Draft<'_>) -> Result<R>,
        after: impl FnOnce(R) -> S,
    ) -> Result<S> {
        self.writable()?;
        let mut held = self.hold_table(LockMode::Exclusive)?;
        let epoch = held.catch_up()?;
        let nodes = std::mem::take(&mut held.state.nodes);
        let mut draft = trusted(&epoch, Draft::begin(&epoch, self.seed, self.len))?.with_nodes(&nodes);
        let changed = trusted(&epoch, change(&mut draft));
        let changed = changed.and_then(|out| held.publish(&epoch, draft).map(|()| out));
        held.state.nodes = nodes;
        Ok(after(changed?))
    }

    /// Runs `look` on the table as it is.
    pub(super) fn view<R>(&self, look: impl FnOnce(&Draft<'_>) -> Result<R>) -> Result<R> {
        if self.read_only {
            let _held = self.hold_table(LockMode::Shared)?;
            let overlay = Overlay::new(self.device.clone());
            let mut log = read_table_log(&overlay, self.seed)?;
            catch_up(&overlay, self.seed, &mut log, false)?;
            return look(&Draft::begin(&overlay, self.seed, self.len)?);
        }
        let mut held = self.hold_table(LockMode::Exclusive)?;
        let epoch = held.catch_up()?;
        let draft = Draft::begin(&epoch, self.seed, self.len);
        trusted(&epoch, draft.and_then(|draft| look(&draft.with_nodes(&held.state.nodes))))
    }

    fn hold_table(&self, mode: LockMode) -> Result<Held<'_>> {
        let state = lock(&self.table);
        self.device.verify()?;
        let begin = Instant::now();
        let mut pause = Duration::from_micros(20);
        while !self.device.try_lock(LockKey::Table, mode)? {
            if begin.elapsed() > PATIENCE {
                return Err(StoreError::TableBusy { seconds: PATIENCE.as_secs() });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        Ok(Held { store: self, state })
    }
}

/// What came of reading the table, unless pages were lost: they are clean, may have been dropped, and read again as
/// they were long ago. A batch made from that would be visible, and others would redo it, before its durable write
/// failed.
fn trusted<R>(epoch: &Epoch, outcome: Result<R>) -> Result<R> {
    if !Mutant::ReadingsTrusted.is_on() {
        epoch.check_writeback()?;
    }
    outcome
}

/// The table lane as another process, or an earlier run, left it.
pub(super) fn read_table_log(medium: &dyn Medium, seed: u64) -> Result<LaneLog> {
    LaneLog::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1)
}

impl Held<'_> {
    /// Learns what others did to the table. Returns the epoch in which all of it is known.
    fn catch_up(&mut self) -> Result<Epoch> {
        let seed = self.store.seed;
        let state = &mut *self.state;
        let known = state.log.take().zip(state.epoch.take().filter(|epoch| !epoch.is_over()));
        if Mutant::StaleTable.is_on()
            && let Some((log, epoch)) = known
        {
            (state.log, state.epoch) = (Some(log), Some(epoch.clone()));
            return Ok(epoch);
        }
        let (known, epoch) = match known {
            Some((log, epoch)) if log.is_current(&epoch, seed)? => (Some(log), epoch),
            _ => (None, self.store.latch.enter()),
        };
        let mut log = match known {
            Some(log) => log,
            None => read_table_log(&epoch, seed)?,
        };
        catch_up(&epoch, seed, &mut log, known.is_some())?;
        if known != Some(log) && !Mutant::NodesKept.is_on() {
            state.nodes.clear();
        }
        (state.log, state.epoch) = (Some(log), Some(epoch.clone()));
        Ok(epoch)
    }

    fn publish(&mut self, epoch: &Epoch, mut draft: Draft<'_>) -> Result<()> {
        let seed = self.store.seed;
        let state = &mut *self.state;
        if draft.root_changed() {
            draft.seal_root()?;
        }
        let batch = &mut state.batch;
        batch.clear();
        batch.begin(kind::TABLE, 0, 0);
        draft.pages().changed_runs(|offset, bytes| batch.copy_lines(offset, bytes));
        if batch.is_empty() {
            return Ok(());
        }
        batch.seal(seed);
        let Some(mut log) = state.log.take() else { return Err(StoreError::NotAttached) };
        append(epoch, seed, &mut log, batch)?;
        state.log = Some(log);
        draft.forget_changed();
        Ok(())
    }
}

pub(super) fn append(device: &dyn Medium, seed: u64, log: &mut LaneLog, batch: &mut Batch) -> Result<()> {
    if batch.len() > log.capacity() {
        let largest = log.capacity();
        return Err(StoreError::NoRoom { needed: batch.len(), largest, free: largest });
    }
    if Mutant::TableFirst.is_on() {
        commit::apply(device, batch)?;
    }
    if !log.fits(batch.len()) {
        if !Mutant::EarlyTableCheckpoint.is_on() {
            device.barrier()?;
        }
        log.next_generation(device, seed)?;
    }
    commit::publish(device, seed, log, std::slice::from_mut(batch))?;
    commit::apply(device, batch)
}
