//! The bytes of an object that does not change: a snapshot.

use crate::error::{ReplicateError, Result};
use crate::feed::Feed;
use crate::format::PAGE;
use indelible_store::store::{Attributes, Reader, Store};
use indelible_store::table::{Key, Layers, Located, read_pages};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Pages read together.
const PIECE: u64 = 64;
const LINE: usize = 64;

pub(crate) struct Content {
    store: Arc<Store>,
    attributes: Attributes,
    object: Located,
    layers: Option<Layers>,
    _reader: Reader,
}

/// Which pages to feed.
pub(crate) enum Pages<'a> {
    /// All that are not zeros.
    All,
    /// Those that differ from another snapshot, by lines, and those that the replica has otherwise.
    Changed { older: &'a Content, pages: Vec<Range<u64>>, touched: &'a BTreeSet<u64> },
}

impl Content {
    /// Opens the snapshot `name` of an object with these attributes; ciphertext of a sealed one.
    pub(crate) fn of(store: &Arc<Store>, name: &str, key: &[u8], attributes: &Attributes) -> Result<Content> {
        let failed = ReplicateError::object(&attributes.name);
        let mut reader = store.attach_raw_reader(name, Key(key)).map_err(failed)?;
        let (object, layers) = (*reader.object(), reader.take_layers());
        Ok(Content { store: store.clone(), attributes: attributes.clone(), object, layers, _reader: reader })
    }

    pub(crate) fn pages(&self) -> u64 {
        self.attributes.pages()
    }

    /// Zeros follow the end.
    fn read(&self, first: u64, bytes: &mut [u8]) -> Result<()> {
        let sealed = self.attributes.is_sealed();
        let all = if sealed { self.pages() * PAGE } else { self.attributes.size };
        let end = all.saturating_sub(first * PAGE).min(bytes.len() as u64) as usize;
        let pages = end.next_multiple_of(PAGE as usize).min(bytes.len());
        read_pages(
            &**self.store.device(),
            &self.object,
            self.layers.as_ref(),
            first * PAGE,
            &mut bytes[..pages],
        )
        .map_err(|error| ReplicateError::object(&self.attributes.name)(error.into()))?;
        bytes[end..].fill(0);
        Ok(())
    }

    /// Feeds pages; whether there were any.
    pub(crate) fn feed(&self, which: &Pages<'_>, feed: &mut dyn Feed) -> Result<bool> {
        match which {
            Pages::All => {
                let last = self.attributes.published.div_ceil(PAGE).min(self.pages());
                let mut any = false;
                pieces(0..last, &mut |first, count| {
                    let mut bytes = vec![0; (count * PAGE) as usize];
                    self.read(first, &mut bytes)?;
                    for (page, bytes) in (first..).zip(bytes.chunks(PAGE as usize)) {
                        if bytes.iter().any(|byte| *byte != 0) {
                            any = true;
                            feed.run(page * PAGE, bytes)?;
                        }
                    }
                    Ok(())
                })?;
                Ok(any)
            }
            Pages::Changed { older, pages, touched } => {
                let mut any = false;
                for range in pages {
                    pieces(range.start..range.end.min(self.pages()), &mut |first, count| {
                        any |= self.feed_changed(older, first..first + count, touched, feed)?;
                        Ok(())
                    })?;
                }
                for page in touched.iter().filter(|page| **page < self.pages()) {
                    any = true;
                    let mut bytes = vec![0; PAGE as usize];
                    self.read(*page, &mut bytes)?;
                    feed.run(page * PAGE, &bytes)?;
                }
                Ok(any)
            }
        }
    }

    fn feed_changed(
        &self,
        older: &Content,
        pages: Range<u64>,
        touched: &BTreeSet<u64>,
        feed: &mut dyn Feed,
    ) -> Result<bool> {
        let len = ((pages.end - pages.start) * PAGE) as usize;
        let (mut now, mut then, mut any) = (vec![0; len], vec![0; len], false);
        self.read(pages.start, &mut now)?;
        older.read(pages.start, &mut then)?;
        for (nth, (now, then)) in now.chunks(LINE).zip(then.chunks(LINE)).enumerate() {
            let offset = pages.start * PAGE + (nth * LINE) as u64;
            if now != then && !touched.contains(&(offset / PAGE)) {
                any = true;
                feed.run(offset, now)?;
            }
        }
        Ok(any)
    }
}

fn pieces(pages: Range<u64>, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let mut first = pages.start;
    while first < pages.end {
        let count = PIECE.min(pages.end - first);
        each(first, count)?;
        first += count;
    }
    Ok(())
}
