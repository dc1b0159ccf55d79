//! Gathers many small writes, so that a lane in which the same lines were logged again and again costs
//! one write of each to replay, in the order of the medium.
//!
//! Order between writes to the same bytes is kept; order between others is not, which is why this
//! serves redo only, where nothing counts before the barrier behind it.
//!
//! Invariant: `images` holds 512 bytes for each block of `index`, at 512 times the block's number; bit
//! `i` of the block's mask says that line `i` of them is the newest that was put.

use super::{Medium, MediumError};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const L: usize = LINE as usize;
/// Bytes gathered as one: small, as single lines far apart are the case that costs most.
const BLOCK: usize = 512;
/// Memory after which [`Gather::is_full`] asks for a flush: little where crash tests are to meet many.
const LIMIT: usize = if cfg!(any(miri, feature = "mutants")) { 8 << 10 } else { 64 << 20 };
/// Longest write made of gathered lines.
const WRITE: usize = 64 << 10;
/// Longest range prepared for writes at a time.
const SPAN: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct Block {
    number: u32,
    mask: u32,
}

/// Spreads block numbers, which nobody chooses to collide: at worst a lane costs more time.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// Writes waiting to be made.
///
/// Memory: about 550 bytes for each aligned 512 of which a line was put; up to 64 MiB, and what was put
/// since, where the caller flushes as soon as [`is_full`](Gather::is_full) says so.
pub struct Gather<'m> {
    medium: &'m dyn Medium,
    index: HashMap<u64, Block, BuildHasherDefault<Spread>>,
    images: Vec<u8>,
    written: u64,
}

impl<'m> Gather<'m> {
    /// Nothing gathered.
    #[must_use]
    pub fn new(medium: &'m dyn Medium) -> Self {
        Gather { medium, index: HashMap::default(), images: Vec::new(), written: 0 }
    }

    /// Adds a write of whole lines.
    pub fn put(&mut self, mut target: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = target as usize % BLOCK;
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - at));
            let images = &mut self.images;
            let block = self.index.entry(target / BLOCK as u64).or_insert_with(|| {
                let number = (images.len() / BLOCK) as u32;
                images.resize(images.len() + BLOCK, 0);
                Block { number, mask: 0 }
            });
            let place = block.number as usize * BLOCK + at;
            if !(Mutant::OldestWins.is_on() && block.mask & lines(at / L, 1) != 0) {
                images[place..place + now.len()].copy_from_slice(now);
            }
            block.mask |= lines(at / L, now.len() / L);
            target += now.len() as u64;
            bytes = later;
        }
    }

    /// Drops what was put of a range, which the caller writes itself.
    pub fn forget(&mut self, target: u64, len: u64) {
        if self.index.is_empty() {
            return;
        }
        let (mut at, end) = (target, target + len);
        while at < end {
            let (block, first) = (at / BLOCK as u64, at as usize % BLOCK / L);
            let next = end.min((block + 1) * BLOCK as u64);
            if let Some(found) = self.index.get_mut(&block) {
                found.mask &= !lines(first, (next - at) as usize / L);
            }
            at = next;
        }
    }

    /// Whether it is time for a [`flush`](Gather::flush).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.images.len() + self.index.len() * 40 >= LIMIT
    }

    /// Makes the writes, ascending; returns the bytes written since the beginning.
    pub fn flush(&mut self) -> Result<u64, MediumError> {
        let mut blocks: Vec<(u64, Block)> = self.index.drain().filter(|(_, block)| block.mask != 0).collect();
        blocks.sort_unstable_by_key(|(block, _)| *block);
        let mut blocks = &blocks[..];
        while let Some((first, _)) = blocks.first() {
            let start = first * BLOCK as u64 / PAGE * PAGE;
            let mut end = start + PAGE;
            let count = blocks.iter().take_while(|(block, _)| {
                let at = block * BLOCK as u64;
                let joins = at <= end && at < start + SPAN;
                end = if joins { end.max(at / PAGE * PAGE + PAGE) } else { end };
                joins
            });
            let (span, rest) = blocks.split_at(count.count());
            self.medium.prepare(start, end - start)?;
            self.written += write_span(self.medium, span, &self.images)?;
            blocks = rest;
        }
        self.images.clear();
        Ok(self.written)
    }
}

/// Writes the lines of blocks; returns their bytes.
fn write_span(medium: &dyn Medium, span: &[(u64, Block)], images: &[u8]) -> Result<u64, MediumError> {
    let (mut start, mut joined, mut written) = (0, Vec::with_capacity(WRITE), 0);
    for (block, Block { number, mask }) in span {
        for run in runs(u64::from(*mask)) {
            let target = block * BLOCK as u64 + run.start as u64 * LINE;
            if target != start + joined.len() as u64 || joined.len() + BLOCK > WRITE {
                if !joined.is_empty() {
                    medium.write(start, &joined)?;
                }
                joined.clear();
                start = target;
            }
            let place = *number as usize * BLOCK;
            joined.extend_from_slice(&images[place + run.start * L..place + run.end * L]);
            written += run.len() as u64 * LINE;
        }
    }
    medium.write(start, &joined)?;
    Ok(written)
}

/// The mask of `count` lines from `first` on.
fn lines(first: usize, count: usize) -> u32 {
    ((1 << count) - 1) << first
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::volatile::VolatileMedium;

    #[test]
    fn the_newest_of_every_line_arrives_and_nothing_else() {
        const LEN: u64 = if cfg!(miri) { 16 << 10 } else { 256 << 10 };
        const ROUNDS: u64 = if cfg!(miri) { 12 } else { 2000 };
        let medium = VolatileMedium::new(LEN);
        medium.write(0, &[0xee; LEN as usize]).unwrap();
        let mut model = vec![0xee; LEN as usize];
        let mut gather = Gather::new(&medium);
        let mut random = 7_u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % limit
        };
        for round in 0..ROUNDS {
            let first = below(LEN / LINE);
            let count = (below(90) + 1).min(LEN / LINE - first);
            let (from, to) = ((first * LINE) as usize, ((first + count) * LINE) as usize);
            if round % (ROUNDS / 6).min(50) == 1 {
                // What the caller writes itself stays.
                gather.forget(first * LINE, count * LINE);
                medium.write(first * LINE, &vec![1; to - from]).unwrap();
                model[from..to].fill(1);
            } else {
                let bytes: Vec<u8> = (0..to - from).map(|i| (i as u64 / LINE + round) as u8).collect();
                gather.put(first * LINE, &bytes);
                model[from..to].copy_from_slice(&bytes);
            }
            if round % (ROUNDS / 4) == ROUNDS / 4 - 1 {
                gather.flush().unwrap();
                let mut found = vec![0; LEN as usize];
                medium.read(0, &mut found).unwrap();
                assert!(found == model, "after {round} rounds");
            }
        }
    }

    #[test]
    fn memory_is_bounded_by_what_is_touched() {
        let medium = VolatileMedium::new(0);
        let mut gather = Gather::new(&medium);
        // Again and again the same lines: no more memory than once.
        for round in 0..100 {
            (0..8).for_each(|page| gather.put(page * PAGE, &[round; L]));
            assert!(!gather.is_full() && gather.images.len() == 8 * BLOCK);
        }
        let blocks = LIMIT / BLOCK;
        (0..blocks as u64).for_each(|page| gather.put(page * PAGE, &[0; L]));
        assert!(gather.is_full());
    }
}
