use super::contestants::{Found, Layout, NAMES};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::retention::tpcc::{self, Programs, Scale, Script};
use crate::retention::{Own, PmemSpace};
use crate::stats::{Samples, Spread};
use indelible::Tracking;

const EXTENSION: u64 = 24 + 8 * 8 + 8;
/// The paper: bytes of the manual model to those of the automatic one.
const FEWER: f64 = 7.2;

fn paper(layout: Layout) -> [f64; 2] {
    match layout {
        Layout::Change => [0.1065, 0.0898],
        Layout::Add => [0.1049, 0.0185],
    }
}

#[derive(Default)]
struct Measured {
    found: Found,
    reset: u64,
    retained: u64,
    durable: [u64; 2],
    nodes: Samples,
    extended: Samples,
}

impl Measured {
    fn push(&mut self, found: tpcc::Found) {
        self.found.push(found.times);
        (self.reset, self.retained, self.durable) = (found.reset, found.retained, found.durable);
        self.nodes.push(found.nodes as f64);
        self.extended.push(found.extended as f64);
    }
}

pub fn run(environment: &Environment, has_pmem: bool, section: &mut Section) -> Result<()> {
    let (scale, rounds) = match (environment.smoke, environment.quick) {
        (true, _) => (Scale { warehouses: 1, ..Scale::PAPER.divided(1_000) }, 1),
        (_, true) => (Scale { warehouses: 1, ..Scale::PAPER.divided(100) }, 1),
        _ => (Scale::PAPER.divided(environment.tpcc_divisor), 5),
    };
    let bar = progress(Layout::ALL.len() * rounds, "retention, TPC-C");
    let mut table = table(scale);
    for layout in Layout::ALL {
        let mut measured: [Measured; 3] = Default::default();
        let mut random = Random::new(7);
        for _ in 0..rounds {
            let script = Script::new(scale, &mut random);
            round(environment, layout, &script, has_pmem, &mut measured)?;
            bar.inc(1);
        }
        let word = if layout == Layout::Change { "LAYOUT-CHANGE" } else { "LAYOUT-ADD" };
        for (name, one) in NAMES.iter().zip(&measured).filter(|(_, one)| one.found.manual.len() > 0) {
            table.row(row(word, name, &one.found));
        }
        goals(layout, word, &measured, section);
        if layout == Layout::Change {
            bytes(&measured[1], section);
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    section.notes.push(
        "TPC-C: rows in blocks, found by B+-trees of order 8, whose nodes have keys of 32 bits that become keys of 64, or get a name; P-RETAIN makes all \
         nodes anew, not the rows. P-ORIGINAL fills the tables and does as many operations as the update program: the standard mix, without terminals and waiting, each operation one \
         durable step. After each program the consistency conditions of clause 3.3.2 are checked, and that its users saw the same numbers as those of P-MANUAL."
            .into(),
    );
    Ok(())
}

fn round(
    environment: &Environment,
    layout: Layout,
    script: &Script,
    has_pmem: bool,
    measured: &mut [Measured; 3],
) -> Result<()> {
    let room = script.scale.room();
    for (measured, tracking) in measured.iter_mut().zip([Tracking::Auto, Tracking::Explicit]) {
        let mut make = || Own::new(environment, "tpcc", tracking, room);
        measured.push((Programs::new().rounds[layout as usize])(environment, script, &mut make)?);
    }
    if !has_pmem {
        return Ok(());
    }
    let mut make = || PmemSpace::new(environment, room)?.map_err(Into::into);
    measured[2].push((Programs::new().rounds[layout as usize])(environment, script, &mut make)?);
    Ok(())
}

fn table(scale: Scale) -> Table {
    let Scale { warehouses, operations, items, customers } = scale;
    let title = format!(
        "TPC-C, {warehouses} warehouses of {items} items and 10 districts of {customers} customers: {operations} operations"
    );
    Table::new(
        title,
        &[
            ("layout", Unit::Text),
            ("", Unit::Text),
            ("P-MANUAL", Unit::Nanoseconds),
            ("P-RETAIN", Unit::Nanoseconds),
            ("manual overhead", Unit::Ratio),
            ("P-AUTO", Unit::Nanoseconds),
            ("more than P-MANUAL", Unit::Nanoseconds),
            ("automatic overhead", Unit::Ratio),
            ("P-AUTO, computed", Unit::Nanoseconds),
            ("more than P-MANUAL", Unit::Nanoseconds),
        ],
    )
}

fn row(layout: &str, name: &str, found: &Found) -> Vec<Cell> {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let more = |samples: &Samples| match samples.len() {
        0 => Cell::Empty,
        _ => Cell::Value(Found::more(samples, &found.manual)),
    };
    vec![
        layout.into(),
        name.into(),
        cell(&found.manual),
        cell(&found.retain),
        found.of_manual().into(),
        cell(&found.automatic),
        more(&found.automatic),
        found.of_automatic().into(),
        cell(&found.lazy),
        more(&found.lazy),
    ]
}

fn goals(layout: Layout, word: &str, measured: &[Measured; 3], section: &mut Section) {
    let [manual, automatic] = paper(layout);
    let found = &measured[1].found;
    let what = |which: &str| format!("TPC-C, {word}, explicit: {which} overhead");
    section.goals.push(Goal::at_most(what("manual"), Unit::Ratio, manual, found.of_manual()));
    section.goals.push(Goal::at_most(what("automatic"), Unit::Ratio, automatic, found.of_automatic()));
    let more = |one: &Measured| Found::more(&one.found.automatic, &one.found.manual);
    if measured[2].found.manual.len() > 0 {
        let limit = more(&measured[2]).max(0.0);
        for (name, one) in NAMES.iter().zip(&measured[..2]) {
            let what = format!("TPC-C, {word}: more by the automatic model, {name}, to libpmemobj");
            section.goals.push(Goal::at_most(what, Unit::Nanoseconds, limit, more(one)));
        }
    }
}

fn bytes(measured: &Measured, section: &mut Section) {
    let (nodes, extended) = (measured.nodes.median(), measured.extended.median());
    let automatic = extended * EXTENSION as f64;
    let mut table = Table::new(
        "Bytes stored for TPC-C, LAYOUT-CHANGE (Table 6 of the paper)",
        &[
            ("reset: rows and nodes made again", Unit::Bytes),
            ("manual", Unit::Bytes),
            ("automatic", Unit::Bytes),
            ("manual to automatic", Unit::Ratio),
            ("nodes before", Unit::Count),
            ("of which extended", Unit::Ratio),
            ("manual, durable", Unit::Bytes),
            ("automatic, durable", Unit::Bytes),
        ],
    );
    let fewer = measured.retained as f64 / automatic;
    table.row(vec![
        Cell::Value(measured.reset as f64),
        Cell::Value(measured.retained as f64),
        Cell::Value(automatic),
        fewer.into(),
        Cell::Value(nodes),
        (extended / nodes).into(),
        Cell::Value(measured.durable[0] as f64),
        Cell::Value(measured.durable[1] as f64),
    ]);
    section.tables.push(table);
    let what = "TPC-C: bytes stored by the manual model to the automatic one";
    section.goals.push(Goal::at_least(what, Unit::Ratio, FEWER, fewer));
}
