//! Random changes of 8 bytes, then a durable commit: Indelible, peers, and a floor.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::floor::WriteFloor;
use crate::mapped::{LINE, Mapped};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::peers::{ALL, Change, Contestant, Opened, Peer, Place, RECORD};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use crate::traffic::Traffic;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::time::Duration;

const COUNTS: [usize; 4] = [1, 10, 100, 1_000];
const SIZES: [u64; 3] = [1 << 20, 64 << 20, 1 << 30];
const QUICK_SIZES: [u64; 2] = [1 << 20, 8 << 20];
const LEAST: usize = 5;
const FLOOR: u64 = 16 << 20;

const COLUMNS: [(&str, Unit); 8] = [
    ("changes", Unit::Count),
    ("", Unit::Text),
    ("atomic", Unit::Text),
    ("commit", Unit::Nanoseconds),
    ("to indelible", Unit::Ratio),
    ("to floor", Unit::Ratio),
    ("to the disk a changed byte", Unit::Ratio),
    ("rounds", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let sizes: &[u64] = if environment.quick { &QUICK_SIZES } else { &SIZES };
    let mut missing = BTreeMap::new();
    for medium in Medium::ALL {
        for size in sizes {
            of_size(environment, medium, *size, section, &mut missing)?;
        }
    }
    for (name, why) in missing {
        section.notes.push(format!("{name}: not measured. {why}"));
    }
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 7] = [
    "Records of 64 bytes; each change sets 8 bytes of a record chosen at random. A commit begins with the first \
     store and ends when all of it is durable, faults and lookups included. The records of each were compared with \
     what was committed.",
    "atomic: a crash leaves all changes of a commit or none. in place: a mapped file; lines written back and fenced, \
     on the disk msync.",
    "indelible finds out by itself what was stored to, with the kernel's help. indelible, explicit: the program says so \
     (Object::mark_dirty), as programs that use libpmemobj have to; no page fault and no scan.",
    "floor: as many bytes as change, written in one piece and made durable: lines written back and fenced; on the \
     disk one pwrite with RWF_DSYNC.",
    "To the disk: sectors that the kernel counts as written to the whole device, until nothing waits, for each \
     byte that changed; journals and page sizes of file systems are in it. Memory has no such count.",
    "tmfalloc: not measured. Its newest version, 1.0.1, wants unstable features of Rust that have changed since: it builds \
     neither with the stable compiler (1.95) nor with a nightly of this year.",
    "All as they are by default, with durability at each commit: SQLite with WAL and synchronous=FULL, RocksDB \
     with sync.",
];

struct Runner {
    contestant: &'static Contestant,
    peer: Box<dyn Peer>,
    samples: Vec<Samples>,
    spent: Vec<f64>,
    traffic: Vec<Option<f64>>,
    expected: BTreeMap<u64, u64>,
}

impl Runner {
    fn keep(&mut self, batch: &[Change]) {
        self.expected.extend(batch.iter().map(|change| (change.record, change.value)));
    }

    fn compare(&mut self) -> Result<()> {
        for (record, value) in &self.expected {
            if self.peer.word(*record)? != *value {
                return Err(format!("{}: record {record} is wrong", self.contestant.name).into());
            }
        }
        Ok(())
    }

    fn is_ready(&self, at: usize, share: Duration) -> bool {
        self.samples[at].len() < LEAST || self.spent[at] < share.as_nanos() as f64
    }
}

fn of_size(
    environment: &Environment,
    medium: Medium,
    size: u64,
    section: &mut Section,
    missing: &mut BTreeMap<&'static str, String>,
) -> Result<()> {
    let records = size / RECORD as u64;
    let title = format!("{} of records, {}", crate::render::value(Unit::Bytes, size as f64), medium.word());
    let bar = progress(ALL.len() + COUNTS.len(), &format!("commit, {title}"));
    let mut runners = Vec::new();
    for contestant in ALL {
        let dir = environment.path(medium, &format!("commit-{}", contestant.name));
        std::fs::create_dir(&dir)?;
        let place = Place { dir: &dir, medium, records };
        match (contestant.open)(&place).map_err(|error| format!("{}: {error}", contestant.name))? {
            Opened::Ready(peer) => {
                let samples = COUNTS.iter().map(|_| Samples::default()).collect();
                let (spent, traffic) = (vec![0.0; COUNTS.len()], vec![None; COUNTS.len()]);
                runners.push(Runner { contestant, peer, samples, spent, traffic, expected: BTreeMap::new() });
            }
            Opened::Missing(why) => {
                missing.insert(contestant.name, why);
            }
        }
        bar.inc(1);
    }
    let mut changes = Changes { random: Random::new(size), records };
    let mut floors = Vec::new();
    for at in 0..COUNTS.len() {
        floors.push(rounds(environment, medium, at, &mut runners, &mut changes, &bar)?);
        bar.inc(1);
    }
    for runner in &mut runners {
        runner.compare()?;
    }
    if medium == Medium::File {
        for at in 0..COUNTS.len() {
            for runner in &mut runners {
                runner.traffic[at] = traffic(environment, runner, at, &mut changes)?;
            }
        }
    }
    bar.finish_and_clear();
    report(medium, title, &runners, &floors, section);
    drop(runners);
    for contestant in ALL {
        std::fs::remove_dir_all(environment.path(medium, &format!("commit-{}", contestant.name)))?;
    }
    Ok(())
}

struct Changes {
    random: Random,
    records: u64,
}

impl Changes {
    fn next(&mut self, count: usize) -> Vec<Change> {
        let change = |_| Change { record: self.random.below(self.records), value: self.random.next() };
        (0..count).map(change).collect()
    }
}

fn rounds(
    environment: &Environment,
    medium: Medium,
    at: usize,
    runners: &mut [Runner],
    changes: &mut Changes,
    bar: &ProgressBar,
) -> Result<Samples> {
    let count = COUNTS[at];
    let mut floor = Floor::new(environment, medium)?;
    let mut samples = Samples::default();
    let (share, most) = match (environment.smoke, environment.quick) {
        (true, _) => (2, 4),
        (_, true) => (100, 200),
        _ => (1_500, 4_000),
    };
    let share = Duration::from_millis(share);
    for done in 0..most + 2 {
        let batch = changes.next(count);
        let mut anybody = false;
        for runner in runners.iter_mut().filter(|runner| runner.is_ready(at, share)) {
            anybody = true;
            let (took, result) = environment.clock.time(|| runner.peer.commit(&batch));
            result.map_err(|error| format!("{}: {error}", runner.contestant.name))?;
            runner.keep(&batch);
            if done >= 2 {
                runner.samples[at].push(took);
                runner.spent[at] += took;
            }
        }
        if !anybody {
            break;
        }
        let (took, result) = environment.clock.time(|| floor.write(count * 8));
        result?;
        if done >= 2 {
            samples.push(took);
        }
        bar.tick();
    }
    Ok(samples)
}

enum Floor {
    Memory { mapped: Box<Mapped>, at: usize },
    File(WriteFloor),
}

impl Floor {
    fn new(environment: &Environment, medium: Medium) -> Result<Floor> {
        let path = environment.path(medium, "commit-floor");
        Ok(match medium {
            Medium::Memory => {
                let mut mapped = Mapped::create(&path, FLOOR as usize, true)?;
                mapped.bytes().fill(1);
                Floor::Memory { mapped: Box::new(mapped), at: 0 }
            }
            Medium::File => Floor::File(WriteFloor::new(&path, FLOOR)?),
        })
    }

    fn write(&mut self, len: usize) -> Result<()> {
        match self {
            Floor::Memory { mapped, at } => {
                if *at + len > FLOOR as usize {
                    *at = 0;
                }
                mapped.bytes()[*at..*at + len].fill(*at as u8);
                mapped.flush(*at, len);
                *at += len.next_multiple_of(LINE);
                mapped.finish()
            }
            Floor::File(floor) => floor.write(len),
        }
    }
}

fn traffic(
    environment: &Environment,
    runner: &mut Runner,
    at: usize,
    changes: &mut Changes,
) -> Result<Option<f64>> {
    let Some(traffic) = Traffic::of(environment.dir(Medium::File)) else { return Ok(None) };
    let count = COUNTS[at];
    let budget = environment.budget(Duration::from_secs(1), Duration::from_millis(50));
    let before = traffic.settled()?;
    let mut rounds = 0;
    while rounds < 100 && budget.allows(rounds, LEAST) {
        runner.peer.commit(&changes.next(count))?;
        rounds += 1;
    }
    let after = traffic.settled()?;
    Ok(Some((after - before) as f64 / (rounds * count * 8) as f64))
}

fn report(medium: Medium, title: String, runners: &[Runner], floors: &[Samples], section: &mut Section) {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let mut table = Table::new(title.clone(), &COLUMNS);
    for (at, count) in COUNTS.iter().enumerate() {
        let (own, floor) = (runners[0].samples[at].median(), floors[at].median());
        for runner in runners {
            let samples = &runner.samples[at];
            table.row(vec![
                (*count as u64).into(),
                runner.contestant.name.into(),
                if runner.contestant.atomic { "yes" } else { "no" }.into(),
                cell(samples),
                (samples.median() / own).into(),
                (samples.median() / floor).into(),
                runner.traffic[at].map_or(Cell::Empty, f64::into),
                (samples.len() as u64).into(),
            ]);
        }
        table.row(vec![
            (*count as u64).into(),
            "floor".into(),
            Cell::Empty,
            cell(&floors[at]),
            (floor / own).into(),
            1.0.into(),
            Cell::Empty,
            (floors[at].len() as u64).into(),
        ]);
        let best = runners
            .iter()
            .filter(|runner| runner.contestant.atomic && !runner.contestant.own)
            .min_by(|a, b| a.samples[at].median().total_cmp(&b.samples[at].median()));
        for runner in runners.iter().filter(|runner| runner.contestant.own) {
            let (own, name) = (runner.samples[at].median(), runner.contestant.name);
            let what = format!("commit, {title}, {count} changes: {name} to ");
            if let Some(best) = best {
                let ratio = own / best.samples[at].median();
                let what = format!("{what}{}", best.contestant.name);
                section.goals.push(Goal::at_most(what, Unit::Ratio, 1.0, ratio));
            }
            if medium == Medium::File {
                let what = format!("{what}one durable write of what changed");
                section.goals.push(Goal::at_most(what, Unit::Ratio, 1.2, own / floor));
            }
        }
    }
    let file =
        format!("commit-{}-{}", medium.short(), title.split(" of").next().unwrap_or("").replace(' ', ""));
    section
        .plots
        .push(Plot::of(&table, &file, "changes", "commit", &[""]).titled(format!("Commit: {title}")));
    section.tables.push(table);
}
