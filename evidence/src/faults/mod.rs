//! Failing system calls: each occurrence of each call on a pool fails once, in each way.
//!
//! A traced process runs a script, makes transactions, or upgrades a pool of format 1; the tracer
//! fails one call, or kills before it. Then the process goes on, reports a clear error and can
//! repeat the operation, or the reopened pool shows whether it happened. A fresh process finds
//! everything psynced. No failed write or barrier is repeated blindly (docs/decisions/0021).

pub(crate) mod calls;
mod child;
mod script;
pub(crate) mod tracer;
mod transactions;
mod upgrade;
mod verify;

pub(crate) use child::Child;

use crate::workloads::program::mixed;
use crate::workloads::wire::{Said, Spec};
use anyhow::{Context, Result, bail};
use calls::{Call, Fault};
use clap::Args;
use indelible::Tracking;
use indelible_record::{Mode, Record, add, folder};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use tracer::{Aim, Trace};

const SHORT: usize = 600;
const POOL: &str = "pool.pmo";

#[derive(Args)]
pub(crate) struct Faults {
    /// Every occurrence in every way, instead of a sample that has every way
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Failures of the sample
    #[arg(long, default_value_t = SHORT, conflicts_with = "long")]
    sample: usize,
    /// Only failures beneath transactions
    #[arg(long)]
    transactions: bool,
    /// Only this failure, as a failed run names it
    #[arg(long)]
    only: Option<String>,
    /// Runs at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage {
    below: &'static str,
    medium: &'static str,
    work: Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Script(&'static str),
    Upgrade(&'static str),
    Transactions(&'static str),
}

const STAGES: [Stage; 11] = [
    Stage { below: "/var/tmp", medium: "disk", work: Work::Script("wp-async") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Script("mprotect") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Script("explicit") },
    Stage { below: "/dev/shm", medium: "memory", work: Work::Script("wp-async") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Upgrade("waiting") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Upgrade("resizing") },
    Stage { below: "/dev/shm", medium: "memory", work: Work::Upgrade("torn") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Transactions("durable") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Transactions("on-demand") },
    Stage { below: "/var/tmp", medium: "disk", work: Work::Transactions("both") },
    Stage { below: "/dev/shm", medium: "memory", work: Work::Transactions("both") },
];

impl Work {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Work::Script(tracking) => ("tracking", tracking),
            Work::Upgrade(pool) => ("upgrade", pool),
            Work::Transactions(class) => ("transactions", class),
        }
    }

    fn end(self) -> (Option<Signal>, Option<i32>) {
        match self {
            Work::Transactions(_) => (Some(Signal::SIGKILL), None),
            Work::Script(_) | Work::Upgrade(_) => (None, Some(0)),
        }
    }

    fn is_available(self) -> bool {
        let Work::Script(tracking) = self else { return true };
        let known = Tracking::WORDS.into_iter().find(|(word, _)| *word == tracking);
        known.is_some_and(|(_, tracking)| tracking.is_available())
    }
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    stage: Stage,
    aim: Aim,
}

impl Trial {
    fn name(&self) -> String {
        let (Stage { medium, work, .. }, Aim { call, occurrence, fault }) = (self.stage, self.aim);
        let work = match work {
            Work::Script(tracking) => tracking.to_owned(),
            Work::Upgrade(pool) => format!("upgrade of {pool}"),
            Work::Transactions(class) => format!("transactions {class}"),
        };
        format!("{medium},{work},{call},{occurrence},{fault}")
    }
}

impl Faults {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let begin = Instant::now();
        println!("faults: seed {seed}");
        let (trials, possible) = self.trials(seed)?;
        let bar = ProgressBar::new(trials.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} failures  {eta}")?);
        let (next, counts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        add(&mut counts.lock().expect("no thread panicked"), "violations", 0);
        add(&mut counts.lock().expect("no thread panicked"), "failures there are to inject", possible as u64);
        thread::scope(|scope| {
            let work = || {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = attempt(trial, seed, &counts) {
                        next.store(trials.len(), Ordering::Relaxed);
                        bail!(
                            "{error:#}\nagain: pmo-evidence faults --seed {seed} --only {:?}",
                            trial.name()
                        );
                    }
                    bar.inc(1);
                }
                Ok(())
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        bar.finish_and_clear();
        let (long, mode) = if self.long { (" --long", Mode::Long) } else { ("", Mode::Short) };
        let record = Record {
            seconds: begin.elapsed().as_secs_f64(),
            counts: counts.into_inner().expect("no thread panicked"),
            ..Record::new("faults", mode, format!("pmo-evidence faults{long} --seed {seed}"), seed)
        };
        record.print();
        if self.only.is_none() && !self.transactions { record.save() } else { Ok(()) }
    }

    fn trials(&self, seed: u64) -> Result<(Vec<Trial>, usize)> {
        let mut all = Vec::new();
        for stage in STAGES {
            if self.transactions && !matches!(stage.work, Work::Transactions(_)) {
                continue;
            }
            if !stage.work.is_available() {
                println!("NOT TESTED: this kernel does not offer {}", stage.work.words().1);
                continue;
            }
            let (trace, _) = traced(stage, seed, None)?;
            if (trace.signal, trace.code) != stage.work.end()
                || trace.stdout.contains("failed")
                || trace.stdout.contains("wrong")
            {
                bail!("it fails by itself on {stage:?}: {}{}", trace.stdout, trace.stderr);
            }
            for (call, count) in trace.calls {
                for fault in Call::named(call).map(Call::faults).unwrap_or_default() {
                    let aims = (1..=count).map(|occurrence| Aim { call, occurrence, fault });
                    all.extend(aims.map(|aim| Trial { stage, aim }));
                }
            }
        }
        if let Some(only) = &self.only {
            all.retain(|trial| trial.name() == *only);
            if all.is_empty() {
                bail!("there is no failure {only:?}");
            }
            return Ok((all, 1));
        }
        let possible = all.len();
        mixed(seed, 0, 0).shuffle(&mut all);
        if !self.long {
            let mut seen = BTreeSet::new();
            all.sort_by_cached_key(|Trial { stage, aim }| {
                !seen.insert((stage.medium, stage.work.words(), aim.call, aim.fault))
            });
            all.truncate(self.sample);
        }
        Ok((all, possible))
    }
}

fn traced(stage: Stage, seed: u64, aim: Option<Aim>) -> Result<(Trace, tempfile::TempDir)> {
    let folder = tempfile::Builder::new().prefix("indelible-faults-").tempdir_in(stage.below)?;
    if let Work::Upgrade(pool) = stage.work {
        upgrade::begin(&folder.path().join(POOL), pool)?;
    }
    let trace = tracer::run(command(stage, seed, &folder), folder.path(), aim)?;
    Ok((trace, folder))
}

fn command(stage: Stage, seed: u64, folder: &tempfile::TempDir) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
    let mut command = Command::new(own);
    let (option, word) = stage.work.words();
    command.args(["faults-child", "--seed", &seed.to_string(), &format!("--{option}"), word]);
    command.arg("--pool").arg(folder.path().join(POOL));
    command
}

fn attempt(trial: &Trial, seed: u64, counts: &Mutex<BTreeMap<String, u64>>) -> Result<()> {
    let Trial { stage, aim } = *trial;
    let (trace, place) = traced(stage, seed, Some(aim))?;
    let said: Vec<Said> = trace.stdout.lines().filter_map(Said::parse).collect();
    let outcome = verdict(&trace, stage.work, aim, &said).and_then(|outcome| {
        judge(stage, seed, &place, aim.fault, &said)?;
        Ok(outcome)
    });
    let outcome = outcome.inspect_err(|_| {
        let kept = folder().join(format!("faults-{}", trial.name().replace([',', ' '], "-")));
        let _ = std::fs::create_dir_all(&kept);
        let _ = std::fs::copy(place.path().join(POOL), kept.join(POOL));
        let _ = std::fs::write(kept.join("log.txt"), format!("{}{}", trace.stdout, trace.stderr));
        eprintln!("the pool and what was said: {}", kept.display());
    })?;
    let mut counts = counts.lock().expect("no thread panicked");
    add(&mut counts, &format!("{}: {}", aim.call, aim.fault), u64::from(trace.hit));
    add(&mut counts, outcome, 1);
    add(&mut counts, "failures injected", u64::from(trace.hit));
    match stage.work {
        Work::Script(_) => {}
        Work::Upgrade(_) => add(&mut counts, "failures injected into upgrades", u64::from(trace.hit)),
        Work::Transactions(_) => {
            add(&mut counts, "failures injected into transactions", u64::from(trace.hit));
        }
    }
    Ok(())
}

fn verdict(trace: &Trace, work: Work, aim: Aim, said: &[Said]) -> Result<&'static str> {
    if let Some(Said::Wrong { why }) = said.iter().find(|said| matches!(said, Said::Wrong { .. })) {
        bail!("{why}");
    }
    if trace.hung {
        bail!("it hangs");
    }
    if let Some(call) = &trace.retried {
        bail!("after {} of {}, the process went on with {call}", aim.fault, aim.call);
    }
    if let Some(why) = misnamed(aim, said) {
        bail!("{} of {}: {why}", aim.fault, aim.call);
    }
    if !trace.hit {
        return Ok("not reached: the run took another way");
    }
    match (trace.signal, trace.code) {
        (Some(Signal::SIGKILL), _) if aim.fault == Fault::Kill => {
            return Ok("outcome: killed, and recovered");
        }
        end if end == work.end() => {}
        (signal, code) => bail!("it ended by {signal:?}, {code:?}: {}", trace.stderr),
    }
    let failed = said.iter().any(|said| matches!(said, Said::Failed { .. }));
    Ok(if failed { "outcome: a clear error, and all went on" } else { "outcome: no error, all done" })
}

/// A wrongly named error of a full medium: a write or barrier may have happened in part, a
/// reservation changed nothing.
fn misnamed(aim: Aim, said: &[Said]) -> Option<String> {
    let (Fault::Error(libc::ENOSPC) | Fault::Late(libc::ENOSPC)) = aim.fault else { return None };
    let call = Call::named(aim.call)?;
    let expected = match call.name {
        "fallocate" => true,
        _ if call.tells_of_loss() => false,
        _ => return None,
    };
    said.iter().find_map(|said| match said {
        Said::Failed { why, .. } if why.starts_with("NoSpace:") != expected => Some(why.clone()),
        _ => None,
    })
}

fn judge(stage: Stage, seed: u64, place: &tempfile::TempDir, fault: Fault, said: &[Said]) -> Result<()> {
    let mut spec = Spec::new(0);
    said.iter().for_each(|said| spec.hear(said));
    if fault != Fault::Kill && !matches!(said.last(), Some(Said::Settled { .. })) {
        bail!("it did not come to the end of the script");
    }
    let mut command = command(stage, seed, place);
    command.args(["--judge", &spec.done.to_string(), &u64::from(spec.begun).to_string()]);
    let output = command.output().context("the judge does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.is_empty() {
        bail!("afterwards, {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
