//! psync of one object, with its space and its lane's.

use super::staged::{Changes, stage};
use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{FLAG_OVERLAY, FLAG_SEALED, FLAG_SPARSE};
use crate::lane::LaneLog;
use crate::medium::Medium;
use crate::store::lanes::{Changing, LaneUse};

impl Writer {
    /// Makes `changes` durable as one atomic step; writes nothing if nothing changed.
    ///
    /// # Errors
    /// `NoRoom`, `NoSpace`, `HeldStill`: nothing happened, the call may be repeated. `Poisoned`, or
    /// a failure of the medium: the object is poisoned.
    pub fn psync(&mut self, changes: &mut dyn Changes) -> Result<()> {
        stage([(self, changes)], None)?.commit()
    }

    pub(in crate::store) fn psync_step(&mut self, changes: &mut dyn Changes) -> Result<()> {
        self.psync(changes).map_err(StoreError::of_step)
    }

    /// High-water mark of psynced bytes.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.standing.published
    }

    /// Psyncs of the object that changed something, over its life.
    #[must_use]
    pub fn psyncs(&self) -> u64 {
        self.standing.psyncs
    }

    /// Counters of the object's lane.
    #[must_use]
    pub fn lane_use(&self) -> LaneUse {
        self.lane.used()
    }

    /// Switches timing in [`lane_use`](Writer::lane_use).
    pub fn set_timed(&self, timed: bool) {
        self.lane.timed.store(timed, std::sync::atomic::Ordering::Relaxed);
    }

    pub(in crate::store) fn lane_capacity(&self) -> u64 {
        self.lane.capacity()
    }

    /// Makes room for a batch of `bytes` in the lane.
    ///
    /// # Errors
    /// `NoRoom`: nothing happened. `HeldStill`; those of the table.
    pub(in crate::store) fn make_room(&mut self, bytes: u64) -> Result<()> {
        let changing = self.change()?;
        if bytes > self.lane.capacity() { self.enlarge_lane(&changing, bytes) } else { Ok(()) }
    }

    /// Checkpoints the lane: psynced data is durable in place, the lane empty.
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

    pub(super) fn back(&mut self, target: u64, len: u64) -> Result<()> {
        const PIECE: u64 = 64 * 1024;
        let entry = &self.object.entry;
        if !entry.has(FLAG_SPARSE) {
            return Ok(());
        }
        let (start, end) = (entry.primary_offset(), entry.primary_offset() + entry.extent_len());
        if !(start..end).contains(&target) {
            // A bitmap; its pages have space.
            return Ok(());
        }
        let len = len.min(end - target);
        for piece in (target - start) / PIECE..=(target + len - 1 - start) / PIECE {
            let (word, bit) = ((piece / 64) as usize, piece % 64);
            if word >= self.backed.len() {
                self.backed.resize(word + 1, 0);
            }
            if self.backed[word] >> bit & 1 == 0 {
                let from = start + piece * PIECE;
                self.lane.medium().prepare(from, PIECE.min(end - from))?;
                self.backed[word] |= 1 << bit;
            }
        }
        Ok(())
    }

    /// Claims space for a sparse object's pages; `false`: not sparse.
    ///
    /// # Errors
    /// `NoSpace`: nothing happened. The medium's.
    pub fn claim(&self, first: u64, pages: u64) -> Result<bool> {
        let entry = &self.object.entry;
        if !entry.has(FLAG_SPARSE) || entry.flags.get() & (FLAG_OVERLAY | FLAG_SEALED) != 0 {
            return Ok(false);
        }
        let end = first.saturating_add(pages).min(entry.pages.get());
        let from = first.min(end);
        self.lane.medium().reserve(entry.primary_offset() + from * PAGE, (end - from) * PAGE)?;
        Ok(true)
    }

    pub(super) fn enlarge_lane(&self, changing: &Changing, bytes: u64) -> Result<()> {
        self.store.exchange_lane(&self.lane, changing, LaneLog::len_for(bytes))
    }
}
