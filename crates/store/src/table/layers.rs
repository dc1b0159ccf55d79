//! The layers of an object with bases: its own extent, its base's, the base's base's, and so on.
//!
//! Invariants:
//! 1. A page belongs to the uppermost layer that has it: a layer has the pages that its bitmap
//!    marks, and those behind the part based on the layer below; the lowest layer has all.
//! 2. Pages and bitmaps below the uppermost layer never change.
//! 3. A page of the uppermost layer is whole: with the batch that set its bit, or durably before it
//!    (`store/attachment/cover.rs`).

use super::{Bitmap, Located, Writes};
use crate::error::{Part, Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{Entry, FLAG_BASE, FLAG_OVERLAY, FLAG_SPARSE};
use crate::medium::{Medium, MediumError};
use crate::space::TableTransaction;
use crate::sync::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// A longer chain is circular.
const MOST: usize = 1 << 16;

struct Layer {
    start: u64,
    /// First pages that may be those of the layer below.
    based: u64,
    own: Bitmap,
    sparse: bool,
}

/// An object's lowest base, and the pages above it.
pub struct Lowest {
    /// Offset of its extent in the pool.
    pub start: u64,
    /// Whether first writes claim space.
    pub sparse: bool,
    /// The object's pages from other layers, in runs.
    pub others: Vec<Range<u64>>,
}

impl Layer {
    fn has(&self, page: u64) -> bool {
        page >= self.based || self.own.has(page)
    }
}

/// Layers of an attached object, which psyncs change.
pub type SharedLayers = Arc<Mutex<Layers>>;

/// An object's layers; see the module.
pub struct Layers {
    top: Layer,
    below: Vec<Layer>,
    revision: u64,
}

impl Layers {
    /// Layers of an object without a base.
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

    /// Sets the lane's revision at which they were read.
    #[must_use]
    pub fn in_revision(self, revision: u64) -> Self {
        Layers { revision, ..self }
    }

    /// Sets the lane's revision at which they count as read.
    pub fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// The lane's revision at which they were read; 0: unknown.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the page is the object's own.
    #[must_use]
    pub fn owns(&self, page: u64) -> bool {
        self.top.has(page)
    }

    /// The object's own pages below `to`, ascending.
    pub fn own_pages(&self, to: u64) -> impl Iterator<Item = u64> {
        let based = self.top.based.min(to);
        self.top.own.own().take_while(move |page| *page < based).chain(based..to)
    }

    /// The object's own pages below `to`, in runs.
    #[must_use]
    pub fn own_runs(&self, to: u64) -> Vec<Range<u64>> {
        runs(self.own_pages(to))
    }

    /// The lowest base and the layers above it for the first `pages` pages; `None`: no base, or the
    /// object outgrew one.
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

    /// Marks the page as the object's own.
    pub fn claim(&mut self, page: u64) {
        if page < self.top.based {
            self.top.own.claim(page);
        }
    }

    pub(crate) fn claiming(&self, pages: impl IntoIterator<Item = u64>) -> (Writes, Writes) {
        self.top.own.claiming(pages)
    }

    /// Offset in the pool of the page at the last psync.
    #[must_use]
    pub fn home(&self, page: u64) -> u64 {
        let below = || self.below.iter().find(|layer| layer.has(page));
        let layer = if self.top.has(page) { &self.top } else { below().unwrap_or(&self.top) };
        layer.start + page * PAGE
    }

    /// Reads bytes of the object from `offset` on.
    pub fn read(&self, medium: &dyn Medium, offset: u64, bytes: &mut [u8]) -> Result<(), MediumError> {
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
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

/// Reads bytes of an object; `None` as layers: without a base.
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
    pub fn read_object(&self, object: &Located, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let layers = self.layers(object)?;
        Ok(read_pages(self.pages().medium(), object, layers.as_ref(), offset, bytes)?)
    }

    /// The object's layers; `None`: all pages are its own.
    ///
    /// # Errors
    /// A base is damaged or wrong. The medium's.
    pub fn layers(&self, object: &Located) -> Result<Option<Layers>> {
        self.layers_with(object, &|_, _| {})
    }

    /// The uppermost layer and `below` more, which suffice for pages in them.
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

    /// The nearest base below the object for which `is` holds: the last one made of it.
    ///
    /// # Errors
    /// As for [`layers`](Self::layers).
    pub fn nearest_base(&self, object: &Located, is: impl Fn(&Entry) -> bool) -> Result<Option<Located>> {
        let mut upper = *object;
        for _ in 0..=MOST {
            if !upper.entry.has(FLAG_OVERLAY) {
                return Ok(None);
            }
            upper = self.base(&upper)?;
            if is(&upper.entry) {
                return Ok(Some(upper));
            }
        }
        Err(StoreError::damaged(Part::Entry, upper.offset))
    }

    /// [`layers`](Self::layers) with bitmap lines that the pool lacks: `amend(offset, bytes)`
    /// changes what was read.
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

    /// Bytes of the object's own pages.
    pub fn own_bytes(&self, object: &Located) -> Result<u64> {
        if !object.entry.has(FLAG_OVERLAY) {
            return Ok(object.entry.extent_len());
        }
        let Layer { based, own, .. } = self.layer(&object.entry, &|_, _| {})?;
        // Bits beyond mean nothing.
        let marked = own.own().take_while(|page| *page < based).count() as u64;
        Ok((object.entry.pages.get() - based + marked) * PAGE)
    }

    /// The base of an object that has one.
    ///
    /// # Errors
    /// It is damaged or not a base.
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
