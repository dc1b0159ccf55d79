//! Differences between objects, snapshots and copies, by page. Pages at one place of the pool are
//! not read. Sealed objects are compared by their seals, without a key.

use crate::error::{Result, SealError, StoreError};
use crate::format::{PAGE, pages_for};
use crate::medium::Medium;
use crate::seal::{Outline, PageBytes};
use crate::store::attachment::Reader;
use crate::store::pool::Store;
use crate::table::{Key, Layers, Located};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Most pages per comparison.
const PIECE: u64 = 256;

/// Differences of two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Differing pages (4 KiB), ascending; an object's end is followed by zeros.
    pub pages: Vec<Range<u64>>,
    /// Bytes of the older object.
    pub older_size: u64,
    /// Bytes of the newer object.
    pub newer_size: u64,
}

impl Difference {
    fn add(&mut self, page: u64) {
        match self.pages.last_mut() {
            Some(last) if last.end == page => last.end += 1,
            _ => self.pages.push(page..page + 1),
        }
    }

    /// Number of differing pages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pages.iter().map(|pages| pages.end - pages.start).sum()
    }
}

/// An unchanging object.
pub(super) struct Still {
    pub(super) object: Located,
    pub(super) layers: Layers,
}

impl Still {
    pub(super) fn of(reader: &mut Reader) -> Still {
        let object = *reader.object();
        Still { layers: reader.take_layers().unwrap_or_else(|| Layers::alone(&object)), object }
    }

    /// `None`: behind the end.
    fn home(&self, page: u64) -> Option<u64> {
        (page < self.object.entry.pages.get()).then(|| self.layers.home(page))
    }

    fn page(&self, medium: &dyn Medium, page: u64, bytes: &mut PageBytes) -> Result<()> {
        Ok(self.layers.read(medium, page * PAGE, bytes)?)
    }

    /// Zeros follow the end.
    pub(super) fn read(&self, medium: &dyn Medium, first: u64, bytes: &mut [u8]) -> Result<()> {
        let left = self.object.entry.size.get().saturating_sub(first * PAGE);
        let (there, behind) = bytes.split_at_mut(left.min(bytes.len() as u64) as usize);
        behind.fill(0);
        Ok(self.layers.read(medium, first * PAGE, there)?)
    }
}

impl Store {
    /// Compares the last psyncs of two objects or snapshots; `key` opens both. Of sealed objects,
    /// lists pages sealed in between, perhaps with equal bytes.
    ///
    /// # Errors
    /// `Unrelated` of a sealed object and one other than its snapshots and copies. `NotFound`,
    /// `WrongKey`; as for [`attach_still`](Store::attach_still). In a read-only store:
    /// `TableInMotion` if writers keep coming.
    pub fn diff(self: &Arc<Self>, older: &str, newer: &str, key: Key<'_>) -> Result<Difference> {
        let begin = Instant::now();
        loop {
            let mut readers = Vec::new();
            let difference = self.diff_held(older, newer, key, &mut readers);
            let current = readers.iter().try_fold(true, |all, reader| Ok(all && reader.is_current()?));
            for reader in readers {
                let _ = self.end_snapshot(reader);
            }
            match current {
                Ok(false) if begin.elapsed() < self.patience() => {}
                Ok(false) => {
                    return Err(StoreError::TableInMotion { seconds: self.patience().as_secs_f64() });
                }
                Ok(true) => return difference,
                Err(error) => return difference.and(Err(error)),
            }
        }
    }

    /// Attaches an object's last psync for reading, or [a snapshot](Store::attach_snapshot) of a
    /// written one, until [`end_snapshot`](Store::end_snapshot); encrypted until
    /// [unsealed](Reader::unseal).
    ///
    /// # Errors
    /// As for both; `Held` in a read-only store.
    pub fn attach_still(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        match self.attach_raw_reader(name, key) {
            Err(StoreError::Held { .. }) if !self.read_only => self.attach_snapshot(name, key),
            attached => attached,
        }
    }

    fn diff_held(
        self: &Arc<Self>,
        older: &str,
        newer: &str,
        key: Key<'_>,
        readers: &mut Vec<Reader>,
    ) -> Result<Difference> {
        for name in [older, newer] {
            readers.push(self.attach_still(name, key)?);
        }
        let [before, after] = &mut readers[..] else { unreachable!("there are two") };
        let (before, after) = (Still::of(before), Still::of(after));
        match [&before, &after].map(|still| still.object.is_sealed()) {
            [false, false] => self.compare(&before, &after),
            [true, true] => self.compare_seals(&before, &after, older),
            _ => Err(SealError::Unrelated { other: older.to_owned() }.into()),
        }
    }

    fn compare_seals(&self, older: &Still, newer: &Still, name: &str) -> Result<Difference> {
        let medium = self.latch.enter();
        let [older_size, newer_size] = [older, newer].map(|still| still.object.entry.size.get());
        let mut then = |page, bytes: &mut PageBytes| older.page(&medium, page, bytes);
        let mut now = |page, bytes: &mut PageBytes| newer.page(&medium, page, bytes);
        let mut older = Outline::open(older.object.entry.pages.get(), &mut then)?;
        let mut newer = Outline::open(newer.object.entry.pages.get(), &mut now)?;
        let changed = newer.changed_since(&mut older)?;
        let changed = changed.ok_or_else(|| SealError::Unrelated { other: name.to_owned() })?;
        let mut difference = Difference { pages: Vec::new(), older_size, newer_size };
        changed.into_iter().for_each(|page| difference.add(page));
        Ok(difference)
    }

    fn compare(&self, older: &Still, newer: &Still) -> Result<Difference> {
        let [older_size, newer_size] = [older, newer].map(|still| still.object.entry.size.get());
        let mut difference = Difference { pages: Vec::new(), older_size, newer_size };
        let pages = pages_for(older_size.max(newer_size));
        let medium = self.latch.enter();
        let (mut then, mut now) = (Vec::new(), Vec::new());
        let mut page = 0;
        while page < pages {
            let first = page;
            while page < pages && page - first < PIECE && older.home(page) != newer.home(page) {
                page += 1;
            }
            if page == first {
                let end = (page + 1) * PAGE;
                if older_size.min(newer_size) >= end || older_size == newer_size {
                    page += 1;
                    continue;
                }
                page += 1;
            }
            let len = ((page - first) * PAGE) as usize;
            then.resize(len, 0);
            now.resize(len, 0);
            older.read(&medium, first, &mut then)?;
            newer.read(&medium, first, &mut now)?;
            let pairs = then.chunks(PAGE as usize).zip(now.chunks(PAGE as usize));
            for (page, _) in (first..).zip(pairs).filter(|(_, (then, now))| then != now) {
                difference.add(page);
            }
        }
        Ok(difference)
    }
}
