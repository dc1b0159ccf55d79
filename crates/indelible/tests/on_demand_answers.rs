//! Answers about durability on demand, wherever code can run, and when an object leaves others that
//! share its commits: judged after a power cut.

use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Pending, Pool, PoolOptions, TxCell, TxObject,
    transaction,
};
use indelible_store::medium::{Device, Fatal};
use indelible_store::store::{Identity, Store};
use indelible_testing::pool::{contents, process, recover_all};
use indelible_testing::{Choice, Fault, Hook, Hooked, OpKind, SimConfig, SimMedium};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Cells = [TxCell<u64>; 64];
type Object = TxObject<Cells>;

fn how(size: u64) -> CreateOptions {
    CreateOptions::new(size).class(Class::OnDemand)
}

fn medium_and_pool() -> (SimMedium, Pool) {
    let sim = SimMedium::new(16 << 20, SimConfig { disk: true, ..SimConfig::default() });
    let pool = on(Arc::new(sim.handle()));
    (sim, pool)
}

fn on(device: Arc<dyn Device>) -> Pool {
    let pool = PoolOptions::new().wait(PATIENCE).on_device(device, true).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    pool
}

const PATIENCE: Duration = Duration::from_secs(20);

fn both() -> (SimMedium, Pool, Object, Object) {
    let (sim, pool) = medium_and_pool();
    let [a, b] = two_of(&pool);
    (sim, pool, a, b)
}

fn two_of(pool: &Pool) -> [Object; 2] {
    ["a", "b"].map(|name| {
        pool.create_with(name, &how(4096)).unwrap();
        pool.attach_transactional(name).unwrap()
    })
}

fn set_both(a: &Object, b: &Object) {
    transaction(&[a, b], |tx| {
        tx.write(&a[0], 7)?;
        tx.write(&b[0], 7)
    })
    .unwrap();
}

fn get(object: &Object, cell: usize) -> u64 {
    object.transaction(|tx| tx.read(&object[cell])).unwrap()
}

fn set(object: &Object, cell: usize, value: u64) {
    object.transaction(|tx| tx.write(&object[cell], value)).unwrap();
}

fn after_a_power_cut<const N: usize>(sim: &SimMedium, names: [&str; N]) -> [(u8, u8); N] {
    let image = sim.power_cut(Choice::None).medium();
    let store = Store::open(Arc::new(image.handle()), Identity { boot: [7; 16], ..process(9) }).unwrap();
    recover_all(&store).unwrap();
    names.map(|name| {
        let bytes = contents(&store, &store.find(name).unwrap()).unwrap();
        (bytes[0], bytes[8])
    })
}

const INNER: [fn(&Object); 4] = [
    |_| {},
    |a| set(a, 1, 8),
    |a| assert_eq!(get(a, 2), 0),
    |a| a.transaction(|_| Ok::<_, Error>(())).unwrap(),
];

fn synced_in_an_action(
    inner: fn(&Object),
    transactions: impl Fn(&Pool, [&Object; 2], Box<dyn Fn() -> Box<dyn FnOnce()>>),
) -> Option<(u8, Pending)> {
    let (sim, pool, a, b) = both();
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
    for late in [false, true] {
        let (sim, _pool, a, _b) = both();
        let (a, synced) = (Arc::new(a), Arc::new(Mutex::new(None)));
        let of_thread = (a.clone(), synced.clone());
        let thread = std::thread::spawn(move || {
            let (a, synced) = of_thread;
            let object = a.clone();
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

#[test]
fn s1_09_an_object_dropped_in_a_transaction_is_published_with_those_it_shares_commits_with() {
    let (sim, pool, a, b) = both();
    set_both(&a, &b);
    let mut a = Some(a);
    b.transaction(|tx| {
        drop(a.take());
        tx.write(&b[1], 1)
    })
    .unwrap();
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(0, 0); 2]);
    assert_eq!(b.pending(), Pending { transactions: 2, bytes: 128 });
    b.tx_sync().unwrap();
    assert_eq!(b.pending(), Pending::default());
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0), (7, 1)]);
    assert!(pool.stat("a").unwrap().holder.is_none());
    let a = pool.attach_transactional("a").unwrap();
    assert_eq!(get(&a, 0), 7);
}

#[test]
fn s1_09_an_object_dropped_in_a_transaction_is_attached_again_before_any_epoch() {
    let (sim, pool, a, b) = both();
    set_both(&a, &b);
    let mut a = Some(a);
    b.transaction(|_| {
        drop(a.take());
        Ok::<_, Error>(())
    })
    .unwrap();
    let a: Object = pool.attach_transactional("a").unwrap();
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0); 2]);
    set_both(&a, &b);
    set(&a, 1, 2);
    a.detach().unwrap();
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 2), (7, 0)]);
}

#[test]
fn s1_09_objects_that_all_leave_in_a_transaction_are_recovered_together() {
    let (sim, pool, a, b) = both();
    let (_other, _pool, c, _d) = both();
    set_both(&a, &b);
    let mut all = Some((a, b));
    c.transaction(|_| {
        drop(all.take());
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(0, 0); 2]);
    let a: Object = pool.attach_transactional("a").unwrap();
    assert_eq!(get(&a, 0), 7);
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0); 2]);
}

/// Their commits are in memory without objects; waits on the pool's next on-demand object include
/// them.
#[test]
fn s1_06_an_object_attached_after_others_left_answers_for_their_commits() {
    for ask in [Object::tx_sync, Object::psync, |object: &Object| {
        assert_eq!(object.pending(), Pending::default());
        Ok(())
    }] {
        let (sim, pool, a, b) = both();
        let (_other, _pool, c, _d) = both();
        pool.create_with("e", &how(4096)).unwrap();
        set_both(&a, &b);
        let mut all = Some((a, b));
        c.transaction(|_| {
            drop(all.take());
            Ok::<_, Error>(())
        })
        .unwrap();
        let e: Object = pool.attach_transactional("e").unwrap();
        ask(&e).unwrap();
        assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0); 2]);
    }
}

fn fill(pool: &Pool) -> Vec<String> {
    let (mut size, mut names) = (8_u64 << 20, Vec::new());
    while size >= 4096 {
        let name = format!("fill{}", names.len());
        match pool.create(&name, size) {
            Ok(()) => names.push(name),
            Err(_) => size /= 2,
        }
    }
    names
}

#[test]
fn s1_09_an_object_detached_without_room_is_published_with_those_it_shares_commits_with() {
    let (sim, pool) = medium_and_pool();
    pool.create_with("a", &how(2 << 20)).unwrap();
    ["b", "c"].iter().for_each(|name| pool.create_with(name, &how(4096)).unwrap());
    let a = pool.attach_transactional::<[TxCell<u64>; (2 << 20) / 8]>("a").unwrap();
    let b: Object = pool.attach_transactional("b").unwrap();
    for page in 1..500 {
        a.transaction(|tx| tx.write(&a[page * 512], 7)).unwrap();
    }
    transaction(&[&a, &b], |tx| {
        tx.write(&a[0], 7)?;
        tx.write(&b[0], 7)
    })
    .unwrap();
    pool.snapshot("a", "then", b"").unwrap();
    let _c: Object = pool.attach_transactional("c").unwrap();
    let filled = fill(&pool);
    let no_room =
        [b.tx_sync().unwrap_err().kind(), a.detach().unwrap_err().kind(), b.tx_sync().unwrap_err().kind()];
    assert_eq!(no_room, [ErrorKind::NoRoom; 3]);
    assert!(b.pending().bytes > 0);
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(0, 0); 2]);
    set(&b, 1, 1);
    filled.iter().for_each(|name| pool.destroy(name).unwrap());
    b.tx_sync().unwrap();
    assert_eq!(b.pending(), Pending::default());
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0), (7, 1)]);
    let a: Object = pool.attach_transactional("a").unwrap();
    assert_eq!(get(&a, 0), 7);
}

type Wide = [TxCell<u64>; (2 << 20) / 8];

/// A pool with on-demand commits for which it has no room, and their objects.
fn wide_without_room() -> (SimMedium, Pool, TxObject<Wide>, Object, Vec<String>) {
    let (sim, pool) = medium_and_pool();
    pool.create_with("wide", &how(2 << 20)).unwrap();
    pool.create_with("strict", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    pool.create_with("c", &how(4096)).unwrap();
    let wide = pool.attach_transactional::<Wide>("wide").unwrap();
    let strict: Object = pool.attach_with_on_demand("strict", b"").unwrap();
    for page in 0..500 {
        wide.transaction(|tx| tx.write(&wide[page * 512], 7)).unwrap();
    }
    pool.snapshot("wide", "then", b"").unwrap();
    let filled = fill(&pool);
    (sim, pool, wide, strict, filled)
}

fn refused_for_want_of_room<T: std::fmt::Debug>(done: indelible::Result<T>) {
    let error = done.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::NoRoom, "{text}");
    assert!(text.contains("of pool") && text.contains("pmo grow"), "{text}");
}

#[test]
fn s1_06_a_transaction_that_only_reads_ends_nothing_for_want_of_room() {
    let (sim, pool, wide, strict, filled) = wide_without_room();
    let read = || transaction(&[&wide, &strict], |tx| tx.read(&wide[0]));
    refused_for_want_of_room(read());
    let c: Object = pool.attach_transactional("c").unwrap();
    refused_for_want_of_room(read());
    wide.transaction(|tx| tx.write(&wide[1], 8)).unwrap();
    refused_for_want_of_room(wide.tx_sync());
    assert_eq!(after_a_power_cut(&sim, ["wide"]), [(0, 0)]);
    filled.iter().for_each(|name| pool.destroy(name).unwrap());
    assert_eq!(read().unwrap(), 7);
    c.tx_sync().unwrap();
    assert_eq!(after_a_power_cut(&sim, ["wide"]), [(7, 8)]);
}

#[test]
fn s1_06_a_transaction_over_both_classes_without_room_changes_nothing() {
    for pages in [1, 400] {
        let (sim, pool, wide, strict, filled) = wide_without_room();
        let change = || {
            transaction(&[&wide, &strict], |tx| {
                (0..pages).try_for_each(|page| tx.write(&wide[page * 512], 8))?;
                tx.write(&strict[0], 8)
            })
        };
        refused_for_want_of_room(change());
        refused_for_want_of_room(change());
        wide.transaction(|tx| tx.write(&wide[1], 9)).unwrap();
        filled.iter().for_each(|name| pool.destroy(name).unwrap());
        assert_eq!(get(&strict, 0), 0, "nothing of it is left");
        assert_eq!(transaction(&[&wide, &strict], |tx| tx.read(&wide[0])).unwrap(), 7);
        assert_eq!(after_a_power_cut(&sim, ["wide", "strict"]), [(7, 9), (0, 0)]);
        change().unwrap();
        assert_eq!(after_a_power_cut(&sim, ["wide", "strict"]), [(8, 9), (8, 0)]);
    }
}

struct Held {
    armed: AtomicBool,
    reached: Sender<()>,
    go_on: Mutex<Receiver<()>>,
    too_late: AtomicBool,
}

impl Hook for Held {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        if self.armed.swap(false, Ordering::Relaxed) {
            self.reached.send(()).unwrap();
            let waited = self.go_on.lock().unwrap().recv_timeout(PATIENCE);
            self.too_late.store(waited.is_err(), Ordering::Relaxed);
        }
        under.write_durable(offset, bytes)
    }
}

/// An epoch waits for transactions, so a thread in one must not wait for an epoch.
#[test]
fn s1_09_a_drop_in_a_transaction_does_not_wait_for_an_epoch() {
    let sim = SimMedium::new(16 << 20, SimConfig { disk: true, ..SimConfig::default() });
    let ((reached, has_reached), (go, go_on)) = (channel(), channel());
    let (armed, too_late) = (AtomicBool::new(false), AtomicBool::new(false));
    let held = Held { armed, reached, go_on: Mutex::new(go_on), too_late };
    let device = Hooked::new(Arc::new(sim.handle()), held);
    let pool = on(device.clone());
    let [a, b] = two_of(&pool);
    set_both(&a, &b);
    device.armed.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let epoch = scope.spawn(|| b.psync());
        has_reached.recv().unwrap();
        set(&a, 1, 8);
        let mut a = Some(a);
        b.transaction(|tx| {
            drop(a.take());
            tx.write(&b[1], 8)
        })
        .unwrap();
        go.send(()).unwrap();
        epoch.join().unwrap().unwrap();
    });
    assert!(!device.too_late.load(Ordering::Relaxed), "the drop waited for the epoch");
    // That epoch has the earlier commits, and does not end the object that left later.
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 0); 2]);
    b.tx_sync().unwrap();
    assert_eq!(after_a_power_cut(&sim, ["a", "b"]), [(7, 8); 2]);
}

#[test]
fn s1_06_tx_sync_of_transactional_objects_reports_a_commit_that_failed() {
    let (sim, pool) = medium_and_pool();
    pool.create_with("a", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    let a: Object = pool.attach_transactional("a").unwrap();
    set(&a, 0, 1);
    a.tx_sync().unwrap();
    sim.fail_at(OpKind::WriteDurable, 0, Fault::Io);
    a.transaction(|tx| tx.write(&a[0], 2)).unwrap_err();
    sim.clear_faults();
    assert_eq!(a.tx_sync().unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn s1_06_transactional_objects_say_why_the_pool_refused_a_commit() {
    let (sim, pool) = medium_and_pool();
    pool.create_with("a", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
    let a: Object = pool.attach_transactional("a").unwrap();
    set(&a, 0, 1);
    pool.snapshot("a", "then", b"").unwrap();
    sim.fail_from(OpKind::Reserve, 0, Fault::NoSpace);
    assert_eq!(a.transaction(|tx| tx.write(&a[0], 2)).unwrap_err().kind(), ErrorKind::NoSpace);
    sim.clear_faults();
    let read = || a.transaction(|tx| tx.read(&a[0])).map(drop);
    for error in [a.tx_sync(), a.psync(), read()].map(Result::unwrap_err) {
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{text}");
        assert!(text.contains("no space") && !text.contains("earlier write"), "{text}");
    }
    drop(a);
    let a: Object = pool.attach_transactional("a").unwrap();
    assert_eq!(get(&a, 0), 1);
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, &[Test])] = &[
        (
            Mutant::RefusedForgotten,
            &[
                super::s1_06_a_transaction_that_only_reads_ends_nothing_for_want_of_room,
                super::s1_06_a_transaction_over_both_classes_without_room_changes_nothing,
            ],
        ),
        (
            Mutant::UnknownTakenForNone,
            &[
                super::s1_06_tx_sync_in_an_action_on_commit_waits_for_the_commit,
                super::s1_06_tx_sync_in_an_action_on_abort_waits_for_earlier_commits,
            ],
        ),
        (
            Mutant::LeftUnpublished,
            &[
                super::s1_09_an_object_dropped_in_a_transaction_is_published_with_those_it_shares_commits_with,
                super::s1_09_an_object_detached_without_room_is_published_with_those_it_shares_commits_with,
            ],
        ),
    ];

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
