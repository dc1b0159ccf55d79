//! An object's content as last psynced, to be compared with.

use super::Store;
use super::attach::Writer;
use super::lock;
use super::twins::{PageImage, Twins};
use super::writer_lane::WriterLane;
use crate::error::Result;
use crate::format::PAGE;
use crate::medium::{Medium, MediumError};
use crate::sync::{Mutex, MutexGuard};
use crate::table::Located;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The primary of an object being psynced, with the pending lines in memory. Pages are counted from
/// the object's start.
pub struct Primary<'a> {
    medium: &'a dyn Medium,
    start: u64,
    twins: Option<MutexGuard<'a, Twins>>,
}

impl<'a> Primary<'a> {
    pub(super) fn new(medium: &'a dyn Medium, start: u64, twins: Option<&'a Mutex<Twins>>) -> Self {
        Primary { medium, start, twins: twins.map(lock) }
    }

    /// Offset of the object's first byte in the pool.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The page's copy in memory and its known lines, one bit each.
    #[must_use]
    pub fn twin(&self, page: u64) -> Option<(&PageImage, u64)> {
        self.twins.as_ref()?.get(self.start + page * PAGE)
    }

    /// Reads pages from `page` on from the medium, with the pending lines in memory.
    ///
    /// # Errors
    /// The medium's.
    pub fn read(&self, page: u64, images: &mut [PageImage]) -> Result<(), MediumError> {
        let offset = self.start + page * PAGE;
        self.medium.read(offset, images.as_mut_bytes())?;
        if let Some(twins) = &self.twins {
            twins.amend(offset, images.as_mut_bytes());
        }
        Ok(())
    }

    /// How many pages more can be kept, so that comparing them again reads nothing.
    #[must_use]
    pub fn room(&self) -> usize {
        self.twins.as_ref().map_or(0, |twins| twins.room())
    }

    /// How many pages are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.twins.as_ref().map_or(0, |twins| twins.len())
    }

    /// Keeps a page that was just read. Without room for it, does nothing.
    pub fn keep(&mut self, page: u64, bytes: Box<PageImage>) {
        if let Some(twins) = &mut self.twins {
            twins.keep(self.start + page * PAGE, bytes);
        }
    }
}

impl Store {
    /// Reads an object as last psynced. Lines pending in another process are not seen, but then that process
    /// has the object.
    ///
    /// # Errors
    /// The medium's.
    pub fn read_object(&self, object: &Located, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let at = object.entry.primary_offset() + offset;
        let waiting = self.lanes.all().into_iter().find_map(|lane| lane.twins(object.offset));
        let waiting = waiting.as_deref().map(lock);
        self.device.read(at, bytes)?;
        if let Some(twins) = waiting {
            twins.amend(at, bytes);
        }
        Ok(())
    }
}

/// The lines of an object that were psynced and that its primary does not have yet.
pub struct Pending {
    twins: Arc<Mutex<Twins>>,
    lane: Arc<WriterLane>,
}

impl Pending {
    /// Writes them to the primary, as [`Writer::apply`] does. A failure poisons the lane: the next psync says so.
    pub fn write_out(&self) {
        if lock(&self.twins).write_out(self.lane.medium()).is_err() {
            self.lane.poison();
        }
    }
}

impl Writer {
    /// The pending lines, for code that reads the primary by other means and cannot ask the writer. `None`: nothing is ever pending on this medium.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        let twins = self.twins.clone()?;
        Some(Pending { twins, lane: self.lane.clone() })
    }

    /// Brings pending lines into the primary, where every reader of the medium sees them; not durable
    /// there yet. Only code that reads the primary directly needs it.
    ///
    /// # Errors
    /// The medium's; the object is poisoned.
    pub fn apply(&self) -> Result<()> {
        self.with_twins(|twins, medium| Ok(twins.write_out(medium)?))
    }

    /// As [`apply`](Writer::apply), and keeps nothing in memory: the primary is about to change by itself.
    pub(super) fn dissolve_twins(&self) -> Result<()> {
        self.with_twins(|twins, medium| twins.dissolve(medium))
    }

    /// Sets how many pages are kept in memory at most so that comparing them reads nothing.
    pub fn set_kept_pages(&self, pages: usize) {
        if let Some(twins) = &self.twins {
            lock(twins).set_limit(pages);
        }
    }

    /// Pages kept in memory.
    #[must_use]
    pub fn kept_pages(&self) -> usize {
        self.twins.as_ref().map_or(0, |twins| lock(twins).len())
    }

    fn with_twins(&self, act: impl FnOnce(&mut Twins, &dyn Medium) -> Result<()>) -> Result<()> {
        let Some(twins) = &self.twins else { return Ok(()) };
        let done = act(&mut lock(twins), self.lane.medium());
        if done.is_err() {
            self.lane.poison();
        }
        done
    }
}

/// Twins for a new writer, if reading the medium takes system calls.
pub(super) fn twins_for(medium: &dyn Medium) -> Option<Arc<Mutex<Twins>>> {
    medium.prefers_group_commit().then(|| Arc::new(Mutex::new(Twins::new())))
}
