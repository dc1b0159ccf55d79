mod campaign;
mod contents;
mod counts;
mod demand;
mod judge;

use anyhow::{Result, bail};
use clap::Args;
use indelible_record::{Mode, Record};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

use campaign::{Plan, run};

#[cfg(feature = "mutants")]
pub(crate) use {
    campaign::{Chosen, Pools},
    demand::Demand,
    judge::{at_once, commits, guarded, recovery_of, sweep},
};

const SHORT: u64 = 25;
const LONG: u64 = 10_000_000;
/// A run of so many images is a campaign.
const CAMPAIGN: u64 = 1_000_000;

#[derive(Args)]
pub(crate) struct Crashes {
    /// Images to judge at least [default: all short programs, and random ones for 25 seconds]
    #[arg(long, conflicts_with = "long")]
    images: Option<u64>,
    /// Begins random programs for so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// A campaign: 10,000,000 images, half of them of programs of transactions, a quarter of
    /// programs of objects on demand
    #[arg(long)]
    long: bool,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Judge this random program alone, as a failure names it
    #[arg(long)]
    program: Option<u64>,
    /// Only programs of objects on demand [default: those of the short form]
    #[arg(long)]
    on_demand: bool,
}

impl Crashes {
    pub(crate) fn run(&self) -> Result<()> {
        let is_campaign = self.long || self.images.is_some_and(|images| images >= CAMPAIGN);
        let mode = if is_campaign { Mode::Long } else { Mode::Short };
        let is_timed = !self.long && self.images.is_none() && !self.on_demand;
        let timed = self.seconds.or(is_timed.then_some(SHORT));
        let images = self.images.unwrap_or(if self.long { LONG } else { u64::MAX });
        println!("seed {}", self.seed);
        let bar = ProgressBar::new(images)
            .with_style(ProgressStyle::with_template("{human_pos} images, {per_sec}, {elapsed}; {msg}")?);
        let begin = Instant::now();
        let random = timed.map(Duration::from_secs);
        let stride = if self.long { 1 } else { 40 };
        let (seed, threads, only, on_demand) = (self.seed, self.threads, self.program, self.on_demand);
        let done = run(&Plan { seed, images, threads, random, every: 1, stride, only, on_demand }, &bar);
        bar.finish_and_clear();
        let seconds = begin.elapsed().as_secs_f64();
        for line in &done.lines {
            println!("{line}");
        }
        let mut counts = done.judged.counts.by_name();
        counts.insert("images judged".into(), done.judged.counts.judged());
        counts.extend(done.judged.contents.counts());
        for (what, count) in &counts {
            println!("{count:>12}  {what}");
        }
        println!("{:>12.0}  images a second", done.judged.counts.judged() as f64 / seconds);
        if self.program.is_none() {
            let (layer, only) = if self.on_demand { ("on-demand", " --on-demand") } else { ("crashes", "") };
            let length = match (self.long, timed, self.images) {
                (true, ..) => " --long".to_owned(),
                (false, _, Some(images)) => format!(" --images {images}"),
                (false, Some(seconds), None) => format!(" --seconds {seconds}"),
                (false, None, None) => String::new(),
            };
            let command = format!("pmo-evidence crashes{only}{length} --seed {}", self.seed);
            Record { seconds, counts, ..Record::new(layer, mode, command, self.seed) }.save()?;
        }
        if let Some(failure) = done.failure {
            bail!("{failure}");
        }
        Ok(())
    }
}
