//! Building a batch in memory.
//!
//! Invariants:
//! 1. `bytes` is the header's line followed by `lines` lines of data, and after `seal` by the
//!    sections and runs: exactly what goes to the lane. Before the first line it may be shorter, so
//!    that an empty batch owns no memory.
//! 2. The runs, in order, cover the data lines exactly; the sections, in order, cover the runs.

use crate::format::batch::{Header, MAGIC, Run, Section};
use crate::format::{LINE, checksum};
use crate::mutant::Mutant;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

const L: usize = LINE as usize;

/// A batch under construction, or sealed. Reusable: `clear` keeps the memory.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    runs: Vec<Run>,
    sections: Vec<Section>,
    /// Length of header and data lines, before `seal` adds the rest.
    data_end: usize,
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
            header: Header::default(),
        }
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(L);
        self.runs.clear();
        self.sections.clear();
        self.data_end = L;
    }

    /// Starts a section; the lines that follow belong to it.
    pub fn begin(&mut self, kind: u32, entry: u64, binding: u64) {
        self.sections.push(Section {
            kind: U32::new(kind),
            entry: U64::new(entry),
            binding: U64::new(binding),
            ..Section::default()
        });
    }

    /// Sets what the current section says of its object's progress.
    pub fn set_progress(&mut self, published: u64, psyncs: u64, direct: u64) {
        if let Some(section) = self.sections.last_mut() {
            section.published = U64::new(published);
            section.psyncs = U64::new(psyncs);
            section.direct = U64::new(direct);
        }
    }

    /// Appends `lines` lines for `target` (a multiple of the line) and returns them to be filled.
    pub fn lines(&mut self, target: u64, lines: usize) -> &mut [u8] {
        debug_assert!(target.is_multiple_of(LINE) && !self.sections.is_empty());
        let start = self.data_end;
        self.data_end = start + lines * L;
        self.bytes.resize(self.data_end, 0);
        let section = self.sections.last_mut();
        let continues = section.as_ref().is_some_and(|section| section.runs.get() > 0)
            && self.runs.last().is_some_and(|run| run.target.get() + run.lines.get() * LINE == target);
        match (continues, self.runs.last_mut(), section) {
            (true, Some(run), _) => run.lines = U64::new(run.lines.get() + lines as u64),
            (_, _, Some(section)) => {
                section.runs = U32::new(section.runs.get() + 1);
                self.runs.push(Run { target: U64::new(target), lines: U64::new(lines as u64) });
            }
            _ => {}
        }
        &mut self.bytes[start..]
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

    /// Where the data goes: (offset in the pool, lines).
    pub fn targets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|run| (run.target.get(), run.lines.get()))
    }

    /// Length the batch will have in the lane.
    #[must_use]
    pub fn sealed_len(&self) -> u64 {
        let tail = size_of_val(&self.sections[..]) + size_of_val(&self.runs[..]);
        (self.data_end + tail).next_multiple_of(L) as u64
    }

    /// Whether the batch has no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data_end == L
    }

    /// The sections so far.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Bytes of data.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        (self.data_end - L) as u64
    }

    /// Completes the body and its checksum. Only `stamp` is missing then.
    pub(crate) fn seal(&mut self, seed: u64) {
        self.bytes.resize(self.data_end, 0);
        self.bytes.extend_from_slice(self.sections.as_bytes());
        self.bytes.extend_from_slice(self.runs.as_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(L), 0);
        self.header = Header {
            magic: U32::new(MAGIC),
            sections: U32::new(self.sections.len() as u32),
            body_sum: U64::new(if Mutant::ShortChecksum.is_on() {
                0
            } else {
                checksum(seed, &[&self.bytes[L..]])
            }),
            len: U64::new(self.bytes.len() as u64),
            runs: U32::new(self.runs.len() as u32),
            lines: U64::new(((self.data_end - L) / L) as u64),
            ..Header::default()
        };
    }

    /// Length in the lane, once sealed.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Puts the batch in its place in a lane's history and returns what to write there.
    /// `joined` batches go before it in the same write.
    pub(crate) fn stamp(&mut self, seed: u64, generation: u64, sequence: u64, joined: u32) -> &[u8] {
        self.header.joined = U32::new(joined);
        self.header.generation = U64::new(generation);
        self.header.sequence = U64::new(sequence);
        self.header.head_sum = U64::new(self.header.sum(seed));
        self.bytes[..L].copy_from_slice(self.header.as_bytes());
        &self.bytes
    }

    /// The runs with their data, in order.
    pub(crate) fn redo(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut at = L;
        self.runs.iter().map(move |run| {
            let len = (run.lines.get() * LINE) as usize;
            let data = &self.bytes[at..at + len];
            at += len;
            (run.target.get(), data)
        })
    }
}
