//! Blocks of the file system, one per page: which of them keep their writes.
//!
//! A block is reserved before it is written, and reads as zeros after a power cut. Its first
//! successful write-back makes it a written one. If that fails, the block is lost, as on ext4:
//! later writes succeed, and it stays reserved. Zeroing makes any block reserved.
//!
//! Invariant: a page is in at most one of `written`, `first` and `lost`.

use super::event::{Event, EventKind, Fill};
use super::pages::{PAGE, Pages};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const GROUP: u64 = 64;

#[derive(Clone, Default)]
pub(super) struct Blocks {
    cached: bool,
    written: BTreeMap<u64, u64>,
    first: BTreeMap<u64, u64>,
    lost: BTreeSet<u64>,
}

impl Blocks {
    pub(super) fn reserved(cached: bool) -> Blocks {
        Blocks { cached, ..Blocks::default() }
    }

    pub(super) fn all(cached: bool, len: u64) -> Blocks {
        let mut blocks = Blocks::reserved(cached);
        pages(0, len).for_each(|page| blocks.mark(page));
        blocks
    }

    pub(super) fn after_cut(&self, contents: &Pages) -> Blocks {
        let mut blocks = Blocks { cached: self.cached, written: self.written.clone(), ..Blocks::default() };
        contents.present(0, u64::MAX).into_iter().for_each(|page| blocks.mark(page));
        blocks
    }

    pub(super) fn settle(&mut self) {
        let first: Vec<u64> = self.first.keys().chain(&self.lost).copied().collect();
        first.into_iter().for_each(|page| self.mark(page));
    }

    pub(super) fn is_lost(&self, page: u64) -> bool {
        self.lost.contains(&page)
    }

    pub(super) fn apply(&mut self, seq: u64, event: &Event) {
        if !self.cached {
            return;
        }
        for extent in &event.extents {
            let clears = matches!(event.kind, EventKind::Discard) || matches!(extent.fill, Fill::Zeros(_));
            for page in pages(extent.offset, extent.len()) {
                let whole = page * PAGE >= extent.offset && (page + 1) * PAGE <= extent.end();
                match event.kind {
                    EventKind::Damage => self.mark(page),
                    // A dropped clean page is read again from its block.
                    EventKind::Evicted if self.is_lost(page) => self.clear(page),
                    EventKind::Evicted => {}
                    _ if clears && whole => self.clear(page),
                    _ => self.write(page, seq),
                }
            }
        }
        match event.kind {
            EventKind::Persisted { write, offset, len } => self.written_back(offset, len, write + 1),
            EventKind::Barrier { before } => self.written_back(0, u64::MAX, before),
            EventKind::PersistFailed { offset, len } | EventKind::WritebackFailed { offset, len } => {
                self.failed(offset, len);
            }
            EventKind::BarrierFailed => self.failed(0, u64::MAX),
            _ => {}
        }
    }

    pub(super) fn unwritten(&self, offset: u64, len: u64) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for page in pages(offset, len).filter(|page| self.cached && !self.is_written(*page)) {
            let (start, end) = ((page * PAGE).max(offset), ((page + 1) * PAGE).min(offset + len));
            match found.last_mut() {
                Some(part) if part.end == start => part.end = end,
                _ => found.push(start..end),
            }
        }
        found
    }

    fn is_written(&self, page: u64) -> bool {
        self.written.get(&(page / GROUP)).is_some_and(|bits| bits >> (page % GROUP) & 1 == 1)
    }

    fn mark(&mut self, page: u64) {
        self.first.remove(&page);
        self.lost.remove(&page);
        *self.written.entry(page / GROUP).or_default() |= 1 << (page % GROUP);
    }

    fn clear(&mut self, page: u64) {
        self.first.remove(&page);
        self.lost.remove(&page);
        if let Some(bits) = self.written.get_mut(&(page / GROUP)) {
            *bits &= !(1 << (page % GROUP));
        }
    }

    fn write(&mut self, page: u64, seq: u64) {
        if !self.is_written(page) && !self.lost.contains(&page) {
            self.first.entry(page).or_insert(seq);
        }
    }

    fn written_back(&mut self, offset: u64, len: u64, before: u64) {
        let done: Vec<u64> =
            self.pending(offset, len).filter(|(_, first)| *first < before).map(|p| p.0).collect();
        done.into_iter().for_each(|page| self.mark(page));
    }

    fn failed(&mut self, offset: u64, len: u64) {
        let failed: Vec<u64> = self.pending(offset, len).map(|p| p.0).collect();
        for page in failed {
            self.first.remove(&page);
            self.lost.insert(page);
        }
    }

    fn pending(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
        let range = pages(offset, len);
        self.first.range(range).map(|(page, first)| (*page, *first))
    }
}

fn pages(offset: u64, len: u64) -> Range<u64> {
    match len {
        0 => 0..0,
        _ => offset / PAGE..offset.saturating_add(len).div_ceil(PAGE),
    }
}
