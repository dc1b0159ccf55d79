//! Bringing objects into memory: by mapping the pool's file, or filling from a source.

use super::Inner;
use crate::dirty::Advice;
use crate::error::Cause;
use crate::fault::{self, Decoded, Layered, Live, OnSlowMedium, PageSource, Primary, SLOW, Sealed};
use crate::media::MediaKind;
use crate::shadow::{Params, Shadow, Source};
use crate::sys::PAGE;
use crate::sys::uffd::Reach;
use indelible_store::format::entry::{Entry, FLAG_ECC, FLAG_OVERLAY, FLAG_SEALED, FLAG_SPARSE};
use indelible_store::store::{LivePages, SealedPages, Writer};
use indelible_store::table::SharedLayers;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

pub(crate) enum PageOrigin {
    Extent,
    /// In its extent, for a writer: if that becomes a base, the pages follow.
    Own(LivePages),
    Mapped,
    Live(LivePages),
    /// The same for a reader.
    Layers(SharedLayers),
    Sealed(Arc<SealedPages>),
}

impl PageOrigin {
    pub(crate) fn of(writer: &Writer) -> PageOrigin {
        if let Some(pages) = writer.sealed_pages() {
            return PageOrigin::Sealed(pages);
        }
        if writer.has_base() { PageOrigin::Live(writer.pages()) } else { PageOrigin::Own(writer.pages()) }
    }
}

impl From<Option<SharedLayers>> for PageOrigin {
    fn from(layers: Option<SharedLayers>) -> Self {
        layers.map_or(PageOrigin::Extent, PageOrigin::Layers)
    }
}

const COPIED: usize = 16 << 20;

impl Inner {
    pub(crate) fn map(&self, entry: &Entry, place: PageOrigin, writable: bool) -> Result<Shadow, Cause> {
        Ok(Shadow::attach(self.mapping_of(entry, place, writable))?)
    }

    /// The object's pointers lead elsewhere.
    pub(crate) fn map_anywhere(&self, entry: &Entry, place: PageOrigin) -> Result<Shadow, Cause> {
        Ok(Shadow::attach(Params { addr: None, ..self.mapping_of(entry, place, false) })?)
    }

    /// A sparse object's pages on tmpfs claim space even when read, and raise SIGBUS where there is
    /// none.
    pub(crate) fn avoids_holes(&self, entry: &Entry) -> bool {
        let sparse = self.media.kind() == MediaKind::Memory && entry.flags & FLAG_SPARSE != 0;
        // Its pages are elsewhere, or encrypted: none is touched through a mapping.
        if entry.flags & (FLAG_OVERLAY | FLAG_SEALED) != 0 {
            return true;
        }
        // System calls work on mapped pages, so they must work on filled ones, unless the program
        // declares that it makes none.
        sparse && (self.settings.fault_in || fault::reach() == Some(Reach::Full))
    }

    /// `None` unless copying the pages stored elsewhere is cheap and touching the others claims no
    /// space.
    fn over_lowest(&self, layers: &SharedLayers, entry: &Entry) -> Option<(u64, Vec<Range<usize>>)> {
        let pages = entry.extent_len() / PAGE as u64;
        let lowest = layers.lock().unwrap_or_else(PoisonError::into_inner).over_lowest(pages)?;
        if lowest.sparse && self.media.kind() == MediaKind::Memory {
            return None;
        }
        let others = lowest.others.into_iter().map(|run| run.start as usize..run.end as usize);
        let others: Vec<_> = others.collect();
        let copied: usize = others.iter().map(Range::len).sum();
        (copied <= COPIED / PAGE).then_some((lowest.start, others))
    }

    pub(crate) fn mapping_of(&self, entry: &Entry, place: PageOrigin, writable: bool) -> Params<'_> {
        let offset = entry.primary_offset();
        let read_only = self.store.is_read_only();
        // An object of a file copied without blocks. A sparse one may exceed memory: see
        // `avoids_holes`.
        let lacks = !writable
            && entry.flags & FLAG_SPARSE == 0
            && self.media.may_lack_pages(offset, entry.extent_len());
        let copied = read_only || lacks;
        // System calls work on mapped pages, so they must work on these.
        let whole = read_only || (lacks && fault::reach() != Some(Reach::Full));
        // A reader sees words without check words; transactions use both.
        let decoded = entry.has(FLAG_ECC) && !writable;
        let mapped = !self.settings.fills() && !copied && !decoded && !self.avoids_holes(entry);
        let device = self.media.device().clone();
        let secret = matches!(place, PageOrigin::Sealed(_));
        let source = match (place, self.media.mappable()) {
            (PageOrigin::Sealed(pages), _) => Source::Pages(self.on_medium(Arc::new(Sealed(pages)))),
            (PageOrigin::Extent | PageOrigin::Own(_), Some(fd)) if mapped => {
                Source::PrivateFile { fd, offset }
            }
            (PageOrigin::Mapped, Some(fd)) => Source::PrivateFile { fd, offset },
            (PageOrigin::Own(pages) | PageOrigin::Live(pages), _) => {
                Source::Pages(self.on_medium(Arc::new(Live(pages))))
            }
            (PageOrigin::Layers(layers), fd) => {
                let patched =
                    !writable && !copied && !decoded && self.inherits_reads() && !self.settings.fills();
                let over =
                    fd.filter(|_| patched).and_then(|fd| Some((fd, self.over_lowest(&layers, entry)?)));
                let pages = self.on_medium(Arc::new(Layered { device, layers }));
                match over {
                    Some((fd, (offset, others))) => Source::Patched { fd, offset, pages, others },
                    None => Source::Pages(pages),
                }
            }
            _ => Source::Pages(self.on_medium(Arc::new(Primary { device, offset }))),
        };
        let (source, len) = match source {
            Source::Pages(pages) if decoded => {
                (Source::Pages(Arc::new(Decoded(pages))), entry.usable(entry.content_len()))
            }
            source => (source, entry.content_len()),
        };
        Params {
            name: entry.name(),
            addr: Some(entry.address.get() as usize),
            len: len as usize,
            room: 0,
            source,
            writable,
            rung: self.settings.rung,
            advice: self.settings.advice,
            fault_in: if whole { Some(false) } else { self.settings.fault_in.then_some(true) },
            // Decrypting costs more than a fault: only likely pages are read ahead.
            ahead: if secret { 0 } else { 8 },
            limit: self.settings.memory_limit,
            prediction: secret.then_some(self.settings.prediction),
            budget: self.settings.ahead_limit,
            secret,
            pending: writable && self.media.memory_base().is_none(),
        }
    }

    pub(crate) fn advice(&self) -> Advice {
        self.settings.advice
    }

    fn on_medium(&self, source: Arc<dyn PageSource>) -> Arc<dyn PageSource> {
        match self.settings.model {
            Some(model) if model.page() >= SLOW => Arc::new(OnSlowMedium(source)),
            _ => source,
        }
    }
}
