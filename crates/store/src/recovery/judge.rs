//! The judgement of a writers' lane, for attach, check and repair: which batches to redo, if
//! possible.
//!
//! A section counts if its entry is bound to this lane under the same number, and a run within that
//! object's ranges. Entries provably free or bound otherwise are skipped; an unreadable or invalid
//! one refuses the lane.

use super::Standing;
use crate::error::{Part, Result, StoreError};
use crate::format::LINE;
use crate::format::batch::{Run, Section};
use crate::format::lane::Directory;
use crate::lane::{Ending, LaneLog, Search, damaged, ending, scan};
use crate::medium::{Medium, read_struct};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::table::{Located, SlotFound, slot_at};
use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, VecDeque};

/// The pool around a lane, with an up-to-date table.
pub struct LaneView<'v> {
    /// Its medium.
    pub medium: &'v dyn Medium,
    /// Seed of its checksums.
    pub seed: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Number of the next write attach, if the root is readable.
    pub next_binding: Option<u64>,
}

impl<'v> LaneView<'v> {
    /// View through the table that `table` changes.
    #[must_use]
    pub fn of(table: &'v TableTransaction<'_>) -> LaneView<'v> {
        let next = table.root.next_binding.get();
        LaneView {
            medium: table.pages().medium(),
            seed: table.seed(),
            len: table.pool_len(),
            next_binding: (next > 0).then_some(next),
        }
    }
}

/// An object with unreplayed batches in a lane.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its entry.
    pub located: Located,
    /// Its standing after the last batch.
    pub standing: Standing,
    /// Number of batches.
    pub batches: u64,
}

impl Waiting {
    pub(super) fn takes(&self, directory: &Directory, binding: u64) -> bool {
        // Rule L10 of docs/protocol.md.
        binding >= directory.since.get()
            && (self.located.entry.binding.get() == binding || Mutant::BindingIgnored.is_on())
    }
}

/// Result of [`judge`].
pub struct Judgement {
    /// The log before the first batch.
    pub start: LaneLog,
    /// The log behind the last batch.
    pub end: LaneLog,
    /// The log before the first batch of unknown durability.
    pub durable: LaneLog,
    /// The lane's end.
    pub ending: Ending,
    /// Objects to redo, by entry.
    pub objects: BTreeMap<u64, Waiting>,
    /// Highest binding in its batches, redone or not.
    pub newest: u64,
    /// Why the lane cannot be replayed.
    pub refused: Option<StoreError>,
}

impl Judgement {
    pub(super) fn accepted(mut self) -> Result<Self> {
        match self.refused.take() {
            Some(cause) => Err(cause),
            None => Ok(self),
        }
    }
}

/// Judges the lane of `directory`. Writes nothing.
///
/// # Errors
/// The lane is unreadable, or its generation unknown.
pub fn judge(view: &LaneView<'_>, lane: u32, directory: &Directory, search: Search) -> Result<Judgement> {
    let (offset, len) = (directory.offset.get(), directory.len.get());
    let start = LaneLog::read(view.medium, view.seed, offset, len, directory.generation.get())?;
    judge_from(view, lane, directory, search, start)
}

/// Judges the batches behind `start`.
pub(super) fn judge_from(
    view: &LaneView<'_>,
    lane: u32,
    directory: &Directory,
    search: Search,
    start: LaneLog,
) -> Result<Judgement> {
    let (medium, seed) = (view.medium, view.seed);
    let mut end = start;
    let mut unproven = VecDeque::new();
    let mut met = Met { view, lane, directory, objects: BTreeMap::new(), newest: 0, refused: None };
    scan(medium, seed, &mut end, &mut |batch| {
        while unproven.front().is_some_and(|before: &LaneLog| before.sequence < batch.durable) {
            unproven.pop_front();
        }
        unproven.push_back(LaneLog {
            tail: batch.at - start.offset,
            sequence: batch.log.sequence - 1,
            ..start
        });
        let mut runs = batch.runs;
        for section in batch.sections {
            let (own, later) = runs.split_at(section.runs.get() as usize);
            runs = later;
            met.section(section, own);
        }
        Ok(())
    })?;
    let ending = ending(medium, seed, &end, search)?;
    let Met { objects, newest, mut refused, .. } = met;
    let mut objects: BTreeMap<u64, Waiting> =
        objects.into_iter().filter_map(|(entry, object)| Some((entry, object?))).collect();
    objects.retain(|_, object| object.batches > 0);
    if let Ending::Damaged { proof } = ending
        && !Mutant::DamageIgnored.is_on()
    {
        refused = Some(damaged(&end, proof.to_string()));
    } else if let Some(proof) = objects.values().find_map(|object| applied_beyond(view, object)) {
        refused = refused.or(Some(damaged(&end, proof)));
    }
    let durable = unproven.pop_front().unwrap_or(end);
    Ok(Judgement { start, end, durable, ending, objects, newest, refused })
}

/// Evidence of psyncs that the lane lacks: the progress line counts only durable batches.
fn applied_beyond(view: &LaneView<'_>, object: &Waiting) -> Option<String> {
    let line = object.located.progress(view.seed).ok()?;
    let (counted, found) = (line.psyncs.get(), object.standing.psyncs);
    if counted <= found || Mutant::AppliedIgnored.is_on() {
        return None;
    }
    let name = object.located.entry.name();
    Some(format!("{counted} psyncs of {name:?} were applied, the lane has them up to {found}"))
}

struct Met<'v> {
    view: &'v LaneView<'v>,
    lane: u32,
    directory: &'v Directory,
    /// `None`: its sections do not count.
    objects: BTreeMap<u64, Option<Waiting>>,
    newest: u64,
    refused: Option<StoreError>,
}

impl Met<'_> {
    fn section(&mut self, section: &Section, runs: &[Run]) {
        self.newest = self.newest.max(section.binding.get());
        if !section.is_of_object() || section.binding.get() < self.directory.since.get() {
            return;
        }
        if let Err(cause) = self.count(section, runs) {
            self.refused.get_or_insert(cause);
        }
    }

    fn count(&mut self, section: &Section, runs: &[Run]) -> Result<()> {
        let (entry, binding) = (section.entry.get(), section.binding.get());
        if self.view.next_binding.is_some_and(|next| binding >= next) {
            let what = "was attached later than the table knows: changes to the table are lost";
            return Err(StoreError::EntryRefused { offset: entry, what, cause: None });
        }
        let object = match self.objects.entry(entry) {
            MapEntry::Occupied(known) => known.into_mut(),
            MapEntry::Vacant(new) => new.insert(bound(self.view, self.lane, entry)?),
        };
        let Some(object) = object.as_mut().filter(|object| object.takes(self.directory, binding)) else {
            return Ok(());
        };
        for run in runs {
            let (mut at, to) = (run.target.get(), run.target.get() + run.lines.get() * LINE);
            while at < to {
                let mut ranges = object.located.entry.ranges();
                match ranges.find(|range| range.contains(&at)) {
                    Some(range) => at = range.end,
                    None => return Err(StoreError::damaged(Part::Record, run.target.get())),
                }
            }
        }
        object.batches += 1;
        object.standing = Standing::of(section);
        Ok(())
    }
}

fn bound(view: &LaneView<'_>, lane: u32, entry: u64) -> Result<Option<Waiting>> {
    let refused = |what, cause| Err(StoreError::EntryRefused { offset: entry, what, cause });
    match slot_at(read_struct(view.medium, entry), view.seed, entry, view.len) {
        SlotFound::Used(located) if located.is_bound() && located.entry.lane.get() == lane => {
            if located.entry.unknown().is_some() && !Mutant::UnknownUsed.is_on() {
                return refused("has something that this release does not know", None);
            }
            Ok(Some(Waiting { located: *located, standing: Standing::default(), batches: 0 }))
        }
        SlotFound::Used(_) | SlotFound::Free => Ok(None),
        _ if Mutant::UnreadIsAbsent.is_on() => Ok(None),
        SlotFound::Damaged => refused("is damaged", None),
        SlotFound::Unreadable(cause) => refused("cannot be read", Some(cause)),
    }
}
