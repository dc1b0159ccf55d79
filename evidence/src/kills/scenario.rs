use super::child::{GROWTH, GROWTHS, Role};
use super::environment::{Environment, Group, Place};
use super::watch::{End, Fate, Seen, start, watch};
use super::{Rounds, WORKLOADS};
use crate::workloads::program::mixed;
use crate::workloads::ring;
use crate::workloads::wire::{Said, Spec};
use anyhow::{Result, bail};
use indelible::Pool;
use indelible_record::add;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const POOL: u64 = 64 << 20;

pub(crate) struct Scenario {
    environment: Environment,
    tracking: &'static str,
    seals: bool,
    place: Place,
    group: Option<Group>,
    seed: u64,
    rng: fastrand::Rng,
    length: u64,
    specs: Vec<Spec>,
    counts: BTreeMap<String, u64>,
    log: String,
}

struct Line {
    specs: Vec<Spec>,
    fates: Vec<(Fate, Vec<String>)>,
    seen: Vec<Seen>,
}

impl Scenario {
    pub(crate) fn new(
        environment: Environment,
        tracking: &'static str,
        seals: bool,
        seed: u64,
    ) -> Result<Option<Scenario>> {
        let Some(place) = Place::new(environment)? else { return Ok(None) };
        let pool = Pool::format(place.pool(), POOL)?;
        place.confirm(pool.medium())?;
        for workload in 0..WORKLOADS {
            pool.create(&ring::name(workload), ring::SIZE)?;
        }
        Ok(Some(Scenario {
            environment,
            tracking,
            seals,
            place,
            group: if environment == Environment::LittleMemory { Group::new() } else { None },
            seed,
            rng: mixed(seed, u64::MAX, 0),
            length: POOL,
            specs: (0..WORKLOADS).map(Spec::new).collect(),
            counts: BTreeMap::new(),
            log: String::new(),
        }))
    }

    fn adverse(&self) -> bool {
        !matches!(self.environment, Environment::Disk | Environment::Memory)
    }

    fn count(&mut self, what: &str, count: u64) {
        add(&mut self.counts, what, count);
    }

    fn storm(&mut self) -> Result<()> {
        let mut specs = self.specs.clone();
        self.rng.shuffle(&mut specs);
        let mut lines = Vec::new();
        while !specs.is_empty() {
            let rest = specs.split_off(self.rng.usize(1..=specs.len().min(2)));
            let fates = (0..self.rng.usize(1..=2)).map(|_| self.fate()).collect();
            lines.push(Line { specs, fates, seen: Vec::new() });
            specs = rest;
        }
        let reader = match self.rng.bool() {
            true => Some(start(self.command(Role::Reader, &[], &[]))?),
            false => None,
        };
        let grower = match self.rng.bool() {
            true => Some((start(self.command(Role::Grower, &[], &[]))?, self.fate().0)),
            false => None,
        };
        let (over, this) = (AtomicBool::new(false), &*self);
        let (lines, read, grown) = thread::scope(|scope| {
            let over = &over;
            let grower = grower.map(|(child, fate)| {
                scope.spawn(move || watch(child, fate, &|| over.load(Ordering::Relaxed)))
            });
            let reader = reader.map(|child| {
                scope.spawn(move || watch(child, Fate::default(), &|| over.load(Ordering::Relaxed)))
            });
            let lines: Vec<_> = lines.into_iter().map(|line| scope.spawn(|| this.follow(line))).collect();
            let lines: Vec<_> =
                lines.into_iter().map(|line| line.join().expect("it does not panic")).collect();
            over.store(true, Ordering::Relaxed);
            let joined = |watching: Option<thread::ScopedJoinHandle<'_, _>>| {
                watching.map(|watching| watching.join().expect("it does not panic"))
            };
            (lines, joined(reader), joined(grower))
        });
        for line in lines {
            let line = line?;
            for spec in line.specs {
                self.specs[spec.workload as usize] = spec;
            }
            for seen in line.seen {
                self.account("victim", &seen)?;
            }
        }
        if let Some(seen) = read {
            self.account("reader", &seen?)?;
        }
        if let Some(seen) = grown {
            let seen = seen?;
            self.account("grower", &seen)?;
            self.lengthened(&seen)?;
        }
        let under_way = self.specs.iter().filter(|spec| spec.begun).count();
        self.count("operations under way when the process died", under_way as u64);
        Ok(())
    }

    fn lengthened(&mut self, seen: &Seen) -> Result<()> {
        let steps =
            seen.said.iter().filter(|said| matches!(said, Said::Count { what, .. } if what == GROWTHS));
        let (least, found) =
            (self.length + steps.count() as u64 * GROWTH, Pool::open(self.place.pool())?.info()?.length);
        if found != least && found != least + GROWTH {
            bail!("the pool has {found} bytes, after growths to {least}");
        }
        self.count(
            "growths that were under way when the process died, and took effect",
            (found - least) / GROWTH,
        );
        self.length = found;
        Ok(())
    }

    fn fate(&mut self) -> (Fate, Vec<String>) {
        let rng = &mut self.rng;
        let turns = if self.environment == Environment::Memory { 3_000 } else { 60_000 };
        let lines = if rng.u8(0..6) == 0 { rng.usize(0..3) } else { rng.usize(0..80) };
        let mut fate = Fate { stops: Default::default(), death: Some((lines, rng.u32(0..turns))) };
        if rng.u8(0..3) == 0 {
            let mut stops: Vec<_> =
                (0..rng.usize(1..4)).map(|_| (rng.usize(0..=lines), rng.u32(0..turns))).collect();
            stops.sort_unstable();
            fate.stops = stops.into();
        }
        let mut extra = vec!["--steps".to_owned(), rng.u32(20..120).to_string()];
        if rng.u8(0..8) == 0 {
            extra.push("--end".into());
        }
        if self.environment == Environment::LittleMemory && (self.group.is_none() || rng.bool()) {
            extra.extend(["--tight".into(), rng.u32(0..6000).to_string()]);
        }
        (fate, extra)
    }

    fn follow(&self, mut line: Line) -> Result<Line> {
        for (fate, extra) in std::mem::take(&mut line.fates) {
            let child = start(self.command(Role::Victim, &line.specs, &extra))?;
            if let Some(group) = &self.group
                && !extra.contains(&"--tight".to_owned())
            {
                let _ = group.limit((2 << 20) + u64::from(fate.death.map_or(0, |(_, spins)| spins)) * 50);
                let _ = group.take(child.id());
            }
            let seen = watch(child, fate, &|| false)?;
            for said in &seen.said {
                if let Some(spec) = line.specs.iter_mut().find(|spec| Some(spec.workload) == said.workload())
                {
                    spec.hear(said);
                }
            }
            line.seen.push(seen);
        }
        Ok(line)
    }

    fn recoverers(&mut self) -> Result<()> {
        for _ in 0..self.rng.usize(0..3) {
            let turns = if self.environment == Environment::Memory { 80_000 } else { 400_000 };
            let lines = self.rng.usize(0..WORKLOADS as usize);
            let fate = Fate { death: Some((lines, self.rng.u32(0..turns))), ..Fate::default() };
            let seen = watch(start(self.command(Role::Judge, &self.specs, &[]))?, fate, &|| false)?;
            let settled = seen.said.iter().filter(|said| matches!(said, Said::Settled { .. })).count();
            if seen.end == End::Killed {
                let what = if settled == 0 {
                    "killed with the first workload"
                } else {
                    "killed with a later workload"
                };
                self.count(&format!("recoverers {what}"), 1);
            }
            self.account("recoverer", &seen)?;
        }
        Ok(())
    }

    fn judge(&mut self) -> Result<()> {
        let mut seen = self.judged()?;
        if self.place.can_be_full()
            && seen.said.iter().any(|said| matches!(said, Said::Failed { untouched: true, .. }))
        {
            self.count("recoveries that waited for space", 1);
            self.account("judge", &seen)?;
            self.place.relieve()?;
            seen = self.judged()?;
        }
        let failure = seen.said.iter().find(|said| matches!(said, Said::Failed { .. }));
        if let Some(failure) = failure {
            bail!("the judge could not recover: {failure}");
        }
        for said in &seen.said {
            if let Some(spec) = self.specs.iter_mut().find(|spec| Some(spec.workload) == said.workload()) {
                spec.hear(said);
            }
        }
        self.account("judge", &seen)?;
        if seen.end != End::Exit || self.specs.iter().any(|spec| spec.begun) {
            bail!("the judge ended by {:?} without a verdict", seen.end);
        }
        Ok(())
    }

    fn judged(&self) -> Result<Seen> {
        Ok(watch(start(self.command(Role::Judge, &self.specs, &[]))?, Fate::default(), &|| false)?)
    }

    fn command(&self, role: Role, specs: &[Spec], extra: &[String]) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
        let mut command = Command::new(own);
        let role = format!("{role:?}").to_lowercase();
        command.args(["kills-child", &role, "--seed", &self.seed.to_string(), "--tracking", self.tracking]);
        command.arg("--pool").arg(self.place.pool());
        command.env("RUST_BACKTRACE", "0");
        if self.environment == Environment::FullMemory {
            command.arg("--dense");
        }
        if self.seals {
            command.args(["--keeps", "--seals"]);
        }
        for spec in specs {
            command.args(["--workload", &spec.to_string()]);
        }
        command.args(extra);
        command
    }

    fn account(&mut self, who: &str, seen: &Seen) -> Result<()> {
        for said in &seen.said {
            self.log += &format!("{who}: {said}\n");
        }
        self.log += &format!("{who}: ended by {:?}\n{}", seen.end, seen.stderr);
        self.count("SIGSTOP and SIGCONT", seen.stopped);
        match seen.end {
            End::Exit => self.count("processes that ended by themselves", 1),
            End::Killed => self.count(&format!("SIGKILL of a {who}"), 1),
            End::OutOfMemory if self.environment == Environment::LittleMemory => {
                self.count("kills by the kernel, out of memory", 1)
            }
            End::Aborted if self.environment == Environment::LittleMemory => {
                self.count("aborts of a victim, out of memory", 1)
            }
            end => bail!("a {who} ended by {end:?}: {}", seen.stderr),
        }
        for said in &seen.said {
            match said {
                Said::Wrong { why } => bail!("{who}: {why}"),
                Said::Failed { why, .. } if self.adverse() => {
                    let kind = why.split(':').next().unwrap_or("");
                    self.count(&format!("clear errors, {}: {kind}", self.environment.word()), 1);
                }
                Said::Failed { why, .. } => bail!("{who}: {why}"),
                Said::Done { .. } => self.count("steps done by victims", 1),
                Said::Count { what, count } => self.count(what, *count),
                Said::Settled { .. } if who == "judge" => self.count("workloads compared with the model", 1),
                Said::Settled { .. } | Said::Begun { .. } => {}
            }
        }
        Ok(())
    }
}

impl Rounds for Scenario {
    fn round(&mut self, _last: bool) -> Result<()> {
        self.log += "round\n";
        if self.place.can_be_full() {
            let left = self.rng.u64(0..1 << 20);
            self.place.fill(left)?;
        }
        self.storm()?;
        self.recoverers()?;
        self.judge()?;
        self.count("rounds", 1);
        Ok(())
    }

    fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    fn left(&self) -> (Vec<PathBuf>, &str) {
        (vec![self.place.pool()], &self.log)
    }
}
