//! Reading a lane: every valid batch, up to the first invalid one.
//!
//! Counts and lengths are checked against the lane before an allocation. A batch larger than the
//! window is read twice, and the sums of its pieces must agree.
//!
//! Memory: a window of `Transfers::scan` bytes (256 KiB), 8 bytes for each window of the largest
//! batch, its sections and runs.

use super::LaneLog;
use crate::error::{Part, Result, StoreError};
use crate::format::batch::{Header, Run, Section};
use crate::format::{LINE, checksum};
use crate::medium::Medium;
use crate::mutant::Mutant;
use std::hash::Hasher;
use twox_hash::XxHash3_64;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A batch found in a lane.
pub struct BatchView<'r, 'm> {
    /// Its sections.
    pub sections: &'r [Section],
    /// Its runs.
    pub runs: &'r [Run],
    /// Its offset in the pool.
    pub at: u64,
    /// The log behind this batch.
    pub log: LaneLog,
    /// Batches below this number were durable before this one was written.
    pub durable: u64,
    reader: &'r mut Reader<'m>,
}

impl BatchView<'_, '_> {
    /// Calls `redo(target, bytes)` for section `index`, in pieces.
    pub fn redo(&mut self, index: usize, redo: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let skipped: usize = self.sections[..index].iter().map(|s| s.runs.get() as usize).sum();
        let count = self.sections[index].runs.get() as usize;
        let mut at =
            self.at + LINE + self.runs[..skipped].iter().map(|run| run.lines.get() * LINE).sum::<u64>();
        for run in &self.runs[skipped..skipped + count] {
            let (mut target, end) = (run.target.get(), run.target.get() + run.lines.get() * LINE);
            while target < end {
                let piece = self.reader.verified(at, end - target)?;
                redo(target, piece)?;
                at += piece.len() as u64;
                target += piece.len() as u64;
            }
        }
        Ok(())
    }
}

struct Reader<'m> {
    medium: &'m dyn Medium,
    seed: u64,
    end: u64,
    start: u64,
    filled: usize,
    window: Vec<u8>,
    /// At most `Transfers::scan`.
    piece: usize,
    /// Most lanes are short or empty.
    ahead: usize,
    /// Log2 of its growth.
    growth: u32,
    /// The last verified body, and its pieces' sums.
    body: std::ops::Range<u64>,
    sums: Vec<u64>,
}

impl<'m> Reader<'m> {
    fn new(medium: &'m dyn Medium, seed: u64, end: u64, growth: u32) -> Self {
        let (window, sums) = (Vec::new(), Vec::new());
        let (piece, ahead) = (medium.transfers().scan(), LINE as usize);
        Reader { medium, seed, end, start: 0, filled: 0, window, piece, ahead, growth, body: 0..0, sums }
    }

    fn has(&self, offset: u64, len: usize) -> bool {
        offset >= self.start && offset + len as u64 <= self.start + self.filled as u64
    }

    fn load(&mut self, offset: u64, len: usize) -> Result<()> {
        self.window.resize(self.window.len().max(len), 0);
        self.filled = 0;
        self.medium.read(offset, &mut self.window[..len])?;
        (self.start, self.filled) = (offset, len);
        Ok(())
    }

    fn window(&self, offset: u64, len: usize) -> &[u8] {
        let at = (offset - self.start) as usize;
        &self.window[at..at + len]
    }

    fn peek(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        if !self.has(offset, len) {
            let want = self.ahead.max(len) as u64;
            self.ahead = (self.ahead << self.growth).min(self.piece);
            self.load(offset, want.min(self.end - offset) as usize)?;
        }
        Ok(self.window(offset, len))
    }

    fn verify(&mut self, offset: u64, len: u64, sum: u64) -> Result<bool> {
        self.body = offset..offset + len;
        self.sums.clear();
        if len <= self.piece as u64 {
            let seed = self.seed;
            return Ok(checksum(seed, &[self.peek(offset, len as usize)?]) == sum);
        }
        let mut hasher = XxHash3_64::with_seed(self.seed);
        for at in self.body.clone().step_by(self.piece) {
            let len = (self.body.end - at).min(self.piece as u64) as usize;
            self.load(at, len)?;
            let piece = self.window(at, len);
            hasher.write(piece);
            let sum = checksum(self.seed, &[piece]);
            self.sums.push(sum);
        }
        Ok(hasher.finish() == sum)
    }

    fn verified(&mut self, offset: u64, most: u64) -> Result<&[u8]> {
        let size = self.piece as u64;
        let piece = (offset - self.body.start) / size;
        let from = self.body.start + piece * size;
        let to = self.body.end.min(from + size);
        let len = most.min(to - offset) as usize;
        if !self.has(offset, len) {
            self.load(from, (to - from) as usize)?;
            let sum = checksum(self.seed, &[self.window(from, self.filled)]);
            if self.sums.get(piece as usize) != Some(&sum) {
                return Err(StoreError::damaged(Part::Record, self.body.start - LINE));
            }
        }
        Ok(self.window(offset, len))
    }
}

/// Visits every valid batch from `log` on, and moves `log` behind the last.
pub fn scan(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    visit: &mut dyn FnMut(&mut BatchView<'_, '_>) -> Result<()>,
) -> Result<()> {
    visit_all(Reader::new(medium, seed, log.offset + log.len, 8), log, visit)
}

/// [`scan`] beside the lane's writer; in memory it reads at most one line behind the batches.
pub fn scan_beside(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    visit: &mut dyn FnMut(&mut BatchView<'_, '_>) -> Result<()>,
) -> Result<()> {
    let growth = if medium.capabilities().byte_addressable { 0 } else { 8 };
    visit_all(Reader::new(medium, seed, log.offset + log.len, growth), log, visit)
}

fn visit_all(
    mut reader: Reader<'_>,
    log: &mut LaneLog,
    visit: &mut dyn FnMut(&mut BatchView<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (medium, seed, end) = (reader.medium, reader.seed, reader.end);
    let (mut sections, mut runs) = (Vec::new(), Vec::new());
    while log.fits(LINE) {
        let at = log.position();
        let room = end - at;
        let Ok(header) = Header::read_from_bytes(reader.peek(at, LINE as usize)?) else { break };
        // Rule L4 of docs/protocol.md.
        let generation = if Mutant::AnyGeneration.is_on() { header.generation.get() } else { log.generation };
        let sequence = if Mutant::AnySequence.is_on() { header.sequence.get() } else { log.sequence };
        if !header.verify(seed, generation, sequence, room) {
            break;
        }
        let intact = reader.verify(at + LINE, header.len.get() - LINE, header.body_sum.get())?;
        if !intact && !Mutant::ShortChecksum.is_on() {
            break;
        }
        let place = at + LINE + u64::from(header.lines.get()) * LINE;
        let place = read_all(&mut reader, place, header.sections.get() as usize, &mut sections)?;
        read_all(&mut reader, place, header.runs.get() as usize, &mut runs)?;
        if !is_consistent(&header, &sections, &runs, medium.len()) {
            break;
        }
        if let Some(unknown) = sections.iter().find(|section| !section.is_known() && !section.is_skippable())
            && !Mutant::UnknownUsed.is_on()
        {
            return Err(StoreError::SectionKind { offset: at, kind: unknown.kind.get() });
        }
        let after = LaneLog { tail: log.tail + header.len.get(), sequence: log.sequence + 1, ..*log };
        let reader = &mut reader;
        let durable = header.durable.get();
        visit(&mut BatchView { sections: &sections, runs: &runs, at, log: after, durable, reader })?;
        *log = after;
    }
    Ok(())
}

fn read_all<T: FromBytes + IntoBytes + Immutable>(
    reader: &mut Reader<'_>,
    mut place: u64,
    count: usize,
    out: &mut Vec<T>,
) -> Result<u64> {
    out.clear();
    out.resize_with(count, T::new_zeroed);
    let mut rest = out.as_mut_slice().as_mut_bytes();
    while !rest.is_empty() {
        let piece = reader.verified(place, rest.len() as u64)?;
        let (now, later) = rest.split_at_mut(piece.len());
        now.copy_from_slice(piece);
        place += now.len() as u64;
        rest = later;
    }
    Ok(place)
}

/// Invariant 2 of `Batch`, and no run leaves the pool.
fn is_consistent(header: &Header, sections: &[Section], runs: &[Run], pool_len: u64) -> bool {
    let claimed: u64 = sections.iter().map(|section| u64::from(section.runs.get())).sum();
    let mut lines = 0_u64;
    let in_pool = runs.iter().all(|run| {
        let (target, count) = (run.target.get(), run.lines.get());
        lines = lines.saturating_add(count);
        let end = count.checked_mul(LINE).and_then(|len| target.checked_add(len));
        target.is_multiple_of(LINE) && end.is_some_and(|end| end <= pool_len)
    });
    in_pool && claimed == runs.len() as u64 && lines == u64::from(header.lines.get())
}

#[cfg(test)]
mod tests;
