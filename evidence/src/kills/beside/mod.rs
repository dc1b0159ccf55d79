//! Processes that keep, copy, merge and follow objects while others write them, all under kills.
//!
//! Two processes write a group of two objects each, two keep snapshots and copies, others follow or
//! merge. By their [journals](crate::workloads::journal), every object, snapshot and copy must be
//! in an allowed state: a snapshot in one between its begin and its end, objects of one group after
//! the same event.

mod child;
mod history;
mod keeper;
mod kept;
mod writer;

pub(crate) use child::Child;

use super::Rounds;
use super::environment::{Environment, Place};
use super::watch::{End, Fate, Names, Seen, start, watch};
use crate::workloads::program::mixed;
use anyhow::{Result, bail};
use child::{KEEPERS, Role};
use history::{GROUPS, MEMBERS, SIZE, name};
use indelible::Pool;
use indelible_record::add;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

const POOL: u64 = 256 << 20;

pub(crate) struct Beside {
    environment: Environment,
    tracking: &'static str,
    place: Place,
    seed: u64,
    rng: fastrand::Rng,
    counts: BTreeMap<String, u64>,
    log: String,
}

struct Line {
    role: Role,
    number: usize,
    fates: Vec<(Fate, Vec<String>)>,
}

impl Beside {
    pub(crate) fn new(environment: Environment, tracking: &'static str, seed: u64) -> Result<Option<Beside>> {
        let Some(place) = Place::new(environment)? else { return Ok(None) };
        let pool = Pool::format(place.pool(), POOL)?;
        place.confirm(pool.medium())?;
        (0..GROUPS * MEMBERS).try_for_each(|object| pool.create(&name(object), SIZE))?;
        let (rng, counts) = (mixed(seed, u64::MAX, 0), BTreeMap::new());
        Ok(Some(Beside { environment, tracking, place, seed, rng, counts, log: String::new() }))
    }

    fn fate(&mut self, lines: usize) -> (Fate, Vec<String>) {
        let rng = &mut self.rng;
        let turns = if self.environment == Environment::Memory { 6_000 } else { 100_000 };
        let mut fate =
            Fate { stops: Default::default(), death: Some((rng.usize(0..lines), rng.u32(0..turns))) };
        if rng.u8(0..4) == 0 {
            fate.stops = [(rng.usize(0..lines), rng.u32(0..turns))].into();
        }
        let mut extra = vec!["--steps".to_owned(), rng.u32(10..80).to_string()];
        if rng.u8(0..10) == 0 {
            extra.push("--end".into());
        }
        (fate, extra)
    }

    fn storm(&mut self) -> Result<()> {
        let mut lines = Vec::new();
        let mut line = |this: &mut Beside, role, number, most, said| {
            let count = this.rng.usize(1..=most);
            lines.push(Line { role, number, fates: (0..count).map(|_| this.fate(said)).collect() });
        };
        (0..GROUPS).for_each(|number| line(self, Role::Writer, number, 2, 120));
        (0..KEEPERS).for_each(|number| line(self, Role::Keeper, number, 3, 24));
        line(self, Role::Follower, 0, 3, 30);
        if self.rng.bool() {
            line(self, Role::Collector, 0, 2, 6);
        }
        let this = &*self;
        let seen: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = lines.iter().map(|line| scope.spawn(|| this.follow(line))).collect();
            running.into_iter().map(|line| line.join().expect("it does not panic")).collect()
        });
        for (line, seen) in lines.iter().zip(seen) {
            for seen in seen? {
                self.account(line.role, &seen)?;
            }
        }
        Ok(())
    }

    fn follow(&self, line: &Line) -> Result<Vec<Seen>> {
        let run = |(fate, extra): &(Fate, Vec<String>)| {
            Ok(watch(start(self.command(line.role, line.number, extra))?, fate.clone(), &|| false)?)
        };
        line.fates.iter().map(run).collect()
    }

    fn recoverers(&mut self) -> Result<()> {
        for _ in 0..self.rng.usize(0..3) {
            let (mut fate, _) = self.fate(20);
            fate.death = fate.death.map(|(lines, turns)| (lines, turns * 4));
            let seen = watch(start(self.command(Role::Judge, 0, &[]))?, fate, &|| false)?;
            self.account(Role::Judge, &seen)?;
        }
        Ok(())
    }

    fn command(&self, role: Role, number: usize, extra: &[String]) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
        let mut command = Command::new(own);
        command.args(["kills-beside", &format!("{role:?}").to_lowercase(), "--tracking", self.tracking]);
        command.args(["--seed", &self.seed.to_string(), "--number", &number.to_string()]);
        command.arg("--pool").arg(self.place.pool()).arg("--journals").arg(self.place.path());
        command.args(extra);
        command
    }

    fn account(&mut self, role: Role, seen: &Seen) -> Result<()> {
        let (who, beside) = match role {
            Role::Judge => ("recoverer", "a process that recovers snapshots and copies"),
            Role::Follower => ("reader", "a reader that follows"),
            Role::Writer => ("victim", "a writer of objects that others keep"),
            Role::Keeper => ("victim", "a process that makes snapshots and copies"),
            Role::Collector => ("victim", "a process that merges"),
        };
        let killed = [format!("SIGKILL of a {who}"), format!("SIGKILL beside snapshots: {beside}")];
        let names = Names { killed, done: "steps done by victims" };
        seen.account(role, &names, (&mut self.log, &mut self.counts))
    }
}

impl Rounds for Beside {
    fn round(&mut self, last: bool) -> Result<()> {
        self.log += "round\n";
        self.storm()?;
        self.recoverers()?;
        let extra = if last { vec!["--end".to_owned()] } else { Vec::new() };
        let seen = watch(start(self.command(Role::Judge, 0, &extra))?, Fate::default(), &|| false)?;
        self.account(Role::Judge, &seen)?;
        if seen.end != End::Exit {
            bail!("the judge ended by {:?} without a verdict", seen.end);
        }
        add(&mut self.counts, "rounds", 1);
        Ok(())
    }

    fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    fn left(&self) -> (Vec<PathBuf>, &str) {
        let journals = (0..GROUPS).map(|group| format!("group-{group}"));
        let journals = journals.chain((0..KEEPERS).map(|keeper| format!("keeper-{keeper}")));
        let journals = journals.map(|name| self.place.path().join(name)).filter(|path| path.exists());
        (std::iter::once(self.place.pool()).chain(journals).collect(), &self.log)
    }
}
