//! Check: reads a whole pool and reports faults. Nothing changes.
//!
//! It works on an overlay with the table lane caught up; writers' lanes are not replayed. The table
//! is locked for reading; on a read-only device the check restarts if the table changed. Lanes in
//! use and progress lines being written are left out.
//!
//! Structures are followed only through new pages: cycles end, and the pool's size
//! bounds memory.

mod bases;
mod brief;
mod cut;
mod finding;
mod lanes;
mod objects;
mod slots;
mod space;
mod table;
mod ties;
mod trees;

use crate::error::{Part, Result, StoreError};
use crate::format::entry::Entry;
use crate::format::root::{Root, TREES};
use crate::format::superblock::{SLOTS, SlotFault, Superblock};
use crate::format::{DATA, LANES, PAGE, checksum};
use crate::medium::{Device, LockKey, LockMode, Medium, Overlay, read_struct};
use crate::store::access::unlocked;
use crate::store::locks::{Deadline, lock_table};
use crate::store::pool::{
    Store, SuperblockSlot, find_spare, has_room, in_force, is_spared, settled_superblocks, superblocks,
};
pub(super) use bases::users;
use brief::Brief;
use cut::whole;
pub(super) use finding::{Cure, Found};
pub use finding::{Finding, Report, Severity};
pub(super) use lanes::LaneFound;
pub(super) use objects::{Object, is_damaged};
pub(super) use slots::is_clean;
pub(super) use space::{Claim, Owner, gaps, overlapping};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
pub(super) use table::TableLane;
use trees::Leaves;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(super) const PATIENCE: Duration = Duration::from_secs(5);
const RESTLESS: Duration = Duration::from_secs(60);

impl Store {
    /// Verifies the pool on `device`, openable or not, and changes nothing. Calls
    /// `progress(done, total)` now and then.
    ///
    /// `device` must not be in use by an open store of this process, whose locks would look like
    /// the check's. A medium shorter than the pool is judged with zeros behind its end.
    ///
    /// # Errors
    /// `NotAPool`, `Version`, `Features`: nothing to check. `TableBusy`, `TableInMotion`: other
    /// processes change the table.
    pub fn check(device: Arc<dyn Device>, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
        let (device, cut) = whole(device)?;
        let slots = settled_superblocks(&*device)?;
        let superblock = match in_force(&slots, device.len()) {
            Ok(found) => found,
            Err(why) => match (find_spare(&*device, &why), why) {
                (Some(found), _) => found,
                (None, StoreError::Damaged { .. }) => return Ok(nothing_intact()),
                (None, why) => return Err(why),
            },
        };
        let make = |progress: &mut dyn FnMut(u64, u64)| {
            if cut.is_none()
                && let Some(report) = Survey::brief(device.clone(), superblock, progress)?
            {
                return Ok(report);
            }
            let mut survey = Survey::make(device.clone(), superblock, progress)?;
            if let Some(cut) = cut {
                survey.judge_cut(cut);
            }
            Ok(survey.report)
        };
        if device.read_only() {
            let seed = superblock.seed.get();
            return unlocked(&*device, seed, Deadline::after(RESTLESS), || make(progress));
        }
        let _table = TableLock::take(&device, LockMode::Shared)?;
        make(progress)
    }

    /// The pool's length if the medium ends there, without place for a copy of the superblock.
    pub fn len_without_spare(medium: &dyn Medium) -> Result<Option<u64>> {
        let superblock = in_force(&superblocks(medium)?, medium.len())?;
        Ok((!has_room(medium, &superblock)).then_some(superblock.length.get()))
    }

    /// Both superblock slots, intact or not.
    pub fn superblocks(medium: &dyn Medium) -> Result<[SuperblockSlot; 2]> {
        superblocks(medium)
    }
}

fn nothing_intact() -> Report {
    let mut report = Report::default();
    for slot in SLOTS {
        let found = Found(Severity::Error, Part::Superblock, slot, Cure::Restore);
        let what =
            "no superblock slot is intact, and no copy lies behind the pool: nothing else can be judged";
        report.add(found, None, what.into());
    }
    report
}

impl SuperblockSlot {
    fn is_torn(&self, in_force: &Superblock) -> bool {
        let Superblock { sequence, checksum, length, .. } = *in_force;
        let alike = Superblock { sequence, checksum, length, ..self.superblock };
        alike.as_bytes() == in_force.as_bytes()
    }

    pub(super) fn is_foreign(&self) -> bool {
        let mut zeroed = self.superblock;
        zeroed.checksum = 0.into();
        // A slot of format 1 is shorter.
        let lengths = [size_of::<Superblock>(), 232];
        let mut sums = lengths.into_iter().map(|len| checksum(0, &[&zeroed.as_bytes()[..len]]));
        matches!(self.fault, Some(SlotFault::Version(_) | SlotFault::Features(_) | SlotFault::Upgrading))
            && sums.any(|sum| sum == self.superblock.checksum.get())
    }
}

pub(super) struct TableLock(Arc<dyn Device>);

impl TableLock {
    pub(super) fn take(device: &Arc<dyn Device>, mode: LockMode) -> Result<TableLock> {
        lock_table(&**device, mode, &mut Deadline::after(PATIENCE))?;
        Ok(TableLock(device.clone()))
    }
}

impl Drop for TableLock {
    fn drop(&mut self) {
        self.0.unlock(LockKey::Table);
    }
}

pub(super) struct Survey {
    /// The pool with its table lane caught up.
    pub medium: Arc<Overlay>,
    pub seed: u64,
    /// The root's length, or the superblock's if the root is damaged.
    pub len: u64,
    pub report: Report,
    /// First address and length.
    pub window: (u64, u64),
    pub table: TableLane,
    /// `None`: damaged.
    pub root: Option<Root>,
    pub trees: [Leaves; TREES.len()],
    pub lanes: Vec<LaneFound>,
    /// Lanes with a damaged directory slot.
    pub lost_lanes: Vec<u32>,
    pub objects: Vec<Object>,
    /// Slots that should have an intact entry, ascending.
    pub damaged: Vec<u64>,
    /// Intact entries outside all trees.
    pub strays: Vec<u64>,
    /// Entries outside the tree of IDs.
    unidentified: Vec<u64>,
    pub baseless: Vec<u64>,
    pub untied: Vec<u64>,
    /// Damaged nodes and their levels.
    pub damaged_nodes: Vec<(u64, u16)>,
    /// The free slots listed, ascending, and whether the list is whole.
    pub free_slots: Vec<u64>,
    pub slots_sound: bool,
    pub free_pages: Vec<u64>,
    /// Entries with damaged progress lines.
    pub progress: Vec<u64>,
    claims: Vec<Claim>,
    brief: Option<Brief>,
    /// The first part of a later release found: it can be neither judged nor repaired.
    pub later: Option<StoreError>,
}

struct Meter<'p> {
    tell: &'p mut dyn FnMut(u64, u64),
    done: u64,
    total: u64,
}

impl Meter<'_> {
    fn step(&mut self, units: u64) {
        let before = self.done / 1024;
        self.done = self.done.saturating_add(units).min(self.total);
        if self.done / 1024 > before {
            (self.tell)(self.done, self.total);
        }
    }
}

impl Survey {
    fn note_later(&mut self, error: &StoreError) {
        if let StoreError::SectionKind { offset, kind } = *error {
            self.later.get_or_insert(StoreError::SectionKind { offset, kind });
        }
    }

    /// The caller has the table.
    pub(super) fn make(
        device: Arc<dyn Device>,
        superblock: Superblock,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Survey> {
        Survey::read_all(device, superblock, None, progress)
    }

    /// Checks a pool that should be clean. The caller has the table.
    fn brief(
        device: Arc<dyn Device>,
        superblock: Superblock,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Report>> {
        let survey = Survey::read_all(device, superblock, Some(Brief::new()?), progress)?;
        let certain = survey.later.is_none() && survey.brief.is_some_and(Brief::agrees);
        Ok(Some(survey.report).filter(|report| certain && report.is_clean()))
    }

    fn read_all(
        device: Arc<dyn Device>,
        superblock: Superblock,
        brief: Option<Brief>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Survey> {
        let mut survey = Survey {
            medium: Arc::new(Overlay::new(device.clone())),
            seed: superblock.seed.get(),
            len: superblock.length.get(),
            report: Report::default(),
            window: (superblock.window.get(), superblock.window_len.get()),
            table: TableLane::default(),
            root: None,
            trees: Default::default(),
            lanes: Vec::new(),
            lost_lanes: Vec::new(),
            objects: Vec::new(),
            damaged: Vec::new(),
            strays: Vec::new(),
            unidentified: Vec::new(),
            baseless: Vec::new(),
            untied: Vec::new(),
            damaged_nodes: Vec::new(),
            free_slots: Vec::new(),
            slots_sound: true,
            free_pages: Vec::new(),
            progress: Vec::new(),
            claims: Vec::new(),
            brief,
            later: None,
        };
        survey.judge_superblocks(&*device, &superblock)?;
        survey.catch_up();
        survey.read_root()?;
        let counts = survey.root.map_or([0; 6], |root| root.trees.map(|tree| tree.count.get()));
        let total = counts.iter().fold(u64::from(LANES), |sum, count| sum.saturating_add(*count));
        let mut meter = Meter { tell: progress, done: 0, total };
        (meter.tell)(0, total);
        let mut met = HashSet::new();
        survey.read_trees(&mut met, &mut meter);
        survey.read_free_pages(&mut met);
        survey.read_free_slots();
        survey.read_directory();
        survey.read_objects(&mut meter);
        survey.judge_slots();
        survey.read_lanes(&mut meter);
        survey.judge_bindings();
        survey.judge_progress();
        survey.judge_space();
        survey.judge_addresses();
        (meter.tell)(total, total);
        Ok(survey)
    }

    fn judge_superblocks(&mut self, device: &dyn Medium, in_force: &Superblock) -> Result<()> {
        let slots = superblocks(device)?;
        let none_serves = slots.iter().all(|slot| slot.fault.is_some());
        for slot in slots {
            let Some(fault) = slot.fault else { continue };
            let (severity, cure, what) = if slot.is_foreign() {
                (Severity::Warning, Cure::None, format!("other software wrote this slot ({fault:?})"))
            } else if fault == SlotFault::Checksum && slot.is_torn(in_force) {
                let what = "a growth of the pool was cut short in this slot; the other serves";
                (Severity::Note, Cure::Rewrite, what.to_owned())
            } else if none_serves {
                let what = format!("this slot is damaged ({fault:?}), the copy behind the pool serves");
                (Severity::Error, Cure::Rewrite, what)
            } else {
                let what = format!("this slot is damaged ({fault:?}), the other serves");
                (Severity::Warning, Cure::Rewrite, what)
            };
            self.find(severity, Part::Superblock, slot.offset, cure, what);
        }
        if has_room(device, in_force) && !is_spared(device, in_force) {
            let what =
                "the copy of the superblock, which serves when both slots are lost, is not behind the pool";
            self.find(Severity::Note, Part::Superblock, in_force.length.get(), Cure::Rewrite, what);
        }
        Ok(())
    }

    fn find(&mut self, severity: Severity, part: Part, offset: u64, cure: Cure, what: impl Into<String>) {
        self.report.add(Found(severity, part, offset, cure), None, what.into());
    }

    fn find_of(&mut self, entry: u64, found: Found, what: impl Into<String>) {
        let object = self.name_at(entry);
        self.report.add(found, Some(object), what.into());
    }

    pub(super) fn name_at(&self, slot: u64) -> String {
        let name = read_struct::<Entry>(&*self.medium, slot).map(|entry| entry.name()).unwrap_or_default();
        if name.is_empty() { format!("(entry at {slot})") } else { name }
    }

    fn read<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        part: Part,
        offset: u64,
    ) -> Option<T> {
        match read_struct(&*self.medium, offset) {
            Ok(found) => Some(found),
            Err(error) => {
                self.find(
                    Severity::Error,
                    part,
                    offset,
                    Cure::Rebuild,
                    format!("it cannot be read: {error}"),
                );
                None
            }
        }
    }

    fn is_table_page(&self, offset: u64) -> bool {
        offset.is_multiple_of(PAGE) && offset >= DATA && offset < self.len
    }

    pub(super) fn object(&self, offset: u64) -> Option<&Object> {
        let at = self.objects.binary_search_by_key(&offset, |object| object.offset).ok()?;
        Some(&self.objects[at])
    }

    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }

    pub(super) fn table_pages(&self) -> Vec<Claim> {
        let is_table = |owner| matches!(owner, Owner::Node(_) | Owner::FreeTablePage | Owner::Chunk);
        self.claims.iter().filter(|claim| is_table(claim.owner)).copied().collect()
    }

    fn owners_are_known(&self) -> bool {
        self.root.is_some() && self.trees.iter().all(|tree| tree.complete) && self.lost_lanes.is_empty()
    }
}
