//! Copies of some pages of a heap, on which a change of its own data is made before it becomes the
//! words of a transaction.
//!
//! A page without a copy cannot be accessed: that fails, and is noted, so that the maker of the
//! change gets the page and makes it again (`words/prepare.rs`). So the rules of pages, directory
//! and roots are the ones of every heap.

use super::error::{Result, damaged};
use super::layout::PAGE;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Words of a page.
const WORDS: usize = PAGE as usize / 8;

/// Successive pages.
struct Run {
    before: Vec<u64>,
    now: Box<[AtomicU64]>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Copies {
    /// Keyed by the number of the first page. They do not overlap.
    runs: BTreeMap<u64, Run>,
    absent: Mutex<Option<Range<u64>>>,
}

impl Copies {
    /// Copies of runs of pages, each given by the number of its first page and its words.
    pub(super) fn of(pages: &BTreeMap<u64, Vec<u64>>) -> Copies {
        let run = |words: &Vec<u64>| Run {
            before: words.clone(),
            now: words.iter().map(|word| AtomicU64::new(*word)).collect(),
        };
        let runs = pages.iter().map(|(first, words)| (*first, run(words))).collect();
        Copies { runs, absent: Mutex::default() }
    }

    /// Address of the copy of `len` bytes, which lie in the heap.
    pub(super) fn within(&self, offset: u64, len: usize) -> Result<*mut u8> {
        let pages = offset / PAGE..(offset + len.max(1) as u64).div_ceil(PAGE);
        if let Some((first, run)) = self.runs.range(..=pages.start).next_back()
            && pages.end <= first + (run.now.len() / WORDS) as u64
        {
            let start = run.now.as_ptr().cast_mut().cast::<u8>();
            return Ok(start.wrapping_add((offset - first * PAGE) as usize));
        }
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(pages);
        damaged(offset, "a page of which no copy was made")
    }

    /// The first pages that were accessed without a copy.
    pub(super) fn absent(&self) -> Option<Range<u64>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Words that are not as they were, by offset.
    pub(super) fn changes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().flat_map(|(first, run)| {
            let words = (first * PAGE..).step_by(8).zip(run.before.iter().zip(&run.now));
            words.filter_map(|(offset, (before, now))| {
                let now = now.load(Relaxed);
                (now != *before).then_some((offset, now))
            })
        })
    }
}
