//! The pages of an object as last psynced, as far as they are kept in memory: their *twins*.
//!
//! Where every access to the medium is a system call, reading pages back to compare them, and writing
//! each changed line to its place, costs more than the commit itself. So the pages that psyncs change
//! have twins. Comparing with a twin reads no medium, and a batch is applied to twins; the primary gets
//! what gathered in them, page by page, before anything relies on it.
//!
//! Invariants:
//! 1. A twin holds what its page holds as of the newest durable batch. The primary differs from it in
//!    lines of `waiting` at most.
//! 2. Each waiting line is in a batch of the lane's present generation. Whoever voids the lane, takes
//!    the object from it or lets others read the primary writes out before, and a barrier follows.
//!
//! Writing what lies between waiting lines, too, tears nothing: those lines are rewritten as they are.

use crate::error::Result;
use crate::format::{LINE, PAGE};
use crate::medium::{Medium, MediumError};
use crate::mutant::Mutant;
use std::collections::HashMap;
use zerocopy::{FromBytes, IntoBytes};

/// Pages kept of an object at most: 64 MiB.
const LIMIT: usize = 16384;
/// Bytes of neighbouring pages written at a time.
const PIECE: usize = 64 << 10;

/// The bytes of a page, aligned as cache lines are: comparing is faster then.
#[derive(Clone, FromBytes, IntoBytes)]
#[repr(C, align(64))]
pub struct PageImage(pub [u8; PAGE as usize]);

struct Twin {
    bytes: Box<PageImage>,
    /// Lines, by bit, that the primary does not have yet.
    waiting: u64,
    /// When a psync last changed it.
    used: u64,
}

/// See the module. Pages are named by their offset in the pool.
pub(super) struct Twins {
    pages: HashMap<u64, Twin>,
    limit: usize,
    /// Counts applied batches.
    round: u64,
}

impl Twins {
    pub(super) fn new() -> Self {
        Twins { pages: HashMap::new(), limit: LIMIT, round: 0 }
    }

    /// Sets how many pages are kept at most, from the next psync on.
    pub(super) fn set_limit(&mut self, pages: usize) {
        self.limit = pages;
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn get(&self, page: u64) -> Option<&PageImage> {
        self.pages.get(&page).map(|twin| &*twin.bytes)
    }

    /// How many more pages may be kept.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.pages.len())
    }

    /// Keeps a page that has no twin and was just read from the primary. Without room, does nothing.
    pub(super) fn keep(&mut self, page: u64, bytes: Box<PageImage>) {
        if self.room() > 0 {
            self.pages.insert(page, Twin { bytes, waiting: 0, used: self.round });
        }
    }

    /// Brings the waiting lines among `bytes`, read from the primary at `offset`, up to date.
    pub(super) fn amend(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset + bytes.len() as u64;
        let mut page = offset / PAGE * PAGE;
        while page < end {
            if let Some(twin) = self.get(page) {
                let (from, to) = (page.max(offset), (page + PAGE).min(end));
                bytes[(from - offset) as usize..(to - offset) as usize]
                    .copy_from_slice(&twin.0[(from - page) as usize..(to - page) as usize]);
            }
            page += PAGE;
        }
    }

    /// Applies runs of lines of a durable batch: to twins, to the primary where there is none.
    pub(super) fn apply<'b>(
        &mut self,
        medium: &dyn Medium,
        runs: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> std::result::Result<(), MediumError> {
        self.round += 1;
        for (target, bytes) in runs {
            // Neighbouring pages without twins are written together.
            let (mut from, mut at) = (0, 0);
            while at < bytes.len() {
                let start = target + at as u64;
                let page = start / PAGE * PAGE;
                let len = (bytes.len() - at).min((page + PAGE - start) as usize);
                if let Some(twin) = self.pages.get_mut(&page) {
                    medium_write(medium, target + from as u64, &bytes[from..at])?;
                    twin.take((start - page) as usize, &bytes[at..at + len]);
                    twin.used = self.round;
                    from = at + len;
                }
                at += len;
            }
            medium_write(medium, target + from as u64, &bytes[from..])?;
        }
        if self.pages.len() > self.limit / 4 * 3 {
            self.thin_out(medium)?;
        }
        Ok(())
    }

    /// Forgets the half of the pages that psyncs have not changed for longest, but none of the newest.
    fn thin_out(&mut self, medium: &dyn Medium) -> std::result::Result<(), MediumError> {
        let mut ages: Vec<(u64, u64)> = self.pages.iter().map(|(page, twin)| (twin.used, *page)).collect();
        let half = ages.len() / 2;
        let oldest_kept = *ages.select_nth_unstable(half).1;
        let round = self.round;
        let old = |page: u64, twin: &Twin| twin.used < round && (twin.used, page) < oldest_kept;
        self.write_out_those(medium, old)?;
        self.pages.retain(|page, twin| !old(*page, twin));
        Ok(())
    }

    /// Brings every waiting line into the primary: durable after a barrier. What an error leaves waiting
    /// waits on.
    pub(super) fn write_out(&mut self, medium: &dyn Medium) -> std::result::Result<(), MediumError> {
        if Mutant::ApplyForgotten.is_on() {
            return Ok(());
        }
        self.write_out_those(medium, |_, _| true)
    }

    fn write_out_those(
        &mut self,
        medium: &dyn Medium,
        chosen: impl Fn(u64, &Twin) -> bool,
    ) -> std::result::Result<(), MediumError> {
        let waiting = self.pages.iter().filter(|(page, twin)| twin.waiting != 0 && chosen(**page, twin));
        let mut offsets: Vec<u64> = waiting.map(|(page, _)| *page).collect();
        offsets.sort_unstable();
        let mut piece = Vec::new();
        for neighbours in offsets.chunk_by(|a, b| a + PAGE == *b) {
            for pages in neighbours.chunks(PIECE / PAGE as usize) {
                piece.clear();
                let (mut skip, mut spare) = (0, 0);
                for (nth, twin) in pages.iter().filter_map(|page| self.pages.get(page)).enumerate() {
                    if nth == 0 {
                        skip = twin.waiting.trailing_zeros() as usize * LINE as usize;
                    }
                    spare = twin.waiting.leading_zeros() as usize * LINE as usize;
                    piece.extend_from_slice(&twin.bytes.0);
                }
                // From the first waiting line to the last.
                medium.write(pages[0] + skip as u64, &piece[skip..piece.len() - spare])?;
                for page in pages {
                    if let Some(twin) = self.pages.get_mut(page) {
                        twin.waiting = 0;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes out, and forgets every page: the primary is about to change by itself.
    pub(super) fn dissolve(&mut self, medium: &dyn Medium) -> Result<()> {
        self.write_out(medium)?;
        self.pages = HashMap::new();
        Ok(())
    }
}

impl Twin {
    fn take(&mut self, at: usize, lines: &[u8]) {
        self.bytes.0[at..at + lines.len()].copy_from_slice(lines);
        let (first, count) = (at / LINE as usize, lines.len() / LINE as usize);
        self.waiting |= (u64::MAX >> (64 - count)) << first;
    }
}

fn medium_write(medium: &dyn Medium, offset: u64, bytes: &[u8]) -> std::result::Result<(), MediumError> {
    if bytes.is_empty() { Ok(()) } else { medium.write(offset, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::volatile::VolatileMedium;

    const P: u64 = PAGE;

    fn filled(value: u8) -> [u8; PAGE as usize] {
        [value; PAGE as usize]
    }

    fn zeros() -> Box<PageImage> {
        Box::new(PageImage(filled(0)))
    }

    fn read(medium: &VolatileMedium, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        medium.read(offset, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn lines_of_kept_pages_wait_and_others_are_written() {
        let medium = VolatileMedium::new(4 * P);
        let mut twins = Twins::new();
        twins.keep(P, zeros());
        // Three pages at once, of which the middle one is kept.
        let run = vec![7; 3 * P as usize];
        twins.apply(&medium, [(0, &run[..])].into_iter()).unwrap();
        assert_eq!(read(&medium, 0, P as usize), filled(7));
        assert_eq!(read(&medium, P, P as usize), filled(0));
        assert_eq!(read(&medium, 2 * P, P as usize), filled(7));
        let mut seen = read(&medium, P - 64, 4096 + 128);
        twins.amend(P - 64, &mut seen);
        assert!(seen.iter().all(|byte| *byte == 7));
        twins.write_out(&medium).unwrap();
        assert_eq!(read(&medium, P, P as usize), filled(7));
        assert!(twins.get(P).is_some());
        twins.dissolve(&medium).unwrap();
        assert_eq!(twins.len(), 0);
    }

    #[test]
    fn the_longest_unchanged_half_makes_room() {
        let medium = VolatileMedium::new(16 * P);
        let mut twins = Twins::new();
        twins.set_limit(8);
        for page in 0..12 {
            assert!(twins.room() > 0);
            twins.keep(page * P, zeros());
            twins.apply(&medium, [(page * P, &[page as u8 + 1; 64][..])].into_iter()).unwrap();
            assert!(twins.len() <= 6 && twins.get(page * P).is_some(), "{page}");
        }
        for page in 0..12 {
            let kept = twins.get(page * P).is_some();
            assert_eq!(read(&medium, page * P, 1)[0], if kept { 0 } else { page as u8 + 1 }, "{page}");
        }
        twins.write_out(&medium).unwrap();
        (0..12).for_each(|page| assert_eq!(read(&medium, page * P, 1)[0], page as u8 + 1));
    }

    #[test]
    fn pages_that_are_all_in_use_stay() {
        let medium = VolatileMedium::new(16 * P);
        let mut twins = Twins::new();
        twins.set_limit(4);
        (0..16).for_each(|page| twins.keep(page * P, zeros()));
        let run = vec![1; 16 * P as usize];
        for _ in 0..3 {
            twins.apply(&medium, [(0, &run[..])].into_iter()).unwrap();
            assert_eq!(twins.len(), 4);
        }
    }
}
