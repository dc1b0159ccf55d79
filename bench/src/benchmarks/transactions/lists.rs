//! The paper's list (S1.21, S1.24), without transactions, in volatile ones, in those of objects,
//! and in libpmemobj's.

use super::objects::Object;
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::peers::pmem::MISSING;
use crate::peers::pmem_ring::PmemRing;
use crate::stamp::memory::{Memory, Plain, Transient};
use crate::stamp::ring::Ring;
use crate::stats::{Samples, Spread};
use indelible::Class;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Instant;

const ELEMENTS: u64 = 500;
const PAYLOADS: [u64; 4] = [1, 16, 64, 256];
const PAYLOAD: u64 = 16;
const COUNTS: [u64; 4] = [10, 100, 1_000, 10_000];
const PUSH: f64 = 7.0;
const POP: f64 = 3.0;
const READ: f64 = 3.0;
const WRITE: f64 = 67.0;

const COLUMNS: [(&str, Unit); 9] = [
    ("", Unit::Count),
    ("NoTx", Unit::Nanoseconds),
    ("Tx", Unit::Nanoseconds),
    ("RTx, on demand", Unit::Nanoseconds),
    ("to Tx", Unit::Ratio),
    ("RTx, durable in memory", Unit::Nanoseconds),
    ("libpmemobj", Unit::Nanoseconds),
    ("its whole elements", Unit::Nanoseconds),
    ("libpmemobj to RTx", Unit::Ratio),
];

#[derive(Default)]
struct Times {
    plain: [Samples; 2],
    volatile: [Samples; 2],
    on_demand: [Samples; 2],
    durable: [Samples; 2],
    pmem: [Samples; 2],
    whole: [Samples; 2],
}

struct Lists {
    on_demand: Object,
    durable: Object,
    path: PathBuf,
    turns: usize,
    bar: ProgressBar,
}

fn each(start: Instant, count: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

fn pushed_and_popped<M: Memory>(
    memory: &M,
    payload: u64,
    turns: usize,
    times: &mut [Samples; 2],
) -> Result<()> {
    let (mut worker, ring) = (memory.worker(), Ring::new(payload));
    ring.load(&mut worker)?;
    for _ in 0..turns {
        let start = Instant::now();
        (0..ELEMENTS).try_for_each(|value| ring.push(&mut worker, value))?;
        times[0].push(each(start, ELEMENTS));
        let start = Instant::now();
        for value in 0..ELEMENTS {
            right(ring.pop(&mut worker)?.unwrap_or(u64::MAX), value)?;
        }
        times[1].push(each(start, ELEMENTS));
    }
    Ok(())
}

fn read_and_changed<M: Memory>(memory: &M, count: u64, turns: usize, times: &mut [Samples; 2]) -> Result<()> {
    let (mut worker, ring) = (memory.worker(), Ring::new(PAYLOAD));
    ring.load(&mut worker)?;
    (0..count).try_for_each(|value| ring.push(&mut worker, value))?;
    let (repeats, mut sum) = (repeats(count), count * (count - 1) / 2);
    for _ in 0..turns {
        let start = Instant::now();
        for _ in 0..repeats {
            right(ring.sum(&mut worker)?, sum)?;
        }
        times[0].push(each(start, repeats * count));
        let start = Instant::now();
        (0..repeats).try_for_each(|_| ring.change(&mut worker, 1))?;
        times[1].push(each(start, repeats * count));
        sum += repeats * count;
    }
    Ok(())
}

fn repeats(count: u64) -> u64 {
    (2_000 / count).max(1)
}

fn right(found: u64, expected: u64) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("a list has {found}, and not {expected}").into()) }
}

impl Lists {
    fn pmem(&self, payload: u64) -> Result<Option<PmemRing>> {
        let _ = std::fs::remove_file(&self.path);
        PmemRing::create(&self.path, payload)
    }

    fn push_and_pop(&self, payload: u64) -> Result<Times> {
        let (mut times, turns) = (Times::default(), self.turns);
        pushed_and_popped(&Plain::new(), payload, turns, &mut times.plain)?;
        pushed_and_popped(&Transient::new(), payload, turns, &mut times.volatile)?;
        self.on_demand.fresh(|memory| pushed_and_popped(memory, payload, turns, &mut times.on_demand))?;
        self.durable.fresh(|memory| pushed_and_popped(memory, payload, turns, &mut times.durable))?;
        let Some(ring) = self.pmem(payload)? else { return Ok(times) };
        for _ in 0..turns {
            let start = Instant::now();
            (0..ELEMENTS).try_for_each(|value| ring.push(value))?;
            times.pmem[0].push(each(start, ELEMENTS));
            let start = Instant::now();
            (0..ELEMENTS).try_for_each(|value| right(ring.pop()?.unwrap_or(u64::MAX), value))?;
            times.pmem[1].push(each(start, ELEMENTS));
        }
        Ok(times)
    }

    fn read_and_change(&self, count: u64) -> Result<Times> {
        let (mut times, turns) = (Times::default(), self.turns);
        read_and_changed(&Plain::new(), count, turns, &mut times.plain)?;
        read_and_changed(&Transient::new(), count, turns, &mut times.volatile)?;
        self.on_demand.fresh(|memory| read_and_changed(memory, count, turns, &mut times.on_demand))?;
        self.durable.fresh(|memory| read_and_changed(memory, count, turns, &mut times.durable))?;
        let Some(ring) = self.pmem(PAYLOAD)? else { return Ok(times) };
        (0..count).try_for_each(|value| ring.push(value))?;
        let (repeats, mut sum) = (repeats(count), count * (count - 1) / 2);
        for _ in 0..turns {
            let start = Instant::now();
            (0..repeats).try_for_each(|_| right(ring.sum()?, sum))?;
            times.pmem[0].push(each(start, repeats * count));
            for (whole, times) in [(false, &mut times.pmem[1]), (true, &mut times.whole[1])] {
                let start = Instant::now();
                (0..repeats).try_for_each(|_| ring.change(1, whole))?;
                times.push(each(start, repeats * count));
                sum += repeats * count;
            }
        }
        Ok(times)
    }

    fn tables(
        &self,
        section: &mut Section,
        titles: [(&str, &str); 2],
        sizes: &[(u64, u64)],
        measure: impl Fn(&Self, u64) -> Result<Times>,
    ) -> Result<Vec<Times>> {
        let mut tables = titles.map(|(title, head)| {
            let mut columns = COLUMNS;
            columns[0].0 = head;
            Table::new(title, &columns)
        });
        let mut all = Vec::new();
        for (size, shown) in sizes {
            let times = measure(self, *size)?;
            for (operation, table) in tables.iter_mut().enumerate() {
                table.row(times.row(operation, *shown));
            }
            all.push(times);
            self.bar.inc(1);
        }
        section.tables.extend(tables);
        Ok(all)
    }
}

impl Times {
    fn row(&self, operation: usize, size: u64) -> Vec<Cell> {
        let cell = |of: &[Samples; 2]| of[operation].spread().map_or(Cell::Empty, Spread::into);
        let median = |of: &[Samples; 2]| of[operation].median();
        vec![
            size.into(),
            cell(&self.plain),
            cell(&self.volatile),
            cell(&self.on_demand),
            (median(&self.on_demand) / median(&self.volatile)).into(),
            cell(&self.durable),
            cell(&self.pmem),
            cell(&self.whole),
            (median(&self.pmem) / median(&self.on_demand)).into(),
        ]
    }

    fn is_beside_pmem(&self) -> bool {
        self.pmem[0].len() > 0
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let turns = match (environment.smoke, environment.quick) {
        (true, _) => 2,
        (_, true) => 11,
        _ => 100,
    };
    let (payloads, counts) = (environment.some(&PAYLOADS, 2), environment.some(&COUNTS, 2));
    let lists = Lists {
        on_demand: Object::new(environment, Medium::File, Class::OnDemand)?,
        durable: Object::new(environment, Medium::Memory, Class::Transactional)?,
        path: environment.path(Medium::Memory, "lists-pmem"),
        turns,
        bar: progress(payloads.len() + counts.len(), "lists"),
    };
    let sizes: Vec<(u64, u64)> = payloads.iter().map(|words| (*words, words * 8)).collect();
    let titles = [
        ("A list: pushBack of each of 500 elements", "bytes of payload"),
        ("A list: popFront of each of 500 elements", "bytes of payload"),
    ];
    let changed = lists.tables(section, titles, &sizes, Lists::push_and_pop)?;
    let sizes: Vec<(u64, u64)> = counts.iter().map(|count| (*count, *count)).collect();
    let titles = [
        ("A list gone through in one transaction: 8 of 128 bytes of each element read", "elements"),
        ("A list gone through in one transaction: 8 of 128 bytes of each element changed", "elements"),
    ];
    let through = lists.tables(section, titles, &sizes, Lists::read_and_change)?;
    lists.bar.finish_and_clear();
    goals(section, &changed, &through);
    Ok(())
}

fn goals(section: &mut Section, changed: &[Times], through: &[Times]) {
    let best = |of: &[Times], ratio: &dyn Fn(&Times) -> f64| of.iter().map(ratio).fold(f64::NAN, f64::max);
    if !changed.iter().all(Times::is_beside_pmem) {
        section.notes.push(format!("Lists: libpmemobj is not measured. {MISSING}"));
        return;
    }
    let mut goal =
        |what: &str, least, ratio| section.goals.push(Goal::at_least(what, Unit::Ratio, least, ratio));
    let operation =
        |nth: usize| move |times: &Times| times.pmem[nth].median() / times.on_demand[nth].median();
    goal("list, pushBack: libpmemobj to RTx on demand, at best", PUSH, best(changed, &operation(0)));
    goal("list, popFront: libpmemobj to RTx on demand, at best", POP, best(changed, &operation(1)));
    let read = |times: &Times| times.pmem[0].median() / times.volatile[0].median();
    goal("list, read: libpmemobj to Tx, at best", READ, best(through, &read));
    let write = |times: &Times| times.whole[1].median() / times.on_demand[1].median();
    goal(
        "list, changed: libpmemobj with whole elements to RTx on demand, at best",
        WRITE,
        best(through, &write),
    );
    section.notes.push(
        "Lists: as in the paper, \"at best\" is over the sizes of the tables. libpmemobj follows its pointers by pmemobj_direct, and snapshots the 8 bytes that change; \
         \"its whole elements\": the 128 bytes of each, as its objects in C++ do. Words of lists of the project lie in one array, and blocks are allocated by the program."
            .into(),
    );
}
