//! Access to a cold sealed object: a scan, a walk with work on each page, random touches.

use super::place::Place;
use super::{DEPTHS, key, word};
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::floor::UnsealFloor;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::{PAGE, Random};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Pool, PredictionDepth, ReadObject};
use std::time::{Duration, Instant};

const COLUMNS: [(&str, Unit); 10] = [
    ("depth", Unit::Text),
    ("pages of a window", Unit::Count),
    ("scan", Unit::BytesPerSecond),
    ("to floor", Unit::Ratio),
    ("faults of a page", Unit::Ratio),
    ("late of them", Unit::Ratio),
    ("walk, a page", Unit::Nanoseconds),
    ("stall, a page", Unit::Nanoseconds),
    ("hidden", Unit::Ratio),
    ("runs", Unit::Count),
];

const TOUCHES: [(&str, Unit); 5] = [
    ("pages touched", Unit::Count),
    ("first touch", Unit::Nanoseconds),
    ("floor", Unit::Nanoseconds),
    ("to floor", Unit::Ratio),
    ("decrypting a page", Unit::Nanoseconds),
];

const WORK: usize = 8;

#[derive(Default)]
struct Row {
    scan: Samples,
    walk: Samples,
    faults: Samples,
    late: Samples,
}

fn sum(page: &[u8]) -> u64 {
    page.chunks_exact(8)
        .fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default())))
}

fn walk(bytes: &[u8], work: usize) -> f64 {
    let begin = Instant::now();
    let mut total = 0_u64;
    for page in bytes.chunks_exact(PAGE) {
        (0..work)
            .for_each(|round| total = total.rotate_left(1) ^ std::hint::black_box(sum(page)) ^ round as u64);
    }
    std::hint::black_box(total);
    begin.elapsed().as_nanos() as f64
}

fn size(environment: &Environment, place: Place<'_>) -> usize {
    let size: usize = match (environment.smoke, environment.quick, place.medium) {
        (true, ..) => 2 << 20,
        (_, true, _) => 64 << 20,
        (_, _, Medium::Memory) => 1 << 30,
        (_, _, Medium::File) => 256 << 20,
    };
    let page = place.model.map(|model| model.speed.read + Duration::from_micros(20));
    let most = page.map(|page| (1e9 / page.as_nanos() as f64) as usize * PAGE);
    most.map_or(size, |most| size.min(most).next_multiple_of(1 << 20))
}

pub fn on(
    environment: &Environment,
    place: Place<'_>,
    floor: &UnsealFloor,
    section: &mut Section,
) -> Result<()> {
    let size = size(environment, place);
    let rounds = match (environment.quick, place.model) {
        (true, _) => 1,
        (_, Some(_)) => 3,
        (_, None) => 5,
    };
    let (path, key) = (place.path(environment, "sealing"), key()?);
    let room = size as u64 / 8 * 9 + (256 << 20);
    let pool = place.options(PredictionDepth::Auto).force(true).format(&path, room)?;
    pool.create_with("a", &CreateOptions::new(size as u64).sealed(&key, "benchmark"))?;
    fill(&pool, size)?;
    drop(pool);
    let open = |depth| -> Result<ReadObject> {
        Ok(place.options(depth).open(&path)?.attach_read_sealed("a", b"", &key)?)
    };
    let bar = progress(rounds * DEPTHS.len(), &format!("sealing, {}", place.word()));
    let pages = (size / PAGE) as f64;
    let (mut rows, mut present) = (DEPTHS.map(|_| Row::default()), Samples::default());
    for _ in 0..rounds {
        for (depth, row) in DEPTHS.into_iter().zip(&mut rows) {
            let object = open(depth)?;
            row.scan.push(size as f64 / walk(object.as_slice(), 1) * 1e9);
            let stats = object.prediction().unwrap_or_default();
            row.faults.push(stats.faults as f64 / pages);
            row.late.push(stats.late as f64 / pages);
            object.detach()?;
            let object = open(depth)?;
            row.walk.push(walk(object.as_slice(), WORK) / pages);
            object.detach()?;
            bar.inc(1);
        }
        let object = open(PredictionDepth::Auto)?;
        object.prefault(0..size)?;
        present.push(walk(object.as_slice(), WORK) / pages);
        object.detach()?;
    }
    bar.finish_and_clear();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let filled = floor.fill_all(cores)?;
    let floor_rate = floor.bytes() as f64 / filled.as_secs_f64();
    let stall = |row: &Row| (row.walk.median() - present.median()).max(0.0);
    let hidden = |row: &Row| 1.0 - stall(row) / stall(&rows[0]);
    let mut table = Table::new(format!("Going through a cold sealed object on {}", place.word()), &COLUMNS);
    for (depth, row) in DEPTHS.into_iter().zip(&rows) {
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let window = match depth {
            PredictionDepth::Pages(pages) => Cell::from(u64::from(pages) + 1),
            PredictionDepth::Auto => Cell::from(65_u64),
        };
        table.row(vec![
            word(depth).as_str().into(),
            window,
            cell(&row.scan),
            (row.scan.median() / floor_rate).into(),
            cell(&row.faults),
            cell(&row.late),
            cell(&row.walk),
            stall(row).into(),
            hidden(row).into(),
            (row.walk.len() as u64).into(),
        ]);
    }
    let file = format!("sealing-stall-{}", place.short());
    section.plots.push(Plot::of(&table, &file, "pages of a window", "stall, a page", &[]));
    section.tables.push(table);
    let best = rows.iter().map(hidden).fold(f64::NAN, f64::max);
    let scan = rows.iter().map(|row| row.scan.median() / floor_rate).fold(f64::NAN, f64::max);
    let of = place.word();
    section.goals.push(Goal::at_least(
        format!("{of}: stall hidden by the best depth"),
        Unit::Ratio,
        0.70,
        best,
    ));
    section.goals.push(Goal::at_least(
        format!("{of}: scan of a cold sealed object, to decrypting on all cores"),
        Unit::Ratio,
        0.80,
        scan,
    ));
    touches(environment, place, floor, section, &open(PredictionDepth::Pages(0))?)?;
    Ok(std::fs::remove_file(&path)?)
}

fn fill(pool: &Pool, size: usize) -> Result<()> {
    let mut object = pool.attach_sealed("a", b"", &key()?)?;
    let mut random = Random::new(size as u64);
    for piece in (0..size).step_by(4 << 20) {
        let end = size.min(piece + (4 << 20));
        for line in object.range_mut(piece..end).chunks_exact_mut(64) {
            line[..8].copy_from_slice(&random.next().to_le_bytes());
        }
        object.psync()?;
    }
    Ok(object.detach()?)
}

fn touches(
    environment: &Environment,
    place: Place<'_>,
    floor: &UnsealFloor,
    section: &mut Section,
    object: &ReadObject,
) -> Result<()> {
    let count = if environment.quick { 256 } else { 8192 };
    let chosen = |all: usize| {
        let mut pages: Vec<usize> = (0..all).collect();
        Random::new(7).shuffle(&mut pages);
        pages.truncate(count.min(all / 2));
        pages
    };
    let bytes = object.as_slice();
    let mut touched = Samples::default();
    for page in chosen(bytes.len() / PAGE) {
        let begin = Instant::now();
        std::hint::black_box(std::hint::black_box(bytes)[page * PAGE]);
        touched.push(begin.elapsed().as_nanos() as f64);
    }
    let least = floor.touch(&chosen(floor.pages()))?;
    let ratio = touched.median() / least.median();
    let mut table = Table::new(format!("First touches of a sealed object on {}", place.word()), &TOUCHES);
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    table.row(vec![
        (touched.len() as u64).into(),
        cell(&touched),
        cell(&least),
        ratio.into(),
        floor.page().into(),
    ]);
    section.tables.push(table);
    let what = format!("{}: unpredicted first touch, to its floor", place.word());
    section.goals.push(Goal::at_most(what, Unit::Ratio, 1.2, ratio));
    Ok(())
}
