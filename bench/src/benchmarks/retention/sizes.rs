//! Overheads by size of the data and by its used share (sections 6.3 and 6.4 of the paper).

use super::contestants::{Contestants, Found, Layout, NAMES};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::model::{Cell, Section, Table, Unit};
use crate::pattern::Random;
use crate::plot::Plot;
use crate::retention::{Mix, Script};
use crate::stats::{Samples, Spread};
use std::time::Duration;

const ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_secs(60);
const SHARES: [usize; 4] = [1, 10, 100, 1_000];

#[derive(Clone, Copy)]
struct Size {
    keys: usize,
    removed: usize,
}

pub fn run(environment: &Environment, contestants: &mut Contestants, section: &mut Section) -> Result<()> {
    let sizes: &[usize] = match (environment.smoke, environment.quick, environment.paper_sizes) {
        (true, ..) => &[100],
        (_, true, _) => &[100, 1_000],
        (.., true) => &[100, 1_000, 10_000, 100_000],
        _ => &[100, 1_000, 10_000],
    };
    let all: Vec<Size> = sizes.iter().map(|keys| Size { keys: *keys, removed: *keys }).collect();
    let title = "Overheads against the size of the data, LAYOUT-CHANGE, DEL";
    let table = measure(environment, contestants, title, &all)?;
    plots(&table, "retention-sizes", section);
    section.tables.push(table);
    let keys = sizes[sizes.len() - 1];
    let shares = SHARES.map(|share| Size { keys, removed: (keys * share / 1_000).max(1) });
    let title = format!("Overheads against the working set, LAYOUT-CHANGE, DEL: {keys} keys");
    let table = measure(environment, contestants, &title, &shares)?;
    plots(&table, "retention-working-set", section);
    section.tables.push(table);
    section.notes.push(
        "Sizes and working sets: a map of so many keys is made by P-ORIGINAL, and so many of them are removed by the update program; all of them where the \
         size of the data is what differs. P-RETAIN converts the whole map, whatever is used of it. There are five rounds, fewer if they take longer than a minute."
            .into(),
    );
    Ok(())
}

fn measure(
    environment: &Environment,
    contestants: &mut Contestants,
    title: &str,
    sizes: &[Size],
) -> Result<Table> {
    let mut table = Table::new(
        title,
        &[
            ("keys", Unit::Count),
            ("removed", Unit::Count),
            ("map", Unit::Text),
            ("contestant", Unit::Text),
            ("P-MANUAL", Unit::Nanoseconds),
            ("manual overhead", Unit::Ratio),
            ("automatic overhead", Unit::Ratio),
            ("more than P-MANUAL", Unit::Nanoseconds),
            ("computed, overhead", Unit::Ratio),
        ],
    );
    let names = contestants.map_names();
    let bar = progress(sizes.len() * names.len(), "retention, sizes");
    for size in sizes {
        for (map, name) in names.into_iter().enumerate() {
            let mut found: [Found; 3] = Default::default();
            let mut random = Random::new(map as u64 + 1);
            let budget = environment.budget(LONGEST, Duration::ZERO);
            let mut done = 0;
            while done < ROUNDS && budget.allows(done, 1) {
                let script = Script::new(Mix::Delete, size.keys, &mut random).with_updates(size.removed);
                contestants.round(environment, map, &script, Layout::Change, &mut found)?;
                done += 1;
            }
            bar.inc(1);
            for (contestant, found) in NAMES.iter().zip(&found).filter(|(_, found)| found.manual.len() > 0) {
                table.row(row(*size, name, contestant, found));
            }
        }
    }
    bar.finish_and_clear();
    Ok(table)
}

fn row(size: Size, name: &str, contestant: &str, found: &Found) -> Vec<Cell> {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let lazy = match found.lazy.len() {
        0 => Cell::Empty,
        _ => (Found::more(&found.lazy, &found.manual) / found.manual.median()).into(),
    };
    vec![
        (size.keys as u64).into(),
        (size.removed as u64).into(),
        name.into(),
        contestant.into(),
        cell(&found.manual),
        found.of_manual().into(),
        found.of_automatic().into(),
        Cell::Value(Found::more(&found.automatic, &found.manual)),
        lazy,
    ]
}

fn plots(table: &Table, file: &str, section: &mut Section) {
    for (model, column) in [("manual", "manual overhead"), ("automatic", "automatic overhead")] {
        let plot = Plot::of(table, &format!("{file}-{model}"), "removed", column, &["map", "contestant"]);
        section.plots.push(plot.only(|name| name.ends_with(NAMES[1])));
    }
}
