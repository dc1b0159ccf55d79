//! The page cache of an object's primary: pages as last psynced.
//!
//! Where each access to the medium is a system call, changed pages are cached: comparing reads no
//! medium, and pending lines are written by page.
//!
//! With explicit tracking, only a few lines of a page are cached.
//!
//! Invariants:
//! 1. In its `known` lines, a cached page equals the object's page at the newest durable batch. The
//!    primary differs at most in `pending` lines, which are known.
//! 2. Each pending line is in a batch of the lane's present generation. Before the lane is voided,
//!    the object taken from it, or the primary read by others, the lines are written out, and a
//!    barrier follows.
//!
//! If all lines of a page are known, pending lines are written together with those between them.

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

/// Most cached pages of an object: 64 MiB.
const LIMIT: usize = 16384;
const PIECE: usize = 64 << 10;
/// More bytes of an uncached page go to the primary.
const FEW: usize = 16 * LINE as usize;

/// A page, aligned to cache lines for fast comparison.
#[derive(Clone, FromBytes, IntoBytes)]
#[repr(C, align(64))]
pub struct PageImage(pub [u8; PAGE as usize]);

struct CachedPage {
    bytes: Box<PageImage>,
    /// Valid lines (bits) of `bytes`.
    known: u64,
    pending: u64,
    used: u64,
}

pub(in crate::store) struct PageCache {
    pages: HashMap<u64, CachedPage>,
    limit: usize,
    round: u64,
}

impl PageCache {
    pub(in crate::store) fn new() -> Self {
        PageCache { pages: HashMap::new(), limit: LIMIT, round: 0 }
    }

    pub(in crate::store) fn set_limit(&mut self, pages: usize) {
        self.limit = pages;
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(in crate::store) fn get(&self, page: u64) -> Option<(&PageImage, u64)> {
        self.pages.get(&page).map(|cached| (&*cached.bytes, cached.known))
    }

    pub(in crate::store) fn room(&self) -> usize {
        self.limit.saturating_sub(self.pages.len())
    }

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

    /// Lays known lines over `bytes`, which were read from the primary at `offset`.
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

    pub(in crate::store) fn apply<'b>(
        &mut self,
        medium: &dyn Medium,
        runs: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> std::result::Result<(), Fatal> {
        self.round += 1;
        for (target, bytes) in runs {
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

    /// Durable after a barrier. After an error, unwritten lines stay pending.
    pub(in crate::store) fn write_out(&mut self, medium: &dyn Medium) -> std::result::Result<(), Fatal> {
        if Mutant::ApplyForgotten.is_on() {
            return Ok(());
        }
        self.write_out_those(medium, |_, _| true)
    }

    pub(in crate::store) fn written_out(&mut self) {
        self.pages.values_mut().for_each(|cached| cached.pending = 0);
    }

    /// The object moved; nothing is pending.
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

    fn write_lines(&mut self, medium: &dyn Medium, page: u64) -> std::result::Result<(), Fatal> {
        if let Some(cached) = self.pages.get_mut(&page) {
            for run in bytes_of(cached.pending) {
                medium.write(page + run.start as u64, &cached.bytes.0[run])?;
            }
            cached.pending = 0;
        }
        Ok(())
    }

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

fn bytes_of(lines: u64) -> impl Iterator<Item = Range<usize>> {
    runs(lines).map(|run| run.start * LINE as usize..run.end * LINE as usize)
}

fn medium_write(medium: &dyn Medium, offset: u64, bytes: &[u8]) -> std::result::Result<(), Fatal> {
    if bytes.is_empty() { Ok(()) } else { medium.write(offset, bytes) }
}

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
        // Reads keep lines pending.
        let mut image = Box::new(PageImage(filled(9)));
        cache.amend(2 * P, &mut image.0);
        cache.keep(2 * P, image);
        assert_eq!(cache.get(2 * P).unwrap().1, u64::MAX);
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
