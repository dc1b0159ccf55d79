//! The papers' computations on objects that are cold, plain and sealed, at each depth of prediction (S3.8).

use super::{DEPTHS, key, options, word};
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::floor::UnsealFloor;
use crate::kernels::{Convolution, Crew, Gauss, Kernel, Lu, Multiply, crew, fingerprint};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::PAGE;
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Object, Pool, PoolOptions, PredictionDepth, PredictionStats, psync_all};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two syncs.
const BETWEEN: Duration = Duration::from_millis(250);

const COLUMNS: [(&str, Unit); 13] = [
    ("kernel", Unit::Text),
    ("threads", Unit::Count),
    ("object", Unit::Text),
    ("depth", Unit::Text),
    ("pages of a window", Unit::Count),
    ("time", Unit::Nanoseconds),
    ("to plain", Unit::Ratio),
    ("over plain, to floor", Unit::Ratio),
    ("faults", Unit::Count),
    ("filled ahead", Unit::Count),
    ("accuracy", Unit::Ratio),
    ("coverage", Unit::Ratio),
    ("in time", Unit::Ratio),
];

fn kernels(environment: &Environment) -> Vec<Box<dyn Kernel>> {
    if environment.quick {
        return vec![
            Box::new(Convolution::new(1024, 128, 20)),
            Box::new(Gauss::new(512)),
            Box::new(Lu::new(512)),
            Box::new(Multiply::new(512)),
        ];
    }
    if environment.paper_sizes {
        return vec![
            Box::new(Convolution::new(4096, 128, 2_000)),
            Box::new(Gauss::new(3584)),
            Box::new(Lu::new(3584)),
            Box::new(Multiply::new(3072)),
        ];
    }
    vec![
        Box::new(Convolution::new(4096, 128, 300)),
        Box::new(Gauss::new(1536)),
        Box::new(Lu::new(2048)),
        Box::new(Multiply::new(1536)),
    ]
}

/// One way to keep the arrays: `None` are plain objects.
type Way = Option<PredictionDepth>;

#[derive(Default)]
struct Outcome {
    time: Samples,
    faults: u64,
    filled: u64,
    /// Bytes that were decrypted at least, and encrypted.
    bytes: f64,
    result: u64,
}

fn attach(pool: &Pool, way: Way, arrays: usize) -> Result<Vec<Object>> {
    let one = |number: usize| -> Result<Object> {
        let name = format!("array-{number}");
        Ok(match way {
            Some(_) => pool.attach_sealed(&name, b"", &key()?)?,
            None => pool.attach(&name)?,
        })
    };
    (0..arrays).map(one).collect()
}

fn sync(objects: &mut [Object]) -> Result<()> {
    let mut all: Vec<&mut Object> = objects.iter_mut().collect();
    Ok(psync_all(&mut all)?)
}

fn counts(objects: &[Object]) -> PredictionStats {
    let mut all = PredictionStats::default();
    for stats in objects.iter().filter_map(Object::prediction) {
        all.faults += stats.faults;
        all.filled += stats.filled;
        all.touched += stats.touched;
        all.predicted += stats.predicted;
        all.used += stats.used;
        all.in_time += stats.in_time;
    }
    all
}

/// Creates and fills the arrays, and computes on them cold; returns the time of that, what prediction did, and the bytes that changed in psyncs.
fn compute(
    path: &Path,
    options: &PoolOptions,
    way: Way,
    kernel: &dyn Kernel,
    crew: &Crew,
    outcome: &mut Outcome,
) -> Result<PredictionStats> {
    let lengths = kernel.lengths();
    let room: usize = lengths.iter().sum();
    let pool = options.clone().force(true).format(path, (room as u64 * 3).max(256 << 20) + (512 << 20))?;
    for (number, len) in lengths.iter().enumerate() {
        let create = CreateOptions::new(*len as u64);
        let create = if way.is_some() { create.sealed(&key()?, "benchmark") } else { create };
        pool.create_with(&format!("array-{number}"), &create)?;
    }
    let mut objects = attach(&pool, way, lengths.len())?;
    kernel.fill(&mut objects.iter_mut().map(Object::as_mut_slice).collect::<Vec<_>>());
    sync(&mut objects)?;
    drop(objects);
    let begin = Instant::now();
    let mut objects = attach(&pool, way, lengths.len())?;
    let mut last = begin;
    for step in 0..kernel.steps() {
        kernel.step(step, crew, &mut objects.iter_mut().map(Object::as_mut_slice).collect::<Vec<_>>());
        if last.elapsed() >= BETWEEN || step + 1 == kernel.steps() {
            sync(&mut objects)?;
            last = Instant::now();
        }
    }
    outcome.time.push(begin.elapsed().as_nanos() as f64);
    let stats = counts(&objects);
    (outcome.faults, outcome.filled) = (stats.faults, stats.filled);
    let changed: u64 = objects.iter().map(|object| object.stats().pages_changed).sum();
    outcome.bytes = room as f64 + (changed * PAGE as u64) as f64;
    outcome.result = fingerprint(&mut objects.iter_mut().map(Object::as_mut_slice).collect::<Vec<_>>());
    drop(objects);
    drop(pool);
    std::fs::remove_file(path)?;
    Ok(stats)
}

pub fn on(
    environment: &Environment,
    medium: Medium,
    floor: &UnsealFloor,
    section: &mut Section,
) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)).collect();
    let repeats = if environment.quick || environment.paper_sizes { 1 } else { 3 };
    let ways: Vec<Way> = std::iter::once(None).chain(DEPTHS.map(Some)).collect();
    let path = environment.path(medium, "sealing-kernel");
    let kernels = kernels(environment);
    let kernels = environment.some(&kernels, 1);
    let bar = progress(
        kernels.len() * threads.len() * ways.len() * repeats,
        &format!("sealed kernels, {}", medium.word()),
    );
    let mut table = Table::new(format!("Kernels on cold sealed objects on {}", medium.word()), &COLUMNS);
    let (page, mut least, mut accuracy, mut coverage) = (floor.page(), Vec::new(), f64::NAN, f64::NAN);
    for kernel in kernels {
        for threads in &threads {
            let crew = crew(*threads)?;
            let mut outcomes: Vec<Outcome> = ways.iter().map(|_| Outcome::default()).collect();
            for _ in 0..repeats {
                for (way, outcome) in ways.iter().zip(&mut outcomes) {
                    let options = options(medium, way.unwrap_or_default());
                    compute(&path, &options, *way, &**kernel, &crew, outcome)?;
                    bar.inc(1);
                }
            }
            if let Some(wrong) = outcomes.iter().position(|outcome| outcome.result != outcomes[0].result) {
                return Err(format!("{}: {:?} computed otherwise", kernel.name(), ways[wrong]).into());
            }
            let measuring = options(medium, PredictionDepth::Auto).measure_prediction(true);
            let way = Some(PredictionDepth::Auto);
            let measured = compute(&path, &measuring, way, &**kernel, &crew, &mut Outcome::default())?;
            // `min` passes over NaN.
            accuracy = accuracy.min(measured.accuracy().unwrap_or(f64::NAN));
            coverage = coverage.min(measured.coverage().unwrap_or(f64::NAN));
            let plain = outcomes[0].time.median();
            for (way, outcome) in ways.iter().zip(&outcomes) {
                let over = (outcome.time.median() - plain) / (outcome.bytes / PAGE as f64 * page);
                let is_auto = *way == Some(PredictionDepth::Auto);
                if is_auto {
                    least.push(over);
                }
                let part = |part: Option<f64>| part.filter(|_| is_auto).map_or(Cell::Empty, Cell::from);
                let sealed = way.is_some();
                table.row(vec![
                    kernel.name().as_str().into(),
                    (*threads as u64).into(),
                    if sealed { "sealed" } else { "plain" }.into(),
                    way.map_or(Cell::Empty, |depth| word(depth).as_str().into()),
                    match way {
                        Some(PredictionDepth::Pages(pages)) => (u64::from(*pages) + 1).into(),
                        _ => Cell::Empty,
                    },
                    outcome.time.spread().map_or(Cell::Empty, Spread::into),
                    (outcome.time.median() / plain).into(),
                    if sealed { over.into() } else { Cell::Empty },
                    if sealed { outcome.faults.into() } else { Cell::Empty },
                    if sealed { outcome.filled.into() } else { Cell::Empty },
                    part(measured.accuracy()),
                    part(measured.coverage()),
                    part(measured.timeliness()),
                ]);
            }
        }
    }
    bar.finish_and_clear();
    let file = format!("sealing-kernels-{}", medium.short());
    let mut plot = Plot::of(&table, &file, "pages of a window", "to plain", &["kernel", "threads"]);
    for curve in &mut plot.curves {
        curve.name = curve.name.replace(", 1", ", 1 thread").replace(", 2", ", 2 threads");
    }
    section.plots.push(plot);
    section.tables.push(table);
    let of = medium.word();
    let worst = least.into_iter().fold(f64::NAN, f64::max);
    let what = format!("{of}: kernels, time of sealing to decrypting and encrypting the pages, worst");
    section.goals.push(Goal::at_most(what, Unit::Ratio, 1.25, worst));
    let what = format!("{of}: accuracy of the prediction, worst kernel");
    section.goals.push(Goal::at_least(what, Unit::Ratio, 0.9, accuracy));
    let what = format!("{of}: coverage of the prediction, worst kernel");
    section.goals.push(Goal::at_least(what, Unit::Ratio, 0.9, coverage));
    Ok(())
}
