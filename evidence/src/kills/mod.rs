//! Real kills: processes that share a pool die of SIGKILL at random moments; the pool is compared
//! with a model.
//!
//! A round: victims run workloads on their own objects and are stopped, continued and killed, some
//! with a successor or readers beside them; recovering processes are killed; a judge compares.
//! Scenarios differ in medium, tracking, adversity and kind ([`beside`], [`transfers`]).
//!
//! Checked: all objects of a workload are after the last reported step or the one under way; cuts
//! are consistent; check finds nothing after recovery; failures are clear errors, in adverse
//! scenarios only.

mod beside;
mod child;
mod environment;
mod scenario;
mod transfers;
pub(crate) mod watch;

pub(crate) use beside::Child as BesideChild;
pub(crate) use child::{Child, check_pool, failed};
pub(crate) use transfers::Child as TransfersChild;
pub(crate) use watch::IDLE;

use crate::workloads::program::mixed;
use anyhow::{Context, Result, bail};
use beside::Beside;
use clap::Args;
use environment::Environment;
use indelible::{Class, Tracking};
use indelible_record::{Mode, Record, add, folder};
use indicatif::{ProgressBar, ProgressStyle};
use scenario::Scenario;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use transfers::Transfers;

pub(crate) const WORKLOADS: u32 = 4;
const ROUNDS: u64 = 6;

#[derive(Args)]
pub(crate) struct Kills {
    /// Rounds, at least
    #[arg(long, default_value_t = 132)]
    rounds: u64,
    /// A campaign: 5,000 rounds
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Only this scenario of the campaign
    #[arg(long)]
    scenario: Option<u64>,
    /// Only scenarios in which processes make snapshots and copies of objects that others write
    #[arg(long)]
    beside: bool,
    /// Only scenarios in which threads move money between objects in transactions
    #[arg(long, conflicts_with = "beside")]
    transactions: bool,
    /// Scenarios at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Apart,
    /// As `Apart`, with sealed objects, snapshots, copies and rollbacks.
    Sealed,
    Beside,
    Durable,
    OnDemand,
}

const SCENARIOS: [(Environment, &str, Kind); 22] = [
    (Environment::Disk, "wp-async", Kind::Apart),
    (Environment::Memory, "wp-async", Kind::Beside),
    (Environment::Disk, "auto", Kind::OnDemand),
    (Environment::Memory, "wp-async", Kind::Apart),
    (Environment::Disk, "wp-async", Kind::Sealed),
    (Environment::Memory, "auto", Kind::Durable),
    (Environment::Disk, "mprotect", Kind::Apart),
    (Environment::Disk, "wp-async", Kind::Beside),
    (Environment::Memory, "mprotect", Kind::Apart),
    (Environment::Disk, "explicit", Kind::Apart),
    (Environment::Disk, "auto", Kind::Durable),
    (Environment::Memory, "mprotect", Kind::Beside),
    (Environment::Memory, "explicit", Kind::Apart),
    (Environment::Disk, "explicit", Kind::Beside),
    (Environment::FullDisk, "auto", Kind::Apart),
    (Environment::FullMemory, "auto", Kind::Apart),
    (Environment::Memory, "explicit", Kind::Beside),
    (Environment::LittleMemory, "auto", Kind::Apart),
    (Environment::Disk, "mprotect", Kind::Beside),
    (Environment::Memory, "mprotect", Kind::Sealed),
    (Environment::FullDisk, "auto", Kind::Sealed),
    (Environment::Memory, "auto", Kind::OnDemand),
];

impl Kind {
    fn suffix(self) -> &'static str {
        match self {
            Kind::Apart => "",
            Kind::Sealed => ", sealed",
            Kind::Beside => ", beside writers",
            Kind::Durable => ", transactions",
            Kind::OnDemand => ", transactions on demand",
        }
    }
}

trait Rounds {
    fn round(&mut self, last: bool) -> Result<()>;

    fn counts(&self) -> &BTreeMap<String, u64>;

    fn left(&self) -> (Vec<PathBuf>, &str);
}

fn keep(scenario: &dyn Rounds, folder: &Path, why: &str) -> Result<()> {
    let (files, log) = scenario.left();
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for file in files {
        std::fs::copy(&file, folder.join(file.file_name().unwrap_or_default()))?;
    }
    Ok(std::fs::write(folder.join("log.txt"), format!("{log}{why}\n"))?)
}

impl Kills {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let rounds = if self.long { self.rounds.max(5000) } else { self.rounds };
        let scenarios = self.scenario.map_or(0..rounds.div_ceil(ROUNDS), |scenario| scenario..scenario + 1);
        let begin = Instant::now();
        println!("kills: seed {seed}");
        let bar = ProgressBar::new((scenarios.end - scenarios.start) * ROUNDS);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} rounds  {msg}  {eta}")?);
        let counts = BTreeMap::from([("violations".to_owned(), 0)]);
        let (next, counts) = (AtomicU64::new(scenarios.start), Mutex::new(counts));
        thread::scope(|scope| {
            let work = || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= scenarios.end {
                        return Ok(());
                    }
                    if let Err(error) = self.scenario(seed, number, &bar, &counts) {
                        next.store(scenarios.end, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        let counts = counts.into_inner().expect("no thread panicked");
        bar.finish_and_clear();
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence kills --rounds {rounds} --seed {seed}{}", self.words());
        let seconds = begin.elapsed().as_secs_f64();
        let record = Record { seconds, counts, ..Record::new("kills", mode, command, seed) };
        record.print();
        if self.scenario.is_none() && self.words().is_empty() { record.save() } else { Ok(()) }
    }

    fn words(&self) -> &'static str {
        match (self.beside, self.transactions) {
            (true, _) => " --beside",
            (_, true) => " --transactions",
            _ => "",
        }
    }

    fn scenario(
        &self,
        seed: u64,
        number: u64,
        bar: &ProgressBar,
        counts: &Mutex<BTreeMap<String, u64>>,
    ) -> Result<()> {
        let wanted = |kind: Kind| match kind {
            Kind::Apart | Kind::Sealed => self.words().is_empty(),
            Kind::Beside => !self.transactions,
            Kind::Durable | Kind::OnDemand => !self.beside,
        };
        let of: Vec<_> = SCENARIOS.into_iter().filter(|(.., kind)| wanted(*kind)).collect();
        let (environment, tracking, kind) = of[(number % of.len() as u64) as usize];
        let known = Tracking::WORDS.into_iter().find(|(word, _)| *word == tracking);
        if !known.is_some_and(|(_, tracking)| tracking.is_available()) {
            bar.println(format!("NOT TESTED: this kernel does not offer {tracking}"));
            bar.inc(ROUNDS);
            return Ok(());
        }
        bar.set_message(format!("{}, {tracking}{}", environment.word(), kind.suffix()));
        let own = mixed(seed, number, 0).u64(..);
        let scenario: Option<Box<dyn Rounds>> = match kind {
            Kind::Apart | Kind::Sealed => {
                let made = Scenario::new(environment, tracking, kind == Kind::Sealed, own)?;
                made.map(|made| Box::new(made) as _)
            }
            Kind::Beside => Beside::new(environment, tracking, own)?.map(|made| Box::new(made) as _),
            Kind::Durable | Kind::OnDemand => {
                let class = if kind == Kind::Durable { Class::Transactional } else { Class::OnDemand };
                Transfers::new(environment, class, own)?.map(|made| Box::new(made) as _)
            }
        };
        let Some(mut scenario) = scenario else {
            bar.println(format!("NOT TESTED: a {} needs the right to mount one", environment.word()));
            bar.inc(ROUNDS);
            return Ok(());
        };
        let mut done = Ok(());
        for round in 1..=ROUNDS {
            done = scenario.round(round == ROUNDS);
            bar.inc(1);
            if done.is_err() {
                break;
            }
        }
        let mut counts = counts.lock().expect("no thread panicked");
        for (what, count) in scenario.counts() {
            add(&mut counts, what, *count);
        }
        add(
            &mut counts,
            &format!("rounds: {}, {tracking}{}", environment.word(), kind.suffix()),
            scenario.counts().get("rounds").copied().unwrap_or(0),
        );
        drop(counts);
        if let Err(error) = done {
            let kept = folder().join(format!("kills-{seed}-{number}"));
            keep(&*scenario, &kept, &format!("{error:#}"))?;
            bail!(
                "{}, {tracking}{}: {error:#}\nthe pool and what was said: {}\nagain: pmo-evidence kills --seed {seed} --scenario {number}{}",
                environment.word(),
                kind.suffix(),
                kept.display(),
                self.words()
            );
        }
        Ok(())
    }
}
