use super::follow::Follower;
use super::hold::Hold;
use super::model::{Attached, Model, Writing};
use super::{NAMES, Step};
use crate::pool::{Borrowing, Lines, contents, page, process, take};
use crate::sealed;
use crate::sim::SimMedium;
use indelible_store::error::{Result, StoreError};
use indelible_store::format::PAGE;
use indelible_store::lane::Batch;
use indelible_store::store::{
    Changes, Primary, Reader, RepairAction, RepairOptions, SnapshotOf, Store, Writer, psync_all,
};
use indelible_store::table::{CreateOptions, Key, Located};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const LONGER: u64 = 128 << 10;

pub(super) struct Process {
    pub(super) medium: Arc<SimMedium>,
    pub(super) store: Arc<Store>,
    writers: BTreeMap<usize, Writer>,
    readers: BTreeMap<usize, Reader>,
    pub(super) hold: Option<Hold>,
    follower: Option<Follower>,
}

#[derive(Default)]
pub(super) struct Seen {
    object: Option<(usize, Located, Vec<u8>)>,
    shown: Option<(usize, Vec<u8>)>,
    made: Option<Located>,
    loaded: Option<(usize, Range<usize>, u8)>,
    pub(super) repair: Option<String>,
    pub(super) moved: bool,
}

impl Seen {
    pub(super) fn difference(&self, world: &Model) -> Option<String> {
        let found = self.object.as_ref().map(|(object, _, shown)| (object, shown));
        let (object, shown) = found.or(self.shown.as_ref().map(|(object, shown)| (object, shown)))?;
        let Some((_, _, bytes)) = world.durable.get(NAMES[*object]) else {
            return Some("shows what should not exist".into());
        };
        if bytes.len() != shown.len() {
            return Some(format!("shows {} bytes, not {}", shown.len(), bytes.len()));
        }
        let at = bytes.iter().zip(shown).position(|(a, b)| a != b)?;
        Some(format!("shows {} at {at}, where {} was psynced", shown[at], bytes[at]))
    }

    pub(super) fn located(&self, world: &mut Model) {
        let seen = self.object.as_ref().map(|(_, located, _)| located).or(self.made.as_ref());
        if let Some(Located { entry, .. }) = seen
            && let Some(found) = world.durable.get_mut(&entry.name())
        {
            (found.0, found.1) = (entry.id, entry.address.get());
        }
    }

    pub(super) fn stored(&self, world: &mut Model, process: usize) {
        if let Some((object, range, value)) = &self.loaded
            && let Some(shadow) = world.shadow(process, *object)
            && let Some(bytes) = shadow.get_mut(range.clone())
        {
            bytes.fill(*value);
        }
    }
}

struct Shadow<'a> {
    bytes: &'a [u8],
    borrowing: Borrowing<'a>,
}

impl Changes for Shadow<'_> {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        let mut end = 0;
        for (number, bytes) in (0..).zip(self.bytes.chunks(PAGE as usize)) {
            let old = page(primary, number)?;
            let mut new = old;
            new[..bytes.len()].copy_from_slice(bytes);
            end = end.max(take(primary, batch, self.borrowing, number, &old, &new));
        }
        Ok(end)
    }
}

impl Process {
    pub(super) fn begin(medium: &SimMedium, pid: u32) -> Result<Process> {
        let medium = Arc::new(medium.handle());
        let store = Store::open(medium.clone(), process(pid))?;
        store.set_patience(Duration::ZERO);
        Ok(Process {
            medium,
            store,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            hold: None,
            follower: None,
        })
    }

    pub(super) fn is_poisoned(&self, object: usize) -> bool {
        self.writers.get(&object).is_some_and(Writer::is_poisoned)
    }

    pub(super) fn call(&mut self, own: usize, step: &Step, world: &Model, seen: &mut Seen) -> Result<()> {
        let key = Key::default();
        let Process { store, writers, readers, hold, follower, .. } = self;
        match *step {
            Step::Create { object, size, sparse } => {
                let how = CreateOptions { size: size.into(), sparse, ..CreateOptions::default() };
                let made = store.create(NAMES[object], &how)?;
                seen.object = Some((object, made, vec![0; size as usize]));
            }
            Step::CreateSealed { object, size } => {
                let create = if size % 2 == 0 { sealed::create_signed } else { sealed::create };
                let made = create(store, NAMES[object], size.into())?;
                seen.object = Some((object, made, vec![0; size as usize]));
            }
            Step::Destroy { object } => store.destroy(NAMES[object], key)?,
            Step::Lengthen => drop(store.lengthen(store.info()?.length + LONGER)?),
            Step::Delete { object } => store.delete(NAMES[object], key)?,
            Step::Copy { object, to, snapshot } => {
                let made = match snapshot {
                    true => {
                        let of = SnapshotOf { object: NAMES[object], key, name: NAMES[to] };
                        store.snapshot(&[of])?.swap_remove(0)
                    }
                    false => store.create_from(NAMES[object], key, NAMES[to], &CreateOptions::default())?,
                };
                seen.made = Some(made);
            }
            Step::Rollback { object, to } => store.rollback(NAMES[object], NAMES[to], key)?,
            Step::Merge { object } => drop(store.merge(NAMES[object])?),
            Step::Rename { object, to } => sealed::rename(store, NAMES[object], NAMES[to])?,
            Step::Resize { object, size } if store.find(NAMES[object])?.is_sealed() => {
                sealed::resize(store, NAMES[object], size.into())?;
            }
            Step::Resize { object, size } => drop(store.resize(NAMES[object], key, size.into())?),
            Step::Attach { object } => {
                let writer = sealed::writer(store, NAMES[object])?;
                let shown = match writer.sealed_pages() {
                    Some(pages) => sealed::bytes(&pages)?,
                    None => contents(store, writer.object())?,
                };
                seen.object = Some((object, *writer.object(), shown));
                writers.insert(object, writer);
            }
            Step::Read { object } => {
                let reader = sealed::reader(store, NAMES[object])?;
                let shown = match reader.sealed_pages() {
                    Some(pages) => sealed::bytes(&pages)?,
                    None => contents(store, reader.object())?,
                };
                seen.object = Some((object, *reader.object(), shown));
                readers.insert(object, reader);
            }
            Step::Detach { object } => match (writers.remove(&object), readers.remove(&object)) {
                (Some(writer), _) => writer.detach()?,
                (_, Some(reader)) => reader.detach()?,
                (None, None) => {}
            },
            Step::Load { object, len, value } => {
                let Some(writer) = writers.get_mut(&object) else { return Ok(()) };
                let Some(Attached::Writing { bytes, .. }) = world.attached.get(&(own, object)) else {
                    return Ok(());
                };
                let from = writer.published().min(bytes.len() as u64);
                let to = (from + u64::from(len)).min(bytes.len() as u64);
                seen.loaded = Some((object, from as usize..to as usize, value));
                // With a base or a seal, the next psync logs the bytes.
                let direct = from < to && writer.takes_direct_writes();
                if direct || writer.is_poisoned() {
                    match writer.begin_direct(to) {
                        Err(StoreError::HasBase) => return Ok(()),
                        begun => begun?,
                    }
                    writer.write_direct(from, &vec![value; (to - from) as usize])?;
                    writer.end_direct()?;
                }
            }
            Step::Psync { ref objects } => psync(writers, own, &world.psynced(own, objects), world)?,
            Step::Grow { object, size } => {
                if let Some(writer) = writers.get_mut(&object) {
                    match size % 3 {
                        0 => writer.grow(size.into())?,
                        way => writer.grow_beside(size.into(), way == 1)?,
                    };
                }
            }
            Step::Checkpoint { object } => {
                if let Some(writer) = writers.get(&object) {
                    writer.checkpoint()?;
                }
            }
            Step::Hold { object } => {
                *hold = None;
                *hold = store.hold_still(NAMES[object], key)?.map(Hold::begin).transpose()?;
                if let (Some(hold), Some(Writing::Well)) = (hold, world.writing(object)) {
                    seen.object = Some((object, *hold.object(), hold.shown().to_vec()));
                }
            }
            Step::Follow { object } => {
                if let Some(now) = follower.as_mut()
                    && now.again(object)
                {
                    // After a failed psync it may show bytes that a power cut undoes.
                    if world.writing(object) != Some(Writing::Poisoned) {
                        seen.shown = Some((object, now.shown.clone()));
                    }
                    return Ok(());
                }
                seen.moved = !follower.take().map_or(Ok(true), Follower::end)?;
                let now = follower.insert(Follower::begin(store, object)?);
                seen.shown = Some((object, now.shown.clone()));
                if now.has_the_name() {
                    seen.moved |= !follower.take().map_or(Ok(true), Follower::end)?;
                }
            }
            Step::Repair { drop_damaged } => {
                let how = RepairOptions { dry_run: false, drop_damaged };
                let actions = Store::repair(self.medium.clone(), &how, &mut |_, _| {})?;
                let wrong = |action: &&RepairAction| action.lost.is_some() || !action.done;
                seen.repair = actions.iter().find(wrong).map(ToString::to_string);
            }
            Step::LetGo => seen.moved = !hold.take().map_or(Ok(true), Hold::end)?,
            Step::Store { .. }
            | Step::Die
            | Step::DieIn { .. }
            | Step::FailIn { .. }
            | Step::WritebackFails { .. } => {}
        }
        Ok(())
    }
}

fn psync(writers: &mut BTreeMap<usize, Writer>, own: usize, objects: &[usize], world: &Model) -> Result<()> {
    let source = Lines::default();
    let mut parts: Vec<(&mut Writer, Shadow<'_>)> = Vec::new();
    for (object, writer) in writers.iter_mut().filter(|(object, _)| objects.contains(object)) {
        if let Some(Attached::Writing { bytes, .. }) = world.attached.get(&(own, *object)) {
            let borrowing = Borrowing::new(&source, writer);
            parts.push((writer, Shadow { bytes, borrowing }));
        }
    }
    let mut joined: Vec<(&mut Writer, &mut dyn Changes)> =
        parts.iter_mut().map(|(writer, shadow)| (&mut **writer, shadow as &mut dyn Changes)).collect();
    psync_all(&mut joined, Some(&source))
}
