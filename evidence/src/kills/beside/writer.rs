//! The writer of a group: psyncs of one object or both, cuts, growth, rollbacks.

use super::history::{GROUPS, History, Label, MEMBERS, after, before, label, name, store, word};
use crate::workloads::journal::DONE;
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::{Trouble, patient};
use indelible::{ErrorKind, Object, Pool, psync_all};

pub(super) struct Writer<'a> {
    pool: &'a Pool,
    history: &'a History,
    objects: [Option<Object>; MEMBERS],
    images: [Vec<u8>; MEMBERS],
    rng: fastrand::Rng,
}

impl<'a> Writer<'a> {
    pub(super) fn settle(pool: &'a Pool, history: &'a History, seed: u64) -> Result<Writer<'a>, Trouble> {
        let attach = |member| patient(|| pool.attach(&name(history.object(member))));
        let objects = [attach(0)?, attach(1)?];
        let labels = [0, 1].map(|member: usize| label(objects[member].as_slice()));
        if let Some((number, event)) = history.journal.under_way()? {
            let are = |states: [u64; MEMBERS]| -> Result<bool, Trouble> {
                Ok([history.label(0, states[0])?, history.label(1, states[1])?] == labels)
            };
            let happened = are(after(&event))?;
            if !happened && !are(before(&event))? {
                let why = format!("group {}, event {number} {event:?}: found {labels:?}", history.group);
                return Err(Trouble::Wrong(why));
            }
            history.journal.end(number, happened)?;
        }
        let last = history.journal.last()?;
        let states = history.states(last)?;
        let images = [history.image(0, states[0])?, history.image(1, states[1])?];
        let rng = mixed(seed, (100 + history.group) as u64, last);
        let writer = Writer { pool, history, objects: objects.map(Some), images, rng };
        writer.compare("as it was left")?;
        Said::Settled { workload: history.group as u32, step: last, ring: 0 }.say();
        Ok(writer)
    }

    pub(super) fn step(&mut self) -> Result<(), Trouble> {
        let member = self.rng.usize(0..MEMBERS);
        match self.rng.u8(0..100) {
            0..70 => self.psync(),
            70..76 => self.grow(member),
            76..80 => Ok(self.object(member)?.checkpoint()?),
            80..85 => self.detach(member).and_then(|()| self.compare("attached again")),
            85..90 => self.revert(member),
            _ => self.go_back(member),
        }
    }

    fn psync(&mut self) -> Result<(), Trouble> {
        let both = self.rng.u8(0..3) == 0;
        let one = self.rng.usize(0..MEMBERS);
        let members = [0, 1].map(|member| both || member == one);
        self.object(0)?;
        self.object(1)?;
        let number = self.history.begin_psync(members)?;
        self.said(number);
        for member in (0..MEMBERS).filter(|member| members[*member]) {
            for stored in self.history.stores(member, number, self.images[member].len()) {
                let end = stored.0 + stored.1.len();
                self.object(member)?.range_mut(stored.0..end).copy_from_slice(&stored.1);
                store(&mut self.images[member], &stored);
            }
        }
        let cut = self.rng.u8(0..4) == 0;
        match &mut self.objects {
            [Some(a), Some(b)] if both => psync_all(&mut [a, b])?,
            objects => {
                if let Some(object) = &mut objects[one] {
                    if cut { object.psync_cut() } else { object.psync() }?;
                }
            }
        }
        self.end(number)
    }

    fn grow(&mut self, member: usize) -> Result<(), Trouble> {
        self.object(member)?;
        let by = self.rng.u64(1..3 * 4096);
        let Some((number, size)) = self.history.begin_growth(member, by)? else { return Ok(()) };
        self.said(number);
        self.object(member)?.grow(size)?;
        self.images[member].resize(size as usize, 0);
        self.end(number)
    }

    fn revert(&mut self, member: usize) -> Result<(), Trouble> {
        let at = self.rng.usize(0..self.images[member].len() - 100);
        let object = self.object(member)?;
        object.range_mut(at..at + 100).fill(0xee);
        object.revert()?;
        self.compare("reverted")
    }

    fn go_back(&mut self, member: usize) -> Result<(), Trouble> {
        let object = self.history.object(member);
        let ending = format!(".{object}");
        let mut names = Vec::new();
        for stat in self.pool.list() {
            let stat = stat?;
            if stat.snapshot && stat.name.ends_with(&ending) {
                names.push(stat.name);
            }
        }
        let Some(snapshot) = self.rng.choice(&names).cloned() else { return Ok(()) };
        self.detach(member)?;
        let Some(found) = self.peek(&snapshot)? else { return Ok(()) };
        let last = self.history.journal.last()?;
        let Some(states) = self.history.find(&[(member, found)], 0..=last)? else {
            return Err(Trouble::Wrong(format!(
                "{snapshot} is in a state {found:?} in which its object never was"
            )));
        };
        let number = self.history.begin_return(member, states[member])?;
        self.said(number);
        match patient(|| self.pool.rollback(&name(object), &snapshot, b"")) {
            Ok(()) => {}
            Err(Trouble::Error(error)) if error.kind() == ErrorKind::NotFound => {
                return self.history.journal.end(number, false);
            }
            Err(trouble) => return Err(trouble),
        }
        self.images[member] = self.history.image(member, states[member])?;
        self.end(number)?;
        count("objects that went back to a snapshot");
        self.compare("gone back")
    }

    fn peek(&self, snapshot: &str) -> Result<Option<Label>, Trouble> {
        match patient(|| self.pool.attach_read(snapshot)) {
            Ok(object) => {
                let bytes = object.as_slice();
                let found = (word(bytes, 1) == 0).then_some(label(bytes));
                object.detach()?;
                Ok(found)
            }
            Err(Trouble::Error(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    fn object(&mut self, member: usize) -> Result<&mut Object, Trouble> {
        if self.objects[member].is_none() {
            let object = patient(|| self.pool.attach(&name(self.history.object(member))))?;
            self.objects[member] = Some(object);
            self.compare("attached")?;
        }
        Ok(self.objects[member].as_mut().expect("it was attached just now"))
    }

    fn detach(&mut self, member: usize) -> Result<(), Trouble> {
        Ok(self.objects[member].take().map_or(Ok(()), Object::detach)?)
    }

    fn compare(&self, when: &str) -> Result<(), Trouble> {
        for (member, object) in self.objects.iter().enumerate() {
            let Some(object) = object else { continue };
            let name = name(self.history.object(member));
            same(object.as_slice(), &self.images[member])
                .map_err(|why| Trouble::Wrong(format!("{name}, {when}: {why}")))?;
        }
        Ok(())
    }

    fn said(&self, number: u64) {
        Said::Begun { workload: self.history.group as u32, step: number, ring: 0 }.say();
    }

    fn end(&self, number: u64) -> Result<(), Trouble> {
        self.history.journal.set(number, 0, DONE)?;
        Said::Done { workload: self.history.group as u32, step: number }.say();
        Ok(())
    }
}

pub(super) fn same(found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let differ = || found.iter().zip(expected).enumerate().filter(|(_, (a, b))| a != b);
    let mut pages: Vec<usize> = differ().map(|(at, _)| at / 4096).collect();
    pages.dedup();
    let at = differ().next().map_or(found.len().min(expected.len()), |(at, _)| at);
    Err(format!(
        "{} bytes instead of {}, {:?} instead of {:?}; they differ from byte {at} on, in pages {pages:?}",
        found.len(),
        expected.len(),
        label(found),
        label(expected)
    ))
}

pub(super) fn count(what: &str) {
    Said::Count { what: what.into(), count: 1 }.say();
}

pub(super) fn histories(folder: &std::path::Path, seed: u64) -> Result<Vec<History>, Trouble> {
    (0..GROUPS).map(|group| History::open(folder, seed, group)).collect()
}
