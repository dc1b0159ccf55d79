//! Repair: mends damage that a check finds, as far as intact structures allow. Explicit, never on
//! its own.
//!
//! Invariants:
//! 1. This process alone has the pool: repair holds the table and every lane, and found every
//!    object free.
//! 2. Bytes in use are only overwritten with their former content: one wrong bit that the checksum
//!    betrays, a copy of data known from elsewhere, or redo. New structures are built in unused
//!    space, and take effect with one table batch. Exceptions: where the table's lane is given up,
//!    and the pool cannot be opened, the root's numbers and the marks of typed objects are changed
//!    in place; the next repair puts torn ones right.
//! 3. So a crash leaves the pool as it was, damaged, or as it will be; repair can be run again.
//! 4. Psynced data is given up only if the caller allows it, and the report states it.
//! 5. A failure of the medium is no damage: repair ends, and can be run again. Bytes count as
//!    damaged if they could not be read twice.
//! 6. An object that is marked as typed loses the mark before its content may change: see `trust`.

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

/// How to repair.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairOptions {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Give up data that cannot be saved: objects whose entries are damaged beyond reading, objects
    /// whose space another object claims as well, batches that cannot be replayed.
    pub drop_damaged: bool,
}

/// Something that repair did, would do (in a dry run), or had to leave.
#[derive(Clone, Debug)]
pub struct RepairAction {
    /// False: it was left as it is.
    pub done: bool,
    /// To what.
    pub part: Part,
    /// Offset in the pool, in bytes.
    pub offset: u64,
    /// The object it concerns, if it concerns one.
    pub object: Option<String>,
    /// The action, or why it was not taken.
    pub what: String,
    /// The loss it caused, if any.
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

/// A repair under way.
struct Repair {
    /// The device, or an overlay in a dry run.
    medium: Arc<dyn Device>,
    superblock: Superblock,
    seed: u64,
    /// Length of the pool: the root's, if it is intact.
    len: u64,
    options: RepairOptions,
    actions: Vec<RepairAction>,
    /// Something cannot be read, tried twice.
    unreadable: bool,
}

impl Store {
    /// Repairs the pool on `device`, which no process may have in use, this one included. Damage
    /// that could not be repaired is among the actions, not done. `progress` goes from 0 to its end
    /// once for each pass over the pool.
    ///
    /// # Errors
    /// `Held` and `TableBusy`: the pool is in use. `NoSuperblock`: both superblock slots are beyond
    /// repair, and no copy is there. `ObjectFeature`, `SectionKind`: only a later release knows
    /// which pages belong to which object. `NoRoom`: a new table does not fit. `ReadOnly` unless it
    /// is a dry run, and errors of the medium.
    pub fn repair(
        device: Arc<dyn Device>,
        options: &RepairOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<RepairAction>> {
        if device.read_only() && !options.dry_run {
            return Err(MediumError::ReadOnly.into());
        }
        // A file that is no pool is not locked.
        let (superblock, slots) = known_superblock(&*device)?;
        if device.read_only() {
            let deadline = Deadline::after(PATIENCE);
            let attempt = || Repair::run(&device, superblock, &slots, options, progress);
            return unlocked(&*device, superblock.seed.get(), deadline, attempt);
        }
        let _table = TableLock::take(&device, LockMode::Exclusive)?;
        let _lanes = LaneLocks::take(&device)?;
        // Until now another process may have made the pool longer.
        let (superblock, slots) = known_superblock(&*device)?;
        Repair::run(&device, superblock, &slots, options, progress)
    }
}

/// The superblock in force, or its copy, or that of a slot in which one bit is wrong; and the
/// slots.
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
    /// Repairs an unused pool; a dry run only lists the actions.
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

    /// Passes on an error that tells of damage, to be acted upon.
    ///
    /// # Errors
    /// That error, if the medium failed now (invariant 5).
    fn damage(&self, error: StoreError) -> Result<StoreError> {
        match error.failure() {
            None => Ok(error),
            Some(Failure::Read) if self.unreadable => Ok(error),
            Some(_) => Err(error),
        }
    }

    /// Invariant 1, for objects. Taking one needs the table, so that none is taken from here on.
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

    /// A slot that is damaged becomes a copy of the one in force, numbered below it; and the copy
    /// behind the pool is written if it is not there.
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
        // Nodes below a mended node may need mending too.
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
            // A lane that was given up writes no progress lines, which may then be damaged still.
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

    /// Adds a loss to the last action.
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

/// The error for a lock that is held. The holder is taken from the lock, not from the table, which
/// may be damaged.
pub(in crate::store) fn held(device: &dyn Device, key: LockKey, writer: bool) -> StoreError {
    let process = device.holder(key);
    StoreError::Held {
        holder: process.map_or(Holder::Unknown, |process| Holder::Process { process, writer }),
        others: Others::default(),
        passing: false,
    }
}

/// Checks that no process has a lane, on a device whose lanes cannot be locked.
pub(in crate::store) fn lanes_are_free(device: &dyn Device) -> Result<()> {
    for key in (0..LANES).map(LockKey::Lane) {
        if device.probe(key)?.is_some() {
            return Err(held(device, key, true));
        }
    }
    Ok(())
}

/// Every lane, locked.
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
            // Objects may be held still whose writer died: they must stay as they are.
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
