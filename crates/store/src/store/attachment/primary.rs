//! An object's content as last psynced, for comparisons.

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

/// The primary under the pending lines. Pages count from the object's start.
pub struct Primary<'a> {
    medium: &'a dyn Medium,
    object: &'a Located,
    start: u64,
    page_cache: Option<MutexGuard<'a, PageCache>>,
    /// Locked per read.
    layers: Option<&'a Mutex<Layers>>,
    sealed: Option<&'a SealedPages>,
}

impl Writer {
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

    /// Lets `look` read the object as last psynced. Upkeep may have moved its bases before, and
    /// does not meanwhile.
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

    pub(super) fn read_primary(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(lock(&self.layers).read(&*self.store.device, offset, bytes)?)
    }

    /// Pages for the object's memory.
    #[must_use]
    pub fn pages(&self) -> LivePages {
        let (store, lane) = (self.store.clone(), self.pages_lane.clone());
        LivePages { store, lane, entry: self.object.offset, layers: self.layers.clone() }
    }

    /// Whether the object has a base.
    #[must_use]
    pub fn has_base(&self) -> bool {
        self.based
    }
}

impl Primary<'_> {
    /// Offset of the object in the pool.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether its pages are encrypted.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The cached page and its known lines (bits).
    #[must_use]
    pub fn cached(&self, page: u64) -> Option<(&PageImage, u64)> {
        self.page_cache.as_ref()?.get(self.start + page * PAGE)
    }

    /// Reads pages from `page` on, with pending lines.
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

    /// Overwrites read plaintext of a sealed object, before its memory is freed.
    pub fn wipe(&self, images: &mut [PageImage]) {
        if self.sealed.is_some() {
            images.as_mut_bytes().fill(0);
            std::hint::black_box(images);
        }
    }

    /// Pages that can still be cached.
    #[must_use]
    pub fn room(&self) -> usize {
        self.page_cache.as_ref().map_or(0, |page_cache| page_cache.room())
    }

    /// Cached pages.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.page_cache.as_ref().map_or(0, |page_cache| page_cache.len())
    }

    /// Caches a page just read, if there is room.
    pub fn keep(&mut self, page: u64, bytes: Box<PageImage>) {
        if let Some(page_cache) = &mut self.page_cache {
            page_cache.keep(self.start + page * PAGE, bytes);
        }
    }
}

impl Store {
    /// Reads an object as last psynced, without another process's pending lines.
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

/// An object's psynced lines that its primary lacks.
pub struct Pending {
    page_cache: Arc<Mutex<PageCache>>,
    lane: Arc<WriterLane>,
}

impl Pending {
    /// Writes them to the primary, as [`Writer::apply`] does. A failure poisons the lane.
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
    /// The pending lines, for readers of the primary; `None`: this medium has none.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        let page_cache = self.page_cache.clone()?;
        Some(Pending { page_cache, lane: self.lane.clone() })
    }

    /// Writes pending lines to the primary, not durably, for its readers.
    ///
    /// # Errors
    /// `HeldStill`: nothing happened. The medium's; the object is poisoned.
    pub fn apply(&self) -> Result<()> {
        if self.page_cache.is_none() {
            return Ok(());
        }
        self.apply_within(&self.lane.change()?)
    }

    pub(super) fn apply_within(&self, changing: &Changing) -> Result<()> {
        self.with_page_cache(changing, |page_cache, medium| Ok(page_cache.write_out(medium)?))
    }

    /// Writes pending lines and empties the cache: the primary changes.
    pub(super) fn dissolve_page_cache(&self, changing: &Changing) -> Result<()> {
        self.with_page_cache(changing, |page_cache, medium| page_cache.dissolve(medium))
    }

    /// Limits the cached pages.
    pub fn set_cached_pages(&self, pages: usize) {
        if let Some(page_cache) = &self.page_cache {
            lock(page_cache).set_limit(pages);
        }
    }

    /// Cached pages.
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
