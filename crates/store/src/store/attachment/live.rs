//! Pages of an object for the memory of the process that writes it, which may touch one at any
//! time.
//!
//! Upkeep in any process may merge or absorb bases of the object meanwhile, and free extents in
//! which this process believes pages. It raises the lane's revision before that is published: bytes
//! count if the revision is still the one of the layers that were read. If the object moves to
//! another lane of the process, whose revisions are other numbers, the layers count as read in that
//! one's from then on.

use crate::error::{Result, StoreError};
use crate::store::lanes::WriterLane;
use crate::store::locks::lock;
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Layers, SharedLayers};
use std::sync::Arc;

/// The lane of an object whose pages are read meanwhile.
pub(super) type SharedLane = Arc<Mutex<Arc<WriterLane>>>;

/// See the module.
#[derive(Clone)]
pub struct LivePages {
    pub(super) store: Arc<Store>,
    pub(super) lane: SharedLane,
    /// Offset of the object's entry.
    pub(super) entry: u64,
    pub(super) layers: SharedLayers,
}

impl LivePages {
    /// The revision of the lane in which the layers were read.
    pub(super) fn revision(&self) -> u64 {
        lock(&self.layers).revision()
    }

    /// Whether the object's bases were moved since revision `seen`, so that bytes read by the
    /// layers may be stale. The layers are then the newest ones.
    ///
    /// # Errors
    /// As for [`read`](LivePages::read).
    pub(super) fn has_moved(&self, seen: u64) -> Result<bool> {
        let lane = lock(&self.lane).clone();
        if self.revision() != seen || !Arc::ptr_eq(&lane, &lock(&self.lane)) {
            return Ok(true);
        }
        let moved = lane.newest_revision()? != seen;
        if moved {
            self.look_again()?;
        }
        Ok(moved)
    }

    /// Reads bytes of the object from `offset` on, as its last psync left them in place.
    ///
    /// # Errors
    /// Those of the medium and the table; `HeldStill`: not within [`patience`](Store::patience).
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        loop {
            let lane = lock(&self.lane).clone();
            let seen = {
                let layers = lock(&self.layers);
                let seen = layers.revision();
                if lane.newest_revision()? == seen {
                    layers.read(&*self.store.device, offset, bytes)?;
                }
                seen
            };
            if lane.newest_revision()? == seen && Arc::ptr_eq(&lane, &lock(&self.lane)) {
                return Ok(());
            }
            self.look_again()?;
        }
    }

    /// Takes the layers that the table has now, unless a psync has done so, which may have added
    /// pages since.
    #[cold]
    fn look_again(&self) -> Result<()> {
        let lane = lock(&self.lane).clone();
        let changing = lane.change()?;
        let (newer, on) = self.store.view(|table| {
            let object = table.entry(self.entry)?;
            let newer = table.layers(&object)?.unwrap_or_else(|| Layers::alone(&object));
            Ok((newer, object.entry.lane.get()))
        })?;
        let mut layers = lock(&self.layers);
        if !Arc::ptr_eq(&lane, &lock(&self.lane)) {
            return Ok(());
        }
        if on != lane.index && lane.medium().is_over() {
            // A move to another lane that failed, and that others see all the same: they revise
            // that one.
            return Err(StoreError::Poisoned);
        }
        if layers.revision() != changing.revision() {
            *layers = newer.in_revision(changing.revision());
        }
        Ok(())
    }
}
