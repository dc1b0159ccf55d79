use crate::support::{Ground, World};
use indelible::{CreateOptions, ErrorKind, Heap, Tracking};
use indelible_testing::Seeded;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn heap_of(world: &World, size: u64) -> Heap {
    let pool = world.format();
    pool.create_with("heap", &CreateOptions::new(size)).unwrap();
    Heap::format(pool.attach("heap").unwrap()).unwrap()
}

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn stamp(heap: &Heap, size: usize) -> usize {
    let block = heap.malloc(size.max(16)).unwrap().cast::<usize>();
    // SAFETY: a new block of at least two words.
    unsafe {
        block.write(block.addr().get());
        block.add(1).write(size);
    }
    block.addr().get()
}

fn free(heap: &Heap, address: usize) {
    let block = std::ptr::with_exposed_provenance_mut::<usize>(address);
    // SAFETY: a live block, given away by the thread that stamped it.
    unsafe {
        assert_eq!(block.read(), address, "another thread has this block, too");
        block.write(0);
        heap.free(block.cast()).unwrap();
    }
}

#[test]
fn threads_free_each_others_blocks() {
    for (threads, rounds) in [(2, 20_000), (4, 10_000)] {
        let world = world();
        let mut heap = heap_of(&world, 32 << 20);
        let shelf: Vec<AtomicUsize> = (0..512).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for number in 0..threads {
                let (heap, shelf) = (&heap, &shelf);
                scope.spawn(move || {
                    let mut random = Seeded::new(number);
                    for _ in 0..rounds {
                        let large = random.usize(..100) == 0;
                        let size = if large { random.usize(..100_000) } else { random.usize(..2_000) };
                        let new = if random.bool() { stamp(heap, size) } else { 0 };
                        let old = shelf[random.usize(..shelf.len())].swap(new, Ordering::AcqRel);
                        if old != 0 {
                            free(heap, old);
                        }
                    }
                });
            }
        });
        let live: BTreeSet<usize> =
            shelf.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|address| *address != 0).collect();
        assert_eq!(heap.check(), []);
        let found: BTreeSet<usize> = heap.blocks().map(|block| block.unwrap().address).collect();
        assert_eq!(found, live);
        live.into_iter().for_each(|address| free(&heap, address));
        assert_eq!(heap.stats().unwrap().blocks, 0);
        heap.malloc(20 << 20).unwrap();
        assert_eq!(heap.check(), []);
    }
}

#[test]
fn blocks_freed_by_another_thread_are_allocated_again() {
    let world = world();
    let heap = heap_of(&world, 4 << 20);
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<usize>>(1);
    std::thread::scope(|scope| {
        let heap = &heap;
        scope.spawn(move || {
            for blocks in receiver {
                blocks.into_iter().for_each(|address| free(heap, address));
            }
        });
        for _ in 0..100 {
            sender.send((0..100).map(|_| stamp(heap, 1000)).collect()).unwrap();
        }
        drop(sender);
    });
    assert_eq!(heap.stats().unwrap().blocks, 0);
}

#[test]
fn a_block_freed_by_two_threads_is_freed_once() {
    let world = world();
    let heap = heap_of(&world, 1 << 20);
    for _ in 0..200 {
        let block = stamp(&heap, 64);
        let kinds = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // SAFETY: one of the two is refused; the block is not used.
                    let freed = unsafe { heap.free(std::ptr::with_exposed_provenance_mut(block)) };
                    kinds.lock().unwrap().push(freed.err().map(|error| error.kind()));
                });
            }
        });
        let kinds = kinds.into_inner().unwrap();
        assert!(kinds.contains(&None) && kinds.contains(&Some(ErrorKind::DoubleFree)), "{kinds:?}");
    }
}

#[test]
fn a_cut_beside_busy_threads_leaves_a_whole_heap() {
    for tracking in [Tracking::WpAsync, Tracking::Mprotect] {
        if !tracking.is_available() {
            indelible_testing::not_tested(format_args!("cuts with tracking by {tracking:?}"));
            continue;
        }
        for round in 0..6 {
            let world = World::new(Ground::Memory, tracking, false);
            let mut heap = heap_of(&world, 8 << 20);
            heap.psync().unwrap();
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for number in 0..2 {
                    let (heap, done) = (&heap, &done);
                    scope.spawn(move || {
                        let mut random = Seeded::new(round * 2 + number);
                        let mut blocks = Vec::new();
                        while !done.load(Ordering::Relaxed) {
                            if blocks.len() < 200 && random.bool() {
                                blocks.push(stamp(heap, random.usize(..12_000)));
                            } else if !blocks.is_empty() {
                                free(heap, blocks.swap_remove(random.usize(..blocks.len())));
                            }
                        }
                    });
                }
                for _ in 0..20 {
                    heap.psync_cut().unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            drop(heap);
            let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            assert_eq!(heap.check(), [], "{tracking:?}");
            let blocks: Vec<_> = heap.blocks().map(|block| block.unwrap()).collect();
            for block in &blocks {
                // SAFETY: blocks that were live in the cut can be freed.
                unsafe { heap.free(block.address as *mut u8).unwrap() };
            }
            assert_eq!(heap.check(), []);
            assert_eq!(heap.stats().unwrap().blocks, 0);
        }
    }
}

/// Regression: a listed span was emptied and became another heap's, and the first still took from
/// it.
#[test]
fn heaps_of_one_process_share_no_span() {
    let (first, second) = (world(), world());
    let (mut first, mut second) = (heap_of(&first, 2 << 20), heap_of(&second, 2 << 20));
    let left = |heap: &Heap| std::thread::scope(|scope| scope.spawn(|| stamp(heap, 100)).join().unwrap());
    let emptied = left(&first);
    free(&first, emptied);
    let other = left(&second);
    let own = stamp(&first, 100);
    for (heap, block) in [(&mut first, own), (&mut second, other)] {
        assert_eq!(heap.check(), []);
        let live: Vec<usize> = heap.blocks().map(|block| block.unwrap().address).collect();
        assert_eq!(live, [block]);
        free(heap, block);
    }
}
