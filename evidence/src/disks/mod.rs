//! Real media: ext4, xfs and btrfs on a disk that records writes and flushes, and on one that
//! fails.
//!
//! Replay: killed processes work on a pool while the disk records; each image of a power cut is
//! mounted, recovered and judged as after kills ([`replay`]). Failing: the same on a failing disk
//! ([`failing`]).
//!
//! Controls must be noticed: a disk that loses writes after acknowledged flushes, and, with broken
//! protocols, writers that psync too early.

mod crew;
mod disk;
mod failing;
mod machine;
mod pages;
mod replay;
mod serve;
mod tape;

use crate::workloads::program::mixed;
use anyhow::{Context, Result, bail};
use clap::Args;
use failing::Failing;
use indelible_record::{Mode, Record, add};
use indicatif::{ProgressBar, ProgressStyle};
use machine::Kind;
use nix::sys::signal::{SigSet, Signal};
use replay::{Recording, Violation};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const WORKLOADS: u32 = crate::kills::WORKLOADS;
const CUTS: u64 = 40;
const SHORT: u64 = 120;
const LONG: u64 = 10_000;
const SHORT_MINUTES: f64 = 0.1;
const LONG_MINUTES: f64 = 5.0;
const PATIENCE: u64 = 80;

#[derive(Args)]
pub(crate) struct Disks {
    /// Images to replay [default: 120, or 10,000 in a campaign]
    #[arg(long)]
    images: Option<u64>,
    /// Minutes of work on failing disks [default: 0.1, or 5 in a campaign]
    #[arg(long)]
    minutes: Option<f64>,
    /// A campaign
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Only this file system
    #[arg(long)]
    only: Option<Kind>,
    /// Only the controls, which must be noticed
    #[arg(long)]
    controls: bool,
    /// Machines at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

#[derive(Args)]
pub(crate) struct Child {
    #[arg(long)]
    pool: PathBuf,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        replay::make_pool(&self.pool)
    }
}

#[derive(Clone, Copy)]
enum Task {
    Replay(Kind),
    LostFlushes(Kind),
    #[cfg_attr(not(feature = "mutants"), expect(dead_code, reason = "broken writers are another build"))]
    Broken(Kind, &'static str),
    Failing(Kind),
}

#[derive(Default)]
struct Findings {
    counts: BTreeMap<String, u64>,
    violations: Vec<Violation>,
    caught: Vec<String>,
    missed: Vec<String>,
}

struct Campaign {
    seed: u64,
    failing: Duration,
    goal: u64,
    images: AtomicU64,
    cuts: u64,
    bar: ProgressBar,
    findings: Mutex<Findings>,
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

impl Disks {
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(why) = machine::missing() {
            println!("NOT TESTED: real file systems on recorded and on failing disks: {why}");
            return Ok(());
        }
        Kind::install();
        let kinds = self.kinds();
        if kinds.is_empty() {
            return Ok(());
        }
        machine::prepare()?;
        end_in_order()?;
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("disks: seed {seed}");
        let images = match (self.controls, self.images) {
            (true, _) => 0,
            (false, Some(images)) => images,
            (false, None) => {
                if self.long {
                    LONG
                } else {
                    SHORT
                }
            }
        };
        let default = if self.long { LONG_MINUTES } else { SHORT_MINUTES };
        let minutes = if self.controls { 0.0 } else { self.minutes.unwrap_or(default) };
        let (begin, jobs) = (Instant::now(), self.jobs.max(1));
        let at_once = jobs.min(kinds.len());
        let bar = ProgressBar::new(images);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} images  {msg}  {elapsed}")?);
        let campaign = Campaign {
            seed,
            failing: Duration::from_secs_f64(minutes * 60.0 * at_once as f64 / kinds.len() as f64),
            goal: images,
            images: AtomicU64::new(0),
            cuts: (images / (2 * kinds.len() as u64)).clamp(1, CUTS),
            bar,
            findings: Mutex::default(),
        };
        let spread = campaign.spread(&kinds, &tasks(&kinds, minutes > 0.0), jobs);
        campaign.bar.finish_and_clear();
        let findings = campaign.findings.into_inner().expect("no thread panicked");
        let command = format!("pmo-evidence disks --images {images} --minutes {minutes} --seed {seed}");
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let mut record = Record::new("disks", mode, command, seed);
        record.seconds = begin.elapsed().as_secs_f64();
        record.counts.extend(findings.counts);
        record.counts.insert("violations".into(), findings.violations.len() as u64);
        (record.caught, record.missed) = (findings.caught, findings.missed);
        record.print();
        spread?;
        if self.only.is_none() && !self.controls {
            record.save()?;
        }
        for violation in &findings.violations {
            eprintln!("violation: {} (kept in {})", violation.what, violation.kept.display());
        }
        for control in &record.missed {
            eprintln!("not noticed: {control}");
        }
        if !findings.violations.is_empty() || !record.missed.is_empty() {
            bail!("{} violations, {} controls missed", findings.violations.len(), record.missed.len());
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| self.only.is_none_or(|only| only == *kind)) {
            match kind.missing() {
                None => kinds.push(kind),
                Some(why) => println!("NOT TESTED: {} on recorded and on failing disks: {why}", kind.word()),
            }
        }
        kinds
    }
}

fn tasks(kinds: &[Kind], failing: bool) -> Vec<Task> {
    let mut tasks: Vec<Task> = kinds.iter().map(|kind| Task::LostFlushes(*kind)).collect();
    #[cfg(feature = "mutants")]
    {
        tasks.extend(kinds.iter().map(|kind| Task::Broken(*kind, "NotDurable")));
        // On btrfs a durable write makes all earlier writes to the file durable: this writer's
        // missing barrier goes unnoticed.
        let separate = kinds.iter().filter(|kind| !matches!(kind, Kind::Btrfs));
        tasks.extend(separate.map(|kind| Task::Broken(*kind, "EarlyCheckpoint")));
    }
    if failing {
        tasks.extend(kinds.iter().map(|kind| Task::Failing(*kind)));
    }
    tasks
}

impl Campaign {
    fn one_more(&self) -> bool {
        let more = self.images.fetch_add(1, Ordering::Relaxed) < self.goal;
        self.bar.inc(u64::from(more));
        more
    }

    fn spread(&self, kinds: &[Kind], tasks: &[Task], jobs: usize) -> Result<()> {
        let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = || -> Result<()> {
            while !over.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let task = match tasks.get(number as usize) {
                    Some(task) => *task,
                    None if self.images.load(Ordering::Relaxed) >= self.goal => break,
                    None => Task::Replay(kinds[number as usize % kinds.len()]),
                };
                self.task(task, mixed(self.seed, number, 0).u64(..))
                    .inspect_err(|_| over.store(true, Ordering::Relaxed))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })
    }

    fn task(&self, task: Task, seed: u64) -> Result<()> {
        match task {
            Task::Replay(kind) => {
                self.bar.set_message(kind.word());
                let mut recording = Recording::new(kind, seed, None).with_context(|| self.again(kind))?;
                let violation = recording.replay(self.cuts, &|| self.one_more())?;
                self.take(recording.counts, violation);
            }
            Task::LostFlushes(kind) => {
                let mut recording = Recording::new(kind, seed, None).with_context(|| self.again(kind))?;
                let noticed = recording.replay_lost_flushes(10)?;
                self.control(&format!("lost flushes on {}", kind.word()), noticed > 0);
            }
            Task::Broken(kind, mutant) => {
                let mut recording = Recording::new(kind, seed, Some(mutant))?;
                let violation = recording.replay(PATIENCE, &|| true)?;
                self.control(&format!("{mutant} on {}", kind.word()), violation.is_some());
                if let Some(violation) = violation {
                    std::fs::remove_dir_all(violation.kept)?;
                }
            }
            Task::Failing(kind) => self.failing(kind, seed)?,
        }
        Ok(())
    }

    fn failing(&self, kind: Kind, seed: u64) -> Result<()> {
        let begin = Instant::now();
        for pool in 0.. {
            let mut failing = Failing::new(kind, mixed(seed, pool, 3).u64(..))?;
            for _ in 0..failing::ROUNDS {
                if begin.elapsed() >= self.failing {
                    return Ok(());
                }
                self.bar.set_message(format!("failing {}", kind.word()));
                let mut counts = BTreeMap::new();
                let round = failing.round(&mut counts)?;
                let (goes_on, violation) = match round {
                    Ok(goes_on) => (goes_on, None),
                    Err(violation) => (false, Some(violation)),
                };
                self.take(counts, violation);
                if !goes_on {
                    break;
                }
            }
        }
        Ok(())
    }

    fn take(&self, counts: BTreeMap<String, u64>, violation: Option<Violation>) {
        let mut findings = self.findings.lock().expect("no thread panicked");
        for (what, count) in &counts {
            add(&mut findings.counts, what, *count);
        }
        if self.bar.is_hidden() {
            println!("disks: {} of {} images", self.bar.position(), self.goal);
        }
        if let Some(violation) = violation {
            self.bar.suspend(|| eprintln!("VIOLATION: {}", violation.what));
            findings.violations.push(violation);
        }
    }

    fn control(&self, name: &str, noticed: bool) {
        let mut findings = self.findings.lock().expect("no thread panicked");
        if noticed { &mut findings.caught } else { &mut findings.missed }.push(name.to_owned());
    }

    fn again(&self, kind: Kind) -> String {
        format!("recording; again: pmo-evidence disks --only {} --seed {}", kind.word(), self.seed)
    }
}

fn end_in_order() -> Result<()> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block()?;
    thread::spawn(move || {
        let mut first: Option<Instant> = None;
        while let Ok(signal) = signals.wait() {
            INTERRUPTED.store(true, Ordering::Relaxed);
            // Some senders signal both the process and its group.
            if first.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(1) {
                std::process::exit(128 + signal as i32);
            }
        }
    });
    Ok(())
}
