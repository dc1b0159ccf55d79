//! Repair: mends damage that a check finds, as far as intact structures allow; only on request.
//!
//! Invariants:
//! 1. This process alone has the pool: repair holds the table and every lane, and found every
//!    object free.
//! 2. Used bytes are overwritten only with their former content: one wrong bit found by a checksum,
//!    a copy known from elsewhere, or redo. New structures go to unused space and take effect with
//!    one table batch. Exceptions: if the table's lane is given up, the pool cannot be opened, and
//!    the root's numbers and the marks of typed objects change in place; the next repair corrects
//!    torn ones.
//! 3. So a crash leaves the pool as it was, damaged, or as it will be; repair can run again.
//! 4. Psynced data is given up only if the caller allows it, and the report states it.
//! 5. A failure of the medium is no damage: repair ends, and can run again. Bytes count as damaged
//!    after two failed reads.
//! 6. A typed object loses its mark before its content may change: see `trust`.

mod bases;
mod lanes;
mod mend;
mod nodes;
mod plan;
mod rebuild;
mod scan;
mod settled;
mod table;
mod trust;

use crate::error::{Failure, Holder, Part, Result, StoreError};
use crate::format::LANES;
use crate::format::superblock::Superblock;
use crate::medium::{Device, LockKey, LockMode, MediumError, Others, Overlay};
use crate::mutant::Mutant;
use crate::store::access::unlocked;
use crate::store::check::{Cure, PATIENCE, Survey, TableLock};
use crate::store::locks::Deadline;
use crate::store::pool::Store;
use crate::store::pool::{
    SuperblockSlot, find_spare, has_room, in_force, is_spared, settled_superblocks, write_spare,
};
use std::fmt;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Options of a repair.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairOptions {
    /// Only report the actions.
    pub dry_run: bool,
    /// Give up what cannot be saved: objects with unreadable entries or contested space, batches
    /// that cannot be replayed.
    pub drop_damaged: bool,
}

/// An action done, planned (in a dry run), or impossible.
#[derive(Clone, Debug)]
pub struct RepairAction {
    /// False: nothing was done.
    pub done: bool,
    /// Damaged part.
    pub part: Part,
    /// Its offset in the pool.
    pub offset: u64,
    /// Name of the object concerned.
    pub object: Option<String>,
    /// The action, or the obstacle.
    pub what: String,
    /// The resulting loss.
    pub lost: Option<String>,
}

impl fmt::Display for RepairAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.done {
            f.write_str("left alone: ")?;
        }
        write!(f, "{} at {}: ", self.part, self.offset)?;
        if let Some(object) = &self.object {
            write!(f, "object {object:?}: ")?;
        }
        f.write_str(&self.what)?;
        match &self.lost {
            Some(lost) => write!(f, "; lost: {lost}"),
            None => Ok(()),
        }
    }
}

struct Repair {
    medium: Arc<dyn Device>,
    superblock: Superblock,
    seed: u64,
    /// The root's length, if intact.
    len: u64,
    options: RepairOptions,
    actions: Vec<RepairAction>,
    unreadable: bool,
}

impl Store {
    /// Repairs the pool on `device`, which no process may use. The actions include damage left.
    /// `progress` runs to its end once per pass.
    ///
    /// # Errors
    /// `Held` and `TableBusy`: the pool is in use. `NoSuperblock`: the slots are beyond repair, and
    /// there is no copy. `ObjectFeature`, `SectionKind`: only a later release knows the pages'
    /// owners. `NoRoom`: no room for a new table. `ReadOnly` unless a dry run; the medium's.
    pub fn repair(
        device: Arc<dyn Device>,
        options: &RepairOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<RepairAction>> {
        if device.read_only() && !options.dry_run {
            return Err(MediumError::ReadOnly.into());
        }
        let (superblock, slots) = known_superblock(&*device)?;
        if device.read_only() {
            let deadline = Deadline::after(PATIENCE);
            let attempt = || Repair::run(&device, superblock, &slots, options, progress);
            return unlocked(&*device, superblock.seed.get(), deadline, attempt);
        }
        let _table = TableLock::take(&device, LockMode::Exclusive)?;
        let _lanes = LaneLocks::take(&device)?;
        let (superblock, slots) = known_superblock(&*device)?;
        Repair::run(&device, superblock, &slots, options, progress)
    }
}

fn known_superblock(device: &dyn Device) -> Result<(Superblock, [SuperblockSlot; 2])> {
    let slots = settled_superblocks(device)?;
    let why = match in_force(&slots, device.len()) {
        Ok(superblock) => return Ok((superblock, slots)),
        Err(why) => why,
    };
    let mended = || slots.iter().find_map(|slot| mend::superblock(slot, device.len()));
    match find_spare(device, &why).or_else(mended) {
        Some(superblock) => Ok((superblock, slots)),
        None if matches!(why, StoreError::Damaged { .. }) => Err(StoreError::NoSuperblock),
        None => Err(why),
    }
}

impl Repair {
    fn run(
        device: &Arc<dyn Device>,
        superblock: Superblock,
        slots: &[SuperblockSlot; 2],
        options: &RepairOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<RepairAction>> {
        if device.read_only() {
            lanes_are_free(&**device)?;
        }
        let medium: Arc<dyn Device> =
            if options.dry_run { Arc::new(Overlay::new(device.clone())) } else { device.clone() };
        let mut repair = Repair {
            medium,
            superblock,
            seed: superblock.seed.get(),
            len: superblock.length.get(),
            options: *options,
            actions: Vec::new(),
            unreadable: false,
        };
        let mut survey = repair.survey(progress)?;
        if let Some(later) = survey.later.take().filter(|_| !Mutant::UnknownUsed.is_on()) {
            return Err(later);
        }
        repair.nobody_has(&**device, &survey, progress)?;
        repair.restore_superblocks(slots)?;
        repair.work(survey, progress)?;
        Ok(repair.actions)
    }

    fn survey(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<Survey> {
        let mut survey = Survey::make(self.medium.clone(), self.superblock, progress)?;
        if survey.medium.has_failed() {
            survey = Survey::make(self.medium.clone(), self.superblock, progress)?;
            self.unreadable |= survey.medium.has_failed();
        }
        self.len = survey.len;
        Ok(survey)
    }

    fn damage(&self, error: StoreError) -> Result<StoreError> {
        match error.failure() {
            None => Ok(error),
            Some(Failure::Read) if self.unreadable => Ok(error),
            Some(_) => Err(error),
        }
    }

    /// Invariant 1, for objects.
    fn nobody_has(
        &self,
        device: &dyn Device,
        survey: &Survey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut entries: Vec<_> = survey.objects.iter().map(|object| object.offset).collect();
        if !plan::entries_are_known(survey) {
            let scanned = scan::entries(&*survey.medium, self.seed, self.len, progress)?;
            entries.extend(scanned.objects.iter().map(|object| object.offset));
        }
        entries.extend(&survey.damaged);
        for entry in entries {
            if let Some(mode) = device.probe(LockKey::Object(entry))? {
                return Err(held(device, LockKey::Object(entry), mode == LockMode::Exclusive));
            }
        }
        Ok(())
    }

    /// Mends a slot from the one in force, numbered below it, and a missing copy.
    fn restore_superblocks(&mut self, slots: &[SuperblockSlot; 2]) -> Result<()> {
        let lost = slots.iter().all(|slot| slot.fault.is_some());
        let from = if lost { "written again" } else { "written again from the other slot" };
        for slot in slots.iter().filter(|slot| slot.fault.is_some() && !slot.is_foreign()) {
            let mut copy = self.superblock;
            copy.sequence = U64::new(copy.sequence.get().saturating_sub(1));
            self.medium.write_durable(slot.offset, copy.sealed().as_bytes())?;
            self.did(Part::Superblock, slot.offset, None, from);
        }
        let superblock = self.superblock;
        if has_room(&*self.medium, &superblock) && !is_spared(&*self.medium, &superblock) {
            write_spare(&*self.medium, &superblock)?;
            let what = "the copy behind the pool was written";
            self.did(Part::Superblock, superblock.length.get(), None, what);
        }
        Ok(())
    }

    fn work(&mut self, mut survey: Survey, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let asked = |survey: &Survey, cures: &[Cure]| cures.iter().any(|cure| survey.report.asks_for(*cure));
        let drop = self.options.drop_damaged;
        let all =
            [Cure::Rewrite, Cure::Recover, Cure::Rebuild, Cure::Reap, Cure::Count, Cure::Untie, Cure::Drop];
        if !asked(&survey, &all) {
            return self.say_what_is_left(&survey);
        }
        let mut settled = self.settle_table(&survey, progress)?;
        survey = settled.survey(progress)?;
        for _ in 0..crate::format::root::TREES.len() {
            if !settled.mend(&survey)? {
                break;
            }
            survey = settled.survey(progress)?;
        }
        let rebuilt = asked(&survey, &[Cure::Rebuild]) || (drop && asked(&survey, &[Cure::Drop]));
        if rebuilt {
            settled.rebuild(&survey, progress)?;
            survey = settled.survey(progress)?;
        }
        if survey.root.is_some() {
            settled.recover(&survey, rebuilt)?;
            survey = settled.survey(progress)?;
            settled.rewrite_progress(&survey)?;
            if !survey.report.asks_for(Cure::Rebuild) {
                settled.mend_bases(survey, progress)?;
            }
        }
        let survey = self.survey(progress)?;
        self.say_what_is_left(&survey)
    }

    fn say_what_is_left(&mut self, survey: &Survey) -> Result<()> {
        use crate::store::check::Severity;
        for finding in survey.report.findings.iter().filter(|finding| finding.severity == Severity::Error) {
            self.actions.push(RepairAction {
                done: false,
                part: finding.part,
                offset: finding.offset,
                object: finding.object.clone(),
                what: format!("{} ({})", finding.what, finding.remedy),
                lost: None,
            });
        }
        Ok(())
    }

    fn did(&mut self, part: Part, offset: u64, object: Option<String>, what: impl Into<String>) {
        self.actions.push(RepairAction { done: true, part, offset, object, what: what.into(), lost: None });
    }

    fn losing(&mut self, lost: impl Into<String>) {
        if let Some(action) = self.actions.last_mut() {
            action.lost = Some(lost.into());
        }
    }

    fn leave(&mut self, part: Part, offset: u64, what: impl Into<String>) {
        self.did(part, offset, None, what);
        if let Some(action) = self.actions.last_mut() {
            action.done = false;
        }
    }
}

/// The table, perhaps damaged, is not asked.
pub(in crate::store) fn held(device: &dyn Device, key: LockKey, writer: bool) -> StoreError {
    let process = device.holder(key);
    StoreError::Held {
        holder: process.map_or(Holder::Unknown, |process| Holder::Process { process, writer }),
        others: Others::default(),
        passing: false,
    }
}

pub(in crate::store) fn lanes_are_free(device: &dyn Device) -> Result<()> {
    for key in (0..LANES).map(LockKey::Lane) {
        if device.probe(key)?.is_some() {
            return Err(held(device, key, true));
        }
    }
    Ok(())
}

struct LaneLocks {
    device: Arc<dyn Device>,
    taken: u32,
}

impl LaneLocks {
    fn take(device: &Arc<dyn Device>) -> Result<LaneLocks> {
        let mut locks = LaneLocks { device: device.clone(), taken: 0 };
        for index in 0..LANES {
            let key = LockKey::Lane(index);
            if !device.try_lock(key, LockMode::Exclusive)? {
                return Err(held(&**device, key, true));
            }
            locks.taken = index + 1;
            // Held-still objects must stay.
            let gate = LockKey::ApplyGate(index);
            if device.probe(gate)?.is_some() {
                return Err(held(&**device, gate, false));
            }
        }
        Ok(locks)
    }
}

impl Drop for LaneLocks {
    fn drop(&mut self) {
        (0..self.taken).for_each(|index| self.device.unlock(LockKey::Lane(index)));
    }
}
