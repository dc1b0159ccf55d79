//! The papers' computations (S0.31, S3.8), made durable some times a second.

use crate::Result;
use crate::ground::{Ground, Medium, progress};
use crate::keepers::{ALL, Contestant, DRAM, Keeper, Place, Touched};
use crate::kernels::{Convolution, Crew, Gauss, Kernel, Lu, Multiply, crew, fingerprint};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use std::time::{Duration, Instant};

/// Syncs a second.
const RATES: [u32; 4] = [1, 2, 4, 10];

const COLUMNS: [(&str, Unit); 10] = [
    ("kernel", Unit::Text),
    ("threads", Unit::Count),
    ("syncs a second", Unit::Count),
    ("", Unit::Text),
    ("atomic", Unit::Text),
    ("time", Unit::Nanoseconds),
    ("to in place", Unit::Ratio),
    ("to DRAM", Unit::Ratio),
    ("syncs", Unit::Count),
    ("pages a sync", Unit::Count),
];

fn kernels(quick: bool) -> Vec<Box<dyn Kernel>> {
    if quick {
        return vec![
            Box::new(Lu::new(512)),
            Box::new(Convolution::new(1024, 128, 100)),
            Box::new(Multiply::new(512)),
            Box::new(Gauss::new(512)),
        ];
    }
    vec![
        Box::new(Lu::new(2048)),
        Box::new(Convolution::new(4096, 128, 2_000)),
        Box::new(Multiply::new(1536)),
        Box::new(Gauss::new(1536)),
    ]
}

pub fn run(ground: &Ground, section: &mut Section) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)).collect();
    for medium in Medium::ALL {
        on(ground, medium, &threads, section)?;
    }
    section.notes.push(
        "Each array is an object; a sync comes at the end of a step of the outer loop, once the time between two \
         syncs has passed, and at the end. Filling the arrays is not measured. The results of all were compared and \
         are equal, bit for bit."
            .into(),
    );
    section.notes.push(
        "in place: mapped files whose touched pages are written back line by line and fenced, on the disk msync; a \
         crash leaves anything (the NCC of the papers). copy and rename: all arrays to a new file, synced, renamed. \
         pages a sync: pages that the steps between two syncs store to."
            .into(),
    );
    section.notes.push(format!("This machine has {cores} cores; more threads were not tried."));
    Ok(())
}

/// One way to run a kernel.
struct Case {
    contestant: &'static Contestant,
    rate: u32,
    time: Samples,
    syncs: Samples,
    pages: Samples,
}

fn on(ground: &Ground, medium: Medium, threads: &[usize], section: &mut Section) -> Result<()> {
    // A disk's own time is most of it there: two rates tell enough.
    let rates: &[u32] = if medium == Medium::File || ground.quick { &RATES[2..] } else { &RATES };
    let repeats = if ground.quick { 1 } else { 2 };
    let kernels = kernels(ground.quick);
    let turns = kernels.len() * threads.len() * repeats * (1 + rates.len() * ALL.len());
    let bar = progress(turns, &format!("kernels, {}", medium.word()));
    let mut table = Table::new(format!("Kernels on {}", medium.word()), &COLUMNS);
    let mut losses: Vec<(u32, f64)> = Vec::new();
    for kernel in &kernels {
        for threads in threads {
            let crew = crew(*threads)?;
            let mut cases = vec![Case::new(&DRAM, 0)];
            cases.extend(rates.iter().flat_map(|rate| ALL.iter().map(|one| Case::new(one, *rate))));
            let mut expected = None;
            for _ in 0..repeats {
                for case in &mut cases {
                    let result = case.run(ground, medium, &**kernel, &crew)?;
                    if *expected.get_or_insert(result) != result {
                        return Err(format!(
                            "{}: {} computed otherwise",
                            kernel.name(),
                            case.contestant.name
                        )
                        .into());
                    }
                    bar.inc(1);
                }
            }
            report(&**kernel, *threads, &cases, &mut table, &mut losses);
        }
    }
    bar.finish_and_clear();
    let file = format!("kernels-{}", medium.short());
    let mut plot = Plot::of(&table, &file, "syncs a second", "to in place", &["kernel", "threads", ""])
        .only(|name| name.ends_with(", indelible"))
        .titled(format!("Kernels on {}: time of indelible to that in place", medium.word()));
    for curve in &mut plot.curves {
        let name = curve.name.trim_end_matches(", indelible");
        curve.name = name.replace(", 1", ", 1 thread").replace(", 2", ", 2 threads");
    }
    section.plots.push(plot);
    section.tables.push(table);
    for (rate, limit) in [(4, 1.05), (10, 1.10)] {
        let logarithms: Vec<f64> =
            losses.iter().filter(|(of, _)| *of == rate).map(|(_, loss)| loss.ln()).collect();
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        let what = format!(
            "kernels on {}, {rate} syncs a second: time to that in place, geometric mean",
            medium.word()
        );
        section.goals.push(Goal::at_most(what, Unit::Ratio, limit, mean));
    }
    Ok(())
}

fn report(
    kernel: &dyn Kernel,
    threads: usize,
    cases: &[Case],
    table: &mut Table,
    losses: &mut Vec<(u32, f64)>,
) {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let dram = cases[0].time.median();
    for case in cases {
        let partner =
            cases.iter().find(|other| other.contestant.name == ALL[0].name && other.rate == case.rate);
        let loss = partner.map(|partner| case.time.median() / partner.time.median());
        if case.contestant.name == "indelible" {
            losses.extend(loss.map(|loss| (case.rate, loss)));
        }
        table.row(vec![
            kernel.name().as_str().into(),
            (threads as u64).into(),
            if case.rate == 0 { Cell::Empty } else { u64::from(case.rate).into() },
            case.contestant.name.into(),
            if case.contestant.atomic { "yes" } else { "no" }.into(),
            cell(&case.time),
            loss.map_or(Cell::Empty, f64::into),
            (case.time.median() / dram).into(),
            if case.rate == 0 { Cell::Empty } else { case.syncs.median().into() },
            if case.rate == 0 { Cell::Empty } else { case.pages.median().into() },
        ]);
    }
}

impl Case {
    fn new(contestant: &'static Contestant, rate: u32) -> Self {
        let samples = Samples::default;
        Case { contestant, rate, time: samples(), syncs: samples(), pages: samples() }
    }

    /// Runs the kernel once, notes the time, and returns what stands for the result.
    fn run(&mut self, ground: &Ground, medium: Medium, kernel: &dyn Kernel, crew: &Crew) -> Result<u64> {
        let dir = ground.path(medium, "kernel");
        std::fs::create_dir(&dir)?;
        let lengths = kernel.lengths();
        let mut keeper = (self.contestant.open)(&Place { medium, dir: &dir }, &lengths)?;
        let mut touched: Vec<Touched> = lengths.iter().map(|len| Touched::new(*len)).collect();
        for (touched, len) in touched.iter_mut().zip(&lengths) {
            touched.add(0..*len);
        }
        kernel.fill(&mut keeper.arrays());
        keeper.sync(&mut touched)?;
        touched.iter_mut().for_each(Touched::clear);
        let (took, syncs, pages) = compute(kernel, crew, self.rate, &mut *keeper, &mut touched)?;
        self.time.push(ground.clock.nanos(took));
        self.syncs.push(syncs as f64);
        self.pages.push(pages as f64 / syncs.max(1) as f64);
        let result = fingerprint(&mut keeper.arrays());
        drop(keeper);
        std::fs::remove_dir_all(&dir)?;
        Ok(result)
    }
}

/// The loop that is measured: time, syncs, pages touched between them.
fn compute(
    kernel: &dyn Kernel,
    crew: &Crew,
    rate: u32,
    keeper: &mut dyn Keeper,
    touched: &mut [Touched],
) -> Result<(Duration, u64, u64)> {
    let between = Duration::from_secs(1).checked_div(rate);
    let (mut syncs, mut pages) = (0, 0);
    let start = Instant::now();
    let mut last = start;
    for step in 0..kernel.steps() {
        kernel.step(step, crew, &mut keeper.arrays());
        let Some(between) = between else { continue };
        kernel.touches(step, &mut |array, range| touched[array].add(range));
        if last.elapsed() >= between || step + 1 == kernel.steps() {
            pages += touched.iter().map(Touched::count).sum::<u64>();
            keeper.sync(touched)?;
            touched.iter_mut().for_each(Touched::clear);
            syncs += 1;
            last = Instant::now();
        }
    }
    Ok((start.elapsed(), syncs, pages))
}
