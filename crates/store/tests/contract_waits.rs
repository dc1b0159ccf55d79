use indelible_store::error::{Holder, Result, StoreError};
use indelible_store::medium::{LockKey, LockMode, Locks};
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync};
use indelible_testing::scenario::formatted;
use indelible_testing::{BeforeRead, Hooked, SimConfig, SimMedium};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn open(medium: SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium), process(pid)).unwrap()
}

fn pool() -> (SimMedium, Arc<Store>) {
    let medium = formatted(2 << 20, SimConfig::default());
    let store = open(medium.handle(), 1);
    for name in ["a", "b"] {
        store.create(name, &of(10_000)).unwrap();
    }
    (medium, store)
}

fn is_busy<T>(result: Result<T>) -> bool {
    matches!(result, Err(StoreError::TableBusy { .. }))
}

#[test]
fn a_table_that_another_process_keeps_is_an_error() {
    let (medium, store) = pool();
    let stopped = medium.handle();
    assert!(stopped.try_lock(LockKey::Table, LockMode::Exclusive).unwrap());
    store.set_patience(Duration::ZERO);
    assert!(is_busy(store.create("c", &of(1))));
    assert!(is_busy(store.attach_writer("a", KEY)));
    assert!(is_busy(store.attach_reader("a", KEY)));
    assert!(is_busy(store.destroy("a", KEY)));
    assert!(is_busy(store.rename("a", "c", KEY)));
    assert!(is_busy(store.resize("a", KEY, 1)));
    assert!(is_busy(store.stat("a")));
    assert!(is_busy(store.entries()));
    let error = store.info().unwrap_err().to_string();
    assert_eq!(error, "the table has been locked by another process for 0 s");
    stopped.unlock(LockKey::Table);
    store.attach_writer("a", KEY).unwrap().detach().unwrap();
}

#[test]
fn threads_wait_for_each_other_no_longer_than_for_another_process() {
    let (medium, store) = pool();
    let stopped = medium.handle();
    assert!(stopped.try_lock(LockKey::Table, LockMode::Exclusive).unwrap());
    let wait = Duration::from_millis(300);
    store.set_patience(wait);
    let (both, threads) = (Barrier::new(32), 32);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                both.wait();
                assert!(is_busy(store.stat("a")));
            });
        }
    });
    // Generous, but less than successive waits.
    assert!(begin.elapsed() < wait * (threads - 1), "{:?}", begin.elapsed());
}

#[test]
fn a_read_only_process_takes_no_lock_and_needs_none() {
    let (medium, store) = pool();
    let handle = medium.read_only_handle();
    let reader = Store::open(Arc::new(handle), process(2)).unwrap();
    reader.set_patience(Duration::ZERO);
    let stopped = medium.handle();
    assert!(stopped.try_lock(LockKey::Table, LockMode::Exclusive).unwrap());
    assert_eq!(reader.entries().unwrap().len(), 2);
    assert_eq!(reader.stat("a").unwrap().1.state, 'D');
    let attached = reader.attach_reader("a", KEY).unwrap();
    assert!(attached.is_current().unwrap());
    Store::check(Arc::new(medium.read_only_handle()), &mut |_, _| {}).unwrap();
    stopped.unlock(LockKey::Table);
    let mut writer = store.attach_writer("a", KEY).unwrap();
    assert!(!attached.is_current().unwrap());
    assert!(matches!(reader.attach_reader("a", KEY), Err(StoreError::Held { .. })));
    psync(&mut writer, &[(0, b"new")]).unwrap();
    writer.detach().unwrap();
    let again = reader.attach_reader("a", KEY).unwrap();
    assert!(again.is_current().unwrap() && !attached.is_current().unwrap());
    store.resize("a", KEY, 1).unwrap();
    store.resize("a", KEY, 10_000).unwrap();
    assert!(!again.is_current().unwrap());
    let last = reader.attach_reader("a", KEY).unwrap();
    store.destroy("a", KEY).unwrap();
    assert!(!last.is_current().unwrap());
    store.create("a", &of(10_000)).unwrap();
    assert!(!last.is_current().unwrap());
}

#[test]
fn a_read_without_a_lock_sees_one_state_of_the_table() {
    let (mut point, mut shown) = (0, std::collections::BTreeSet::new());
    loop {
        let (medium, store) = pool();
        let hooked = Hooked::new(Arc::new(medium.read_only_handle()), BeforeRead::default());
        let reader = Store::open(hooked.clone(), process(2)).unwrap();
        let change = {
            let store = store.clone();
            move || {
                store.destroy("a", KEY).unwrap();
                store.create("c", &of(300_000)).unwrap();
                store.rename("b", "d", KEY).unwrap();
            }
        };
        hooked.plan(point, change);
        let entries = reader.list((0, 0), 10).unwrap().objects;
        let mut names: Vec<_> = entries.iter().map(|object| object.entry.name()).collect();
        names.sort();
        assert!(names == ["a", "b"] || names == ["c", "d"], "before read {point}: {names:?}");
        shown.insert(names);
        if hooked.is_due() {
            break;
        }
        point += 1;
    }
    assert!(point > 10 && shown.len() == 2, "{point} {shown:?}");
}

#[test]
fn a_table_that_never_rests_is_an_error() {
    let mut errors = 0;
    for point in 0.. {
        let (medium, store) = pool();
        let hooked = Hooked::new(Arc::new(medium.read_only_handle()), BeforeRead::default());
        let reader = Store::open(hooked.clone(), process(2)).unwrap();
        reader.set_patience(Duration::ZERO);
        hooked.plan(point, move || {
            store.create("c", &of(1)).unwrap();
        });
        match reader.stat("a") {
            Ok(_) => {}
            Err(StoreError::TableInMotion { .. }) => errors += 1,
            Err(error) => panic!("before read {point}: {error}"),
        }
        if hooked.is_due() {
            break;
        }
        reader.stat("a").unwrap();
    }
    assert!(errors > 5, "{errors}");
}

#[test]
fn a_writer_of_another_pid_namespace_is_not_taken_for_a_process_of_this_one() {
    let (medium, store) = pool();
    let there = indelible_store::store::Identity { namespace: 4_026_532_000, ..process(17) };
    let other = Store::open(Arc::new(medium.handle()), there).unwrap();
    let held = other.attach_writer("a", KEY).unwrap();
    let elsewhere = Some(Holder::Elsewhere { pid: 17, writer: true });
    assert_eq!(store.stat("a").unwrap().1.holder, elsewhere);
    let error = store.attach_writer("a", KEY).err().unwrap().to_string();
    assert_eq!(error, "held by a process of another pid namespace, 17 there, as writer");
    let beside =
        Store::open(Arc::new(medium.handle()), indelible_store::store::Identity { pid: 18, ..there });
    let holder = beside.unwrap().stat("a").unwrap().1.holder;
    assert!(
        matches!(holder, Some(Holder::Process { process, writer: true }) if process.pid == 17),
        "{holder:?}"
    );
    held.detach().unwrap();
}
