use crate::on_demand_deaths::{killed_after, length};
use crate::support::nodes::{Top, blocks, push, stop, values};
use crate::support::{self, Ground, World};
use indelible::collections::transactional::{TxHashMap, TxList};
use indelible::{
    Class, CreateOptions, EpochBounds, ErrorKind, Pending, Persist, Plain, Pool, Tracking, TxCell, TxPtr,
    transaction,
};
use std::process::Command;
use std::time::Duration;

const SMALL: u64 = 64 << 10;

type Large = [TxCell<[u64; 512]>; 40];

fn large() -> Large {
    [const { TxCell::new([1_u64; 512]) }; 40]
}

fn never(pool: &Pool) {
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: u64::MAX });
}

#[test]
fn s1_06_a_heap_on_demand_is_durable_when_somebody_asks_for_it() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    never(&pool);
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    assert_eq!(heap.class(), Class::OnDemand);
    let top = heap.root_or_default::<Top>("top").unwrap();
    heap.psync().unwrap();
    assert_eq!(heap.pending(), Pending::default());
    heap.transaction(|tx| push(tx, &heap, top, 7)).unwrap();
    assert!(heap.pending().transactions == 1 && heap.pending().bytes > 0);
    let seen = || pool.attach_snapshot_anywhere("h", b"").unwrap().as_slice().to_vec();
    let before = seen();
    heap.tx_sync().unwrap();
    assert_eq!(heap.pending(), Pending::default());
    assert_ne!(seen(), before);
    heap.transaction(|tx| push(tx, &heap, top, 8).and(Err::<(), _>(stop()))).unwrap_err();
    assert_eq!((heap.pending().bytes, values(&heap, top), blocks(&heap)), (0, vec![7], 2));
    heap.detach().unwrap();
    let heap = pool.heap_on_demand("h", 0).unwrap();
    assert_eq!(values(&heap, heap.root::<Top>("top").unwrap()), [7]);
}

#[test]
fn s1_06_what_a_heap_on_demand_got_is_durable_when_somebody_asks_for_it() {
    for ecc in [false, true] {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        prepare(&world, ecc);
        let pool = world.open();
        never(&pool);
        let heap = pool.heap_on_demand("h", SMALL).unwrap();
        let top = heap.root_or_default::<Top>("top").unwrap();
        let grow = |tx: &mut indelible::Tx<'_>| {
            let block = tx.alloc(&heap, large())?;
            push(tx, &heap, top, block.address()).map(|_| block)
        };
        let mut grown = Vec::new();
        let first = pool.stat("h").unwrap().address;
        while heap.size() < 1 << 20
            || grown
                .last()
                .is_none_or(|block: &TxPtr<Large>| (block.address() - first) as usize * 4 < heap.size() * 3)
        {
            grown.push(heap.transaction(grow).unwrap());
        }
        heap.tx_sync().unwrap();
        heap.detach().unwrap();
        let heap = pool.heap_on_demand("h", 0).unwrap();
        let top = heap.root::<Top>("top").unwrap();
        let addresses = grown.iter().rev().map(|block| block.address()).collect();
        assert_eq!(
            (values(&heap, top), blocks(&heap)),
            (addresses, 1 + 2 * grown.len() as u64),
            "check words: {ecc}"
        );
        for block in grown {
            let last = heap.transaction(|tx| tx.read(&tx.at(block)?[39])).unwrap();
            assert!(last == [1; 512], "check words: {ecc}");
        }
    }
}

#[derive(Plain, Persist)]
#[repr(C)]
struct Shop {
    stock: TxHashMap<u64, u64>,
    orders: TxList<u64>,
}

#[test]
fn s1_03_one_transaction_has_heaps_and_objects_of_both_classes() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    never(&pool);
    pool.create_with("sum", &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
    let sum = pool.attach_transactional::<TxCell<u64>>("sum").unwrap();
    let quick = pool.heap_on_demand("quick", SMALL).unwrap();
    let sure = pool.heap_with_on_demand("sure", SMALL).unwrap();
    assert_eq!((quick.class(), sure.class()), (Class::OnDemand, Class::Transactional));
    let (a, b) =
        (quick.root_or_default::<Shop>("shop").unwrap(), sure.root_or_default::<Shop>("shop").unwrap());
    quick.psync().unwrap();
    for number in 0..500 {
        transaction(&[&quick, &sum], |tx| {
            a.stock.insert(tx, number, 1)?;
            a.orders.push_back(tx, number)?;
            tx.update(&sum, |sum| sum + number)
        })
        .unwrap();
    }
    assert!(quick.pending().bytes > 0);
    transaction(&[&quick, &sure, &sum], |tx| {
        let first = a.orders.pop_front(tx)?;
        assert_eq!(first, Some(0));
        b.orders.push_back(tx, 77)?;
        b.stock.insert(tx, 7, 7).map(drop)
    })
    .unwrap();
    assert_eq!(quick.pending(), Pending::default(), "the stronger class decides");
    drop((quick, sure, sum));
    drop(pool);
    let pool = world.open();
    let (quick, sure) =
        (pool.heap_on_demand("quick", 0).unwrap(), pool.transactional_heap("sure", 0).unwrap());
    let (a, b) = (quick.root::<Shop>("shop").unwrap(), sure.root::<Shop>("shop").unwrap());
    let orders = quick.transaction(|tx| a.orders.to_vec(tx)).unwrap();
    assert_eq!(orders, (1..500).collect::<Vec<_>>());
    assert_eq!(sure.transaction(|tx| b.orders.to_vec(tx)).unwrap(), [77]);
    assert_eq!(quick.check().unwrap(), []);
}

#[test]
fn s1_16_a_heap_on_demand_that_grows_is_readable_outside() {
    for walled in [false, true] {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        let pool = world.format();
        let how = CreateOptions::new(SMALL).class(Class::OnDemand).readable_outside(true);
        pool.create_with("h", &how).unwrap();
        let heap = pool.heap_on_demand("h", 0).unwrap();
        if walled {
            pool.create("behind", SMALL).unwrap();
        }
        let first = heap.outside().expect("readable outside").addr();
        let mut seen = Vec::new();
        for value in 1..20 {
            let block = heap.transaction(|tx| {
                let block = tx.alloc(&heap, large())?;
                tx.write(&tx.at(block)?[39], [value; 512])?;
                Ok::<_, indelible::Error>(block)
            });
            seen.push((block.unwrap().address() as usize, value));
        }
        assert!(heap.size() > 2 << 20 && heap.outside().unwrap().addr() == first);
        for (address, value) in seen {
            assert!(address >= first && address + size_of::<Large>() <= first + heap.size());
            let last = address + size_of::<Large>() - 8;
            // SAFETY: a number in a block of the object, which is attached, and that plain loads
            // see.
            let found = unsafe { std::ptr::with_exposed_provenance::<u64>(last).read_volatile() };
            assert_eq!(found, value);
        }
    }
}

#[test]
fn the_class_of_a_heap_is_what_was_asked_for() {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    let pool = world.format();
    drop(pool.heap_on_demand("quick", SMALL).unwrap());
    drop(pool.transactional_heap("sure", SMALL).unwrap());
    for refused in [
        pool.transactional_heap("quick", 0),
        pool.heap_with_on_demand("quick", 0),
        pool.heap_on_demand("sure", 0),
    ] {
        let refused = refused.map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ClassMismatch, "{refused}");
    }
    pool.set_class("quick", b"", Class::Transactional).unwrap();
    drop(pool.transactional_heap("quick", 0).unwrap());
    pool.create_with("checked", &CreateOptions::new(SMALL).ecc(true)).unwrap();
    drop(pool.heap_with_on_demand("checked", 0).unwrap());
    pool.set_class("checked", b"", Class::OnDemand).unwrap();
    drop(pool.heap_on_demand("checked", 0).unwrap());
}

#[test]
fn s1_06_a_transaction_that_met_many_others_gets_room_as_any_other() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = world.format();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 200 << 10 });
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (heap, top) = (&heap, &top);
            scope.spawn(move || {
                for value in 0..60 {
                    heap.transaction(|tx| {
                        push(tx, heap, top, value)?;
                        let block = tx.alloc(heap, large())?;
                        (0..20).for_each(|_| std::thread::yield_now());
                        tx.free(block)
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!((values(&heap, top).len(), blocks(&heap)), (480, 481));
}

const LARGE: u64 = 8;

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = support::options_of(&std::env::var("WORK_WORLD").unwrap()).open(path).unwrap();
    pool.set_epochs(EpochBounds { every: Duration::from_millis(3), bytes: 1 << 20 });
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    let tops = heap.root_or_default::<[Top; 4]>("tops").unwrap();
    std::thread::scope(|scope| {
        for (thread, top) in tops.iter().enumerate() {
            let heap = &heap;
            scope.spawn(move || {
                let mut last = values(heap, top).first().copied().unwrap_or(0);
                loop {
                    last += 1;
                    heap.transaction(|tx| {
                        push(tx, heap, top, last)?;
                        if last.is_multiple_of(50) && last <= LARGE * 50 {
                            tx.alloc(heap, large()).map(drop)
                        } else {
                            Ok(())
                        }
                    })
                    .unwrap();
                    if thread == 0 {
                        println!("ROUND {last}");
                    }
                }
            });
        }
    });
}

#[test]
fn s1_09_killed_at_any_moment_a_heap_on_demand_loses_no_commit_and_no_block() {
    for (ground, ecc) in [(Ground::Memory, false), (Ground::File, false), (Ground::Memory, true)] {
        let world = World::new(ground, Tracking::Explicit, false);
        prepare(&world, ecc);
        let (mut random, mut said, mut size) = (indelible_testing::Seeded::new(4), 0, 0);
        for _ in 0..8 {
            let killed = support::killed_at_work(&world, "heaps_on_demand::work", random.usize(1..300));
            said = killed.unwrap_or(said).max(said);
            let pool = world.open();
            let heap = pool.heap_on_demand("h", SMALL).unwrap();
            let tops = heap.root_or_default::<[Top; 4]>("tops").unwrap();
            let mut all = 0;
            for (thread, top) in tops.iter().enumerate() {
                let found = values(&heap, top);
                assert_eq!(found, (1..=found.len() as u64).rev().collect::<Vec<_>>());
                assert!(thread > 0 || found.len() as u64 >= said, "{said} was committed, {found:?}");
                all += found.len() + (found.len() / 50).min(LARGE as usize);
            }
            assert_eq!(blocks(&heap), 1 + all as u64, "a block was lost");
            size = heap.size();
        }
        assert!(said > 200 && size > 1 << 20, "{said} values in {size} bytes");
    }
}

#[test]
fn s1_09_a_growth_on_demand_may_die_at_any_system_call() {
    dies_as_it_grows(false);
}

#[test]
fn s1_12_a_growth_of_words_with_check_words_may_die_at_any_system_call() {
    dies_as_it_grows(true);
}

fn prepare(world: &World, ecc: bool) {
    let pool = world.format();
    if ecc {
        let how = CreateOptions::new(SMALL).class(Class::OnDemand).ecc(true);
        pool.create_with("h", &how).unwrap();
    }
}

fn dies_as_it_grows(ecc: bool) {
    let fresh = || {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        prepare(&world, ecc);
        world
    };
    let Some(length): Option<u64> = length(&fresh(), "growth") else { return };
    eprintln!("a growth has {length} beginnings and ends of system calls");
    assert!(length > 15, "it makes system calls");
    for steps in (0..=length).step_by(length.div_ceil(60) as usize) {
        let world = fresh();
        for round in 1..=2 {
            let (_, ended) = killed_after(&world, "growth", None, steps).unwrap();
            let pool = world.open();
            let heap = pool.heap_on_demand("h", SMALL).unwrap();
            let found = values(&heap, heap.root::<Top>("top").unwrap());
            let grown = found.iter().filter(|value| **value == 2).count();
            assert_eq!(found.len() - grown, round, "{steps} steps: {found:?}");
            assert!(!ended || grown > 0, "{steps} steps: a transaction that returned is not there");
            assert_eq!(blocks(&heap), 1 + (found.len() + grown) as u64, "{steps} steps");
            heap.transaction(|tx| tx.alloc(&heap, large()).and_then(|block| tx.free(block))).unwrap();
            if ecc {
                let scrubbed = heap.scrub(&mut |_, _| {}).unwrap();
                assert_eq!((scrubbed.repaired, scrubbed.lost), (0, vec![]), "{steps} steps");
            }
        }
    }
}

pub fn grow_between(pool: &Pool, stop: impl Fn()) {
    never(pool);
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    heap.transaction(|tx| push(tx, &heap, top, 1)).unwrap();
    stop();
    heap.transaction(|tx| {
        push(tx, &heap, top, 2)?;
        tx.alloc(&heap, large()).map(drop)
    })
    .unwrap();
    stop();
    std::process::exit(0);
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn without_memory() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = Pool::open(path).unwrap();
    never(&pool);
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    heap.transaction(|tx| push(tx, &heap, top, 1)).unwrap();
    let bound = libc::rlimit { rlim_cur: 100 << 10, rlim_max: 100 << 10 };
    // SAFETY: a limit of this process alone, reported by an error, not by a signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const bound), 0);
    }
    for value in 2..5 {
        let full = heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::HeapFull, "{full}");
        assert!(full.to_string().contains("indelible-"), "it names the file: {full}");
        heap.transaction(|tx| push(tx, &heap, top, value)).unwrap();
    }
    println!("ROUND {}", values(&heap, top).len());
    std::process::abort();
}

#[test]
fn s1_09_memory_for_a_growth_is_missing_and_the_process_goes_on_and_dies() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    drop(world.format());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "heaps_on_demand::without_memory", "--nocapture", "--ignored"]);
    let output = command.env("WORK_POOL", world.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("ROUND 4"), "{output:?}");
    let pool = world.open();
    let heap = pool.heap_on_demand("h", SMALL).unwrap();
    let top = heap.root::<Top>("top").unwrap();
    assert_eq!((values(&heap, top), blocks(&heap)), (vec![4, 3, 2, 1], 5));
    heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap();
    assert_eq!(blocks(&heap), 6);
}
