//! Reading a lane back: every valid batch in order, up to the first that is not.
//!
//! What is read here is untrusted until both checksums have passed; counts and lengths are checked
//! against the lane before anything is allocated for them.

use super::LaneLog;
use crate::error::Result;
use crate::format::batch::{Header, Run, Section};
use crate::format::{LINE, checksum};
use crate::medium::Medium;
use crate::mutant::Mutant;
use std::hash::Hasher;
use twox_hash::XxHash3_64;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes read from the lane at a time.
const PIECE: usize = 1 << 20;

/// A batch found in a lane.
pub struct BatchView<'r, 'm> {
    /// Its sections.
    pub sections: &'r [Section],
    /// Its runs.
    pub runs: &'r [Run],
    /// Where in the pool it begins.
    pub at: u64,
    reader: &'r mut Reader<'m>,
}

impl BatchView<'_, '_> {
    /// Calls `redo(target, bytes)` for the data of the runs of section `index`, in pieces.
    pub fn redo(&mut self, index: usize, redo: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let skipped: usize = self.sections[..index].iter().map(|s| s.runs.get() as usize).sum();
        let count = self.sections[index].runs.get() as usize;
        let mut at =
            self.at + LINE + self.runs[..skipped].iter().map(|run| run.lines.get() * LINE).sum::<u64>();
        for run in &self.runs[skipped..skipped + count] {
            let (mut target, end) = (run.target.get(), run.target.get() + run.lines.get() * LINE);
            while target < end {
                let piece = self.reader.peek(at, (end - target).min(PIECE as u64) as usize)?;
                redo(target, piece)?;
                at += piece.len() as u64;
                target += piece.len() as u64;
            }
        }
        Ok(())
    }
}

/// A window on the lane, so that small batches do not cost a read each.
struct Reader<'m> {
    medium: &'m dyn Medium,
    /// End of the lane in the pool.
    end: u64,
    start: u64,
    window: Vec<u8>,
}

impl Reader<'_> {
    /// `len` (at most [`PIECE`]) bytes at `offset` of the pool.
    fn peek(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let inside = offset >= self.start && offset + len as u64 <= self.start + self.window.len() as u64;
        if !inside {
            let want = (self.end - offset).min(if len <= 4096 { PIECE } else { len } as u64);
            // A lane in use is mostly short: the first read is small, later ones are not.
            let want = if self.window.is_empty() { want.min(16384).max(len as u64) } else { want };
            self.window.resize(want as usize, 0);
            self.medium.read(offset, &mut self.window)?;
            self.start = offset;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.window[at..at + len])
    }
}

/// Visits every valid batch from `log` on and moves `log` behind the last of them.
pub fn scan(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    visit: &mut dyn FnMut(&mut BatchView<'_, '_>) -> Result<()>,
) -> Result<()> {
    let end = log.offset + log.len;
    let mut reader = Reader { medium, end, start: 0, window: Vec::new() };
    let (mut sections, mut runs) = (Vec::new(), Vec::new());
    while log.fits(LINE) {
        let at = log.position();
        let room = end - at;
        let Ok(header) = Header::read_from_bytes(reader.peek(at, LINE as usize)?) else { break };
        let generation = if Mutant::AnyGeneration.is_on() { header.generation.get() } else { log.generation };
        let sequence = if Mutant::AnySequence.is_on() { header.sequence.get() } else { log.sequence };
        if !header.verify(seed, generation, sequence, room) {
            break;
        }
        if !Mutant::ShortChecksum.is_on() && !body_is_intact(&mut reader, seed, at, &header)? {
            break;
        }
        let mut place = at + LINE + header.lines.get() * LINE;
        place = read_all(&mut reader, place, header.sections.get() as usize, &mut sections)?;
        read_all(&mut reader, place, header.runs.get() as usize, &mut runs)?;
        if !is_consistent(&header, &sections, &runs, medium.len()) {
            break;
        }
        visit(&mut BatchView { sections: &sections, runs: &runs, at, reader: &mut reader })?;
        log.tail += header.len.get();
        log.sequence += 1;
    }
    Ok(())
}

fn body_is_intact(reader: &mut Reader<'_>, seed: u64, at: u64, header: &Header) -> Result<bool> {
    let len = header.len.get() - LINE;
    if len <= PIECE as u64 {
        let body = reader.peek(at + LINE, len as usize)?;
        return Ok(checksum(seed, &[body]) == header.body_sum.get());
    }
    let mut hasher = XxHash3_64::with_seed(seed);
    let mut done = 0;
    while done < len {
        let piece = reader.peek(at + LINE + done, (len - done).min(PIECE as u64) as usize)?;
        hasher.write(piece);
        done += piece.len() as u64;
    }
    Ok(hasher.finish() == header.body_sum.get())
}

/// Reads `count` structs from `place` and returns the offset behind them.
fn read_all<T: FromBytes + IntoBytes + Clone>(
    reader: &mut Reader<'_>,
    mut place: u64,
    count: usize,
    out: &mut Vec<T>,
) -> Result<u64> {
    out.clear();
    let size = size_of::<T>();
    while out.len() < count {
        let some = (count - out.len()).min(PIECE / size);
        let bytes = reader.peek(place, some * size)?;
        out.extend(bytes.chunks_exact(size).filter_map(|chunk| T::read_from_bytes(chunk).ok()));
        place += (some * size) as u64;
    }
    Ok(place)
}

/// Invariant 2 of `Batch`, and that no run leaves the pool.
fn is_consistent(header: &Header, sections: &[Section], runs: &[Run], pool_len: u64) -> bool {
    let claimed: u64 = sections.iter().map(|section| u64::from(section.runs.get())).sum();
    let mut lines = 0_u64;
    let in_pool = runs.iter().all(|run| {
        let (target, count) = (run.target.get(), run.lines.get());
        lines = lines.saturating_add(count);
        let end = count.checked_mul(LINE).and_then(|len| target.checked_add(len));
        target.is_multiple_of(LINE) && end.is_some_and(|end| end <= pool_len)
    });
    in_pool && claimed == runs.len() as u64 && lines == header.lines.get()
}
