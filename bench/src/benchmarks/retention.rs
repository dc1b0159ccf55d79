//! Retention models beside each other: the maps of the paper, whose entries change between two versions of a program.

use crate::Result;
use crate::environment::{Environment, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::retention::{
    BTree, CritBit, Eager, Grown, GrownName, HashMap, Lazy, Linked, LinkedKey, LinkedName, Map, Mix, Named,
    Own, Plain32, Plain64, PmemSpace, RedBlack, Script, SkipList, automatic, bytes, manual,
};
use crate::stats::{Samples, Spread};
use indelible::Tracking;
use indicatif::ProgressBar;
use std::collections::BTreeMap;

const ROOM: u64 = 64 << 20;
const PAPER_ROOM: u64 = 512 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Change,
    Add,
}

impl Layout {
    const ALL: [Layout; 2] = [Layout::Change, Layout::Add];

    fn word(self) -> &'static str {
        match self {
            Layout::Change => "LAYOUT-CHANGE: a key of 32 bits becomes one of 64",
            Layout::Add => "LAYOUT-ADD: a name of 32 bytes, which no operation uses",
        }
    }

    /// The paper's overheads of the manual and the automatic model, where it says them.
    fn paper(self, mix: Mix) -> Option<(f64, f64)> {
        match (self, mix) {
            (Layout::Change, Mix::Delete) => Some((0.0410, 0.0781)),
            (Layout::Change, Mix::Insert) => Some((0.0290, 0.1021)),
            (Layout::Add, Mix::Random) => Some((0.0387, 0.0045)),
            _ => None,
        }
    }
}

/// Figures of one map, one layout and one mix.
#[derive(Default)]
struct Found {
    retain: Samples,
    manual: Samples,
    automatic: Samples,
    /// With keys that are computed as long as they were not stored.
    lazy: Samples,
}

impl Found {
    /// Equation 1.
    fn of_manual(&self) -> f64 {
        self.retain.median() / self.manual.median()
    }

    /// Nanoseconds of an operation more than by the manual model.
    fn more(samples: &Samples, manual: &Samples) -> f64 {
        samples.median() - manual.median()
    }

    /// Equation 2.
    fn of_automatic(&self) -> f64 {
        Found::more(&self.automatic, &self.manual) / self.manual.median()
    }
}

/// A round of one map with one contestant.
type Round<S> = fn(&Environment, &Script, Layout, &mut S, &mut Found) -> Result<()>;
type Bytes<S> = fn(&Script, &mut S) -> Result<[u64; 3]>;

macro_rules! own {
    ($($map:ident),*) => {
        [$((
            <$map<Plain32> as Map<Own, Plain32>>::NAME,
            |environment, script, layout, space, found| {
                let [retain, manual] = match layout {
                    Layout::Change => manual::<_, Plain64, $map<Plain32>>(environment, script, space)?,
                    Layout::Add => manual::<_, Named, $map<Plain32>>(environment, script, space)?,
                };
                found.retain.push(retain);
                found.manual.push(manual);
                found.automatic.push(match layout {
                    Layout::Change => automatic::<_, Grown, Eager, $map<Grown>>(environment, script, space)?,
                    Layout::Add => automatic::<_, Grown, GrownName, $map<Grown>>(environment, script, space)?,
                });
                if layout == Layout::Change {
                    found.lazy.push(automatic::<_, Grown, Lazy, $map<Grown>>(environment, script, space)?);
                }
                Ok(())
            },
            |script, space| {
                bytes::<_, Grown, Plain64, Eager, $map<Plain32>, $map<Grown>>(script, space, Own::extended)
            },
        )),*]
    };
}

macro_rules! pmem {
    ($($map:ident),*) => {
        [$(|environment, script, layout, space, found| {
            let [retain, manual] = match layout {
                Layout::Change => manual::<_, Plain64, $map<Plain32>>(environment, script, space)?,
                Layout::Add => manual::<_, Named, $map<Plain32>>(environment, script, space)?,
            };
            found.retain.push(retain);
            found.manual.push(manual);
            found.automatic.push(match layout {
                Layout::Change => automatic::<_, Linked, LinkedKey, $map<Linked>>(environment, script, space)?,
                Layout::Add => automatic::<_, Linked, LinkedName, $map<Linked>>(environment, script, space)?,
            });
            Ok(())
        }),*]
    };
}

const MAPS: usize = 5;
const OWN: [(&str, Round<Own>, Bytes<Own>); MAPS] = own!(SkipList, CritBit, BTree, RedBlack, HashMap);
const PMEM: [Round<PmemSpace>; MAPS] = pmem!(SkipList, CritBit, BTree, RedBlack, HashMap);

/// The contestants, and their spaces.
struct Spaces {
    own: Own,
    explicit: Own,
    pmem: Option<PmemSpace>,
}

const NAMES: [&str; 3] = ["indelible", "indelible, explicit", "libpmemobj, lowered by hand"];

impl Spaces {
    /// A round with each.
    fn round(
        &mut self,
        environment: &Environment,
        map: usize,
        script: &Script,
        layout: Layout,
        found: &mut [Found; 3],
    ) -> Result<()> {
        OWN[map].1(environment, script, layout, &mut self.own, &mut found[0])?;
        OWN[map].1(environment, script, layout, &mut self.explicit, &mut found[1])?;
        if let Some(pmem) = &mut self.pmem {
            PMEM[map](environment, script, layout, pmem, &mut found[2])?;
        }
        Ok(())
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    super::retention_access::run(environment, section)?;
    let (count, rounds) = match (environment.quick, environment.paper_sizes) {
        (true, _) => (200, 1),
        (_, true) => (100_000, 5),
        _ => (5_000, 5),
    };
    let room = if environment.paper_sizes { PAPER_ROOM } else { ROOM };
    let mut spaces = Spaces {
        own: Own::new(environment, "retention", Tracking::Auto, room)?,
        explicit: Own::new(environment, "retention-explicit", Tracking::Explicit, room)?,
        pmem: match PmemSpace::new(environment, room)? {
            Ok(pmem) => Some(pmem),
            Err(why) => {
                section.notes.push(format!("{}: not measured. {why}", NAMES[2]));
                None
            }
        },
    };
    let bar = progress(Layout::ALL.len() * Mix::ALL.len() * MAPS * rounds, "retention");
    for layout in Layout::ALL {
        measure(environment, (count, rounds), layout, &mut spaces, section, &bar)?;
    }
    bar.finish_and_clear();
    table_6(count, &mut spaces.own, section)?;
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 4] = [
    "An operation of the update program searches a key, and removes or inserts it: one durable step in memory that counts as \
     persistent (psync, or a transaction of libpmemobj). DEL removes all keys that are there, INS inserts as many others, RAND repeats the \
     operations that made the map, with keys that repeat. Operations are timed in twenties, of which the slowest tenth does not count: other processes had the processor. The maps are one source for all; after each run a map was compared with what it should be.",
    "P-RETAIN converts all nodes in one durable step; its time is divided by the operations. Manual overhead is equation 1 of the paper, P-RETAIN to \
     P-MANUAL; automatic overhead equation 2, what P-AUTO takes more than P-MANUAL, to that.",
    "P-AUTO extends an entry at the first access to its new key, as in the paper. P-AUTO, computed: a key that was not stored is computed from \
     the old one at each access, and nothing is extended, which is what reading a field of an extension does here.",
    "Percentages depend on what an operation costs without retention: with commits in memory that is little, so that overheads of the same \
     nanoseconds are larger shares than on the paper's machine.",
];

fn measure(
    environment: &Environment,
    (count, rounds): (usize, usize),
    layout: Layout,
    spaces: &mut Spaces,
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
        for (map, (name, ..)) in OWN.iter().enumerate() {
            let mut found: [Found; 3] = Default::default();
            let mut random = Random::new(map as u64 + 1);
            for _ in 0..rounds {
                let script = Script::new(mix, count, &mut random);
                spaces.round(environment, map, &script, layout, &mut found)?;
                bar.inc(1);
            }
            for (contestant, found) in NAMES.iter().zip(&found).filter(|(_, found)| found.manual.len() > 0) {
                table.row(row(name, mix, contestant, found));
            }
            goals(layout, mix, name, &found, section);
            if layout.paper(mix).is_some() {
                let both = |found: &Found| [found.of_manual(), found.of_automatic()];
                means.entry(mix.word()).or_default().push(both(&found[1]));
            }
        }
        if let (Some((manual, automatic)), Some(all)) = (layout.paper(mix), means.get(mix.word())) {
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

/// Our overhead is to be at most that of libpmemobj, in nanoseconds.
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

/// Bytes that are stored to by each model, if all entries are accessed.
fn table_6(count: usize, space: &mut Own, section: &mut Section) -> Result<()> {
    let mut table = Table::new(
        format!("Bytes stored for {count} entries, LAYOUT-CHANGE (Table 6 of the paper)"),
        &[
            ("map", Unit::Text),
            ("reset: made again", Unit::Bytes),
            ("manual", Unit::Bytes),
            ("automatic", Unit::Bytes),
            ("automatic to manual", Unit::Ratio),
        ],
    );
    let script = Script::new(Mix::Insert, count, &mut Random::new(6));
    let mut sums = [0; 2];
    for (name, _, bytes) in OWN {
        let [reset, manual, automatic] = bytes(&script, space)?;
        sums = [sums[0] + manual, sums[1] + automatic];
        table.row(vec![
            name.into(),
            Cell::Value(reset as f64),
            Cell::Value(manual as f64),
            Cell::Value(automatic as f64),
            (automatic as f64 / manual as f64).into(),
        ]);
    }
    let ratio = sums[1] as f64 / sums[0] as f64;
    // The paper's mean: 26.36 % fewer.
    let what = "bytes stored by the automatic model to the manual one, all maps";
    section.goals.push(Goal::at_most(what, Unit::Ratio, 1.0 - 0.2636, ratio));
    section.tables.push(table);
    Ok(())
}
