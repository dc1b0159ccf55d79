//! Compares dirty pages with the primary, and passes differing lines to the batch.

#![allow(unsafe_code)]

use super::stats::PsyncStats;
use crate::dirty::PageRange;
use crate::shadow::{Shadow, all_changed, copy_lines, each_run, lines_changed, lines_changed_among};
use crate::sys::PAGE;
use crate::sys::flush::fetch;
use crate::sys::per_process::PerProcess;
use indelible_store::error::StoreError;
use indelible_store::lane::Batch;
use indelible_store::store::{Changes, PageImage, Primary};
use std::iter::Peekable;
use std::time::{Duration, Instant};

pub(super) const LINE: usize = 64;
/// Pages worth an extra thread. At 400, psync of 1,000 pages took 228 µs rather than 125 in the
/// cache, 1,090 rather than 850 outside.
const SHARE: u64 = 1024;
/// Pages from which on all are compared before the first line is logged, so that the amount is
/// known.
const MASKS_FROM: u64 = 64;
/// Lines borrowed rather than copied: at least the bytes of the nearest caches.
const BORROW_FROM: u64 = 4096;
const THREADS: usize = 8;
const MANY: u64 = 64;
/// Marked lines of a page up to which they are compared one by one.
const FEW: u32 = 16;
/// Pages ahead whose few marked lines of the primary are fetched: psync wrote them around the
/// caches.
const AHEAD: usize = 16;
const READ_PAGES: u64 = 16;

pub(super) struct Comparison<'a> {
    pub(super) shadow: &'a Shadow,
    pub(super) primary: *const u8,
    pub(super) ranges: &'a [PageRange],
    pub(super) changed: &'a mut Vec<PageRange>,
    pub(super) unchanged: &'a mut Vec<PageRange>,
    pub(super) stats: &'a mut PsyncStats,
    pub(super) pace: &'a mut Option<(u64, Duration)>,
}

struct Fresh {
    read: u64,
    pages: Vec<(u64, Box<PageImage>)>,
    room: usize,
}

impl Fresh {
    fn new(room: usize) -> Fresh {
        Fresh { read: 0, pages: Vec::new(), room }
    }

    fn join(&mut self, other: Fresh) {
        self.read += other.read;
        self.pages.extend(other.pages);
    }

    fn add(&mut self, page: u64, image: &PageImage) {
        if self.pages.len() < self.room {
            self.pages.push((page, Box::new(image.clone())));
        }
    }
}

#[derive(Clone, Copy)]
struct Pages<'a> {
    shadow: &'a Shadow,
    primary: *const u8,
    slow: &'a Primary<'a>,
    /// Whether a page whose samples all changed counts as wholly changed.
    samples: bool,
}

// SAFETY: the pages are read by assembly, which any thread may do; the shadow's other state is not
// touched through this.
unsafe impl Send for Pages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pages<'_> {}

impl Pages<'_> {
    fn compare(
        &self,
        ranges: &[PageRange],
        fresh: &mut Fresh,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let mut pages = ranges.iter().flat_map(|range| range.start..range.end()).peekable();
        if self.primary.is_null() {
            return self.compare_slow(&mut pages, fresh, &mut each);
        }
        let at = |page: u64| self.primary.wrapping_add(page as usize * PAGE);
        let mut fetched = ranges.iter().flat_map(|range| range.start..range.end());
        fetched.by_ref().take(AHEAD).for_each(|page| self.fetch_few(page, u64::MAX, at(page)));
        while let Some(page) = pages.next() {
            if let Some(page) = fetched.next() {
                self.fetch_few(page, u64::MAX, at(page));
            }
            let ahead = *pages.peek().unwrap_or(&page);
            // SAFETY: the same page of the primary.
            each(page, unsafe { self.changed(page, u64::MAX, at(page), (ahead, at(ahead))) });
        }
        Ok(())
    }

    #[inline]
    fn fetch_few(&self, page: u64, known: u64, primary: *const u8) {
        let marked = self.shadow.lines(page);
        if marked.count_ones() <= FEW {
            each_run(marked & known, |first, count| fetch(primary.wrapping_add(first * LINE), count * LINE));
        }
    }

    fn compare_slow(
        &self,
        pages: &mut Peekable<impl Iterator<Item = u64>>,
        fresh: &mut Fresh,
        each: &mut impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let known = |page: Option<&u64>| {
            let (lines, bytes) = self.known(*page?)?;
            self.fetch_few(*page?, lines, bytes);
            Some((lines, bytes))
        };
        let mut buffer = Vec::new();
        let mut next = known(pages.peek());
        while let Some(page) = pages.next() {
            if let Some((lines, bytes)) = next {
                next = known(pages.peek());
                let ahead = (*pages.peek().unwrap_or(&page), next.map_or(bytes, |(_, bytes)| bytes));
                // SAFETY: a page, aligned as its type says; a page without known lines is not read.
                let mask = unsafe { self.changed(page, lines, bytes, ahead) };
                // Marked lines without a copy of the primary in memory are assumed changed.
                each(page, mask | self.shadow.lines(page) & !lines);
                continue;
            }
            let mut end = page + 1;
            next = known(pages.peek());
            while next.is_none() && end < page + READ_PAGES && pages.next_if_eq(&end).is_some() {
                end += 1;
                next = known(pages.peek());
            }
            buffer.resize((end - page) as usize, PageImage([0; PAGE]));
            let done = self.read(page, &mut buffer, fresh, each);
            // Also before it grows, which leaves a copy.
            self.slow.wipe(&mut buffer);
            done?;
        }
        Ok(())
    }

    fn known(&self, page: u64) -> Option<(u64, *const u8)> {
        let cached = self.slow.cached(page).map(|(image, lines)| (lines, image.0.as_ptr()));
        let known = cached.unwrap_or((0, std::ptr::null()));
        (known.0 == u64::MAX || self.shadow.lines(page).count_ones() <= FEW).then_some(known)
    }

    fn read(
        &self,
        first: u64,
        images: &mut [PageImage],
        fresh: &mut Fresh,
        each: &mut impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        self.slow.read(first, images)?;
        fresh.read += images.len() as u64;
        for (page, image) in (first..).zip(images.iter()) {
            let ahead = (page + 1).min(first + images.len() as u64 - 1);
            // SAFETY: a page, aligned as its type says.
            let mask = unsafe { self.changed(page, u64::MAX, image.0.as_ptr(), (ahead, image.0.as_ptr())) };
            if mask != 0 {
                fresh.add(page, image);
            }
            each(page, mask);
        }
        Ok(())
    }

    /// The `known` lines, of those that may differ, that differ from `primary`. `ahead` hints at
    /// the next page.
    ///
    /// # Safety
    /// `page` is one of the shadow's; `primary` is aligned to 8 and valid for reads of the known
    /// lines: of all lines, or few are marked.
    #[inline(always)]
    unsafe fn changed(&self, page: u64, known: u64, primary: *const u8, ahead: (u64, *const u8)) -> u64 {
        let (shadow, marked) = (self.shadow.page_bytes(page), self.shadow.lines(page));
        // SAFETY: the caller's promise; pages of the shadow are aligned.
        unsafe {
            if marked.count_ones() <= FEW {
                return lines_changed_among(shadow, primary, marked & known);
            }
            if self.samples && all_changed(shadow, primary) {
                return marked;
            }
            marked & lines_changed(shadow, primary, [self.shadow.page_bytes(ahead.0), ahead.1])
        }
    }

    fn masks(&self, ranges: &[PageRange], count: u64, room: usize) -> Result<(Vec<u64>, Fresh), StoreError> {
        let (mut masks, mut fresh) = (Vec::with_capacity(count as usize), Fresh::new(room));
        self.compare(ranges, &mut fresh, |_, mask| masks.push(mask))?;
        Ok((masks, fresh))
    }

    fn compare_together(
        &self,
        ranges: &[PageRange],
        total: u64,
        threads: u64,
        fresh: &mut Fresh,
    ) -> Result<Vec<u64>, StoreError> {
        let (share, room) = (total.div_ceil(threads), fresh.room / threads as usize);
        let pieces: Vec<Vec<PageRange>> = split(ranges, share);
        let Some((own, others)) = pieces.split_first() else { return Ok(Vec::new()) };
        std::thread::scope(|scope| {
            let others: Vec<_> = others
                .iter()
                .map(|piece| {
                    let pages = *self;
                    scope.spawn(move || pages.masks(piece, share, room))
                })
                .collect();
            let (mut all, own) = self.masks(own, total, room)?;
            fresh.join(own);
            for thread in others {
                match thread.join() {
                    Ok(found) => {
                        let (masks, found) = found?;
                        all.extend(masks);
                        fresh.join(found);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }
}

pub(super) fn threads_for(total: u64) -> u64 {
    static CORES: PerProcess<usize> = PerProcess::new();
    if total < 2 * SHARE {
        return 1;
    }
    let cores = CORES.get_or(|_| std::thread::available_parallelism().map_or(1, usize::from));
    (total / SHARE).min((*cores).min(THREADS) as u64)
}

fn split(ranges: &[PageRange], share: u64) -> Vec<Vec<PageRange>> {
    let mut pieces = vec![Vec::new()];
    let mut room = share;
    for range in ranges {
        let mut rest = *range;
        while rest.count > 0 {
            if room == 0 {
                pieces.push(Vec::new());
                room = share;
            }
            let count = rest.count.min(room);
            if let Some(piece) = pieces.last_mut() {
                piece.push(PageRange { start: rest.start, count });
            }
            rest = PageRange { start: rest.start + count, count: rest.count - count };
            room -= count;
        }
    }
    pieces
}

pub(super) fn extend(runs: &mut Vec<PageRange>, page: u64) {
    match runs.last_mut() {
        Some(last) if last.end() == page => last.count += 1,
        _ => runs.push(PageRange { start: page, count: 1 }),
    }
}

impl Comparison<'_> {
    #[inline]
    fn take(&mut self, primary: u64, page: u64, mask: u64, borrows: bool, batch: &mut Batch) -> u64 {
        if mask == 0 {
            extend(self.unchanged, page);
            return 0;
        }
        extend(self.changed, page);
        self.stats.pages_changed += 1;
        self.stats.logged_bytes += u64::from(mask.count_ones()) * LINE as u64;
        let bytes = self.shadow.page_bytes(page);
        each_run(mask, |first, count| {
            let target = primary + page * PAGE as u64 + (first * LINE) as u64;
            if borrows {
                return batch.borrow_lines(target, count as u64);
            }
            let run = (u64::MAX >> (64 - count)) << first;
            // SAFETY: a page of the shadow; the batch lies outside.
            unsafe { copy_lines(bytes, run, batch.lines(target, count)) };
        });
        page * PAGE as u64 + u64::from(64 - mask.leading_zeros()) * LINE as u64
    }
}

impl Changes for Comparison<'_> {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64, StoreError> {
        let total = self.ranges.iter().map(|range| range.count).sum();
        let (start, begin) = (self.stats.start(), (total >= MANY).then(Instant::now));
        self.stats.pages_compared += total;
        let pages = Pages {
            shadow: self.shadow,
            primary: self.primary,
            slow: primary,
            samples: batch.may_borrow() && total >= MASKS_FROM,
        };
        let (start_at, mut fresh) = (primary.start(), Fresh::new(primary.room()));
        // A sealed page is encrypted whole; other threads may be storing to its other lines.
        let shadow = self.shadow;
        let whole = primary.is_sealed();
        let lines_of = |page: u64, mask: u64| {
            if whole && mask != 0 && shadow.lines(page) == u64::MAX { u64::MAX } else { mask }
        };
        let mut end = 0;
        let threads = threads_for(total);
        if threads > 1 || (batch.may_borrow() && total >= MASKS_FROM) {
            let masks = pages.compare_together(self.ranges, total, threads, &mut fresh)?;
            let lines: u64 = masks.iter().map(|mask| u64::from(mask.count_ones())).sum();
            let borrows = batch.may_borrow() && lines >= BORROW_FROM;
            let all = self.ranges.iter().flat_map(|range| range.start..range.end());
            for (page, mask) in all.zip(masks) {
                end = end.max(self.take(start_at, page, lines_of(page, mask), borrows, batch));
            }
        } else {
            let ranges = self.ranges;
            pages.compare(ranges, &mut fresh, |page, mask| {
                end = end.max(self.take(start_at, page, lines_of(page, mask), false, batch));
            })?;
        }
        *self.pace = begin.map(|begin| (total, begin.elapsed()));
        for (page, image) in fresh.pages {
            primary.keep(page, image);
        }
        self.stats.pages_read += fresh.read;
        self.stats.pages_kept = primary.kept() as u64;
        self.stats.compared(start);
        Ok(end)
    }
}
