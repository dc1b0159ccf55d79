//! Recovery: replay what lanes hold.
//!
//! Replaying is redo of whole lines in the order of commits, so doing it twice, or starting again
//! after dying half-way, ends in the same bytes. Nothing is voided before what was replayed is
//! durable.
//!
//! What is found in a lane is visible, which is less than durable: its writer may have died, or
//! failed, between the two. It is made durable (`LaneLog::confirm`) before any of it is redone;
//! otherwise a power cut could keep a part of the redo and lose the batch.
//!
//! Of every line of the table only the newest content is written, so that whoever dies while redoing
//! does not take anything back to an earlier state: a process that knows the batches would not redo them.
//! Primaries may go back for a moment, where a lane has more than is gathered at once. Nobody sees them
//! before the whole lane was replayed.
//!
//! What a lane may touch is not believed but checked: a section counts only if the entry it names is
//! bound to this lane under the same binding number, and a run only within that object's extent.

use crate::error::{Part, Result, StoreError};
use crate::format::batch::kind;
use crate::format::entry::{Entry, FLAG_SPARSE, PROGRESS, Progress};
use crate::format::lane::Directory;
use crate::format::{LANE_DIRECTORY, LINE, TABLE_LANE, TABLE_LANE_LEN};
use crate::lane::{BatchView, LaneLog, beyond, ends_damaged, scan};
use crate::medium::{Gather, Medium};
use crate::mutant::Mutant;
use crate::space::Draft;
use crate::table::Located;
use std::collections::BTreeMap;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Redo of as many bytes in one piece is not gathered.
const DIRECT: usize = if cfg!(any(miri, feature = "mutants")) { 2 << 10 } else { 32 << 10 };

/// What recovering a lane did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Batches found.
    pub batches: u64,
    /// Bytes of lane read.
    pub lane_bytes: u64,
    /// Objects that had something to recover.
    pub objects: u64,
    /// Bytes written to primaries.
    pub bytes: u64,
}

/// Applies every table batch behind `log` and moves `log` to the end. `known`: this process has had
/// `log` before, so that what it says is durable. The caller holds the table.
pub fn catch_up(medium: &dyn Medium, seed: u64, log: &mut LaneLog, known: bool) -> Result<()> {
    let (mut end, mut last) = (*log, 0);
    // Never full: a table lane is small.
    let mut pages = Gather::new(medium);
    scan(medium, seed, &mut end, &mut |batch| {
        last = batch.at;
        for index in 0..batch.sections.len() {
            if batch.sections[index].kind.get() == kind::TABLE {
                batch.redo(index, &mut |target, bytes| redo_table(&mut pages, target, bytes))?;
            }
        }
        Ok(())
    })?;
    if known && end == *log {
        return Ok(());
    }
    // Batches are made durable one by one: one behind the end proves that the end is damage.
    if !known && beyond(medium, seed, &end)?.is_some() {
        return Err(StoreError::damaged(Part::Record, end.position()));
    }
    // Whoever published a batch had made the one before it durable.
    end.confirm(medium, seed, last)?;
    pages.flush()?;
    *log = end;
    Ok(())
}

pub(crate) fn redo_table(pages: &mut Gather<'_>, target: u64, bytes: &[u8]) -> Result<()> {
    let end = target + bytes.len() as u64;
    // Superblocks and the table lane itself are never redone.
    if target < LANE_DIRECTORY || (target < TABLE_LANE + TABLE_LANE_LEN && end > TABLE_LANE) {
        return Err(StoreError::damaged(Part::Record, target));
    }
    pages.put(target, bytes);
    Ok(())
}

/// An object met in a lane.
struct Met {
    located: Located,
    progress: Option<Standing>,
}

/// Redo on its way from a lane to primaries: the lane is made durable before any of it is written.
struct Redo<'m> {
    medium: &'m dyn Medium,
    seed: u64,
    pages: Gather<'m>,
    /// Bytes written past `pages`.
    direct: u64,
    /// Where in the pool the lane's batches begin.
    start: u64,
    /// The lane is durable, and ends as a commit leaves it, not with damage.
    confirmed: bool,
}

impl Redo<'_> {
    /// Makes the whole lane durable, once, having looked at what follows `log`: redoing what comes before a
    /// damaged batch would mix it with what that batch brought in place.
    fn confirm(&mut self, log: &LaneLog) -> Result<()> {
        if self.confirmed {
            return Ok(());
        }
        let mut end = *log;
        scan(self.medium, self.seed, &mut end, &mut |_| Ok(()))?;
        if ends_damaged(self.medium, self.seed, &end)? {
            return Err(StoreError::damaged(Part::Record, end.position()));
        }
        if end.position() > self.start {
            end.confirm(self.medium, self.seed, self.start)?;
        }
        self.confirmed = true;
        Ok(())
    }

    /// Writes what was gathered; `log` ends with the newest batch of it.
    fn flush(&mut self, log: &LaneLog) -> Result<u64> {
        self.confirm(log)?;
        Ok(self.pages.flush()? + self.direct)
    }

    /// Takes redo of the last batch of `log`: what is long goes where it belongs, without a detour.
    ///
    /// A later batch may have some of these lines anew, so that the primary goes back for a moment: nobody
    /// sees it before the lane was replayed to its end.
    fn put(&mut self, log: &LaneLog, target: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= DIRECT {
            self.confirm(log)?;
            self.pages.forget(target, bytes.len() as u64);
            self.medium.prepare(target, bytes.len() as u64)?;
            self.direct += bytes.len() as u64;
            return Ok(self.medium.write(target, bytes)?);
        }
        self.pages.put(target, bytes);
        if self.pages.is_full() {
            self.flush(log)?;
        }
        Ok(())
    }
}

/// Replays the lane that `directory` describes into the objects bound to it and makes that durable.
/// The caller holds the table and the lane, and voids the lane afterwards.
///
/// What fits the memory is read once; where something has to be written before the end of the lane was seen,
/// the rest of it is read ahead, and batches of more than 256 KiB are read twice. Memory: that of [`Gather`], 64 MiB at most, that
/// of [`scan`], and 1 KiB for each object in the lane.
pub fn replay(draft: &Draft<'_>, lane: u32, directory: &Directory) -> Result<(LaneLog, Recovered)> {
    let (medium, seed) = (draft.pages().medium(), draft.seed());
    let mut log =
        LaneLog::read(medium, seed, directory.offset.get(), directory.len.get(), directory.generation.get())?;
    let mut redo =
        Redo { medium, seed, pages: Gather::new(medium), direct: 0, start: log.position(), confirmed: false };
    let mut met: BTreeMap<u64, Met> = BTreeMap::new();
    let mut done = Recovered::default();
    scan(medium, seed, &mut log, &mut |batch| {
        done.batches += 1;
        if Mutant::LastBatchForgotten.is_on() && is_last(medium, seed, &batch.log)? {
            return Ok(());
        }
        for index in 0..batch.sections.len() {
            replay_section(draft, lane, directory, batch, index, &mut met, &mut redo)?;
        }
        Ok(())
    })?;
    done.lane_bytes = log.used();
    // An empty lane's generation is confirmed by the directory, into which the caller enters the next.
    done.bytes = redo.flush(&log)?;
    for object in met.values() {
        if let Some(standing) = &object.progress {
            put_progress(medium, seed, &object.located, standing)?;
        }
    }
    done.objects = met.len() as u64;
    if !met.is_empty() && !Mutant::EarlyVoid.is_on() {
        medium.barrier()?;
    }
    Ok((log, done))
}

/// Whether no batch follows the last of `log`.
fn is_last(medium: &dyn Medium, seed: u64, log: &LaneLog) -> Result<bool> {
    let mut end = *log;
    scan(medium, seed, &mut end, &mut |_| Ok(()))?;
    Ok(end == *log)
}

fn replay_section(
    draft: &Draft<'_>,
    lane: u32,
    directory: &Directory,
    batch: &mut BatchView<'_, '_>,
    index: usize,
    met: &mut BTreeMap<u64, Met>,
    redo: &mut Redo<'_>,
) -> Result<()> {
    let section = batch.sections[index];
    let (entry, binding) = (section.entry.get(), section.binding.get());
    if section.kind.get() == kind::TABLE || binding < directory.since.get() {
        return Ok(());
    }
    let object = match met.entry(entry) {
        std::collections::btree_map::Entry::Occupied(slot) => slot.into_mut(),
        std::collections::btree_map::Entry::Vacant(slot) => {
            // An entry that does not verify any more was destroyed; its slot is free or reused.
            let Ok(located) = draft.entry(entry) else { return Ok(()) };
            if !located.is_bound() || located.entry.lane.get() != lane {
                return Ok(());
            }
            slot.insert(Met { located, progress: None })
        }
    };
    if object.located.entry.binding.get() != binding && !Mutant::BindingIgnored.is_on() {
        return Ok(());
    }
    let start = object.located.entry.primary_offset();
    let end = start + object.located.entry.extent_len();
    let log = batch.log;
    batch.redo(index, &mut |target, bytes| {
        if target < start || target + bytes.len() as u64 > end {
            return Err(StoreError::damaged(Part::Record, target));
        }
        redo.put(&log, target, bytes)
    })?;
    object.progress = Some(Standing {
        published: section.published.get(),
        psyncs: section.psyncs.get(),
        direct: if Mutant::IntentIgnored.is_on() { 0 } else { section.direct.get() },
    });
    Ok(())
}

/// Where an object stands after a batch: what its progress line says once that is brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// `Progress::published`.
    pub published: u64,
    /// `Progress::psyncs`.
    pub psyncs: u64,
    /// `Progress::direct`.
    pub direct: u64,
}

/// Zeroes bytes of an object's primary; an object that is not sparse keeps its space.
pub fn clear(medium: &dyn Medium, entry: &Entry, from: u64, to: u64) -> Result<()> {
    let start = entry.primary_offset() + from;
    medium.zero(start, to - from)?;
    if entry.flags & FLAG_SPARSE == 0 {
        medium.reserve(start, to - from)?;
    }
    Ok(())
}

/// Writes an object's progress line; the caller owns its lane.
pub fn put_progress(medium: &dyn Medium, seed: u64, object: &Located, standing: &Standing) -> Result<()> {
    put_progress_at(medium, seed, object.offset, object.entry.id, standing)
}

/// As [`put_progress`], for the object `id` whose slot is at `slot`.
pub fn put_progress_at(
    medium: &dyn Medium,
    seed: u64,
    slot: u64,
    id: [u8; 16],
    standing: &Standing,
) -> Result<()> {
    let line = Progress {
        id,
        published: U64::new(standing.published),
        psyncs: U64::new(standing.psyncs),
        direct: U64::new(standing.direct),
        ..Progress::default()
    }
    .sealed(seed);
    debug_assert!((slot + PROGRESS).is_multiple_of(LINE));
    Ok(medium.write(slot + PROGRESS, line.as_bytes())?)
}
