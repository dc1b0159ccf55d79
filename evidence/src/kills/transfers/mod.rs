//! Processes of several threads that transfer between objects in transactions, killed at random.
//!
//! One process at a time has a bank's objects, all of one class. A thread counts each transfer in
//! the object as part of it, so the counts determine all accounts. Acknowledged transfers are
//! counted, and at most one more per thread.
//!
//! On demand a guest sometimes leaves before the transaction is durable; another process, also
//! killed, sweeps, recovers, keeps and copies the pool. A clone of the pool of dead processes has
//! the same accounts.

mod banks;
mod beside;
mod child;

pub(crate) use child::Child;

use super::Rounds;
use super::environment::{Environment, Place};
use super::watch::{End, Fate, Names, Seen, start, watch};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use anyhow::{Result, bail};
use banks::{BANKS, GUEST, THREADS, has_check_words, name};
use child::{Role, SIZE};
use indelible::{Class, CreateOptions, Pool};
use indelible_record::add;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

const POOL: u64 = 64 << 20;

type Done = [u64; THREADS];
type Followed = (Done, Vec<Seen>);

pub(crate) struct Transfers {
    environment: Environment,
    class: Class,
    place: Place,
    seed: u64,
    rng: fastrand::Rng,
    done: [Done; BANKS],
    counts: BTreeMap<String, u64>,
    log: String,
}

impl Transfers {
    pub(crate) fn new(environment: Environment, class: Class, seed: u64) -> Result<Option<Transfers>> {
        let Some(place) = Place::new(environment)? else { return Ok(None) };
        let pool = Pool::format(place.pool(), POOL)?;
        place.confirm(pool.medium())?;
        for (bank, object) in (0..BANKS).flat_map(|bank| (0..=GUEST).map(move |object| (bank, object))) {
            let how = CreateOptions::new(SIZE).class(class).ecc(has_check_words(bank));
            pool.create_with(&name(bank, object), &how)?;
        }
        let (rng, counts, done) = (mixed(seed, u64::MAX, 0), BTreeMap::new(), [[0; THREADS]; BANKS]);
        Ok(Some(Transfers { environment, class, place, seed, rng, done, counts, log: String::new() }))
    }

    fn fate(&mut self) -> (Fate, Vec<String>) {
        let rng = &mut self.rng;
        let turns = if self.environment == Environment::Memory { 20_000 } else { 100_000 };
        let lines = if rng.u8(0..6) == 0 { rng.usize(0..THREADS) } else { rng.usize(0..400) };
        let mut fate = Fate { stops: Default::default(), death: Some((lines, rng.u32(0..turns))) };
        if rng.u8(0..4) == 0 {
            fate.stops = [(rng.usize(0..=lines), rng.u32(0..turns))].into();
        }
        let mut extra = vec!["--steps".to_owned(), rng.u32(40..400).to_string()];
        if rng.u8(0..8) == 0 {
            extra.push("--end".into());
        }
        (fate, extra)
    }

    fn storm(&mut self) -> Result<()> {
        let mut fates = Vec::new();
        for _ in 0..BANKS {
            fates.push((0..self.rng.usize(1..=3)).map(|_| self.fate()).collect::<Vec<_>>());
        }
        let keeper = (self.class == Class::OnDemand).then(|| (self.fate().0, self.rng.u32(1..30)));
        let this = &*self;
        let (seen, kept): (Vec<Result<Followed>>, _) = thread::scope(|scope| {
            let running: Vec<_> =
                (0..).zip(fates).map(|(bank, fates)| scope.spawn(move || this.follow(bank, fates))).collect();
            let kept = keeper.map(|(fate, steps)| {
                let extra = ["--steps".to_owned(), steps.to_string()];
                watch(start(this.command(Role::Keeper, 0, &[0; THREADS], &extra))?, fate, &|| false)
            });
            (running.into_iter().map(|line| line.join().expect("it does not panic")).collect(), kept)
        });
        if let Some(seen) = kept {
            self.account(Role::Keeper, &seen?)?;
        }
        for (bank, seen) in seen.into_iter().enumerate() {
            let (done, seen) = seen?;
            self.done[bank] = done;
            for seen in seen {
                self.account(Role::Victim, &seen)?;
            }
        }
        Ok(())
    }

    fn follow(&self, bank: usize, fates: Vec<(Fate, Vec<String>)>) -> Result<Followed> {
        let (mut done, mut all) = (self.done[bank], Vec::new());
        for (fate, extra) in fates {
            let seen = watch(start(self.command(Role::Victim, bank, &done, &extra))?, fate, &|| false)?;
            hear(&mut done, &seen);
            all.push(seen);
        }
        Ok((done, all))
    }

    fn cloned(&mut self) -> Result<()> {
        let to = self.place.pool().with_extension("clone");
        let extra = ["--to".to_owned(), to.display().to_string()];
        let command = self.command(Role::Cloner, 0, &[0; THREADS], &extra);
        let seen = watch(start(command)?, Fate::default(), &|| false)?;
        self.account(Role::Cloner, &seen)?;
        for bank in 0..BANKS {
            let command = self.command_on(&to, Role::Judge, bank, &self.done[bank], &[]);
            let seen = watch(start(command)?, Fate::default(), &|| false)?;
            self.account(Role::Judge, &seen)?;
        }
        Ok(std::fs::remove_file(to)?)
    }

    fn judge(&mut self) -> Result<()> {
        if self.class == Class::OnDemand && self.rng.u8(0..4) == 0 {
            self.cloned()?;
        }
        for bank in 0..BANKS {
            for _ in 0..self.rng.usize(0..3) {
                let death = Some((0, self.rng.u32(0..400_000)));
                self.judged(bank, Fate { death, ..Fate::default() }, &[])?;
            }
            let last = if bank + 1 == BANKS { vec!["--end".to_owned()] } else { Vec::new() };
            let seen = self.judged(bank, Fate::default(), &last)?;
            if seen.end != End::Exit {
                bail!("the judge ended by {:?} without a verdict", seen.end);
            }
        }
        Ok(())
    }

    fn judged(&mut self, bank: usize, fate: Fate, extra: &[String]) -> Result<Seen> {
        let command = self.command(Role::Judge, bank, &self.done[bank], extra);
        let seen = watch(start(command)?, fate, &|| false)?;
        self.account(Role::Judge, &seen)?;
        hear(&mut self.done[bank], &seen);
        Ok(seen)
    }

    fn command(&self, role: Role, bank: usize, done: &Done, extra: &[String]) -> Command {
        self.command_on(&self.place.pool(), role, bank, done, extra)
    }

    fn command_on(&self, pool: &Path, role: Role, bank: usize, done: &Done, extra: &[String]) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
        let mut command = Command::new(own);
        command.args(["kills-transfers", &format!("{role:?}").to_lowercase()]);
        command.args(["--seed", &self.seed.to_string(), "--bank", &bank.to_string()]);
        command.arg("--pool").arg(pool);
        if self.class == Class::OnDemand {
            command.arg("--on-demand");
        }
        for done in done {
            command.args(["--done", &done.to_string()]);
        }
        command.args(extra);
        command
    }

    fn account(&mut self, role: Role, seen: &Seen) -> Result<()> {
        let who = match role {
            Role::Judge => "recoverer",
            Role::Victim => "victim",
            Role::Keeper | Role::Cloner => "process that keeps",
        };
        let class = if self.class == Class::OnDemand { "on demand" } else { "durable" };
        let killed =
            [format!("SIGKILL of a {who}"), format!("SIGKILL beside transactions, {class}: a {who}")];
        let done = format!("transactions acknowledged, {class}");
        seen.account(role, &Names { killed, done: &done }, (&mut self.log, &mut self.counts))
    }
}

fn hear(done: &mut Done, seen: &Seen) {
    for said in &seen.said {
        if let Said::Settled { workload, step, .. } | Said::Done { workload, step } = said
            && let Some(done) = done.get_mut(*workload as usize)
        {
            *done = *step;
        }
    }
}

impl Rounds for Transfers {
    fn round(&mut self, _last: bool) -> Result<()> {
        self.log += "round\n";
        self.storm()?;
        self.judge()?;
        add(&mut self.counts, "rounds", 1);
        Ok(())
    }

    fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    fn left(&self) -> (Vec<PathBuf>, &str) {
        (vec![self.place.pool()], &self.log)
    }
}
