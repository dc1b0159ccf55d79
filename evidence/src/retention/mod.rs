//! Data that survive changes of their types, under kills: programs of three versions take turns on
//! a heap.
//!
//! They convert roots, migrate containers in steps, extend values, and reset roots of other
//! versions, beside failing converters, racing threads and refused data of later versions. A judge
//! compares the heap with a model.
//!
//! Separate from the kills, which compare bytes: an allocator does not determine these.

mod child;
mod compare;
mod controls;
mod perform;
mod pool;
mod program;
mod types;

pub(crate) use child::Child;

use anyhow::{Context, Result, bail};
use clap::Args;
use indelible::{MediumKind, Tracking};
use indelible_record::{Mode, Record, add};
use pool::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Retention {
    /// Kills of programs on each medium, with each tracking rung
    #[arg(long, default_value_t = 20)]
    kills: u64,
    /// A campaign: 400 such kills
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Pools at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// Only breaks the rules of retention, each of which must be noticed
    #[arg(long)]
    controls: bool,
}

impl Retention {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("retention: seed {seed}");
        if self.controls {
            return controls::run(seed);
        }
        let kills = if self.long { self.kills.max(400) } else { self.kills };
        let begin = Instant::now();
        let cells = cells();
        let counts = Mutex::new(BTreeMap::from([("violations".to_owned(), 0)]));
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let work = || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = cell.run(seed, kills, None);
                    let done = done.with_context(|| format!("{cell} (seed {seed})"));
                    let counted = done.inspect_err(|_| next.store(cells.len(), Ordering::Relaxed))?;
                    let mut counts = counts.lock().expect("no thread panicked");
                    counted.iter().for_each(|(what, count)| add(&mut counts, what, *count));
                }
                Ok::<(), anyhow::Error>(())
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
        })?;
        let counts = counts.into_inner().expect("no thread panicked");
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence retention --kills {kills} --seed {seed}");
        let seconds = begin.elapsed().as_secs_f64();
        let record = Record { seconds, counts, ..Record::new("retention", mode, command, seed) };
        record.print();
        if !record.counts.contains_key("heaps compared with the model") {
            bail!("no heap was compared");
        }
        record.save()
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (word, tracking) in Tracking::WORDS {
        if tracking == Tracking::Auto {
            continue;
        }
        if !tracking.is_available() {
            println!("NOT TESTED: this kernel does not offer {word}");
            continue;
        }
        let media = [MediumKind::Memory, MediumKind::File];
        cells.extend(media.map(|medium| Cell { medium, tracking: word }));
    }
    cells
}
