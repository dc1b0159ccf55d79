use crate::support::{Ground, World, everywhere};
use indelible::collections::{PBTreeMap, PBox, PHashMap, PMutex, PRwLock, PString, PVec};
use indelible::{ErrorKind, Heap, Persist, Tracking};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

type Words<'h> = PMutex<'h, PHashMap<'h, PString<'h>, PVec<'h, u64>>>;

#[derive(Persist)]
#[repr(C)]
struct Shared<'h> {
    words: Words<'h>,
    log: PRwLock<'h, PBTreeMap<'h, u64, u64>>,
}

fn heap_of(world: &World) -> Heap {
    let pool = world.format();
    pool.create("heap", 4 << 20).unwrap();
    let mut heap = Heap::open_or_format(pool.attach("heap").unwrap()).unwrap();
    let make = |heap| Shared {
        words: PMutex::new_in(PHashMap::new(), heap),
        log: PRwLock::new_in(PBTreeMap::new(), heap),
    };
    heap.root_or_insert_with::<Shared, _>("shared", make).unwrap();
    heap.psync().unwrap();
    heap
}

fn reopen(world: &World) -> Heap {
    Heap::open(world.open().attach("heap").unwrap()).unwrap()
}

#[test]
fn locks_that_somebody_has_are_tried_and_not_waited_for() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let heap = heap_of(&world);
    let shared = heap.root_ref::<Shared>("shared").unwrap();
    shared.log.try_write().unwrap().insert(1, 2);
    let reading = (shared.log.read(), shared.log.try_read().unwrap());
    assert!(shared.log.try_write().is_none());
    assert_eq!((reading.0.get(&1), reading.1.get(&1)), (Some(&2), Some(&2)));
    drop(reading);
    let mut writing = shared.log.try_write().unwrap();
    assert!(shared.log.try_read().is_none() && shared.log.try_write().is_none());
    writing.insert(3, 4);
    drop(writing);
    assert_eq!(shared.log.try_read().unwrap().len(), 2);
    let _locked = shared.words.lock();
    assert!(shared.words.try_lock().is_none());
}

#[test]
fn threads_share_an_object_through_its_locks() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let mut heap = heap_of(&world);
    let shared = heap.root_ref::<Shared>("shared").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for number in 0..500_u64 {
                    let word = format!("word {}", number % 50);
                    shared.words.lock().entry(word.as_str()).or_default().push(thread);
                    shared.log.write().insert(thread * 1000 + number, number);
                    let log = shared.log.read();
                    assert_eq!(log.get(&(thread * 1000 + number)), Some(&number));
                }
            });
        }
    });
    assert!(shared.words.lock().values().all(|threads| threads.len() == 40));
    assert_eq!(shared.log.read().len(), 2000);
    assert!(shared.words.try_lock().is_some());
    heap.psync().unwrap();
    drop(heap);
    let mut heap = reopen(&world);
    assert_eq!(heap.root_ref::<Shared>("shared").unwrap().words.lock().len(), 50);
    heap.drop_root::<Shared>("shared").unwrap();
    assert_eq!((heap.stats().unwrap().blocks, heap.check()), (0, vec![]));
}

#[test]
fn a_lock_that_was_held_at_the_psync_is_free_after_a_crash() {
    everywhere(|world| {
        let mut heap = heap_of(world);
        let shared = heap.root_ref::<Shared>("shared").unwrap();
        std::mem::forget(shared.words.lock());
        std::mem::forget(shared.log.write());
        assert!(shared.words.try_lock().is_none());
        heap.psync().unwrap();
        drop(heap);
        let heap = reopen(world);
        let shared = heap.root_ref::<Shared>("shared").unwrap();
        shared.words.lock().insert("free", [1_u64]);
        shared.log.write().insert(1, 1);
    });
}

fn section(shared: &Shared<'_>) {
    let mut words = shared.words.lock();
    let all = words.entry("all").or_default();
    let number = all.len() as u64;
    all.push(number);
    let mut log = shared.log.write();
    log.insert(number, number);
}

#[test]
fn a_cut_holds_whole_critical_sections() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    drop(heap_of(&world));
    for _ in 0..4 {
        let heap = reopen(&world);
        let shared = heap.root_ref::<Shared>("shared").unwrap();
        let before = shared.log.read().len();
        let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Relaxed) && done.fetch_add(1, Relaxed) < 5_000 {
                        section(shared);
                    }
                });
            }
            for cuts in 0.. {
                let before = done.load(Relaxed);
                heap.psync_cut().unwrap();
                if before >= 210 && cuts >= 10 {
                    break;
                }
            }
            stop.store(true, Relaxed);
        });
        drop(heap);
        let mut heap = reopen(&world);
        assert_eq!(heap.check(), []);
        let shared = heap.root_ref::<Shared>("shared").unwrap();
        let (words, log) = (shared.words.lock(), shared.log.read());
        assert!(log.len() >= before + 200, "what was done before a cut is missing");
        assert!(log.keys().copied().eq(words["all"].iter().copied()), "half a section is durable");
        assert!(log.keys().copied().eq(0..log.len() as u64));
    }
}

#[test]
fn a_cut_by_who_has_a_lock_is_an_error() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let heap = heap_of(&world);
    let shared = heap.root_ref::<Shared>("shared").unwrap();
    let guard = shared.words.lock();
    let error = heap.psync_cut().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("give the lock back"), "{error}");
    drop(guard);
    heap.psync_cut().unwrap();
}

#[test]
fn values_are_made_in_a_heap_that_is_shared() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let mut heap = heap_of(&world);
    heap.root_or_insert_with("names", |place| PMutex::<PVec<PBox<PString>>>::new_in(PVec::new(), place))
        .unwrap();
    let names = heap.root_ref::<PMutex<PVec<PBox<PString>>>>("names").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let place = heap.heap_ref().unwrap();
            scope.spawn(move || {
                for number in 0..200 {
                    let name = PBox::new_in(format!("name {thread} {number}"), place);
                    names.lock().push(name);
                }
            });
        }
        (0..20).for_each(|_| heap.psync_cut().unwrap());
    });
    heap.psync_cut().unwrap();
    drop(heap);
    let mut heap = reopen(&world);
    assert_eq!(heap.check(), []);
    let mut found: Vec<String> = heap
        .root_ref::<PMutex<PVec<PBox<PString>>>>("names")
        .unwrap()
        .lock()
        .iter()
        .map(|name| name.to_string())
        .collect();
    found.sort();
    let mut expected: Vec<String> =
        (0..3).flat_map(|thread| (0..200).map(move |number| format!("name {thread} {number}"))).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_reader_cannot_lock() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    drop(heap_of(&world));
    let heap = indelible::ReadHeap::open(world.open().attach_read("heap").unwrap()).unwrap();
    let shared = heap.root_ref::<Shared>("shared").unwrap();
    let locked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(shared.words.lock())));
    assert!(locked.unwrap_err().downcast::<String>().unwrap().contains("attached for reading"));
}
