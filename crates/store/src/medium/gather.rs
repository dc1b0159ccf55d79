//! Gathers many small writes by page, so that a lane in which the same lines were logged again and
//! again costs one write a page to replay.
//!
//! Order between writes to the same bytes is kept; order between pages is not, which is why this
//! serves redo only, where nothing counts before the barrier behind it.

use super::Medium;
use super::MediumError;
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::HashMap;

/// Memory it may take before it writes out: 64 MiB of pages.
const LIMIT: usize = 16384;

struct Image {
    lines: u64,
    bytes: Box<[u8; PAGE as usize]>,
}

/// Writes waiting to be made.
pub struct Gather<'m> {
    medium: &'m dyn Medium,
    pages: HashMap<u64, Image>,
    written: u64,
}

impl<'m> Gather<'m> {
    /// Nothing gathered.
    #[must_use]
    pub fn new(medium: &'m dyn Medium) -> Self {
        Gather { medium, pages: HashMap::new(), written: 0 }
    }

    /// Adds a write of whole lines.
    pub fn put(&mut self, mut target: u64, mut bytes: &[u8]) -> Result<(), MediumError> {
        while !bytes.is_empty() {
            let page = target / PAGE * PAGE;
            let at = (target - page) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE as usize - at));
            if self.pages.len() >= LIMIT && !self.pages.contains_key(&page) {
                self.write_out()?;
            }
            let image = self
                .pages
                .entry(page)
                .or_insert_with(|| Image { lines: 0, bytes: Box::new([0; PAGE as usize]) });
            if !(Mutant::OldestWins.is_on() && image.lines >> (at / LINE as usize) & 1 == 1) {
                image.bytes[at..at + now.len()].copy_from_slice(now);
            }
            for line in at / LINE as usize..(at + now.len()) / LINE as usize {
                image.lines |= 1 << line;
            }
            target += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Makes the writes; returns the bytes written since the beginning.
    pub fn flush(&mut self) -> Result<u64, MediumError> {
        self.write_out()?;
        Ok(self.written)
    }

    fn write_out(&mut self) -> Result<(), MediumError> {
        let mut offsets: Vec<u64> = self.pages.keys().copied().collect();
        offsets.sort_unstable();
        for page in offsets {
            let image = &self.pages[&page];
            for run in runs(image.lines) {
                let bytes = &image.bytes[run.start * LINE as usize..run.end * LINE as usize];
                let target = page + run.start as u64 * LINE;
                self.medium.reserve(target, bytes.len() as u64)?;
                self.medium.write(target, bytes)?;
                self.written += bytes.len() as u64;
            }
        }
        self.pages.clear();
        Ok(())
    }
}

/// The runs of set bits, ascending.
pub fn runs(mut bits: u64) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut base = 0;
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let gap = bits.trailing_zeros();
        bits >>= gap;
        let len = bits.trailing_ones();
        bits = if len == 64 { 0 } else { bits >> len };
        let start = base + gap as usize;
        base = start + len as usize;
        Some(start..base)
    })
}
