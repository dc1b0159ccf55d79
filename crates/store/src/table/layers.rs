//! The layers of an object whose pages may be its base's: its own extent, its base's, the base's base's, and so on.
//!
//! Invariants:
//! 1. A page belongs to the uppermost layer that has it: a layer has the pages that its bitmap says, and those behind the
//!    ones that it takes from its base; the lowest layer has all.
//! 2. Pages of a layer below the uppermost never change, and neither do their bitmaps.
//! 3. A page that the uppermost layer has is whole there: it was logged whole with the batch that set its bit
//!    (`store/attachment/cover.rs`).

use super::{Bitmap, Located, Writes};
use crate::error::{Part, Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{Entry, FLAG_BASE, FLAG_OVERLAY};
use crate::medium::{Medium, MediumError};
use crate::space::TableTransaction;
use crate::sync::Mutex;
use std::sync::Arc;

/// Most layers: a longer chain is one that leads back to itself.
const MOST: usize = 1 << 16;

struct Layer {
    /// Offset of its extent in the pool, in bytes.
    start: u64,
    /// Pages from the first on that may be those of the layer below.
    based: u64,
    own: Bitmap,
}

impl Layer {
    fn has(&self, page: u64) -> bool {
        page >= self.based || self.own.has(page)
    }
}

/// The layers of an attached object, as its psyncs change them.
pub type SharedLayers = Arc<Mutex<Layers>>;

/// See the module.
pub struct Layers {
    top: Layer,
    below: Vec<Layer>,
}

impl Layers {
    /// Those of an object whose pages are all its own.
    #[must_use]
    pub fn alone(object: &Located) -> Self {
        let top = Layer { start: object.entry.primary_offset(), based: 0, own: Bitmap::default() };
        Layers { top, below: Vec::new() }
    }

    /// Whether the page is the object's own.
    #[must_use]
    pub fn owns(&self, page: u64) -> bool {
        self.top.has(page)
    }

    /// The object's own pages before page `to`, ascending.
    pub fn own_pages(&self, to: u64) -> impl Iterator<Item = u64> {
        let based = self.top.based.min(to);
        self.top.own.own().take_while(move |page| *page < based).chain(based..to)
    }

    /// The page is the object's own from now on.
    pub fn claim(&mut self, page: u64) {
        if page < self.top.based {
            self.top.own.claim(page);
        }
    }

    /// What has to be written to make pages the object's own: see [`Bitmap::claiming`].
    pub(crate) fn claiming(&self, pages: impl IntoIterator<Item = u64>) -> (Writes, Writes) {
        self.top.own.claiming(pages)
    }

    /// Offset of the page in the pool, in bytes, as its last psync left it.
    #[must_use]
    pub fn home(&self, page: u64) -> u64 {
        let below = || self.below.iter().find(|layer| layer.has(page));
        let layer = if self.top.has(page) { &self.top } else { below().unwrap_or(&self.top) };
        layer.start + page * PAGE
    }

    /// Reads bytes of the object from `offset` on.
    ///
    /// # Errors
    /// The medium's.
    pub fn read(&self, medium: &dyn Medium, offset: u64, bytes: &mut [u8]) -> Result<(), MediumError> {
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            // As many bytes as lie in one piece.
            let home = self.home(at / PAGE);
            let mut to = (at / PAGE + 1) * PAGE;
            while to < end && self.home(to / PAGE) == home + (to - at / PAGE * PAGE) {
                to += PAGE;
            }
            let piece = (at - offset) as usize..(to.min(end) - offset) as usize;
            medium.read(home + at % PAGE, &mut bytes[piece])?;
            at = to;
        }
        Ok(())
    }
}

/// Reads bytes of an object with these layers, `None`: all of its pages are its own, from `offset` on.
///
/// # Errors
/// The medium's.
pub fn read_pages(
    medium: &dyn Medium,
    object: &Located,
    layers: Option<&Layers>,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), MediumError> {
    match layers {
        Some(layers) => layers.read(medium, offset, bytes),
        None => medium.read(object.entry.primary_offset() + offset, bytes),
    }
}

impl TableTransaction<'_> {
    /// Reads bytes of an object that nobody changes, from `offset` on.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn read_object(&self, object: &Located, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let layers = self.layers(object)?;
        Ok(read_pages(self.pages().medium(), object, layers.as_ref(), offset, bytes)?)
    }

    /// The layers of an object; `None` if all of its pages are its own. Costs what counts of the bitmaps.
    ///
    /// # Errors
    /// A base is damaged, or is none. The medium's.
    pub fn layers(&self, object: &Located) -> Result<Option<Layers>> {
        self.layers_with(object, &|_, _| {})
    }

    /// The uppermost layer and `below` more, for pages that one of these has: a chain may be long, and each layer is read.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn upper_layers(&self, object: &Located, below: usize) -> Result<Layers> {
        let mut layers = Layers { top: self.layer(&object.entry, &|_, _| {})?, below: Vec::new() };
        let mut upper = *object;
        while upper.entry.has(FLAG_OVERLAY) && layers.below.len() < below {
            upper = self.base(&upper)?;
            layers.below.push(self.layer(&upper.entry, &|_, _| {})?);
        }
        Ok(layers)
    }

    /// As [`layers`](Self::layers), with lines of the object's bitmap that are not in the pool yet: `amend(offset, bytes)` lays them over what was read.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn layers_with(&self, object: &Located, amend: &dyn Fn(u64, &mut [u8])) -> Result<Option<Layers>> {
        if !object.entry.has(FLAG_OVERLAY) {
            return Ok(None);
        }
        let top = self.layer(&object.entry, amend)?;
        let mut below = Vec::new();
        let mut upper = *object;
        while upper.entry.has(FLAG_OVERLAY) {
            let base = self.base(&upper)?;
            if below.len() == MOST {
                return Err(StoreError::damaged(Part::Entry, base.offset));
            }
            below.push(self.layer(&base.entry, &|_, _| {})?);
            upper = base;
        }
        Ok(Some(Layers { top, below }))
    }

    fn layer(&self, entry: &Entry, amend: &dyn Fn(u64, &mut [u8])) -> Result<Layer> {
        let medium = self.pages().medium();
        let start = entry.primary_offset();
        if !entry.has(FLAG_OVERLAY) {
            return Ok(Layer { start, based: 0, own: Bitmap::default() });
        }
        let own = Bitmap::read(entry, |offset, bytes| {
            medium.read(offset, bytes)?;
            amend(offset, bytes);
            Ok::<(), MediumError>(())
        })?;
        Ok(Layer { start, based: entry.based.get(), own })
    }

    /// Bytes of the pages that the object has in the pool itself, not from its base. Costs what counts of its bitmap.
    ///
    /// # Errors
    /// The medium's.
    pub fn own_bytes(&self, object: &Located) -> Result<u64> {
        if !object.entry.has(FLAG_OVERLAY) {
            return Ok(object.entry.extent_len());
        }
        let Layer { based, own, .. } = self.layer(&object.entry, &|_, _| {})?;
        // Bits behind the last page that may be the base's say nothing.
        let marked = own.own().take_while(|page| *page < based).count() as u64;
        Ok((object.entry.pages.get() - based + marked) * PAGE)
    }

    /// The base of an object that has one.
    ///
    /// # Errors
    /// It is damaged, or no base of this object.
    pub fn base(&self, object: &Located) -> Result<Located> {
        let base = self.entry(object.entry.base.get())?;
        if base.entry.has(FLAG_BASE) && object.entry.based.get() <= base.entry.pages.get() {
            Ok(base)
        } else {
            Err(StoreError::damaged(Part::Entry, object.offset))
        }
    }
}
