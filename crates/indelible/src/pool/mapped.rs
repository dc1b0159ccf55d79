//! How the objects of a pool come into memory: as mappings of its file, or filled by a source.

use super::Inner;
use crate::error::Cause;
use crate::fault::{self, Modelled, PageSource, Primary};
use crate::media::MediaKind;
use crate::shadow::{Params, Shadow, Source};
use crate::sys::uffd::Reach;
use indelible_store::format::entry::{Entry, FLAG_SPARSE};
use std::sync::Arc;

impl Inner {
    /// Maps an object at its address (S0.21: at a cost that does not depend on its size).
    pub(crate) fn map(&self, entry: &Entry, writable: bool) -> Result<Shadow, Cause> {
        Ok(Shadow::attach(self.mapping_of(entry, writable))?)
    }

    /// Whether pages of the object's primary are not to be touched: those of a sparse object on tmpfs claim space even when they
    /// are read, and are a SIGBUS where there is none. A writer asks for it (`fault_in`), as it makes psyncs dearer.
    pub(crate) fn avoids_holes(&self, entry: &Entry, writable: bool) -> bool {
        let sparse = self.media.kind() == MediaKind::Memory && entry.flags & FLAG_SPARSE != 0;
        // A reader's system calls work on mapped pages, so that they have to on filled ones.
        sparse && (self.settings.fault_in || !writable && fault::reach() == Some(Reach::Full))
    }

    /// How an object is mapped.
    pub(crate) fn mapping_of(&self, entry: &Entry, writable: bool) -> Params<'_> {
        let offset = entry.primary_offset();
        // In a read-only pool nothing keeps writers away: an attached object has to be a copy.
        let copied = self.store.is_read_only();
        let mapped = !self.settings.fills() && !copied && !self.avoids_holes(entry, writable);
        let source = match self.media.mappable() {
            Some(fd) if mapped => Source::PrivateFile { fd, offset },
            _ => Source::Pages(self.pages_from(offset)),
        };
        Params {
            addr: entry.address.get() as usize,
            len: entry.extent_len() as usize,
            source,
            writable,
            rung: self.settings.rung,
            advice: self.settings.advice,
            fault_in: if copied { Some(false) } else { self.settings.fault_in.then_some(true) },
            ahead: 8,
            budget: self.settings.ahead_limit,
            pending: writable && self.media.memory_base().is_none(),
        }
    }

    /// The source of the pages of an object whose primary begins at `offset`.
    fn pages_from(&self, offset: u64) -> Arc<dyn PageSource> {
        let source: Arc<dyn PageSource> = Arc::new(Primary { device: self.media.device().clone(), offset });
        match self.settings.page_delay {
            Some(delay) => Arc::new(Modelled { source, delay }),
            None => source,
        }
    }
}
