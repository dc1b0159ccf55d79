use crate::support::{Ground, World};
use indelible::collections::{PBox, PHashMap, PMutex, PVec};
use indelible::{Heap, Persist, Pool, Tracking, TypeInfo};
use std::ptr::null_mut;

const WORD: TypeInfo<'static> = TypeInfo { name: "u64", fingerprint: 64, layout: "u64 at 0" };

fn worlds(test: impl Fn(&World, Pool)) {
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        let world = World::new(ground, Tracking::Auto, false);
        let pool = world.format();
        test(&world, pool);
    }
}

fn is_file(world: &World) -> bool {
    world.ground != Ground::Simulated
}

fn opened(pool: &Pool) -> Heap {
    pool.heap("heap", 1 << 20).unwrap()
}

#[test]
fn collections_need_nothing_but_their_marks() {
    worlds(|world, pool| {
        let mut heap = opened(&pool);
        let map = heap.root_or_default::<PHashMap<u64, PVec<u64>>>("map").unwrap();
        for key in 0..1000 {
            map.insert(key, &[key; 20][..]);
        }
        heap.psync().unwrap();
        *heap.root_mut::<PHashMap<u64, PVec<u64>>>("map").unwrap().get_mut(&7).unwrap().last_mut().unwrap() =
            1;
        let _ = (heap.check(), heap.audit().unwrap(), heap.is_trusted(), heap.stats().unwrap());
        heap.reserve(2 << 20).unwrap();
        heap.psync().unwrap();
        assert_eq!(heap.rung() == "explicit", is_file(world), "{}", heap.rung());
        drop(heap);
        let mut heap = opened(&pool);
        let map = heap.root_mut::<PHashMap<u64, PVec<u64>>>("map").unwrap();
        assert!(
            (0..1000).all(|key| map[&key].iter().sum::<u64>() == 20 * key - if key == 7 { 6 } else { 0 })
        );
        assert_eq!(heap.rung() == "explicit", is_file(world));
    });
}

#[test]
fn a_tracking_that_was_chosen_stays() {
    let all =
        [(Tracking::WpAsync, "wp-async"), (Tracking::Mprotect, "mprotect"), (Tracking::Explicit, "explicit")];
    for (tracking, rung) in all.into_iter().filter(|(tracking, _)| tracking.is_available()) {
        let world = World::new(Ground::File, tracking, false);
        let heap = opened(&world.format());
        assert_eq!(heap.rung(), rung);
        heap.malloc(8).unwrap();
        assert_eq!(heap.rung(), rung);
    }
}

type Way = fn(&mut Heap) -> *mut u64;

fn by_offset(heap: &mut Heap, start: *const u8) -> *mut u64 {
    let root = heap.root_any("word").unwrap().address;
    start.cast_mut().wrapping_add(root - start.addr()).cast()
}

#[test]
fn no_store_by_an_address_is_lost() {
    let ways: [(&str, Way); 6] = [
        ("root", |heap| heap.root("word", &WORD).unwrap().address as *mut u64),
        ("root_any", |heap| heap.root_any("word").unwrap().address as *mut u64),
        ("roots", |heap| heap.roots().unwrap()[0].address as *mut u64),
        ("blocks", |heap| heap.blocks().next().unwrap().unwrap().address as *mut u64),
        ("base", |heap| {
            let base = heap.base();
            by_offset(heap, base)
        }),
        ("object", |heap| {
            let base = heap.object().as_ptr();
            by_offset(heap, base)
        }),
    ];
    worlds(|_, pool| {
        let mut heap = opened(&pool);
        let word = heap.malloc(8).unwrap();
        // SAFETY: a new block, the root's alone from now on.
        unsafe { heap.create_root("word", word.as_ptr(), 8, &WORD) }.unwrap();
        heap.psync().unwrap();
        drop(heap);
        for (index, (name, way)) in ways.into_iter().enumerate() {
            let number = 100 + index as u64;
            let mut heap = opened(&pool);
            let at = way(&mut heap);
            // SAFETY: the root's block.
            unsafe { at.write_volatile(number) };
            heap.psync().unwrap();
            // SAFETY: as above.
            unsafe { at.write_volatile(number + 1000) };
            assert!(heap.is_unsynced().unwrap(), "{name}: stores are found from now on");
            heap.psync().unwrap();
            assert_ne!(heap.rung(), "explicit");
            drop(heap);
            let heap = opened(&pool);
            // SAFETY: as above.
            let found = unsafe { (heap.root("word", &WORD).unwrap().address as *const u64).read() };
            assert_eq!(found, number + 1000, "{name}");
        }
    });
}

#[test]
fn blocks_are_found_however_they_were_allocated() {
    let ways: [fn(&Heap) -> *mut u8; 4] = [
        |heap| heap.malloc(5000).unwrap().as_ptr(),
        |heap| heap.calloc(1, 5000).unwrap().as_ptr(),
        |heap| heap.aligned(64, 5000).unwrap().as_ptr(),
        |heap| {
            let block = heap.malloc(16).unwrap();
            // SAFETY: a block of this test's.
            unsafe { heap.realloc(block.as_ptr(), 5000).unwrap().as_ptr() }
        },
    ];
    worlds(|_, pool| {
        for (index, way) in ways.into_iter().enumerate() {
            let mut heap = opened(&pool);
            let list = heap.root_or_default::<PVec<u64>>("list").unwrap();
            list.push(1);
            let block = way(&heap);
            // SAFETY: a block of that size.
            unsafe { block.write_bytes(index as u8 + 1, 5000) };
            heap.psync().unwrap();
            drop(heap);
            let heap = opened(&pool);
            // SAFETY: it is still allocated.
            let bytes = unsafe { std::slice::from_raw_parts(block, 5000) };
            assert!(bytes.iter().all(|byte| *byte == index as u8 + 1));
            drop(heap);
        }
        assert_eq!(opened(&pool).root_mut::<PVec<u64>>("list").unwrap().len(), ways.len());
    });
}

#[derive(Persist)]
#[repr(C)]
struct Node {
    number: u64,
    #[persist(target)]
    next: *mut Node,
}

/// A restarted program follows stored pointers, and needs no address from the library.
#[test]
fn a_type_with_pointers_has_stores_found() {
    worlds(|_, pool| {
        let mut heap = opened(&pool);
        let next = heap.calloc(1, size_of::<Node>()).unwrap().as_ptr().cast::<Node>();
        heap.root_or_insert_with::<Node, _>("list", |_| Node { number: 1, next: null_mut() }).unwrap().next =
            next;
        heap.psync().unwrap();
        drop(heap);
        let mut heap = opened(&pool);
        let first = heap.root_mut::<Node>("list").unwrap();
        // SAFETY: the node behind it, known to no other code.
        unsafe { (*first.next).number = 7 };
        heap.psync().unwrap();
        assert_ne!(heap.rung(), "explicit");
        drop(heap);
        let mut heap = opened(&pool);
        let first = heap.root_mut::<Node>("list").unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { (*first.next).number }, 7);
    });
}

#[test]
fn the_address_of_a_box_is_one() {
    worlds(|_, pool| {
        let mut heap = opened(&pool);
        heap.root_or_insert_with::<PBox<u64>, _>("box", |place| PBox::new_in(1, place)).unwrap();
        heap.psync().unwrap();
        drop(heap);
        let mut heap = opened(&pool);
        let at = PBox::as_ptr(heap.root_mut::<PBox<u64>>("box").unwrap());
        heap.psync().unwrap();
        // SAFETY: the value, to which there is no reference now.
        unsafe { at.write(2) };
        heap.psync().unwrap();
        drop(heap);
        assert_eq!(**opened(&pool).root_mut::<PBox<u64>>("box").unwrap(), 2);
    });
}

#[test]
fn the_first_address_is_handed_out_beside_threads() {
    for _ in 0..10 {
        worlds(|_, pool| {
            let mut heap = opened(&pool);
            heap.root_or_insert_with::<PMutex<PVec<u64>>, _>("list", |place| {
                PMutex::new_in(PVec::new_in(place), place)
            })
            .unwrap();
            heap.psync().unwrap();
            let list = heap.root_ref::<PMutex<PVec<u64>>>("list").unwrap();
            let block = std::thread::scope(|scope| {
                for _ in 0..2 {
                    let heap = &heap;
                    scope.spawn(move || {
                        for number in 0..2000 {
                            list.lock().push(number);
                            if number % 100 == 0 {
                                heap.psync_cut().unwrap();
                            }
                        }
                    });
                }
                while list.lock().len() < 1000 {
                    std::thread::yield_now();
                }
                let block = heap.malloc(8).unwrap().cast::<u64>();
                // SAFETY: a new block.
                unsafe { block.write(7) };
                block.as_ptr()
            });
            heap.psync_cut().unwrap();
            drop(heap);
            let mut heap = opened(&pool);
            assert_eq!(heap.root_mut::<PMutex<PVec<u64>>>("list").unwrap().lock().len(), 4000);
            // SAFETY: it is still allocated.
            assert_eq!(unsafe { block.read() }, 7);
            assert_eq!(heap.check(), []);
        });
    }
}
