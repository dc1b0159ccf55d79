//! Making a heap durable: alone, beside threads that go on, together with other objects.

use super::error::HeapError;
use super::seats::find;
use super::writer::Heap;
use crate::error::Result;
use crate::object::{Object, psync_all};

impl Heap {
    /// This thread is going to store under a lock of the object.
    pub(crate) fn enter(&self) {
        self.gate.enter();
    }

    pub(crate) fn leave(&self) {
        self.gate.leave();
    }

    /// Makes everything stored since the last psync durable as one step: see [`Object::psync`].
    ///
    /// # Errors
    /// As for [`Object::psync`].
    pub fn psync(&mut self) -> Result<()> {
        self.note();
        self.note_data();
        self.object.psync()
    }

    /// Where stores have to be named, data used by type are not, except here: all of them.
    fn note_data(&self) {
        if self.object.is_named() && find(self.object.as_ptr().addr()).is_some() {
            self.object.note(0..self.object.len());
        }
    }

    /// As [`psync`](Heap::psync), while other threads go on: see [`Object::psync_cut`]. Each operation on
    /// the heap is in the cut as a whole, or not at all. A block that another thread got and did not link
    /// to anything yet may be in it.
    ///
    /// Waits until no thread has a lock of the [`collections`](crate::collections), and keeps them waiting: what is
    /// done under such a lock is in the cut as a whole, or not at all.
    ///
    /// # Errors
    /// As for [`Object::psync`]; `Busy` if the calling thread itself has such a lock.
    pub fn psync_cut(&self) -> Result<()> {
        self.note();
        self.note_data();
        let cut = self.gate.cut(|| self.raw.quiet(|| self.object.psync_cut()));
        cut.unwrap_or_else(|| Err(self.error("psync", HeapError::Inside)))
    }

    /// psync of several heaps, and of other objects of the pool, as one atomic step: see
    /// [`psync_all`](crate::psync_all).
    ///
    /// # Errors
    /// As for [`psync_all`](crate::psync_all).
    pub fn psync_all(heaps: &mut [&mut Heap], objects: &mut [&mut Object]) -> Result<()> {
        for heap in heaps.iter() {
            heap.note();
            heap.note_data();
        }
        let heaps = heaps.iter_mut().map(|heap| &mut heap.object);
        let mut all: Vec<&mut Object> = heaps.chain(objects.iter_mut().map(|object| &mut **object)).collect();
        psync_all(&mut all)
    }
}
