//! Programs on a mounted volume beside the same programs on the medium's own file system.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::files::Side;
use crate::files::work::{self, Sources};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use std::time::Duration;

const READS: usize = 2_000;

/// Work in the order of the table; the goal is of the native time to the mounted volume's.
const WORK: [(&str, Option<f64>); 6] = [
    ("10 files of 3 KB, durable", Some(5.0)),
    ("1 file of 3 KB, durable", None),
    ("read of 4 KiB, cached", Some(0.95)),
    ("tar x, then sync", Some(1.0)),
    ("git clone", Some(0.8)),
    ("git status", Some(0.8)),
];

const NOTES: [&str; 3] = [
    "Both folders lie on the same medium, and take turns. Durable files: the benchmark creates and writes all, fsyncs each, \
     renames all, and fsyncs the folder. It compares each result with the bytes that were written.",
    "sync of a mounted volume is fsync of its folder, of the other file system syncfs. tmpfs makes nothing durable.",
    "Not measured: a build with make, and reads by a preload library, which does not exist.",
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        // Machines without FUSE, and builds of this program alone, measure nothing.
        match Side::mounted(environment, medium) {
            Ok(mounted) => on(environment, medium, mounted, section)?,
            Err(error) => section.notes.push(format!("{}: not measured: {error}", medium.word())),
        }
    }
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

type Times = [Samples; WORK.len()];

fn on(environment: &Environment, medium: Medium, mounted: Side, section: &mut Section) -> Result<()> {
    let sides = [mounted, Side::plain(environment, medium)?];
    let files = match (environment.smoke, environment.quick) {
        (true, _) => 20,
        (_, true) => 400,
        _ => 2_000,
    };
    let sources = Sources::new(environment.path(Medium::Memory, "files-sources"), files)?;
    let mut times = [(); 2].map(|()| Times::default());
    let rounds = if environment.smoke { 1 } else { 5 };
    let bar = progress(rounds * 2, &format!("files, {}", medium.word()));
    for _ in 0..rounds {
        for (side, times) in sides.iter().zip(&mut times) {
            programs(environment, side, &sources, times)?;
            bar.inc(1);
        }
    }
    calls(environment, &sides, &mut times)?;
    bar.finish_and_clear();
    show(medium, &sides, &sources, &times, section);
    sources.remove()?;
    sides.into_iter().try_for_each(Side::remove)
}

fn programs(environment: &Environment, side: &Side, sources: &Sources, times: &mut Times) -> Result<()> {
    let clock = &environment.clock;
    let (took, done) = clock.time(|| sources.unpack(side));
    done?;
    times[3].push(took);
    sources.check_unpacked(side)?;
    let (took, done) = clock.time(|| sources.clone_into(side));
    done?;
    times[4].push(took);
    sources.status(side)?; // the first one may write the index
    let (took, done) = clock.time(|| sources.status(side));
    done?;
    times[5].push(took);
    sources.remove_clone(side)?;
    side.sync()
}

fn calls(environment: &Environment, sides: &[Side; 2], times: &mut [Times; 2]) -> Result<()> {
    let files = [work::file_to_read(&sides[0].dir)?, work::file_to_read(&sides[1].dir)?];
    sides.iter().try_for_each(Side::sync)?;
    let budget = environment.budget(Duration::from_secs(20), Duration::from_millis(800));
    let mut round = 0;
    while budget.allows(round, 2) {
        for (at, side) in sides.iter().enumerate() {
            for (which, count) in [(0, 10), (1, 1)] {
                let (took, done) = environment.clock.time(|| work::durable_files(&side.dir, count, round));
                done?;
                times[at][which].push(took);
                work::check_durable_files(&side.dir, count, round)?;
            }
            let (took, done) = environment.clock.time(|| work::cached_reads(&files[at], READS));
            done?;
            times[at][2].push(took / READS as f64);
        }
        round += 1;
    }
    Ok(())
}

fn show(medium: Medium, sides: &[Side; 2], sources: &Sources, times: &[Times; 2], section: &mut Section) {
    let columns =
        [("", Unit::Text), ("on", Unit::Text), ("time", Unit::Nanoseconds), ("speed to native", Unit::Ratio)];
    let title = format!(
        "Files on {}: a tree of {} files, {} KiB",
        medium.word(),
        sources.files,
        sources.bytes / 1024
    );
    let mut table = Table::new(title, &columns);
    for (at, (name, limit)) in WORK.into_iter().enumerate() {
        let native = times[1][at].median();
        for (side, times) in sides.iter().zip(times) {
            let time = times[at].spread().map_or(Cell::Empty, Spread::into);
            table.row(vec![
                name.into(),
                side.name.as_str().into(),
                time,
                (native / times[at].median()).into(),
            ]);
        }
        if let Some(limit) = limit.filter(|_| medium == Medium::File || at > 1) {
            let what = format!("files on {}, {name}: speed to native", medium.word());
            section.goals.push(Goal::at_least(what, Unit::Ratio, limit, native / times[0][at].median()));
        }
    }
    section.tables.push(table);
}
