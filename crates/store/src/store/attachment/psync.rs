//! psync, as far as the medium is concerned: a batch becomes durable, then reaches the primary.

use super::primary::Primary;
use super::writer::Writer;
use super::written::Direct;
use crate::commit::expect_readings;
use crate::error::{Part, Result, StoreError};
use crate::format::batch::kind;
use crate::format::entry::FLAG_SPARSE;
use crate::format::{LINE, PAGE};
use crate::lane::{Batch, BatchSource, LaneLog};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::recovery::Standing;
use crate::store::lanes::{Advance, LaneUse};
use crate::table::{directory, directory_slot, put_directory};
use std::sync::Arc;

/// An object's part of a psync: fills `batch` with the lines that changed.
pub trait Changes {
    /// Appends the changed lines; targets are offsets in the pool. Returns the end, in bytes from the
    /// object's start, of the last line appended (0 if there is none).
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64>;
}

impl<F: FnMut(u64, &mut Batch) -> Result<u64>> Changes for F {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        self(primary.start(), batch)
    }
}

impl Writer {
    /// Makes `changes` durable as one atomic step (S0.18). Nothing changed: nothing is written.
    ///
    /// # Errors
    /// `NoRoom`, `NoSpace`, `HeldStill`: nothing happened, the call may be made again. `Poisoned`, or a failure of
    /// the medium: the object is poisoned.
    pub fn psync(&mut self, changes: &mut dyn Changes) -> Result<()> {
        psync_all(&mut [(self, changes)], None)
    }

    /// Bytes of the object that a psync ever covered, as a high-water mark.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.standing.published
    }

    /// Psyncs of the object that had something to do, over its life.
    #[must_use]
    pub fn psyncs(&self) -> u64 {
        self.standing.psyncs
    }

    /// Counters of the object's lane.
    #[must_use]
    pub fn lane_use(&self) -> LaneUse {
        self.lane.used()
    }

    /// Starts or stops taking times in [`lane_use`](Writer::lane_use).
    pub fn set_timed(&self, timed: bool) {
        self.lane.timed.store(timed, std::sync::atomic::Ordering::Relaxed);
    }

    /// Checkpoints the object's lane: psynced data is durable in place, the lane is empty.
    pub fn checkpoint(&self) -> Result<()> {
        self.lane.checkpoint()
    }

    /// Whether the object is poisoned.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.lane.is_poisoned()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.lane.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        Ok(self.store.device.verify()?)
    }

    /// Claims space for a write to a sparse object, in pieces that are remembered.
    pub(super) fn back(&mut self, target: u64, len: u64) -> Result<()> {
        const PIECE: u64 = 64 * 1024;
        let entry = &self.object.entry;
        if !entry.has(FLAG_SPARSE) {
            return Ok(());
        }
        let (start, end) = (entry.primary_offset(), entry.primary_offset() + entry.extent_len());
        for piece in (target - start) / PIECE..=(target + len - 1 - start) / PIECE {
            let (word, bit) = ((piece / 64) as usize, piece % 64);
            if word >= self.backed.len() {
                self.backed.resize(word + 1, 0);
            }
            if self.backed[word] >> bit & 1 == 0 {
                let from = start + piece * PIECE;
                self.lane.medium().reserve(from, PIECE.min(end - from))?;
                self.backed[word] |= 1 << bit;
            }
        }
        Ok(())
    }

    /// Gives the lane room for a batch of `bytes`: a larger extent.
    fn enlarge_lane(&self, bytes: u64) -> Result<()> {
        let store = &self.store;
        let len = (bytes.saturating_add(2 * PAGE)).next_multiple_of(1 << 20);
        self.lane.relocate(|old: LaneLog| {
            store.update_then(
                |table| {
                    let index = self.lane.index;
                    let before = directory(table, index)?
                        .ok_or(StoreError::damaged(Part::LaneDirectory, directory_slot(index)))?;
                    let generation = old.generation + 1;
                    let mut found = store.place_lane(table, index, len, generation)?;
                    table.give_extent(old.offset / PAGE, old.len / PAGE)?;
                    // The objects of this lane are still bound to it.
                    found.since = before.since;
                    put_directory(table, index, found)?;
                    Ok(LaneLog::at_start(found.offset.get(), len, generation))
                },
                |log| {
                    store.device.discard(old.offset, old.len);
                    log
                },
            )
        })
    }
}

/// psync of several objects of one pool as one atomic step. For the source see [`stage`].
pub fn psync_all(
    parts: &mut [(&mut Writer, &mut dyn Changes)],
    source: Option<&dyn BatchSource>,
) -> Result<()> {
    if Mutant::SplitPsync.is_on() && parts.len() > 1 {
        return parts.chunks_mut(1).try_for_each(|part| psync_all(part, source));
    }
    let staged = stage(parts, source)?;
    let mut writers: Vec<&mut Writer> = parts.iter_mut().map(|(writer, _)| &mut **writer).collect();
    staged.commit(&mut writers)
}

/// A psync whose content is fixed: stores made from now on belong to the next one. With a source, its bytes
/// must not change before the commit is done.
pub struct Staged<'l> {
    batch: Batch,
    advances: Vec<Advance>,
    source: Option<&'l dyn BatchSource>,
}

/// Collects the changes of several objects of one pool. With a source, which has the bytes of all of them,
/// the batch may borrow lines where it pays ([`Batch::may_borrow`]).
pub fn stage<'l>(
    parts: &mut [(&mut Writer, &mut dyn Changes)],
    source: Option<&'l dyn BatchSource>,
) -> Result<Staged<'l>> {
    let mut staged = Staged { batch: Batch::new(), advances: Vec::with_capacity(parts.len()), source };
    let Some((first, _)) = parts.first_mut() else { return Ok(staged) };
    std::mem::swap(&mut staged.batch, &mut first.scratch);
    let (first, _) = &parts[0];
    let mut apart = false;
    for (writer, _) in parts.iter() {
        if !Arc::ptr_eq(&writer.store, &first.store) {
            return Err(StoreError::DifferentPools);
        }
        apart |= !Arc::ptr_eq(&writer.lane, &first.lane);
        writer.check()?;
    }
    for (writer, _) in parts.iter_mut() {
        writer.take_back_unproven()?;
    }
    if apart {
        unite(parts)?;
    }
    staged.batch.clear();
    staged.batch.set_may_borrow(source.is_some() && parts[0].0.store.device.capabilities().byte_addressable);
    for (writer, changes) in parts.iter_mut() {
        staged.add(writer, &mut **changes)?;
    }
    Ok(staged)
}

impl Staged<'_> {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.advances.is_empty()
    }

    fn add(&mut self, writer: &Writer, changes: &mut dyn Changes) -> Result<()> {
        let before = self.batch.data_len();
        let entry = &writer.object.entry;
        self.batch.begin(kind::PSYNC, writer.object.offset, entry.binding.get());
        let mut primary =
            Primary::new(&*writer.store.device, entry.primary_offset(), writer.page_cache.as_deref());
        let end = changes.collect(&mut primary, &mut self.batch)?;
        drop(primary);
        let direct = writer.publishable();
        if self.batch.data_len() == before && direct.is_none() {
            self.batch.cancel();
            return Ok(());
        }
        let published = writer.standing.published.max(end).max(direct.unwrap_or(0));
        let standing = Standing { published, psyncs: writer.standing.psyncs.saturating_add(1), direct: 0 };
        self.batch.set_progress(standing.published, standing.psyncs, standing.direct);
        self.advances.push(Advance::new(&writer.object, standing, writer.page_cache.clone()));
        Ok(())
    }

    /// Makes it durable and brings it into the primaries. `writers` are those it was staged for.
    ///
    /// # Errors
    /// As for [`Writer::psync`].
    pub fn commit(mut self, writers: &mut [&mut Writer]) -> Result<()> {
        let result = self.publish(writers);
        if let Some(first) = writers.first_mut() {
            // For reuse of its memory.
            first.scratch = self.batch;
        }
        result
    }

    fn publish(&mut self, writers: &mut [&mut Writer]) -> Result<()> {
        let Some(first) = writers.first() else { return Ok(()) };
        if self.advances.is_empty() {
            // Nothing differs from the primary; but a primary that went back to an earlier state is not the
            // last psync.
            return expect_readings(first.lane.medium());
        }
        if u32::try_from(self.batch.count()).is_err() {
            let why = "one psync changes less than 256 GiB: psync more often";
            return Err(StoreError::BadSize { size: self.batch.data_len(), why });
        }
        reserve(writers, &self.batch)?;
        let first = &writers[0];
        if self.batch.sealed_len() > first.lane.capacity() {
            first.enlarge_lane(self.batch.sealed_len())?;
        }
        first.lane.commit(&mut self.batch, &self.advances, self.source)?;
        for writer in writers.iter_mut() {
            let own = |advance: &&Advance| advance.slot == writer.object.offset;
            if let Some(advance) = self.advances.iter().find(own) {
                writer.standing = advance.standing;
                writer.direct = Direct::None;
                writer.unsettled = true;
            }
        }
        Ok(())
    }
}

/// Space for the apply is claimed before the commit: a committed batch can always be applied.
fn reserve(writers: &mut [&mut Writer], batch: &Batch) -> Result<()> {
    let mut targets = batch.targets();
    for section in batch.sections() {
        let owner = writers.iter_mut().find(|writer| writer.object.offset == section.entry.get());
        let runs = targets.by_ref().take(section.runs.get() as usize);
        let Some(writer) = owner else { continue };
        for (target, lines) in runs {
            writer.back(target, lines * LINE)?;
        }
    }
    Ok(())
}

/// Moves the objects to the first one's lane; each under a new binding, once its primary is durable.
fn unite(parts: &mut [(&mut Writer, &mut dyn Changes)]) -> Result<()> {
    let (store, lane) = (parts[0].0.store.clone(), parts[0].0.lane.clone());
    for (writer, _) in parts.iter_mut() {
        if Arc::ptr_eq(&writer.lane, &lane) {
            continue;
        }
        if !Mutant::UnsettledMove.is_on() {
            writer.settle()?;
        }
        let mut object = writer.object;
        store.update(|table| {
            object = table.entry(object.offset)?;
            store.bind(table, &mut object, lane.index)
        })?;
        writer.object = object;
        writer.lane.forget(object.offset);
        writer.lane = lane.clone();
        lane.bound.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}
