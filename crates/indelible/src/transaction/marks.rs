//! The lines of an object that commits on demand have changed since the last epoch.
//!
//! Two levels, so that taking them costs what is marked. Several threads mark, each lines that it owns; whoever takes them is alone.

use crate::memory::Counter;
use indelible_store::format::LINE;
use std::sync::atomic::{AtomicU64, Ordering};

const BITS: usize = u64::BITS as usize;

/// See the module.
#[derive(Debug)]
pub(super) struct Marks {
    /// A bit for each line.
    lines: Vec<AtomicU64>,
    /// A bit for each word of `lines` that may not be zero.
    words: Vec<AtomicU64>,
    /// How many lines are marked, for other processes.
    count: Option<Counter>,
}

fn zeros(bits: usize) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(bits.div_ceil(BITS)).collect()
}

impl Marks {
    /// For an object of `len` bytes.
    pub(super) fn new(len: usize, count: Option<Counter>) -> Marks {
        let lines = zeros(len / LINE as usize);
        Marks { words: zeros(lines.len()), lines, count }
    }

    /// Whether a line is marked; nobody else marks it meanwhile.
    #[inline]
    pub(super) fn has(&self, line: usize) -> bool {
        self.lines[line / BITS].load(Ordering::Relaxed) >> (line % BITS) & 1 == 1
    }

    /// Marks a line.
    pub(super) fn set(&self, line: usize) {
        let (word, bit) = (line / BITS, 1 << (line % BITS));
        let before = self.lines[word].fetch_or(bit, Ordering::Relaxed);
        if before == 0 {
            self.words[word / BITS].fetch_or(1 << (word % BITS), Ordering::Relaxed);
        }
        if let (0, Some(count)) = (before & bit, &self.count) {
            count.get().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes all marked lines, in order. Nobody marks any meanwhile.
    pub(super) fn take(&self, mut each: impl FnMut(usize)) {
        if let Some(count) = &self.count {
            count.get().store(0, Ordering::Relaxed);
        }
        for (nth, words) in self.words.iter().enumerate() {
            if words.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for word in ones(words.swap(0, Ordering::Relaxed)) {
                let word = nth * BITS + word;
                ones(self.lines[word].swap(0, Ordering::Relaxed)).for_each(|line| each(word * BITS + line));
            }
        }
    }
}

/// The numbers of the bits that are set.
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
        let marks = Marks::new(64 * 64 * 64 * 3, None);
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
    }
}
