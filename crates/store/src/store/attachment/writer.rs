use super::former::Former;
use super::live::SharedLane;
use super::sealed_pages::{Heading, SealedPages};
use super::written::Direct;
use crate::error::Result;
use crate::lane::Batch;
use crate::mutant::Mutant;
use crate::recovery::{Recovered, Standing};
use crate::store::lanes::{Changing, PageCache, WriterLane};
use crate::store::locks::{ObjectLock, lock};
use crate::store::pool::Store;
use crate::sync::Mutex;
use crate::table::{Layers, Located, SharedLayers};
use std::sync::Arc;

/// An object attached for writing; dropping it detaches, without stores that were not psynced.
pub struct Writer {
    pub(super) store: Arc<Store>,
    pub(super) lane: Arc<WriterLane>,
    pub(super) pages_lane: SharedLane,
    pub(super) object_lock: Option<ObjectLock>,
    pub(super) object: Located,
    pub(super) standing: Standing,
    pub(super) direct: Direct,
    pub(super) unsettled: bool,
    /// Reused.
    pub(super) scratch: Option<Box<Batch>>,
    pub(super) page_cache: Option<Arc<Mutex<PageCache>>>,
    pub(super) layers: SharedLayers,
    pub(super) based: bool,
    pub(super) revision: u64,
    pub(super) former: Vec<Former>,
    /// Pieces with space (bits).
    pub(super) backed: Vec<u64>,
    pub(super) sealed: Option<Arc<SealedPages>>,
    pub(super) heading: Option<Heading>,
    pub(super) recovered: Recovered,
    /// Whether the pool has all commits at the detach.
    pub(super) forgets_memory: bool,
}

impl Writer {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Located {
        &self.object
    }

    /// The object's store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Result of the attach's recovery.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    pub(super) fn change(&mut self) -> Result<Changing> {
        let changing = self.lane.change()?;
        self.see(&changing)?;
        Ok(changing)
    }

    #[inline]
    pub(super) fn see(&mut self, changing: &Changing) -> Result<()> {
        if changing.revision() == self.revision {
            return Ok(());
        }
        self.look_again(changing)
    }

    #[cold]
    fn look_again(&mut self, changing: &Changing) -> Result<()> {
        let (object, layers) = self.store.view(|table| {
            let object = table.entry(self.object.offset)?;
            let layers = table.layers(&object)?;
            Ok((object, layers))
        })?;
        if object.entry.primary != self.object.entry.primary {
            if let Some(page_cache) = &self.page_cache {
                lock(page_cache).forget();
            }
            self.backed.clear();
        }
        self.object = object;
        self.size_as_sealed();
        self.revision = changing.revision();
        self.take_layers(layers);
        Ok(())
    }

    pub(super) fn take_layers(&mut self, layers: Option<Layers>) {
        self.based = layers.is_some();
        let layers = layers.unwrap_or_else(|| Layers::alone(&self.object));
        *lock(&self.layers) = layers.in_revision(self.revision);
    }

    /// Pages are read at this lane's revision.
    pub(super) fn read_on(&self, lane: &Arc<WriterLane>, revision: u64) {
        if Mutant::PagesLaneKept.is_on() {
            return;
        }
        let mut layers = lock(&self.layers);
        *lock(&self.pages_lane) = lane.clone();
        layers.set_revision(revision);
    }
}
