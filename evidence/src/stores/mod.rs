//! Stores of every kind: each means, on each tracking and medium, under kills.
//!
//! A cell is one of each. A victim probes whether a psync finds such a store by itself, as
//! SAFETY.md says; then it stores, marks if needed, and psyncs in rounds until SIGKILL. A judge
//! compares every byte, after the last round reported done or the one under way.

mod child;
mod means;
mod uring;

pub(crate) use child::Child;

use crate::kills::watch::{End, Fate, Seen, start, watch};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use indelible::{MediumKind, Pool, PoolOptions, Tracking};
use indelible_record::{Mode, Record, add};
use means::Means;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Stores {
    /// Kills in each cell
    #[arg(long, default_value_t = 2)]
    kills: u64,
    /// A campaign: 60 kills in each cell
    #[arg(long)]
    long: bool,
    /// Only this means
    #[arg(long)]
    means: Option<Means>,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Cells at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

type Cell = (MediumKind, &'static str, Tracking, Means);

impl Stores {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let kills = if self.long { self.kills.max(60) } else { self.kills };
        println!("stores: seed {seed}");
        let begin = Instant::now();
        let cells = self.cells();
        let counts = Mutex::new(BTreeMap::from([("violations".to_owned(), 0)]));
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let work = || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (medium, word, _, means) = *cell;
                    let done = run_cell(*cell, seed, kills, &counts);
                    let what = || format!("{}, {word}, {medium:?} (seed {seed})", means.word());
                    if let Err(error) = done.with_context(what) {
                        next.store(cells.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
                Ok(())
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        let counts = counts.into_inner().expect("no thread panicked");
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence stores --kills {kills} --seed {seed}");
        let seconds = begin.elapsed().as_secs_f64();
        let record = Record { seconds, counts, ..Record::new("stores", mode, command, seed) };
        record.print();
        if self.means.is_none() { record.save() } else { Ok(()) }
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (word, tracking) in
            [Tracking::WpAsync, Tracking::FaultLog, Tracking::Mprotect, Tracking::Explicit]
                .into_iter()
                .filter_map(|tracking| Tracking::WORDS.into_iter().find(|(_, known)| *known == tracking))
        {
            if !tracking.is_available() {
                println!("NOT TESTED: this kernel does not offer {word}");
                continue;
            }
            for medium in [MediumKind::Memory, MediumKind::File] {
                let means =
                    Means::ALL.into_iter().filter(|means| self.means.is_none_or(|only| only == *means));
                cells.extend(means.map(|means| (medium, word, tracking, means)));
            }
        }
        cells
    }
}

fn run_cell(cell: Cell, seed: u64, kills: u64, counts: &Mutex<BTreeMap<String, u64>>) -> Result<()> {
    let (medium, word, _, means) = cell;
    let below = if medium == MediumKind::Memory { "/dev/shm" } else { "/var/tmp" };
    let folder = tempfile::Builder::new().prefix("indelible-stores-").tempdir_in(below)?;
    let path = folder.path().join("pool.pmo");
    let pool = PoolOptions::new().medium(medium).format(&path, 8 << 20)?;
    pool.create(child::NAME, child::SIZE as u64)?;
    drop::<Pool>(pool);
    let mut rng = mixed(seed, means as u64, word.len() as u64);
    let count = |what: &str, number: u64| add(&mut counts.lock().expect("no thread panicked"), what, number);
    let mut done = 0;
    for _ in 0..kills {
        let spins = if medium == MediumKind::Memory { 20_000 } else { 200_000 };
        let fate = Fate { death: Some((rng.usize(0..40), rng.u32(0..spins))), ..Fate::default() };
        let seen = watch(start(command(&path, cell, seed, done, false))?, fate, &|| false)?;
        if let Some(Said::Failed { why, .. }) =
            seen.said.iter().find(|said| matches!(said, Said::Failed { .. }))
        {
            println!("NOT TESTED: {} on {}: {why}", means.word(), below);
            return Ok(());
        }
        judge_of(&seen, "victim")?;
        if seen.end == End::Killed {
            count("SIGKILL of a victim", 1);
        }
        let rounds = seen.said.iter().filter(|said| matches!(said, Said::Done { .. })).count() as u64;
        count("psyncs acknowledged", rounds);
        let judge = command(&path, cell, seed, done + rounds, true);
        let seen = watch(start(judge)?, Fate::default(), &|| false)?;
        judge_of(&seen, "judge")?;
        let settled = seen.said.iter().find_map(|said| match said {
            Said::Settled { step, .. } => Some(*step),
            _ => None,
        });
        let settled = settled.context("the judge said nothing")?;
        count("psyncs done, not yet acknowledged", settled - done - rounds);
        done = settled;
        count("states compared with the model", 1);
    }
    count("cells", 1);
    Ok(())
}

fn command(pool: &Path, (_, word, _, means): Cell, seed: u64, done: u64, judge: bool) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| "pmo-evidence".into());
    let mut command = Command::new(own);
    let means = means.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    command.args(["stores-child", "--tracking", word, "--means", &means]);
    command.args(["--seed", &seed.to_string(), "--done", &done.to_string()]).arg("--pool").arg(pool);
    command.args(judge.then_some("--judge"));
    command
}

fn judge_of(seen: &Seen, who: &str) -> Result<()> {
    if let Some(Said::Wrong { why }) = seen.said.iter().find(|said| matches!(said, Said::Wrong { .. })) {
        bail!("{who}: {why}");
    }
    match seen.end {
        End::Exit | End::Killed => Ok(()),
        end => bail!("a {who} ended by {end:?}: {}", seen.stderr),
    }
}
