//! Media errors as on Linux: a failed write-back is reported once per file, and "no space" may come
//! after all is visible.

use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync, psync_many};
use indelible_testing::rules::errors::{State, Visible, WritebackFile, recovered, state};
use indelible_testing::rules::whenever_pages_are_dropped;
use indelible_testing::scenario::{formatted, media};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, sparse};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Attach(&'static str),
    Detach(&'static str),
    Create(&'static str, u64),
    Destroy(&'static str),
    Rename(&'static str, &'static str),
    Resize(&'static str, u64),
    Grow(&'static str, u64),
    Psync(&'static str, u64, u8),
    Large(&'static str, u8),
    Both(&'static str, &'static str, u8),
    Load(&'static str, u64, u8),
    Checkpoint(&'static str),
}

use Op::*;

const ROUND: [Op; 24] = [
    Attach("a"),
    Attach("b"),
    Psync("a", 0, 1),
    Both("a", "b", 2),
    Checkpoint("a"),
    Create("c", 9000),
    Psync("a", 5000, 3),
    Attach("c"),
    Load("c", 8000, 4),
    Rename("d", "e"),
    Grow("b", 30_000),
    Psync("b", 20_000, 5),
    Psync("a", 64, 6),
    Resize("e", 20_000),
    Both("b", "c", 7),
    Detach("b"),
    Rename("e", "d"),
    Resize("d", 5000),
    Detach("c"),
    Create("f", 100_000),
    Destroy("f"),
    Checkpoint("a"),
    Destroy("c"),
    Detach("a"),
];

const LEN: u64 = 200;
const LARGE: u64 = 100 << 10;

const UNDISTURBED: &str = "undisturbed";

/// Lengthens a lane, and shortens it at the end.
const LONG_LANE: [Op; 11] = [
    Attach("large"),
    Large("large", 1),
    Detach("large"),
    Attach("a"),
    Psync("a", 0, 2),
    Attach("large"),
    Psync("large", 64, 3),
    Detach("a"),
    Large("large", 4),
    Psync("large", 5000, 5),
    Detach("large"),
];

struct Program {
    store: Arc<Store>,
    writers: BTreeMap<&'static str, Writer>,
    states: Vec<State>,
}

impl Program {
    fn run(&mut self, op: Op, at: &str) {
        let result = self.call(op);
        let changed: Vec<State> = self.states.iter().filter_map(|state| applied(state, op)).collect();
        match result {
            Ok(()) => self.states = changed,
            Err(
                StoreError::NoSpace
                | StoreError::Poisoned
                | StoreError::NotFound
                | StoreError::Exists
                | StoreError::Held { .. },
            ) => {}
            Err(StoreError::NotApplied(_)) => self.states = changed,
            Err(StoreError::Failed(_)) => self.states.extend(changed),
            Err(error) => panic!("{at}: {op:?}: {error}"),
        }
        self.states.sort();
        self.states.dedup();
        assert!(!self.states.is_empty(), "{at}: {op:?} cannot have succeeded");
    }

    fn writer(&mut self, name: &str) -> Result<&mut Writer> {
        self.writers.get_mut(name).ok_or(StoreError::NotFound)
    }

    /// A writer of at least `end` bytes: a growth may have been refused.
    fn reaching(&mut self, name: &str, end: u64) -> Result<&mut Writer> {
        self.writer(name).and_then(|writer| match writer.object().entry.size.get() >= end {
            true => Ok(writer),
            false => Err(StoreError::NotFound),
        })
    }

    fn call(&mut self, op: Op) -> Result<()> {
        let store = self.store.clone();
        match op {
            Attach(name) => {
                let writer = store.attach_writer(name, KEY)?;
                self.writers.insert(name, writer);
                Ok(())
            }
            Detach(name) => self.writers.remove(name).ok_or(StoreError::NotFound)?.detach(),
            Create(name, size) => {
                store.create(name, &CreateOptions { sparse: size > 50_000, ..of(size) }).map(drop)
            }
            Destroy(name) => store.destroy(name, KEY),
            Rename(from, to) => store.rename(from, to, KEY),
            Resize(name, size) => store.resize(name, KEY, size).map(drop),
            Grow(name, size) => self.writer(name)?.grow(size).map(drop),
            Psync(name, from, value) => {
                psync(self.reaching(name, from + LEN)?, &[(from, &[value; LEN as usize])])
            }
            Large(name, value) => psync(self.writer(name)?, &[(0, &vec![value; LARGE as usize])]),
            Both(one, other, value) => {
                let bytes = [value; LEN as usize];
                let mut parts: Vec<_> =
                    self.writers.iter_mut().filter(|(name, _)| [one, other].contains(name)).collect();
                let [(_, one), (_, other)] = &mut parts[..] else { return Err(StoreError::NotFound) };
                psync_many(&mut [(one, &[(0, &bytes)]), (other, &[(0, &bytes)])])
            }
            Load(name, to, value) => {
                let writer = self.reaching(name, to)?;
                if writer.published() > to - LEN {
                    return psync(writer, &[(to - LEN, &[value; LEN as usize])]);
                }
                writer.begin_direct(to)?;
                writer.write_direct(to - LEN, &[value; LEN as usize])?;
                writer.end_direct()?;
                psync(writer, &[])
            }
            Checkpoint(name) => self.writer(name)?.checkpoint(),
        }
    }
}

fn applied(state: &State, op: Op) -> Option<State> {
    let mut state = state.clone();
    let store = |state: &mut State, name: &str, from: u64, value: u8| {
        state.get_mut(name)?.get_mut(from as usize..(from + LEN) as usize)?.fill(value);
        Some(())
    };
    match op {
        Attach(_) | Detach(_) | Checkpoint(_) => {}
        Create(name, size) => drop(state.insert(name.into(), vec![0; size as usize])),
        Destroy(name) => drop(state.remove(name)?),
        Rename(from, to) => {
            let bytes = state.remove(from)?;
            state.insert(to.into(), bytes);
        }
        Resize(name, size) | Grow(name, size) => state.get_mut(name)?.resize(size as usize, 0),
        Psync(name, from, value) => store(&mut state, name, from, value)?,
        Large(name, value) => state.get_mut(name)?.fill(value),
        Both(one, other, value) => {
            store(&mut state, one, 0, value)?;
            store(&mut state, other, 0, value)?;
        }
        Load(name, to, value) => store(&mut state, name, to - LEN, value)?,
    }
    Some(state)
}

fn brief(found: &State, states: &[State]) -> String {
    let short = |state: &State| {
        let all = state
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.len(), bytes.iter().step_by(1000).collect::<Vec<_>>()));
        format!("{:?}", all.collect::<Vec<_>>())
    };
    format!("found {}, allowed {:?}", short(found), states.iter().map(short).collect::<Vec<_>>())
}

fn run(config: SimConfig, round: &[Op], plan: &dyn Fn(&WritebackFile), at: &str) -> (u64, u64) {
    let has_long_lane = round == LONG_LANE;
    let sim = formatted(if has_long_lane { 1536 << 10 } else { 2 << 20 }, config);
    {
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        for (name, size) in [("a", 10_000), ("wall", 100), ("b", 10_000), ("d", 5000)] {
            store.create(name, &of(size)).unwrap();
        }
        if has_long_lane {
            store.create("large", &of(LARGE)).unwrap();
        }
    }
    sim.settle();
    let file = WritebackFile::over(&sim);
    let store = Store::open(file.clone(), process(2)).unwrap();
    let states = vec![state(&store)];
    let mut program = Program { store, writers: BTreeMap::new(), states };
    let reserved = sim.count(OpKind::Reserve);
    plan(&file);
    round.iter().for_each(|op| program.run(*op, at));
    if has_long_lane && at == UNDISTURBED {
        let lanes = program.store.lanes().unwrap();
        assert!(lanes.iter().all(|lane| lane.index.is_none() || lane.len < LARGE), "{lanes:?}");
    }
    let counts = (file.durable.load(Ordering::Relaxed), sim.count(OpKind::Reserve) - reserved);
    for (nth, &op) in round.iter().enumerate() {
        if nth % 6 == 0 {
            for choice in [Choice::None, Choice::Random(nth as u64), Choice::All] {
                let found = recovered(&sim.power_cut(choice.clone()).medium())
                    .unwrap_or_else(|error| panic!("{at}: cut before {op:?}, {choice:?}: {error}"));
                assert!(
                    program.states.contains(&found),
                    "{at}: cut before {op:?}, {choice:?}: {}",
                    brief(&found, &program.states)
                );
            }
        }
        program.run(op, at);
    }
    program.writers.into_values().for_each(std::mem::forget);
    file.sim.kill();
    let found = recovered(&sim).unwrap_or_else(|error| panic!("{at}: death: {error}"));
    assert!(program.states.contains(&found), "{at}: death: {}", brief(&found, &program.states));
    counts
}

#[test]
fn calls_after_a_failed_durable_write_lose_nothing_acknowledged() {
    let runs = media()[..2].iter().map(|config| fail_each_durable_write(*config, &ROUND)).sum::<u64>();
    assert!(runs > 150 / sparse(2) as u64, "{runs} runs");
}

#[test]
fn calls_after_a_lane_could_not_be_made_shorter_lose_nothing_acknowledged() {
    let runs = fail_each_durable_write(media()[0], &LONG_LANE);
    assert!(runs > 40 / sparse(2) as u64, "{runs} runs");
}

fn fail_each_durable_write(config: SimConfig, round: &[Op]) -> u64 {
    let mut runs = 0;
    let (count, _) = run(config, round, &|_| {}, UNDISTURBED);
    for nth in (0..count).step_by(sparse(2)) {
        for visible in [Visible::None, Visible::Half, Visible::All] {
            let at = format!("{config:?}, durable write {nth}, {visible:?}");
            run(config, round, &|file| file.fail(nth, visible), &at);
            runs += 1;
        }
    }
    runs
}

#[test]
fn a_call_refused_for_want_of_space_changes_nothing() {
    let mut runs = 0;
    for config in &media()[..2] {
        let (_, count) = run(*config, &ROUND, &|_| {}, UNDISTURBED);
        for nth in 0..count {
            let plan = |file: &WritebackFile| file.sim.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
            run(*config, &ROUND, &plan, &format!("{config:?}, reservation {nth}"));
            runs += 1;
        }
    }
    assert!(runs > 5, "{runs} runs");
}

#[test]
fn pages_are_dropped_beside_detaches_and_deletions() {
    type Call = fn(&Arc<Store>) -> Result<()>;
    let calls: [(&str, Call); 4] = [
        ("10", |store| store.attach_writer("10", KEY)?.detach()),
        ("11", |store| store.delete("11", KEY)),
        ("12", |store| {
            let reader = store.attach_reader("12", KEY)?;
            store.delete("12", KEY)?;
            reader.detach()
        }),
        ("13", |store| {
            let writer = store.attach_writer("13", KEY)?;
            store.delete("13", KEY)?;
            writer.detach()
        }),
    ];
    for (about, call) in calls {
        whenever_pages_are_dropped(&[about], call).unwrap_or_else(|what| panic!("{about}: {what}"));
    }
}
