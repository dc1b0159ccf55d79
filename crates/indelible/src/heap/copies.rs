//! Copies of a heap's pages, on which a transaction's changes are made. Access to a page without a
//! copy fails, and the change is repeated with the page (`words/prepare.rs`).

use super::error::{Result, damaged};
use super::layout::PAGE;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

const WORDS: usize = PAGE as usize / 8;

struct Run {
    before: Vec<u64>,
    now: Box<[AtomicU64]>,
}

#[derive(Default)]
pub(super) struct Copies {
    /// Disjoint, by first page.
    runs: BTreeMap<u64, Run>,
    absent: Mutex<Option<Range<u64>>>,
}

impl Copies {
    pub(super) fn of(pages: &BTreeMap<u64, Vec<u64>>) -> Copies {
        let run = |words: &Vec<u64>| Run {
            before: words.clone(),
            now: words.iter().map(|word| AtomicU64::new(*word)).collect(),
        };
        let runs = pages.iter().map(|(first, words)| (*first, run(words))).collect();
        Copies { runs, absent: Mutex::default() }
    }

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

    pub(super) fn absent(&self) -> Option<Range<u64>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

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
