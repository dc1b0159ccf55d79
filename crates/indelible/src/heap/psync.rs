//! Makes a heap durable, alone, beside other threads, or with other objects.

use super::writer::Heap;
use crate::error::Result;
use crate::object::{Object, PsyncStats, psync_all};
use std::ops::Range;

impl Heap {
    pub(crate) fn enter(&self) {
        self.raw.enter();
    }

    pub(crate) fn leave(&self) {
        self.raw.leave();
    }

    pub(crate) fn stored(&self, ranges: &[Range<usize>]) {
        if let Some(marks) = self.object.explicit_marks() {
            marks.mark(ranges.iter().map(|range| self.offsets(range)));
        }
    }

    pub(crate) fn lent(&self, range: &Range<usize>) {
        if let Some(marks) = self.object.explicit_marks() {
            marks.mark_borrowed(self.offsets(range));
        }
    }

    pub(crate) fn shared(&self, range: &Range<usize>) {
        if let Some(marks) = self.object.explicit_marks() {
            marks.mark_shared(self.offsets(range));
        }
    }

    fn offsets(&self, range: &Range<usize>) -> Range<usize> {
        let base = self.object.as_ptr().addr();
        range.start - base..range.end - base
    }

    /// Makes all stores since the last psync durable as one step: see [`Object::psync`].
    pub fn psync(&mut self) -> Result<()> {
        self.audited()?;
        self.object.psync()
    }

    /// Counters of psync since the attach: see [`Object::stats`].
    #[must_use]
    pub fn psync_stats(&self) -> PsyncStats {
        self.object.stats()
    }

    /// Whether a detach now would lose stores: see [`Object::is_unsynced`].
    pub fn is_unsynced(&mut self) -> Result<bool> {
        self.object.is_unsynced()
    }

    /// As [`psync`](Heap::psync), while other threads go on: see [`Object::psync_cut`]. Operations
    /// on the heap, and critical sections of locks of the [`collections`](crate::collections), are
    /// in the cut as a whole, or not at all. Concurrent calls share durable writes.
    ///
    /// # Errors
    /// As for [`Object::psync`]; `Busy` if the calling thread has such a lock, or another had one
    /// for all of [`PoolOptions::wait`](crate::PoolOptions::wait).
    pub fn psync_cut(&self) -> Result<()> {
        self.commit().wait()
    }

    /// psync of several heaps, and of other objects of the pool, as one atomic step: see
    /// [`psync_all`](crate::psync_all).
    ///
    /// # Errors
    /// As for [`psync_all`](crate::psync_all).
    pub fn psync_all(heaps: &mut [&mut Heap], objects: &mut [&mut Object]) -> Result<()> {
        heaps.iter().try_for_each(|heap| heap.audited())?;
        let heaps = heaps.iter_mut().map(|heap| &mut heap.object);
        let mut all: Vec<&mut Object> = heaps.chain(objects.iter_mut().map(|object| &mut **object)).collect();
        psync_all(&mut all)
    }
}
