//! The paper's maps, whose entries change between two versions of a program.

use super::contestants::{Contestants, Found, Layout, MAPS, NAMES};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::retention::{Bytes, Mix, Script};
use crate::stats::{Samples, Spread};
use indicatif::ProgressBar;
use std::collections::BTreeMap;

fn paper(layout: Layout, mix: Mix) -> Option<(f64, f64)> {
    match (layout, mix) {
        (Layout::Change, Mix::Delete) => Some((0.0410, 0.0781)),
        (Layout::Change, Mix::Insert) => Some((0.0290, 0.1021)),
        (Layout::Add, Mix::Random) => Some((0.0387, 0.0045)),
        _ => None,
    }
}

pub fn run(environment: &Environment, contestants: &mut Contestants, section: &mut Section) -> Result<()> {
    let (count, rounds) = match (environment.quick, environment.paper_sizes) {
        (true, _) => (200, 1),
        (_, true) => (100_000, 5),
        _ => (5_000, 5),
    };
    let bar = progress(Layout::ALL.len() * Mix::ALL.len() * MAPS * rounds, "retention");
    for layout in Layout::ALL {
        measure(environment, (count, rounds), layout, contestants, section, &bar)?;
    }
    bar.finish_and_clear();
    table_6(count, contestants, section)?;
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 5] = [
    "An operation of the update program searches a key, and removes or inserts it: one durable step in memory that counts as \
     persistent (psync, or a transaction of libpmemobj). DEL removes all keys that are there, INS inserts as many others, RAND repeats the \
     operations that made the map, with keys that repeat. The time of operations is that for which their thread had the processor, so that other processes do not count. The maps are one source for all; after each run a map was compared with what it should be.",
    "P-RETAIN converts all nodes in one durable step; its time is divided by the operations. Manual overhead is equation 1 of the paper, P-RETAIN to \
     P-MANUAL; automatic overhead equation 2, what P-AUTO takes more than P-MANUAL, to that.",
    "P-AUTO extends an entry at the first access to its new key, as in the paper. P-AUTO, computed: a key that was not stored is computed from \
     the old one at each access, and nothing is extended, which is what reading a field of an extension does here.",
    "Percentages depend on what an operation costs without retention: with commits in memory that is little, so that overheads of the same \
     nanoseconds are larger shares than on the paper's machine.",
    "Durable, beside bytes stored: lines of 64 bytes that psyncs found changed, once each (in memory that counts as persistent, the lane and the primary each \
     get them), and whole pages that no psync covered before.",
];

fn measure(
    environment: &Environment,
    (count, rounds): (usize, usize),
    layout: Layout,
    contestants: &mut Contestants,
    section: &mut Section,
    bar: &ProgressBar,
) -> Result<()> {
    let mut table = Table::new(
        format!("{}: {count} operations", layout.word()),
        &[
            ("map", Unit::Text),
            ("mix", Unit::Text),
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
    );
    let mut means: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for mix in Mix::ALL {
        for (map, name) in contestants.map_names().into_iter().enumerate() {
            let mut found: [Found; 3] = Default::default();
            let mut random = Random::new(map as u64 + 1);
            for _ in 0..rounds {
                let script = Script::new(mix, count, &mut random);
                contestants.round(environment, map, &script, layout, &mut found)?;
                bar.inc(1);
            }
            for (contestant, found) in NAMES.iter().zip(&found).filter(|(_, found)| found.manual.len() > 0) {
                table.row(row(name, mix, contestant, found));
            }
            goals(layout, mix, name, &found, section);
            if paper(layout, mix).is_some() {
                let both = |found: &Found| [found.of_manual(), found.of_automatic()];
                means.entry(mix.word()).or_default().push(both(&found[1]));
            }
        }
        if let (Some((manual, automatic)), Some(all)) = (paper(layout, mix), means.get(mix.word())) {
            let mean = |which: usize| all.iter().map(|one| one[which]).sum::<f64>() / all.len() as f64;
            let word = format!("{layout:?}, {}, mean of all maps, explicit", mix.word());
            section.goals.push(Goal::at_most(
                format!("{word}: manual overhead"),
                Unit::Ratio,
                manual,
                mean(0),
            ));
            section.goals.push(Goal::at_most(
                format!("{word}: automatic overhead"),
                Unit::Ratio,
                automatic,
                mean(1),
            ));
        }
    }
    section.tables.push(table);
    Ok(())
}

fn row(name: &str, mix: Mix, contestant: &str, found: &Found) -> Vec<Cell> {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let more = |samples: &Samples| match samples.len() {
        0 => Cell::Empty,
        _ => Cell::Value(Found::more(samples, &found.manual)),
    };
    vec![
        name.into(),
        mix.word().into(),
        contestant.into(),
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

/// Our overhead, in nanoseconds, must not exceed libpmemobj's.
fn goals(layout: Layout, mix: Mix, name: &str, found: &[Found; 3], section: &mut Section) {
    if found[2].manual.len() == 0 {
        return;
    }
    let more = |found: &Found| Found::more(&found.automatic, &found.manual);
    let limit = more(&found[2]).max(0.0);
    for (who, found) in NAMES.iter().zip(&found[..2]) {
        let what =
            format!("{layout:?}, {name}, {}: more by the automatic model, {who}, to libpmemobj", mix.word());
        section.goals.push(Goal::at_most(what, Unit::Nanoseconds, limit, more(found)));
    }
}

fn table_6(count: usize, contestants: &mut Contestants, section: &mut Section) -> Result<()> {
    let mut table = Table::new(
        format!("Bytes stored for {count} entries, LAYOUT-CHANGE (Table 6 of the paper)"),
        &[
            ("map", Unit::Text),
            ("reset: made again", Unit::Bytes),
            ("manual", Unit::Bytes),
            ("automatic", Unit::Bytes),
            ("automatic to manual", Unit::Ratio),
            ("manual, durable", Unit::Bytes),
            ("automatic, durable", Unit::Bytes),
        ],
    );
    let script = Script::new(Mix::Insert, count, &mut Random::new(6));
    let mut sums = [0; 2];
    for (map, name) in contestants.map_names().into_iter().enumerate() {
        let Bytes { reset, manual: [manual, manual_lines], automatic: [automatic, automatic_lines] } =
            contestants.bytes(map, &script)?;
        sums = [sums[0] + manual, sums[1] + automatic];
        table.row(vec![
            name.into(),
            Cell::Value(reset as f64),
            Cell::Value(manual as f64),
            Cell::Value(automatic as f64),
            (automatic as f64 / manual as f64).into(),
            Cell::Value(manual_lines as f64),
            Cell::Value(automatic_lines as f64),
        ]);
    }
    let ratio = sums[1] as f64 / sums[0] as f64;
    // The paper's mean: 26.36 % fewer.
    let what = "bytes stored by the automatic model to the manual one, all maps";
    section.goals.push(Goal::at_most(what, Unit::Ratio, 1.0 - 0.2636, ratio));
    section.tables.push(table);
    Ok(())
}
