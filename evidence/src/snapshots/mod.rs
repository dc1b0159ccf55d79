//! Snapshots, writable copies and readers of a sparse object of 64 GiB beside its writer, in memory
//! and in a file.
//!
//! Under kills, processes change the object, make and change snapshots and copies, and follow it;
//! at the end it is one piece again. Another object gets thousands of snapshots. Then times are
//! measured, with and without readers.
//!
//! Tracking is explicit: a scan of page tables over 64 GiB would dominate a psync.

mod changes;
mod child;
mod many;
mod times;

pub(crate) use child::Child;

use crate::kills::watch::{End, Fate, Seen, start, watch};
use crate::workloads::program::mixed;
use crate::workloads::wire::Said;
use crate::workloads::world::patient;
use anyhow::{Result, anyhow, bail};
use changes::{Acknowledged, Pages, SIZE};
use child::{OBJECT, POOL, Role};
use clap::Args;
use indelible::{CreateOptions, MediumKind, Pool, PoolOptions};
use indelible_record::{Mode, Record, add};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use times::{Times, timed};

#[derive(Args)]
pub(crate) struct Snapshots {
    /// A campaign: 20 rounds of kills on each medium, 10,000 changes on both sides and 10,000
    /// snapshots, a reader for a minute
    #[arg(long)]
    long: bool,
    /// Only on this medium, memory or file
    #[arg(long)]
    medium: Option<String>,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
}

struct Scale {
    rounds: u64,
    pages: u64,
    changes: u64,
    snapshots: u64,
    many: u64,
    windows: u64,
    window: Duration,
}

const SHORT: Scale = Scale {
    rounds: 2,
    pages: 300,
    changes: 600,
    snapshots: 10,
    many: 200,
    windows: 1,
    window: Duration::from_millis(300),
};

const LONG: Scale = Scale {
    rounds: 20,
    pages: 5_000,
    changes: 10_000,
    snapshots: 200,
    many: 10_000,
    windows: 6,
    window: Duration::from_secs(10),
};

const EVERY: f64 = 10.0;

struct Scene<'a> {
    medium: MediumKind,
    folder: tempfile::TempDir,
    scale: &'a Scale,
    seed: u64,
    rng: fastrand::Rng,
    counts: &'a mut BTreeMap<String, u64>,
}

impl Snapshots {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("snapshots: seed {seed}");
        let (begin, scale) = (Instant::now(), if self.long { &LONG } else { &SHORT });
        let mut counts = BTreeMap::from([("violations".to_owned(), 0)]);
        let media = [("memory", MediumKind::Memory, "/dev/shm"), ("file", MediumKind::File, "/var/tmp")];
        for (word, medium, below) in media {
            if self.medium.as_ref().is_some_and(|only| only != word) {
                continue;
            }
            let folder = tempfile::Builder::new().prefix("indelible-snapshots-").tempdir_in(below)?;
            let rng = mixed(seed, medium as u64, 0);
            let mut scene = Scene { medium, folder, scale, seed, rng, counts: &mut counts };
            if let Err(error) = scene.run() {
                let kept = scene.folder.keep();
                bail!(
                    "{word}: {error:#} (seed {seed}; the pool and the journals are left in {})",
                    kept.display()
                );
            }
        }
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command =
            format!("pmo-evidence snapshots{} --seed {seed}", if self.long { " --long" } else { "" });
        let seconds = begin.elapsed().as_secs_f64();
        let record = Record { seconds, counts, ..Record::new("snapshots", mode, command, seed) };
        record.print();
        if self.medium.is_none() { record.save() } else { Ok(()) }
    }
}

impl Scene<'_> {
    fn run(&mut self) -> Result<()> {
        let word = self.word();
        let pool = PoolOptions::new().medium(self.medium).format(self.pool(), POOL)?;
        pool.create_with(OBJECT, &CreateOptions::new(SIZE).sparse(true).reach(SIZE))?;
        drop(pool);
        let bar = ProgressBar::new(self.scale.rounds + self.scale.windows + 4);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  {eta}")?);
        bar.set_message(format!("{word}: every page is changed once"));
        self.process(Role::Writer, &["--changes".into(), self.scale.pages.to_string()], Fate::default())?;
        bar.set_message(format!("{word}: rounds of kills"));
        for _ in 0..self.scale.rounds {
            self.round()?;
            bar.inc(1);
        }
        bar.set_message(format!("{word}: the last changes of both sides"));
        self.finish()?;
        bar.inc(1);
        bar.set_message(format!("{word}: thousands of snapshots"));
        let pool = PoolOptions::new().medium(self.medium).open(self.pool())?;
        many::many(&pool, self.scale.many, &mut self.rng, self.counts, word)?;
        drop(pool);
        bar.inc(1);
        bar.set_message(format!("{word}: times of snapshots"));
        self.times()?;
        bar.inc(2);
        bar.set_message(format!("{word}: a reader that follows"));
        self.following(&bar)?;
        bar.finish_and_clear();
        Ok(())
    }

    fn word(&self) -> &'static str {
        if self.medium == MediumKind::Memory { "memory" } else { "file" }
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pool.pmo")
    }

    fn command(&self, role: Role, extra: &[String]) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
        let mut command = Command::new(own);
        command.args(["snapshots-child", &format!("{role:?}").to_lowercase()]);
        command.args(["--seed", &self.seed.to_string(), "--pages", &self.scale.pages.to_string()]);
        command.arg("--pool").arg(self.pool()).arg("--journals").arg(self.folder.path());
        command.args((self.medium == MediumKind::Memory).then_some("--memory")).args(extra);
        command
    }

    fn process(&mut self, role: Role, extra: &[String], fate: Fate) -> Result<Seen> {
        let seen = watch(start(self.command(role, extra))?, fate, &|| false)?;
        self.account(role, &seen)?;
        Ok(seen)
    }

    fn fate(&mut self, lines: usize) -> Fate {
        let turns = if self.medium == MediumKind::Memory { 20_000 } else { 200_000 };
        Fate { death: Some((self.rng.usize(0..lines), self.rng.u32(0..turns))), ..Fate::default() }
    }

    fn round(&mut self) -> Result<()> {
        let copied = ["--changes".to_owned(), self.scale.changes.to_string()];
        let roles = [(Role::Writer, 2, 12), (Role::Keeper, 3, 12), (Role::Follower, 2, 6)];
        let mut lines = Vec::new();
        for (role, most, said) in roles {
            let fates: Vec<_> = (0..self.rng.usize(1..=most)).map(|_| self.fate(said)).collect();
            lines.push((role, fates));
        }
        let this = &*self;
        let run = |(role, fates): &(Role, Vec<Fate>)| -> Result<Vec<Seen>> {
            let extra = if *role == Role::Keeper { &copied[..] } else { &[] };
            let watched =
                |fate: &Fate| Ok(watch(start(this.command(*role, extra))?, fate.clone(), &|| false)?);
            fates.iter().map(watched).collect()
        };
        let seen: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = lines.iter().map(|line| scope.spawn(|| run(line))).collect();
            running.into_iter().map(|line| line.join().expect("it does not panic")).collect()
        });
        for ((role, _), seen) in lines.iter().zip(seen) {
            for seen in seen? {
                self.account(*role, &seen)?;
            }
        }
        if self.rng.bool() {
            let fate = self.fate(6);
            self.process(Role::Judge, &[], fate)?;
        }
        self.judge(&[])?;
        add(self.counts, "rounds", 1);
        Ok(())
    }

    fn judge(&mut self, extra: &[String]) -> Result<()> {
        let seen = self.process(Role::Judge, extra, Fate::default())?;
        if seen.end != End::Exit {
            bail!("the judge ended by {:?} without a verdict", seen.end);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let changes = ["--changes".to_owned(), self.scale.changes.to_string()];
        let (this, copies) = (&*self, [&changes[..], &["--end".to_owned()]].concat());
        let run = |role, extra| -> Result<Seen> {
            Ok(watch(start(this.command(role, extra))?, Fate::default(), &|| false)?)
        };
        let (written, kept) = thread::scope(|scope| {
            let writer = scope.spawn(|| run(Role::Writer, &changes));
            (run(Role::Keeper, &copies), writer.join().expect("it does not panic"))
        });
        self.account(Role::Keeper, &written?)?;
        self.account(Role::Writer, &kept?)?;
        self.judge(&[])?;
        self.judge(&["--end".to_owned()])
    }

    fn beside_a_writer<T>(&mut self, work: impl FnOnce(&mut Self, &Pool) -> Result<T>) -> Result<T> {
        let pool = PoolOptions::new().medium(self.medium).open(self.pool())?;
        let child = start(self.command(Role::Writer, &["--pace".into(), "0".into()]))?;
        let over = AtomicBool::new(false);
        let (done, seen) = thread::scope(|scope| {
            let writer = scope.spawn(|| watch(child, Fate::default(), &|| over.load(Ordering::Relaxed)));
            let begun = pool.stat(OBJECT).map(|stat| stat.psyncs);
            let begins =
                || Ok::<_, anyhow::Error>(pool.stat(OBJECT)?.psyncs > begun.as_ref().copied().unwrap_or(0));
            let done = until(begins).and_then(|()| work(self, &pool));
            over.store(true, Ordering::Relaxed);
            (done, writer.join().expect("it does not panic"))
        });
        self.account(Role::Writer, &seen?)?;
        let done = done?;
        let trouble = |trouble| anyhow!("after the times: {trouble:?}");
        let object = patient(|| pool.attach(OBJECT)).map_err(trouble)?;
        let found = changes::count(object.as_slice());
        Pages::new(self.scale.pages)
            .compare(object.as_slice(), found, (0, 1))
            .map_err(|why| anyhow!("after the times: {why}"))?;
        object.detach()?;
        Acknowledged::open(self.folder.path(), OBJECT).and_then(|is| is.set(found.0)).map_err(trouble)?;
        Ok(done)
    }

    fn times(&mut self) -> Result<()> {
        let (word, count) = (self.word(), self.scale.snapshots);
        let pool = PoolOptions::new().medium(self.medium).open(self.pool())?;
        snapshots(&pool, count, &mut self.rng)?
            .count(self.counts, &format!("{word}: snapshot without a writer"));
        drop(pool);
        let times = self.beside_a_writer(|this, pool| snapshots(pool, count, &mut this.rng))?;
        times.count(
            self.counts,
            &format!("{word}: snapshot beside the writer at full speed, with the replay of its log"),
        );
        Ok(())
    }

    fn following(&mut self, bar: &ProgressBar) -> Result<()> {
        let (window, windows) = (self.scale.window, self.scale.windows);
        let (mut with, mut without, mut kept) = (Times::default(), Times::default(), Times::default());
        let (mut between, mut looks) = (Times::default(), 0);
        self.beside_a_writer(|this, pool| {
            for _ in 0..windows {
                let alone = rate(pool, window)?;
                let mut reader = this.command(Role::Follower, &[]);
                reader.args(["--pace", &((EVERY * 1e9 / alone) as u64).to_string()]);
                reader.args(["--time", &(window.as_millis() + 1000).to_string()]);
                let child = start(reader)?;
                let (beside, seen) = thread::scope(|scope| {
                    let watched = scope.spawn(|| watch(child, Fate::default(), &|| false));
                    thread::sleep(Duration::from_millis(500));
                    (rate(pool, window), watched.join().expect("it does not panic"))
                });
                let (beside, seen) = (beside?, seen?);
                for said in &seen.said {
                    if let Said::Settled { workload: 1, step, ring } = said {
                        looks += step;
                        between.push(*ring as f64);
                    }
                }
                this.account(Role::Follower, &seen)?;
                with.push(beside);
                without.push(alone);
                kept.push(beside / alone * 1000.0);
                bar.inc(1);
            }
            Ok(())
        })?;
        let word = self.word();
        let mut count =
            |what: &str, value: f64| add(self.counts, &format!("{word}: {what}"), value.round() as u64);
        count("psyncs a second without a reader, median", without.quantile(0.5));
        count("psyncs a second beside a reader, median", with.quantile(0.5));
        for (figure, share) in [("least", 0.0), ("median", 0.5), ("most", 1.0)] {
            count(&format!("psyncs beside a reader, of 1,000 without one, {figure}"), kept.quantile(share));
        }
        count("psyncs between two looks of the reader, median", between.quantile(0.5));
        count("looks of the reader", looks as f64);
        count("seconds that the reader followed", (window * windows as u32).as_secs_f64());
        Ok(())
    }

    fn account(&mut self, role: Role, seen: &Seen) -> Result<()> {
        let who = match role {
            Role::Writer => "the writer",
            Role::Keeper => "the process that makes snapshots and copies",
            Role::Follower => "a reader that follows",
            Role::Judge => "a process that recovers and compares",
        };
        for said in &seen.said {
            match said {
                Said::Wrong { why } | Said::Failed { why, .. } => bail!("{who}: {why}"),
                Said::Count { what, count } => add(self.counts, what, *count),
                Said::Settled { .. } | Said::Begun { .. } | Said::Done { .. } => {}
            }
        }
        match seen.end {
            End::Exit => add(self.counts, "processes that ended by themselves", 1),
            End::Killed => add(self.counts, &format!("SIGKILL of {who}"), 1),
            end => bail!("{who} ended by {end:?}: {}", seen.stderr),
        }
        Ok(())
    }
}

fn snapshots(pool: &Pool, count: u64, rng: &mut fastrand::Rng) -> Result<Times> {
    let mut times = Times::default();
    for _ in 0..count {
        let ((), took) = timed(|| Ok(pool.snapshot(OBJECT, "timed", b"")?))?;
        times.push(took);
        pool.destroy("timed")?;
        thread::sleep(Duration::from_micros(rng.u64(0..10_000)));
    }
    Ok(times)
}

fn rate(pool: &Pool, time: Duration) -> Result<f64> {
    let (begin, before) = (Instant::now(), pool.stat(OBJECT)?.psyncs);
    thread::sleep(time);
    let psyncs = pool.stat(OBJECT)?.psyncs - before;
    Ok(psyncs as f64 / begin.elapsed().as_secs_f64())
}

fn until(happened: impl Fn() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !happened()? {
        if begin.elapsed() > Duration::from_secs(60) {
            bail!("nothing happened within a minute");
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
