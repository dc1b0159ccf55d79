//! Answers about what is durable on demand, wherever code can run, and when an object leaves others that share its commits: judged by the pool after a power cut.

use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Pending, Pool, PoolOptions, TxCell, TxObject,
    transaction,
};
use indelible_store::store::{Identity, Store};
use indelible_testing::pool::{contents, process, recover_all};
use indelible_testing::{Choice, SimConfig, SimMedium};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Cells = [TxCell<u64>; 64];
type Object = TxObject<Cells>;

fn how(size: u64) -> CreateOptions {
    CreateOptions::new(size).class(Class::OnDemand)
}

/// A pool in which no commit becomes durable by itself.
fn medium_and_pool() -> (SimMedium, Pool) {
    let sim = SimMedium::new(16 << 20, SimConfig { disk: true, ..SimConfig::default() });
    let pool = PoolOptions::new().on_device(Arc::new(sim.handle()), true).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    (sim, pool)
}

fn both() -> (SimMedium, Pool, Object, Object) {
    let (sim, pool) = medium_and_pool();
    let [a, b] = ["a", "b"].map(|name| {
        pool.create_with(name, &how(4096)).unwrap();
        pool.attach_transactional(name).unwrap()
    });
    (sim, pool, a, b)
}

fn get(object: &Object, cell: usize) -> u64 {
    object.transaction(|tx| tx.read(&object[cell])).unwrap()
}

fn set(object: &Object, cell: usize, value: u64) {
    object.transaction(|tx| tx.write(&object[cell], value)).unwrap();
}

/// The first two cells of objects, after a power cut now.
fn after_a_power_cut<const N: usize>(sim: &SimMedium, names: [&str; N]) -> [(u8, u8); N] {
    let image = sim.power_cut(Choice::None).medium();
    let store = Store::open(Arc::new(image.handle()), Identity { boot: [7; 16], ..process(9) }).unwrap();
    recover_all(&store).unwrap();
    names.map(|name| {
        let bytes = contents(&store, &store.find(name).unwrap()).unwrap();
        (bytes[0], bytes[8])
    })
}

/// Calls in an action before its `tx_sync`: none, a commit, a read of durable cells, an empty transaction.
const INNER: [fn(&Object); 4] = [
    |_| {},
    |a| set(a, 1, 8),
    |a| assert_eq!(get(a, 2), 0),
    |a| a.transaction(|_| Ok::<_, Error>(())).unwrap(),
];

/// Runs `transactions` with an action that calls `tx_sync`. Returns cell 0 of `a` as it was durable then, and the pending commits.
fn synced_in_an_action(
    inner: fn(&Object),
    transactions: impl Fn(&Pool, [&Object; 2], Box<dyn Fn() -> Box<dyn FnOnce()>>),
) -> Option<(u8, Pending)> {
    let (sim, pool, a, b) = both();
    // The thread has had a part before, and all is durable.
    set(&a, 0, 1);
    a.tx_sync().unwrap();
    let (sim, a, synced) = (Rc::new(sim), Rc::new(a), Rc::new(Cell::new(None)));
    let (there, of_action, seen) = (sim.clone(), a.clone(), synced.clone());
    let action = move || -> Box<dyn FnOnce()> {
        let (sim, a, seen) = (there.clone(), of_action.clone(), seen.clone());
        Box::new(move || {
            inner(&a);
            a.tx_sync().unwrap();
            let [(first, _)] = after_a_power_cut(&sim, ["a"]);
            seen.set(Some((first, a.pending())));
        })
    };
    transactions(&pool, [&a, &b], Box::new(action));
    synced.take()
}

/// The thread's part in the transactions is out while an action runs.
#[test]
fn s1_06_tx_sync_in_an_action_on_commit_waits_for_the_commit() {
    for inner in INNER {
        let synced = synced_in_an_action(inner, |_, [a, b], action| {
            transaction(&[a, b], |tx| {
                tx.write(&a[0], 7)?;
                tx.on_commit(action());
                Ok::<_, Error>(())
            })
            .unwrap();
        });
        assert_eq!(synced, Some((7, Pending::default())));
    }
}

#[test]
fn s1_06_tx_sync_in_an_action_on_abort_waits_for_earlier_commits() {
    for inner in INNER {
        let synced = synced_in_an_action(inner, |pool, [a, _], action| {
            set(a, 0, 7);
            let aborted: indelible::Result<()> = a.transaction(|tx| {
                tx.on_abort(action());
                tx.write(&a[0], 9)?;
                Err(pool.stat("missing").unwrap_err())
            });
            assert_eq!(aborted.unwrap_err().kind(), ErrorKind::NotFound);
        });
        assert_eq!(synced, Some((7, Pending::default())));
    }
}

thread_local! {
    static AT_THE_END: RefCell<AtTheEnd> = const { RefCell::new(AtTheEnd(None)) };
}

/// Runs its closure when the thread ends.
struct AtTheEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        if let Some(what) = self.0.take() {
            what();
        }
    }
}

#[test]
fn s1_06_tx_sync_at_the_end_of_a_thread_waits_for_its_commits() {
    // `late`: the thread commits at its end as well.
    for late in [false, true] {
        let (sim, _pool, a, _b) = both();
        let (a, synced) = (Arc::new(a), Arc::new(Mutex::new(None)));
        let of_thread = (a.clone(), synced.clone());
        let thread = std::thread::spawn(move || {
            let (a, synced) = of_thread;
            let object = a.clone();
            // Older than the library's state of the thread, so destroyed after that.
            AT_THE_END.set(AtTheEnd(Some(Box::new(move || {
                if late {
                    set(&object, 1, 8);
                }
                let done = object.tx_sync().map_err(|error| error.to_string());
                *synced.lock().unwrap() = Some((done, object.pending()));
            }))));
            set(&a, 0, 7);
        });
        thread.join().unwrap();
        assert_eq!(synced.lock().unwrap().take(), Some((Ok(()), Pending::default())));
        assert_eq!(after_a_power_cut(&sim, ["a"]), [(7, if late { 8 } else { 0 })]);
    }
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, &[Test])] = &[(
        Mutant::UnknownTakenForNone,
        &[
            super::s1_06_tx_sync_in_an_action_on_commit_waits_for_the_commit,
            super::s1_06_tx_sync_in_an_action_on_abort_waits_for_earlier_commits,
        ],
    )];

    #[test]
    fn every_broken_rule_is_noticed() {
        for (mutant, tests) in WATCHES {
            for (nth, test) in tests.iter().enumerate() {
                let noticed = with_mutant(*mutant, || catch_unwind(AssertUnwindSafe(*test))).is_err();
                assert!(noticed, "{mutant:?} goes unnoticed by {nth}");
            }
        }
    }
}
