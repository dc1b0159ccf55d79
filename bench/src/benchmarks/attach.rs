//! Attach and detach by size of the object.
//!
//! A process's first attachment needs a lane, which later ones share: measured alone and beside
//! another.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::{MapFloor, WriteFloor};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::{PAGE, store};
use crate::plot::Plot;
use crate::stats::Samples;
use indelible::{CreateOptions, Pool};
use std::time::Duration;

const SIZES: [u64; 7] = [4 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30, 16 << 30, 64 << 30];
const POOL: u64 = 96 << 30;
const LIMIT: f64 = 30_000.0;

const COLUMNS: [(&str, Unit); 13] = [
    ("object", Unit::Bytes),
    ("beside another", Unit::Text),
    ("attach", Unit::Nanoseconds),
    ("detach", Unit::Nanoseconds),
    ("attach to read", Unit::Nanoseconds),
    ("detach", Unit::Nanoseconds),
    ("mmap+munmap", Unit::Nanoseconds),
    ("attach/mmap", Unit::Ratio),
    ("read/mmap", Unit::Ratio),
    ("durable 4 KiB", Unit::Nanoseconds),
    ("less one write", Unit::Nanoseconds),
    ("psync", Unit::Nanoseconds),
    ("rounds", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        on(environment, medium, section)?;
    }
    section.notes.push(
        "less one write: an attach to write, less one durable write of 4 KiB. psync: the first after an attach, \
         of one line in the middle of the object; attaching for it is not in the other columns."
            .into(),
    );
    Ok(())
}

#[derive(Default)]
struct Row {
    attach: Samples,
    detach: Samples,
    read: Samples,
    unread: Samples,
    map: Samples,
    write: Samples,
    psync: Samples,
}

impl Row {
    /// A writable attach without the medium's barrier; a read-only one needs none.
    fn net(&self) -> f64 {
        let barrier = if self.write.len() == 0 { 0.0 } else { self.write.median() };
        self.attach.median() - barrier
    }

    fn cells(&self, size: u64, beside: bool) -> Vec<Cell> {
        let spread = |samples: &Samples| samples.spread().map_or(Cell::Empty, Cell::from);
        let map = self.map.median();
        vec![
            size.into(),
            if beside { "yes" } else { "no" }.into(),
            spread(&self.attach),
            spread(&self.detach),
            spread(&self.read),
            spread(&self.unread),
            spread(&self.map),
            (self.attach.median() / map).into(),
            (self.read.median() / map).into(),
            spread(&self.write),
            self.net().into(),
            spread(&self.psync),
            (self.attach.len() as u64).into(),
        ]
    }
}

fn on(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let pool = environment.pool(medium, "attach", POOL)?;
    let map = MapFloor::new(&environment.path(medium, "map"), SIZES[SIZES.len() - 1])?;
    let mut write = match medium {
        Medium::Memory => None,
        Medium::File => Some(WriteFloor::new(&environment.path(medium, "write"), 16 << 20)?),
    };
    for size in SIZES {
        pool.create_with(&size.to_string(), &CreateOptions::new(size).sparse(true).reach(size))?;
    }
    pool.create("other", 4096)?;
    let mut table = Table::new(format!("Attach and detach on {}", medium.word()), &COLUMNS);
    let bar = progress(2, &format!("attach, {}", medium.word()));
    let (mut attach, mut read) = (f64::NAN, f64::NAN);
    for beside in [false, true] {
        let other = beside.then(|| pool.attach("other")).transpose()?;
        let rows = interleaved(environment, medium, &pool, &map, write.as_mut())?;
        drop(other);
        for (size, row) in SIZES.iter().zip(rows) {
            attach = attach.max(row.net());
            read = read.max(row.read.median());
            table.row(row.cells(*size, beside));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    drop(write);
    discard(pool);
    let file = format!("attach-{}", medium.short());
    let mut plot = Plot::of(&table, &file, "object", "attach", &["beside another"]);
    for curve in &mut plot.curves {
        curve.name = if curve.name == "yes" { "beside another" } else { "alone" }.to_owned();
    }
    section.plots.push(plot);
    let mut beside = table.clone();
    beside.rows.retain(|row| row[1] == Cell::from("yes"));
    let (file, columns) =
        (format!("sizes-{}", medium.short()), ["attach", "attach to read", "psync", "mmap+munmap"]);
    let sizes = Plot::of_columns(&beside, &file, "object", "time", &columns);
    section.plots.push(sizes.titled(format!("Size of the object on {}", medium.word())));
    section.tables.push(table);
    let at = match medium {
        Medium::Memory => "memory: slowest",
        Medium::File => "SSD: slowest, less one durable write,",
    };
    section.goals.push(Goal::at_most(
        format!("{at} attach to write at any size"),
        Unit::Nanoseconds,
        LIMIT,
        attach,
    ));
    section.goals.push(Goal::at_most(
        format!(
            "{}: slowest attach to read at any size",
            if medium == Medium::Memory { "memory" } else { "SSD" }
        ),
        Unit::Nanoseconds,
        LIMIT,
        read,
    ));
    Ok(())
}

fn interleaved(
    environment: &Environment,
    medium: Medium,
    pool: &Pool,
    map: &MapFloor,
    mut write: Option<&mut WriteFloor>,
) -> Result<Vec<Row>> {
    let budget = match medium {
        Medium::Memory => environment.budget(Duration::from_millis(2000), Duration::from_millis(400)),
        Medium::File => environment.budget(Duration::from_millis(6000), Duration::from_millis(1200)),
    };
    let clock = &environment.clock;
    let mut rows: Vec<Row> = SIZES.iter().map(|_| Row::default()).collect();
    let mut round = 0;
    while budget.allows(round, 6) {
        for (size, row) in SIZES.iter().zip(&mut rows) {
            let name = size.to_string();
            let (attach, object) = clock.time(|| pool.attach(&name));
            let object = object?;
            let (detach, result) = clock.time(|| object.detach());
            result?;
            let (read, object) = clock.time(|| pool.attach_read(&name));
            let object = object?;
            let (unread, result) = clock.time(|| object.detach());
            result?;
            let mut object = pool.attach(&name)?;
            store(&mut object, &[size / PAGE as u64 / 2], 0, round as u64 + 1);
            let (psync, result) = clock.time(|| object.psync());
            result?;
            object.detach()?;
            let (mapped, result) = clock.time(|| map.map(*size as usize, true));
            result?;
            let written = match &mut write {
                Some(write) => {
                    let (took, result) = clock.time(|| write.write(PAGE));
                    result?;
                    Some(took)
                }
                None => None,
            };
            if round == 0 {
                continue;
            }
            row.attach.push(attach);
            row.detach.push(detach);
            row.read.push(read);
            row.unread.push(unread);
            row.map.push(mapped);
            row.psync.push(psync);
            if let Some(took) = written {
                row.write.push(took);
            }
        }
        round += 1;
    }
    Ok(rows)
}
