//! The layers of an object whose pages may be its base's: its own extent, its base's, the base's
//! base's, and so on.
//!
//! Invariants:
//! 1. A page belongs to the uppermost layer that has it: a layer has the pages that its bitmap
//!    says, and those behind the ones that it takes from its base; the lowest layer has all.
//! 2. Pages of a layer below the uppermost never change, and neither do their bitmaps.
//! 3. A page that the uppermost layer has is whole there: with the batch that set its bit, or
//!    durably before it (`store/attachment/cover.rs`).

use super::{Bitmap, Located, Writes};
use crate::error::{Part, Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{Entry, FLAG_BASE, FLAG_OVERLAY, FLAG_SPARSE};
use crate::medium::{Medium, MediumError};
use crate::space::TableTransaction;
use crate::sync::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// Most layers: a longer chain is one that leads back to itself.
const MOST: usize = 1 << 16;

struct Layer {
    /// Offset of its extent in the pool, in bytes.
    start: u64,
    /// Pages from the first on that may be those of the layer below.
    based: u64,
    own: Bitmap,
    /// Whether space is claimed by first writes.
    sparse: bool,
}

/// The lowest base of an object, and the layers above it.
pub struct Lowest {
    /// Offset of its extent in the pool, in bytes.
    pub start: u64,
    /// Whether space is claimed by first writes to it.
    pub sparse: bool,
    /// The object's pages that are not those of this base, in runs.
    pub others: Vec<Range<u64>>,
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
    revision: u64,
}

impl Layers {
    /// Those of an object whose pages are all its own.
    #[must_use]
    pub fn alone(object: &Located) -> Self {
        let top = Layer {
            start: object.entry.primary_offset(),
            based: 0,
            own: Bitmap::default(),
            sparse: object.entry.has(FLAG_SPARSE),
        };
        Layers { top, below: Vec::new(), revision: 0 }
    }

    /// The same, read in this revision of the lane of the process that writes the object.
    #[must_use]
    pub fn in_revision(self, revision: u64) -> Self {
        Layers { revision, ..self }
    }

    /// They count as read in this revision of the lane.
    pub fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// The revision of the lane in which they were read; 0 if none was given.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
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

    /// The same, in runs.
    #[must_use]
    pub fn own_runs(&self, to: u64) -> Vec<Range<u64>> {
        runs(self.own_pages(to))
    }

    /// The lowest base, and the layers that cover the object's first pages. `None` if there is
    /// none, or the object has grown beyond a base since. Costs the pages that cover it.
    #[must_use]
    pub fn over_lowest(&self, pages: u64) -> Option<Lowest> {
        let (lowest, between) = self.below.split_last()?;
        let upper = || std::iter::once(&self.top).chain(between);
        if upper().any(|layer| layer.based < pages) {
            return None;
        }
        let covering = upper().flat_map(|layer| layer.own.own().take_while(|page| *page < pages));
        let mut covering: Vec<u64> = covering.collect();
        covering.sort_unstable();
        covering.dedup();
        Some(Lowest { start: lowest.start, sparse: lowest.sparse, others: runs(covering) })
    }

    /// The page is the object's own from now on.
    pub fn claim(&mut self, page: u64) {
        if page < self.top.based {
            self.top.own.claim(page);
        }
    }

    /// The bytes to be written to make pages the object's own: see [`Bitmap::claiming`].
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

/// Ascending pages, in runs.
fn runs(pages: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += 1,
            _ => runs.push(page..page + 1),
        }
    }
    runs
}

/// Reads bytes of an object with these layers, `None`: all of its pages are its own, from `offset`
/// on.
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
    /// Reads bytes of an unchanging object, from `offset` on.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn read_object(&self, object: &Located, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let layers = self.layers(object)?;
        Ok(read_pages(self.pages().medium(), object, layers.as_ref(), offset, bytes)?)
    }

    /// The layers of an object; `None` if all of its pages are its own. Costs what counts of the
    /// bitmaps.
    ///
    /// # Errors
    /// A base is damaged, or is none. The medium's.
    pub fn layers(&self, object: &Located) -> Result<Option<Layers>> {
        self.layers_with(object, &|_, _| {})
    }

    /// The uppermost layer and `below` more, for pages that one of these has: a chain may be long,
    /// and each layer is read.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn upper_layers(&self, object: &Located, below: usize) -> Result<Layers> {
        let top = self.layer(&object.entry, &|_, _| {})?;
        let mut layers = Layers { top, below: Vec::new(), revision: 0 };
        let mut upper = *object;
        while upper.entry.has(FLAG_OVERLAY) && layers.below.len() < below {
            upper = self.base(&upper)?;
            layers.below.push(self.layer(&upper.entry, &|_, _| {})?);
        }
        Ok(layers)
    }

    /// As [`layers`](Self::layers), with lines of the object's bitmap that are not in the pool yet:
    /// `amend(offset, bytes)` lays them over the bytes read.
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
        Ok(Some(Layers { top, below, revision: 0 }))
    }

    fn layer(&self, entry: &Entry, amend: &dyn Fn(u64, &mut [u8])) -> Result<Layer> {
        let medium = self.pages().medium();
        let (start, sparse) = (entry.primary_offset(), entry.has(FLAG_SPARSE));
        if !entry.has(FLAG_OVERLAY) {
            return Ok(Layer { start, based: 0, own: Bitmap::default(), sparse });
        }
        let own = Bitmap::read(entry, |offset, bytes| {
            medium.read(offset, bytes)?;
            amend(offset, bytes);
            Ok::<(), MediumError>(())
        })?;
        Ok(Layer { start, based: entry.based.get(), own, sparse })
    }

    /// Bytes of the pages that the object has in the pool itself, not from its base. Costs what
    /// counts of its bitmap.
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

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;
    use zerocopy::little_endian::U64;

    fn layer(start: u64, based: u64, own: &[u64]) -> Layer {
        let mut entry = Entry::new_zeroed();
        entry.set(FLAG_OVERLAY, true);
        entry.based = U64::new(based);
        let nothing = |_, bytes: &mut [u8]| {
            bytes.fill(0);
            Ok::<(), ()>(())
        };
        let mut bitmap = Bitmap::read(&entry, nothing).unwrap();
        own.iter().for_each(|page| bitmap.claim(*page));
        Layer { start, based, own: bitmap, sparse: true }
    }

    #[test]
    fn pages_over_the_lowest_base_are_those_that_lie_elsewhere() {
        for top in [&[][..], &[3, 17, 18, 23], &[0, 1, 2, 3, 4, 5, 6]] {
            let lowest = Layer { start: 2 << 20, based: 0, own: Bitmap::default(), sparse: false };
            let below = vec![layer(1 << 20, 24, &[1, 2, 15, 16]), lowest];
            let layers = Layers { top: layer(0, 24, top), below, revision: 0 };
            for pages in 0..=24 {
                let Lowest { start, sparse, others } = layers.over_lowest(pages).unwrap();
                assert_eq!((start, sparse), (2 << 20, false));
                let elsewhere: Vec<_> = (0..pages).filter(|page| layers.home(*page) < 2 << 20).collect();
                assert_eq!(
                    others.iter().cloned().flatten().collect::<Vec<_>>(),
                    elsewhere,
                    "{top:?} {pages}"
                );
                assert!(others.windows(2).all(|runs| runs[0].end < runs[1].start));
            }
            assert!(layers.over_lowest(25).is_none(), "it has grown");
        }
        assert!(
            Layers { top: layer(0, 0, &[]), below: Vec::new(), revision: 0 }.over_lowest(3).is_none(),
            "it has no base"
        );
    }
}
