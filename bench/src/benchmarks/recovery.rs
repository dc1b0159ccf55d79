//! Recovery after a kill, by the fill of the dead writer's lane.
//!
//! Each sample is a crash: one process fills a lane and dies of SIGKILL, another attaches.

use crate::Result;
use crate::child::{OBJECT, Recovered, pages_for};
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::WriteFloor;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::plot::Plot;
use crate::stats::Samples;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const LANES: [u64; 4] = [1 << 20, 8 << 20, 64 << 20, 256 << 20];
const PIECE: u64 = 1 << 20;

const COLUMNS: [(&str, Unit); 9] = [
    ("lane", Unit::Bytes),
    ("a batch", Unit::Text),
    ("replayed", Unit::Bytes),
    ("attach", Unit::Nanoseconds),
    ("of lane", Unit::BytesPerSecond),
    ("reading it", Unit::Nanoseconds),
    ("durable writes of it", Unit::Nanoseconds),
    ("attach/floor", Unit::Ratio),
    ("crashes", Unit::Count),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    Line,
    Pages(u64),
    All,
}

impl Batch {
    const ALL: [Batch; 3] = [Batch::Line, Batch::Pages(16), Batch::All];

    fn word(self) -> String {
        match self {
            Batch::Line => "1 line".into(),
            Batch::Pages(pages) => format!("{pages} pages"),
            Batch::All => "all at once".into(),
        }
    }

    fn pages(self, lane: u64) -> u64 {
        match self {
            Batch::Line => 0,
            Batch::Pages(pages) => pages,
            Batch::All => pages_for(lane),
        }
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        let worst = on(environment, medium, section)?;
        if medium == Medium::Memory {
            let what = "memory: slowest recovery of 8 MiB of lane or more";
            section.goals.push(Goal::at_least(what, Unit::BytesPerSecond, 1e9, worst));
        }
    }
    section.notes.push(
        "attach: the whole attach, in a fresh process. floor: reading as many bytes from the page cache, and on the \
         SSD writing them durably once, since what is visible need not be durable."
            .into(),
    );
    Ok(())
}

fn on(environment: &Environment, medium: Medium, section: &mut Section) -> Result<f64> {
    let (lanes, crashes) = match (environment.quick, medium) {
        (true, _) => (&LANES[..2], 2),
        (false, Medium::Memory) => (&LANES[..], 5),
        (false, Medium::File) => (&LANES[..], 3),
    };
    let mut table = Table::new(format!("Recovery on {}", medium.word()), &COLUMNS);
    let bar = progress(lanes.len() * Batch::ALL.len() * crashes, &format!("recovery, {}", medium.word()));
    let mut worst = f64::INFINITY;
    for lane in lanes {
        for batch in Batch::ALL {
            let row = crash(environment, medium, *lane, batch, crashes, &|| bar.inc(1))?;
            let rate = row.bytes as f64 / row.attach.median() * 1e9;
            if *lane >= 8 << 20 {
                worst = worst.min(rate);
            }
            table.row(row.cells(*lane, batch, rate));
        }
    }
    bar.finish_and_clear();
    let file = format!("recovery-{}", medium.short());
    section.plots.push(Plot::of(&table, &file, "lane", "attach", &["a batch"]));
    section.tables.push(table);
    Ok(worst)
}

#[derive(Default)]
struct Row {
    bytes: u64,
    attach: Samples,
    read: Samples,
    write: Samples,
}

impl Row {
    fn cells(&self, lane: u64, batch: Batch, rate: f64) -> Vec<Cell> {
        let spread = |samples: &Samples| samples.spread().map_or(Cell::Empty, Cell::from);
        let write = if self.write.len() == 0 { 0.0 } else { self.write.median() };
        vec![
            lane.into(),
            Cell::Text(batch.word()),
            self.bytes.into(),
            spread(&self.attach),
            rate.into(),
            spread(&self.read),
            spread(&self.write),
            (self.attach.median() / (self.read.median() + write)).into(),
            (self.attach.len() as u64).into(),
        ]
    }
}

fn crash(
    environment: &Environment,
    medium: Medium,
    lane: u64,
    batch: Batch,
    crashes: usize,
    each: &dyn Fn(),
) -> Result<Row> {
    let size = lane.max(1 << 20);
    let pool = environment.pool(medium, "recovery", 4 * lane + (64 << 20))?;
    pool.create(OBJECT, size)?;
    let path = pool.path().to_owned();
    drop(pool);
    let mut row = Row::default();
    for _ in 0..crashes {
        let (lane_bytes, pages) = (lane.to_string(), batch.pages(lane).to_string());
        let status =
            child(&["fill".as_ref(), path.as_os_str(), lane_bytes.as_ref(), pages.as_ref()])?.status()?;
        if status.signal() != Some(libc::SIGKILL) {
            return Err(format!("the writer was not killed: {status}").into());
        }
        let word = medium.kind().word();
        let output = child(&["recover".as_ref(), path.as_os_str(), word.as_ref()])?.output()?;
        if !output.status.success() {
            return Err(format!("recovery failed: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let answer: Recovered = serde_json::from_slice(&output.stdout)?;
        row.bytes = answer.lane_bytes;
        row.attach.push(answer.attach);
        row.read.push(answer.read);
        if medium == Medium::File {
            row.write.push(write(
                environment,
                &environment.path(medium, "recovery-floor"),
                answer.lane_bytes,
            )?);
        }
        each();
    }
    discard(indelible::PoolOptions::new().medium(medium.kind()).open(&path)?);
    Ok(row)
}

fn write(environment: &Environment, path: &Path, len: u64) -> Result<f64> {
    let mut floor = WriteFloor::new(path, len)?;
    let (took, result) = environment.clock.time(|| {
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(PIECE);
            floor.write(piece as usize)?;
            done += piece;
        }
        Ok(())
    });
    drop(floor);
    std::fs::remove_file(path)?;
    result.map(|()| took)
}

fn child(arguments: &[&std::ffi::OsStr]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").args(arguments);
    Ok(command)
}
