//! psync latency by part.
//!
//! Every other round takes times inside psync; totals come from the others. The floor is measured
//! after each round.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::{ScanFloor, WriteFloor};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::{Chooser, PAGE, Pattern, store};
use crate::plot::Plot;
use crate::stats::Samples;
use indelible::{CreateOptions, Object, Pool, Tracking};
use std::time::Duration;

const SIZES: [u64; 4] = [1 << 20, 256 << 20, 4 << 30, 64 << 30];
const COUNTS: [usize; 5] = [1, 10, 100, 1000, 10_000];
const WHOLE: u64 = 256 << 20;
const POOL: u64 = 80 << 30;
const FLOOR_RANGE: usize = 1 << 20;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let all = [Tracking::Auto, Tracking::FaultLog, Tracking::Explicit];
    for tracking in all.into_iter().filter(|tracking| tracking.is_available()) {
        let memory = on(environment, Medium::Memory, tracking, section)?;
        let file = on(environment, Medium::File, tracking, section)?;
        section.goals.extend(goals(&memory, &file, tracking));
    }
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 4] = [
    "hot: the same neighbouring pages every time; scattered: other pages every time, anywhere in the object. \
     One line of each page is stored to.",
    "stores: the program's own time, page faults included; it is not part of psync. The parts of psync were \
     timed in rounds of their own; settle is protecting pages again.",
    "floor: one PAGEMAP_SCAN over 1 MiB with one written page; on the SSD one durable pwrite of the same \
     number of bytes as the batch.",
    "tracking by wp-async: the kernel is asked what was stored to. tracking by fault-log: its log of page faults names \
     the pages. tracking by explicit: the program says so (Object::mark_dirty), which counts as storing; there is no page fault and no scan.",
];

struct Row {
    size: u64,
    count: usize,
    pattern: Pattern,
    stores: f64,
    psync: f64,
    floor: f64,
}

enum Floor {
    Scan(Box<ScanFloor>),
    Write(WriteFloor),
    None,
}

fn on(
    environment: &Environment,
    medium: Medium,
    tracking: Tracking,
    section: &mut Section,
) -> Result<Vec<Row>> {
    let mut floor = match medium {
        Medium::Memory => {
            ScanFloor::new(FLOOR_RANGE).map_or(Floor::None, |floor| Floor::Scan(Box::new(floor)))
        }
        Medium::File => Floor::Write(WriteFloor::new(&environment.path(medium, "floor"), 16 << 20)?),
    };
    let pool = environment.pool_tracking(medium, tracking, "psync", POOL)?;
    lap(&pool)?;
    let of = of(tracking);
    let bar = progress(SIZES.len() * COUNTS.len() * 2, &format!("psync{of}, {}", medium.word()));
    let mut rows = Vec::new();
    let mut table = Table::new("", &COLUMNS);
    let mut rung = String::new();
    for &size in environment.some(&SIZES, 2) {
        let name = format!("object-{size}");
        pool.create_with(&name, &CreateOptions::new(size).sparse(size > WHOLE).reach(size))?;
        prime(&pool, &name, size)?;
        for pattern in Pattern::ALL {
            for &count in environment.some(&COUNTS, 3) {
                bar.inc(1);
                let Some(chooser) = Chooser::new(pattern, count, size / PAGE as u64) else { continue };
                let mut object = pool.attach(&name)?;
                rung = object.rung();
                let parts = measure(environment, medium, &mut object, chooser, &mut floor)?;
                object.detach()?;
                rows.push(parts.row(size, count, pattern));
                table.row(parts.cells(size, count, pattern));
            }
        }
    }
    bar.finish_and_clear();
    discard(pool);
    table.title = format!("psync on {}, tracking by {rung}", medium.word());
    for pattern in Pattern::ALL {
        let file = format!("psync{}-{}-{}", of.replace(", ", "-"), medium.short(), pattern.word());
        let plot = Plot::of(&table, &file, "pages", "psync", &["object", "stores"]);
        let title = format!("{}, {} pages", table.title, pattern.word());
        section.plots.push(plot.only(|name| name.ends_with(pattern.word())).titled(title));
    }
    section.tables.push(table);
    Ok(rows)
}

fn lap(pool: &Pool) -> Result<()> {
    pool.create("lap", 1 << 20)?;
    let mut object = pool.attach("lap")?;
    for value in 0..16 {
        object.as_mut_slice().fill(value);
        object.psync()?;
    }
    object.detach()?;
    Ok(pool.destroy("lap")?)
}

fn prime(pool: &Pool, name: &str, size: u64) -> Result<()> {
    let pages = size / PAGE as u64;
    let mut object = pool.attach(name)?;
    store(&mut object, &[pages - 1], 0, 1);
    object.psync()?;
    for pattern in Pattern::ALL {
        for count in COUNTS {
            if let Some(chooser) = Chooser::new(pattern, count, pages) {
                store(&mut object, &chooser.pieces(), 0, 2);
            }
        }
        object.psync()?;
    }
    Ok(object.detach()?)
}

const COLUMNS: [(&str, Unit); 15] = [
    ("object", Unit::Bytes),
    ("stores", Unit::Text),
    ("pages", Unit::Count),
    ("storing", Unit::Nanoseconds),
    ("psync", Unit::Nanoseconds),
    ("a page", Unit::Nanoseconds),
    ("collect", Unit::Nanoseconds),
    ("compare", Unit::Nanoseconds),
    ("log+barrier", Unit::Nanoseconds),
    ("apply", Unit::Nanoseconds),
    ("settle", Unit::Nanoseconds),
    ("rest", Unit::Nanoseconds),
    ("floor", Unit::Nanoseconds),
    ("psync/floor", Unit::Ratio),
    ("rounds", Unit::Count),
];

#[derive(Default)]
struct Parts {
    stores: Samples,
    psync: Samples,
    collect: Samples,
    compare: Samples,
    publish: Samples,
    apply: Samples,
    settle: Samples,
    rest: Samples,
    floor: Samples,
}

impl Parts {
    fn row(&self, size: u64, count: usize, pattern: Pattern) -> Row {
        let (stores, psync, floor) = (self.stores.median(), self.psync.median(), self.floor.median());
        Row { size, count, pattern, stores, psync, floor }
    }

    fn cells(&self, size: u64, count: usize, pattern: Pattern) -> Vec<Cell> {
        let spread = |samples: &Samples| samples.spread().map_or(Cell::Empty, Cell::from);
        let median = |samples: &Samples| samples.spread().map_or(Cell::Empty, |spread| spread.median.into());
        vec![
            size.into(),
            pattern.word().into(),
            (count as u64).into(),
            median(&self.stores),
            spread(&self.psync),
            (self.psync.median() / count as f64).into(),
            median(&self.collect),
            median(&self.compare),
            median(&self.publish),
            median(&self.apply),
            median(&self.settle),
            median(&self.rest),
            spread(&self.floor),
            (self.psync.median() / self.floor.median()).into(),
            (self.psync.len() as u64).into(),
        ]
    }
}

fn measure(
    environment: &Environment,
    medium: Medium,
    object: &mut Object,
    mut chooser: Chooser,
    floor: &mut Floor,
) -> Result<Parts> {
    let (warm, budget) = match medium {
        Medium::Memory => (8, environment.budget(Duration::from_millis(600), Duration::from_millis(120))),
        Medium::File => (4, environment.budget(Duration::from_millis(1200), Duration::from_millis(200))),
    };
    let clock = &environment.clock;
    let mut parts = Parts::default();
    let mut round = 0;
    while budget.allows(round, warm + 10) && round < 20_000 {
        let (pages, line) = chooser.round();
        let (stores, ()) = clock.time(|| store(object, pages, line, round as u64 + 3));
        let timed = round % 2 == 1;
        object.set_timed(timed);
        let (before, lane) = (object.stats(), object.lane_use());
        let (psync, result) = clock.time(|| object.psync());
        result?;
        let (after, lane_after) = (object.stats(), object.lane_use());
        round += 1;
        if round <= warm {
            continue;
        }
        parts.stores.push(stores);
        if timed {
            let collect = clock.nanos(after.collect - before.collect);
            let compare = clock.nanos(after.compare - before.compare);
            let settle = clock.nanos(after.settle - before.settle);
            let publish = clock.nanos(lane_after.publish - lane.publish);
            let apply = clock.nanos(lane_after.apply - lane.apply);
            let rest = psync - collect - compare - settle - publish - apply - 10.0 * clock.price;
            parts.collect.push(collect);
            parts.compare.push(compare);
            parts.settle.push(settle);
            parts.publish.push(publish);
            parts.apply.push(apply);
            parts.rest.push(rest.max(0.0));
        } else {
            parts.psync.push(psync);
        }
        let bytes = (lane_after.bytes - lane.bytes) as usize;
        match floor {
            Floor::Scan(floor) => parts.floor.push(clock.time(|| floor.scan()).0),
            Floor::Write(floor) => {
                let (took, result) = clock.time(|| floor.write(bytes));
                result?;
                parts.floor.push(took);
            }
            Floor::None => {}
        }
    }
    Ok(parts)
}

fn of(tracking: Tracking) -> &'static str {
    match tracking {
        Tracking::Explicit => ", explicit",
        Tracking::FaultLog => ", fault-log",
        _ => "",
    }
}

fn goals(memory: &[Row], file: &[Row], tracking: Tracking) -> Vec<Goal> {
    fn find(rows: &[Row], size: u64, count: usize, pattern: Pattern) -> Option<&Row> {
        rows.iter().find(|row| (row.size, row.count, row.pattern) == (size, count, pattern))
    }
    let ratio = |row: Option<&Row>| row.map_or(f64::NAN, |row| row.psync / row.floor);
    let (mut goals, of) = (Vec::new(), of(tracking));
    let small = find(memory, SIZES[0], 1, Pattern::Hot);
    goals.push(Goal::at_most(
        format!("memory{of}: one dirty page of a 1 MiB object, in PAGEMAP_SCANs of that range"),
        Unit::Ratio,
        2.0,
        small.map_or(f64::NAN, |row| (row.stores + row.psync) / row.floor),
    ));
    for pattern in Pattern::ALL {
        let (small, large) = (find(memory, SIZES[0], 1, pattern), find(memory, SIZES[3], 1, pattern));
        goals.push(Goal::at_most(
            format!(
                "memory{of}: one dirty page ({}) of a 64 GiB sparse object, in psyncs of one of 1 MiB",
                pattern.word()
            ),
            Unit::Ratio,
            2.0,
            small.zip(large).map_or(f64::NAN, |(small, large)| large.psync / small.psync),
        ));
    }
    goals.push(Goal::at_most(
        format!("memory{of}: 1,000 scattered dirty lines in 256 MiB, a page, collection included"),
        Unit::Nanoseconds,
        800.0,
        find(memory, SIZES[1], 1000, Pattern::Scattered).map_or(f64::NAN, |row| row.psync / 1000.0),
    ));
    for (size, count, pattern) in [
        (SIZES[0], 1, Pattern::Hot),
        (SIZES[1], 1, Pattern::Scattered),
        (SIZES[1], 100, Pattern::Hot),
        (SIZES[1], 100, Pattern::Scattered),
        (SIZES[1], 1000, Pattern::Scattered),
    ] {
        goals.push(Goal::at_most(
            format!(
                "SSD{of}: {count} dirty pages ({}) of {} MiB, in durable pwrites",
                pattern.word(),
                size >> 20
            ),
            Unit::Ratio,
            1.2,
            ratio(find(file, size, count, pattern)),
        ));
    }
    goals
}
