//! Pages of an object for the memory of the process that writes it, which may touch one at any time.
//!
//! Somebody may merge or absorb bases of the object meanwhile, and give extents back in which this process believes pages. The lane's revision
//! rises before that is published: bytes count that were read while it stayed the one that the layers were read in. If the object moves to another lane
//! of the process, whose revisions are other numbers, the layers count as read in that one's from then on.

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

    /// Whether somebody has moved what the object rests on since revision `seen`, so that what was read by the layers may be of no account. They are
    /// the newest ones then.
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

    /// Takes the layers that the table has now, unless a psync has done so, which may have added pages since.
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
            // A move to another lane that failed, and that others see all the same: they revise that one.
            return Err(StoreError::Poisoned);
        }
        if layers.revision() != changing.revision() {
            *layers = newer.in_revision(changing.revision());
        }
        Ok(())
    }
}
