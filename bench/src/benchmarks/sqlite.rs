//! SQLite with its database in an object beside native SQLite: transactions, threads, queries.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::sqlite::beside::Writer;
use crate::sqlite::queries::{self, Numbers};
use crate::sqlite::{Mode, ycsb};
use crate::stats::{Samples, Spread};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DATABASES: usize = 8;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        transactions(environment, medium, section)?;
    }
    for medium in Medium::ALL {
        threads(environment, medium, section)?;
    }
    for medium in Medium::ALL {
        beside(environment, medium, section)?;
    }
    for medium in Medium::ALL {
        numbers(environment, medium, section)?;
    }
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 5] = [
    "Each operation is a transaction of its own, of one connection in this process; all have SQLite's own settings \
     but for the mode. The modes take turns, and make the same operations in the same order; at the end their rows \
     are compared, and each database passes integrity_check.",
    "Rows have values of 1,000 bytes. A to F are YCSB's: keys by Zipf's law with 0.99, scans of up to 100 rows.",
    "tickets: commits return before they are durable; the time includes a wait until all of a turn's commits are.",
    "Beside a writer: a process commits an update, and this one looks up another row, twice. The first look-up finds \
     that the database has changed, and SQLite forgets the pages that it keeps.",
    "default journal, mmap is the papers' native SQLite. WAL, NORMAL loses commits at a power cut.",
];

fn folder(environment: &Environment, medium: Medium, name: &str, mode: Mode) -> Result<PathBuf> {
    let path = environment.path(medium, &format!("sqlite-{name}-{}", mode.word().replace(' ', "-")));
    std::fs::create_dir(&path)?;
    Ok(path)
}

fn cell(samples: &Samples) -> Cell {
    samples.spread().map_or(Cell::Empty, Spread::into)
}

fn turn(environment: &Environment, medium: Medium, workload: &ycsb::Workload) -> usize {
    let full = if medium == Medium::File { 100 } else { 1_000 };
    let few = if workload.name.starts_with('E') { full / 4 } else { full };
    if environment.smoke { 5 } else { few }
}

fn transactions(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let title = format!("Transactions, {}", medium.word());
    let rows = match (environment.smoke, environment.quick) {
        (true, _) => 100,
        (_, true) => 2_000,
        _ => 20_000,
    };
    let bar = progress(ycsb::ALL.len() + Mode::ALL.len(), &format!("sqlite, {title}"));
    let mut tables = Vec::new();
    for mode in Mode::ALL {
        tables.push(ycsb::Table::load(mode, &folder(environment, medium, "ycsb", mode)?, rows)?);
        bar.inc(1);
    }
    let columns = [
        ("workload", Unit::Text),
        ("", Unit::Text),
        ("an operation", Unit::Nanoseconds),
        ("to indelible", Unit::Ratio),
        ("operations", Unit::Count),
    ];
    let mut shown = Table::new(format!("{title}: {rows} rows at first"), &columns);
    for workload in &ycsb::ALL {
        let count = turn(environment, medium, workload);
        let mut samples = [(); Mode::ALL.len()].map(|()| Samples::default());
        let budget = environment.budget(Duration::from_secs(8), Duration::from_millis(400));
        let mut done = 0;
        while budget.allows(done, 4) {
            for (table, samples) in tables.iter_mut().zip(&mut samples) {
                let (took, result) = environment.clock.time(|| table.run(workload, count));
                result.map_err(|error| format!("{}: {error}", table.mode.word()))?;
                if done > 0 {
                    samples.push(took / count as f64);
                }
            }
            done += 1;
        }
        for (mode, of) in Mode::ALL.iter().zip(&samples) {
            shown.row(vec![
                workload.name.into(),
                mode.word().into(),
                cell(of),
                (of.median() / samples[0].median()).into(),
                ((of.len() * count) as u64).into(),
            ]);
        }
        section.goals.extend(goals(medium, workload.name, &samples));
        bar.inc(1);
    }
    let sums: Vec<i64> = tables.iter().map(ycsb::Table::sum).collect::<Result<_>>()?;
    if sums.iter().any(|sum| *sum != sums[0]) {
        return Err(format!("{title}: the rows differ: {sums:?}").into());
    }
    section.tables.push(shown);
    drop(tables);
    clear(environment, medium, "ycsb")
}

fn clear(environment: &Environment, medium: Medium, name: &str) -> Result<()> {
    for mode in Mode::ALL {
        let path = environment.path(medium, &format!("sqlite-{name}-{}", mode.word().replace(' ', "-")));
        if path.exists() {
            std::fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

fn goals(medium: Medium, workload: &str, samples: &[Samples]) -> Vec<Goal> {
    let at = |mode: Mode| Mode::ALL.iter().position(|other| *other == mode).unwrap_or(0);
    let to = |mode: Mode| samples[at(mode)].median() / samples[at(Mode::Object)].median();
    let (mapped, wal) = match (medium, workload.chars().next()) {
        (Medium::File, _) => (5.0, 1.0),
        (_, Some('B' | 'C' | 'D')) => (2.0, 2.0),
        (_, Some('E')) => (1.1, 2.0),
        _ => (2.9, 2.0),
    };
    let what = |mode: Mode| format!("{}, {workload}: {} to indelible", medium.word(), mode.word());
    [(Mode::JournalMapped, mapped), (Mode::Wal, wal)]
        .into_iter()
        .map(|(mode, limit)| Goal::at_least(what(mode), Unit::Ratio, limit, to(mode)))
        .collect()
}

fn threads(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let modes = [Mode::Object, Mode::Tickets, Mode::Wal];
    let rounds = if environment.quick { 3 } else { 9 };
    let rows = if environment.smoke { 50 } else { 1_000 };
    let slice = Duration::from_millis(if environment.quick { 80 } else { 500 });
    let bar = progress(rounds * modes.len(), &format!("sqlite, threads, {}", medium.word()));
    let mut samples = [(); 3].map(|()| Samples::default());
    let mut tables: Vec<Vec<ycsb::Table>> = Vec::new();
    for mode in modes {
        let base = folder(environment, medium, "threads", mode)?;
        let all = (0..DATABASES).map(|at| {
            let own = base.join(at.to_string());
            std::fs::create_dir(&own)?;
            ycsb::Table::load_as(mode, if mode.is_own() { &base } else { &own }, &format!("{at}.db"), rows)
        });
        tables.push(all.collect::<Result<_>>()?);
    }
    let update = &ycsb::UPDATES;
    for round in 0..=rounds {
        for (tables, samples) in tables.iter_mut().zip(&mut samples) {
            let begin = Instant::now();
            let done = std::thread::scope(|scope| -> Result<usize> {
                let each = |table| {
                    scope.spawn(move || -> std::result::Result<usize, String> {
                        let table: &mut ycsb::Table = table;
                        let mut done = 0;
                        while begin.elapsed() < slice {
                            table.step_often(update, 10).map_err(|error| error.to_string())?;
                            done += 10;
                        }
                        table.run(update, 0).map_err(|error| error.to_string())?;
                        Ok(done)
                    })
                };
                let running: Vec<_> = tables.iter_mut().map(each).collect();
                let ends = running.into_iter().map(|thread| -> Result<usize> {
                    match thread.join() {
                        Ok(done) => done.map_err(Into::into),
                        Err(_) => Err("a thread panicked".into()),
                    }
                });
                ends.sum()
            })?;
            if round > 0 {
                samples.push(done as f64 / begin.elapsed().as_secs_f64());
            }
            bar.inc(1);
        }
    }
    let columns = [("", Unit::Text), ("commits a second", Unit::PerSecond), ("to WAL", Unit::Ratio)];
    let title = format!("Updates of {DATABASES} databases on as many threads, {}", medium.word());
    let mut shown = Table::new(title, &columns);
    for (mode, of) in modes.iter().zip(&samples) {
        let ratio = of.median() / samples[2].median();
        shown.row(vec![mode.word().into(), cell(of), ratio.into()]);
        let limit = if *mode == Mode::Object { 1.5 } else { 4.0 };
        if mode.is_own() && medium == Medium::File {
            let what = format!("{}, {DATABASES} databases: {} to WAL", medium.word(), mode.word());
            section.goals.push(Goal::at_least(what, Unit::Ratio, limit, ratio));
        }
    }
    section.tables.push(shown);
    drop(tables);
    clear(environment, medium, "threads")
}

fn beside(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let modes = [Mode::Object, Mode::Wal];
    let (rows, rounds) = match (environment.smoke, environment.quick) {
        (true, _) => (100, 5),
        (_, true) => (2_000, 100),
        _ => (56_000, 1_000),
    };
    let columns = [
        ("", Unit::Text),
        ("a look-up after a commit", Unit::Nanoseconds),
        ("the next one", Unit::Nanoseconds),
        ("between them", Unit::Nanoseconds),
    ];
    let title = format!("A look-up after another process's commit, {rows} rows, {}", medium.word());
    let mut shown = Table::new(title, &columns);
    let bar = progress(modes.len(), &format!("sqlite, beside, {}", medium.word()));
    for mode in modes {
        let folder = folder(environment, medium, "beside", mode)?;
        let table = ycsb::Table::load(mode, &folder, rows)?;
        let mut writer = Writer::start(mode, &folder)?;
        let (mut first, mut next) = (Samples::default(), Samples::default());
        for round in 0..=rounds {
            writer.change(1 + round * 7919 % (rows - 1))?;
            for samples in [&mut first, &mut next] {
                let (took, result) = environment.clock.time(|| table.look_up(0));
                result?;
                if round > 0 {
                    samples.push(took);
                }
            }
        }
        writer.end()?;
        let between = first.median() - next.median();
        shown.row(vec![mode.word().into(), cell(&first), cell(&next), between.into()]);
        if mode == Mode::Object {
            let what = format!("{}, a look-up after a commit to the next one: longer by", medium.word());
            section.goals.push(Goal::at_most(what, Unit::Nanoseconds, 10_000.0, between));
        }
        bar.inc(1);
    }
    section.tables.push(shown);
    clear(environment, medium, "beside")
}

fn numbers(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let modes = [Mode::Object, Mode::Wal, Mode::JournalMapped];
    let (count, rounds) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 1),
        (_, true) => (50_000, 2),
        _ => (1_000_000, 5),
    };
    let bar = progress(rounds * queries::ALL.len(), &format!("sqlite, queries, {}", medium.word()));
    let mut samples: Vec<[Samples; 3]> =
        queries::ALL.iter().map(|_| [(); 3].map(|()| Samples::default())).collect();
    let mut tables = Vec::new();
    for mode in modes {
        tables.push(Numbers::open(mode, &folder(environment, medium, "numbers", mode)?, count)?);
    }
    for _ in 0..rounds {
        for (query, samples) in queries::ALL.iter().zip(&mut samples) {
            let mut results = Vec::new();
            for (table, samples) in tables.iter_mut().zip(samples) {
                let (took, result) = environment.clock.time(|| table.run(query));
                results.push(result.map_err(|error| format!("{}, {query}: {error}", table.mode.word()))?);
                samples.push(took);
            }
            if results.iter().any(|result| *result != results[0]) {
                return Err(format!("{query}: the results differ: {results:?}").into());
            }
            bar.inc(1);
        }
    }
    let columns = [
        ("query", Unit::Text),
        ("", Unit::Text),
        ("it takes", Unit::Nanoseconds),
        ("to indelible", Unit::Ratio),
    ];
    let mut shown = Table::new(format!("Queries over {count} numbers, {}", medium.word()), &columns);
    for (query, samples) in queries::ALL.iter().zip(&samples) {
        for (mode, of) in modes.iter().zip(samples) {
            let ratio = of.median() / samples[0].median();
            shown.row(vec![(*query).into(), mode.word().into(), cell(of), ratio.into()]);
        }
        let limit = match *query {
            "probe" => 2.9,
            "mean" | "find" => 1.2,
            _ => 1.0,
        };
        let value = samples[2].median() / samples[0].median();
        let what = format!("{}, {query}: default journal, mmap to indelible", medium.word());
        section.goals.push(Goal::at_least(what, Unit::Ratio, limit, value));
    }
    section.tables.push(shown);
    drop(tables);
    clear(environment, medium, "numbers")
}
