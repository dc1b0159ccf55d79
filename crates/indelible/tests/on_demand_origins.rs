//! Memory that outlives a process belongs to one file of a pool, not to copies; its removal is
//! decided under its lock.

use crate::on_demand_deaths::{Cells, attach, formatted, judge};
use crate::support::{self, Ground, World};
use indelible::{Class, CreateOptions, EpochBounds, ErrorKind, Pool, PoolOptions, Tracking};
use indelible_store::medium::{Device, Fatal, LockKey, MediumError};
use indelible_testing::{Hook, Hooked};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

fn killed() -> (World, u64) {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    let said = killed_again(&world);
    (world, said)
}

fn killed_again(world: &World) -> u64 {
    support::killed_at_work(world, "on_demand_deaths::work", 50).unwrap()
}

fn copied(world: &World) -> PathBuf {
    let copy = world.dir().join("copy.pmo");
    fs::copy(world.path(), &copy).unwrap();
    copy
}

type Call = (&'static str, fn(&Pool) -> indelible::Result<()>);

fn a_copy_leaves_commits_to_the_original() {
    let (world, said) = killed();
    let copy = copied(&world);
    let pool = Pool::open(&copy).unwrap();
    let left = support::memory_of(&pool);
    let calls: [Call; 4] = [
        ("read", |pool| pool.attach_read("b").map(drop)),
        ("attach", |pool| pool.attach_with_on_demand::<Cells>("a", b"").map(drop)),
        ("recover", |pool| pool.recover().map(drop)),
        ("snapshot", |pool| pool.snapshot("b", "then", b"")),
    ];
    for (name, call) in calls {
        let error = call(&pool).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gone, "{name}: {error}");
        let text = error.to_string();
        let original = world.path().canonicalize().unwrap();
        assert!(text.contains(original.to_str().unwrap()) && text.contains("pmo clone"), "{name}: {text}");
    }
    assert_eq!(pool.pending("b").unwrap(), None, "it has none of its own");
    assert!(pool.give_memory_up("b", b"").unwrap());
    drop(pool.attach_read("b").unwrap());
    assert_eq!(support::memory_of(&pool), left);
    drop(pool);
    assert!(judge(&world.open()) >= said);
}

#[test]
fn s1_09_a_copy_of_a_pool_leaves_commits_in_memory_to_the_original() {
    a_copy_leaves_commits_to_the_original();
}

fn an_older_copy_removes_nothing() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(formatted(&world));
    let copy = copied(&world);
    let said = killed_again(&world);
    let pool = Pool::open(copy).unwrap();
    let left = support::memory_of(&pool);
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(support::memory_of(&pool), left);
    drop(pool);
    assert!(judge(&world.open()) >= said);
}

#[test]
fn s1_09_collecting_in_an_older_copy_removes_nothing_of_the_original() {
    an_older_copy_removes_nothing();
}

#[test]
fn s1_09_a_pool_that_was_moved_or_replaced_finds_its_commits() {
    let (world, mut said) = killed();
    let moved = world.dir().join("moved.pmo");
    fs::rename(world.path(), &moved).unwrap();
    let pool = Pool::open(&moved).unwrap();
    assert!(judge(&pool) >= said);
    drop(pool);
    fs::rename(&moved, world.path()).unwrap();
    said = killed_again(&world);
    fs::rename(copied(&world), world.path()).unwrap();
    assert!(judge(&world.open()) >= said);
}

#[test]
fn s1_09_memory_of_a_deleted_pool_stays_for_the_copy_in_its_place() {
    let (world, said) = killed();
    fs::rename(copied(&world), world.path()).unwrap();
    assert_eq!(indelible::remove_leftovers(world.path()).unwrap().removed, 0);
    assert!(judge(&world.open()) >= said);
}

#[test]
fn s1_09_a_copy_of_a_pool_does_not_share_the_memory_of_the_original() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    pool.create_with("s", &CreateOptions::new(4096).class(Class::Shared)).unwrap();
    drop((pool.attach_shared("s").unwrap(), pool));
    let copy = Pool::open(copied(&world)).unwrap();
    let refused = copy.attach_shared("s").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Gone, "{refused}");
    assert!(refused.to_string().contains("pmo clone"), "{refused}");
    let left = support::memory_of(&copy);
    assert_eq!(left.len(), 1);
    copy.destroy("s").unwrap();
    copy.collect(&mut |_, _| {}).unwrap();
    assert_eq!(support::memory_of(&copy), left);
    drop(copy);
    let pool = world.open();
    pool.destroy("s").unwrap();
    assert!(support::memory_of(&pool).is_empty());
}

type Event = Box<dyn FnOnce() + Send>;

struct Once<D> {
    is_due: D,
    event: Mutex<Option<Event>>,
}

impl<D> Once<D> {
    fn new(is_due: D, event: impl FnOnce() + Send + 'static) -> Once<D> {
        Once { is_due, event: Mutex::new(Some(Box::new(event))) }
    }

    fn take(&self) -> Option<Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Binding {
    once: Once<Box<dyn Fn() -> bool + Send + Sync>>,
    is_dying: AtomicBool,
}

impl Hook for Binding {
    fn locking(&self, key: LockKey) {
        if key == LockKey::Table
            && (self.once.is_due)()
            && let Some(event) = self.once.take()
        {
            event();
        }
    }

    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        match self.is_dying.load(Ordering::Relaxed) {
            true => Err(Fatal(MediumError::Io(std::io::Error::other("it is dying")))),
            false => under.write_durable(offset, bytes),
        }
    }
}

struct Looked(Once<Mutex<u64>>);

impl Hook for Looked {
    fn unlocked(&self, key: LockKey) {
        if key != LockKey::Table {
            return;
        }
        let mut left = self.0.is_due.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = *left == 0;
        *left = left.saturating_sub(1);
        drop(left);
        if is_due && let Some(event) = self.0.take() {
            event();
        }
    }
}

fn collected_beside_an_attach(looks: u64) -> bool {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    drop(formatted(&world));
    let sim = world.sim().unwrap();
    let on = |device| PoolOptions::new().on_device(device, false).unwrap();
    let memory = on(Arc::new(sim.handle()));
    let ((arrived, arrival), (go, leave), (gone, end)) = (channel(), channel(), channel());
    let go_on = go.clone();
    let reached = std::thread::scope(|scope| {
        scope.spawn(move || {
            let there: Box<dyn Fn() -> bool + Send + Sync> =
                Box::new(move || !support::memory_of(&memory).is_empty());
            let stop = move || {
                arrived.send(()).unwrap();
                leave.recv().unwrap();
            };
            let hook = Binding { once: Once::new(there, stop), is_dying: AtomicBool::new(false) };
            let hooked = Hooked::new(Arc::new(sim.handle()), hook);
            let pool = on(hooked.clone());
            pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 20 });
            let a = attach(&pool, "a");
            a.transaction(|tx| tx.write(&a[0], 7)).unwrap();
            hooked.is_dying.store(true, Ordering::Relaxed);
            a.tx_sync().unwrap_err();
            drop((a, pool));
            gone.send(()).unwrap();
        });
        arrival.recv().unwrap();
        let end = Arc::new(Mutex::new(end));
        let ended = end.clone();
        let die = move || {
            go.send(()).unwrap();
            ended.lock().unwrap().recv().unwrap();
        };
        let looked = Hooked::new(Arc::new(sim.handle()), Looked(Once::new(Mutex::new(looks), die)));
        on(looked.clone()).collect(&mut |_, _| {}).unwrap();
        let reached = looked.0.take().is_none();
        if !reached {
            go_on.send(()).unwrap();
            end.lock().unwrap().recv().unwrap();
        }
        reached
    });
    let pool = world.open();
    let a = attach(&pool, "a");
    assert_eq!(a.transaction(|tx| tx.read(&a[0])).unwrap(), 7, "behind look {looks}");
    reached
}

struct FailsOnce(AtomicU64);

impl Hook for FailsOnce {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        match self.0.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(Fatal(MediumError::Io(std::io::Error::other("it fails once")))),
            _ => under.write_durable(offset, bytes),
        }
    }
}

#[test]
fn s1_09_an_attach_that_failed_leaves_no_memory() {
    let mut failures = 0;
    for write in 0.. {
        let world = World::new(Ground::Simulated, Tracking::Explicit, false);
        drop(formatted(&world));
        let failing = Hooked::new(Arc::new(world.sim().unwrap().handle()), FailsOnce(AtomicU64::new(write)));
        let pool = PoolOptions::new().on_device(failing, false).unwrap();
        let failed = pool.attach_with_on_demand::<Cells>("a", b"").map(drop);
        let left = support::memory_of(&pool);
        drop((attach(&world.open(), "a"), attach(&world.open(), "b")));
        match failed {
            Ok(()) => break,
            Err(error) => assert!(left.is_empty(), "write {write}: {error}, {left:?}"),
        }
        failures += 1;
    }
    assert!(failures > 0, "an attach makes durable writes");
}

#[test]
fn s1_06_an_attach_begins_again_if_its_object_was_resized_before_it_was_bound() {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    drop(formatted(&world));
    let sim = world.sim().unwrap();
    let on = |device| PoolOptions::new().on_device(device, false).unwrap();
    let (memory, other) = (on(Arc::new(sim.handle())), on(Arc::new(sim.handle())));
    let there: Box<dyn Fn() -> bool + Send + Sync> =
        Box::new(move || !support::memory_of(&memory).is_empty());
    let resize = move || other.resize("a", 8192, b"").unwrap();
    let hook = Binding { once: Once::new(there, resize), is_dying: AtomicBool::new(false) };
    let pool = on(Hooked::new(Arc::new(sim.handle()), hook));
    let a = attach(&pool, "a");
    assert_eq!(pool.stat("a").unwrap().size, 8192);
    a.transaction(|tx| tx.write(&a[0], 7)).unwrap();
    a.detach().unwrap();
    let pool = world.open();
    let a = attach(&pool, "a");
    assert_eq!(a.transaction(|tx| tx.read(&a[0])).unwrap(), 7);
}

fn collect_judges_under_the_lock() {
    let looks = (0..).take_while(|looks| collected_beside_an_attach(*looks)).count();
    assert!(looks > 3, "it looks at the table for each file: {looks}");
}

#[test]
fn s1_09_collecting_removes_nothing_of_a_process_that_binds_commits_and_dies_meanwhile() {
    collect_judges_under_the_lock();
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::catch_unwind;

    type Test = fn();
    const WATCHES: &[(Mutant, &[Test])] = &[
        (Mutant::JudgedUnlocked, &[super::collect_judges_under_the_lock]),
        (
            Mutant::OriginIgnored,
            &[super::a_copy_leaves_commits_to_the_original, super::an_older_copy_removes_nothing],
        ),
    ];

    #[test]
    fn every_broken_rule_is_noticed() {
        for (mutant, tests) in WATCHES {
            for (nth, test) in tests.iter().enumerate() {
                assert!(
                    with_mutant(*mutant, || catch_unwind(test)).is_err(),
                    "{mutant:?} goes unnoticed by {nth}"
                );
            }
        }
    }
}
