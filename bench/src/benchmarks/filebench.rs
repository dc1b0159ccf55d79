//! Filebench's FileServer, VarMail, WebProxy and WebServer with objects as files (S0.32).

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::file_backends::{Contestant, DRAM, FILES, FileBackend, IN_PLACE, OWN, Place, all};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::personalities::{ALL, Actor, Journal, KINDS, Meter, Personality};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use indicatif::ProgressBar;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: [usize; 2] = [1, 2];
const SPACE: u64 = 2 << 30;
const LOG: usize = 16 << 10;
const LIMIT: f64 = 1.05;

const COLUMNS: [(&str, Unit); 9] = [
    ("personality", Unit::Text),
    ("threads", Unit::Count),
    ("", Unit::Text),
    ("atomic", Unit::Text),
    ("operations", Unit::PerSecond),
    ("time to in place", Unit::Ratio),
    ("time to files, fsync", Unit::Ratio),
    ("time to DRAM", Unit::Ratio),
    ("turns", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        on(environment, medium, section)?;
    }
    section.notes.extend(NOTES.map(str::to_owned));
    let files = ALL.iter().map(|one| {
        let (published, here) = (one.published, one.files());
        format!("{} {here} files of {published} as published", one.name)
    });
    section.notes.push(format!(
        "Scaled: {}; sizes of files and appends are those published.",
        files.collect::<Vec<_>>().join(", ")
    ));
    Ok(())
}

const NOTES: [&str; 4] = [
    "An operation is a flowop of Filebench: create, write or append, open, read whole, close, delete, stat; each update is \
     durable when it returns. All do the same, from the same seed, and each read is compared with the bytes that were \
     written; at the end all files are read and compared again.",
    "in place: mapped files; lines written back and fenced, on the disk msync: a crash leaves anything (the NCC of the papers). \
     files, fsync: pwrite and fsync at each update. copy and rename: a new file at each update, synced, renamed, the folder \
     synced. atomic: a crash leaves each file as one update left it.",
    "Names of new files and deletions are durable with Indelible when the call returns; with files some time later, or with \
     the next fsync.",
    "Threads have files of their own; WebServer's log is one for all, appended to under a lock (the papers put barriers around \
     each psync).",
];

struct Outcome {
    contestant: &'static Contestant,
    rate: Samples,
    meter: Meter,
}

fn on(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let mut table = Table::new(format!("Filebench on {}", medium.word()), &COLUMNS);
    let mut columns = vec![("personality", Unit::Text), ("", Unit::Text)];
    columns.extend(KINDS.map(|kind| (kind, Unit::Nanoseconds)));
    let mut kinds =
        Table::new(format!("Operations of Filebench on {}, 1 thread, mean", medium.word()), &columns);
    let bar = progress(ALL.len() * THREADS.len(), &format!("filebench, {}", medium.word()));
    let (mut losses, mut leads) = (Vec::new(), Vec::new());
    for personality in &ALL {
        for threads in THREADS {
            let outcomes = compete(environment, medium, personality, threads, &bar)?;
            let of = |wanted: &Contestant| {
                let found = outcomes.iter().find(|outcome| outcome.contestant.name == wanted.name);
                found.map_or(f64::NAN, |outcome| 1.0 / outcome.rate.median())
            };
            for outcome in &outcomes {
                let to = |partner: &Contestant| Cell::from(of(outcome.contestant) / of(partner));
                table.row(vec![
                    personality.name.into(),
                    (threads as u64).into(),
                    outcome.contestant.name.into(),
                    if outcome.contestant.atomic { "yes" } else { "no" }.into(),
                    outcome.rate.spread().map_or(Cell::Empty, Spread::into),
                    to(&IN_PLACE),
                    to(&FILES),
                    to(&DRAM),
                    (outcome.rate.len() as u64).into(),
                ]);
                if threads == 1 {
                    kinds.row(breakdown(personality, outcome));
                }
            }
            losses.push(of(&OWN) / of(&IN_PLACE));
            leads.push(of(&OWN) / of(&FILES));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    plot(&table, medium, section);
    section.tables.push(table);
    section.tables.push(kinds);
    let word = medium.word();
    let what = format!("filebench on {word}: time to that in place, geometric mean");
    section.goals.push(Goal::at_most(what, Unit::Ratio, LIMIT, geometric_mean(&losses)));
    if medium == Medium::File {
        let what = format!("filebench on {word}: time to that of files with fsync, geometric mean");
        section.goals.push(Goal::at_most(what, Unit::Ratio, 1.0, geometric_mean(&leads)));
    }
    Ok(())
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn breakdown(personality: &Personality, outcome: &Outcome) -> Vec<Cell> {
    let mut cells = vec![personality.name.into(), outcome.contestant.name.into()];
    cells.extend((0..KINDS.len()).map(|kind| outcome.meter.mean(kind).map_or(Cell::Empty, f64::into)));
    cells
}

fn plot(table: &Table, medium: Medium, section: &mut Section) {
    let file = format!("filebench-{}", medium.short());
    let mut plot = Plot::of(table, &file, "threads", "time to in place", &["personality", ""])
        .only(|name| name.ends_with(", indelible") || name.ends_with(", files, fsync"))
        .titled(format!("Filebench on {}: time to that in place", medium.word()));
    plot.curves.sort_by_key(|curve| !curve.name.ends_with(", indelible"));
    section.plots.push(plot);
}

fn rounds(environment: &Environment, medium: Medium, personality: &Personality) -> usize {
    let full = match (medium, personality.name) {
        // Its log must stay small, or copying it dominates.
        (_, "WebServer") => 60,
        (Medium::Memory, "FileServer") => 400,
        (Medium::Memory, _) => 1_000,
        (Medium::File, _) => 60,
    };
    if environment.quick { full / 10 } else { full }
}

struct Runner<'v> {
    backend: &'v dyn FileBackend,
    actors: Vec<Actor>,
    log: Option<Journal<'v>>,
    outcome: Outcome,
}

fn compete(
    environment: &Environment,
    medium: Medium,
    personality: &'static Personality,
    threads: usize,
    bar: &ProgressBar,
) -> Result<Vec<Outcome>> {
    let dir = environment.path(medium, "filebench");
    let mut backends = Vec::new();
    for contestant in all() {
        let own = dir.join(contestant.name);
        std::fs::create_dir_all(&own)?;
        backends.push((contestant, (contestant.open)(&Place { medium, dir: &own, len: SPACE })?));
    }
    let mut runners = Vec::new();
    for (contestant, backend) in &backends {
        let runner = Runner::new(contestant, &**backend, personality, threads);
        runners.push(runner.map_err(|error| format!("{}: {error}", contestant.name))?);
        bar.tick();
    }
    let rounds = rounds(environment, medium, personality);
    let turns = match (environment.smoke, environment.quick) {
        (true, _) => 1,
        (_, true) => 2,
        _ => 7,
    };
    for turn in 0..=turns {
        for runner in &mut runners {
            let rate = runner.turn(rounds);
            let rate = rate.map_err(|error| format!("{}: {error}", runner.outcome.contestant.name))?;
            if turn > 0 {
                runner.outcome.rate.push(rate);
            } else {
                runner.actors.iter_mut().for_each(|actor| actor.meter = Meter::default());
            }
            bar.tick();
        }
    }
    let mut outcomes = Vec::new();
    for runner in runners {
        let name = runner.outcome.contestant.name;
        outcomes.push(runner.end().map_err(|error| format!("{name}: {error}"))?);
    }
    drop(backends);
    std::fs::remove_dir_all(&dir)?;
    Ok(outcomes)
}

impl<'v> Runner<'v> {
    fn new(
        contestant: &'static Contestant,
        backend: &'v dyn FileBackend,
        personality: &'static Personality,
        threads: usize,
    ) -> Result<Self> {
        let mut actors: Vec<Actor> =
            (0..threads).map(|thread| Actor::new(personality, thread, threads)).collect();
        actors.iter_mut().try_for_each(|actor| actor.populate(backend))?;
        let log = personality.log.then(|| Journal::create(backend, LOG)).transpose()?;
        let outcome = Outcome { contestant, rate: Samples::default(), meter: Meter::default() };
        Ok(Runner { backend, actors, log, outcome })
    }

    fn turn(&mut self, rounds: usize) -> Result<f64> {
        let ready = Barrier::new(self.actors.len());
        let (ready, backend, log) = (&ready, self.backend, self.log.as_ref());
        let before: u64 = self.actors.iter().map(|actor| actor.meter.operations()).sum();
        let mut slowest = Duration::ZERO;
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .actors
                .iter_mut()
                .map(|actor| {
                    scope.spawn(move || {
                        ready.wait();
                        let start = Instant::now();
                        (0..rounds).try_for_each(|_| actor.round(backend, log))?;
                        Ok::<Duration, crate::Error>(start.elapsed())
                    })
                })
                .collect();
            for thread in threads {
                slowest = slowest.max(thread.join().map_err(|_| "a thread panicked")??);
            }
            Ok::<(), crate::Error>(())
        })?;
        let after: u64 = self.actors.iter().map(|actor| actor.meter.operations()).sum();
        Ok((after - before) as f64 / slowest.as_secs_f64())
    }

    fn end(mut self) -> Result<Outcome> {
        if let Some(log) = self.log {
            log.verify(self.backend)?;
        }
        for actor in &mut self.actors {
            actor.verify(self.backend)?;
            self.outcome.meter += actor.meter;
        }
        Ok(self.outcome)
    }
}
