use crate::support::{Ground, World, everywhere};
use indelible::collections::{PMutex, PVec};
use indelible::{CreateOptions, Heap, HeapOptions, Pool, Tracking};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const MIB: usize = 1 << 20;

fn grows() -> HeapOptions {
    HeapOptions::new().grow(true)
}

fn walled(pool: &Pool, pages: usize) -> (Heap, usize) {
    pool.create_with("heap", &CreateOptions::new(MIB as u64)).unwrap();
    pool.create("wall", 4096).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let block = heap.malloc(pages * 4096).unwrap().as_ptr().expose_provenance();
    store(&mut heap, block, 0..pages, 1);
    heap.psync().unwrap();
    drop(heap);
    (Heap::open_with(pool.attach("heap").unwrap(), grows()).unwrap(), block)
}

fn store(heap: &mut Heap, block: usize, pages: std::ops::Range<usize>, value: u64) {
    for page in pages {
        let at = block + page * 4096;
        // SAFETY: a word of the caller's block, to which no other thread stores.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(at).write(value) };
        let from = at - heap.base().addr();
        heap.object().mark_dirty(from..from + 8);
    }
}

fn load(block: usize, page: usize) -> u64 {
    // SAFETY: a word of a block, to which no thread stores now.
    unsafe { std::ptr::with_exposed_provenance::<u64>(block + page * 4096).read() }
}

fn take_all(pool: &Pool) {
    for (index, size) in [1 << 20, 1 << 16, 1 << 12].into_iter().enumerate() {
        for number in 0.. {
            let name = format!("{index}.{number}");
            if pool.create_with(&name, &CreateOptions::new(size).reach(size)).is_err() {
                break;
            }
            let mut object = pool.attach(&name).unwrap();
            object.as_mut_slice().fill(0xee);
            object.psync().unwrap();
        }
    }
}

#[test]
fn an_allocation_that_finds_its_heap_full_moves_the_object_and_loses_nothing() {
    everywhere(|world| {
        let pool = world.format();
        let (mut heap, block) = walled(&pool, 100);
        store(&mut heap, block, 0..30, 2);
        heap.psync().unwrap();
        store(&mut heap, block, 20..60, 3);
        let (base, size) = (heap.base(), heap.size());
        let more = heap.malloc(3 * MIB).unwrap().as_ptr().expose_provenance();
        assert_eq!(heap.base(), base, "growth keeps the address");
        assert!(heap.size() > size);
        take_all(&pool);
        let holds = |block, unsynced| {
            for page in 0..100 {
                let expected = match page {
                    20..60 => unsynced,
                    0..20 => 2,
                    _ => 1,
                };
                assert_eq!(load(block, page), expected, "page {page}");
            }
        };
        holds(block, 3);
        assert!(heap.is_unsynced().unwrap());
        store(&mut heap, more, 700..701, 9);
        heap.psync().unwrap();
        store(&mut heap, block, 99..100, 5);
        heap.revert().unwrap();
        holds(block, 3);
        assert_eq!((heap.check(), load(more, 700)), (vec![], 9));
        drop(heap);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        holds(block, 3);
        assert_eq!((heap.check(), heap.stats().unwrap().blocks, load(more, 700)), (vec![], 2, 9));
    });
}

#[test]
fn threads_go_on_while_their_heap_moves() {
    const THREADS: usize = 4;
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("heap", &CreateOptions::new(MIB as u64)).unwrap();
        let mut heap = Heap::format_with(pool.attach("heap").unwrap(), grows()).unwrap();
        heap.root_or_insert_with::<PVec<PMutex<PVec<u64>>>, _>("lists", |place| {
            let mut lists = PVec::new_in(place);
            for _ in 0..THREADS {
                lists.push(PMutex::new_in(PVec::new_in(place), place));
            }
            lists
        })
        .unwrap();
        heap.psync().unwrap();
        let walled = AtomicUsize::new(0);
        let wall = |size: usize| {
            if walled.fetch_max(size, SeqCst) < size {
                pool.create(&format!("wall {size}"), 4096).unwrap();
            }
        };
        let begun = heap.size();
        wall(begun);
        let (lists, each) = (heap.root_ref::<PVec<PMutex<PVec<u64>>>>("lists").unwrap(), 60_000_u64);
        std::thread::scope(|scope| {
            for list in lists {
                let (heap, wall) = (&heap, &wall);
                scope.spawn(move || {
                    for value in 0..each {
                        list.lock().push(value);
                        wall(heap.size());
                        if value % 5000 == 0 {
                            heap.commit().wait().unwrap();
                        }
                    }
                });
            }
        });
        assert!(heap.size() > begun, "it did not grow");
        heap.commit().wait().unwrap();
        drop(heap);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        for list in heap.root_ref::<PVec<PMutex<PVec<u64>>>>("lists").unwrap() {
            assert!(list.lock().iter().copied().eq(0..each));
        }
        assert_eq!(heap.check(), []);
    });
}

#[test]
fn the_space_that_an_object_left_is_free_once_it_is_detached() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let (heap, _) = walled(&pool, 100);
    let free = pool.info().unwrap().free;
    heap.malloc(3 * MIB).unwrap();
    let grown = heap.size();
    let taken = (free - pool.info().unwrap().free) as usize;
    assert!(taken >= grown, "the former extent is kept: {taken}, {grown}");
    drop(heap);
    assert!(free - pool.info().unwrap().free < (grown - MIB / 2) as u64, "it is free after the detach");
}
