//! Threads that psync their own objects, one hot page each.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::{ScanFloor, WriteFloor};
use crate::model::{Section, Table, Unit};
use crate::pattern::{Chooser, PAGE, Pattern, store};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use indelible::Object;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: [usize; 4] = [1, 2, 4, 8];
const SIZE: u64 = 1 << 20;
const BATCH: usize = 256;

const COLUMNS: [(&str, Unit); 11] = [
    ("threads", Unit::Count),
    ("psyncs", Unit::PerSecond),
    ("to 1 thread", Unit::Ratio),
    ("batches a durable write", Unit::Ratio),
    ("floor", Unit::PerSecond),
    ("to 1 thread", Unit::Ratio),
    ("psyncs/floor", Unit::Ratio),
    ("one psync", Unit::Nanoseconds),
    ("99 of 100 within", Unit::Nanoseconds),
    ("one of the floor", Unit::Nanoseconds),
    ("rounds", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        on(environment, medium, section)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    section.notes.push(format!("This machine has {cores} cores; more threads than that share them."));
    section.notes.push(
        "floor: as many threads, each with PAGEMAP_SCANs of 1 MiB of its own; on the SSD each with durable writes \
         of 256 bytes to a file of its own."
            .into(),
    );
    Ok(())
}

#[derive(Default)]
struct Row {
    psyncs: Samples,
    shared: Samples,
    floor: Samples,
    latency: Samples,
    floor_latency: Samples,
}

enum Floor {
    Scan(Box<ScanFloor>),
    Write(WriteFloor),
}

impl Floor {
    fn once(&mut self) -> Result<()> {
        match self {
            Floor::Scan(floor) => {
                floor.scan();
                Ok(())
            }
            Floor::Write(floor) => floor.write(BATCH),
        }
    }
}

fn on(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let most = THREADS[THREADS.len() - 1];
    let pool = environment.pool(medium, "threads", 512 << 20)?;
    let (mut objects, mut floors) = (Vec::new(), Vec::new());
    for index in 0..most {
        let name = format!("object-{index}");
        pool.create(&name, SIZE)?;
        objects.push(pool.attach(&name)?);
        match medium {
            Medium::Memory => {
                floors.extend(ScanFloor::new(SIZE as usize).ok().map(|floor| Floor::Scan(Box::new(floor))))
            }
            Medium::File => floors.push(Floor::Write(WriteFloor::new(
                &environment.path(medium, &format!("floor-{index}")),
                1 << 20,
            )?)),
        }
    }
    let (slice, rounds) = if environment.quick { (60, 3) } else { (250, 12) };
    let slice = Duration::from_millis(slice);
    let bar = progress(rounds * THREADS.len(), &format!("threads, {}", medium.word()));
    let mut rows: Vec<Row> = THREADS.iter().map(|_| Row::default()).collect();
    for _ in 0..rounds {
        for (threads, row) in THREADS.iter().zip(&mut rows) {
            let before: Vec<_> = objects.iter().map(Object::lane_use).collect();
            let (rate, latency) = together(&mut objects[..*threads], slice, psyncs)?;
            row.psyncs.push(rate);
            row.latency.extend(latency);
            row.shared.push(shared(&before, &objects[..*threads]));
            if floors.len() >= *threads {
                let (rate, latency) =
                    together(&mut floors[..*threads], slice / 2, |floor, end| repeat(end, || floor.once()))?;
                row.floor.push(rate);
                row.floor_latency.extend(latency);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut table = Table::new(format!("Threads on {}", medium.word()), &COLUMNS);
    for (threads, row) in THREADS.iter().zip(&rows) {
        let cell = |samples: &Samples| samples.spread().map_or(crate::model::Cell::Empty, Spread::into);
        table.row(vec![
            (*threads as u64).into(),
            cell(&row.psyncs),
            (row.psyncs.median() / rows[0].psyncs.median()).into(),
            row.shared.median().into(),
            cell(&row.floor),
            (row.floor.median() / rows[0].floor.median()).into(),
            (row.psyncs.median() / row.floor.median()).into(),
            cell(&row.latency),
            row.latency.quantile(0.99).into(),
            cell(&row.floor_latency),
            (row.psyncs.len() as u64).into(),
        ]);
    }
    let file = format!("threads-{}", medium.short());
    section.plots.push(Plot::of_columns(&table, &file, "threads", "a second", &["psyncs", "floor"]));
    let file = format!("threads-latency-{}", medium.short());
    let columns = ["one psync", "99 of 100 within", "one of the floor"];
    let latency = Plot::of_columns(&table, &file, "threads", "latency", &columns);
    section.plots.push(latency.titled(format!("Threads on {}: latency of a psync", medium.word())));
    section.tables.push(table);
    drop(objects);
    discard(pool);
    Ok(())
}

fn shared(before: &[indelible::LaneUse], objects: &[Object]) -> f64 {
    let (mut batches, mut commits) = (0, 0);
    for (before, object) in before.iter().zip(objects) {
        let after = object.lane_use();
        batches += after.batches - before.batches;
        commits += after.commits - before.commits;
    }
    batches as f64 / commits as f64
}

fn repeat(end: Instant, mut once: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut samples = Samples::default();
    let mut last = Instant::now();
    while last < end {
        once()?;
        let now = Instant::now();
        samples.push((now - last).as_nanos() as f64);
        last = now;
    }
    Ok(samples)
}

fn psyncs(object: &mut Object, end: Instant) -> Result<Samples> {
    let mut chooser = Chooser::new(Pattern::Hot, 1, SIZE / PAGE as u64).ok_or("an object without pages")?;
    let first = object.psyncs();
    let mut value = first;
    repeat(end, || {
        let (pages, line) = chooser.round();
        value += 1;
        store(object, pages, line, value);
        Ok(object.psync()?)
    })
}

fn together<T: Send>(
    items: &mut [T],
    slice: Duration,
    work: impl Fn(&mut T, Instant) -> Result<Samples> + Sync,
) -> Result<(f64, Samples)> {
    let ready = Barrier::new(items.len());
    let (ready, work) = (&ready, &work);
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .iter_mut()
            .map(|item| {
                scope.spawn(move || {
                    ready.wait();
                    let start = Instant::now();
                    let done = work(item, start + slice)?;
                    Ok::<_, crate::Error>((done.len() as f64 / start.elapsed().as_secs_f64(), done))
                })
            })
            .collect();
        let (mut total, mut all) = (0.0, Samples::default());
        for thread in threads {
            let (rate, samples) = thread.join().map_err(|_| "a thread panicked")??;
            total += rate;
            all.extend(samples);
        }
        Ok((total, all))
    })
}
