//! The lane directory, the lanes' headers, and the batches of writers that are gone.

use super::space::{Claim, Owner};
use super::table::{first_batch, read_headers};
use super::{Cure, Found, Meter, Severity, Survey};
use crate::error::{Part, Result};
use crate::format::batch::{Section, kind};
use crate::format::lane::Directory;
use crate::format::{DATA, LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_ROOT};
use crate::lane::{LaneLog, beyond, broken, scan};
use crate::medium::LockKey;
use std::collections::{HashMap, HashSet};

/// A lane with space.
pub(in crate::store) struct LaneFound {
    pub index: u32,
    pub directory: Directory,
    /// Whether a process has it.
    pub held: bool,
    /// Generations of the header copies, `None` for a damaged one.
    pub headers: [Option<u64>; 2],
    /// Batches that wait, by entry.
    pub waiting: HashMap<u64, u64>,
    /// Entries whose progress lines those batches write.
    pub advances: HashSet<u64>,
    /// Why what waits cannot be replayed, if it cannot.
    pub refused: Option<String>,
}

impl Survey {
    /// Reads the directory.
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
                let what = format!("lane {index} waits for attaches that are yet to come");
                self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
            }
            let (start, len) = (directory.offset.get(), directory.len.get());
            self.claims.push(Claim::new(start / PAGE, len / PAGE, Owner::Lane(index)));
            self.lanes.push(LaneFound {
                index,
                directory,
                held: self.is_held(LockKey::Lane(index)),
                headers: [None; 2],
                waiting: HashMap::new(),
                advances: HashSet::new(),
                refused: None,
            });
        }
        self.report.lanes = self.lanes.len() as u32;
    }

    /// Reads the lanes nobody has. What a living writer does with its own, nobody else can judge.
    pub(super) fn read_lanes(&mut self, meter: &mut Meter<'_>) {
        let mut lanes = std::mem::take(&mut self.lanes);
        for lane in &mut lanes {
            if let Err(error) = self.read_lane(lane) {
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
        let (medium, seed) = (self.medium.clone(), self.seed);
        lane.headers = read_headers(&*medium, seed, offset)?;
        if lane.held {
            return Ok(());
        }
        self.judge_headers(&format!("the header of lane {}", lane.index), offset, lane.headers);
        let stated = lane.headers.into_iter().flatten().max();
        let generation = match stated {
            Some(generation) => generation,
            None => match first_batch(&*medium, seed, offset, len)? {
                Some(generation) => generation,
                None => return Ok(()),
            },
        };
        let mut log = LaneLog::at_start(offset, len, generation.max(lane.directory.generation.get()));
        scan(&*medium, seed, &mut log, &mut |batch| {
            let mut runs = batch.runs;
            for section in batch.sections {
                let (own, later) = runs.split_at(section.runs.get() as usize);
                runs = later;
                let low = own.iter().map(|run| run.target.get()).min();
                let high = own.iter().map(|run| run.target.get() + run.lines.get() * LINE).max();
                self.judge_section(lane, section, low.zip(high));
            }
            Ok(())
        })?;
        let later = beyond(&*medium, seed, &log)?;
        if let Some(later) = later.filter(|later| later.proves_damage) {
            let what = format!(
                "lane {}: batch {} is damaged, though batch {} behind it is intact",
                lane.index, log.sequence, later.sequence
            );
            self.find(Severity::Error, Part::Record, log.position(), Cure::Drop, what.clone());
            lane.refused = Some(what);
        } else if let Some(later) = later {
            let what = format!(
                "lane {}: batch {} is not whole, though batch {} of the same write is: either that was cut short, \
                 and nothing acknowledged is lost, or it is damaged, and what follows it is lost",
                lane.index, log.sequence, later.sequence
            );
            self.find(Severity::Warning, Part::Record, log.position(), Cure::None, what);
        } else if broken(&*medium, seed, &log)? {
            let what = format!(
                "lane {}: the last batch is not whole: its commit was cut short, or it is damaged and lost",
                lane.index
            );
            self.find(Severity::Note, Part::Record, log.position(), Cure::None, what);
        }
        Ok(())
    }

    /// Counts a section, if it is one that recovery will redo.
    fn judge_section(&mut self, lane: &mut LaneFound, section: &Section, span: Option<(u64, u64)>) {
        let (entry, binding) = (section.entry.get(), section.binding.get());
        if section.kind.get() == kind::TABLE || binding < lane.directory.since.get() {
            return;
        }
        if self.damaged.binary_search(&entry).is_ok() {
            if lane.refused.is_none() {
                let what =
                    format!("lane {} holds batches of it, which cannot be told from void ones", lane.index);
                self.find_of(entry, Found(Severity::Error, Part::Record, entry, Cure::Drop), &what);
                lane.refused = Some(what);
            }
            return;
        }
        let Some(object) = self.object(entry).copied() else { return };
        if !object.bound || object.lane != lane.index || object.binding != binding {
            return;
        }
        let (start, end) = (object.primary * PAGE, (object.primary + object.pages) * PAGE);
        if span.is_some_and(|(low, high)| low < start || high > end) {
            let what = format!("a batch in lane {} writes beyond the object", lane.index);
            self.find_of(entry, Found(Severity::Error, Part::Record, entry, Cure::Drop), &what);
            lane.refused = Some(what);
            return;
        }
        *lane.waiting.entry(entry).or_default() += 1;
        lane.advances.insert(entry);
    }

    /// Objects whose entry says that a writer has them.
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
                    let found = Found(Severity::Warning, Part::Entry, offset, Cure::Recover);
                    self.find_of(
                        offset,
                        found,
                        format!("it is bound to lane {}, which has no space", object.lane),
                    );
                }
                Some(lane) if lane.held => {
                    let what = "its writer has not detached it, but has let it go";
                    self.find_of(offset, Found(Severity::Note, Part::Entry, offset, Cure::None), what);
                }
                Some(lane) if object.binding < lane.directory.since.get() => {
                    self.find_of(offset, note, "its last writer is gone; nothing waits");
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
