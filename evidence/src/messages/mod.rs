//! Messages under kills: producers send numbered messages through a queue, a collector logs and
//! acknowledges them. The log has every acknowledged message once, in its producer's order, without
//! a gap. Then [requests and completions](exchange).

mod child;
mod exchange;

pub(crate) use child::Child;

use anyhow::{Context, Result, bail};
use child::{ACKNOWLEDGED, LOG, QUEUE, how};
use clap::{Args, ValueEnum};
use exchange::Side;
use indelible::{Class, CreateOptions, Pool};
use indelible_record::{Mode, Record, add};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const PRODUCERS: usize = 3;
const KILLS: u64 = 100;

#[derive(Args)]
pub(crate) struct Messages {
    /// Kills
    #[arg(long, default_value_t = 60)]
    kills: u64,
    /// A campaign: 5,000 kills, more than 3,000 of them of producers
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Victims {
    Producers,
    Collectors,
    Both,
    /// Both sides of an exchange.
    Exchange,
}

const ROUNDS: [Victims; 5] =
    [Victims::Producers, Victims::Producers, Victims::Collectors, Victims::Exchange, Victims::Both];

impl Messages {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("messages: seed {seed}");
        let kills = if self.long { self.kills.max(5000) } else { self.kills };
        let (begin, mut rng) = (Instant::now(), fastrand::Rng::with_seed(seed));
        let mode = if self.long { Mode::Long } else { Mode::Short };
        let command = format!("pmo-evidence messages --kills {kills} --seed {seed}");
        let mut record = Record::new("messages", mode, command, seed);
        let each = KILLS.min(kills.div_ceil(ROUNDS.len() as u64));
        let mut left = kills;
        for victims in ROUNDS.into_iter().cycle() {
            let round = each.min(left);
            if round == 0 {
                break;
            }
            left -= round;
            let judged = kill_and_judge(victims, round, &mut rng, &mut record.counts);
            judged.with_context(|| format!("{victims:?} die (seed {seed})"))?;
        }
        record.seconds = begin.elapsed().as_secs_f64();
        record.print();
        record.save()
    }
}

struct Crew<'a> {
    path: &'a Path,
    producers: Vec<std::process::Child>,
    collector: std::process::Child,
    started: usize,
}

impl<'a> Crew<'a> {
    fn new(path: &'a Path) -> Result<Crew<'a>> {
        let collector = start(path, None)?;
        let mut crew = Crew { path, producers: Vec::new(), collector, started: 0 };
        for _ in 0..PRODUCERS {
            let producer = crew.producer()?;
            crew.producers.push(producer);
        }
        Ok(crew)
    }

    fn producer(&mut self) -> Result<std::process::Child> {
        let place = self.started;
        self.started += 1;
        start(self.path, Some(place))
    }

    fn expect_alive(&mut self) -> Result<()> {
        for child in self.producers.iter_mut().chain([&mut self.collector]) {
            if let Some(status) = child.try_wait()? {
                bail!("a process ended by itself: {status}");
            }
        }
        Ok(())
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for child in self.producers.iter_mut().chain([&mut self.collector]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(path: &Path, place: Option<usize>) -> Result<std::process::Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("messages-child").arg(path);
    if let Some(place) = place {
        command.arg("--place").arg(place.to_string());
    }
    Ok(command.spawn()?)
}

fn start_as(path: &Path, side: Side) -> Result<std::process::Child> {
    let side = side.to_possible_value().context("each side has a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("messages-child").arg(path).args(["--side", side.get_name()]);
    Ok(command.spawn()?)
}

fn kill_and_judge(
    victims: Victims,
    kills: u64,
    rng: &mut fastrand::Rng,
    counts: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("indelible-messages-").tempdir_in("/var/tmp")?;
    let path = folder.path().join("pool.pmo");
    let pool = Pool::format(&path, 4 << 30)?;
    if matches!(victims, Victims::Exchange) {
        return exchange::kill_and_judge(&path, kills, rng, counts);
    }
    let acknowledged = 8 * (PRODUCERS as u64 + kills);
    for (name, size) in [(QUEUE, how().bytes()? as u64), (ACKNOWLEDGED, acknowledged)] {
        pool.create_with(name, &CreateOptions::new(size).class(Class::Shared))?;
    }
    let queue = pool.attach_shared(QUEUE)?.queue(0, &how())?;
    let acknowledged = pool.attach_shared(ACKNOWLEDGED)?;
    let mut crew = Crew::new(&path)?;
    for _ in 0..kills {
        std::thread::sleep(Duration::from_micros(rng.u64(0..40_000)));
        crew.expect_alive()?;
        let collector = match victims {
            Victims::Producers => false,
            Victims::Collectors => true,
            Victims::Both | Victims::Exchange => rng.bool(),
        };
        if collector {
            crew.collector.kill()?;
            crew.collector.wait()?;
            crew.collector = start(&path, None)?;
            add(counts, "SIGKILL of a collector", 1);
        } else {
            let victim = rng.usize(..PRODUCERS);
            crew.producers[victim].kill()?;
            crew.producers[victim].wait()?;
            crew.producers[victim] = crew.producer()?;
            add(counts, "SIGKILL of a producer", 1);
        }
    }
    let producers = crew.started;
    drop(crew);
    let mut consumer = queue.consumer()?;
    let mut log = pool.open_log(LOG, b"")?;
    while log.collect(&mut consumer, 1000, Some(Duration::ZERO))? > 0 {}
    log.detach()?;
    let found = judge(&pool, producers)?;
    for (place, found) in found.iter().enumerate() {
        let said = acknowledged.words()[place].load(Ordering::Relaxed);
        if *found < said {
            bail!("producer {place} had {said} messages acknowledged, and the log has {found} of them");
        }
        add(counts, "messages acknowledged", said);
    }
    add(counts, "records compared", found.iter().sum());
    add(counts, "messages left out, their producers dead", queue.skipped());
    add(counts, "rounds", 1);
    drop((consumer, queue, acknowledged));
    [QUEUE, ACKNOWLEDGED].into_iter().try_for_each(|name| pool.destroy(name))?;
    Ok(())
}

fn judge(pool: &Pool, producers: usize) -> Result<Vec<u64>> {
    let mut next = vec![0_u64; producers];
    let mut log = pool.read_log(LOG, b"")?;
    while let Some(record) = log.read()? {
        let (place, number) = child::parse(&record.bytes)?;
        let expected = next.get_mut(place).with_context(|| format!("there was no producer {place}"))?;
        if number != *expected {
            bail!("record {}: message {number} of producer {place}, and not {expected}", record.number);
        }
        *expected += 1;
    }
    Ok(next)
}
