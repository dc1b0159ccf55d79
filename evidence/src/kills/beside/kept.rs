use super::history::{GROUPS, History, Label, MEMBERS, label, store, stores, word};
use super::writer::same;
use crate::workloads::journal::{DONE, Event, Journal};
use crate::workloads::program::mixed;
use crate::workloads::world::{Trouble, patient};
use indelible::Pool;
use std::collections::BTreeMap;
use std::path::Path;

/// Snapshots of objects as of one moment. Words: number, objects as bits, events of the groups
/// before and after.
pub(super) const SNAPSHOT: u64 = 1;
/// A copy of an object with a writer, with the words of a snapshot.
pub(super) const COPY: u64 = 2;
/// A copy of a snapshot or copy, or a snapshot of a copy. Words: number, object as a bit, number of
/// the source, whether it is writable.
pub(super) const AGAIN: u64 = 3;
/// A psync of a copy. Words: number.
pub(super) const CHANGE: u64 = 4;
pub(super) const END: u64 = 5;

pub(super) const NUMBER: usize = 2;
pub(super) const OBJECTS: usize = 3;
pub(super) const SOURCE: usize = 4;
pub(super) const WRITABLE: usize = 5;
pub(super) const FROM: usize = 4;
pub(super) const TO: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) objects: Vec<usize>,
    /// For each group a range of events: the snapshot has the state after one of them.
    events: [(u64, u64); GROUPS],
    changes: Vec<u64>,
    pub(super) writable: bool,
}

pub(super) struct Keeper {
    pub(super) number: usize,
    seed: u64,
    pub(super) journal: Journal,
}

impl Keeper {
    pub(super) fn open(folder: &Path, seed: u64, number: usize) -> Result<Keeper, Trouble> {
        Ok(Keeper { number, seed, journal: Journal::open(&folder.join(format!("keeper-{number}")))? })
    }

    pub(super) fn name(&self, number: u64, object: usize) -> String {
        format!("kept {}.{number}.{object}", self.number)
    }

    pub(super) fn all(&self) -> Result<BTreeMap<u64, Kept>, Trouble> {
        let mut all = BTreeMap::new();
        for number in 1..=self.journal.last()? {
            let event = self.journal.get(number)?;
            if event[0] == DONE {
                take(&mut all, number, &event);
            }
        }
        Ok(all)
    }

    pub(super) fn stores(&self, event: u64, len: usize) -> Vec<(usize, Vec<u8>)> {
        let mut stores = stores(mixed(self.seed, (200 + self.number) as u64, event), len);
        stores.push((8, self.mark(event).to_le_bytes().to_vec()));
        stores
    }

    pub(super) fn mark(&self, event: u64) -> u64 {
        (self.number as u64 + 1) << 48 | event
    }

    pub(super) fn compare(
        &self,
        pool: &Pool,
        histories: &[History],
        number: u64,
        kept: &Kept,
    ) -> Result<(), Trouble> {
        for (group, history) in histories.iter().enumerate() {
            let mut found: Vec<(usize, Label)> = Vec::new();
            let mut contents = Vec::new();
            for object in kept.objects.iter().filter(|object| *object / MEMBERS == group) {
                let attached = patient(|| pool.attach_read(&self.name(number, *object)))?;
                found.push((object % MEMBERS, label(attached.as_slice())));
                contents.push(attached.as_slice().to_vec());
                attached.detach()?;
            }
            let (from, to) = kept.events[group];
            let Some(states) = history.find(&found, from..=to)? else {
                let name = self.name(number, kept.objects[0]);
                return Err(Trouble::Wrong(format!(
                    "{name} of {:?}: {found:?} is no state of group {group} behind events {from} to {to}",
                    kept.objects
                )));
            };
            for ((member, _), bytes) in found.iter().zip(&contents) {
                let name = self.name(number, history.object(*member));
                let image = self.image(history, *member, states[*member], kept)?;
                same(bytes, &image)
                    .map_err(|why| Trouble::Wrong(format!("{name}, changed by {:?}: {why}", kept.changes)))?;
            }
        }
        Ok(())
    }

    fn image(&self, history: &History, member: usize, state: u64, kept: &Kept) -> Result<Vec<u8>, Trouble> {
        let mut image = history.image(member, state)?;
        for event in &kept.changes {
            self.stores(*event, image.len()).iter().for_each(|stored| store(&mut image, stored));
        }
        Ok(image)
    }

    pub(super) fn changed(&self, bytes: &[u8], event: u64) -> bool {
        word(bytes, 1) == self.mark(event)
    }
}

pub(super) fn objects(bits: u64) -> Vec<usize> {
    (0..GROUPS * MEMBERS).filter(|object| bits >> object & 1 == 1).collect()
}

fn take(all: &mut BTreeMap<u64, Kept>, number: u64, event: &Event) {
    let kept = event[NUMBER];
    match event[1] {
        SNAPSHOT | COPY => {
            let events = std::array::from_fn(|group| (event[FROM + group], event[TO + group]));
            let made = Kept {
                objects: objects(event[OBJECTS]),
                events,
                changes: Vec::new(),
                writable: event[1] == COPY,
            };
            all.insert(kept, made);
        }
        AGAIN => {
            if let Some(source) = all.get(&event[SOURCE]).cloned() {
                let writable = event[WRITABLE] == 1;
                all.insert(kept, Kept { objects: objects(event[OBJECTS]), writable, ..source });
            }
        }
        CHANGE => {
            if let Some(kept) = all.get_mut(&kept) {
                kept.changes.push(number);
            }
        }
        _ => drop(all.remove(&kept)),
    }
}
