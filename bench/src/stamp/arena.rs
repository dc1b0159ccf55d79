//! Blocks of words, allocated and freed in transactions; an abort frees its blocks.
//!
//! Each thread has its own share, so that threads do not conflict.

use super::memory::{LINE, Outcome, Stop, Words, Worker};

/// Words of a share's head: the first unused word, the end, free lists by size.
const HEAD: u64 = 3 * LINE;
/// Up to here each number of words is a size; larger sizes are powers of two.
const EXACT: u64 = 16;
const LARGEST: u64 = 512;

/// The words from `at` to `end`. The loading thread has one half, the threads share the other.
#[derive(Clone, Copy)]
pub struct Arena {
    at: u64,
    end: u64,
    threads: u64,
}

#[derive(Clone, Copy)]
pub struct Heap(u64);

impl Arena {
    pub fn new(at: u64, end: u64, threads: usize) -> Self {
        Arena { at: at.next_multiple_of(LINE), end, threads: threads as u64 }
    }

    pub fn loader(&self) -> Heap {
        Heap(self.at)
    }

    pub fn heap(&self, number: usize) -> Heap {
        Heap(self.at + (number as u64 + 1) * HEAD)
    }

    pub fn load<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let first = self.at + (self.threads + 1) * HEAD;
        let middle = (first + (self.end - first) / 2).next_multiple_of(LINE);
        let each = (self.end - middle) / self.threads / LINE * LINE;
        worker.atomically(|tx| {
            let mut share = |number: u64, from: u64, to: u64| {
                tx.set(self.at + number * HEAD, from)?;
                tx.set(self.at + number * HEAD + 1, to)
            };
            share(0, first, middle)?;
            (0..self.threads).try_for_each(|number| {
                let from = middle + number * each;
                share(number + 1, from, from + each)
            })
        })
    }
}

impl Heap {
    fn list(self, words: u64) -> (u64, u64) {
        debug_assert!(words > 0 && words <= LARGEST);
        if words <= EXACT {
            return (self.0 + 1 + words, words);
        }
        let bits = u64::from(u64::BITS - (words - 1).leading_zeros());
        (self.0 + 1 + EXACT + bits - u64::from(EXACT.trailing_zeros()), 1 << bits)
    }

    pub fn alloc<T: Words>(self, tx: &mut T, words: u64) -> Outcome<u64> {
        let (list, words) = self.list(words);
        let free = tx.get(list)?;
        if free != 0 {
            let next = tx.get(free)?;
            tx.set(list, next)?;
            return Ok(free);
        }
        let (at, end) = (tx.get(self.0)?, tx.get(self.0 + 1)?);
        if at + words > end {
            return Err(Stop::Wrong("a thread's share of the memory is full".into()));
        }
        tx.set(self.0, at + words)?;
        Ok(at)
    }

    pub fn free<T: Words>(self, tx: &mut T, block: u64, words: u64) -> Outcome<()> {
        let (list, _) = self.list(words);
        let next = tx.get(list)?;
        tx.set(block, next)?;
        tx.set(list, block)
    }
}
