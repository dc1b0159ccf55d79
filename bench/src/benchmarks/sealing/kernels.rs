//! The papers' computations on cold objects, plain and sealed, at each depth of prediction (S3.8).

use super::computation::{Computation, Outcome, Way};
use super::place::Place;
use super::{DEPTHS, word};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::floor::UnsealFloor;
use crate::kernels::{Convolution, Gauss, Kernel, Lu, Multiply, crew};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::PAGE;
use crate::plot::Plot;
use crate::stats::Spread;
use indelible::PredictionDepth;

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

pub fn on(
    environment: &Environment,
    place: Place<'_>,
    floor: &UnsealFloor,
    section: &mut Section,
) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)).collect();
    let repeats = if environment.quick || environment.paper_sizes { 1 } else { 3 };
    let ways: Vec<Way> = std::iter::once(Way::Plain).chain(DEPTHS.map(Way::Sealed)).collect();
    let path = place.path(environment, "sealing-kernel");
    let kernels = kernels(environment);
    let kernels = environment.some(&kernels, 1);
    let bar = progress(
        kernels.len() * threads.len() * ways.len() * repeats,
        &format!("sealed kernels, {}", place.word()),
    );
    let mut table = Table::new(format!("Kernels on cold sealed objects on {}", place.word()), &COLUMNS);
    let (page, mut least, mut accuracy, mut coverage) = (floor.page(), Vec::new(), f64::NAN, f64::NAN);
    for kernel in kernels {
        for threads in &threads {
            let crew = crew(*threads)?;
            let compute = |options, way| Computation {
                path: &path,
                options,
                way,
                shadow: None,
                kernel: &**kernel,
                crew: &crew,
            };
            let mut outcomes: Vec<Outcome> = ways.iter().map(|_| Outcome::default()).collect();
            for _ in 0..repeats {
                for (way, outcome) in ways.iter().zip(&mut outcomes) {
                    let options = place.options(way.depth().unwrap_or_default());
                    compute(options, *way).run(outcome)?;
                    bar.inc(1);
                }
            }
            if let Some(wrong) = outcomes.iter().position(|outcome| outcome.result != outcomes[0].result) {
                return Err(format!("{}: {:?} computed otherwise", kernel.name(), ways[wrong]).into());
            }
            let measuring = place.options(PredictionDepth::Auto).measure_prediction(true);
            let way = Way::Sealed(PredictionDepth::Auto);
            let measured = compute(measuring, way).run(&mut Outcome::default())?;
            accuracy = accuracy.min(measured.accuracy().unwrap_or(f64::NAN));
            coverage = coverage.min(measured.coverage().unwrap_or(f64::NAN));
            let plain = outcomes[0].time.median();
            for (way, outcome) in ways.iter().zip(&outcomes) {
                let over = (outcome.time.median() - plain) / (outcome.bytes / PAGE as f64 * page);
                let is_auto = *way == Way::Sealed(PredictionDepth::Auto);
                if is_auto {
                    least.push(over);
                }
                let part = |part: Option<f64>| part.filter(|_| is_auto).map_or(Cell::Empty, Cell::from);
                let sealed = *way != Way::Plain;
                table.row(vec![
                    kernel.name().as_str().into(),
                    (*threads as u64).into(),
                    if sealed { "sealed" } else { "plain" }.into(),
                    way.depth().map_or(Cell::Empty, |depth| word(depth).as_str().into()),
                    match way {
                        Way::Sealed(PredictionDepth::Pages(pages)) => (u64::from(*pages) + 1).into(),
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
    let file = format!("sealing-kernels-{}", place.short());
    let mut plot = Plot::of(&table, &file, "pages of a window", "to plain", &["kernel", "threads"]);
    for curve in &mut plot.curves {
        curve.name = curve.name.replace(", 1", ", 1 thread").replace(", 2", ", 2 threads");
    }
    section.plots.push(plot);
    section.tables.push(table);
    let of = place.word();
    let worst = least.into_iter().fold(f64::NAN, f64::max);
    let what = format!("{of}: kernels, time of sealing to decrypting and encrypting the pages, worst");
    section.goals.push(Goal::at_most(what, Unit::Ratio, 1.25, worst));
    let what = format!("{of}: accuracy of the prediction, worst kernel");
    section.goals.push(Goal::at_least(what, Unit::Ratio, 0.9, accuracy));
    let what = format!("{of}: coverage of the prediction, worst kernel");
    section.goals.push(Goal::at_least(what, Unit::Ratio, 0.9, coverage));
    Ok(())
}
