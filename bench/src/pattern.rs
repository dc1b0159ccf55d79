#![allow(unsafe_code)]

use indelible::Object;

pub const PAGE: usize = 4096;
const PIECE: u64 = 16;
/// Bounds a sparse object's memory.
const PIECES: u64 = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Hot,
    Scattered,
}

impl Pattern {
    pub const ALL: [Pattern; 2] = [Pattern::Hot, Pattern::Scattered];

    pub fn word(self) -> &'static str {
        match self {
            Pattern::Hot => "hot",
            Pattern::Scattered => "scattered",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// splitmix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

pub struct Chooser {
    pattern: Pattern,
    pages: Vec<u64>,
    at: usize,
    random: Random,
    count: usize,
}

impl Chooser {
    pub fn new(pattern: Pattern, count: usize, pages: u64) -> Option<Self> {
        if count as u64 > pages {
            return None;
        }
        let mut random = Random::new(pages);
        let candidates = match pattern {
            Pattern::Hot => {
                let first = (pages - count as u64) / 2;
                (first..first + count as u64).collect()
            }
            Pattern::Scattered => scattered(pages, &mut random),
        };
        Some(Chooser { pattern, pages: candidates, at: 0, random, count })
    }

    pub fn round(&mut self) -> (&[u64], usize) {
        if self.at + self.count > self.pages.len() {
            self.at = 0;
        }
        let from = self.at;
        if self.pattern == Pattern::Scattered {
            self.at += self.count;
        }
        let line = self.random.below(64) as usize;
        (&self.pages[from..from + self.count], line)
    }

    pub fn pieces(&self) -> Vec<u64> {
        let mut pieces: Vec<u64> = self.pages.iter().map(|page| page / PIECE * PIECE).collect();
        pieces.sort_unstable();
        pieces.dedup();
        pieces
    }
}

fn scattered(pages: u64, random: &mut Random) -> Vec<u64> {
    let pieces = pages.div_ceil(PIECE);
    let chosen = pieces.min(PIECES);
    let mut out = Vec::with_capacity((chosen * PIECE).min(pages) as usize);
    for piece in 0..chosen {
        // One per stretch of equal length, so that none is chosen twice.
        let (from, to) = (piece * pieces / chosen, (piece + 1) * pieces / chosen);
        let first = (from + random.below(to - from)) * PIECE;
        out.extend(first..(first + PIECE).min(pages));
    }
    random.shuffle(&mut out);
    out
}

/// Stores unique 8 bytes to one line of each page, and marks them with explicit tracking.
pub fn store(object: &mut Object, pages: &[u64], line: usize, value: u64) {
    let (base, len, marks) = (object.as_mut_ptr(), object.len(), object.needs_marks());
    for page in pages {
        let at = *page as usize * PAGE + line * 64;
        assert!(at + 8 <= len);
        // SAFETY: within the object, which is borrowed exclusively; aligned, being a multiple of
        // 64.
        unsafe { base.add(at).cast::<u64>().write_volatile(value) };
        if marks {
            object.mark_dirty(at..at + 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn hot_pages_are_the_same_and_neighbours() {
        let mut chooser = Chooser::new(Pattern::Hot, 10, 256).unwrap();
        let first = chooser.round().0.to_vec();
        assert_eq!(first, (123..133).collect::<Vec<_>>());
        assert_eq!(chooser.round().0, first);
        assert!(Chooser::new(Pattern::Hot, 257, 256).is_none());
    }

    #[test]
    fn scattered_pages_are_fresh_until_none_is_left() {
        let mut chooser = Chooser::new(Pattern::Scattered, 100, 1000).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            seen.extend(chooser.round().0.iter().copied());
        }
        assert_eq!(seen.len(), 1000);
        assert_eq!(chooser.round().0.len(), 100);
    }

    #[test]
    fn a_huge_object_is_touched_in_a_bounded_number_of_pieces() {
        let pages = (64 << 30) / PAGE as u64;
        let chooser = Chooser::new(Pattern::Scattered, 1, pages).unwrap();
        assert_eq!(chooser.pieces().len() as u64, PIECES);
        assert!(chooser.pages.iter().all(|page| *page < pages));
        let high = chooser.pages.iter().filter(|page| **page > pages / 2).count();
        assert!((chooser.pages.len() / 3..chooser.pages.len() * 2 / 3).contains(&high));
    }
}
