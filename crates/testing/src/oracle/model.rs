use super::{NAMES, PROCESSES, Step};
use crate::pool::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    /// Two objects of one name, or two attachments of one object.
    Ambiguous,
    Done,
    NotFound,
    Exists,
    Held,
    ReadOnly,
    Poisoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    Well,
    Poisoned,
}

#[derive(Clone, PartialEq)]
pub(super) enum Attached {
    Reading,
    Writing { bytes: Vec<u8>, poisoned: bool },
}

/// An ID or address of zero is unknown.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Model {
    pub(super) durable: Snapshot,
    snapshots: BTreeSet<usize>,
    pub(super) sealed: BTreeSet<usize>,
    pub(super) attached: BTreeMap<(usize, usize), Attached>,
}

impl Model {
    fn bytes(&mut self, object: usize) -> Option<&mut Vec<u8>> {
        self.durable.get_mut(NAMES[object]).map(|(_, _, bytes)| bytes)
    }

    pub(super) fn has(&self, object: usize) -> bool {
        self.durable.contains_key(NAMES[object])
    }

    fn is_deleted(&self, object: usize) -> bool {
        !self.has(object) && self.attached.keys().any(|(_, attached)| *attached == object)
    }

    pub(super) fn shadow(&mut self, process: usize, object: usize) -> Option<&mut Vec<u8>> {
        match self.attached.get_mut(&(process, object)) {
            Some(Attached::Writing { bytes, poisoned: false }) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn is_poisoned(&self, process: usize, object: usize) -> bool {
        matches!(self.attached.get(&(process, object)), Some(Attached::Writing { poisoned: true, .. }))
    }

    pub(super) fn writes(&self, process: usize) -> bool {
        let writing = |a: &Attached| matches!(a, Attached::Writing { .. });
        self.attached.iter().any(|((owner, _), attached)| *owner == process && writing(attached))
    }

    pub(super) fn poisoned(&self) -> impl Iterator<Item = usize> + '_ {
        let poisoned = |a: &Attached| matches!(a, Attached::Writing { poisoned: true, .. });
        self.attached.iter().filter(move |(_, attached)| poisoned(attached)).map(|((process, _), _)| *process)
    }

    pub(super) fn poison(&mut self, process: usize, object: usize) {
        if let Some(Attached::Writing { poisoned, .. }) = self.attached.get_mut(&(process, object)) {
            *poisoned = true;
        }
    }

    pub(super) fn writing(&self, object: usize) -> Option<Writing> {
        (0..PROCESSES).find_map(|process| match self.attached.get(&(process, object)) {
            Some(Attached::Writing { poisoned: true, .. }) => Some(Writing::Poisoned),
            Some(Attached::Writing { .. }) => Some(Writing::Well),
            _ => None,
        })
    }

    fn held(&self, object: usize, for_reading: bool) -> bool {
        (0..PROCESSES).filter_map(|process| self.attached.get(&(process, object))).any(|attached| {
            match attached {
                Attached::Reading => !for_reading,
                Attached::Writing { .. } => true,
            }
        })
    }

    pub(super) fn psynced(&self, process: usize, objects: &[usize]) -> Vec<usize> {
        let mut own: Vec<usize> = objects.to_vec();
        own.retain(|object| matches!(self.attached.get(&(process, *object)), Some(Attached::Writing { .. })));
        own.sort_unstable();
        own.dedup();
        own
    }

    pub(super) fn die(&mut self, process: usize) {
        self.attached.retain(|(owner, _), _| *owner != process);
    }

    pub(super) fn step(&mut self, process: usize, step: &Step) -> Answer {
        let answer = self.answer(process, step);
        if answer == Answer::Done {
            self.take(process, step);
        }
        answer
    }

    fn answer(&mut self, process: usize, step: &Step) -> Answer {
        let free = |held: bool| if held { Answer::Held } else { Answer::Done };
        match *step {
            Step::Create { object: new, .. }
            | Step::CreateSealed { object: new, .. }
            | Step::Copy { to: new, .. }
            | Step::Rename { to: new, .. }
                if self.is_deleted(new) =>
            {
                Answer::Ambiguous
            }
            Step::Create { object, .. } | Step::CreateSealed { object, .. } if self.has(object) => {
                Answer::Exists
            }
            Step::Create { .. } | Step::CreateSealed { .. } => Answer::Done,
            Step::Destroy { object }
            | Step::Delete { object }
            | Step::Rename { object, .. }
            | Step::Resize { object, .. }
            | Step::Attach { object }
            | Step::Read { object }
            | Step::Copy { object, .. }
            | Step::Rollback { object, .. }
            | Step::Merge { object }
            | Step::Follow { object }
            | Step::Hold { object }
                if !self.has(object) =>
            {
                Answer::NotFound
            }
            Step::Attach { object }
            | Step::Resize { object, .. }
            | Step::Rollback { object, .. }
            | Step::Copy { object, snapshot: true, .. }
                if self.snapshots.contains(&object) =>
            {
                Answer::ReadOnly
            }
            Step::Rollback { to, .. } if !self.snapshots.contains(&to) => Answer::Nothing,
            Step::Rollback { object, .. } => free(self.held(object, false)),
            Step::Delete { .. } => Answer::Done,
            Step::Copy { to, .. } if self.has(to) => Answer::Exists,
            Step::Copy { .. } => Answer::Done,
            Step::Rename { to, .. } if self.has(to) => Answer::Exists,
            Step::Destroy { object }
            | Step::Rename { object, .. }
            | Step::Resize { object, .. }
            | Step::Attach { object } => free(self.held(object, false)),
            Step::Read { object } => match self.attached.get(&(process, object)) {
                Some(Attached::Reading) => Answer::Ambiguous,
                Some(Attached::Writing { .. }) => Answer::Held,
                None => free(self.held(object, true)),
            },
            Step::Detach { object } if self.attached.contains_key(&(process, object)) => Answer::Done,
            Step::Detach { .. } => Answer::Nothing,
            Step::Psync { ref objects } => match self.psynced(process, objects) {
                own if own.is_empty() => Answer::Nothing,
                own if own.iter().any(|object| self.is_poisoned(process, *object)) => Answer::Poisoned,
                _ => Answer::Done,
            },
            Step::Hold { .. }
            | Step::Follow { .. }
            | Step::Merge { .. }
            | Step::LetGo
            | Step::Lengthen
            | Step::Repair { .. }
            | Step::Die
            | Step::WritebackFails { .. } => Answer::Done,
            Step::Grow { object, .. } | Step::Load { object, .. } | Step::Checkpoint { object }
                if self.is_poisoned(process, object) =>
            {
                Answer::Poisoned
            }
            Step::Grow { object, size } => match self.shadow(process, object) {
                Some(shadow) if shadow.len() <= size as usize => Answer::Done,
                _ => Answer::Nothing,
            },
            Step::Store { object, .. } | Step::Load { object, .. } | Step::Checkpoint { object } => {
                self.shadow(process, object).map_or(Answer::Nothing, |_| Answer::Done)
            }
            Step::DieIn { ref step, .. } | Step::FailIn { ref step, .. } => self.answer(process, step),
        }
    }

    fn take(&mut self, process: usize, step: &Step) {
        match *step {
            Step::Create { object, size, .. } => {
                self.durable.insert(NAMES[object].into(), ([0; 16], 0, vec![0; size as usize]));
                self.sealed.remove(&object);
            }
            Step::CreateSealed { object, size } => {
                self.durable.insert(NAMES[object].into(), ([0; 16], 0, vec![0; size as usize]));
                self.sealed.insert(object);
            }
            Step::Destroy { object } | Step::Delete { object } => {
                self.durable.remove(NAMES[object]);
                self.snapshots.remove(&object);
            }
            Step::Copy { object, to, snapshot } => {
                let bytes = self.bytes(object).cloned().unwrap_or_default();
                self.durable.insert(NAMES[to].into(), ([0; 16], 0, bytes));
                if snapshot {
                    self.snapshots.insert(to);
                }
                match self.sealed.contains(&object) {
                    true => self.sealed.insert(to),
                    false => self.sealed.remove(&to),
                };
            }
            Step::Rollback { object, to } => {
                let then = self.bytes(to).cloned();
                if let (Some(bytes), Some(then)) = (self.bytes(object), then) {
                    *bytes = then;
                }
            }
            Step::Rename { object, to } => {
                for kind in [&mut self.snapshots, &mut self.sealed] {
                    match kind.remove(&object) {
                        true => kind.insert(to),
                        false => kind.remove(&to),
                    };
                }
                if let Some(found) = self.durable.remove(NAMES[object]) {
                    self.durable.insert(NAMES[to].into(), found);
                }
            }
            Step::Resize { object, size } => {
                self.bytes(object).into_iter().for_each(|bytes| bytes.resize(size as usize, 0));
            }
            Step::Attach { object } => {
                let bytes = self.bytes(object).cloned().unwrap_or_default();
                self.attached.insert((process, object), Attached::Writing { bytes, poisoned: false });
            }
            Step::Read { object } => drop(self.attached.insert((process, object), Attached::Reading)),
            Step::Detach { object } => drop(self.attached.remove(&(process, object))),
            Step::Store { object, at, len, value } => {
                if let Some(shadow) = self.shadow(process, object) {
                    let start = (at as usize).min(shadow.len());
                    let end = (start + len as usize).min(shadow.len());
                    shadow[start..end].fill(value);
                }
            }
            Step::Psync { ref objects } => {
                for object in self.psynced(process, objects) {
                    let shadow = self.shadow(process, object).cloned();
                    if let (Some(bytes), Some(shadow)) = (self.bytes(object), shadow) {
                        *bytes = shadow;
                    }
                }
            }
            Step::Grow { object, size } => {
                self.shadow(process, object).into_iter().for_each(|shadow| shadow.resize(size as usize, 0));
                self.bytes(object).into_iter().for_each(|bytes| bytes.resize(size as usize, 0));
            }
            Step::DieIn { ref step, .. } | Step::FailIn { ref step, .. } => self.take(process, step),
            Step::Die => self.die(process),
            // Loaded bytes are stored once the start of the virgin part is known.
            Step::Load { .. }
            | Step::Follow { .. }
            | Step::Merge { .. }
            | Step::Checkpoint { .. }
            | Step::Hold { .. }
            | Step::LetGo
            | Step::Lengthen
            | Step::Repair { .. }
            | Step::WritebackFails { .. } => {}
        }
    }
}
