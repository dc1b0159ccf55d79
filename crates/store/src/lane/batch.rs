//! Invariants:
//! 1. Unless lines were borrowed, `bytes` is the header's line and the data lines, and after `seal`
//!    the sections and runs: what the lane gets. An empty batch may own no memory.
//! 2. The runs, in order, cover the data lines exactly; the sections, in order, cover the runs.
//! 3. Once a line was borrowed, all lines come from the source: after `seal`, `bytes` is the
//!    header's line, the sections and the runs.

use crate::format::batch::{Header, MAGIC, Run, Section};
use crate::format::{LINE, checksum};
use crate::mutant::Mutant;
use std::ops::Range;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

const L: usize = LINE as usize;

/// A batch under construction, or sealed; `clear` keeps its memory.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    runs: Vec<Run>,
    sections: Vec<Section>,
    data_end: usize,
    may_borrow: bool,
    borrowed: u64,
    /// Freed memory must be wiped.
    secret: bool,
    header: Header,
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Batch {
            bytes: Vec::new(),
            runs: Vec::new(),
            sections: Vec::new(),
            data_end: L,
            may_borrow: false,
            borrowed: 0,
            secret: false,
            header: Header::default(),
        }
    }

    pub(crate) fn secret() -> Self {
        Batch { secret: true, ..Batch::new() }
    }

    /// Empties the batch; keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(L);
        self.runs.clear();
        self.sections.clear();
        self.data_end = L;
        self.may_borrow = false;
        self.borrowed = 0;
    }

    /// Whether lines may be [borrowed](Self::borrow_lines).
    #[must_use]
    pub fn may_borrow(&self) -> bool {
        self.may_borrow
    }

    pub(crate) fn set_may_borrow(&mut self, may: bool) {
        self.may_borrow = may;
    }

    pub(crate) fn is_borrowed(&self) -> bool {
        self.borrowed > 0
    }

    /// Starts a section for the following lines.
    pub fn begin(&mut self, kind: u16, entry: u64, binding: u64) {
        self.sections.push(Section {
            kind: U16::new(kind),
            entry: U64::new(entry),
            binding: U64::new(binding),
            ..Section::default()
        });
    }

    /// Sets the object's progress in the current section.
    pub fn set_progress(&mut self, published: u64, psyncs: u64, direct: u64) {
        if let Some(section) = self.sections.last_mut() {
            section.published = U64::new(published);
            section.psyncs = U64::new(psyncs);
            section.direct = U64::new(direct);
        }
    }

    /// Appends `lines` lines for line-aligned `target`; returns them to be filled.
    pub fn lines(&mut self, target: u64, lines: usize) -> &mut [u8] {
        debug_assert!(target.is_multiple_of(LINE) && !self.sections.is_empty());
        let start = self.data_end;
        self.data_end = start + lines * L;
        if self.secret && self.bytes.capacity() < self.data_end {
            let mut larger = Vec::with_capacity(2 * self.data_end);
            larger.extend_from_slice(&self.bytes);
            self.wipe();
            self.bytes = larger;
        }
        self.bytes.resize(self.data_end, 0);
        self.run(target, lines as u64);
        &mut self.bytes[start..]
    }

    /// Appends `lines` lines for `target` from the [`BatchSource`](super::BatchSource).
    ///
    /// # Panics
    /// Unless the batch [may borrow](Self::may_borrow).
    pub fn borrow_lines(&mut self, target: u64, lines: u64) {
        assert!(self.may_borrow, "the psync has no source of lines");
        self.borrowed += lines;
        self.run(target, lines);
    }

    fn run(&mut self, target: u64, lines: u64) {
        let section = self.sections.last_mut();
        let continues = section.as_ref().is_some_and(|section| section.runs.get() > 0)
            && self.runs.last().is_some_and(|run| run.target.get() + run.lines.get() * LINE == target);
        match (continues, self.runs.last_mut(), section) {
            (true, Some(run), _) => run.lines = U64::new(run.lines.get() + lines),
            (_, _, Some(section)) => {
                section.runs = U32::new(section.runs.get() + 1);
                self.runs.push(Run { target: U64::new(target), lines: U64::new(lines) });
            }
            _ => {}
        }
    }

    /// Appends whole lines.
    pub fn copy_lines(&mut self, target: u64, bytes: &[u8]) {
        self.lines(target, bytes.len() / L).copy_from_slice(bytes);
    }

    /// Drops the current section, which has no lines.
    pub fn cancel(&mut self) {
        if self.sections.last().is_some_and(|section| section.runs.get() == 0) {
            self.sections.pop();
        }
    }

    /// Destinations of the data: (offset in the pool, lines).
    pub fn targets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|run| (run.target.get(), run.lines.get()))
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Length the batch will have in the lane.
    #[must_use]
    pub fn sealed_len(&self) -> u64 {
        let tail = size_of_val(&self.sections[..]) + size_of_val(&self.runs[..]);
        LINE + self.data_len() + (tail.next_multiple_of(L)) as u64
    }

    pub(crate) fn wipe(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
    }

    /// Whether the batch has no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data_len() == 0
    }

    /// The sections so far.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Bytes of data.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        (self.data_end - L) as u64 + self.borrowed * LINE
    }

    pub(crate) fn count(&self) -> u64 {
        self.data_len() / LINE
    }

    pub(crate) fn seal(&mut self, seed: u64) {
        self.bytes.resize(if self.is_borrowed() { L } else { self.data_end }, 0);
        self.bytes.extend_from_slice(self.sections.as_bytes());
        self.bytes.extend_from_slice(self.runs.as_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(L), 0);
        self.header = Header {
            magic: U32::new(MAGIC),
            sections: U32::new(self.sections.len() as u32),
            body_sum: U64::new(0),
            len: U64::new(self.sealed_len()),
            runs: U32::new(self.runs.len() as u32),
            lines: U32::new(self.count() as u32),
            ..Header::default()
        };
        if !self.is_borrowed() {
            self.set_body_sum(checksum(seed, &[&self.bytes[L..]]));
        }
    }

    pub(crate) fn set_body_sum(&mut self, sum: u64) {
        self.header.body_sum = U64::new(if Mutant::ShortChecksum.is_on() { 0 } else { sum });
    }

    pub(crate) fn tail(&self) -> &[u8] {
        &self.bytes[L..]
    }

    pub(crate) fn len(&self) -> u64 {
        self.header.len.get()
    }

    /// Returns the batch's bytes for this place in a lane, without borrowed lines. Batches before
    /// `durable` are durable.
    pub(crate) fn stamp(&mut self, seed: u64, generation: u64, sequence: u64, durable: u64) -> &[u8] {
        self.header.durable = U64::new(durable);
        self.header.generation = U64::new(generation);
        self.header.sequence = U64::new(sequence);
        self.header.head_sum = U64::new(self.header.sum(seed));
        self.bytes[..L].copy_from_slice(self.header.as_bytes());
        &self.bytes
    }

    /// The stamped header's own checksum.
    pub(crate) fn head_sum(&self) -> u64 {
        self.header.head_sum.get()
    }

    pub(crate) fn redo(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut at = L;
        self.runs.iter().map(move |run| {
            let len = (run.lines.get() * LINE) as usize;
            let data = &self.bytes[at..at + len];
            at += len;
            (run.target.get(), data)
        })
    }

    /// Targets (offset in the pool, lines) of the batch's lines in `range`, in pieces of at most
    /// `most`.
    pub(crate) fn pieces(&self, range: Range<u64>, most: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut first = 0;
        self.targets().flat_map(move |(target, lines)| {
            let (from, to) = (range.start.max(first), range.end.min(first + lines));
            let skipped = from - first;
            first += lines;
            (from..to)
                .step_by(most as usize)
                .map(move |at| (target + (skipped + at - from) * LINE, most.min(to - at)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_lines_of_the_range_in_order() {
        let mut batch = Batch::new();
        batch.begin(1, 0, 0);
        batch.lines(6400, 3);
        batch.lines(64_000, 10);
        batch.lines(0, 1);
        for from in 0..=14 {
            for to in from..=14 {
                let line = |target, line| target + line * LINE;
                let mut expected: Vec<u64> = (0..3).map(|at| line(6400, at)).collect();
                expected.extend((0..10).map(|at| line(64_000, at)));
                expected.push(0);
                let pieces: Vec<_> = batch.pieces(from..to, 4).collect();
                let found: Vec<u64> = pieces
                    .iter()
                    .flat_map(|(target, lines)| (0..*lines).map(|at| line(*target, at)))
                    .collect();
                assert_eq!(found, expected[from as usize..to as usize], "{from}..{to}");
                assert!(pieces.iter().all(|(_, lines)| (1..=4).contains(lines)));
            }
        }
    }
}
