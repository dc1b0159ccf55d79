//! The dirty-line set: lines marked as stored to, or as borrowed.
//!
//! Any thread marks at any time. With cuts, marks follow the store: an earlier mark could be taken
//! before it.

use super::range::PageRange;
use crate::sys::PAGE;
use crate::sys::flush::LINE;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines of an object.
///
/// Invariant: `pages` has each page with a bit in `masks` once, and no other.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pages: Vec<usize>,
    masks: Vec<u64>,
    room: usize,
}

impl Lines {
    pub(super) fn grow(&mut self, pages: usize) {
        self.room = self.room.max(pages);
        if !self.masks.is_empty() {
            self.reserve();
        }
    }

    #[cold]
    fn reserve(&mut self) {
        let mut larger = vec![0; self.room];
        self.pages.iter().for_each(|page| larger[*page] = self.masks[*page]);
        self.masks = larger;
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn add(&mut self, bytes: Range<usize>) {
        let end = bytes.end.min(self.room * PAGE);
        let mut at = bytes.start;
        while at < end {
            let (page, next) = (at / PAGE, (at / PAGE + 1) * PAGE);
            let (first, last) = (at % PAGE / LINE, (end.min(next) - 1) % PAGE / LINE);
            self.join(page, u64::MAX >> (63 - (last - first)) << first);
            at = next;
        }
    }

    pub(super) fn join(&mut self, page: usize, mask: u64) {
        if self.masks.len() < self.room {
            self.reserve();
        }
        if self.masks[page] == 0 && mask != 0 {
            self.pages.push(page);
        }
        self.masks[page] |= mask;
    }

    #[inline]
    pub(super) fn of(&self, page: usize) -> u64 {
        self.masks.get(page).copied().unwrap_or(0)
    }

    pub(super) fn pages(&mut self) -> &[usize] {
        self.pages.sort_unstable();
        &self.pages
    }

    pub(super) fn settle(&mut self, runs: &[PageRange]) {
        for run in runs {
            let pages = run.within(self.masks.len());
            self.masks[pages].fill(0);
        }
        self.pages.retain(|page| self.masks[*page] != 0);
    }

    fn each(&self, mut each: impl FnMut(usize, u64)) {
        self.pages.iter().for_each(|page| each(*page, self.masks[*page]));
    }

    fn clear(&mut self) {
        self.pages.drain(..).for_each(|page| self.masks[page] = 0);
    }
}

#[derive(Debug, Default)]
struct Sets {
    stored: Lines,
    borrowed: Lines,
}

#[derive(Debug, Default)]
pub(crate) struct DirtyLines {
    sets: Mutex<Sets>,
    any: AtomicBool,
    pinned: AtomicBool,
    unlocked: AtomicU8,
}

const NEVER: u8 = 0;
const RELIED_ON: u8 = 1;
const UNLOCKED: u8 = 2;

impl DirtyLines {
    fn lock(&self) -> MutexGuard<'_, Sets> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn grow(&self, pages: usize) {
        let mut sets = self.lock();
        sets.stored.grow(pages);
        sets.borrowed.grow(pages);
    }

    pub(crate) fn mark(&self, ranges: impl IntoIterator<Item = Range<usize>>) {
        let mut sets = self.lock();
        ranges.into_iter().for_each(|bytes| sets.stored.add(bytes));
        self.any.store(true, Ordering::Release);
    }

    /// For stores by a device: from then on the object's pages are never replaced.
    pub(crate) fn mark_pinned(&self, bytes: Range<usize>) {
        self.pinned.store(true, Ordering::Release);
        self.unlock();
        self.mark([bytes]);
    }

    fn unlock(&self) {
        if self.unlocked.load(Ordering::Acquire) == UNLOCKED {
            return;
        }
        while self.unlocked.compare_exchange(NEVER, UNLOCKED, Ordering::AcqRel, Ordering::Acquire)
            == Err(RELIED_ON)
        {
            std::thread::yield_now();
        }
    }

    /// `false`: a thread may store to reachable values without a lock. Stores to unreachable values
    /// go on; their marks are the next cut's.
    pub(super) fn rely_on_gate(&self) -> bool {
        self.unlocked.compare_exchange(NEVER, RELIED_ON, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn rely_no_more(&self) {
        self.unlocked.store(NEVER, Ordering::Release);
    }

    #[cfg(test)]
    pub(super) fn is_relied_on(&self) -> bool {
        self.unlocked.load(Ordering::Acquire) == RELIED_ON
    }

    pub(crate) fn mark_shared(&self, bytes: Range<usize>) {
        self.unlock();
        self.mark_borrowed(bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Acquire)
    }

    pub(crate) fn mark_borrowed(&self, bytes: Range<usize>) {
        self.lock().borrowed.add(bytes);
        self.any.store(true, Ordering::Release);
    }

    /// Pages may come twice. Borrowed lines stay marked unless they are `back`.
    #[inline]
    pub(super) fn take(&self, back: bool, each: impl FnMut(usize, u64)) {
        if self.any.load(Ordering::Acquire) {
            self.take_some(back, each);
        }
    }

    fn take_some(&self, back: bool, mut each: impl FnMut(usize, u64)) {
        let mut sets = self.lock();
        sets.stored.each(&mut each);
        sets.borrowed.each(&mut each);
        sets.stored.clear();
        if back {
            sets.borrowed.clear();
        }
        self.any.store(!sets.borrowed.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::iter::once;

    fn taken(marks: &DirtyLines, back: bool) -> Vec<(usize, u64)> {
        let mut all = BTreeMap::new();
        marks.take(back, |page, lines| *all.entry(page).or_default() |= lines);
        all.into_iter().collect()
    }

    #[test]
    fn the_lines_of_marked_bytes_are_taken_once() {
        let marks = DirtyLines::default();
        marks.mark(once(0..100));
        assert_eq!(taken(&marks, true), [], "beyond an object of no bytes");
        marks.grow(4);
        marks.mark([63..65, 4095..8192, 8192..8192, 4 * 4096 - 1..9 * 4096, 9 * 4096..10 * 4096]);
        marks.grow(10);
        assert_eq!(taken(&marks, true), [(0, 0b11 | 1 << 63), (1, u64::MAX), (3, 1 << 63)]);
        marks.mark(once(9 * 4096..9 * 4096 + 1));
        assert_eq!(taken(&marks, true), [(9, 1)]);
        assert_eq!(taken(&marks, true), []);
    }

    #[test]
    fn borrowed_lines_stay_marked_until_they_are_back() {
        let marks = DirtyLines::default();
        marks.grow(2);
        marks.mark_borrowed(0..1);
        marks.mark([64..65, 4096..4097]);
        assert_eq!(taken(&marks, false), [(0, 0b11), (1, 1)]);
        marks.grow(3);
        marks.mark(once(4096..4097));
        assert_eq!(taken(&marks, false), [(0, 1), (1, 1)]);
        assert_eq!(taken(&marks, true), [(0, 1)]);
        assert_eq!(taken(&marks, true), []);
    }

    #[test]
    fn a_cut_relies_on_the_gate_until_a_thread_may_store_without_a_lock() {
        let (by_address, through_atomics) = (DirtyLines::default(), DirtyLines::default());
        for marks in [&by_address, &through_atomics] {
            marks.grow(1);
            marks.mark(once(0..1));
            marks.mark_borrowed(0..1);
            assert!(marks.rely_on_gate());
            marks.rely_no_more();
        }
        by_address.mark_pinned(0..1);
        through_atomics.mark_shared(0..1);
        assert!(!by_address.rely_on_gate() && !through_atomics.rely_on_gate());
    }

    #[test]
    fn leave_to_store_without_a_lock_waits_for_a_cut_that_relies_on_locks() {
        for _ in 0..200 {
            let (marks, ended) = (DirtyLines::default(), AtomicBool::new(false));
            marks.grow(1);
            assert!(marks.rely_on_gate());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    marks.mark_shared(0..1);
                    assert!(ended.load(Ordering::Relaxed), "it did not wait");
                });
                std::thread::yield_now();
                ended.store(true, Ordering::Relaxed);
                marks.rely_no_more();
            });
            assert!(!marks.rely_on_gate());
        }
    }
}
