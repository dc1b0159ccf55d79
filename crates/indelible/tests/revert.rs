use crate::support::{Ground, World, everywhere};
use indelible::collections::{PHashMap, PMutex, PString, PVec, RootTypes};
use indelible::{CreateOptions, ErrorKind, Heap, HeapOptions, PoolOptions, Tracking};
use indelible_testing::{Choice, Fault, OpKind, Seeded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn memory() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

type Words<'h> = PHashMap<'h, PString<'h>, PVec<'h, u64>>;

#[test]
fn an_object_is_as_its_last_psync_left_it() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("a", &CreateOptions::new(300_000).reach(4 << 20)).unwrap();
        let mut a = pool.attach("a").unwrap();
        a.as_mut_slice().fill(1);
        a.revert().unwrap();
        assert!(a.as_slice().iter().all(|byte| *byte == 0), "never psynced");
        a.range_mut(0..200_000).fill(2);
        a.psync().unwrap();
        let before = a.lane_use().batches;
        a.range_mut(100..101)[0] = 3;
        a.range_mut(150_000..300_000).fill(4);
        assert!(a.is_unsynced().unwrap());
        a.revert().unwrap();
        let psynced = |bytes: &[u8]| {
            bytes[..200_000].iter().all(|byte| *byte == 2) && bytes[200_000..].iter().all(|byte| *byte == 0)
        };
        assert!(psynced(a.as_slice()) && !a.is_unsynced().unwrap());
        a.psync().unwrap();
        assert_eq!(a.lane_use().batches, before, "there was nothing to make durable");

        a.grow(1_000_000).unwrap();
        a.range_mut(299_000..900_000).fill(5);
        a.revert().unwrap();
        assert!(a.len() == 1_000_000 && psynced(a.as_slice()));
        a.range_mut(999_999..1_000_000)[0] = 6;
        a.psync().unwrap();
        drop((a, pool));
        let a = world.open().attach_read("a").unwrap();
        assert!(psynced(&a.as_slice()[..999_999]) && a.as_slice()[999_999] == 6);
    });
}

#[test]
fn stores_after_a_revert_are_found() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 40 * 4096).unwrap();
        let mut a = pool.attach("a").unwrap();
        for round in 0..20_u8 {
            for page in 0..40 {
                a.range_mut(page * 4096 + 77..page * 4096 + 78)[0] = 100 + round;
            }
            a.revert().unwrap();
            for page in (usize::from(round) % 3..40).step_by(3) {
                a.range_mut(page * 4096 + 77..page * 4096 + 78)[0] = 1 + round;
            }
            let expected = a.as_slice().to_vec();
            a.psync().unwrap();
            a.revert().unwrap();
            assert!(a.as_slice() == expected, "round {round}");
            assert!(pool.stat("a").is_ok() && !a.is_unsynced().unwrap());
        }
        let expected = a.as_slice().to_vec();
        drop((a, pool));
        assert!(world.open().attach_read("a").unwrap().as_slice() == expected);
    });
}

#[test]
fn bytes_of_a_psync_that_failed_do_not_come_back() {
    let mut refused = 0;
    for nth in 0..30 {
        let world = World::new(Ground::Simulated, Tracking::Auto, false);
        let sim = world.sim().unwrap();
        let pool = world.format();
        pool.create_with("a", &CreateOptions::new(3 << 20).sparse(true)).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 1;
        a.psync().unwrap();
        *a.root_mut::<u64>().unwrap() = 2;
        a.range_mut(1 << 20..3 << 20).fill(3);
        sim.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
        let Err(error) = a.psync() else { continue };
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        refused += 1;
        assert!(a.is_unsynced().unwrap());
        a.revert().unwrap();
        let only = |bytes: &[u8], first: u64, last: u8| {
            bytes[..8] == first.to_le_bytes()
                && bytes[8..(3 << 20) - 1].iter().all(|byte| *byte == 0)
                && bytes[(3 << 20) - 1] == last
        };
        assert!(only(a.as_slice(), 1, 0) && !a.is_unsynced().unwrap(), "reservation {nth}");
        a.range_mut((3 << 20) - 1..3 << 20)[0] = 4;
        if nth % 2 == 0 {
            a.psync().unwrap();
        } else {
            a.psync_cut().unwrap();
        }
        sim.clear_faults();
        let images = [Choice::None, Choice::Random(nth), Choice::All].map(|choice| sim.power_cut(choice));
        drop(a);
        for image in images {
            let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
            assert!(only(pool.attach_read("a").unwrap().as_slice(), 1, 4), "reservation {nth}");
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_poisoned_object_is_not_reverted() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = world.format();
    pool.create("a", 8192).unwrap();
    let mut a = pool.attach("a").unwrap();
    *a.root_mut::<u64>().unwrap() = 1;
    world.sim().unwrap().fail_at(OpKind::WriteDurable, 0, Fault::Io);
    a.psync().unwrap_err();
    assert_eq!(a.revert().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(*a.root::<u64>().unwrap(), 1);
}

#[test]
fn a_revert_that_fails_undoes_nothing() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = world.format();
    let mut heap = pool.heap("heap", 1 << 20).unwrap();
    heap.root_or_default::<PVec<u64>>("list").unwrap().extend(0..10_000);
    heap.psync().unwrap();
    heap.root_mut::<PVec<u64>>("list").unwrap().iter_mut().for_each(|number| *number += 1);
    let stored = heap.object().as_slice().to_vec();
    for nth in 0..3 {
        world.sim().unwrap().fail_at(OpKind::Read, nth * 7, Fault::Io);
        assert_eq!(heap.revert().unwrap_err().kind(), ErrorKind::Io);
        assert!(heap.object().as_slice() == stored);
    }
    heap.revert().unwrap();
    assert!(heap.root_ref::<PVec<u64>>("list").unwrap().iter().copied().eq(0..10_000));
}

#[test]
fn a_heap_forgets_blocks_and_roots_made_since() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = pool.heap("heap", 256 << 10).unwrap();
        heap.root_or_default::<Words>("words").unwrap().entry("one").or_default().push(1_u64);
        heap.revert().unwrap();
        assert_eq!(heap.root_mut::<Words>("words").unwrap_err().kind(), ErrorKind::RootMissing);
        assert_eq!((heap.check(), heap.blocks().count()), (vec![], 0), "as it was made");
        let words = heap.root_or_default::<Words>("words").unwrap();
        for number in 0..300_u64 {
            words.entry(format!("word {}", number % 40).as_str()).or_default().push(number);
        }
        heap.psync().unwrap();
        let blocks = heap.blocks().count();
        for round in 0..5_u64 {
            heap.root_or_default::<PVec<u64>>("other").unwrap().extend(0..20_000 + round);
            let words = heap.root_mut::<Words>("words").unwrap();
            words.retain(|word, _| word.len() % 2 == 0);
            words.values_mut().for_each(|numbers| numbers.extend(0..500_u64));
            heap.revert().unwrap();
            assert_eq!((heap.check(), heap.blocks().count()), (vec![], blocks));
            let words = heap.root_mut::<Words>("words").unwrap();
            assert_eq!(words.len(), 40);
            assert!(words.values().map(|numbers| numbers.len()).sum::<usize>() == 300);
            assert!(words["word 7"].iter().copied().eq((7..300).step_by(40)));
            assert_eq!(heap.root_any("other").unwrap_err().kind(), ErrorKind::RootMissing);
        }
        heap.root_mut::<Words>("words").unwrap().insert("new", [7_u64; 100]);
        heap.psync().unwrap();
        drop((heap, pool));
        let mut heap = world.open().heap("heap", 0).unwrap();
        assert_eq!(heap.check(), []);
        let words = heap.root_ref::<Words>("words").unwrap();
        assert_eq!((words.len(), words["new"].len()), (41, 100));
    });
}

#[test]
fn blocks_that_threads_have_at_hand_are_not_given_out_twice() {
    let world = memory();
    let mut heap = world.format().heap("heap", 1 << 20).unwrap();
    heap.root_or_insert_with("list", |place| PMutex::<PVec<PString>>::new_in(PVec::new(), place)).unwrap();
    heap.psync().unwrap();
    let (go, done) = (std::sync::Barrier::new(3), AtomicU64::new(0));
    for round in 0..6 {
        let list = heap.root_ref::<PMutex<PVec<PString>>>("list").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (go, done) = (&go, &done);
                scope.spawn(move || {
                    go.wait();
                    for number in 0..400 {
                        list.lock().push(format!("thread {thread}, number {number}"));
                        done.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        if round % 2 == 0 {
            heap.revert().unwrap();
            assert!(heap.root_mut::<PMutex<PVec<PString>>>("list").unwrap().get_mut().len() % 1200 == 0);
        } else {
            heap.psync().unwrap();
        }
        let types = RootTypes::new().root::<PMutex<PVec<PString>>>("list");
        assert_eq!(heap.check_roots(&types), [], "round {round}");
    }
    assert_eq!(heap.root_mut::<PMutex<PVec<PString>>>("list").unwrap().get_mut().len(), 3600);
    assert_eq!(done.load(Relaxed), 7200);
}

#[test]
fn a_revert_behind_a_verification_takes_the_trust_back() {
    let world = memory();
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("heap", 1 << 20).unwrap()).unwrap();
    heap.root_or_default::<PVec<u64>>("list").unwrap().push(7_u64);
    heap.psync().unwrap();
    drop((heap, pool));
    let pool = PoolOptions::new().untrusted(true).open(world.path()).unwrap();
    let types = RootTypes::new().root::<PVec<u64>>("list");
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    heap.verify(&types).unwrap();
    heap.root_mut::<PVec<u64>>("list").unwrap().push(8_u64);
    heap.revert().unwrap();
    assert_eq!(heap.root_mut::<PVec<u64>>("list").unwrap_err().kind(), ErrorKind::Untrusted);
    assert_eq!(heap.heap_ref().unwrap_err().kind(), ErrorKind::Untrusted);
    heap.verify(&types).unwrap();
    assert_eq!(heap.root_mut::<PVec<u64>>("list").unwrap()[..], [7]);
    heap.psync().unwrap();
    heap.root_mut::<PVec<u64>>("list").unwrap().push(9_u64);
    heap.revert().unwrap();
    assert_eq!(heap.root_mut::<PVec<u64>>("list").unwrap()[..], [7], "verified bytes were psynced");
}

#[test]
fn a_heap_that_is_no_heap_any_more_is_not_used() {
    let world = memory();
    let pool = world.format();
    let mut object = pool.create_attached("data", 1 << 20).unwrap();
    object.as_mut_slice().fill(7);
    object.psync().unwrap();
    object.as_mut_slice().fill(0);
    let mut heap = Heap::open_or_format_with(object, HeapOptions::new()).unwrap();
    // SAFETY: there is nothing in the heap.
    unsafe { heap.trust() };
    heap.root_or_default::<PVec<u64>>("list").unwrap().push(1_u64);
    assert_eq!(heap.revert().unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(heap.root_mut::<PVec<u64>>("list").unwrap_err().kind(), ErrorKind::NotAHeap);
    assert_eq!(heap.heap_ref().unwrap_err().kind(), ErrorKind::Untrusted);
    assert!(heap.into_object().as_slice().iter().all(|byte| *byte == 7));
}

#[test]
fn reverts_leave_what_survives_a_power_cut_alone() {
    for seed in 0..8 {
        let mut random = Seeded::new(0x7265_7600 + seed);
        let world =
            World::new(Ground::Simulated, Tracking::Auto, seed % 2 == 1 && crate::support::faults_in());
        let pool = world.format();
        let size = 30 * 4096;
        let mut object = pool.create_attached("a", size as u64).unwrap();
        let (mut now, mut durable) = (vec![0_u8; size], vec![0_u8; size]);
        let mut cuts = Vec::new();
        for step in 0..150_u64 {
            match random.u32(0..12) {
                0 | 1 => {
                    object.psync().unwrap();
                    durable.clone_from(&now);
                }
                2 | 3 => {
                    object.revert().unwrap();
                    now.clone_from(&durable);
                    assert!(object.as_slice() == now, "seed {seed}, step {step}");
                }
                4 => {
                    let cut = world.sim().unwrap().power_cut(Choice::Random(step));
                    cuts.push((step, cut, durable.clone()));
                }
                _ => {
                    let at = random.usize(0..size);
                    let len = random.usize(1..3000).min(size - at);
                    let byte = random.u8(..);
                    object.range_mut(at..at + len).fill(byte);
                    now[at..at + len].fill(byte);
                }
            }
        }
        drop((object, pool));
        assert!(!cuts.is_empty());
        for (step, cut, durable) in cuts {
            let pool = world.options().on_device(Arc::new(cut.medium()), false).unwrap();
            assert!(pool.attach("a").unwrap().as_slice() == durable, "seed {seed}, step {step}");
        }
    }
}
