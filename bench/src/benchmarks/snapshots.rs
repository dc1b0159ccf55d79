//! Snapshots beside a writer, first changes of shared pages, following readers.

mod changes;

use crate::Result;
use crate::child::{Followed, OBJECT};
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::store;
use crate::stats::Samples;
use indelible::{CreateOptions, Object, Pool, Tracking};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SNAPSHOT: &str = "snapshot";
const OTHER: &str = "other";
const SIZES: [u64; 3] = [64 << 20, 1 << 30, 64 << 30];
#[derive(Clone, Copy, PartialEq)]
enum Pause {
    Psyncs(u32),
    Milliseconds(u64),
}

impl Pause {
    const ALL: [Pause; 4] =
        [Pause::Psyncs(10), Pause::Milliseconds(1), Pause::Milliseconds(10), Pause::Milliseconds(100)];

    fn nanoseconds(self, rate: f64) -> u64 {
        match self {
            Pause::Psyncs(count) => (f64::from(count) * 1e9 / rate) as u64,
            Pause::Milliseconds(pause) => pause * 1_000_000,
        }
    }

    fn words(self) -> String {
        match self {
            Pause::Psyncs(count) => format!("{count} psyncs"),
            Pause::Milliseconds(pause) => format!("{pause} ms"),
        }
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (mut slowest, mut dearest, mut coming, mut kept) = (0.0_f64, 0.0_f64, 0.0_f64, f64::INFINITY);
    for medium in Medium::ALL {
        slowest = slowest.max(making(environment, medium, section)?);
        coming = coming.max(changes::since_attach(environment, medium, section)?);
        dearest = dearest.max(changes::while_attached(environment, medium, section)?);
        kept = kept.min(following(environment, medium, section)?);
    }
    section.goals.push(Goal::at_most("slowest snapshot with an empty lane", Unit::Nanoseconds, 1e6, slowest));
    for (what, ratio) in [
        ("first change of a shared page to that of an own one, since the attach", coming),
        ("first change of a shared page to a later one, of pages in use", dearest),
    ] {
        section.goals.push(Goal::at_most(what, Unit::Ratio, 2.0, ratio));
    }
    let what = "psyncs beside a reader that follows every tenth one to those without";
    section.goals.push(Goal::at_least(what, Unit::Ratio, 0.95, kept));
    section.notes.push(
        "Objects are sparse, tracking is explicit. The writer changes one line, always the same, and psyncs it, as fast as it \
         can, in a thread; readers that follow are processes, which take the psyncs from the writer's log, or, where a \
         checkpoint has hidden some, make a snapshot. The cost of any process as busy is measured beside one that follows an object that no process \
         writes. A snapshot beside a writer redoes what the writer's lane \
         holds first. The first change of a page that a snapshot shares copies the page. Of pages in use the psync alone is measured; in memory, \
         beside the floor, which copies a page of the program's own memory, and writes its lines back. Since the attach, the store is measured, too, which brings the \
         page into the process."
            .into(),
    );
    Ok(())
}

fn pool(environment: &Environment, medium: Medium, size: u64, pages: u64) -> Result<(Pool, Object)> {
    let pool = environment.pool_tracking(medium, Tracking::Explicit, "snapshots", 8 * size + (512 << 20))?;
    pool.create_with(OBJECT, &CreateOptions::new(size).sparse(true))?;
    let mut object = pool.attach(OBJECT)?;
    change(&mut object, &(0..pages).collect::<Vec<_>>(), 0, 1)?;
    object.checkpoint()?;
    Ok((pool, object))
}

fn change(object: &mut Object, pages: &[u64], line: usize, value: u64) -> Result<()> {
    store(object, pages, line, value);
    Ok(object.psync()?)
}

fn psyncs(object: &mut Object, stop: &AtomicBool) -> Result<u64> {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        done += 1;
        change(object, &[0], 0, done)?;
    }
    Ok(done)
}

fn making(environment: &Environment, medium: Medium, section: &mut Section) -> Result<f64> {
    const COLUMNS: [(&str, Unit); 5] = [
        ("object", Unit::Bytes),
        ("writer", Unit::Text),
        ("snapshot", Unit::Nanoseconds),
        ("psyncs", Unit::PerSecond),
        ("snapshots", Unit::Count),
    ];
    let sizes = environment.some(&SIZES, 1);
    let mut table = Table::new(format!("A snapshot beside its writer on {}", medium.word()), &COLUMNS);
    let bar = progress(2 * sizes.len(), &format!("snapshots, {}", medium.word()));
    let mut slowest = 0.0_f64;
    for size in sizes {
        let (pool, mut object) = pool(environment, medium, *size, 16)?;
        let idle = snapshots(environment, &pool, || Ok(object.checkpoint()?))?;
        slowest = slowest.max(idle.median());
        table.row(row(*size, "waits, its lane is empty", &idle, Cell::Empty));
        bar.inc(1);
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        let (busy, done) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| psyncs(&mut object, &stop).map_err(|error| error.to_string()));
            let busy = snapshots(environment, &pool, || Ok(()));
            stop.store(true, Ordering::Relaxed);
            (busy, writer.join())
        });
        let done = done.map_err(|_| "the writer panicked")??;
        let rate = done as f64 / start.elapsed().as_secs_f64();
        table.row(row(*size, "psyncs", &busy?, rate.into()));
        bar.inc(1);
        object.detach()?;
        discard(pool);
    }
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(slowest)
}

fn row(size: u64, writer: &str, samples: &Samples, rate: Cell) -> Vec<Cell> {
    let spread = samples.spread().map_or(Cell::Empty, Cell::from);
    vec![size.into(), Cell::Text(writer.into()), spread, rate, (samples.len() as u64).into()]
}

fn snapshots(
    environment: &Environment,
    pool: &Pool,
    mut before: impl FnMut() -> Result<()>,
) -> Result<Samples> {
    let budget = environment.budget(Duration::from_secs(4), Duration::from_millis(500));
    let mut samples = Samples::default();
    while budget.allows(samples.len(), 3) {
        before()?;
        let (took, made) = environment.clock.time(|| pool.snapshot(OBJECT, SNAPSHOT, b""));
        made?;
        samples.push(took);
        pool.destroy(SNAPSHOT)?;
    }
    Ok(samples)
}

fn following(environment: &Environment, medium: Medium, section: &mut Section) -> Result<f64> {
    const COLUMNS: [(&str, Unit); 8] = [
        ("a look every", Unit::Text),
        ("psyncs", Unit::PerSecond),
        ("without", Unit::PerSecond),
        ("with/without", Unit::Ratio),
        ("beside another object's reader", Unit::PerSecond),
        ("with/beside another's", Unit::Ratio),
        ("one look", Unit::Nanoseconds),
        ("looks", Unit::Count),
    ];
    let time = Duration::from_millis(if environment.smoke { 50 } else { 1000 });
    let rounds = if environment.quick { 1 } else { 8 };
    let mut table = Table::new(format!("A reader that follows on {}", medium.word()), &COLUMNS);
    let bar = progress(Pause::ALL.len() * rounds, &format!("readers, {}", medium.word()));
    let mut kept = f64::NAN;
    for pause in Pause::ALL {
        let (pool, mut object) = pool(environment, medium, SIZES[0], 16)?;
        pool.create(OTHER, 4096)?;
        let (mut with, mut without, mut floor) = (Samples::default(), Samples::default(), Samples::default());
        let (mut look, mut looks) = (Samples::default(), 0);
        for _ in 0..rounds {
            let alone = rate(&mut object, time)?;
            without.push(alone);
            let mut beside =
                |name| beside_reader(&pool, medium, name, (pause.nanoseconds(alone), time), &mut object);
            floor.push(beside(OTHER)?.0);
            let (rate, followed) = beside(OBJECT)?;
            with.push(rate);
            look.push(followed.look);
            looks += followed.looks;
            bar.inc(1);
        }
        let ratio = with.median() / without.median();
        if pause == Pause::Psyncs(10) {
            kept = ratio;
        }
        let spread = |samples: &Samples| samples.spread().map_or(Cell::Empty, Cell::from);
        table.row(vec![
            Cell::Text(pause.words()),
            spread(&with),
            spread(&without),
            ratio.into(),
            spread(&floor),
            (with.median() / floor.median()).into(),
            spread(&look),
            looks.into(),
        ]);
        object.detach()?;
        discard(pool);
    }
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(kept)
}

fn beside_reader(
    pool: &Pool,
    medium: Medium,
    name: &str,
    (pause, time): (u64, Duration),
    object: &mut Object,
) -> Result<(f64, Followed)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("child")
        .arg("follow")
        .arg(pool.path())
        .args([medium.kind().word(), name, &pause.to_string(), &time.as_millis().to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("a pipe")?);
    let mut line = String::new();
    said.read_line(&mut line)?;
    let rate = rate(object, time)?;
    line.clear();
    said.read_line(&mut line)?;
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("the reader failed: {status}").into());
    }
    Ok((rate, serde_json::from_str(&line)?))
}

fn rate(object: &mut Object, time: Duration) -> Result<f64> {
    let (start, mut done) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        done += 1;
        change(object, &[0], 0, done)?;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
