//! The papers' computations (S0.31, S3.8), synced several times a second.

mod case;

use crate::Result;
use crate::array_backends::{ALL, DRAM, PARTS};
use crate::environment::{Environment, Medium, progress};
use crate::kernels::{Convolution, Gauss, Kernel, Lu, Multiply, crew};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use case::{Case, Ran};
use std::collections::BTreeMap;

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

const PROFILE: [(&str, Unit); 17] = [
    ("kernel", Unit::Text),
    ("threads", Unit::Count),
    ("syncs a second", Unit::Count),
    ("steps, to in place", Unit::Ratio),
    ("faults in them", Unit::Count),
    ("a sync", Unit::Nanoseconds),
    (PARTS[0], Unit::Nanoseconds),
    (PARTS[1], Unit::Nanoseconds),
    (PARTS[2], Unit::Nanoseconds),
    (PARTS[3], Unit::Nanoseconds),
    (PARTS[4], Unit::Nanoseconds),
    (PARTS[5], Unit::Nanoseconds),
    ("rest", Unit::Nanoseconds),
    ("compared", Unit::Count),
    ("changed", Unit::Count),
    ("logged", Unit::Bytes),
    ("a changed page", Unit::Nanoseconds),
];

fn kernels(environment: &Environment) -> Vec<Box<dyn Kernel>> {
    if environment.paper_sizes {
        return vec![
            Box::new(Lu::new(3584)),
            Box::new(Convolution::new(4096, 128, 2_000)),
            Box::new(Multiply::new(3072)),
            Box::new(Gauss::new(3584)),
        ];
    }
    if environment.quick {
        return vec![
            Box::new(Lu::new(512)),
            Box::new(Convolution::new(1024, 128, 100)),
            Box::new(Multiply::new(512)),
            Box::new(Gauss::new(512)),
        ];
    }
    vec![
        Box::new(Lu::new(2048)),
        Box::new(Convolution::new(4096, 128, 600)),
        Box::new(Multiply::new(1536)),
        Box::new(Gauss::new(1536)),
    ]
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.max(2)).collect();
    let mut missing = BTreeMap::new();
    for medium in Medium::ALL {
        on(environment, medium, &threads, section, &mut missing)?;
    }
    section.notes.extend(missing.iter().map(|(name, why)| format!("{name}: not measured everywhere. {why}")));
    section.notes.push(
        "Each array is an object; a sync comes at the end of a step of the outer loop, once the time between two \
         syncs has passed, and at the end. Filling the arrays is not measured. The results of all were compared and \
         are equal, bit for bit."
            .into(),
    );
    section.notes.push(
        "in place: mapped files whose touched pages are written back line by line and fenced, on the disk msync; a \
         crash leaves anything (the NCC of the papers). libpmemobj: what lies between two syncs is one transaction, \
         which is given each page before the first step that stores to it. copy and rename: all arrays to a new \
         file, synced, renamed. \
         pages a sync: pages that the steps between two syncs store to."
            .into(),
    );
    section.notes.push(
        "Where the time goes: steps are what is not in syncs: computing, and with it page faults, colder caches, \
         threads that wait. Below a sync are the core's own counters: load is what was never psynced before, log is \
         writing the batch and its barrier; rest is \
         the time of a sync in none of them, such as making room for a larger lane once. compared and changed \
         are pages."
            .into(),
    );
    section.notes.push(
        if environment.paper_sizes {
            "Sizes are those of the paper (S0.31), Gauss as LU."
        } else {
            "Sizes are smaller than the paper's, so that a run takes minutes: run kernels --paper-sizes has those."
        }
        .into(),
    );
    section.notes.push(format!("This machine has {cores} cores; more threads were not tried."));
    Ok(())
}

fn on(
    environment: &Environment,
    medium: Medium,
    threads: &[usize],
    section: &mut Section,
    missing: &mut BTreeMap<&'static str, String>,
) -> Result<()> {
    let rates: &[u32] = if medium == Medium::File || environment.quick { &RATES[2..] } else { &RATES };
    let repeats = if environment.quick || environment.paper_sizes || medium == Medium::File { 1 } else { 3 };
    let kernels = kernels(environment);
    let turns = kernels.len() * threads.len() * repeats * (1 + rates.len() * ALL.len());
    let bar = progress(turns, &format!("kernels, {}", medium.word()));
    let mut table = Table::new(format!("Kernels on {}", medium.word()), &COLUMNS);
    let mut profile = Table::new(format!("Where the time of indelible goes, {}", medium.word()), &PROFILE);
    let mut losses: Vec<(u32, f64)> = Vec::new();
    for kernel in &kernels {
        for threads in threads {
            let crew = crew(*threads)?;
            let mut cases = vec![Case::new(&DRAM, 0)];
            cases.extend(rates.iter().flat_map(|rate| ALL.iter().map(|one| Case::new(one, *rate))));
            let mut expected = None;
            for _ in 0..repeats {
                for case in &mut cases {
                    bar.inc(1);
                    let name = case.contestant.name;
                    let result = match case.run(environment, medium, &**kernel, &crew) {
                        Ok(Ran::Result(result)) => result,
                        Ok(Ran::Missing(why)) => {
                            missing.insert(name, why);
                            continue;
                        }
                        Err(error) => return Err(format!("{}, {name}: {error}", kernel.name()).into()),
                    };
                    if *expected.get_or_insert(result) != result {
                        return Err(format!("{}: {name} computed otherwise", kernel.name()).into());
                    }
                }
            }
            cases.retain(|case| case.time.len() > 0);
            report(&**kernel, *threads, &cases, &mut table, &mut losses);
            explain(&**kernel, *threads, &cases, &mut profile);
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
    section.tables.push(profile);
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

fn explain(kernel: &dyn Kernel, threads: usize, cases: &[Case], table: &mut Table) {
    for case in cases.iter().filter(|case| case.contestant.name == "indelible") {
        let partner =
            cases.iter().find(|other| other.contestant.name == ALL[0].name && other.rate == case.rate);
        let sync = (case.time.median() - case.steps.median()) / case.syncs.median();
        let parts = case.parts.iter().map(|part| part.median());
        let [compared, changed, logged] = [0, 1, 2].map(|at| case.work[at].median());
        let mut row: Vec<Cell> = vec![
            kernel.name().as_str().into(),
            (threads as u64).into(),
            u64::from(case.rate).into(),
            partner.map_or(Cell::Empty, |partner| (case.steps.median() / partner.steps.median()).into()),
            case.faults.median().into(),
            sync.into(),
        ];
        row.extend(parts.clone().map(Cell::from));
        row.extend(
            [(sync - parts.sum::<f64>()).max(0.0), compared, changed, logged, sync / changed].map(Cell::from),
        );
        table.row(row);
    }
}
