//! Real kills: processes that share a pool die of SIGKILL at random moments, and what they leave is held
//! against a model.
//!
//! A round: some victims run workloads, each on objects of its own; each is stopped, continued and killed when its time
//! has come, and some have a successor that recovers while the others go on. Readers attach beside them.
//! Then processes recover and are killed in turn, and at last a judge recovers in peace and compares.
//! Rounds follow each other on the pool of a scenario; scenarios differ in medium, tracking rung and adversity.
//!
//! Checked: each workload is in all of its objects as after the last step that was reported done, or as after
//! the one under way; a cut is consistent and not older than promised; nothing else is in the pool; check
//! finds no error before recovery and nothing at all after it; every failure is a clear error and happens
//! only where the scenario is adverse.

mod child;
mod environment;
mod scenario;
pub(crate) mod watch;

pub(crate) use child::Child;
pub(crate) use watch::IDLE;

use crate::workloads::program::mixed;
use anyhow::{Result, bail};
use clap::Args;
use environment::Environment;
use indelible::Tracking;
use indelible_record::{Mode, Record, add, folder};
use indicatif::{ProgressBar, ProgressStyle};
use scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Workloads on a pool.
pub(crate) const WORKLOADS: u32 = 4;
/// Rounds on a pool.
const ROUNDS: u64 = 6;

#[derive(Args)]
pub(crate) struct Kills {
    /// Rounds, at least
    #[arg(long, default_value_t = 50)]
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
    /// Scenarios at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

/// Environments and tracking rungs, taken in turn.
const SCENARIOS: [(Environment, &str); 9] = [
    (Environment::Disk, "wp-async"),
    (Environment::Memory, "wp-async"),
    (Environment::Disk, "mprotect"),
    (Environment::Memory, "mprotect"),
    (Environment::Disk, "explicit"),
    (Environment::Memory, "explicit"),
    (Environment::FullDisk, "auto"),
    (Environment::FullMemory, "auto"),
    (Environment::LittleMemory, "auto"),
];

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
        // Most of a round waits for the disk.
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
        let counts = counts.into_inner().expect("nobody panicked");
        bar.finish_and_clear();
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence kills --rounds {rounds} --seed {seed}");
        let seconds = begin.elapsed().as_secs_f64();
        let record = Record { seconds, counts, ..Record::new("kills", mode, command, seed) };
        record.print();
        if self.scenario.is_none() { record.save() } else { Ok(()) }
    }

    fn scenario(
        &self,
        seed: u64,
        number: u64,
        bar: &ProgressBar,
        counts: &Mutex<BTreeMap<String, u64>>,
    ) -> Result<()> {
        let (environment, tracking) = SCENARIOS[(number % SCENARIOS.len() as u64) as usize];
        let known = Tracking::WORDS.into_iter().find(|(word, _)| *word == tracking);
        if !known.is_some_and(|(_, tracking)| tracking.is_available()) {
            bar.println(format!("NOT TESTED: this kernel does not offer {tracking}"));
            bar.inc(ROUNDS);
            return Ok(());
        }
        bar.set_message(format!("{}, {tracking}", environment.word()));
        let own = mixed(seed, number, 0).u64(..);
        let Some(mut scenario) = Scenario::new(environment, tracking, own)? else {
            bar.println(format!("NOT TESTED: a {} needs the right to mount one", environment.word()));
            bar.inc(ROUNDS);
            return Ok(());
        };
        let mut done = Ok(());
        for _ in 0..ROUNDS {
            done = scenario.round();
            bar.inc(1);
            if done.is_err() {
                break;
            }
        }
        let mut counts = counts.lock().expect("nobody panicked");
        for (what, count) in &scenario.counts {
            add(&mut counts, what, *count);
        }
        add(
            &mut counts,
            &format!("rounds: {}, {tracking}", environment.word()),
            scenario.counts.get("rounds").copied().unwrap_or(0),
        );
        drop(counts);
        if let Err(error) = done {
            let kept = folder().join(format!("kills-{seed}-{number}"));
            scenario.keep(&kept, &format!("{error:#}"))?;
            bail!(
                "{}, {tracking}: {error:#}\nthe pool and what was said: {}\nagain: pmo-evidence kills --seed {seed} --scenario {number}",
                environment.word(),
                kept.display()
            );
        }
        Ok(())
    }
}
