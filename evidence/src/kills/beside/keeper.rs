//! The keeper: makes snapshots and copies of objects that others write, changes and removes them,
//! merges.

use super::history::{GROUPS, History, MEMBERS, name};
use super::kept::{
    AGAIN, CHANGE, COPY, END, FROM, Keeper, Kept, NUMBER, OBJECTS, SNAPSHOT, SOURCE, TO, WRITABLE, objects,
};
use super::writer::count;
use crate::workloads::journal::{Event, UNDER_WAY};
use crate::workloads::program::mixed;
use crate::workloads::world::{Trouble, patient};
use indelible::{CreateOptions, ErrorKind, Object, Pool};
use std::collections::BTreeMap;

const MOST: usize = 6;

pub(super) struct Work<'a> {
    pool: &'a Pool,
    histories: &'a [History],
    keeper: &'a Keeper,
    all: BTreeMap<u64, Kept>,
    rng: fastrand::Rng,
}

impl<'a> Work<'a> {
    pub(super) fn settle(
        pool: &'a Pool,
        histories: &'a [History],
        keeper: &'a Keeper,
        seed: u64,
    ) -> Result<Work<'a>, Trouble> {
        let rng = mixed(seed, (300 + keeper.number) as u64, keeper.journal.last()?);
        let mut work = Work { pool, histories, keeper, all: BTreeMap::new(), rng };
        if let Some((number, event)) = keeper.journal.under_way()? {
            let happened = work.happened(number, &event)?;
            keeper.journal.end(number, happened)?;
        }
        work.all = keeper.all()?;
        Ok(work)
    }

    fn happened(&self, number: u64, event: &Event) -> Result<bool, Trouble> {
        let kept = event[NUMBER];
        let mut there = Vec::new();
        for object in objects(event[OBJECTS]) {
            let name = self.keeper.name(kept, object);
            match self.pool.stat(&name) {
                Ok(_) => there.push(name),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        match event[1] {
            SNAPSHOT | COPY | AGAIN if there.is_empty() => Ok(false),
            SNAPSHOT | COPY | AGAIN if there.len() < objects(event[OBJECTS]).len() => {
                Err(Trouble::Wrong(format!("of the snapshots of one moment, only {there:?} were made")))
            }
            SNAPSHOT | COPY => self.until(number).map(|()| true),
            AGAIN => Ok(true),
            CHANGE => {
                let Some(copy) = there.first() else {
                    return Err(Trouble::Wrong(format!(
                        "copy {kept} of keeper {} is gone",
                        self.keeper.number
                    )));
                };
                let copy = patient(|| self.pool.attach_read(copy))?;
                let happened = self.keeper.changed(copy.as_slice(), number);
                copy.detach()?;
                Ok(happened)
            }
            _ => {
                there.iter().try_for_each(|name| patient(|| self.pool.destroy(name)))?;
                Ok(true)
            }
        }
    }

    fn until(&self, number: u64) -> Result<(), Trouble> {
        for history in self.histories {
            self.keeper.journal.set(number, TO + history.group, history.journal.last()?)?;
        }
        Ok(())
    }

    pub(super) fn step(&mut self) -> Result<(), Trouble> {
        let numbers: Vec<u64> = self.all.keys().copied().collect();
        let some = self.rng.choice(numbers).unwrap_or(0);
        match self.rng.u8(0..100) {
            0..30 if self.all.len() < MOST => self.snapshot(),
            30..42 if self.all.len() < MOST => self.copy(),
            42..50 if self.all.len() < MOST && some > 0 => self.copy_again(some),
            _ if some == 0 => self.snapshot(),
            50..70 => self.change(),
            70..84 => self.end(some),
            84..88 => collect(self.pool),
            _ => self.compare(some),
        }
    }

    fn event(&self, kind: u64, number: u64, objects: &[usize]) -> Result<Event, Trouble> {
        let bits = objects.iter().fold(0, |bits, object| bits | 1 << object);
        let mut event = [UNDER_WAY, kind, number, bits, 0, 0, 0, 0];
        for history in self.histories.iter().filter(|_| matches!(kind, SNAPSHOT | COPY)) {
            event[FROM + history.group] = history.journal.known()?;
        }
        Ok(event)
    }

    fn fresh(&self) -> Result<u64, Trouble> {
        Ok(self.keeper.journal.last()? + 1)
    }

    fn snapshot(&mut self) -> Result<(), Trouble> {
        let all = GROUPS * MEMBERS;
        let group = self.rng.usize(0..GROUPS) * MEMBERS;
        let of = match self.rng.u8(0..4) {
            0 => vec![self.rng.usize(0..all)],
            1 | 2 => (group..group + MEMBERS).collect(),
            _ => (0..all).collect::<Vec<_>>(),
        };
        let number = self.fresh()?;
        let event = self.keeper.journal.begin(&self.event(SNAPSHOT, number, &of)?)?;
        let names: Vec<_> =
            of.iter().map(|object| (name(*object), self.keeper.name(number, *object))).collect();
        let of: Vec<_> = names.iter().map(|(object, kept)| (object.as_str(), kept.as_str())).collect();
        patient(|| self.pool.snapshot_all(&of, b""))?;
        self.until(event)?;
        self.done(event)?;
        count(if of.len() > 1 {
            "snapshots of several objects beside writers"
        } else {
            "snapshots beside writers"
        });
        self.maybe_compare(number)
    }

    fn copy(&mut self) -> Result<(), Trouble> {
        let (object, number) = (self.rng.usize(0..GROUPS * MEMBERS), self.fresh()?);
        let event = self.keeper.journal.begin(&self.event(COPY, number, &[object])?)?;
        self.make_copy(&name(object), number, object)?;
        self.until(event)?;
        self.done(event)?;
        count("copies beside writers");
        self.maybe_compare(number)
    }

    fn copy_again(&mut self, source: u64) -> Result<(), Trouble> {
        let Some(object) = self.rng.choice(&self.all[&source].objects).copied() else { return Ok(()) };
        let number = self.fresh()?;
        let snapshot = self.all[&source].writable && self.rng.u8(0..3) == 0;
        let mut event = self.event(AGAIN, number, &[object])?;
        (event[SOURCE], event[WRITABLE]) = (source, u64::from(!snapshot));
        let event = self.keeper.journal.begin(&event)?;
        let (of, kept) = (self.keeper.name(source, object), self.keeper.name(number, object));
        match snapshot {
            true => patient(|| self.pool.snapshot(&of, &kept, b""))?,
            false => self.make_copy(&of, number, object)?,
        }
        self.done(event)?;
        count(if snapshot { "snapshots of copies" } else { "copies of snapshots and of copies" });
        self.maybe_compare(number)
    }

    fn make_copy(&self, of: &str, number: u64, object: usize) -> Result<(), Trouble> {
        let copy = self.keeper.name(number, object);
        patient(|| self.pool.create_from(of, &copy, b"", &CreateOptions::new(0)))
    }

    fn change(&mut self) -> Result<(), Trouble> {
        let copies: Vec<u64> = self.all.iter().filter(|(_, kept)| kept.writable).map(|(at, _)| *at).collect();
        let Some(number) = self.rng.choice(copies) else { return Ok(()) };
        let object = self.all[&number].objects[0];
        let mut copy = patient(|| self.pool.attach(&self.keeper.name(number, object)))?;
        for _ in 0..self.rng.usize(1..4) {
            self.change_attached(&mut copy, number, object)?;
        }
        copy.detach()?;
        self.maybe_compare(number)
    }

    fn change_attached(&mut self, copy: &mut Object, number: u64, object: usize) -> Result<(), Trouble> {
        let event = self.keeper.journal.begin(&self.event(CHANGE, number, &[object])?)?;
        for (at, bytes) in self.keeper.stores(event, copy.len()) {
            copy.range_mut(at..at + bytes.len()).copy_from_slice(&bytes);
        }
        copy.psync()?;
        self.done(event)?;
        count("psyncs of copies");
        Ok(())
    }

    fn end(&mut self, number: u64) -> Result<(), Trouble> {
        let Kept { objects, writable, .. } = self.all[&number].clone();
        let first = self.keeper.name(number, objects[0]);
        let attached = match writable && self.rng.bool() {
            true => Some(patient(|| self.pool.attach(&first))?),
            false => None,
        };
        let event = self.keeper.journal.begin(&self.event(END, number, &objects)?)?;
        for object in objects {
            let name = self.keeper.name(number, object);
            match attached.is_some() || self.rng.bool() {
                true => patient(|| self.pool.delete(&name, b""))?,
                false => patient(|| self.pool.destroy(&name))?,
            }
        }
        self.done(event)?;
        if let Some(mut deleted) = attached {
            for (at, bytes) in self.keeper.stores(event, deleted.len()) {
                deleted.range_mut(at..at + bytes.len()).copy_from_slice(&bytes);
            }
            deleted.psync()?;
            deleted.detach()?;
            count("copies deleted while they were attached");
            return Ok(());
        }
        count("snapshots and copies deleted");
        Ok(())
    }

    fn done(&mut self, event: u64) -> Result<(), Trouble> {
        self.keeper.journal.end(event, true)?;
        self.all = self.keeper.all()?;
        Ok(())
    }

    fn maybe_compare(&mut self, number: u64) -> Result<(), Trouble> {
        if self.rng.bool() { self.compare(number) } else { Ok(()) }
    }

    fn compare(&self, number: u64) -> Result<(), Trouble> {
        self.keeper.compare(self.pool, self.histories, number, &self.all[&number])?;
        count("snapshots and copies compared");
        Ok(())
    }

    pub(super) fn compare_all(&self) -> Result<(), Trouble> {
        self.all.keys().try_for_each(|number| self.compare(*number))
    }

    pub(super) fn names(&self) -> Vec<String> {
        let names = |(number, kept): (&u64, &Kept)| -> Vec<String> {
            kept.objects.iter().map(|object| self.keeper.name(*number, *object)).collect()
        };
        self.all.iter().flat_map(names).collect()
    }

    pub(super) fn end_all(&mut self) -> Result<(), Trouble> {
        let numbers: Vec<u64> = self.all.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.end(number))
    }
}

pub(super) fn collect(pool: &Pool) -> Result<(), Trouble> {
    patient(|| pool.collect(&mut |_, _| {}))?;
    count("merges beside writers");
    Ok(())
}
