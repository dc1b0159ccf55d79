//! The page cache of an object's primary: pages as last psynced, kept in memory.
//!
//! If every access to the medium is a system call, reading pages back to compare them, and writing
//! each changed line to its place, costs more than the commit itself. So the pages that psyncs
//! change are cached. Comparing with a cached page reads no medium, and a batch is applied to
//! cached pages; pending lines are written to the primary page by page, before anything relies on
//! it.
//!
//! With explicit tracking no page must be read to find changed lines: a few lines of such pages are
//! cached, and the primary has the others.
//!
//! Invariants:
//! 1. In its `known` lines, a cached page equals the object's page as of the newest durable batch.
//!    The primary differs from that in lines of `pending` at most, which are known.
//! 2. Each pending line is in a batch of the lane's present generation. Before the lane is voided,
//!    the object is taken from it or others may read the primary, the lines are written out, and a
//!    barrier follows.
//!
//! A run of pending lines may be written together with the lines between them, which are rewritten
//! as they are, if all lines of the page are known.

use crate::error::Result;
use crate::format::{LINE, PAGE};
use crate::medium::{Fatal, Medium, runs};
use crate::mutant::Mutant;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Pages kept of an object at most: 64 MiB.
const LIMIT: usize = 16384;
/// Bytes of neighbouring pages written at a time.
const PIECE: usize = 64 << 10;
/// Bytes of an uncached page that are worth caching: more are written to the primary at once.
const FEW: usize = 16 * LINE as usize;

/// The bytes of a page, aligned as cache lines are: comparing is faster then.
#[derive(Clone, FromBytes, IntoBytes)]
#[repr(C, align(64))]
pub struct PageImage(pub [u8; PAGE as usize]);

struct CachedPage {
    bytes: Box<PageImage>,
    /// Lines, by bit, that `bytes` has.
    known: u64,
    /// Lines that the primary does not have yet.
    pending: u64,
    /// When a psync last changed it.
    used: u64,
}

/// See the module. Pages are named by their offset in the pool.
pub(in crate::store) struct PageCache {
    pages: HashMap<u64, CachedPage>,
    limit: usize,
    /// Counts applied batches.
    round: u64,
}

impl PageCache {
    pub(in crate::store) fn new() -> Self {
        PageCache { pages: HashMap::new(), limit: LIMIT, round: 0 }
    }

    /// Sets how many pages are kept at most, from the next psync on.
    pub(in crate::store) fn set_limit(&mut self, pages: usize) {
        self.limit = pages;
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.pages.len()
    }

    /// A cached page, and its known lines, one bit each.
    pub(in crate::store) fn get(&self, page: u64) -> Option<(&PageImage, u64)> {
        self.pages.get(&page).map(|cached| (&*cached.bytes, cached.known))
    }

    /// How many more pages may be kept.
    pub(in crate::store) fn room(&self) -> usize {
        self.limit.saturating_sub(self.pages.len())
    }

    /// Keeps a page as it is, all of it: read from the primary, and brought up to date. Without
    /// room, does nothing.
    pub(in crate::store) fn keep(&mut self, page: u64, bytes: Box<PageImage>) {
        let (room, used) = (self.room() > 0, self.round);
        match self.pages.entry(page) {
            Entry::Occupied(cached) => {
                let cached = cached.into_mut();
                (cached.bytes, cached.known) = (bytes, u64::MAX);
            }
            Entry::Vacant(place) if room => {
                place.insert(CachedPage { bytes, known: u64::MAX, pending: 0, used });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Overwrites `bytes`, read from the primary at `offset`, with the lines that are cached.
    pub(in crate::store) fn amend(&self, offset: u64, bytes: &mut [u8]) {
        let end = offset + bytes.len() as u64;
        let mut page = offset / PAGE * PAGE;
        while page < end {
            if let Some(cached) = self.pages.get(&page) {
                for run in bytes_of(cached.known) {
                    let (from, to) =
                        ((page + run.start as u64).max(offset), (page + run.end as u64).min(end));
                    if from < to {
                        bytes[(from - offset) as usize..(to - offset) as usize]
                            .copy_from_slice(&cached.bytes.0[(from - page) as usize..(to - page) as usize]);
                    }
                }
            }
            page += PAGE;
        }
    }

    /// Applies runs of lines of a durable batch: to cached pages, and to the primary of others.
    pub(in crate::store) fn apply<'b>(
        &mut self,
        medium: &dyn Medium,
        runs: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> std::result::Result<(), Fatal> {
        self.round += 1;
        for (target, bytes) in runs {
            // Neighbouring pages that are not cached are written together.
            let (mut from, mut at) = (0, 0);
            while at < bytes.len() {
                let start = target + at as u64;
                let page = start / PAGE * PAGE;
                let len = (bytes.len() - at).min((page + PAGE - start) as usize);
                if let Some(cached) = self.cached_for(page, len) {
                    medium_write(medium, target + from as u64, &bytes[from..at])?;
                    cached.take((start - page) as usize, &bytes[at..at + len]);
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

    /// The cached page that takes `len` bytes: the one there is, or a new one if they are few.
    fn cached_for(&mut self, page: u64, len: usize) -> Option<&mut CachedPage> {
        let (room, used) = (self.room() > 0, self.round);
        match self.pages.entry(page) {
            Entry::Occupied(cached) => {
                let cached = cached.into_mut();
                cached.used = used;
                Some(cached)
            }
            Entry::Vacant(place) if room && len <= FEW => {
                let bytes = Box::new(PageImage([0; PAGE as usize]));
                Some(place.insert(CachedPage { bytes, known: 0, pending: 0, used }))
            }
            Entry::Vacant(_) => None,
        }
    }

    /// Forgets the half of the pages that psyncs have not changed for longest, but none of the
    /// newest.
    fn thin_out(&mut self, medium: &dyn Medium) -> std::result::Result<(), Fatal> {
        let mut ages: Vec<(u64, u64)> =
            self.pages.iter().map(|(page, cached)| (cached.used, *page)).collect();
        let half = ages.len() / 2;
        let oldest_kept = *ages.select_nth_unstable(half).1;
        let round = self.round;
        let old = |page: u64, cached: &CachedPage| cached.used < round && (cached.used, page) < oldest_kept;
        self.write_out_those(medium, old)?;
        self.pages.retain(|page, cached| !old(*page, cached));
        Ok(())
    }

    /// Brings every pending line into the primary: durable after a barrier. After an error, the
    /// lines not written stay pending.
    pub(in crate::store) fn write_out(&mut self, medium: &dyn Medium) -> std::result::Result<(), Fatal> {
        if Mutant::ApplyForgotten.is_on() {
            return Ok(());
        }
        self.write_out_those(medium, |_, _| true)
    }

    /// The primary has every pending line: another process wrote them out.
    pub(in crate::store) fn written_out(&mut self) {
        self.pages.values_mut().for_each(|cached| cached.pending = 0);
    }

    /// Forgets every page, none of which has a pending line: the object's pages are elsewhere now.
    pub(in crate::store) fn forget(&mut self) {
        debug_assert!(self.pages.values().all(|cached| cached.pending == 0));
        self.pages = HashMap::new();
    }

    fn write_out_those(
        &mut self,
        medium: &dyn Medium,
        chosen: impl Fn(u64, &CachedPage) -> bool,
    ) -> std::result::Result<(), Fatal> {
        let pending =
            self.pages.iter().filter(|(page, cached)| cached.pending != 0 && chosen(**page, cached));
        let mut pages: Vec<(u64, bool)> =
            pending.map(|(page, cached)| (*page, cached.known == u64::MAX)).collect();
        pages.sort_unstable();
        let mut piece = Vec::new();
        for neighbours in pages.chunk_by(|a, b| a.0 + PAGE == b.0 && a.1 && b.1) {
            for pages in neighbours.chunks(PIECE / PAGE as usize) {
                if let [(page, false)] = pages {
                    self.write_lines(medium, *page)?;
                    continue;
                }
                piece.clear();
                let (mut skip, mut spare) = (0, 0);
                for (nth, cached) in pages.iter().filter_map(|(page, _)| self.pages.get(page)).enumerate() {
                    if nth == 0 {
                        skip = cached.pending.trailing_zeros() as usize * LINE as usize;
                    }
                    spare = cached.pending.leading_zeros() as usize * LINE as usize;
                    piece.extend_from_slice(&cached.bytes.0);
                }
                // Spans the first to the last pending line.
                medium.write(pages[0].0 + skip as u64, &piece[skip..piece.len() - spare])?;
                for (page, _) in pages {
                    if let Some(cached) = self.pages.get_mut(page) {
                        cached.pending = 0;
                    }
                }
            }
        }
        Ok(())
    }

    /// Brings the pending lines of a page into the primary, and nothing else.
    fn write_lines(&mut self, medium: &dyn Medium, page: u64) -> std::result::Result<(), Fatal> {
        if let Some(cached) = self.pages.get_mut(&page) {
            for run in bytes_of(cached.pending) {
                medium.write(page + run.start as u64, &cached.bytes.0[run])?;
            }
            cached.pending = 0;
        }
        Ok(())
    }

    /// Writes out, and forgets every page: the primary is about to change by itself.
    pub(in crate::store) fn dissolve(&mut self, medium: &dyn Medium) -> Result<()> {
        self.write_out(medium)?;
        self.pages = HashMap::new();
        Ok(())
    }
}

impl CachedPage {
    fn take(&mut self, at: usize, lines: &[u8]) {
        self.bytes.0[at..at + lines.len()].copy_from_slice(lines);
        let (first, count) = (at / LINE as usize, lines.len() / LINE as usize);
        let taken = (u64::MAX >> (64 - count)) << first;
        self.pending |= taken;
        self.known |= taken;
    }
}

/// The bytes of a page that lines, by bit, are: neighbours together.
fn bytes_of(lines: u64) -> impl Iterator<Item = Range<usize>> {
    runs(lines).map(|run| run.start * LINE as usize..run.end * LINE as usize)
}

fn medium_write(medium: &dyn Medium, offset: u64, bytes: &[u8]) -> std::result::Result<(), Fatal> {
    if bytes.is_empty() { Ok(()) } else { medium.write(offset, bytes) }
}

/// A page cache for a new writer, if reading the medium takes system calls.
pub(in crate::store) fn page_cache_for(medium: &dyn Medium) -> Option<Arc<Mutex<PageCache>>> {
    (!medium.capabilities().byte_addressable).then(|| Arc::new(Mutex::new(PageCache::new())))
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
        let mut cache = PageCache::new();
        cache.keep(P, zeros());
        // Three pages at once, of which the middle one is kept.
        let run = vec![7; 3 * P as usize];
        cache.apply(&medium, [(0, &run[..])].into_iter()).unwrap();
        assert_eq!(read(&medium, 0, P as usize), filled(7));
        assert_eq!(read(&medium, P, P as usize), filled(0));
        assert_eq!(read(&medium, 2 * P, P as usize), filled(7));
        let mut seen = read(&medium, P - 64, 4096 + 128);
        cache.amend(P - 64, &mut seen);
        assert!(seen.iter().all(|byte| *byte == 7));
        cache.write_out(&medium).unwrap();
        assert_eq!(read(&medium, P, P as usize), filled(7));
        assert!(cache.get(P).is_some());
        cache.dissolve(&medium).unwrap();
        assert_eq!(cache.len(), 0);
    }

    /// Pages of which a few lines change take them without being read, and keep the primary's other
    /// lines.
    #[test]
    fn a_few_lines_wait_without_their_page() {
        let medium = VolatileMedium::new(8 * P);
        medium.write(0, &[9; 8 * P as usize]).unwrap();
        let mut cache = PageCache::new();
        cache.keep(P, Box::new(PageImage(filled(9))));
        let few: Vec<(u64, &[u8])> = vec![
            (P - 64, &[1; 128]),
            (2 * P + 128, &[2; 64]),
            (2 * P + 512, &[3; 128]),
            (3 * P + 64, &[4; 64]),
            (3 * P + 256, &[5; 64]),
        ];
        cache.apply(&medium, few.iter().copied()).unwrap();
        assert_eq!(read(&medium, 0, 8 * P as usize), vec![9; 8 * P as usize]);
        let model = |offset: u64, len: usize| {
            let mut bytes = vec![9; 8 * P as usize];
            for (at, lines) in &few {
                bytes[*at as usize..*at as usize + lines.len()].copy_from_slice(lines);
            }
            bytes[offset as usize..offset as usize + len].to_vec()
        };
        for (offset, len) in [(0, 8 * P as usize), (P - 30, 60), (2 * P + 130, 3), (2 * P + 600, 400)] {
            let mut seen = read(&medium, offset, len);
            cache.amend(offset, &mut seen);
            assert_eq!(seen, model(offset, len), "{offset}");
        }
        assert_eq!([0, P, 2 * P].map(|page| cache.get(page).unwrap().1.count_ones()), [1, 64, 3]);
        // Read after all: pending lines stay pending.
        let mut image = Box::new(PageImage(filled(9)));
        cache.amend(2 * P, &mut image.0);
        cache.keep(2 * P, image);
        assert_eq!(cache.get(2 * P).unwrap().1, u64::MAX);
        // A longer run is not worth caching.
        cache.apply(&medium, [(5 * P, &[4; 2048][..])].into_iter()).unwrap();
        assert!(cache.get(5 * P).is_none());
        assert_eq!(read(&medium, 5 * P, 2048), [4; 2048]);
        medium.write(5 * P, &[9; 2048]).unwrap();
        cache.write_out(&medium).unwrap();
        assert_eq!(read(&medium, 0, 8 * P as usize), model(0, 8 * P as usize));
    }

    #[test]
    fn the_longest_unchanged_half_makes_room() {
        let medium = VolatileMedium::new(16 * P);
        let mut cache = PageCache::new();
        cache.set_limit(8);
        for page in 0..12 {
            assert!(cache.room() > 0);
            cache.keep(page * P, zeros());
            cache.apply(&medium, [(page * P, &[page as u8 + 1; 64][..])].into_iter()).unwrap();
            assert!(cache.len() <= 6 && cache.get(page * P).is_some(), "{page}");
        }
        for page in 0..12 {
            let kept = cache.get(page * P).is_some();
            assert_eq!(read(&medium, page * P, 1)[0], if kept { 0 } else { page as u8 + 1 }, "{page}");
        }
        cache.write_out(&medium).unwrap();
        (0..12).for_each(|page| assert_eq!(read(&medium, page * P, 1)[0], page as u8 + 1));
    }

    #[test]
    fn pages_that_are_all_in_use_stay() {
        let medium = VolatileMedium::new(16 * P);
        let mut cache = PageCache::new();
        cache.set_limit(4);
        (0..16).for_each(|page| cache.keep(page * P, zeros()));
        let run = vec![1; 16 * P as usize];
        for _ in 0..3 {
            cache.apply(&medium, [(0, &run[..])].into_iter()).unwrap();
            assert_eq!(cache.len(), 4);
        }
    }
}
