//! `crashes`: power cuts on a simulated medium.

mod campaign;
mod judge;
mod tally;

use anyhow::{Result, bail};
use clap::Args;
use indelible_record::{Mode, Record};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Instant;

use campaign::{Plan, run};

#[cfg(feature = "mutants")]
pub(crate) use {
    campaign::{Chosen, Pools},
    judge::{guarded, recovery_of},
};

const SHORT: u64 = 200_000;
const LONG: u64 = 10_000_000;

#[derive(Args)]
pub(crate) struct Crashes {
    /// Images to judge at least [default: 200000]
    #[arg(long, conflicts_with = "long")]
    images: Option<u64>,
    /// A campaign: 10,000,000 images
    #[arg(long)]
    long: bool,
    /// Where all random choices start from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; what is found does not depend on them
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Judge this random program alone, as a failure names it
    #[arg(long)]
    program: Option<u64>,
}

impl Crashes {
    pub(crate) fn run(&self) -> Result<()> {
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let images = self.images.unwrap_or(if self.long { LONG } else { SHORT });
        println!("seed {}, {images} images at least", self.seed);
        let bar = ProgressBar::new(images).with_style(ProgressStyle::with_template(
            "{bar:40} {human_pos}/{human_len} images, {per_sec}, {elapsed}, {eta} left; {msg}",
        )?);
        let begin = Instant::now();
        let plan = Plan { seed: self.seed, images, threads: self.threads, only: self.program };
        let done = run(&plan, &bar);
        bar.finish_and_clear();
        let seconds = begin.elapsed().as_secs_f64();
        for line in &done.lines {
            println!("{line}");
        }
        let mut counts = done.tally.counts();
        counts.insert("distinct images".into(), done.tally.judged());
        for (what, count) in &counts {
            println!("{count:>12}  {what}");
        }
        println!("{:>12.0}  images a second", done.tally.judged() as f64 / seconds);
        if self.program.is_none() {
            let length = if self.long { " --long".into() } else { format!(" --images {images}") };
            let command = format!("pmo-evidence crashes{length} --seed {}", self.seed);
            Record { seconds, counts, ..Record::new("crashes", mode, command, self.seed) }.save()?;
        }
        if let Some(failure) = done.failure {
            bail!("{failure}");
        }
        Ok(())
    }
}
