//! Bitmaps over the pages of an object. Their memory is touched only where bits are set, so that a
//! bitmap of a large object costs nothing to make.

use crate::sys::sync::{AtomicU64, Ordering, zeroed};

/// One bit per page, of one owner.
#[derive(Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(pages: usize) -> Bits {
        Bits(vec![0; pages.div_ceil(64)])
    }

    pub(super) fn grow(&mut self, pages: usize) {
        let words = pages.div_ceil(64);
        if words > self.0.len() {
            // Not `resize`, which would touch every word.
            let mut fresh = vec![0; words];
            for (to, from) in fresh.iter_mut().zip(&self.0) {
                if *from != 0 {
                    *to = *from;
                }
            }
            self.0 = fresh;
        }
    }

    #[inline]
    pub(super) fn get(&self, page: usize) -> bool {
        self.0[page / 64] >> (page % 64) & 1 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, page: usize) {
        self.0[page / 64] |= 1 << (page % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, page: usize) {
        self.0[page / 64] &= !(1 << (page % 64));
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Where the run of pages with the same bit as `page` ends, at most at `end`.
    #[inline]
    pub(super) fn run_end(&self, page: usize, end: usize) -> usize {
        let flip = if self.get(page) { u64::MAX } else { 0 };
        let mut at = page;
        while at < end {
            let rest = (self.0[at / 64] ^ flip) >> (at % 64);
            if rest != 0 {
                return (at + rest.trailing_zeros() as usize).min(end);
            }
            at = (at / 64 + 1) * 64;
        }
        end
    }
}

/// One bit per page that a signal handler may set at any time, with levels of summary above, so
/// that finding the set bits costs their number.
///
/// Invariant: a set bit has its word's bit set in every level above, except while the thread that
/// sets it is between the two stores. Only the owner clears.
#[derive(Debug)]
pub(super) struct Tree {
    /// From the pages (first) to a level of few words (last).
    levels: Vec<Box<[AtomicU64]>>,
}

impl Tree {
    pub(super) fn new(pages: usize) -> Tree {
        let mut levels = Vec::new();
        let mut bits = pages.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.push(zeroed(words));
            if words == 1 {
                return Tree { levels };
            }
            bits = words;
        }
    }

    /// Sets a bit. Async-signal-safe.
    pub(super) fn set(&self, page: usize) {
        let mut bit = page;
        for level in &self.levels {
            level[bit / 64].fetch_or(1 << (bit % 64), Ordering::SeqCst);
            bit /= 64;
        }
    }

    /// Clears a bit, and summaries of nothing.
    pub(super) fn clear(&self, page: usize) {
        let mut bit = page;
        for (n, level) in self.levels.iter().enumerate() {
            let mask = 1 << (bit % 64);
            let rest = level[bit / 64].fetch_and(!mask, Ordering::SeqCst) & !mask;
            // A handler may have set a bit below after the summary was found empty, whatever else is set here.
            if n > 0 && self.levels[n - 1][bit].load(Ordering::SeqCst) != 0 {
                level[bit / 64].fetch_or(mask, Ordering::SeqCst);
                return;
            }
            if rest != 0 {
                return;
            }
            bit /= 64;
        }
    }

    /// Calls `each` with every set page in ascending order.
    pub(super) fn for_each(&self, mut each: impl FnMut(usize)) {
        self.descend(self.levels.len() - 1, 0, &mut each);
    }

    fn descend(&self, level: usize, word: usize, each: &mut impl FnMut(usize)) {
        let mut bits = self.levels[level][word].load(Ordering::SeqCst);
        while bits != 0 {
            let bit = word * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if level == 0 {
                each(bit);
            } else {
                self.descend(level - 1, bit, each);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_where_the_bit_changes() {
        let mut bits = Bits::new(300);
        for page in 60..200 {
            bits.set(page);
        }
        assert_eq!(bits.run_end(0, 300), 60);
        assert_eq!(bits.run_end(60, 300), 200);
        assert_eq!(bits.run_end(60, 130), 130);
        assert_eq!(bits.run_end(199, 300), 200);
        assert_eq!(bits.run_end(200, 300), 300);
        bits.grow(1000);
        assert_eq!(bits.run_end(200, 1000), 1000);
        assert!(bits.get(199) && !bits.get(200));
    }

    #[test]
    fn a_tree_finds_what_was_set_and_not_cleared() {
        for pages in [1, 64, 65, 5000, 300_000] {
            let tree = Tree::new(pages);
            let mut model = std::collections::BTreeSet::new();
            let mut seed = pages as u64 + 1;
            for _ in 0..2000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let page = (seed >> 33) as usize % pages;
                if seed >> 63 == 0 {
                    tree.set(page);
                    model.insert(page);
                } else {
                    tree.clear(page);
                    model.remove(&page);
                }
            }
            let mut found = Vec::new();
            tree.for_each(|page| found.push(page));
            assert!(found.iter().eq(model.iter()), "{pages} pages");
        }
    }
}
