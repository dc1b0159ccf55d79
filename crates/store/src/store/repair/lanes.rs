//! Recovery of dead writers' objects, and of lanes that the directory lost.

use super::plan::Plan;
use super::scan;
use super::settled::{SettledRepair, TOGETHER};
use super::table::highest_generation;
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{Entry, FLAG_TARGET, NO_LANE, PROGRESS, STATE_D};
use crate::format::lane::{DIRECTORY_MAGIC, Directory};
use crate::format::root::{Root, TreeId};
use crate::format::{DATA, LANE_DIRECTORY, LINE, PAGE};
use crate::lane::{LaneLog, Witnesses, scan as scan_lane};
use crate::medium::read_struct;
use crate::recovery::{Standing, put_progress, replay};
use crate::space::TableTransaction;
use crate::store::check::{Claim, LaneFound, Object, Owner, Survey, gaps};
use crate::table::put_directory;
use std::collections::BTreeMap;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

impl SettledRepair<'_> {
    /// After a new table, no lane keeps batches that name other slots.
    pub(super) fn recover(&mut self, survey: &Survey, rebuilt: bool) -> Result<()> {
        let mut left = survey.lost_lanes.clone();
        for lane in &survey.lanes {
            let bound: Vec<_> =
                survey.objects.iter().filter(|o| o.bound && o.lane == lane.index).copied().collect();
            self.rewrite_lane(lane, &bound)?;
            let spoilt = lane.refused.is_some() && self.options.drop_damaged;
            let emptied = rebuilt && lane.newest > 0;
            if (!bound.is_empty() || spoilt || emptied) && !self.recover_lane(lane, &bound, survey)? {
                left.push(lane.index);
            }
        }
        let bound: Vec<Object> =
            survey.objects.iter().filter(|o| o.bound && !left.contains(&o.lane)).copied().collect();
        let laneless = bound.iter().filter(|o| survey.lanes.iter().all(|lane| lane.index != o.lane));
        self.distrust(laneless.clone().map(|object| object.offset))?;
        for object in laneless {
            let what = format!("detached: it is bound to lane {}, and there is none", object.lane);
            self.did(Part::Entry, object.offset, Some(survey.name_at(object.offset)), what);
            self.losing("its psyncs since its lane's last checkpoint, if any");
        }
        self.detach(&bound)
    }

    fn rewrite_lane(&mut self, lane: &LaneFound, bound: &[Object]) -> Result<()> {
        let (offset, len) = (lane.directory.offset.get(), lane.directory.len.get());
        let copies = lane.witnesses.copies;
        if copies.iter().all(Option::is_some) {
            return Ok(());
        }
        let at_least = lane.directory.generation.get();
        if let Some(generation) = lane.witnesses.generation(at_least) {
            return self.rewrite_headers(offset, copies, generation);
        }
        let generation = highest_generation(&*self.medium, self.seed, offset, len)?.max(at_least) + 1;
        self.distrust(bound.iter().map(|object| object.offset))?;
        self.rewrite_headers(offset, copies, generation)?;
        if !bound.is_empty() {
            self.losing("psyncs of this lane's objects since its last checkpoint, if any: no batch verifies");
        }
        Ok(())
    }

    fn recover_lane(&mut self, lane: &LaneFound, bound: &[Object], survey: &Survey) -> Result<bool> {
        let slot = LANE_DIRECTORY + u64::from(lane.index) * LINE;
        let mut directory = lane.directory;
        if let Some(refused) = lane.refused.as_ref().filter(|_| !self.options.drop_damaged) {
            self.leave(
                Part::LaneDirectory,
                slot,
                format!("lane {} was not recovered: {refused}", lane.index),
            );
            return Ok(false);
        }
        let medium = self.medium.clone();
        let replayed = {
            let table = TableTransaction::begin(&*medium, self.seed, self.len)?;
            replay(&table, lane.index, &directory)
        };
        let (generation, lost) = match replayed {
            Ok((log, _)) => (log.generation, None),
            Err(error @ StoreError::LaneRefused { .. }) if self.options.drop_damaged => {
                let error = self.damage(error)?;
                let (offset, len) = (directory.offset.get(), directory.len.get());
                let highest = highest_generation(&*medium, self.seed, offset, len)?;
                let waiting: u64 = lane.waiting.values().sum();
                let lost = format!("{waiting} pending batches: {error}");
                (highest.max(lane.generation).max(directory.generation.get()), Some(lost))
            }
            Err(error) => return Err(error),
        };
        if lost.is_some() {
            self.distrust(bound.iter().map(|object| object.offset))?;
        }
        directory.generation = U64::new(generation + 1);
        self.update(|table| {
            directory.since = table.root.next_binding;
            put_directory(table, lane.index, directory)
        })?;
        for object in bound {
            let waiting = lane.waiting.get(&object.offset).copied().unwrap_or(0);
            let name = survey.name_at(object.offset);
            let what = format!(
                "recovered from lane {}: {waiting} batches redone; detached from its writer, which is gone",
                lane.index
            );
            self.did(Part::Entry, object.offset, Some(name), what);
        }
        if let Some(lost) = lost {
            self.did(Part::LaneDirectory, slot, None, format!("lane {} was voided", lane.index));
            self.losing(lost);
        }
        Ok(true)
    }

    /// Finds lanes without a slot by header and objects, replays and detaches. False: one must
    /// stay.
    pub(super) fn salvage_lanes(&mut self, survey: &Survey, plan: &Plan) -> Result<bool> {
        let mut wanted: Vec<_> =
            plan.objects.iter().filter(|o| o.bound && survey.lost_lanes.contains(&o.lane)).copied().collect();
        if wanted.is_empty() {
            return Ok(true);
        }
        let detached = wanted.clone();
        let mut known = plan.pages.clone();
        known.extend(survey.table_pages());
        let free = &survey.trees[TreeId::FreeByPage as usize];
        if free.complete {
            known.extend(free.slots.iter().map(|((start, _), len)| Claim::new(*start, *len, Owner::Free)));
        }
        known.sort_unstable();
        let open = gaps(&known, DATA / PAGE, self.len / PAGE);
        // Former extents look alike: the newest counts.
        let mut best: BTreeMap<u32, Directory> = BTreeMap::new();
        for (offset, end, generation) in scan::lanes(&*self.medium, self.seed, &open) {
            let len = end - offset;
            let Some(lane) = self.lane_of(offset, len, generation, &wanted)? else { continue };
            if best.get(&lane).is_none_or(|other| other.generation.get() < generation) {
                let found = Directory {
                    magic: U32::new(DIRECTORY_MAGIC),
                    offset: U64::new(offset),
                    len: U64::new(len),
                    generation: U64::new(generation),
                    ..Directory::default()
                };
                best.insert(lane, found);
            }
        }
        for (lane, directory) in best {
            let offset = directory.offset.get();
            let medium = self.medium.clone();
            let witnesses = Witnesses::read(&*medium, self.seed, offset, directory.len.get())?;
            self.rewrite_headers(offset, witnesses.copies, directory.generation.get())?;
            let table = TableTransaction::blank(&*medium, self.seed, self.len, Root::new_zeroed());
            let recovered = match replay(&table, lane, &directory) {
                Ok((_, recovered)) => recovered,
                Err(error @ StoreError::LaneRefused { .. }) if self.options.drop_damaged => {
                    let error = self.damage(error)?;
                    let given_up = wanted.iter().filter(|object| object.lane == lane);
                    self.distrust(given_up.map(|object| object.offset))?;
                    self.did(
                        Part::LaneHeader,
                        offset,
                        None,
                        format!("lane {lane}, whose slot is damaged, is given up"),
                    );
                    self.losing(format!("its pending batches: {error}"));
                    wanted.retain(|object| object.lane != lane);
                    continue;
                }
                Err(error @ StoreError::LaneRefused { .. }) => {
                    let what =
                        format!("lane {lane}, whose slot is damaged, was found and not recovered: {error}");
                    self.leave(Part::LaneHeader, offset, what);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            wanted.retain(|object| object.lane != lane);
            let what = format!(
                "lane {lane}, whose slot is damaged, was found by its batches: {} redone into {} objects",
                recovered.batches, recovered.objects
            );
            self.did(Part::LaneHeader, offset, None, what);
        }
        self.distrust(wanted.iter().map(|object| object.offset))?;
        for object in wanted {
            let name = survey.name_at(object.offset);
            let what = format!("no batch of it can be found in its lane {}", object.lane);
            self.did(Part::Entry, object.offset, Some(name), what);
            self.losing("its psyncs since its lane's last checkpoint, if any");
        }
        self.detach(&detached)?;
        Ok(true)
    }

    fn detach(&mut self, objects: &[Object]) -> Result<()> {
        for part in objects.chunks(TOGETHER) {
            let mut entries = Vec::with_capacity(part.len());
            for object in part {
                let mut entry: Entry = read_struct(&*self.medium, object.offset)?;
                entry.state = STATE_D;
                entry.lane = U32::new(NO_LANE);
                entries.push((object.offset, entry.sealed(self.seed)));
            }
            self.publish(|batch| {
                entries.iter().for_each(|(offset, entry)| batch.copy_lines(*offset, entry.as_bytes()));
            })?;
        }
        Ok(())
    }

    fn lane_of(&self, offset: u64, len: u64, generation: u64, wanted: &[Object]) -> Result<Option<u32>> {
        let mut log = LaneLog::at_start(offset, len, generation);
        let mut lane = None;
        scan_lane(&*self.medium, self.seed, &mut log, &mut |batch| {
            for section in batch.sections.iter().filter(|section| section.is_of_object()) {
                let (entry, binding) = (section.entry.get(), section.binding.get());
                let owner = wanted.iter().find(|o| o.offset == entry && o.binding == binding);
                lane = lane.or(owner.map(|object| object.lane));
            }
            Ok(())
        })?;
        Ok(lane)
    }

    /// All of the object counts as published.
    pub(super) fn rewrite_progress(&mut self, survey: &Survey) -> Result<()> {
        self.distrust(survey.progress.iter().copied())?;
        for &offset in &survey.progress {
            let medium = self.medium.clone();
            let located = TableTransaction::begin(&*medium, self.seed, self.len)?.entry(offset)?;
            let standing = Standing { published: located.entry.extent_len(), ..Standing::default() };
            put_progress(&*medium, self.seed, &located, &standing)?;
            self.did(
                Part::Progress,
                offset + PROGRESS,
                Some(located.entry.name()),
                "the progress line was written again",
            );
            self.losing("the count and the extent of its psyncs: the whole object counts as psynced");
        }
        if !survey.progress.is_empty() {
            self.medium.barrier()?;
        }
        Ok(())
    }

    pub(super) fn reap(&mut self, survey: &Survey) -> Result<bool> {
        let mut was_target = false;
        for object in survey.objects.iter().filter(|object| object.is_left()) {
            let mut left = vec![object.offset];
            while let Some(offset) = left.pop() {
                self.update(|table| {
                    let located = table.entry(offset)?;
                    was_target |= located.entry.has(FLAG_TARGET);
                    if let Some(base) = table.destroy(&located)?
                        && !table.is_tied(&base)?
                    {
                        left.push(base.offset);
                    }
                    Ok(())
                })?;
                self.did(Part::Entry, offset, None, format!("removed: {}", object.left_by()));
            }
        }
        Ok(was_target)
    }
}
