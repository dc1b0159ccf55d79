#![allow(unsafe_code)]

use super::error::HeapError;
use super::raw::RawHeap;
use super::trusted::Trusted;
use super::writer::{Heap, extent};
use crate::error::Result;

impl Heap {
    /// Undoes all stores since the last psync, with allocations and roots. See
    /// [`Object::revert`](crate::Object::revert).
    ///
    /// References into the heap end before:
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::PVec;
    ///
    /// heap.root_or_default::<PVec<u64>>("list")?.extend([1, 2, 3]);
    /// heap.psync()?;
    /// heap.root_mut::<PVec<u64>>("list")?.retain(|number| *number == 2);
    /// heap.revert()?;
    /// assert_eq!(heap.root_mut::<PVec<u64>>("list")?[..], [1, 2, 3]);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0499
    /// # use indelible::collections::PVec;
    /// # fn example(heap: &mut indelible::Heap) -> indelible::Result<()> {
    /// let list = heap.root_mut::<PVec<PVec<u64>>>("list")?;
    /// let taken = list.pop();
    /// heap.revert()?; // error: `taken` would be in the list again
    /// drop(taken);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Object::revert`](crate::Object::revert): nothing was undone. If the object was no
    /// heap at its last psync, as for [`open`](Heap::open); then nothing can be used by type any
    /// more.
    pub fn revert(&mut self) -> Result<()> {
        self.object.revert()?;
        self.root_cache.forget(|| ());
        match self.reopened() {
            Ok(raw) => {
                self.raw = raw;
                self.trusted = Trusted::new(!self.object.is_foreign());
                Ok(())
            }
            Err(error) => {
                self.object.lend_bytes();
                self.trusted = Trusted::new(false);
                Err(self.error("revert the heap of", error))
            }
        }
    }

    fn reopened(&self) -> Result<RawHeap, HeapError> {
        let (extent, options) = (extent(&self.object), self.raw.options());
        // SAFETY: as for `open_with`: no other thread has `self`, and the one before is not used
        // again.
        match unsafe { RawHeap::open(&extent, options) } {
            // SAFETY: as above.
            Err(HeapError::NotAHeap) => unsafe { RawHeap::format(&extent, options) },
            opened => opened,
        }
    }
}
