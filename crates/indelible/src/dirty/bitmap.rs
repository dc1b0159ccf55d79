//! Bitmaps over the pages of an object, with memory allocated only where bits are set.

use crate::sys::sync::{AtomicU64, Ordering, zeroed};

const BLOCK: usize = 64 * WORDS;
const WORDS: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Bits(Vec<Option<Box<[u64; WORDS]>>>);

impl Bits {
    pub(super) fn new(pages: usize) -> Bits {
        let mut bits = Bits::default();
        bits.grow(pages);
        bits
    }

    pub(super) fn grow(&mut self, pages: usize) {
        let blocks = pages.div_ceil(BLOCK).max(self.0.len());
        self.0.resize_with(blocks, || None);
    }

    #[inline]
    fn word(&self, page: usize) -> u64 {
        self.0[page / BLOCK].as_ref().map_or(0, |block| block[page / 64 % WORDS])
    }

    #[inline]
    pub(super) fn get(&self, page: usize) -> bool {
        self.word(page) >> (page % 64) & 1 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, page: usize) {
        let block = self.0[page / BLOCK].get_or_insert_with(|| Box::new([0; WORDS]));
        block[page / 64 % WORDS] |= 1 << (page % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, page: usize) {
        if let Some(block) = &mut self.0[page / BLOCK] {
            block[page / 64 % WORDS] &= !(1 << (page % 64));
        }
    }

    pub(super) fn count(&self) -> u64 {
        let words = self.0.iter().flatten().flat_map(|block| block.iter());
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    #[inline]
    pub(super) fn run_end(&self, page: usize, end: usize) -> usize {
        let flip = if self.get(page) { u64::MAX } else { 0 };
        let mut at = page;
        while at < end {
            if flip == 0 && self.0[at / BLOCK].is_none() {
                at = (at / BLOCK + 1) * BLOCK;
                continue;
            }
            let rest = (self.word(at) ^ flip) >> (at % 64);
            if rest != 0 {
                return (at + rest.trailing_zeros() as usize).min(end);
            }
            at = (at / 64 + 1) * 64;
        }
        end
    }
}

/// One bit per page that a signal handler may set at any time; summary levels make finding set bits
/// cheap.
///
/// Invariant: a set bit has its word's bit set in every level above, except between the setting
/// thread's two stores. Only the owner clears.
#[derive(Debug)]
pub(super) struct Tree {
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

    pub(super) fn set(&self, page: usize) {
        let mut bit = page;
        for level in &self.levels {
            level[bit / 64].fetch_or(1 << (bit % 64), Ordering::SeqCst);
            bit /= 64;
        }
    }

    pub(super) fn clear(&self, page: usize) {
        let mut bit = page;
        for (n, level) in self.levels.iter().enumerate() {
            let mask = 1 << (bit % 64);
            let rest = level[bit / 64].fetch_and(!mask, Ordering::SeqCst) & !mask;
            // A handler may have set a bit below after the summary was found empty.
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
    fn far_bits_take_no_memory_between_them() {
        let mut bits = Bits::new(1 << 24);
        let pages = [5, BLOCK - 1, BLOCK, 9 * BLOCK + 70, (1 << 24) - 1];
        for page in pages {
            bits.clear(page);
            bits.set(page);
        }
        assert_eq!((bits.count(), bits.0.iter().flatten().count()), (5, 4));
        let (mut at, mut found) = (0, Vec::new());
        while at < 1 << 24 {
            let end = bits.run_end(at, 1 << 24);
            found.extend(if bits.get(at) { at..end } else { 0..0 });
            at = end;
        }
        assert_eq!(found, pages);
        bits.grow(1 << 25);
        assert_eq!(bits.run_end((1 << 24) - 1, 1 << 25), 1 << 24);
        assert_eq!(bits.run_end(1 << 24, 1 << 25), 1 << 25);
        assert!(pages.iter().all(|page| bits.get(*page)));
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
