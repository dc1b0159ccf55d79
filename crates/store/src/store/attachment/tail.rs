//! A reader that follows a writer: psyncs after its base, read from the writer's lane without
//! holding it.
//!
//! An object's psyncs count up by one, each in one batch of whole lines: the lines of psyncs
//! `n + 1` and later, laid over a base at psync `n`, are the object.
//!
//! Invariants:
//! 1. `shown` counts the psyncs that the reader shows. Any other next number, in a batch or in a
//!    progress line, is a gap: the tail is lost, and the reader needs another base.
//! 2. Only lines of durable batches are handed over, by the rules of `standings`. A batch of an
//!    earlier generation is durable.
//! 3. Lines are handed over only if the table, read after the lane, says that the object lies where
//!    it did: another extent, size or base is published before psyncs rely on it.
//! 4. Nothing is handed over of a dead writer: recovery decides about its last psync.
//! 5. The table is read in full, under its lock, unless its lane ends where it did at the last such
//!    look. Then, as long as the lane is in the same generation, the object lies where it did, no
//!    attach has come between, and progress counts no psync outside the log.
//!
//! Memory: the lines, [`MOST`] bytes.

use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::batch::{Section, kind};
use crate::format::entry::{Entry, FLAG_HIDDEN, FLAG_OVERLAY};
use crate::lane::{BatchView, LaneLog, scan_beside};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::sync::{Ordering, fence};
use crate::table::{Located, directory};
use zeroize::Zeroizing;

/// Beyond that another base costs less.
const MOST: usize = 64 << 20;
const GENERATIONS: usize = 4;

#[derive(Clone, Copy)]
pub(in crate::store) struct Tail {
    object: Located,
    shown: u64,
    log: Option<LaneLog>,
    /// See invariant 5.
    seen: Option<LaneLog>,
}

pub(super) type Found = (Tail, Lines);

/// Outcome of a look at the lane.
pub enum Followed {
    /// The reader shows the newest psync.
    Newest,
    /// A newer psync: these lines, laid over the reader's state, which the reader now counts as
    /// shown.
    Newer(Lines),
    /// The log cannot tell: use [`attach_snapshot`](Store::attach_snapshot).
    Lost,
}

/// Lines of an object, in the order of psyncs.
#[derive(Default)]
pub struct Lines {
    runs: Vec<(u64, usize)>,
    /// Perhaps plaintext.
    bytes: Zeroizing<Vec<u8>>,
}

impl Lines {
    pub(super) fn of_pages(pages: usize) -> Lines {
        Lines { runs: Vec::new(), bytes: Zeroizing::new(Vec::with_capacity(pages * PAGE as usize)) }
    }

    /// The lines: offset in the object, bytes; later ones win.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.bytes[..];
        self.runs.iter().map(move |(offset, len)| {
            let (now, later) = rest.split_at(*len);
            rest = later;
            (*offset, now)
        })
    }

    pub(super) fn add(&mut self, first: usize, offset: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.runs[first..].last_mut() {
            Some((at, len)) if *at + *len as u64 == offset => *len += bytes.len(),
            _ => self.runs.push((offset, bytes.len())),
        }
    }
}

#[derive(Clone, Copy)]
struct Cut {
    log: LaneLog,
    shown: u64,
    runs: usize,
    bytes: usize,
}

struct Ahead<'a> {
    entry: &'a Entry,
    slot: u64,
    lines: Lines,
    proven: Cut,
    unproven: Vec<(u64, Cut)>,
    shown: u64,
    lost: bool,
}

impl Ahead<'_> {
    fn prove(&mut self, durable: u64) {
        let known = self.unproven.iter().take_while(|(number, _)| *number < durable).count();
        if let Some((_, cut)) = self.unproven.drain(..known).next_back() {
            self.proven = cut;
        }
    }

    fn batch(&mut self, batch: &mut BatchView<'_, '_>) -> Result<()> {
        self.prove(batch.durable);
        let sections = batch.sections;
        for (index, section) in sections.iter().enumerate() {
            let binding = section.binding.get();
            // The base has earlier batches.
            if section.is_of_object()
                && section.entry.get() == self.slot
                && binding >= self.entry.binding.get()
            {
                self.section(batch, index, section)?;
            }
        }
        let (runs, bytes) = (self.lines.runs.len(), self.lines.bytes.len());
        self.lost |= bytes > MOST;
        let cut = Cut { log: batch.log, shown: self.shown, runs, bytes };
        self.unproven.push((batch.log.sequence - 1, cut));
        Ok(())
    }

    fn section(&mut self, batch: &mut BatchView<'_, '_>, index: usize, section: &Section) -> Result<()> {
        let is_psync = section.kind.get() == kind::PSYNC;
        if is_psync && section.psyncs.get() <= self.shown {
            // A checkpoint counted the lane's lost batches.
            return Ok(());
        }
        let next = is_psync && section.psyncs.get() == self.shown + 1;
        if !next && !Mutant::TailGap.is_on() {
            self.lost = true;
        }
        self.shown = section.psyncs.get();
        // Lines can be cut between batches.
        let (entry, first) = (self.entry, self.lines.runs.len());
        let (lines, lost) = (&mut self.lines, &mut self.lost);
        batch.redo(index, &mut |mut target, mut bytes| {
            while !bytes.is_empty() && !*lost {
                // Or in the bitmap behind the extent.
                let Some(range) = entry.ranges().find(|range| range.contains(&target)) else {
                    *lost = true;
                    break;
                };
                let (now, later) = bytes.split_at(bytes.len().min((range.end - target) as usize));
                if range.start == entry.primary_offset() {
                    lines.add(first, target - range.start, now);
                }
                (target, bytes) = (range.end, later);
            }
            Ok(())
        })
    }

    /// A new generation proves all before it.
    fn begin(&mut self, log: LaneLog) {
        self.prove(u64::MAX);
        self.proven.log = log;
    }

    /// Reads until all batches seen at first are durable.
    fn read(&mut self, store: &Store) -> Result<()> {
        let lane = self.entry.lane.get();
        let (mut seen, mut deadline) = (None, store.apply_locks.deadline());
        loop {
            let mut log = self.go_back();
            scan_beside(&*store.device, store.seed, &mut log, &mut |batch| self.batch(batch))?;
            // The writer changes that line in each psync.
            let any = !self.unproven.is_empty();
            if any && (Mutant::TailUnproven.is_on() || !store.apply_locks.is_changing(lane)?) {
                self.prove(u64::MAX);
            }
            let seen = *seen.get_or_insert(log.sequence);
            if self.proven.log.sequence >= seen || self.unproven.is_empty() {
                return Ok(());
            }
            // A dead writer does not continue.
            self.lost |= !store.is_taken(lane)?;
            if self.lost {
                return Ok(());
            }
            store.apply_locks.pause_changed(lane, &mut deadline)?;
        }
    }

    fn go_back(&mut self) -> LaneLog {
        let Cut { log, shown, runs, bytes } = self.proven;
        self.unproven.clear();
        self.shown = shown;
        self.lines.runs.truncate(runs);
        self.lines.bytes.truncate(bytes);
        log
    }
}

impl Tail {
    pub(in crate::store) fn of(
        store: &Store,
        table: &TableTransaction<'_>,
        object: &Located,
        shown: u64,
    ) -> Result<Tail> {
        let log = match object.is_bound() {
            true => lane_log(store, table, object.entry.lane.get())?,
            false => None,
        };
        Ok(Tail { object: *object, shown, log, seen: None })
    }

    pub(super) fn object(&self) -> &Located {
        &self.object
    }

    pub(super) fn shown(&self) -> u64 {
        self.shown
    }

    pub(super) fn shows_as(&self, other: &Tail) -> bool {
        (self.object.entry.id, self.shown) == (other.object.entry.id, other.shown)
    }

    pub(super) fn is_there(&self, now: &Located) -> bool {
        let of = |entry: &Entry| {
            let place = (entry.primary, entry.pages, entry.size);
            let base = (entry.base, entry.overlay, entry.based, entry.has(FLAG_OVERLAY));
            (entry.id, entry.name, entry.has(FLAG_HIDDEN), entry.state, entry.lane, place, base)
        };
        of(&now.entry) == of(&self.object.entry)
    }
}

fn lane_log(store: &Store, table: &TableTransaction<'_>, lane: u32) -> Result<Option<LaneLog>> {
    let Some(found) = directory(table, lane)? else { return Ok(None) };
    let (offset, len) = (found.offset.get(), found.len.get());
    LaneLog::read(table.pages().medium(), store.seed, offset, len, found.generation.get()).map(Some)
}

impl Store {
    /// `None`: a gap, or the object moved.
    pub(super) fn read_tail(&self, tail: &Tail) -> Result<Option<Found>> {
        match self.read_tail_once(tail) {
            // Reads from now on count.
            Err(StoreError::Failed(_)) => self.read_tail_once(tail),
            read => read,
        }
    }

    fn read_tail_once(&self, tail: &Tail) -> Result<Option<Found>> {
        let (slot, lane) = (tail.object.offset, tail.object.entry.lane.get());
        // Batches beyond the known length would close the log.
        self.device.verify()?;
        // The empty log if the object stayed, and its checkpointed psyncs.
        let look = || {
            self.view_as_of(|table| {
                let now = table.entry(slot)?;
                let Some(there) = tail.is_there(&now).then_some(&now) else { return Ok(None) };
                let start = if tail.log.is_some() { lane_log(self, table, lane)? } else { None };
                Ok(Some((start, there.progress(self.seed)?.psyncs.get())))
            })
        };
        let Some(log) = tail.log else {
            if self.is_seen(tail)? {
                return Ok(Some((*tail, Lines::default())));
            }
            // A writer may have come and gone since.
            let (found, seen) = look()?;
            let same = |(_, psyncs): &(_, u64)| *psyncs == tail.shown;
            return Ok(found.filter(same).map(|_| (Tail { seen: Some(seen), ..*tail }, Lines::default())));
        };
        if tail.seen.is_some() {
            self.device.keep_near(log.offset, log.len);
        }
        let proven = Cut { log, shown: tail.shown, runs: 0, bytes: 0 };
        let (entry, shown) = (&tail.object.entry, tail.shown);
        let mut ahead =
            Ahead { entry, slot, lines: Lines::default(), proven, unproven: Vec::new(), shown, lost: false };
        for _ in 0..GENERATIONS {
            ahead.read(self)?;
            if ahead.lost {
                return Ok(None);
            }
            if ahead.proven.log.is_of_generation(&log) && self.is_seen(tail)? && self.is_generation(&log) {
                let same = ahead.proven.log == log;
                return if same {
                    Ok(Some((*tail, Lines::default())))
                } else {
                    self.found(tail, ahead, tail.seen)
                };
            }
            let (Some((Some(start), hidden)), seen) = look()? else { return Ok(None) };
            if ahead.proven.log.is_of_generation(&start) {
                if hidden > ahead.proven.shown && !Mutant::TailGap.is_on() {
                    return Ok(None);
                }
                return self.found(tail, ahead, Some(seen));
            }
            ahead.begin(start);
        }
        Ok(None)
    }

    fn found(&self, tail: &Tail, mut ahead: Ahead<'_>, seen: Option<LaneLog>) -> Result<Option<Found>> {
        let log = Some(ahead.go_back());
        let found = Tail { shown: ahead.shown, log, seen, ..*tail };
        Ok(self.is_taken(tail.object.entry.lane.get())?.then_some((found, ahead.lines)))
    }

    fn is_seen(&self, tail: &Tail) -> Result<bool> {
        tail.seen.map_or(Ok(false), |seen| self.is_table_still_at(&seen))
    }

    /// Whether the lane kept its generation, asked after its batches.
    fn is_generation(&self, log: &LaneLog) -> bool {
        fence(Ordering::Acquire);
        // The directory's generation may be lower.
        let now = || LaneLog::read(&*self.device, self.seed, log.offset, log.len, log.generation);
        Mutant::LaneUnasked.is_on() || now().is_ok_and(|now| now.is_of_generation(log))
    }
}
