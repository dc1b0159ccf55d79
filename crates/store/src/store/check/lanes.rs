//! The lane directory, lane headers, and dead writers' batches.

use super::space::{Claim, Owner};
use super::{Cure, Found, Meter, Severity, Survey};
use crate::error::{Part, Result, StoreError};
use crate::format::lane::Directory;
use crate::format::{DATA, LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_ROOT};
use crate::lane::{Ending, Search, Witnesses};
use crate::medium::LockKey;
use crate::recovery::{LaneView, judge, mend_lane};
use std::collections::HashMap;

pub(in crate::store) struct LaneFound {
    pub index: u32,
    pub directory: Directory,
    pub held: bool,
    pub witnesses: Witnesses,
    pub generation: u64,
    pub newest: u64,
    /// Pending batches by entry, which will write these progress lines.
    pub waiting: HashMap<u64, u64>,
    pub refused: Option<String>,
}

impl Survey {
    pub(super) fn read_directory(&mut self) {
        for index in 0..LANES {
            let offset = LANE_DIRECTORY + u64::from(index) * LINE;
            let Some(directory) = self.read::<Directory>(Part::LaneDirectory, offset) else {
                self.lost_lanes.push(index);
                continue;
            };
            let in_use = directory.in_use(self.seed, self.len);
            match in_use {
                Some(false) => continue,
                Some(true) if directory.offset.get() >= DATA => {}
                _ => {
                    let what = format!("the slot of lane {index} is damaged");
                    self.find(Severity::Error, Part::LaneDirectory, offset, Cure::Rebuild, what);
                    self.lost_lanes.push(index);
                    continue;
                }
            }
            if self.root.is_some_and(|root| directory.since.get() > root.next_binding.get()) {
                let what =
                    format!("the slot of lane {index} has a binding number that was not given out yet");
                self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
            }
            let (start, len) = (directory.offset.get(), directory.len.get());
            self.claims.push(Claim::new(start / PAGE, len / PAGE, Owner::Lane(index)));
            self.lanes.push(LaneFound {
                index,
                directory,
                held: self.is_held(LockKey::Lane(index)),
                witnesses: Witnesses::default(),
                generation: 0,
                newest: 0,
                waiting: HashMap::new(),
                refused: None,
            });
        }
        self.report.lanes = self.lanes.len() as u32;
    }

    pub(super) fn read_lanes(&mut self, meter: &mut Meter<'_>) {
        let mut lanes = std::mem::take(&mut self.lanes);
        for lane in &mut lanes {
            if let Err(error) = self.read_lane(lane) {
                self.note_later(&error);
                let offset = lane.directory.offset.get();
                let what = format!("lane {} cannot be read: {error}", lane.index);
                lane.refused = Some(what.clone());
                self.find(Severity::Error, Part::Record, offset, Cure::Drop, what);
            }
            self.report.waiting += lane.waiting.values().sum::<u64>();
        }
        self.lanes = lanes;
        meter.step(u64::from(LANES));
    }

    fn read_lane(&mut self, lane: &mut LaneFound) -> Result<()> {
        let (offset, len) = (lane.directory.offset.get(), lane.directory.len.get());
        let (medium, seed, index) = (self.medium.clone(), self.seed, lane.index);
        lane.witnesses = Witnesses::read(&*medium, seed, offset, len)?;
        if lane.held {
            return Ok(());
        }
        self.judge_headers(&format!("the header of lane {index}"), offset, &lane.witnesses);
        if lane.witnesses.generation(lane.directory.generation.get()).is_none() {
            return Ok(());
        }
        for at in mend_lane(&*medium, seed, &lane.directory)? {
            self.find_mended(at);
        }
        let next_binding = self.root.map(|root| root.next_binding.get());
        let view = LaneView { medium: &*medium, seed, len: self.len, next_binding };
        let judged = judge(&view, index, &lane.directory, Search::Whole)?;
        let (number, at) = (judged.end.sequence, judged.end.position());
        lane.waiting = judged.objects.iter().map(|(entry, object)| (*entry, object.batches)).collect();
        lane.generation = judged.start.generation;
        lane.newest = judged.newest;
        if let Some(cause) = judged.refused {
            let what = format!("lane {index} cannot be recovered: {cause}");
            let (part, at) = match cause {
                StoreError::EntryRefused { offset, .. } => (Part::Entry, offset),
                StoreError::Damaged { part, .. } => (part, offset),
                _ => (Part::Record, at),
            };
            self.find(Severity::Error, part, at, Cure::Drop, what.clone());
            lane.refused = Some(what);
            return Ok(());
        }
        match judged.ending {
            Ending::Clean | Ending::Damaged { .. } => {}
            Ending::Torn { beside: Some(later) } => {
                let what = format!(
                    "lane {index}: batch {number} is not whole, though batch {later} of the same write is: either that \
                     was cut short, and nothing acknowledged is lost, or it is damaged, and what follows it is lost"
                );
                self.find(Severity::Warning, Part::Record, at, Cure::None, what);
            }
            Ending::Torn { beside: None } => {
                let what = format!(
                    "lane {index}: the last batch is not whole: its commit was cut short, or it is damaged and lost"
                );
                self.find(Severity::Note, Part::Record, at, Cure::None, what);
            }
        }
        Ok(())
    }

    pub(super) fn judge_bindings(&mut self) {
        let bound: Vec<_> = self.objects.iter().filter(|object| object.bound).copied().collect();
        for object in bound {
            if self.is_held(LockKey::Object(object.offset)) {
                continue;
            }
            let offset = object.offset;
            let lane = self.lanes.iter().find(|lane| lane.index == object.lane);
            let note = Found(Severity::Note, Part::Entry, offset, Cure::Recover);
            match lane {
                _ if object.lane >= LANES => {
                    let found = Found(Severity::Error, Part::Entry, offset, Cure::Recover);
                    self.find_of(
                        offset,
                        found,
                        format!("it is bound to lane {}, and there is none", object.lane),
                    );
                }
                None if self.lost_lanes.contains(&object.lane) => {
                    let found = Found(Severity::Error, Part::Entry, offset, Cure::Rebuild);
                    let what = format!(
                        "its last writer is gone, and the slot of its lane {} is damaged",
                        object.lane
                    );
                    self.find_of(offset, found, what);
                }
                None => {
                    let slot = LANE_DIRECTORY + u64::from(object.lane) * LINE;
                    let found = Found(Severity::Error, Part::LaneDirectory, slot, Cure::Rebuild);
                    let what = format!(
                        "its last writer is gone, and the slot of its lane {} is erased",
                        object.lane
                    );
                    self.find_of(offset, found, what);
                    self.lost_lanes.push(object.lane);
                }
                Some(lane) if lane.held => {
                    let what = "its writer gave up the lock without detaching";
                    self.find_of(offset, Found(Severity::Note, Part::Entry, offset, Cure::None), what);
                }
                Some(lane) if object.binding < lane.directory.since.get() => {
                    self.find_of(offset, note, "its last writer is gone; no batch is pending");
                }
                Some(lane) => {
                    let what = match lane.waiting.get(&offset).copied().unwrap_or(0) {
                        1 => "its last writer is gone; it needs recovery: 1 batch waits".to_owned(),
                        waiting => {
                            format!("its last writer is gone; it needs recovery: {waiting} batches wait")
                        }
                    };
                    self.find_of(offset, note, what);
                }
            }
        }
    }
}
