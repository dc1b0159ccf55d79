//! An object's content as last psynced, to be compared with.

use super::live::LivePages;
use super::sealed_pages::SealedPages;
use super::writer::Writer;
use crate::error::{Result, SealError, StoreError};
use crate::format::PAGE;
use crate::format::entry::FLAG_OVERLAY;
use crate::medium::Medium;
use crate::store::lanes::{Changing, PageCache, PageImage, WriterLane};
use crate::store::locks::lock;
use crate::store::pool::Store;
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Layers, Located, read_pages};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The primary of an object being psynced, with the pending lines in memory. Pages are counted from
/// the object's start.
pub struct Primary<'a> {
    medium: &'a dyn Medium,
    object: &'a Located,
    start: u64,
    page_cache: Option<MutexGuard<'a, PageCache>>,
    /// Locked for each read alone: a comparison touches pages of the shadow, which a thread may
    /// have to fill by these layers.
    layers: Option<&'a Mutex<Layers>>,
    /// Its plaintext, which is not kept in memory, if it is sealed.
    sealed: Option<&'a SealedPages>,
}

impl Writer {
    /// Its primary, with the pending lines in memory.
    pub(super) fn primary(&self) -> Primary<'_> {
        Primary {
            medium: &*self.store.device,
            object: &self.object,
            start: self.object.entry.primary_offset(),
            page_cache: self.page_cache.as_deref().filter(|_| self.sealed.is_none()).map(lock),
            sealed: self.sealed.as_deref(),
            layers: self.based.then_some(&*self.layers),
        }
    }

    /// Lets `look` read the object as last psynced. Upkeep may have moved its bases since its last
    /// psync; none does meanwhile.
    ///
    /// # Errors
    /// `HeldStill`; those of the table and of `look`.
    pub fn look<R, E: From<StoreError>>(
        &mut self,
        look: impl FnOnce(&Primary<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let _changing = self.change()?;
        look(&self.primary())
    }

    /// Reads bytes of the object from `offset` on, without the pending lines.
    pub(super) fn read_primary(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(lock(&self.layers).read(&*self.store.device, offset, bytes)?)
    }

    /// Its pages, for its memory.
    #[must_use]
    pub fn pages(&self) -> LivePages {
        let (store, lane) = (self.store.clone(), self.pages_lane.clone());
        LivePages { store, lane, entry: self.object.offset, layers: self.layers.clone() }
    }

    /// Whether pages of the object may be a base's.
    #[must_use]
    pub fn has_base(&self) -> bool {
        self.based
    }
}

impl Primary<'_> {
    /// Offset of the object's first byte in the pool.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether its pages are encrypted, each as a whole.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The page's copy in memory and its known lines, one bit each.
    #[must_use]
    pub fn cached(&self, page: u64) -> Option<(&PageImage, u64)> {
        self.page_cache.as_ref()?.get(self.start + page * PAGE)
    }

    /// Reads pages from `page` on from the medium, with the pending lines in memory.
    ///
    /// # Errors
    /// The medium's; `Broken` of a sealed object.
    pub fn read(&self, page: u64, images: &mut [PageImage]) -> Result<()> {
        if let Some(sealed) = self.sealed {
            return sealed.read_all(page, images.as_mut_bytes());
        }
        let offset = self.start + page * PAGE;
        let bytes = images.as_mut_bytes();
        let layers = self.layers.map(lock);
        read_pages(self.medium, self.object, layers.as_deref(), page * PAGE, bytes)?;
        if let Some(page_cache) = &self.page_cache {
            page_cache.amend(offset, images.as_mut_bytes());
        }
        Ok(())
    }

    /// Overwrites pages that were read, if they are plaintext of a sealed object: before their
    /// memory is given up.
    pub fn wipe(&self, images: &mut [PageImage]) {
        if self.sealed.is_some() {
            images.as_mut_bytes().fill(0);
            std::hint::black_box(images);
        }
    }

    /// How many pages more can be kept, so that comparing them again reads nothing.
    #[must_use]
    pub fn room(&self) -> usize {
        self.page_cache.as_ref().map_or(0, |page_cache| page_cache.room())
    }

    /// How many pages are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.page_cache.as_ref().map_or(0, |page_cache| page_cache.len())
    }

    /// Keeps a page that was just read. Without room for it, does nothing.
    pub fn keep(&mut self, page: u64, bytes: Box<PageImage>) {
        if let Some(page_cache) = &mut self.page_cache {
            page_cache.keep(self.start + page * PAGE, bytes);
        }
    }
}

impl Store {
    /// Reads an object as last psynced. Lines pending in another process are not seen, but then
    /// that process has the object.
    ///
    /// # Errors
    /// The medium's. `KeyNeeded` of a sealed object.
    pub fn read_object(&self, object: &Located, offset: u64, bytes: &mut [u8]) -> Result<()> {
        if object.is_sealed() {
            return Err(SealError::KeyNeeded.into());
        }
        let at = object.entry.primary_offset() + offset;
        let waiting = self.lane_locks.all().into_iter().find_map(|lane| lane.page_cache(object.offset));
        let waiting = waiting.as_deref().map(lock);
        let layers = self.layers_of(object, waiting.as_deref())?;
        read_pages(&*self.device, object, layers.as_ref(), offset, bytes)?;
        if let Some(page_cache) = waiting {
            page_cache.amend(at, bytes);
        }
        Ok(())
    }

    /// The layers of an object; lines of its bitmap may wait in memory as those of its pages do.
    fn layers_of(&self, object: &Located, waiting: Option<&PageCache>) -> Result<Option<Layers>> {
        if !object.entry.has(FLAG_OVERLAY) {
            return Ok(None);
        }
        self.view(|table| match waiting {
            Some(page_cache) => table.layers_with(object, &|at, bytes| page_cache.amend(at, bytes)),
            None => table.layers(object),
        })
    }
}

/// The lines of an object that were psynced and that its primary does not have yet.
pub struct Pending {
    page_cache: Arc<Mutex<PageCache>>,
    lane: Arc<WriterLane>,
}

impl Pending {
    /// Writes them to the primary, as [`Writer::apply`] does. A failure poisons the lane: the next
    /// psync reports it.
    pub fn write_out(&self) {
        let written = self.lane.change().and_then(|_changing| {
            lock(&self.page_cache).write_out(self.lane.medium())?;
            Ok(())
        });
        if written.is_err() {
            self.lane.poison();
        }
    }
}

impl Writer {
    /// The pending lines, for code that reads the primary by other means and cannot ask the writer.
    /// `None`: nothing is ever pending on this medium.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        let page_cache = self.page_cache.clone()?;
        Some(Pending { page_cache, lane: self.lane.clone() })
    }

    /// Brings pending lines into the primary, where every reader of the medium sees them; not
    /// durable there yet. Only code that reads the primary directly needs it.
    ///
    /// # Errors
    /// `HeldStill`: nothing happened. The medium's; the object is poisoned.
    pub fn apply(&self) -> Result<()> {
        if self.page_cache.is_none() {
            return Ok(());
        }
        self.apply_within(&self.lane.change()?)
    }

    /// As [`apply`](Writer::apply), as a part of a larger change.
    pub(super) fn apply_within(&self, changing: &Changing) -> Result<()> {
        self.with_page_cache(changing, |page_cache, medium| Ok(page_cache.write_out(medium)?))
    }

    /// As [`apply_within`](Writer::apply_within), and keeps nothing in memory: the primary is about
    /// to change by itself.
    pub(super) fn dissolve_page_cache(&self, changing: &Changing) -> Result<()> {
        self.with_page_cache(changing, |page_cache, medium| page_cache.dissolve(medium))
    }

    /// Sets how many pages are kept in memory at most so that comparing them reads nothing.
    pub fn set_cached_pages(&self, pages: usize) {
        if let Some(page_cache) = &self.page_cache {
            lock(page_cache).set_limit(pages);
        }
    }

    /// Pages kept in memory.
    #[must_use]
    pub fn cached_pages(&self) -> usize {
        self.page_cache.as_ref().map_or(0, |page_cache| lock(page_cache).len())
    }

    fn with_page_cache(
        &self,
        _changing: &Changing,
        act: impl FnOnce(&mut PageCache, &dyn Medium) -> Result<()>,
    ) -> Result<()> {
        let Some(page_cache) = &self.page_cache else { return Ok(()) };
        let done = act(&mut lock(page_cache), self.lane.medium());
        if done.is_err() {
            self.lane.poison();
        }
        done
    }
}
