//! Objects of the class `on-demand`, on every medium: commits are in memory, become durable on
//! request or in time, and always are a prefix of all.

use crate::support::{Ground, World, everywhere};
use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Pending, Plain, Pool, Tracking, TxCell, TxObject,
    transaction,
};
use indelible_testing::{Fault, OpKind};
use std::time::{Duration, Instant};

const CELLS: usize = 2048;

#[derive(Plain)]
#[repr(C)]
struct Table {
    constant: u64,
    cells: [TxCell<u64>; CELLS],
    rest: [u64; 511],
}

const SIZE: u64 = size_of::<Table>() as u64;
const NEVER: EpochBounds = EpochBounds { every: Duration::MAX, bytes: 1 << 40 };

fn how(size: u64) -> CreateOptions {
    CreateOptions::new(size).class(Class::OnDemand)
}

fn attach(pool: &Pool, name: &str) -> TxObject<Table> {
    pool.attach_transactional(name).unwrap()
}

fn both(world: &World) -> (Pool, TxObject<Table>, TxObject<Table>) {
    let pool = world.format();
    pool.set_epochs(NEVER);
    let [a, b] = ["a", "b"].map(|name| {
        pool.create_with(name, &how(SIZE)).unwrap();
        attach(&pool, name)
    });
    (pool, a, b)
}

fn simulated() -> World {
    World::new(Ground::Simulated, Tracking::Explicit, false)
}

fn get(object: &TxObject<Table>, cell: usize) -> u64 {
    object.transaction(|tx| tx.read(&object.cells[cell])).unwrap()
}

fn set(object: &TxObject<Table>, cell: usize, value: u64) {
    object.transaction(|tx| tx.write(&object.cells[cell], value)).unwrap();
}

fn durable(pool: &Pool, name: &str, cell: usize) -> u64 {
    let seen = pool.attach_snapshot_anywhere(name, b"").unwrap();
    let at = 8 + 8 * cell;
    u64::from_le_bytes(seen.as_slice()[at..at + 8].try_into().unwrap())
}

#[test]
fn s1_06_commits_are_durable_when_somebody_asks_for_it_and_at_detach() {
    everywhere(|world| {
        let (pool, a, b) = both(world);
        assert_eq!((a.class(), pool.stat("a").unwrap().class), (Class::OnDemand, Some(Class::OnDemand)));
        set(&a, 0, 7);
        transaction(&[&a, &b], |tx| {
            tx.write(&a.cells[1], 8)?;
            assert_eq!(tx.read(&a.cells[0])?, 7, "what an earlier one has committed");
            tx.write(&b.cells[CELLS - 1], 9)
        })
        .unwrap();
        assert_eq!((get(&a, 0), get(&a, 1), get(&b, CELLS - 1)), (7, 8, 9));
        assert_eq!(durable(&pool, "a", 0), 0, "no thread asked for it");
        assert_eq!(a.pending(), Pending { transactions: 2, bytes: 128 });
        a.tx_sync().unwrap();
        assert_eq!(
            (durable(&pool, "a", 0), durable(&pool, "a", 1), durable(&pool, "b", CELLS - 1)),
            (7, 8, 9)
        );
        assert_eq!((a.pending(), b.pending()), (Pending::default(), Pending::default()));
        set(&b, 0, 1);
        b.psync().unwrap();
        set(&a, 0, 10);
        set(&b, 1, 2);
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 0), durable(&pool, "b", 1)), (7, 1, 0));
        b.detach().unwrap();
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 1)), (10, 2), "a detach is an epoch of all");
        set(&a, 0, 11);
        drop((a, pool));
        let pool = world.open();
        let read = pool.attach_read("a").unwrap();
        assert_eq!(read.as_slice()[8..16], 11_u64.to_le_bytes());
        drop(read);
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        assert_eq!((get(&a, 0), get(&a, 1), get(&b, 0), get(&b, CELLS - 1), a.constant), (11, 8, 1, 9, 0));
    });
}

#[test]
fn s1_06_threads_that_wait_share_epochs() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let (pool, a, b) = both(&world);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (a, b, pool) = (&a, &b, &pool);
            scope.spawn(move || {
                for round in 1..=20 {
                    transaction(&[a, b], |tx| {
                        tx.write(&a.cells[thread * 8], round)?;
                        tx.write(&b.cells[thread * 8], round)
                    })
                    .unwrap();
                    a.tx_sync().unwrap();
                    assert!(durable(pool, "b", thread * 8) >= round);
                }
            });
        }
    });
    let psyncs = pool.stat("a").unwrap().psyncs;
    a.tx_sync().unwrap();
    assert!(psyncs <= 80, "{psyncs} epochs");
    assert_eq!(pool.stat("a").unwrap().psyncs, psyncs, "there is nothing to publish");
}

#[test]
fn s1_06_a_thread_waits_for_what_its_actions_committed_too() {
    let (pool, a, _b) = both(&simulated());
    let a = std::rc::Rc::new(a);
    let within = |value: u64| {
        let inner = a.clone();
        a.transaction(|tx| {
            let inner = inner.clone();
            tx.on_commit(move || set(&inner, 8, value));
            tx.write(&a.cells[0], value)
        })
        .unwrap();
    };
    let durable = || (durable(&pool, "a", 0), durable(&pool, "a", 8));
    for value in (1..60).step_by(3) {
        within(value);
        a.tx_sync().unwrap();
        assert_eq!(durable(), (value, value));
        for next in [value + 1, value + 2] {
            set(&a, 0, next);
            a.tx_sync().unwrap();
            assert_eq!(durable(), (next, value), "the last commit of this thread");
        }
    }
}

#[test]
fn s1_06_commits_become_durable_after_a_time_and_when_they_are_many() {
    let (pool, a, _b) = both(&simulated());
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 10 * 64 });
    (0..11).for_each(|round| set(&a, round * 8, 5));
    assert_eq!(
        (durable(&pool, "a", 72), durable(&pool, "a", 80)),
        (5, 0),
        "the eleventh line begins an epoch"
    );
    (0..100).for_each(|_| set(&a, 80, 6));
    assert_eq!(durable(&pool, "a", 80), 0, "lines count once");
    pool.set_epochs(EpochBounds { every: Duration::from_millis(1), bytes: 1 << 40 });
    let begin = Instant::now();
    while a.pending() != Pending::default() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not become durable by itself");
        std::thread::yield_now();
    }
    assert_eq!(durable(&pool, "a", 80), 6);
}

#[test]
fn s1_06_an_epoch_has_all_of_a_transaction_or_nothing() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let (pool, a, b) = both(&world);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mutant = indelible_store::Selected::here();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (a, b, stop) = (&a, &b, &stop);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    round += 1;
                    transaction(&[a, b], |tx| {
                        for cell in 0..20 {
                            tx.write(&a.cells[thread * 160 + cell * 8], round)?;
                            tx.write(&b.cells[thread * 160 + cell * 8], round)?;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
        let judged = mutant.run(|| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..300 {
                    a.psync().unwrap();
                    let seen = ["a", "b"].map(|name| pool.attach_snapshot_anywhere(name, b"").unwrap());
                    for thread in 0..3 {
                        let value = |object: usize, cell: usize| {
                            let at = 8 + 8 * (thread * 160 + cell * 8);
                            &seen[object].as_slice()[at..at + 8]
                        };
                        let first = value(0, 0);
                        let whole = (0..20).all(|cell| (value(0, cell), value(1, cell)) == (first, first));
                        assert!(whole, "half a transaction of thread {thread} is durable");
                    }
                }
            }))
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Err(wrong) = judged {
            std::panic::resume_unwind(wrong);
        }
    });
}

#[test]
fn s1_06_in_the_pool_no_money_is_made_or_lost() {
    const ACCOUNTS: usize = 400;
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let (pool, a, b) = both(&world);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mutant = indelible_store::Selected::here();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (a, b, stop) = (&a, &b, &stop);
            scope.spawn(move || {
                let mut random = indelible_testing::Seeded::new(thread);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let moves: [(usize, usize); 8] =
                        std::array::from_fn(|_| (random.usize(0..ACCOUNTS), random.usize(0..ACCOUNTS)));
                    transaction(&[a, b], |tx| {
                        for (from, to) in moves {
                            tx.update(&a.cells[from], |money: u64| money.wrapping_sub(1))?;
                            tx.update(&b.cells[to], |money: u64| money.wrapping_add(1))?;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
        let judged = mutant.run(|| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..300 {
                    a.psync().unwrap();
                    let all = ["a", "b"].map(|name| {
                        let seen = pool.attach_snapshot_anywhere(name, b"").unwrap();
                        let cells = seen.as_slice()[8..8 + 8 * CELLS].as_chunks::<8>().0;
                        cells.iter().fold(0_u64, |all, cell| all.wrapping_add(u64::from_le_bytes(*cell)))
                    });
                    assert_eq!(all[0].wrapping_add(all[1]), 0, "in a {}, in b {}", all[0], all[1]);
                }
            }))
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Err(wrong) = judged {
            std::panic::resume_unwind(wrong);
        }
    });
}

#[test]
fn s1_06_a_transaction_of_any_size_gets_room_or_changes_nothing() {
    #[derive(Plain)]
    #[repr(C)]
    struct Large {
        cells: [TxCell<[u64; 8]>; 1 << 18],
    }
    let world = simulated();
    let pool = world.format();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 4096 });
    pool.create_with("large", &how(16 << 20)).unwrap();
    let large = pool.attach_transactional::<Large>("large").unwrap();
    let fill = |count: usize, value: u64| {
        large.transaction(|tx| large.cells[..count].iter().try_for_each(|cell| tx.write(cell, [value; 8])))
    };
    for (count, value) in [(600, 1), (1 << 15, 2), (10, 3), (700, 4)] {
        fill(count, value).unwrap();
    }
    large.psync().unwrap();
    let free = pool.info().unwrap().largest_free;
    pool.create("filling", free - (4 << 20)).unwrap();
    assert_eq!(fill(1 << 18, 5).unwrap_err().kind(), ErrorKind::NoRoom);
    let sum = |large: &TxObject<Large>| {
        large
            .transaction(|tx| {
                let mut cells = large.cells.iter();
                cells.try_fold(0, |sum, cell| Ok::<_, Error>(sum + tx.read(cell)?[7]))
            })
            .unwrap()
    };
    let expected = 700 * 4 + ((1 << 15) - 700) * 2;
    assert_eq!(sum(&large), expected, "nothing of it is left");
    drop(large);
    let large = pool.attach_transactional::<Large>("large").unwrap();
    assert_eq!(sum(&large), expected);
}

#[test]
fn s1_09_after_a_failed_epoch_the_next_attach_finds_all_commits() {
    for (kind, fault) in [(OpKind::WriteDurable, Fault::Io), (OpKind::WriteDurable, Fault::After)] {
        let world = simulated();
        let (pool, a, b) = both(&world);
        set(&a, 0, 1);
        a.psync().unwrap();
        transaction(&[&a, &b], |tx| {
            tx.write(&a.cells[0], 2)?;
            tx.write(&b.cells[9], 2)
        })
        .unwrap();
        world.sim().unwrap().fail_at(kind, 0, fault);
        assert_eq!(a.tx_sync().unwrap_err().kind(), ErrorKind::Io);
        world.sim().unwrap().clear_faults();
        let kinds = [
            a.tx_sync().unwrap_err().kind(),
            b.psync().unwrap_err().kind(),
            b.transaction(|tx| tx.read(&b.cells[0])).unwrap_err().kind(),
            a.detach().unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Poisoned; 4]);
        let other = pool.create_with("c", &how(SIZE)).and_then(|()| pool.attach_transactional::<Table>("c"));
        assert_eq!(other.unwrap_err().kind(), ErrorKind::Poisoned);
        b.detach().unwrap_err();
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        assert_eq!((get(&a, 0), get(&b, 9)), (2, 2), "{fault:?}");
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 9)), (2, 2));
        set(&a, 0, 3);
        a.tx_sync().unwrap();
    }
}

#[test]
fn s1_09_an_attach_that_fails_leaves_no_commits_to_be_missed() {
    let mut failed = [0; 2];
    for kind in [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Read] {
        for (fault, opened_anew) in [(Fault::Io, false), (Fault::After, false), (Fault::After, true)] {
            for nth in 0.. {
                let world = simulated();
                let (mut pool, a, b) = both(&world);
                set(&a, 0, 1);
                a.detach().unwrap();
                b.detach().unwrap();
                let sim = world.sim().unwrap();
                sim.fail_at(kind, nth, fault);
                let attached = pool.attach_transactional::<Table>("a");
                sim.clear_faults();
                if attached.is_ok() {
                    break;
                }
                failed[usize::from(fault == Fault::After)] += 1;
                if opened_anew {
                    drop(pool);
                    pool = world.open();
                    pool.set_epochs(NEVER);
                }
                let a = attach(&pool, "a");
                assert_eq!(get(&a, 0), 1, "{kind:?} {nth} {fault:?}");
                set(&a, 0, 2);
                a.detach().unwrap();
                assert_eq!(durable(&pool, "a", 0), 2);
            }
        }
    }
    assert!(failed[0] > 0 && failed[1] > 1, "{failed:?}");
}

#[test]
fn s1_09_an_attach_that_fails_twice_beside_another_object_loses_nothing() {
    for fault in [Fault::Io, Fault::After] {
        let world = simulated();
        let (pool, a, b) = both(&world);
        set(&a, 0, 1);
        a.detach().unwrap();
        set(&b, 9, 3);
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::WriteDurable, 0, fault);
        let first = pool.attach_transactional::<Table>("a").map(drop).unwrap_err();
        sim.clear_faults();
        assert_eq!(first.kind(), ErrorKind::Io, "{first}");
        let again = pool.attach_transactional::<Table>("a").map(drop).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Held, "{again}");
        let text = again.to_string();
        assert!(text.contains("in use by this process") && text.contains("detach"), "{text}");
        let _ = b.detach();
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        assert_eq!((get(&a, 0), get(&b, 9)), (1, 3), "{fault:?}");
    }
}

fn without_room_for_its_epoch(world: &World) -> (Pool, TxObject<Table>, TxObject<Table>) {
    let (pool, a, b) = both(world);
    set(&a, 0, 1);
    a.psync().unwrap();
    pool.snapshot("a", "then", b"").unwrap();
    transaction(&[&a, &b], |tx| {
        tx.write(&a.cells[0], 2)?;
        tx.write(&b.cells[9], 2)
    })
    .unwrap();
    world.sim().unwrap().fail_from(OpKind::Reserve, 0, Fault::NoSpace);
    (pool, a, b)
}

#[test]
fn s1_06_an_epoch_without_space_is_published_once_there_is_space() {
    let world = simulated();
    let (pool, a, b) = without_room_for_its_epoch(&world);
    let strict = strict_beside(&world, &pool);
    let read = || transaction(&[&a, &strict], |tx| tx.read(&a.cells[0])).unwrap_err().kind();
    let kinds = [
        a.tx_sync().unwrap_err().kind(),
        read(),
        b.psync().unwrap_err().kind(),
        transaction(&[&a, &b], |tx| tx.write(&a.cells[1], 3)).map_or_else(|error| error.kind(), |()| read()),
    ];
    assert_eq!(kinds, [ErrorKind::NoSpace; 4]);
    assert!(a.pending().bytes > 0);
    world.sim().unwrap().clear_faults();
    assert_eq!(transaction(&[&a, &strict], |tx| tx.read(&a.cells[0])).unwrap(), 2);
    b.tx_sync().unwrap();
    assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 9), durable(&pool, "a", 1)), (2, 2, 3));
    assert_eq!(a.pending(), Pending::default());
}

fn strict_beside(world: &World, pool: &Pool) -> TxObject<Table> {
    world.sim().unwrap().clear_faults();
    let strict = strict(pool);
    world.sim().unwrap().fail_from(OpKind::Reserve, 0, Fault::NoSpace);
    strict
}

#[test]
fn s1_09_what_a_detach_could_not_publish_stays_in_memory() {
    let world = simulated();
    let (pool, a, b) = without_room_for_its_epoch(&world);
    let kinds =
        [a.tx_sync().unwrap_err().kind(), a.detach().unwrap_err().kind(), b.detach().unwrap_err().kind()];
    assert_eq!(kinds, [ErrorKind::NoSpace; 3]);
    world.sim().unwrap().clear_faults();
    assert!(pool.stat("a").unwrap().needs_recovery && pool.stat("b").unwrap().needs_recovery);
    drop(pool);
    let pool = world.open();
    let (b, a) = (attach(&pool, "b"), attach(&pool, "a"));
    assert_eq!((get(&a, 0), get(&b, 9), durable(&pool, "a", 0)), (2, 2, 2));
}

#[test]
fn s1_09_what_objects_could_not_publish_when_they_were_dropped_stays_in_memory() {
    let world = simulated();
    let (pool, a, b) = both(&world);
    set(&a, 0, 1);
    a.psync().unwrap();
    transaction(&[&a, &b], |tx| {
        tx.write(&a.cells[0], 2)?;
        tx.write(&b.cells[9], 2)
    })
    .unwrap();
    world.sim().unwrap().fail_at(OpKind::WriteDurable, 0, Fault::Io);
    drop(a);
    world.sim().unwrap().clear_faults();
    assert_eq!(b.transaction(|tx| tx.write(&b.cells[9], 3)).unwrap_err().kind(), ErrorKind::Poisoned);
    drop((b, pool));
    let pool = world.open();
    assert!(pool.stat("a").unwrap().needs_recovery && pool.stat("b").unwrap().needs_recovery);
    let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
    assert_eq!((get(&a, 0), get(&b, 9), durable(&pool, "a", 0)), (2, 2, 2));
}

#[test]
fn s1_09_objects_dropped_without_room_for_their_epoch_lose_nothing() {
    let world = simulated();
    let (pool, a, b) = without_room_for_its_epoch(&world);
    drop((a, b));
    world.sim().unwrap().clear_faults();
    drop(pool);
    let pool = world.open();
    let (b, a) = (attach(&pool, "b"), attach(&pool, "a"));
    assert_eq!((get(&a, 0), get(&b, 9)), (2, 2));
    assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 9)), (2, 2));
}

#[test]
fn objects_of_two_classes_are_in_a_transaction_together_if_they_are_attached_for_it() {
    let world = simulated();
    let (pool, a, _b) = both(&world);
    pool.create_with("strict", &CreateOptions::new(SIZE).class(Class::Transactional)).unwrap();
    let strict = attach(&pool, "strict");
    let mixed: indelible::Result<()> = transaction(&[&a, &strict], |_| panic!("it never begins"));
    let mixed = mixed.unwrap_err();
    assert_eq!(mixed.kind(), ErrorKind::ClassMismatch);
    assert!(mixed.to_string().contains("pmo set --class"), "{mixed}");
    assert!(mixed.to_string().contains("attach_with_on_demand"), "{mixed}");
    set(&strict, 0, 1);
    assert_eq!((durable(&pool, "strict", 0), strict.pending()), (1, Pending::default()));
    strict.tx_sync().unwrap();
    a.transaction(|tx| {
        let inside = [a.tx_sync(), a.psync()].map(|result| result.unwrap_err().kind());
        assert_eq!(inside, [ErrorKind::InTransaction; 2]);
        tx.write(&a.cells[0], 1)
    })
    .unwrap();
}

fn strict(pool: &Pool) -> TxObject<Table> {
    if pool.stat("strict").is_err() {
        pool.create_with("strict", &CreateOptions::new(SIZE).class(Class::Transactional)).unwrap();
    }
    pool.attach_with_on_demand("strict", b"").unwrap()
}

#[test]
fn s1_06_the_stronger_class_decides() {
    everywhere(|world| {
        let (pool, a, b) = both(world);
        let strict = strict(&pool);
        assert_eq!((strict.class(), a.class()), (Class::Transactional, Class::OnDemand));
        set(&a, 0, 1);
        set(&b, 0, 2);
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 0)), (0, 0));
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        transaction(&[&a, &strict], |tx| {
            let (seen, pool) = (seen.clone(), pool.clone());
            tx.on_commit(move || seen.set(durable(&pool, "strict", 0)));
            tx.write(&a.cells[0], 3)?;
            tx.write(&strict.cells[0], 4)
        })
        .unwrap();
        assert_eq!(seen.get(), 4, "what is done on commit comes after the durable write");
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "b", 0), durable(&pool, "strict", 0)), (3, 2, 4));
        set(&a, 0, 5);
        set(&strict, 0, 6);
        assert_eq!((durable(&pool, "a", 0), durable(&pool, "strict", 0)), (5, 6));
        set(&a, 1, 7);
        assert_eq!(get(&strict, 0), 6);
        assert_eq!(durable(&pool, "a", 1), 0, "one that read nothing of it does not wait for it");
        transaction(&[&a, &strict], |tx| tx.read(&a.cells[1])).unwrap();
        assert_eq!(durable(&pool, "a", 1), 7, "what it read is durable");
        drop((a, b, strict));
        let strict = attach(&pool, "strict");
        assert_eq!(get(&strict, 0), 6);
    });
}

#[test]
fn s1_06_a_transaction_over_both_classes_whose_durable_write_fails_is_whole_or_absent() {
    for (kind, fault) in [(OpKind::WriteDurable, Fault::Io), (OpKind::WriteDurable, Fault::After)] {
        let world = simulated();
        let (pool, a, b) = both(&world);
        let object = strict(&pool);
        set(&a, 0, 1);
        world.sim().unwrap().fail_at(kind, 0, fault);
        let failed = transaction(&[&a, &object], |tx| {
            tx.write(&a.cells[0], 2)?;
            tx.write(&object.cells[0], 2)
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
        world.sim().unwrap().clear_faults();
        let again = object.transaction(|tx| tx.read(&object.cells[0])).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Poisoned);
        drop((a, b, object));
        let (a, object) = (attach(&pool, "a"), attach(&pool, "strict"));
        assert_eq!((get(&a, 0), get(&object, 0)), (2, 2), "{fault:?}");
    }
}

#[test]
fn s1_06_a_transaction_over_both_classes_without_space_says_so_and_is_whole_or_absent() {
    let world = simulated();
    let (pool, a, b) = both(&world);
    let object = strict(&pool);
    set(&object, 0, 1);
    pool.snapshot("strict", "then", b"").unwrap();
    world.sim().unwrap().fail_from(OpKind::Reserve, 0, Fault::NoSpace);
    let refused = transaction(&[&a, &object], |tx| {
        tx.write(&a.cells[0], 2)?;
        tx.write(&object.cells[0], 2)
    });
    world.sim().unwrap().clear_faults();
    let refused = [
        refused.unwrap_err(),
        object.transaction(|tx| tx.read(&object.cells[0])).unwrap_err(),
        b.tx_sync().map_or_else(|error| error, |()| b.psync().unwrap_err()),
        pool.attach_transactional::<Table>("a").map(drop).unwrap_err(),
    ];
    for error in refused {
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{text}");
        assert!(text.contains("no space") && text.contains("attach again"), "{text}");
        assert!(!text.contains("earlier write"), "{text}");
    }
    drop((a, b, object));
    let (a, object) = (attach(&pool, "a"), attach(&pool, "strict"));
    assert_eq!((get(&a, 0), get(&object, 0)), (2, 2));
}

#[test]
fn an_object_on_demand_is_attached_as_such_alone() {
    let (pool, a, b) = both(&simulated());
    let held = pool.attach_transactional::<Table>("a").unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Held, "{held}");
    assert_eq!(pool.set_class("a", b"", Class::Psync).unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(pool.attach("a").unwrap_err().kind(), ErrorKind::ClassMismatch);
    set(&a, 0, 4);
    drop((a, b));
    assert!(!pool.give_memory_up("a", b"").unwrap(), "it has all of its commits");
    pool.set_class("a", b"", Class::Psync).unwrap();
    let mut plain = pool.attach("a").unwrap();
    assert_eq!(plain.as_slice()[8..16], 4_u64.to_le_bytes());
    plain.as_mut_slice()[8] = 5;
    plain.psync().unwrap();
    drop(plain);
    pool.set_class("a", b"", Class::OnDemand).unwrap();
    assert_eq!(get(&attach(&pool, "a"), 0), 5);
    let refused = pool.create_with("sparse", &how(SIZE).sparse(true)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ClassMismatch);
    pool.create_with("small", &how(64)).unwrap();
    let small = pool.attach_transactional::<Table>("small").unwrap_err();
    assert_eq!(small.kind(), ErrorKind::BadSize, "{small}");
    pool.attach_transactional::<[TxCell<u64>; 8]>("small").unwrap();
}

#[test]
fn snapshots_and_copies_are_of_what_is_durable_and_have_no_memory() {
    everywhere(|world| {
        let (pool, a, b) = both(world);
        set(&a, 0, 1);
        a.tx_sync().unwrap();
        set(&a, 0, 2);
        pool.snapshot("a", "then", b"").unwrap();
        set(&a, 8, 3);
        a.tx_sync().unwrap();
        drop((a, b, pool));
        let pool = world.open();
        assert_eq!(pool.attach_read("then").unwrap().as_slice()[8..16], 1_u64.to_le_bytes());
        let a = attach(&pool, "a");
        assert_eq!((get(&a, 0), get(&a, 8)), (2, 3));
    });
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, &[Test])] = &[
        (
            Mutant::EpochUngated,
            &[
                super::s1_06_an_epoch_has_all_of_a_transaction_or_nothing,
                super::s1_06_in_the_pool_no_money_is_made_or_lost,
            ],
        ),
        (
            Mutant::EpochUnmarked,
            &[
                super::s1_06_commits_are_durable_when_somebody_asks_for_it_and_at_detach,
                super::s1_06_commits_become_durable_after_a_time_and_when_they_are_many,
            ],
        ),
        (
            Mutant::SyncNotAwaited,
            &[
                super::s1_06_commits_are_durable_when_somebody_asks_for_it_and_at_detach,
                super::s1_09_after_a_failed_epoch_the_next_attach_finds_all_commits,
            ],
        ),
        (
            Mutant::StrongerClassIgnored,
            &[
                super::s1_06_the_stronger_class_decides,
                super::s1_06_a_transaction_over_both_classes_whose_durable_write_fails_is_whole_or_absent,
            ],
        ),
        (
            Mutant::MemoryGivenUp,
            &[
                super::s1_09_what_a_detach_could_not_publish_stays_in_memory,
                super::s1_09_objects_dropped_without_room_for_their_epoch_lose_nothing,
            ],
        ),
        (
            Mutant::MemoryForgotten,
            &[
                super::s1_09_what_a_detach_could_not_publish_stays_in_memory,
                super::s1_09_objects_dropped_without_room_for_their_epoch_lose_nothing,
            ],
        ),
    ];

    #[test]
    fn every_broken_rule_is_noticed() {
        for (mutant, tests) in WATCHES {
            for (nth, test) in tests.iter().enumerate() {
                let noticed = || with_mutant(*mutant, || catch_unwind(AssertUnwindSafe(*test))).is_err();
                assert!((0..20).any(|_| noticed()), "{mutant:?} goes unnoticed by {nth}");
            }
        }
    }
}
