//! An object's pages, for the writing process's memory, which may touch them at any time.
//!
//! Upkeep in any process may move the object's bases meanwhile, after raising the lane's revision:
//! bytes count if that is unchanged.

use crate::error::{Result, StoreError};
use crate::store::lanes::WriterLane;
use crate::store::locks::lock;
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Layers, SharedLayers};
use std::sync::Arc;

pub(super) type SharedLane = Arc<Mutex<Arc<WriterLane>>>;

/// Pages for the memory of a writer.
#[derive(Clone)]
pub struct LivePages {
    pub(super) store: Arc<Store>,
    pub(super) lane: SharedLane,
    pub(super) entry: u64,
    pub(super) layers: SharedLayers,
}

impl LivePages {
    pub(super) fn revision(&self) -> u64 {
        lock(&self.layers).revision()
    }

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

    /// Reads the object as last psynced, in place.
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
            // The other lane may be revised.
            return Err(StoreError::Poisoned);
        }
        if layers.revision() != changing.revision() {
            *layers = newer.in_revision(changing.revision());
        }
        Ok(())
    }
}
