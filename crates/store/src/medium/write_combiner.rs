//! Combines small writes: replay writes repeatedly logged lines once, in the medium's order. Only
//! writes to the same bytes keep their order.

use super::{Fatal, Medium, ReserveError, Runs};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const L: usize = LINE as usize;
const LINES: usize = PAGE as usize / L;
/// Pages per entry of the index.
const GROUP: usize = 16;
const WRITE: usize = 64 << 10;
const SPAN: usize = 256;

/// Collisions only cost time.
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

/// Pending writes.
///
/// Memory: 64 bytes per line, 256 per page and about 128 per group of 16 pages; up to
/// `Transfers::combine` (64 MiB) and the writes since, if the caller flushes once
/// [`is_full`](WriteCombiner::is_full).
pub struct WriteCombiner<'m> {
    medium: &'m dyn Medium,
    index: HashMap<u64, usize, BuildHasherDefault<Spread>>,
    groups: Vec<(u64, [u32; GROUP])>,
    pages: Vec<[u32; LINES]>,
    lines: Vec<[u8; L]>,
    last: usize,
    written: u64,
    record: Option<&'m mut Runs>,
    limit: usize,
}

impl<'m> WriteCombiner<'m> {
    /// An empty combiner.
    #[must_use]
    pub fn new(medium: &'m dyn Medium) -> Self {
        let (groups, pages, lines) = (Vec::new(), Vec::new(), Vec::new());
        let (index, limit) = (HashMap::default(), medium.transfers().combine());
        WriteCombiner { medium, index, groups, pages, lines, last: 0, written: 0, record: None, limit }
    }

    #[must_use]
    pub(crate) fn recording(self, runs: &'m mut Runs) -> Self {
        WriteCombiner { record: Some(runs), ..self }
    }

    /// Adds a write of whole lines.
    pub fn put(&mut self, target: u64, bytes: &[u8]) {
        let (mut at, mut bytes) = (target / LINE, bytes.as_chunks::<L>().0);
        while !bytes.is_empty() {
            let (page, first) = (at / LINES as u64, at as usize % LINES);
            let (now, later) = bytes.split_at(bytes.len().min(LINES - first));
            let number = self.number(page);
            for (slot, line) in self.pages[number][first..].iter_mut().zip(now) {
                if *slot == 0 {
                    self.lines.push(*line);
                    *slot = self.lines.len() as u32;
                } else if !Mutant::OldestWins.is_on() {
                    self.lines[*slot as usize - 1] = *line;
                }
            }
            at += now.len() as u64;
            bytes = later;
        }
    }

    fn number(&mut self, page: u64) -> usize {
        let group = page / GROUP as u64;
        if self.groups.get(self.last).is_none_or(|(last, _)| *last != group) {
            self.last = *self.index.entry(group).or_insert_with(|| {
                self.groups.push((group, [0; GROUP]));
                self.groups.len() - 1
            });
        }
        let number = &mut self.groups[self.last].1[page as usize % GROUP];
        if *number == 0 {
            self.pages.push([0; LINES]);
            *number = self.pages.len() as u32;
        }
        *number as usize - 1
    }

    /// Drops a range of whole lines, which the caller writes.
    pub fn forget(&mut self, target: u64, len: u64) {
        if self.groups.is_empty() {
            return;
        }
        let (mut at, end) = (target / LINE, (target + len) / LINE);
        while at < end {
            let (page, first) = (at / LINES as u64, at as usize % LINES);
            let next = end.min((page + 1) * LINES as u64);
            if let Some(group) = self.index.get(&(page / GROUP as u64))
                && let Some(number) = self.groups[*group].1[page as usize % GROUP].checked_sub(1)
            {
                self.pages[number as usize][first..first + (next - at) as usize].fill(0);
            }
            at = next;
        }
    }

    /// Whether a [`flush`](WriteCombiner::flush) is due.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let lines = self.lines.len() * L;
        lines + self.pages.len() * size_of::<[u32; LINES]>() + self.groups.len() * 128 >= self.limit
    }

    /// Writes all, ascending; returns the bytes written since the beginning.
    pub fn flush(&mut self) -> Result<u64, ReserveError> {
        self.groups.sort_unstable_by_key(|(group, _)| *group);
        let pages = self.groups.iter().flat_map(|(group, numbers)| (group * GROUP as u64..).zip(numbers));
        let pages = pages.filter_map(|(page, number)| Some((page, number.checked_sub(1)? as usize)));
        let pages: Vec<_> = pages.filter(|(_, number)| self.pages[*number] != [0; LINES]).collect();
        for neighbours in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
            for span in neighbours.chunks(SPAN) {
                self.medium.prepare(span[0].0 * PAGE, span.len() as u64 * PAGE)?;
                let written = self.write_span(span)?;
                self.written += written;
            }
        }
        self.index.clear();
        self.groups.clear();
        self.pages.clear();
        self.lines.clear();
        Ok(self.written)
    }

    /// Writes `bytes` at once, and drops earlier lines there.
    pub fn write_past(&mut self, target: u64, bytes: &[u8]) -> Result<(), ReserveError> {
        let len = bytes.len() as u64;
        self.forget(target, len);
        self.medium.prepare(target, len)?;
        self.written += len;
        self.wrote(target, len);
        Ok(self.medium.write(target, bytes)?)
    }

    fn wrote(&mut self, target: u64, len: u64) {
        if let Some(runs) = &mut self.record {
            runs.add(target..target + len);
        }
    }

    fn write_span(&mut self, span: &[(u64, usize)]) -> Result<u64, Fatal> {
        let (mut start, mut joined, mut written) = (0, Vec::with_capacity(WRITE), 0);
        for (page, number) in span {
            let slots = self.pages[*number];
            for (line, slot) in slots.iter().enumerate().filter(|(_, slot)| **slot > 0) {
                let target = page * PAGE + (line * L) as u64;
                if target != start + joined.len() as u64 || joined.len() == WRITE {
                    if !joined.is_empty() {
                        self.medium.write(start, &joined)?;
                        self.wrote(start, joined.len() as u64);
                    }
                    joined.clear();
                    start = target;
                }
                joined.extend_from_slice(&self.lines[*slot as usize - 1]);
                written += LINE;
            }
        }
        self.medium.write(start, &joined)?;
        self.wrote(start, joined.len() as u64);
        Ok(written)
    }
}

/// Runs of set bits, ascending.
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
    use crate::medium::Transfers;
    use crate::medium::volatile::VolatileMedium;

    #[test]
    fn the_newest_of_every_line_arrives_and_nothing_else() {
        const LEN: u64 = if cfg!(miri) { 16 << 10 } else { 256 << 10 };
        const ROUNDS: u64 = if cfg!(miri) { 12 } else { 2000 };
        let medium = VolatileMedium::new(LEN);
        medium.write(0, &[0xee; LEN as usize]).unwrap();
        let mut model = vec![0xee; LEN as usize];
        let mut combiner = WriteCombiner::new(&medium);
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
                combiner.forget(first * LINE, count * LINE);
                medium.write(first * LINE, &vec![1; to - from]).unwrap();
                model[from..to].fill(1);
            } else {
                let bytes: Vec<u8> = (0..to - from).map(|i| (i as u64 / LINE + round) as u8).collect();
                combiner.put(first * LINE, &bytes);
                model[from..to].copy_from_slice(&bytes);
            }
            if round % (ROUNDS / 4) == ROUNDS / 4 - 1 {
                combiner.flush().unwrap();
                let mut found = vec![0; LEN as usize];
                medium.read(0, &mut found).unwrap();
                assert!(found == model, "after {round} rounds");
            }
        }
    }

    #[test]
    fn runs_say_what_was_written_and_are_apart() {
        let medium = VolatileMedium::new(64 << 10);
        let mut runs = Runs::default();
        let mut combiner = WriteCombiner::new(&medium).recording(&mut runs);
        combiner.write_past(8 * LINE, &[1; 40 * L]).unwrap();
        combiner.write_past(10 * LINE, &[1; 2 * L]).unwrap();
        combiner.put(0, &[1; L]);
        combiner.put(48 * LINE, &[1; L]);
        combiner.put(100 * LINE, &[1; 2 * L]);
        combiner.flush().unwrap();
        let runs: Vec<_> = runs.joined().iter().map(|run| run.start / LINE..run.end / LINE).collect();
        assert_eq!(runs, [0..1, 8..49, 100..102]);
    }

    #[test]
    fn memory_is_bounded_by_what_is_touched() {
        bounded(Transfers::SHIPPED.with_combine(8 << 10));
        if !cfg!(miri) {
            bounded(Transfers::SHIPPED);
        }
    }

    fn bounded(transfers: Transfers) {
        let medium = VolatileMedium::with_transfers(0, transfers);
        let mut combiner = WriteCombiner::new(&medium);
        for round in 0..100 {
            (0..8).for_each(|page| combiner.put(page * PAGE, &[round; L]));
            assert!(!combiner.is_full() && (combiner.pages.len(), combiner.lines.len()) == (8, 8));
        }
        let pages = (combiner.limit / (L + size_of::<[u32; LINES]>())) as u64;
        (0..pages).for_each(|page| combiner.put(page * PAGE, &[0; L]));
        assert!(combiner.is_full());
    }
}
