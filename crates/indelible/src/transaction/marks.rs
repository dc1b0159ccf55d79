//! Lines that commits on demand changed since the last epoch.
//!
//! Two levels: taking costs marked lines only. Several threads mark lines that they own; the thread
//! that takes them is alone.

use crate::mapping::MappingError;
use crate::memory::{Counter, Words};
use crate::sys::PAGE;
use indelible_store::format::LINE;
use std::sync::atomic::{AtomicUsize, Ordering};

const BITS: usize = u64::BITS as usize;

#[derive(Debug)]
pub(super) struct Marks {
    lines: Words,
    words: Words,
    len: AtomicUsize,
    count: Option<Counter>,
}

fn zeros(bits: usize) -> Result<Words, MappingError> {
    Words::zeros(bits.div_ceil(8).next_multiple_of(PAGE))
}

impl Marks {
    pub(super) fn new((len, room): (usize, usize), count: Option<Counter>) -> Result<Marks, MappingError> {
        let lines = room.div_ceil(LINE as usize);
        let (lines, words) = (zeros(lines)?, zeros(lines.div_ceil(BITS))?);
        Ok(Marks { lines, words, len: AtomicUsize::new(len), count })
    }

    /// No thread marks or takes lines.
    pub(super) fn lengthen(&self, len: usize) {
        self.len.store(len, Ordering::Release);
    }

    #[inline]
    pub(super) fn has(&self, line: usize) -> bool {
        self.lines.all()[line / BITS].load(Ordering::Relaxed) >> (line % BITS) & 1 == 1
    }

    pub(super) fn set(&self, line: usize) {
        let (word, bit) = (line / BITS, 1 << (line % BITS));
        let before = self.lines.all()[word].fetch_or(bit, Ordering::Relaxed);
        if before == 0 {
            self.words.all()[word / BITS].fetch_or(1 << (word % BITS), Ordering::Relaxed);
        }
        if let (0, Some(count)) = (before & bit, &self.count) {
            count.get().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// No thread marks any.
    pub(super) fn take(&self, mut each: impl FnMut(usize)) {
        if let Some(count) = &self.count {
            count.get().store(0, Ordering::Relaxed);
        }
        let (lines, all) = (self.lines.all(), self.words.all());
        let used = self.len.load(Ordering::Acquire).div_ceil(LINE as usize * BITS * BITS);
        for (nth, words) in all.iter().take(used).enumerate() {
            if words.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for word in ones(words.swap(0, Ordering::Relaxed)) {
                let word = nth * BITS + word;
                ones(lines[word].swap(0, Ordering::Relaxed)).for_each(|line| each(word * BITS + line));
            }
        }
    }
}

fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_lines_are_taken_once_and_in_order() {
        let len = 64 * 64 * 64 * 3;
        let marks = Marks::new((len, 2 * len), None).unwrap();
        let chosen = [0, 1, 63, 64, 4095, 4096, 64 * 64 * 3 - 1];
        for line in chosen.into_iter().rev().chain([64]) {
            marks.set(line);
            assert!(marks.has(line));
        }
        assert!(!marks.has(2));
        let taken = || {
            let mut taken = Vec::new();
            marks.take(|line| taken.push(line));
            taken
        };
        assert_eq!(taken(), chosen);
        assert!(taken().is_empty() && !marks.has(0));
        marks.lengthen(2 * len);
        marks.set(64 * 64 * 6 - 1);
        assert_eq!(taken(), [64 * 64 * 6 - 1]);
    }
}
