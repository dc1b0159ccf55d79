//! Media errors with Linux semantics: a failed write-back concerns the file and is told once, to the caller
//! that asks next; "no space" from a durable write may come after all of it is visible. After the error the
//! program goes on, with every kind of operation, until it dies or the power fails: nothing acknowledged is
//! lost, and nothing that was refused for want of space is found done.

use indelible_store::error::{Result, StoreError};
use indelible_store::format::{TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::medium::{Device, Fatal, Medium};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{check_tiling, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{formatted, media};
use indelible_testing::{Choice, Fault, Hook, Hooked, OpKind, SimConfig, SimMedium};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const KEY: Key<'static> = Key(&[]);

/// How much of a durable write that fails is visible.
#[derive(Clone, Copy, Debug)]
enum Visible {
    None,
    Half,
    All,
}

/// A file whose write-back may fail: a durable write is told of it, and whatever is in the page cache, whoever
/// wrote it, is clean and perhaps lost. Once all reports of that were taken, a later call says nothing.
struct File {
    sim: Arc<SimMedium>,
    durable: AtomicU64,
    plan: Mutex<Option<(u64, Visible)>>,
    /// A write-back failed, and nobody was told.
    untold: AtomicBool,
}

impl File {
    fn over(sim: &SimMedium) -> Arc<Hooked<File>> {
        let (durable, plan, untold) = (AtomicU64::new(0), Mutex::new(None), AtomicBool::new(false));
        let sim = Arc::new(sim.handle());
        Hooked::new(sim.clone(), File { sim, durable, plan, untold })
    }

    /// The `nth` durable write from now on fails.
    fn fail(&self, nth: u64, visible: Visible) {
        *self.plan.lock().unwrap() = Some((self.durable.load(Ordering::Relaxed) + nth, visible));
    }
}

impl Hook for File {
    fn check_writeback(&self, under: &dyn Device) -> Result<(), Fatal> {
        match self.untold.swap(false, Ordering::Relaxed) {
            true => Err(std::io::Error::from_raw_os_error(5).into()),
            false => under.check_writeback(),
        }
    }
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        if self.untold.load(Ordering::Relaxed) {
            under.write(offset, bytes)?;
            return self.check_writeback(under);
        }
        let now = self.durable.fetch_add(1, Ordering::Relaxed);
        let visible = match *self.plan.lock().unwrap() {
            Some((nth, Visible::None)) if nth == now => 0,
            Some((nth, Visible::Half)) if nth == now => bytes.len() / 128 * 64,
            Some((nth, Visible::All)) if nth == now => bytes.len(),
            _ => return under.write_durable(offset, bytes),
        };
        under.write(offset, &bytes[..visible])?;
        self.sim.fail_at(OpKind::Barrier, 0, Fault::NoSpace);
        under.barrier()
    }
}

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

/// Contents by name.
type State = BTreeMap<String, Vec<u8>>;

fn state(store: &Store) -> State {
    snapshot(store).unwrap().into_iter().map(|(name, (_, _, bytes))| (name, bytes)).collect()
}

/// The state that a power cut or a death leaves, recovered.
fn recovered(medium: &SimMedium) -> Result<State, String> {
    let store = Store::open(Arc::new(medium.handle()), process(9)).map_err(|error| error.to_string())?;
    recover_all(&store).map_err(|error| error.to_string())?;
    check_tiling(&store)?;
    Ok(state(&store))
}

/// An error told to a lane concerns the pages of the table, too: their lane must not be voided.
#[test]
fn an_error_told_to_one_lane_poisons_the_table_lane() {
    for config in media() {
        for cut in 0..20 {
            let sim = formatted(1 << 20, config);
            let file = File::over(&sim);
            let store = Store::open(file.clone(), process(1)).unwrap();
            for name in ["a", "other", "old"] {
                store.create(name, &of(100)).unwrap();
            }
            let mut a = store.attach_writer("a", KEY).unwrap();
            sim.settle();
            store.rename("old", "new", KEY).unwrap();
            file.fail(0, Visible::All);
            psync(&mut a, &[(0, &[1])]).unwrap_err();
            let barriers = sim.count(OpKind::Barrier);
            let mut names = ["other", "another"];
            while sim.count(OpKind::Barrier) == barriers {
                store.rename(names[0], names[1], KEY).unwrap();
                names.swap(0, 1);
            }
            drop(a);
            let found = recovered(&sim.power_cut(Choice::Random(cut)).medium()).unwrap();
            assert!(
                found.contains_key("new") && found.contains_key(names[0]),
                "{config:?}, cut {cut}: {found:?}"
            );
        }
    }
}

/// Nor is another lane of the process to be voided, nor its objects detached as if they were in place.
#[test]
fn an_error_told_to_one_lane_poisons_every_other() {
    for cut in 0..20 {
        let sim = formatted(1 << 20, SimConfig::default());
        let file = File::over(&sim);
        let store = Store::open(file.clone(), process(1)).unwrap();
        for name in ["a", "b"] {
            store.create(name, &of(9000)).unwrap();
        }
        let (mut a, mut b) = (store.attach_writer("a", KEY).unwrap(), store.attach_writer("b", KEY).unwrap());
        sim.settle();
        psync(&mut b, &[(0, &[7; 9000])]).unwrap();
        file.fail(0, Visible::None);
        psync(&mut a, &[(0, &[1])]).unwrap_err();
        assert!(matches!(b.checkpoint(), Err(StoreError::Poisoned)));
        assert!(matches!(psync(&mut b, &[(0, &[8])]), Err(StoreError::Poisoned)));
        if cut % 2 == 0 {
            b.detach().unwrap_err();
            drop(a);
            let b = store.attach_writer("b", KEY).unwrap();
            b.checkpoint().unwrap();
            std::mem::forget(b);
        }
        let found = recovered(&sim.power_cut(Choice::Random(cut)).medium()).unwrap();
        assert_eq!(found["b"], [7; 9000], "cut {cut}");
    }
}

/// A direct write that ended without its barrier is in the primary, where the next psync finds nothing to log.
#[test]
fn a_direct_write_without_proof_is_not_published() {
    for config in media() {
        let sim = formatted(2 << 20, config);
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        store.create("a", &CreateOptions { sparse: true, ..of(300_000) }).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 100])]).unwrap();
        sim.settle();
        a.begin_direct(300_000).unwrap();
        a.write_direct(4096, &[2; 60_000]).unwrap();
        sim.fail_at(OpKind::Reserve, 0, Fault::NoSpace);
        assert!(matches!(a.write_direct(200_000, &[2; 100]), Err(StoreError::NoSpace)));
        psync(&mut a, &[(4096, &[2; 60_000]), (200_000, &[2; 100])]).unwrap();
        let expected = state(&store);
        for choice in [Choice::None, Choice::Random(1), Choice::All] {
            let found = recovered(&sim.power_cut(choice.clone()).medium()).unwrap();
            assert!(found == expected && found["a"][4096] == 2, "{config:?}, {choice:?}");
        }
        assert!(matches!(a.write_direct(8192, &[3]), Err(StoreError::BadSize { .. })), "it is over");
    }
}

/// Pages that were lost are clean: the system may drop them, and read them again as they were. A change of the table that
/// is made from such a mixture is not published, where others would redo it.
#[test]
fn a_change_made_from_dropped_pages_is_not_published() {
    for config in media() {
        for half in 0..2 {
            let sim = formatted(1 << 20, config);
            let file = File::over(&sim);
            let store = Store::open(file.clone(), process(1)).unwrap();
            for nth in 0..20 {
                store.create(&format!("{nth}"), &of(100)).unwrap();
            }
            sim.settle();
            let before = sim.to_bytes();
            store.rename("0", "new", KEY).unwrap();
            (1..10).for_each(|nth| store.destroy(&format!("{nth}"), KEY).unwrap());
            let expected = state(&store);
            let lane = TABLE_LANE as usize..(TABLE_LANE + TABLE_LANE_LEN) as usize;
            for (page, old) in
                before.chunks(4096).enumerate().filter(|(page, _)| !lane.contains(&(page * 4096)))
            {
                if page % 2 == half {
                    sim.write(page as u64 * 4096, old).unwrap();
                }
            }
            file.untold.store(true, Ordering::Relaxed);
            // The result does not matter: no other process may see it.
            let result = store.create("more", &of(5000));
            assert!(result.is_err(), "{config:?}, {half}");
            let other = Store::open(Arc::new(sim.handle()), process(2)).unwrap();
            assert_eq!(state(&other), expected, "{config:?}, {half}: {result:?}");
            check_tiling(&other).unwrap();
            store.create("more", &of(5000)).unwrap();
            check_tiling(&store).unwrap();
        }
    }
}

/// Each of these rules, broken, is noticed here.
#[test]
#[cfg(feature = "mutants")]
fn the_rules_broken_are_noticed() {
    use indelible_store::{Mutant, with_mutant};
    let checks: [(Mutant, fn()); 4] = [
        (Mutant::FaultOfOneWrite, an_error_told_to_one_lane_poisons_the_table_lane),
        (Mutant::FaultOfOneWrite, an_error_told_to_one_lane_poisons_every_other),
        (Mutant::OpenDirectPublished, a_direct_write_without_proof_is_not_published),
        (Mutant::ReadingsTrusted, a_change_made_from_dropped_pages_is_not_published),
    ];
    for (nth, (mutant, check)) in checks.into_iter().enumerate() {
        let verdict = with_mutant(mutant, || std::panic::catch_unwind(check));
        assert!(verdict.is_err(), "{mutant:?} goes unnoticed by check {nth}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Attach(&'static str),
    Detach(&'static str),
    Create(&'static str, u64),
    Destroy(&'static str),
    Rename(&'static str, &'static str),
    Resize(&'static str, u64),
    Grow(&'static str, u64),
    Psync(&'static str, u64, u8),
    Both(&'static str, &'static str, u8),
    Load(&'static str, u64, u8),
    Checkpoint(&'static str),
}

use Op::*;

/// Every kind of operation; twice, so that what fails in the first round is followed by all of them.
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

struct Program {
    store: Arc<Store>,
    writers: BTreeMap<&'static str, Writer>,
    /// States that recovery may find.
    states: Vec<State>,
}

impl Program {
    fn run(&mut self, op: Op, at: &str) {
        let result = self.call(op);
        let changed: Vec<State> = self.states.iter().filter_map(|state| applied(state, op)).collect();
        match result {
            Ok(()) => self.states = changed,
            // Refused: nothing happened.
            Err(
                StoreError::NoSpace
                | StoreError::Poisoned
                | StoreError::NotFound
                | StoreError::Exists
                | StoreError::Held { .. }
                | StoreError::NotAttached,
            ) => {}
            Err(StoreError::Failed(_)) => self.states.extend(changed),
            Err(error) => panic!("{at}: {op:?}: {error}"),
        }
        self.states.sort();
        self.states.dedup();
        assert!(!self.states.is_empty(), "{at}: {op:?} cannot have succeeded");
    }

    fn writer(&mut self, name: &str) -> Result<&mut Writer> {
        self.writers.get_mut(name).ok_or(StoreError::NotAttached)
    }

    /// The writer of an object that has so many bytes: a growth may have been refused.
    fn reaching(&mut self, name: &str, end: u64) -> Result<&mut Writer> {
        self.writer(name).and_then(|writer| match writer.object().entry.size.get() >= end {
            true => Ok(writer),
            false => Err(StoreError::NotAttached),
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
            Detach(name) => self.writers.remove(name).ok_or(StoreError::NotAttached)?.detach(),
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
            Both(one, other, value) => {
                let bytes = [value; LEN as usize];
                let mut parts: Vec<_> =
                    self.writers.iter_mut().filter(|(name, _)| [one, other].contains(name)).collect();
                let [(_, one), (_, other)] = &mut parts[..] else { return Err(StoreError::NotAttached) };
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

/// The state after `op`; `None` if it can only have failed.
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
        Both(one, other, value) => {
            store(&mut state, one, 0, value)?;
            store(&mut state, other, 0, value)?;
        }
        Load(name, to, value) => store(&mut state, name, to - LEN, value)?,
    }
    Some(state)
}

/// The state found, and the states allowed, by name, length and the first byte of each kilobyte.
fn brief(found: &State, states: &[State]) -> String {
    let short = |state: &State| {
        let all = state
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.len(), bytes.iter().step_by(1000).collect::<Vec<_>>()));
        format!("{:?}", all.collect::<Vec<_>>())
    };
    format!("found {}, allowed {:?}", short(found), states.iter().map(short).collect::<Vec<_>>())
}

/// One run with one failure; the numbers of durable writes and of reservations in its first round.
fn run(config: SimConfig, plan: &dyn Fn(&File), at: &str) -> (u64, u64) {
    let sim = formatted(2 << 20, config);
    {
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        for (name, size) in [("a", 10_000), ("wall", 100), ("b", 10_000), ("d", 5000)] {
            store.create(name, &of(size)).unwrap();
        }
    }
    sim.settle();
    let file = File::over(&sim);
    let store = Store::open(file.clone(), process(2)).unwrap();
    let states = vec![state(&store)];
    let mut program = Program { store, writers: BTreeMap::new(), states };
    let reserved = sim.count(OpKind::Reserve);
    plan(&file);
    ROUND.into_iter().for_each(|op| program.run(op, at));
    let counts = (file.durable.load(Ordering::Relaxed), sim.count(OpKind::Reserve) - reserved);
    // Once more, now and then dying or losing power.
    for (nth, op) in ROUND.into_iter().enumerate() {
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
fn whatever_follows_a_failed_durable_write_loses_nothing_acknowledged() {
    let mut runs = 0;
    for config in &media()[..2] {
        let (count, _) = run(*config, &|_| {}, "undisturbed");
        for nth in 0..count {
            for visible in [Visible::None, Visible::Half, Visible::All] {
                run(
                    *config,
                    &|file| file.fail(nth, visible),
                    &format!("{config:?}, durable write {nth}, {visible:?}"),
                );
                runs += 1;
            }
        }
    }
    assert!(runs > 150, "{runs} runs");
}

#[test]
fn whatever_is_refused_for_want_of_space_did_not_happen() {
    let mut runs = 0;
    for config in &media()[..2] {
        let (_, count) = run(*config, &|_| {}, "undisturbed");
        for nth in 0..count {
            let plan = |file: &File| file.sim.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
            run(*config, &plan, &format!("{config:?}, reservation {nth}"));
            runs += 1;
        }
    }
    assert!(runs > 5, "{runs} runs");
}
