//! Maps that are durable after each commit: Indelible's, databases' and libraries'.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::peers::maps::{ALL, Contestant, Kind, Map, Opened, Pair, Place};
use crate::plot::Plot;
use crate::stats::{Samples, Spread};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::time::Duration;

const EVERY: [usize; 3] = [1, 100, 10_000];
const MOST: [usize; 3] = [3_000, 300, 8];
const QUICK_MOST: [usize; 3] = [200, 30, 4];
const WARM: [usize; 3] = [20, 2, 1];
const LEAST: usize = 3;
const LONG: f64 = 1e9;
const LOOKS: usize = 1_000;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let mut missing = BTreeMap::new();
    for medium in Medium::ALL {
        let mut walks = Table::new(
            format!("Walk over {} keys, {}", loaded(environment), medium.word()),
            &[
                ("map", Unit::Text),
                ("", Unit::Text),
                ("made of", Unit::Text),
                ("a key", Unit::Nanoseconds),
                ("to indelible", Unit::Ratio),
            ],
        );
        for kind in Kind::ALL {
            of_kind(environment, medium, kind, section, &mut walks, &mut missing)?;
        }
        section.tables.push(walks);
    }
    for (name, why) in missing {
        section.notes.push(format!("{name}: not measured. {why}"));
    }
    section.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 6] = [
    "Keys and values of 64 bits, keys at random. An insertion's time is that of the transaction, from its first store \
     until all of it is durable, divided by its keys; all had the same keys before and get the same ones. At \
     the end each map had all keys and values that were inserted.",
    "Lookups are of keys that are there, as many in a transaction as insertions. With Indelible and libpmemobj \
     reading takes none.",
    "LMDB and redb have ordered maps only, which stand beside both kinds.",
    "libpmemobj comes without maps: these are made for this benchmark on its transactions, as its examples are \
     (tx_alloc, tx_add_range), with the hash of ours and links of 8 bytes.",
    "All as they are by default, with durability at each commit.",
    "indelible asks the kernel which pages were stored to, and in memory, with 1 and 100 insertions in a transaction, a page \
     that was protected takes a fault first, as most do where keys are at random; 10,000 insertions share pages. indelible, \
     explicit: heap and map mark what they store, the program's source is the same. libpmemobj is told each \
     range, and LMDB has its own pages.",
];

fn loaded(environment: &Environment) -> usize {
    match (environment.smoke, environment.quick) {
        (true, _) => 1_000,
        (_, true) => 10_000,
        _ => 100_000,
    }
}

struct Runner {
    contestant: &'static Contestant,
    map: Box<dyn Map>,
    insert: [Samples; 3],
    look: [Samples; 3],
    walk: Samples,
    spent: [f64; 3],
    given: [usize; 3],
}

impl Runner {
    fn new(contestant: &'static Contestant, map: Box<dyn Map>) -> Runner {
        Runner {
            contestant,
            map,
            insert: Default::default(),
            look: Default::default(),
            walk: Samples::default(),
            spent: [0.0; 3],
            given: [0; 3],
        }
    }

    fn failed(&self, error: &crate::Error) -> crate::Error {
        format!("{}: {error}", self.contestant.name).into()
    }

    fn compare(&mut self, pairs: &Pairs) -> Result<()> {
        let mut expected = pairs.loaded.clone();
        for (pairs, given) in pairs.more.iter().zip(self.given) {
            expected.extend_from_slice(&pairs[..given]);
        }
        expected.sort_unstable();
        let mut found = self.map.all()?;
        found.sort_unstable();
        if found == expected { Ok(()) } else { Err(self.failed(&"its map is wrong".into())) }
    }
}

struct Pairs {
    loaded: Vec<Pair>,
    more: [Vec<Pair>; 3],
}

impl Pairs {
    fn new(environment: &Environment, most: [usize; 3]) -> Pairs {
        let mut random = Random::new(0x6d61_7073);
        let mut pairs = |count| (0..count).map(|_| (random.next(), random.next())).collect::<Vec<Pair>>();
        let loaded = pairs(loaded(environment));
        let more = std::array::from_fn(|at| pairs((most[at] + WARM[at]) * EVERY[at]));
        Pairs { loaded, more }
    }

    fn len(&self) -> usize {
        self.loaded.len() + self.more.iter().map(Vec::len).sum::<usize>()
    }
}

fn of_kind(
    environment: &Environment,
    medium: Medium,
    kind: Kind,
    section: &mut Section,
    walks: &mut Table,
    missing: &mut BTreeMap<&'static str, String>,
) -> Result<()> {
    let title = format!("{}, {}", kind.word(), medium.word());
    let most = if environment.quick { QUICK_MOST } else { MOST };
    let pairs = Pairs::new(environment, most);
    let bar = progress(ALL.len() + 1 + 2 * EVERY.len(), &format!("maps, {title}"));
    let dir = |contestant: &Contestant| {
        environment.path(medium, &format!("maps-{}-{}", kind.short(), contestant.name))
    };
    let mut runners = Vec::new();
    for contestant in ALL {
        let dir = dir(contestant);
        std::fs::create_dir(&dir)?;
        let place = Place { dir: &dir, medium, keys: pairs.len() as u64, loaded: &pairs.loaded };
        let about = |error| format!("{}: {error}", contestant.name);
        match (contestant.open)(kind, &place).map_err(about)? {
            Opened::Ready(map) => runners.push(Runner::new(contestant, map)),
            Opened::Missing(why) => {
                missing.insert(contestant.name, why);
            }
        }
        bar.inc(1);
    }
    walk(environment, &mut runners, &bar)?;
    for at in 0..EVERY.len() {
        look(environment, at, &mut runners, &pairs.loaded, &bar)?;
    }
    for at in 0..EVERY.len() {
        insert(environment, at, &mut runners, &pairs.more[at], &bar)?;
    }
    for runner in &mut runners {
        runner.compare(&pairs)?;
    }
    bar.finish_and_clear();
    report(medium, kind, &title, &runners, section, walks);
    drop(runners);
    for contestant in ALL {
        std::fs::remove_dir_all(dir(contestant))?;
    }
    Ok(())
}

fn walk(environment: &Environment, runners: &mut [Runner], bar: &ProgressBar) -> Result<()> {
    let keys = loaded(environment);
    let budget = environment.budget(Duration::from_secs(1), Duration::from_millis(50));
    let mut done = 0;
    while budget.allows(done, LEAST + 1) {
        for runner in runners.iter_mut() {
            let (took, result) = environment.clock.time(|| runner.map.sum());
            let (sum, count) = result.map_err(|error| runner.failed(&error))?;
            std::hint::black_box(sum);
            if count != keys {
                return Err(runner.failed(&format!("a walk over {count} keys").into()));
            }
            if done > 0 {
                runner.walk.push(took / keys as f64);
            }
        }
        done += 1;
    }
    bar.inc(1);
    Ok(())
}

fn look(
    environment: &Environment,
    at: usize,
    runners: &mut [Runner],
    pairs: &[Pair],
    bar: &ProgressBar,
) -> Result<()> {
    let every = EVERY[at];
    let mut random = Random::new(at as u64);
    let budget = environment.budget(Duration::from_secs(1), Duration::from_millis(50));
    let mut done = 0;
    while budget.allows(done, LEAST + 1) {
        let chosen: Vec<Pair> =
            (0..every.max(LOOKS)).map(|_| pairs[random.below(pairs.len() as u64) as usize]).collect();
        let keys: Vec<u64> = chosen.iter().map(|pair| pair.0).collect();
        let expected = chosen.iter().fold(0_u64, |sum, pair| sum.wrapping_add(pair.1));
        for runner in runners.iter_mut() {
            let (took, sum) = environment.clock.time(|| runner.map.look(&keys, every));
            if sum.map_err(|error| runner.failed(&error))? != expected {
                return Err(runner.failed(&"a value is wrong".into()));
            }
            if done > 0 {
                runner.look[at].push(took / keys.len() as f64);
            }
        }
        done += 1;
    }
    bar.inc(1);
    Ok(())
}

fn insert(
    environment: &Environment,
    at: usize,
    runners: &mut [Runner],
    pairs: &[Pair],
    bar: &ProgressBar,
) -> Result<()> {
    let every = EVERY[at];
    let share = match (environment.smoke, environment.quick) {
        (true, _) => 1e6,
        (_, true) => 1e8,
        _ => 1e9,
    };
    for (done, batch) in pairs.chunks(every).enumerate() {
        let ready = |runner: &&mut Runner| runner.insert[at].len() < LEAST || runner.spent[at] < share;
        for runner in runners.iter_mut().filter(ready) {
            let (took, result) = environment.clock.time(|| runner.map.insert(batch));
            result.map_err(|error| runner.failed(&error))?;
            runner.given[at] += every;
            if done >= WARM[at] || took > LONG {
                runner.insert[at].push(took / every as f64);
                runner.spent[at] += took;
            }
        }
        bar.tick();
    }
    bar.inc(1);
    Ok(())
}

fn report(
    medium: Medium,
    kind: Kind,
    title: &str,
    runners: &[Runner],
    section: &mut Section,
    walks: &mut Table,
) {
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let columns = [
        ("operations a transaction", Unit::Count),
        ("", Unit::Text),
        ("made of", Unit::Text),
        ("insert", Unit::Nanoseconds),
        ("to indelible", Unit::Ratio),
        ("look up", Unit::Nanoseconds),
        ("to indelible", Unit::Ratio),
        ("insertions", Unit::Count),
    ];
    let mut table = Table::new(format!("{title}: nanoseconds a key"), &columns);
    for (at, every) in EVERY.iter().enumerate() {
        for runner in runners {
            table.row(vec![
                (*every as u64).into(),
                runner.contestant.name.into(),
                (runner.contestant.what)(kind).into(),
                cell(&runner.insert[at]),
                (runner.insert[at].median() / runners[0].insert[at].median()).into(),
                cell(&runner.look[at]),
                (runner.look[at].median() / runners[0].look[at].median()).into(),
                (runner.insert[at].len() as u64).into(),
            ]);
        }
        let what = |work| format!("{title}, {work}, {every} in a transaction");
        section.goals.extend(goals(&what("insert"), runners, |runner| &runner.insert[at]));
        section.goals.extend(goals(&what("look up"), runners, |runner| &runner.look[at]));
    }
    for runner in runners {
        walks.row(vec![
            kind.word().into(),
            runner.contestant.name.into(),
            (runner.contestant.what)(kind).into(),
            cell(&runner.walk),
            (runner.walk.median() / runners[0].walk.median()).into(),
        ]);
    }
    section.goals.extend(goals(&format!("{title}, walk"), runners, |runner| &runner.walk));
    for (work, short) in [("insert", "insert"), ("look up", "look")] {
        let file = format!("maps-{}-{}-{short}", kind.short(), medium.short());
        let plot = Plot::of(&table, &file, "operations a transaction", work, &[""]);
        section.plots.push(plot.titled(format!("{title}: {work}")));
    }
    section.tables.push(table);
}

fn goals(what: &str, runners: &[Runner], of: impl Fn(&Runner) -> &Samples) -> Vec<Goal> {
    let (own, others): (Vec<_>, Vec<_>) = runners.iter().partition(|runner| runner.contestant.own);
    let median = |runner: &Runner| of(runner).median();
    let Some(best) = others.into_iter().min_by(|a, b| median(a).total_cmp(&median(b))) else {
        return Vec::new();
    };
    let goal = |runner: &Runner| {
        let what = format!("{what}: {} to {}", runner.contestant.name, best.contestant.name);
        Goal::at_most(what, Unit::Ratio, 1.0, median(runner) / median(best))
    };
    own.into_iter().map(goal).collect()
}
