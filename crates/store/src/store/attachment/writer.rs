//! An object attached for writing.

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

/// An object attached for writing; dropping it detaches, and forgets stores that were not psynced.
pub struct Writer {
    pub(super) store: Arc<Store>,
    pub(super) lane: Arc<WriterLane>,
    /// The same, for readers of the object's pages.
    pub(super) pages_lane: SharedLane,
    /// `None` before the binding is published, and once the attachment has ended.
    pub(super) object_lock: Option<ObjectLock>,
    pub(super) object: Located,
    pub(super) standing: Standing,
    pub(super) direct: Direct,
    /// Whether the primary may hold bytes that are not durable in place.
    pub(super) unsettled: bool,
    /// A batch for the next psync, for reuse of its memory.
    pub(super) scratch: Option<Box<Batch>>,
    /// Pages kept in memory, where comparing with the medium is slow.
    pub(super) page_cache: Option<Arc<Mutex<PageCache>>>,
    /// Its own extent and those of its bases.
    pub(super) layers: SharedLayers,
    /// Whether pages of it may be a base's.
    pub(super) based: bool,
    /// The lane's revision when the entry was last read.
    pub(super) revision: u64,
    /// The extents that memory of this process may be mapped from since the object moved.
    pub(super) former: Vec<Former>,
    /// Pieces of a sparse object known to have space, one bit each.
    pub(super) backed: Vec<u64>,
    /// Its pages, if it is sealed.
    pub(super) sealed: Option<Arc<SealedPages>>,
    /// A change of its header that the next psync makes, if it is sealed.
    pub(super) heading: Option<Heading>,
    pub(super) recovered: Recovered,
    /// Whether the pool has all commits that were in memory alone, as the detach is to say.
    pub(super) forgets_memory: bool,
}

impl Writer {
    /// The object, as of now.
    #[must_use]
    pub fn object(&self) -> &Located {
        &self.object
    }

    /// The store the object is in.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Result of the recovery that the attach made.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Begins a change, with the object as the table has it: a hold of the lane may have made its
    /// extent a base.
    ///
    /// # Errors
    /// `HeldStill`; those of the table: nothing happened.
    pub(super) fn change(&mut self) -> Result<Changing> {
        let changing = self.lane.change()?;
        self.see(&changing)?;
        Ok(changing)
    }

    /// The object as the table has it, if the lane was revised since it was last read.
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

    /// The object rests on these layers from now on; `None`: all of its pages are its own.
    pub(super) fn take_layers(&mut self, layers: Option<Layers>) {
        self.based = layers.is_some();
        let layers = layers.unwrap_or_else(|| Layers::alone(&self.object));
        *lock(&self.layers) = layers.in_revision(self.revision);
    }

    /// The layers are as of this revision of the lane, from which the object's pages are read from
    /// now on.
    pub(super) fn read_on(&self, lane: &Arc<WriterLane>, revision: u64) {
        if Mutant::PagesLaneKept.is_on() {
            return;
        }
        let mut layers = lock(&self.layers);
        *lock(&self.pages_lane) = lane.clone();
        layers.set_revision(revision);
    }
}
