use super::changes::{Acknowledged, Pages, SIZE, Side, count};
use crate::kills::{check_pool, failed};
use crate::workloads::journal::{DONE, Event, Journal, UNDER_WAY};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::{Trouble, patient};
use anyhow::Result;
use clap::{Args, ValueEnum};
use indelible::{CreateOptions, ErrorKind, MediumKind, Pool, PoolOptions, Tracking};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const OBJECT: &str = "object";
const SNAPSHOTS: usize = 4;
const COPIES: usize = 2;

/// Kinds of the keeper's events: outcome, kind, number, changes acknowledged before, changes
/// possible afterwards.
const SNAPSHOT: u64 = 1;
const COPY: u64 = 2;
const END: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Changes the object and psyncs, as fast as it can
    Writer,
    /// Makes snapshots and copies, changes copies, compares and removes them
    Keeper,
    /// Reads beside the writer, and follows it
    Follower,
    Judge,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) pool: PathBuf,
    #[arg(long)]
    pub(crate) memory: bool,
    /// Folder of journals with acknowledged changes
    #[arg(long)]
    pub(crate) journals: PathBuf,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) pages: u64,
    /// Changes of each copy; of the object, if this is its writer, before it ends
    #[arg(long)]
    pub(crate) changes: Option<u64>,
    /// A writer: acknowledge nothing. A follower: nanoseconds between two looks
    #[arg(long)]
    pub(crate) pace: Option<u64>,
    /// Milliseconds after which a follower ends
    #[arg(long)]
    pub(crate) time: Option<u64>,
    /// A keeper: change the copies to the end. A judge: remove all that is kept
    #[arg(long)]
    pub(crate) end: bool,
}

#[derive(Clone, Copy)]
struct Kept {
    made: (u64, u64),
    copy: bool,
}

struct Work<'a> {
    child: &'a Child,
    pool: Pool,
    pages: Pages,
    acknowledged: Acknowledged,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        match self.act() {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => Said::Wrong { why }.say(),
            Err(trouble) => failed(0, &trouble).say(),
        }
        Ok(())
    }

    fn act(&self) -> Result<(), Trouble> {
        if self.role == Role::Judge {
            check_pool(&self.pool, false)?;
        }
        let medium = if self.memory { MediumKind::Memory } else { MediumKind::File };
        let pool = PoolOptions::new().medium(medium).tracking(Tracking::Explicit).open(&self.pool)?;
        let acknowledged = Acknowledged::open(&self.journals, OBJECT)?;
        let work = Work { child: self, pool, pages: Pages::new(self.pages), acknowledged };
        match self.role {
            Role::Writer => work.write(),
            Role::Keeper => work.keep(),
            Role::Follower => work.follow(),
            Role::Judge => {
                work.judge()?;
                drop(work);
                check_pool(&self.pool, true)
            }
        }
    }
}

impl Work<'_> {
    fn compare(&self, name: &str, bytes: &[u8], found: (u64, u64)) -> Result<(), Trouble> {
        self.pages.compare(bytes, found, (0, 1)).map_err(|why| Trouble::Wrong(format!("{name}: {why}")))
    }

    fn write(&self) -> Result<(), Trouble> {
        let mut object = patient(|| self.pool.attach(OBJECT))?;
        let (mut changes, _) = count(object.as_slice());
        self.settle(OBJECT, object.as_slice(), &self.acknowledged, Side::Object)?;
        Said::Settled { workload: 0, step: changes, ring: 0 }.say();
        let end = self.child.changes.map_or(u64::MAX, |more| changes + more);
        while changes < end {
            changes += 1;
            self.pages.store(&mut object, Side::Object, changes);
            object.psync()?;
            let (what, every) = match self.child.pace {
                None => ("changes of the object acknowledged", 200),
                Some(_) => ("changes of the object at full speed", 20_000),
            };
            if self.child.pace.is_none() {
                self.acknowledged.set(changes)?;
            }
            if changes.is_multiple_of(every) {
                Said::Count { what: what.into(), count: every }.say();
            }
        }
        Ok(object.detach()?)
    }

    /// The bytes must be after the acknowledged changes or one more; acknowledges and returns their
    /// number.
    fn settle(
        &self,
        name: &str,
        bytes: &[u8],
        acknowledged: &Acknowledged,
        side: Side,
    ) -> Result<u64, Trouble> {
        let (found, least) = (count(bytes), acknowledged.get()?);
        let changes = if side == Side::Object { found.0 } else { found.1 };
        if changes != least && changes != least + 1 {
            return Err(Trouble::Wrong(format!("{name} has {changes} changes, {least} were acknowledged")));
        }
        self.compare(name, bytes, found)?;
        acknowledged.set(changes)?;
        Ok(changes)
    }

    fn name(number: u64) -> String {
        format!("kept {number}")
    }

    fn journal(&self) -> Result<Journal, Trouble> {
        Journal::open(&self.child.journals.join("keeper"))
    }

    fn kept(&self, journal: &Journal) -> Result<BTreeMap<u64, Kept>, Trouble> {
        if let Some((number, event)) = journal.under_way()? {
            let there = match self.pool.stat(&Self::name(event[2])) {
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(error) => return Err(error.into()),
            };
            if event[1] != END {
                journal.set(number, 4, self.acknowledged.get()? + 1)?;
            }
            journal.end(number, there == (event[1] != END))?;
        }
        let mut all = BTreeMap::new();
        for number in 1..=journal.last()? {
            let event = journal.get(number)?;
            match (event[0], event[1]) {
                (DONE, END) => drop(all.remove(&event[2])),
                (DONE, kind) => {
                    all.insert(event[2], Kept { made: (event[3], event[4]), copy: kind == COPY });
                }
                _ => {}
            }
        }
        Ok(all)
    }

    fn keep(&self) -> Result<(), Trouble> {
        let journal = self.journal()?;
        let mut rng = mixed(self.child.seed, 1, journal.last()?);
        let enough = self.child.changes.unwrap_or(0);
        loop {
            let all = self.kept(&journal)?;
            let copies = || all.iter().filter(|(_, kept)| kept.copy).map(|(number, _)| *number);
            if self.child.end && copies().count() == 0 {
                self.make(&journal, COPY)?;
                continue;
            }
            if self.child.end {
                return copies().try_for_each(|number| self.change(number, enough, u64::MAX));
            }
            let oldest = |copy| all.iter().find(|(_, kept)| kept.copy == copy).map(|(number, _)| *number);
            let full = all.len() - copies().count() >= SNAPSHOTS;
            match (rng.u8(0..10), oldest(true)) {
                (0, _) if copies().count() < COPIES => self.make(&journal, COPY)?,
                (1..4, Some(copy)) => {
                    self.change(copy, enough, 500)?;
                    if Acknowledged::open(&self.child.journals, &Self::name(copy))?.get()? >= enough {
                        self.compare_kept(copy, &all[&copy])?;
                        self.remove(&journal, copy)?;
                        said("copies with all of their changes, compared");
                        self.merge()?;
                    }
                }
                (4, _) if !all.is_empty() => {
                    let number = rng.choice(all.keys().copied()).unwrap_or_default();
                    self.compare_kept(number, &all[&number])?;
                }
                _ if full => self.remove(&journal, oldest(false).unwrap_or_default())?,
                _ => self.make(&journal, SNAPSHOT)?,
            }
        }
    }

    fn make(&self, journal: &Journal, kind: u64) -> Result<(), Trouble> {
        let number = journal.last()? + 1;
        let event: Event = [UNDER_WAY, kind, number, self.acknowledged.get()?, 0, 0, 0, 0];
        let (event, name) = (journal.begin(&event)?, Self::name(number));
        if kind == COPY {
            patient(|| self.pool.create_from(OBJECT, &name, b"", &CreateOptions::new(0)))?;
        } else {
            patient(|| self.pool.snapshot(OBJECT, &name, b""))?;
        }
        journal.set(event, 4, self.acknowledged.get()? + 1)?;
        journal.end(event, true)?;
        said(if kind == COPY { "copies beside the writer" } else { "snapshots beside the writer" });
        Ok(())
    }

    fn merge(&self) -> Result<(), Trouble> {
        patient(|| self.pool.collect(&mut |_, _| {}))?;
        said("merges");
        Ok(())
    }

    fn remove(&self, journal: &Journal, number: u64) -> Result<(), Trouble> {
        let event = journal.begin(&[UNDER_WAY, END, number, 0, 0, 0, 0, 0])?;
        patient(|| self.pool.destroy(&Self::name(number)))?;
        journal.end(event, true)
    }

    fn change(&self, number: u64, enough: u64, most: u64) -> Result<(), Trouble> {
        let name = Self::name(number);
        let acknowledged = Acknowledged::open(&self.child.journals, &name)?;
        let mut copy = patient(|| self.pool.attach(&name))?;
        let changes = self.settle(&name, copy.as_slice(), &acknowledged, Side::Copy)?;
        for change in changes + 1..=enough.min(changes.saturating_add(most)) {
            self.pages.store(&mut copy, Side::Copy, change);
            copy.psync()?;
            acknowledged.set(change)?;
            if change.is_multiple_of(100) {
                Said::Count { what: "changes of copies acknowledged".into(), count: 100 }.say();
            }
        }
        Ok(copy.detach()?)
    }

    fn compare_kept(&self, number: u64, kept: &Kept) -> Result<(), Trouble> {
        let name = Self::name(number);
        let object = patient(|| self.pool.attach_read(&name))?;
        let found = count(object.as_slice());
        if found.0 < kept.made.0 || found.0 > kept.made.1 {
            let why = format!("{name} was made between changes {:?} and holds {}", kept.made, found.0);
            return Err(Trouble::Wrong(why));
        }
        if kept.copy {
            let acknowledged = Acknowledged::open(&self.child.journals, &name)?;
            self.settle(&name, object.as_slice(), &acknowledged, Side::Copy)?;
        } else {
            self.compare(&name, object.as_slice(), (found.0, 0))?;
        }
        object.detach()?;
        said(if kept.copy { "copies compared" } else { "snapshots compared" });
        Ok(())
    }

    fn follow(&self) -> Result<(), Trouble> {
        let begin = Instant::now();
        let (pace, time) =
            (self.child.pace.map(Duration::from_nanos), self.child.time.map(Duration::from_millis));
        let mut reader = patient(|| self.pool.attach_snapshot(OBJECT))?;
        let (mut looks, mut last, mut next) = (0_u64, count(reader.as_slice()).0, Instant::now());
        let mut between = Vec::new();
        while time.is_none_or(|time| begin.elapsed() < time) {
            let least = self.acknowledged.get()?;
            patient(|| reader.refresh())?;
            let most = self.acknowledged.get()? + 1;
            let found = count(reader.as_slice());
            if found.0 < least.max(last) || pace.is_none() && found.0 > most {
                let why = format!("a reader sees change {}, behind {last}, of {least} to {most}", found.0);
                return Err(Trouble::Wrong(why));
            }
            between.push(found.0 - last);
            (looks, last) = (looks + 1, found.0);
            let step = if pace.is_none() && looks.is_multiple_of(50) { 1 } else { self.pages.count / 8 };
            self.pages
                .compare(reader.as_slice(), found, (looks, step.max(1)))
                .map_err(|why| Trouble::Wrong(format!("a reader: {why}")))?;
            if let Some(pace) = pace {
                next = (next + pace).max(Instant::now());
                while Instant::now() < next {
                    thread::yield_now();
                }
            } else if looks.is_multiple_of(50) {
                Said::Count { what: "looks of readers that follow".into(), count: 50 }.say();
            }
        }
        between.sort_unstable();
        let median = between.get(between.len() / 2).copied().unwrap_or(0);
        Said::Settled { workload: 1, step: looks, ring: median }.say();
        Ok(reader.detach()?)
    }

    fn judge(&self) -> Result<(), Trouble> {
        let journal = self.journal()?;
        let all = self.kept(&journal)?;
        let object = |when: &str| -> Result<(), Trouble> {
            let object = patient(|| self.pool.attach(OBJECT))?;
            self.settle(&format!("the object, {when}"), object.as_slice(), &self.acknowledged, Side::Object)?;
            Ok(object.detach()?)
        };
        object("as it was left")?;
        all.iter().try_for_each(|(number, kept)| self.compare_kept(*number, kept))?;
        said("objects compared");
        let mut names: Vec<String> = all.keys().map(|number| Self::name(*number)).collect();
        names.push(OBJECT.into());
        let mut found = self.pool.list().map(|stat| Ok(stat?.name)).collect::<Result<Vec<_>, Trouble>>()?;
        names.sort();
        found.sort();
        if found != names {
            return Err(Trouble::Wrong(format!("{found:?} are in the pool instead of {names:?}")));
        }
        self.merge()?;
        all.iter().try_for_each(|(number, kept)| self.compare_kept(*number, kept))?;
        if self.child.end {
            all.keys().try_for_each(|number| self.remove(&journal, *number))?;
            self.merge()?;
            object("merged")?;
            let (info, stat) = (self.pool.info()?, self.pool.stat(OBJECT)?);
            if info.objects != 1 || stat.shares {
                let why = format!(
                    "{} objects are left; the object rests on another: {}",
                    info.objects, stat.shares
                );
                return Err(Trouble::Wrong(why));
            }
        }
        Ok(())
    }
}

fn said(what: &str) {
    Said::Count { what: what.into(), count: 1 }.say();
}

pub(super) const POOL: u64 = SIZE * 64 + (1 << 30);
