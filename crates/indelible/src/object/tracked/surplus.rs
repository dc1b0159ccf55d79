//! Drops the process's own copies of psynced pages beyond the memory limit (docs/decisions/0081).
//!
//! A page goes only if it equals the file in every byte while stores to it wait. So no store is
//! lost, whether it was found, marked or applied, and whatever the caller promised. The next touch
//! maps the file's page, which the kernel can evict.

#![allow(unsafe_code)]

use super::Tracked;
use crate::dirty::{Cut, PageRange};
use crate::error::Cause;
use crate::object::compare::extend;
use crate::shadow::lines_changed;
use crate::sys::PAGE;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::store::{PageImage, Writer};

/// Pages to which stores wait at a time: they are compared in some milliseconds.
const HELD: u64 = 4096;
const READ_PAGES: u64 = 16;

impl Tracked {
    /// Call it after a psync. `beside` storing threads it drops only if a limit was set; while the
    /// mapping shows another extent than the object's, nothing.
    #[inline]
    pub(in crate::object) fn drop_surplus(&mut self, writer: &Writer, beside: bool) -> Result<(), Cause> {
        if self.apart || !self.shadow.as_ref().is_some_and(|shadow| shadow.has_surplus(beside)) {
            return Ok(());
        }
        match writer.apply() {
            // The psync is done; pages wait for the next one.
            Err(StoreError::HeldStill { .. }) => return Ok(()),
            applied => applied?,
        }
        let chosen = self.shadow_mut()?.surplus();
        let mut kept = Vec::new();
        let done = pieces(&chosen).iter().try_for_each(|runs| self.drop_equal(runs, &mut kept));
        self.shadow_mut()?.kept(&kept);
        done
    }

    /// An error of reading or holding costs memory alone.
    fn drop_equal(&mut self, runs: &[PageRange], kept: &mut Vec<PageRange>) -> Result<(), Cause> {
        let ([first, ..], [.., last]) = (runs, runs) else { return Ok(()) };
        let span = PageRange { start: first.start, count: last.end() - first.start };
        if self.shadow_mut()?.hold(false, Cut::Pages(span)).is_err() {
            kept.extend_from_slice(runs);
            return Ok(());
        }
        let late = Mutant::EvictedOutsideGate.is_on();
        let released = if late { self.release() } else { Ok(()) };
        let equal = self.equal(runs, kept);
        if let Ok(shadow) = self.shadow() {
            // SAFETY: compared a moment ago; stores to the whole span have waited since before.
            kept.extend(equal.into_iter().filter(|run| !unsafe { shadow.drop_copies(*run) }));
        }
        if late { released } else { self.release() }
    }

    /// Adds the pages that differ from the file to `kept`.
    fn equal(&self, runs: &[PageRange], kept: &mut Vec<PageRange>) -> Vec<PageRange> {
        let (mut equal, mut images) = (Vec::new(), vec![PageImage([0; PAGE]); READ_PAGES as usize]);
        for run in runs {
            for start in (run.start..run.end()).step_by(READ_PAGES as usize) {
                let count = READ_PAGES.min(run.end() - start);
                let file = self.in_file(PageRange { start, count }, &mut images);
                for page in start..start + count {
                    let same = file.is_some_and(|file| self.is_equal(page, file, page - start));
                    let runs = if same || Mutant::UnsyncedDropped.is_on() { &mut equal } else { &mut *kept };
                    extend(runs, page);
                }
            }
        }
        equal
    }

    /// `None`: unreadable.
    fn in_file(&self, pages: PageRange, images: &mut [PageImage]) -> Option<*const u8> {
        let at = pages.start as usize * PAGE;
        if !self.primary.is_null() {
            return Some(self.primary.wrapping_add(at));
        }
        let (first, len) = (images.as_mut_ptr().cast::<u8>(), pages.count as usize * PAGE);
        debug_assert!(len <= size_of_val(images));
        // SAFETY: bytes of the images, which are nothing else.
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, len) };
        self.pool.media.device().read(self.extent + at as u64, bytes).ok()?;
        Some(first)
    }

    fn is_equal(&self, page: u64, file: *const u8, nth: u64) -> bool {
        let Some(shadow) = &self.shadow else { return false };
        let (ours, file) = (shadow.page_bytes(page), file.wrapping_add(nth as usize * PAGE));
        // SAFETY: a page of the shadow, and one of the extent or of a buffer for as many pages.
        unsafe { lines_changed(ours, file, [ours, file]) == 0 }
    }
}

/// Runs of at most [`HELD`] pages together.
fn pieces(runs: &[PageRange]) -> Vec<Vec<PageRange>> {
    let (mut pieces, mut room) = (vec![Vec::new()], HELD);
    for run in runs {
        let mut start = run.start;
        while start < run.end() {
            if room == 0 {
                pieces.push(Vec::new());
                room = HELD;
            }
            let count = room.min(run.end() - start);
            if let Some(piece) = pieces.last_mut() {
                piece.push(PageRange { start, count });
            }
            (start, room) = (start + count, room - count);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_all_pages_in_order_and_no_more_than_are_held() {
        let run = |start, count| PageRange { start, count };
        assert_eq!(
            pieces(&[run(5, 10), run(100, 2 * HELD)]),
            [
                vec![run(5, 10), run(100, HELD - 10)],
                vec![run(100 + HELD - 10, HELD)],
                vec![run(100 + 2 * HELD - 10, 10)]
            ]
        );
        assert_eq!(pieces(&[]), [vec![]]);
    }
}
