//! Comparing dirty pages with the primary, and handing the lines that differ to the batch.

#![allow(unsafe_code)]

use super::stats::PsyncStats;
use crate::dirty::PageRange;
use crate::shadow::{Shadow, copy_lines, each_run, lines_changed, lines_changed_raw};
use crate::sys::PAGE;
use indelible_store::error::StoreError;
use indelible_store::lane::Batch;
use indelible_store::medium::{Device, MediumError};
use indelible_store::store::Changes;

const LINE: usize = 64;
/// Pages from which on comparing is shared among cores: below, starting a thread costs more.
const PARALLEL_FROM: u64 = 2048;
/// Pages of the primary read at a time, where it is not memory.
const READ_PAGES: u64 = 16;

/// The dirty pages of one object, about to be compared.
pub(super) struct Comparison<'a> {
    pub(super) shadow: &'a Shadow,
    /// The primary where the medium is memory, else null.
    pub(super) primary: *const u8,
    pub(super) device: &'a dyn Device,
    pub(super) ranges: &'a [PageRange],
    pub(super) changed: &'a mut Vec<PageRange>,
    pub(super) unchanged: &'a mut Vec<PageRange>,
    pub(super) stats: &'a mut PsyncStats,
}

/// What comparing needs, in a form that threads can share.
#[derive(Clone, Copy)]
struct Pages<'a> {
    shadow: &'a Shadow,
    primary: *const u8,
    device: &'a dyn Device,
    /// First byte of the object in the pool.
    offset: u64,
}

// SAFETY: the primary and the shadow's pages are read by assembly, which any thread may do; the
// shadow's other state is not touched through this.
unsafe impl Send for Pages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pages<'_> {}

impl Pages<'_> {
    /// Calls `each(page, mask of changed lines)` for the pages of a range.
    fn compare(&self, range: PageRange, mut each: impl FnMut(u64, u64)) -> Result<(), MediumError> {
        if !self.primary.is_null() {
            for page in range.start..range.end() {
                // SAFETY: a page of the shadow, and the same page of the primary.
                let mask = unsafe {
                    lines_changed_raw(self.shadow.page_bytes(page), self.primary.add(page as usize * PAGE))
                };
                each(page, mask);
            }
            return Ok(());
        }
        let mut buffer = [0; READ_PAGES as usize * PAGE];
        let mut page = range.start;
        while page < range.end() {
            let count = (range.end() - page).min(READ_PAGES);
            let bytes = &mut buffer[..count as usize * PAGE];
            self.device.read(self.offset + page * PAGE as u64, bytes)?;
            for (primary, _) in bytes.as_chunks::<PAGE>().0.iter().zip(0..count) {
                // SAFETY: a page of the shadow.
                each(page, unsafe { lines_changed(self.shadow.page_bytes(page), primary) });
                page += 1;
            }
        }
        Ok(())
    }

    /// The masks of all pages of the ranges, in order, found by several cores.
    fn compare_on_all_cores(&self, ranges: &[PageRange], total: u64) -> Result<Vec<u64>, MediumError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8) as u64;
        let share = total.div_ceil(cores);
        let pieces: Vec<Vec<PageRange>> = split(ranges, share);
        std::thread::scope(|scope| {
            let threads: Vec<_> = pieces
                .iter()
                .map(|piece| {
                    let pages = *self;
                    scope.spawn(move || {
                        let mut masks = Vec::with_capacity(share as usize);
                        for range in piece {
                            pages.compare(*range, |_, mask| masks.push(mask))?;
                        }
                        Ok::<_, MediumError>(masks)
                    })
                })
                .collect();
            let mut all = Vec::with_capacity(total as usize);
            for thread in threads {
                match thread.join() {
                    Ok(masks) => all.extend(masks?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }
}

/// Cuts the ranges into pieces of `share` pages.
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

/// Appends a page to runs of pages.
fn extend(runs: &mut Vec<PageRange>, page: u64) {
    match runs.last_mut() {
        Some(last) if last.end() == page => last.count += 1,
        _ => runs.push(PageRange { start: page, count: 1 }),
    }
}

impl Comparison<'_> {
    /// Hands the changed lines of a page to the batch; returns where the last of them ends.
    #[inline]
    fn take(&mut self, primary: u64, page: u64, mask: u64, batch: &mut Batch) -> u64 {
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
            let run = (u64::MAX >> (64 - count)) << first;
            // SAFETY: a page of the shadow; the batch lies outside.
            unsafe { copy_lines(bytes, run, batch.lines(target, count)) };
        });
        page * PAGE as u64 + u64::from(64 - mask.leading_zeros()) * LINE as u64
    }
}

impl Changes for Comparison<'_> {
    fn collect(&mut self, primary: u64, batch: &mut Batch) -> Result<u64, StoreError> {
        let start = self.stats.start();
        let total = self.ranges.iter().map(|range| range.count).sum();
        self.stats.pages_compared += total;
        let pages =
            Pages { shadow: self.shadow, primary: self.primary, device: self.device, offset: primary };
        let mut end = 0;
        if total >= PARALLEL_FROM {
            let masks = pages.compare_on_all_cores(self.ranges, total)?;
            let all = self.ranges.iter().flat_map(|range| range.start..range.end());
            for (page, mask) in all.zip(masks) {
                end = end.max(self.take(primary, page, mask, batch));
            }
        } else {
            for range in self.ranges {
                pages.compare(*range, |page, mask| end = end.max(self.take(primary, page, mask, batch)))?;
            }
        }
        self.stats.compared(start);
        Ok(end)
    }
}
