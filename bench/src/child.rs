use crate::Result;
use crate::clock::Clock;
use crate::environment::{Medium, discard};
use crate::file_backends::{self, Place};
use crate::pattern::{Chooser, PAGE, Pattern, store};
use crate::personalities::{self, Actor, Journal, KINDS, Meter};
use crate::sqlite;
use crate::stats::Samples;
use crate::talk::{self, Talk};
use clap::Subcommand;
use indelible::{CreateOptions, MediumKind, Object, PoolOptions};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const OBJECT: &str = "object";

#[derive(Subcommand)]
pub enum Job {
    /// Fills a lane and dies of SIGKILL.
    Fill {
        path: PathBuf,
        lane: u64,
        /// Pages of a batch; 0: one line. As many as fit the lane: one batch.
        pages: u64,
    },
    /// Stores and psyncs for some seconds, for a profiler to look at.
    Spin {
        path: PathBuf,
        size: u64,
        pages: usize,
        /// Other pages every time.
        #[arg(long)]
        scattered: bool,
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        #[arg(long)]
        attach: bool,
    },
    /// Goes through a Filebench personality for some seconds, for a profiler to look at.
    Perform {
        dir: PathBuf,
        personality: String,
        contestant: String,
        medium: String,
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
    /// Attaches and says how long that took.
    Recover { path: PathBuf, medium: String },
    /// Takes part in another process's measurement: plays with words, or sends messages. Prints a
    /// line when ready, and one at its end.
    Talk { path: PathBuf, role: Talk, count: usize },
    /// Commits an update of a SQLite database for each line.
    Update { folder: PathBuf, mode: String },
    /// Follows a writer as a reader, and says what that cost.
    Follow {
        path: PathBuf,
        medium: String,
        name: String,
        /// Nanoseconds between two looks.
        pause: u64,
        time: u64,
    },
}

/// Output of `follow`, after an empty line once attached.
#[derive(Debug, Serialize, Deserialize)]
pub struct Followed {
    pub look: f64,
    pub looks: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Recovered {
    pub attach: f64,
    pub lane_bytes: u64,
    /// Reading as many bytes from the page cache.
    pub read: f64,
}

pub fn work(job: Job) -> Result<()> {
    match job {
        Job::Fill { path, lane, pages } => fill(&path, lane, pages),
        Job::Spin { path, size, seconds, attach: true, .. } => spin_attach(&path, size, seconds),
        Job::Spin { path, size, pages, scattered, seconds, .. } => {
            spin(&path, size, pages, scattered, seconds)
        }
        Job::Perform { dir, personality, contestant, medium, seconds } => {
            perform(&dir, &personality, &contestant, &medium, seconds)
        }
        Job::Talk { path, role, count } => talk::take_part(&path, role, count),
        Job::Update { folder, mode } => sqlite::beside::work(&folder, &mode),
        Job::Recover { path, medium } => recover(&path, &medium),
        Job::Follow { path, medium, name, pause, time } => {
            follow(&path, &medium, &name, Duration::from_nanos(pause), Duration::from_millis(time))
        }
    }
}

pub fn pages_for(lane: u64) -> u64 {
    lane.saturating_sub(PAGE as u64) / (PAGE as u64 + 16)
}

fn fill(path: &Path, lane: u64, pages: u64) -> Result<()> {
    // As memory on every medium: equal batches, and a fast fill.
    let pool = PoolOptions::new().medium(Medium::Memory.kind()).open(path)?;
    let mut object = pool.attach(OBJECT)?;
    let all = pages_for(lane);
    whole(&mut object, all, 1)?;
    whole(&mut object, all, 2)?;
    if pages < all {
        object.checkpoint()?;
        let start = object.lane_use().bytes;
        let (mut at, mut last) = (0, 0);
        let mut value = 3;
        while object.lane_use().bytes - start + last <= lane - 4 * PAGE as u64 {
            let before = object.lane_use().bytes;
            if pages == 0 {
                store(&mut object, &[at], 0, value);
            } else {
                change(&mut object, at, pages.min(all - at), value as u8);
            }
            object.psync()?;
            last = object.lane_use().bytes - before;
            at = (at + pages.max(1)) % all;
            value += 1;
        }
    }
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    Err("survived SIGKILL".into())
}

fn change(object: &mut Object, first: u64, pages: u64, value: u8) {
    let from = first as usize * PAGE;
    object.range_mut(from..from + pages as usize * PAGE).fill(value);
}

fn whole(object: &mut Object, pages: u64, value: u8) -> Result<()> {
    change(object, 0, pages, value);
    Ok(object.psync()?)
}

fn spin(path: &Path, size: u64, count: usize, scattered: bool, seconds: f64) -> Result<()> {
    let pool = PoolOptions::new().force(true).format(path, size + (64 << 20))?;
    pool.create(OBJECT, size)?;
    let mut object = pool.attach(OBJECT)?;
    object.as_mut_slice().fill(1);
    object.psync()?;
    object.detach()?;
    let mut object = pool.attach(OBJECT)?;
    let pattern = if scattered { Pattern::Scattered } else { Pattern::Hot };
    let mut chooser =
        Chooser::new(pattern, count, size / PAGE as u64).ok_or("more pages than the object has")?;
    let (start, mut rounds) = (Instant::now(), 0_u64);
    while start.elapsed().as_secs_f64() < seconds {
        let (pages, line) = chooser.round();
        store(&mut object, pages, line, rounds + 2);
        object.psync()?;
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {:.0} ns each", start.elapsed().as_nanos() as f64 / rounds as f64);
    discard(pool);
    Ok(())
}

fn spin_attach(path: &Path, size: u64, seconds: f64) -> Result<()> {
    let pool = PoolOptions::new().force(true).format(path, size + (64 << 20))?;
    pool.create_with(OBJECT, &CreateOptions::new(size).sparse(true).reach(size))?;
    let (start, mut rounds) = (Instant::now(), 0_u64);
    while start.elapsed().as_secs_f64() < seconds {
        pool.attach(OBJECT)?.detach()?;
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {:.0} ns each", start.elapsed().as_nanos() as f64 / rounds as f64);
    discard(pool);
    Ok(())
}

fn perform(dir: &Path, personality: &str, contestant: &str, medium: &str, seconds: f64) -> Result<()> {
    let personality =
        personalities::ALL.iter().find(|known| known.name == personality).ok_or("an unknown personality")?;
    let contestant = file_backends::all()
        .into_iter()
        .find(|known| known.name == contestant)
        .ok_or("an unknown contestant")?;
    let medium = Medium::ALL.into_iter().find(|known| known.kind().word() == medium);
    let place = Place { medium: medium.ok_or("an unknown medium")?, dir, len: 2 << 30 };
    let backend = (contestant.open)(&place)?;
    let log = personality.log.then(|| Journal::create(&*backend, 1)).transpose()?;
    let mut actor = Actor::new(personality, 0, 1);
    actor.populate(&*backend)?;
    actor.meter = Meter::default();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        actor.round(&*backend, log.as_ref())?;
    }
    for (kind, word) in KINDS.iter().enumerate() {
        if let Some(mean) = actor.meter.mean(kind) {
            eprintln!("{word:<16} {mean:>10.0} ns");
        }
    }
    eprintln!("{:.0} operations a second", actor.meter.operations() as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn recover(path: &Path, medium: &str) -> Result<()> {
    let clock = Clock::calibrate();
    let pool = PoolOptions::new().medium(kind(medium)?).open(path)?;
    let (attach, object) = clock.time(|| pool.attach(OBJECT));
    let object = object?;
    let lane_bytes = object.recovered_bytes();
    let read = clock.time(|| read(path, object.stat()?.offset, lane_bytes));
    read.1?;
    let answer = Recovered { attach, lane_bytes, read: read.0 };
    println!("{}", serde_json::to_string(&answer)?);
    Ok(object.detach()?)
}

fn kind(medium: &str) -> Result<MediumKind> {
    let known = MediumKind::WORDS.iter().find(|(word, _)| *word == medium);
    Ok(known.ok_or("an unknown medium")?.1)
}

fn follow(path: &Path, medium: &str, name: &str, pause: Duration, time: Duration) -> Result<()> {
    let clock = Clock::calibrate();
    let pool = PoolOptions::new().medium(kind(medium)?).open(path)?;
    let mut reader = pool.attach_snapshot(name)?;
    println!();
    let (start, mut looks) = (Instant::now(), Samples::default());
    let mut next = start;
    while start.elapsed() < time {
        let (took, newer) = clock.time(|| reader.refresh());
        newer?;
        looks.push(took);
        next = (next + pause).max(Instant::now());
        wait_until(next);
    }
    let answer = Followed { look: looks.median(), looks: looks.len() as u64 };
    println!("{}", serde_json::to_string(&answer)?);
    Ok(())
}

/// Sleeps, then spins: the kernel wakes sleepers late.
fn wait_until(next: Instant) {
    const LATE: Duration = Duration::from_micros(200);
    std::thread::sleep(next.saturating_duration_since(Instant::now()).saturating_sub(LATE));
    while Instant::now() < next {
        std::hint::spin_loop();
    }
}

fn read(path: &Path, offset: u64, len: u64) -> Result<()> {
    let file = std::fs::File::open(path)?;
    let mut buffer = vec![1; 1 << 20];
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..piece], offset + done)?;
        done += piece as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_all_pages_fits_its_lane() {
        for lane in [1 << 20, 256 << 20] {
            let bytes = pages_for(lane) * (PAGE as u64 + 16) + 256;
            assert!(bytes <= lane && bytes > lane - 3 * PAGE as u64);
        }
    }
}
