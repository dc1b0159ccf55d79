//! Many readers or one writer (S0.11), dead owners (S0.12), states (S0.25), independent psyncs
//! (S0.19).

use indelible_store::error::{Result, StoreError};
use indelible_store::format::entry::PROGRESS;
use indelible_store::medium::{Device, Fatal, LockKey, Medium, MediumError};
use indelible_store::store::{Reader, Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync};
use indelible_testing::scenario::formatted;
use indelible_testing::{Hook, Hooked, SimConfig, SimMedium};
use std::sync::{Arc, Condvar, Mutex};

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn two() -> (SimMedium, [Arc<Store>; 2]) {
    let medium = formatted(1 << 20, SimConfig::default());
    let stores = [1, 2].map(|pid| Store::open(Arc::new(medium.handle()), process(pid)).unwrap());
    stores[0].create("a", &of(10_000)).unwrap();
    (medium, stores)
}

#[allow(dead_code, reason = "held for its lock")]
enum Held {
    Reader(Box<Reader>),
    Writer(Box<Writer>),
}

fn attach(store: &Arc<Store>, write: bool) -> Result<Held> {
    if write {
        store.attach_writer("a", KEY).map(|w| Held::Writer(Box::new(w)))
    } else {
        store.attach_reader("a", KEY).map(|r| Held::Reader(Box::new(r)))
    }
}

#[test]
fn many_readers_or_one_writer() {
    let (_medium, stores) = two();
    for second in [0, 1] {
        for (first_writes, second_writes) in [(false, false), (false, true), (true, false), (true, true)] {
            let first = attach(&stores[0], first_writes).unwrap();
            let result = attach(&stores[second], second_writes);
            if first_writes || second_writes {
                assert!(
                    matches!(result, Err(StoreError::Held { .. })),
                    "{first_writes} {second_writes} {second}"
                );
            } else {
                result.unwrap();
            }
            drop(first);
            let writer = attach(&stores[second], true).unwrap();
            assert!(attach(&stores[1 - second], false).is_err());
            drop(writer);
        }
    }
}

// S0.11 S0.25
#[test]
fn readers_come_and_go() {
    let (_medium, stores) = two();
    let state = |store: &Arc<Store>| store.status(&store.find("a").unwrap()).unwrap().state;
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let mut readers: Vec<_> = [0, 0, 1]
            .into_iter()
            .map(|who: usize| Some(stores[who].attach_reader("a", KEY).unwrap()))
            .collect();
        for (gone, leaving) in order.into_iter().enumerate() {
            assert_eq!(state(&stores[0]), 'R');
            assert_eq!(state(&stores[1]), 'R');
            readers[leaving].take().unwrap().detach().unwrap();
            if gone < 2 {
                for store in &stores {
                    store.attach_reader("a", KEY).unwrap().detach().unwrap();
                    assert!(matches!(store.attach_writer("a", KEY), Err(StoreError::Held { .. })));
                }
            }
        }
        assert_eq!((state(&stores[0]), state(&stores[1])), ('D', 'D'));
        stores[1].attach_writer("a", KEY).unwrap().detach().unwrap();
    }
}

// S0.12 S0.25
#[test]
fn a_dead_owner_is_recovered_and_shown() {
    let (medium, stores) = two();
    let handle = Arc::new(medium.handle());
    let dying = Store::open(handle.clone(), process(7)).unwrap();
    let object = stores[0].find("a").unwrap();
    let status = || stores[0].status(&object).unwrap();
    assert_eq!(status().state, 'D');
    let mut writer = dying.attach_writer("a", KEY).unwrap();
    assert_eq!((status().state, status().needs_recovery), ('W', false));
    assert!(format!("{:?}", status().holder).contains("pid: 7"));
    psync(&mut writer, &[(0, b"last words")]).unwrap();
    handle.kill();
    assert_eq!((status().state, status().needs_recovery, status().holder), ('C', true, None));
    drop(writer);
    let reader = Store::open(Arc::new(medium.read_only_handle()), process(8)).unwrap();
    assert!(matches!(reader.attach_reader("a", KEY), Err(StoreError::NeedsRecovery)));
    let writer = stores[0].attach_writer("a", KEY).unwrap();
    assert_eq!((writer.recovered().objects, writer.psyncs()), (1, 1));
    writer.detach().unwrap();
    assert_eq!(status().state, 'D');
    reader.attach_reader("a", KEY).unwrap();
}

#[test]
fn a_line_that_a_writer_was_writing_is_no_damage() {
    let (medium, stores) = two();
    let handle = Arc::new(medium.handle());
    let dying = Store::open(handle.clone(), process(7)).unwrap();
    let mut writer = dying.attach_writer("a", KEY).unwrap();
    psync(&mut writer, &[(0, b"before")]).unwrap();
    writer.checkpoint().unwrap();
    psync(&mut writer, &[(0, b"last words")]).unwrap();
    let line = stores[0].find("a").unwrap().offset + PROGRESS;
    let tear = || medium.write(line + 24, &[0xa5; 16]).unwrap();
    let intact = stores[0].stat("a").unwrap().1;
    assert_eq!(intact.psyncs, 2);
    tear();
    let torn = |state| {
        let (object, found) = stores[1].stat("a").unwrap();
        assert_eq!((found.state, found.published, found.psyncs), (state, intact.published, 2));
        assert_eq!(stores[1].status(&object).unwrap(), found);
    };
    torn('W');
    handle.kill();
    drop(writer);
    torn('C');
    let writer = stores[0].attach_writer("a", KEY).unwrap();
    assert_eq!((writer.recovered().objects, writer.psyncs()), (1, 2));
    writer.detach().unwrap();
    assert_eq!(stores[1].stat("a").unwrap().1.state, 'D');
    tear();
    assert!(matches!(stores[1].stat("a"), Err(StoreError::Damaged { .. })));
}

#[test]
fn read_only_pools_follow() {
    let (medium, stores) = two();
    let reader = Store::open(Arc::new(medium.read_only_handle()), process(8)).unwrap();
    let before = medium.digest();
    assert!(matches!(reader.create("x", &of(1)), Err(StoreError::Medium(MediumError::ReadOnly))));
    assert!(matches!(reader.attach_writer("a", KEY), Err(StoreError::Medium(MediumError::ReadOnly))));
    let held = reader.attach_reader("a", KEY).unwrap();
    assert_eq!(medium.digest(), before);
    stores[0].create("b", &of(1)).unwrap();
    assert_eq!(reader.find("b").unwrap().entry.size.get(), 1);
    assert!(held.is_current().unwrap());
    let writer = stores[0].attach_writer("a", KEY).unwrap();
    assert!(!held.is_current().unwrap());
    assert!(matches!(reader.attach_reader("a", KEY), Err(StoreError::Held { .. })));
    held.detach().unwrap();
    writer.detach().unwrap();
    assert!(reader.attach_reader("a", KEY).unwrap().is_current().unwrap());
}

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Gate {
    range: Mutex<Option<std::ops::Range<u64>>>,
    changed: Condvar,
    next: Mutex<Option<Action>>,
}

impl Gate {
    fn over(under: SimMedium) -> Arc<Hooked<Gate>> {
        Hooked::new(Arc::new(under), Gate::default())
    }

    fn set(&self, range: Option<std::ops::Range<u64>>) {
        *self.range.lock().unwrap() = range;
        self.changed.notify_all();
    }
}

impl Hook for Gate {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let mut range = self.range.lock().unwrap();
        while range.as_ref().is_some_and(|range| range.contains(&offset)) {
            range = self.changed.wait(range).unwrap();
        }
        drop(range);
        under.write_durable(offset, bytes)
    }
    fn unlocked(&self, key: LockKey) {
        if key == LockKey::Table
            && let Some(next) = self.next.lock().unwrap().take()
        {
            next();
        }
    }
}

#[test]
fn psync_does_not_wait_for_the_psync_of_another_object() {
    let medium = formatted(2 << 20, SimConfig::default());
    let gate = Gate::over(medium.handle());
    let store = Store::open(gate.clone() as Arc<dyn Device>, process(1)).unwrap();
    for name in ["a", "b"] {
        store.create(name, &of(10_000)).unwrap();
    }
    let mut a = store.attach_writer("a", KEY).unwrap();
    let mut b = store.attach_writer("b", KEY).unwrap();
    let index = a.object().entry.lane.get();
    assert_ne!(index, b.object().entry.lane.get());
    let lane = store.lanes().unwrap().into_iter().find(|lane| lane.index == Some(index)).unwrap();
    gate.set(Some(lane.offset..lane.offset + lane.len));
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| psync(&mut a, &[(0, b"slow")]));
        psync(&mut b, &[(0, b"fast")]).unwrap();
        b.checkpoint().unwrap();
        psync(&mut b, &[(0, b"more")]).unwrap();
        b.detach().unwrap();
        store.destroy("b", KEY).unwrap();
        assert!(!stuck.is_finished());
        gate.set(None);
        stuck.join().unwrap().unwrap();
    });
    assert_eq!(a.psyncs(), 1);
}

#[test]
fn threads_share_commits() {
    for disk in [false, true] {
        let medium = formatted(4 << 20, SimConfig { disk, ..SimConfig::default() });
        let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
        let names: Vec<String> = (0..8).map(|n| format!("{n}")).collect();
        names.iter().for_each(|name| assert!(store.create(name, &of(8192)).is_ok()));
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| {
                    for life in 0..3_u8 {
                        let mut writer = store.attach_writer(name, KEY).unwrap();
                        for round in 0..40_u8 {
                            psync(&mut writer, &[(u64::from(round) * 64, &[life + 1; 400])]).unwrap();
                        }
                        writer.detach().unwrap();
                    }
                });
            }
        });
        let image = medium.power_cut(indelible_testing::Choice::None).medium();
        let store = Store::open(Arc::new(image), process(2)).unwrap();
        for name in &names {
            let writer = store.attach_writer(name, KEY).unwrap();
            assert_eq!(writer.psyncs(), 120, "{name}");
            let bytes = indelible_testing::pool::contents(&store, writer.object()).unwrap();
            assert!(bytes[..39 * 64 + 400].iter().all(|byte| *byte == 3), "{name}");
        }
        indelible_testing::pool::check_tiling(&store).unwrap();
    }
}

/// A destroyed object's slot was free while still locked.
#[test]
fn a_slot_that_is_free_is_not_locked() {
    let medium = formatted(2 << 20, SimConfig::default());
    let gate = Gate::over(medium.handle());
    let store = Store::open(gate.clone() as Arc<dyn Device>, process(1)).unwrap();
    let other = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
    for name in ["a", "wall", "b"] {
        store.create(name, &of(4096)).unwrap();
    }
    let taking = |name: &'static str, freed: u64| {
        let other = other.clone();
        Box::new(move || {
            let object = other.create(name, &of(1)).unwrap();
            assert_eq!(object.offset, freed, "{name} has another slot: this shows nothing");
            other.attach_writer(name, KEY).unwrap();
        })
    };
    let freed = store.find("b").unwrap().offset;
    *gate.next.lock().unwrap() = Some(taking("next", freed));
    store.destroy("b", KEY).unwrap();
    assert!(gate.next.lock().unwrap().is_none());
    other.find("next").unwrap();
}
