//! Every operation of the medium fails once: psynced data stays (S0.18), a failed barrier poisons
//! and is not repeated, want of space changes nothing.

use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, check_tiling, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::scenario::{formatted, judge_medium, media};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

type Step = fn(&Arc<Store>, &mut Vec<Writer>) -> Result<()>;

const STEPS: [Step; 13] = [
    |store, w| store.attach_writer("a", KEY).map(|writer| w.push(writer)),
    |store, w| store.attach_writer("b", KEY).map(|writer| w.push(writer)),
    |_, w| psync(&mut w[0], &[(0, &[1; 3000]), (9000, &[1])]),
    |_, w| {
        let [a, b] = &mut w[..] else { panic!("two writers") };
        psync_many(&mut [(a, &[(0, &[2; 64])]), (b, &[(0, &[2; 64])])])
    },
    |_, w| w[0].checkpoint(),
    |store, _| store.create("c", &CreateOptions { sparse: true, ..of(9000) }).map(drop),
    |_, w| psync(&mut w[0], &[(0, &[3; 9999])]),
    |_, w| w[1].grow(30_000).map(drop),
    |_, w| psync(&mut w[0], &[(64, &[4; 9])]),
    |store, _| store.rename("c", "d", KEY),
    |store, _| store.resize("d", KEY, 20_000).map(drop),
    |store, _| store.lengthen(3 << 20).map(drop),
    |store, _| store.destroy("d", KEY),
];

struct Pool {
    medium: SimMedium,
    store: Arc<Store>,
}

fn pool(config: SimConfig) -> Pool {
    let medium = formatted(2 << 20, config);
    {
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        for name in ["a", "wall", "b"] {
            store.create(name, &of(10_000)).unwrap();
        }
    }
    medium.settle();
    let store = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
    Pool { medium, store }
}

fn plain(state: &Snapshot) -> Vec<(String, Vec<u8>)> {
    state.iter().map(|(name, (_, _, bytes))| (name.clone(), bytes.clone())).collect()
}

fn undisturbed(config: SimConfig) -> (Vec<Snapshot>, Vec<(OpKind, u64)>) {
    let Pool { medium, store } = pool(config);
    let before = OpKind::ALL.map(|kind| medium.count(kind));
    let mut states = vec![snapshot(&store).unwrap()];
    let mut writers = Vec::new();
    for step in STEPS {
        step(&store, &mut writers).unwrap();
        states.push(snapshot(&store).unwrap());
    }
    writers.into_iter().for_each(|writer| writer.detach().unwrap());
    let counts =
        OpKind::ALL.into_iter().zip(before).map(|(kind, before)| (kind, medium.count(kind) - before));
    (states, counts.collect())
}

fn is_space(error: &StoreError) -> bool {
    matches!(error, StoreError::NoSpace)
}

fn says_durable(error: &StoreError) -> bool {
    matches!(error, StoreError::NotApplied(_))
}

fn disturbed(config: SimConfig, kind: OpKind, nth: u64, fault: Fault, states: &[Snapshot]) -> bool {
    let at = format!("{config:?}, {kind:?} {nth}, {fault:?}");
    let Pool { medium, store } = pool(config);
    medium.fail_at(kind, nth, fault);
    let mut writers = Vec::new();
    let mut done = 0;
    let mut failed = None;
    for (nth, step) in STEPS.into_iter().enumerate() {
        let mut result = step(&store, &mut writers);
        if let Err(error) = &result {
            let barriers = medium.count(OpKind::Barrier);
            if says_durable(error) {
                let again = writers.iter_mut().map(|writer| psync(writer, &[(0, &[77; 64])]));
                again
                    .for_each(|again| assert!(matches!(again, Err(StoreError::Poisoned)), "{at}: {again:?}"));
            } else if is_space(error)
                || kind == OpKind::Read
                || kind == OpKind::Lock
                || kind == OpKind::Verify
            {
                if nth != 4 {
                    let now = snapshot(&store).unwrap_or_else(|e| panic!("{at}: step {nth}: {e}"));
                    assert_eq!(plain(&now), plain(&states[done]), "{at}: step {nth} left something: {error}");
                }
                if is_space(error) {
                    result = step(&store, &mut writers);
                    result.as_ref().unwrap_or_else(|e| panic!("{at}: step {nth} again: {e}"));
                }
            } else if kind == OpKind::Barrier {
                for writer in &mut writers {
                    assert!(writer.is_poisoned(), "{at}: step {nth}");
                    let again = psync(writer, &[(0, &[77; 64])]);
                    assert!(matches!(again, Err(StoreError::Poisoned)), "{at}: step {nth}");
                    assert!(matches!(writer.checkpoint(), Err(StoreError::Poisoned)), "{at}: step {nth}");
                }
                assert_eq!(medium.count(OpKind::Barrier), barriers, "{at}: a barrier after a failed one");
            }
        }
        if let Err(error) = result {
            failed = Some(error);
            break;
        }
        done += 1;
    }
    writers.into_iter().for_each(drop);
    let allowed = match &failed {
        Some(error) if says_durable(error) => &states[done + 1..=done + 1],
        Some(_) => &states[done..(done + 2).min(states.len())],
        None => &states[done..=done],
    };
    let allowed: Vec<_> = allowed.iter().map(plain).collect();
    medium.clear_faults();
    recover_all(&store).unwrap_or_else(|error| panic!("{at}: after {failed:?}: {error}"));
    let found = snapshot(&store).unwrap();
    let state = states.iter().position(|state| plain(state) == plain(&found));
    assert!(allowed.contains(&plain(&found)), "{at}: after {failed:?} in step {done}: state {state:?}");
    check_tiling(&store).unwrap_or_else(|error| panic!("{at}: {error}"));
    store.create("new", &of(64)).unwrap_or_else(|error| panic!("{at}: {error}"));
    let promised = snapshot(&store).unwrap();
    let choice = if nth.is_multiple_of(2) { Choice::None } else { Choice::Random(nth) };
    judge_medium(&medium.power_cut(choice.clone()).medium(), std::slice::from_ref(&promised))
        .unwrap_or_else(|error| panic!("{at}, {choice:?}: after {failed:?} in step {done}: {error}"));
    failed.is_some_and(|error| says_durable(&error))
}

/// A psync of several objects rereads its lines from the lane.
#[test]
fn a_psync_that_cannot_be_applied_says_that_it_is_durable() {
    let mut told = 0;
    for config in &media()[..2] {
        let (states, _) = undisturbed(*config);
        let Pool { medium, store } = pool(*config);
        let mut writers = Vec::new();
        let start = medium.count(OpKind::Read);
        STEPS[..3].iter().for_each(|step| step(&store, &mut writers).unwrap());
        let before = medium.count(OpKind::Read) - start;
        STEPS[3](&store, &mut writers).unwrap();
        let after = medium.count(OpKind::Read) - start;
        told +=
            (before..after).filter(|nth| disturbed(*config, OpKind::Read, *nth, Fault::Io, &states)).count();
    }
    assert!(told > 0, "no read came behind the commit");
}

fn sweep(fault: Fault) {
    let mut runs = 0;
    for config in &media()[..2] {
        let config = *config;
        let (states, counts) = undisturbed(config);
        for (kind, count) in counts {
            let stride = if kind == OpKind::Read { 1 + count / 25 } else { 1 };
            for nth in (0..count).step_by(stride as usize) {
                disturbed(config, kind, nth, fault, &states);
                runs += 1;
            }
        }
    }
    println!("{fault:?}: {runs} runs");
}

#[test]
fn every_operation_fails_with_an_io_error() {
    sweep(Fault::Io);
}

#[test]
fn every_operation_fails_half_way() {
    sweep(Fault::Short);
}

#[test]
fn every_operation_fails_for_want_of_space() {
    sweep(Fault::NoSpace);
}

fn left_behind(config: SimConfig) -> (SimMedium, Snapshot) {
    let Pool { medium, store } = pool(config);
    let mut a = store.attach_writer("a", KEY).unwrap();
    for round in 1..4_u8 {
        psync(&mut a, &[(0, &[round; 200]), (5000, &[round])]).unwrap();
        psync(&mut a, &[(u64::from(round) * 1000, &[round; 5000])]).unwrap();
    }
    let promised = snapshot(&store).unwrap();
    std::mem::forget(a);
    (medium.power_cut(Choice::None).medium(), promised)
}

#[test]
fn recovery_fails_at_every_operation() {
    for config in &media()[..2] {
        let attach = |medium: &SimMedium| {
            let store = Store::open(Arc::new(medium.handle()), process(3)).unwrap();
            let result = store.attach_writer("a", KEY);
            (store, result)
        };
        let (medium, _) = left_behind(*config);
        let before = OpKind::ALL.map(|kind| medium.count(kind));
        let recovered = attach(&medium).1.unwrap().recovered();
        assert!(recovered.batches == 6 && recovered.bytes >= 5000, "{recovered:?}");
        let counts =
            OpKind::ALL.into_iter().zip(before).map(|(kind, before)| (kind, medium.count(kind) - before));
        let mut failed = 0;
        for (kind, count) in counts {
            for (nth, fault) in (0..count).flat_map(|nth| [Fault::NoSpace, Fault::Io].map(|f| (nth, f))) {
                let at = format!("{config:?}, {kind:?} {nth}, {fault:?}");
                let (medium, promised) = left_behind(*config);
                medium.fail_at(kind, nth, fault);
                let Ok(mut store) = Store::open(Arc::new(medium.handle()), process(3)) else { continue };
                let result = store.attach_writer("a", KEY);
                medium.clear_faults();
                if let Err(error) = &result {
                    failed += 1;
                    if !is_space(error) {
                        store = Store::open(Arc::new(medium.handle()), process(4)).unwrap();
                    }
                }
                drop(result);
                recover_all(&store).unwrap_or_else(|error| panic!("{at}: {error}"));
                assert_eq!(plain(&snapshot(&store).unwrap()), plain(&promised), "{at}");
                judge_medium(&medium.power_cut(Choice::None).medium(), &[promised])
                    .unwrap_or_else(|error| panic!("{at}: {error}"));
            }
        }
        assert!(failed > 20, "{failed} attaches failed");
    }
}
