//! Cost of open, create, lookup and attach by number of objects.
//!
//! Pools of all sizes take turns. They are filled as memory: durable creations take minutes on an
//! SSD.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::floor::{ColdFloor, WriteFloor, open_floor};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::plot::Plot;
use crate::stats::Samples;
use indelible::{CreateOptions, Pool, PoolOptions};
use std::path::PathBuf;
use std::time::Duration;

const NUMBERS: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
const POOL: u64 = 16 << 30;
const PAGE: u64 = 4096;
const LIMIT: f64 = 5e6;

const COLUMNS: [(&str, Unit); 13] = [
    ("objects", Unit::Count),
    ("open", Unit::Nanoseconds),
    ("open+mmap of the file", Unit::Nanoseconds),
    ("open/that", Unit::Ratio),
    ("create", Unit::Nanoseconds),
    ("to 10", Unit::Ratio),
    ("lookup", Unit::Nanoseconds),
    ("to 10", Unit::Ratio),
    ("attach", Unit::Nanoseconds),
    ("to 10", Unit::Ratio),
    ("two cold reads", Unit::Nanoseconds),
    ("durable 4 KiB", Unit::Nanoseconds),
    ("rounds", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let numbers = if environment.quick { &NUMBERS[..4] } else { &NUMBERS[..] };
    for medium in Medium::ALL {
        on(environment, medium, numbers, section)?;
    }
    section.notes.push(
        "lookup: stat of an object chosen at random. attach: to write, another object being attached. The page \
         cache is warm. two cold reads: preads of a page of the file chosen at random, and of one that the first leads to: what \
         no index of many objects can do without."
            .into(),
    );
    Ok(())
}

struct Site {
    path: PathBuf,
    number: u64,
    open: Samples,
    floor: Samples,
    create: Samples,
    lookup: Samples,
    attach: Samples,
    cold: Samples,
    random: Random,
    created: u64,
}

fn name(index: u64) -> String {
    format!("object-{index:07}")
}

fn sparse() -> CreateOptions {
    CreateOptions::new(PAGE).sparse(true).reach(PAGE)
}

fn build(environment: &Environment, medium: Medium, number: u64) -> Result<Site> {
    let path = environment.path(medium, &format!("open-{number}"));
    let pool = PoolOptions::new().medium(Medium::Memory.kind()).format(&path, POOL)?;
    let bar = progress(number as usize, &format!("open, {}: creating", medium.word()));
    for index in 0..number {
        pool.create_with(&name(index), &sparse())?;
        if index % 1024 == 1023 {
            bar.inc(1024);
        }
    }
    bar.finish_and_clear();
    drop(pool);
    let samples = Samples::default;
    let (open, floor, create) = (samples(), samples(), samples());
    let random = Random::new(number);
    Ok(Site {
        path,
        number,
        open,
        floor,
        create,
        lookup: samples(),
        attach: samples(),
        cold: samples(),
        random,
        created: 0,
    })
}

impl Site {
    fn open(&mut self, environment: &Environment, medium: Medium) -> Result<Pool> {
        let (took, result) = environment.clock.time(|| open_floor(&self.path));
        result?;
        self.floor.push(took);
        let options = PoolOptions::new().medium(medium.kind());
        let (took, pool) = environment.clock.time(|| options.open(&self.path));
        self.open.push(took);
        Ok(pool?)
    }

    fn use_pool(&mut self, environment: &Environment, pool: &Pool, times: usize) -> Result<()> {
        let clock = &environment.clock;
        let _lane = pool.attach(&name(0))?;
        let mut cold = ColdFloor::new(&self.path)?;
        for _ in 0..times {
            let (took, result) = clock.time(|| cold.read());
            result?;
            self.cold.push(took);
            let fresh = format!("fresh-{}", self.created);
            self.created += 1;
            let (took, result) = clock.time(|| pool.create_with(&fresh, &sparse()));
            result?;
            self.create.push(took);
            let (took, result) = clock.time(|| pool.stat(&fresh));
            result?;
            let _ = took;
            pool.destroy(&fresh)?;
            let any = name(self.random.below(self.number - 1) + 1);
            let (took, result) = clock.time(|| pool.stat(&any));
            result?;
            self.lookup.push(took);
            let any = name(self.random.below(self.number - 1) + 1);
            let (took, object) = clock.time(|| pool.attach(&any));
            self.attach.push(took);
            object?.detach()?;
        }
        Ok(())
    }

    fn cells(&self, first: &Site, write: &Samples) -> Vec<Cell> {
        let spread = |samples: &Samples| samples.spread().map_or(Cell::Empty, Cell::from);
        let to = |own: &Samples, first: &Samples| Cell::from(own.median() / first.median());
        vec![
            self.number.into(),
            spread(&self.open),
            spread(&self.floor),
            to(&self.open, &self.floor),
            spread(&self.create),
            to(&self.create, &first.create),
            spread(&self.lookup),
            to(&self.lookup, &first.lookup),
            spread(&self.attach),
            to(&self.attach, &first.attach),
            spread(&self.cold),
            spread(write),
            (self.open.len() as u64).into(),
        ]
    }
}

fn on(environment: &Environment, medium: Medium, numbers: &[u64], section: &mut Section) -> Result<()> {
    let mut sites = Vec::with_capacity(numbers.len());
    for number in numbers {
        sites.push(build(environment, medium, *number)?);
    }
    let (mut floor, mut write) = (None, Samples::default());
    let times = match medium {
        Medium::Memory => 50,
        Medium::File => {
            floor = Some(WriteFloor::new(&environment.path(medium, "open-floor"), 16 << 20)?);
            10
        }
    };
    let budget = environment.budget(Duration::from_secs(6), Duration::from_millis(1500));
    let mut round = 0;
    while budget.allows(round, 5) {
        for site in &mut sites {
            let pool = site.open(environment, medium)?;
            site.use_pool(environment, &pool, times)?;
            drop(pool);
            if let Some(floor) = &mut floor {
                let (took, result) = environment.clock.time(|| floor.write(PAGE as usize));
                result?;
                write.push(took);
            }
        }
        round += 1;
    }
    let mut table = Table::new(format!("Pools of many objects on {}", medium.word()), &COLUMNS);
    for site in &sites {
        table.row(site.cells(&sites[0], &write));
        let _ = std::fs::remove_file(&site.path);
    }
    let file = format!("objects-{}", medium.short());
    let columns = ["open", "create", "lookup", "attach", "two cold reads"];
    section.plots.push(Plot::of_columns(&table, &file, "objects", "time", &columns));
    section.tables.push(table);
    goals(medium, &sites, section);
    Ok(())
}

const GROWTH: f64 = 1.5;

fn goals(medium: Medium, sites: &[Site], section: &mut Section) {
    let word = medium.word();
    let slowest = sites.iter().map(|site| site.open.median()).fold(f64::NAN, f64::max);
    section.goals.push(Goal::at_most(
        format!("{word}: open at every number of objects"),
        Unit::Nanoseconds,
        LIMIT,
        slowest,
    ));
    let (Some(first), Some(last)) = (sites.first(), sites.last()) else { return };
    let mut growth = |what: &str, first: &Samples, last: &Samples| {
        let text = format!("{word}: {what} among {} objects, to among 10", last_number(sites));
        section.goals.push(Goal::at_most(text, Unit::Ratio, GROWTH, last.median() / first.median()));
    };
    growth("create", &first.create, &last.create);
    growth("lookup", &first.lookup, &last.lookup);
    growth("attach", &first.attach, &last.attach);
    let more = (last.lookup.median() - first.lookup.median()) / last.cold.median();
    let text =
        format!("{word}: what lookup takes more among {} objects, in two cold reads", last_number(sites));
    section.goals.push(Goal::at_most(text, Unit::Ratio, GROWTH, more));
}

fn last_number(sites: &[Site]) -> String {
    sites.last().map_or_else(String::new, |site| crate::render::value(Unit::Count, site.number as f64))
}
