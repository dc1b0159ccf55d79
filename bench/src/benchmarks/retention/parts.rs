//! Parts of the automatic model's costs (section 6.2 of the paper).

use super::contestants::{Contestants, NAMES};
use crate::Result;
use crate::environment::{Environment, progress};
use crate::model::{Cell, Section, Table, Unit};
use crate::pattern::Random;
use crate::retention::{Mix, Script, Steps};
use crate::stats::Samples;

#[derive(Default)]
struct Found {
    manual: Samples,
    auto: Samples,
    extended: Samples,
    unchecked: Samples,
    deep: Samples,
}

impl Found {
    fn push(&mut self, steps: &Steps) {
        self.manual.push(steps.manual);
        self.auto.push(steps.auto);
        self.extended.push(steps.extended);
        self.unchecked.push(steps.unchecked);
        self.deep.push(steps.deep);
    }

    fn parts(&self) -> [f64; 5] {
        let [manual, auto, extended, unchecked, deep] =
            [&self.manual, &self.auto, &self.extended, &self.unchecked, &self.deep].map(Samples::median);
        [auto - manual, auto - extended, extended - unchecked, unchecked - manual, deep - auto]
    }
}

const NOTES: [&str; 2] = [
    "Parts of the automatic model's cost: LAYOUT-CHANGE, DEL. Allocation is what is saved if all entries were extended before the program \
     began; checks what is saved, of that, by a program that follows the link without looking at it: addresses are native in all spaces, so that nothing is \
     translated, and the chain's check is what stands in its place; the rest is the load of the link, and freeing the extension.",
    "Moving an entry copies the link, and never the extension. Copies, if they were deep: what a program takes more that gives an entry a copy of \
     its extension each time that it is moved, which happens in ctree and btree(8) alone; as a share of the cost with them. The paper has 55.63 % for allocation, 36.44 % for \
     translation and, in btree, 14.10 % for copies.",
];

pub fn run(environment: &Environment, contestants: &mut Contestants, section: &mut Section) -> Result<()> {
    let (count, rounds) = match (environment.smoke, environment.quick, environment.paper_sizes) {
        (true, ..) => (50, 1),
        (_, true, _) => (200, 1),
        (.., true) => (100_000, 1),
        _ => (5_000, 5),
    };
    let mut table = Table::new(
        format!("Parts of the automatic model's cost, LAYOUT-CHANGE, DEL: {count} operations"),
        &[
            ("map", Unit::Text),
            ("", Unit::Text),
            ("more than P-MANUAL", Unit::Nanoseconds),
            ("allocation", Unit::Nanoseconds),
            ("its share", Unit::Ratio),
            ("checks", Unit::Nanoseconds),
            ("their share", Unit::Ratio),
            ("rest", Unit::Nanoseconds),
            ("copies, if deep", Unit::Nanoseconds),
            ("their share", Unit::Ratio),
        ],
    );
    let names = contestants.map_names();
    let bar = progress(names.len() * rounds, "retention, parts");
    for (map, name) in names.into_iter().enumerate() {
        let mut found: [Found; 3] = Default::default();
        let mut random = Random::new(map as u64 + 1);
        for _ in 0..rounds {
            let script = Script::new(Mix::Delete, count, &mut random);
            let all = contestants.steps(environment, map, &script)?;
            found.iter_mut().zip(&all).for_each(|(found, steps)| found.push(steps));
            bar.inc(1);
        }
        for (contestant, found) in NAMES.iter().zip(&found).filter(|(_, found)| found.manual.len() > 0) {
            table.row(row(name, contestant, found));
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

fn row(name: &str, contestant: &str, found: &Found) -> Vec<Cell> {
    let [all, allocation, checks, rest, deep] = found.parts();
    let value = Cell::Value;
    vec![
        name.into(),
        contestant.into(),
        value(all),
        value(allocation),
        value(allocation / all),
        value(checks),
        value(checks / all),
        value(rest),
        value(deep),
        value(deep / (all + deep)),
    ]
}
