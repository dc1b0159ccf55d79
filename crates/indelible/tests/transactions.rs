use crate::support::{Ground, World, everywhere, seal_key};
use indelible::{
    Class, CreateOptions, Error, ErrorKind, Plain, Pool, Tracking, TxCell, TxObject, psync_all, transaction,
};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, Seeded, for_each_crash};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CELLS: usize = 512;

#[derive(Plain)]
#[repr(C)]
struct Table {
    constant: u64,
    wide: TxCell<[u64; 3]>,
    cells: [TxCell<u64>; CELLS],
}

fn how(size: u64) -> CreateOptions {
    CreateOptions::new(size).class(Class::Transactional)
}

fn attach(pool: &Pool, name: &str) -> TxObject<Table> {
    pool.attach_transactional(name).unwrap()
}

fn both(world: &World) -> (Pool, TxObject<Table>, TxObject<Table>) {
    let pool = world.format();
    let [a, b] = ["a", "b"].map(|name| {
        pool.create_with(name, &how(16_384)).unwrap();
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

#[test]
fn s1_03_a_transaction_is_durable_when_it_returns() {
    everywhere(|world| {
        let (pool, a, b) = both(world);
        a.transaction(|tx| tx.write(&a.cells[0], 7)).unwrap();
        transaction(&[&a, &b], |tx| {
            tx.write(&a.cells[1], 8)?;
            tx.write(&b.wide, [1, 2, 3])?;
            let seen = tx.read(&b.wide)?;
            assert_eq!(seen, [1, 2, 3], "its own changes");
            tx.update(&b.cells[CELLS - 1], |value| value + seen[2])
        })
        .unwrap();
        a.transaction(|tx| tx.update(&a.cells[0], |value| value * 2)).unwrap();
        a.psync().unwrap();
        let expected = [(14, 8), (get(&a, 0), get(&a, 1))];
        assert_eq!(expected[0], expected[1]);
        drop((a, b, pool));
        let pool = world.open();
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        assert_eq!((get(&a, 0), get(&a, 1), get(&a, 2)), (14, 8, 0));
        assert_eq!(b.transaction(|tx| tx.read(&b.wide)).unwrap(), [1, 2, 3]);
        assert_eq!((get(&b, CELLS - 1), b.constant, a.name(), a.size()), (3, 0, "a", 16_384));
        b.detach().unwrap();
        a.detach().unwrap();
        assert_eq!(pool.stat("a").unwrap().class, Some(Class::Transactional));
        let read = pool.attach_read("a").unwrap();
        assert_eq!(read.as_slice()[32..40], 14_u64.to_le_bytes(), "readers see it as any object");
    });
}

#[test]
fn s1_03_an_aborted_transaction_leaves_nothing() {
    let (_pool, a, b) = both(&simulated());
    let (committed, aborted) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let count = |cell: &Rc<Cell<i32>>| {
        let cell = cell.clone();
        move || cell.set(cell.get() + 1)
    };
    let stopped: Result<(), Box<dyn std::error::Error>> = transaction(&[&a, &b], |tx| {
        tx.on_commit(count(&committed));
        tx.on_abort(count(&aborted));
        tx.write(&a.cells[0], 1)?;
        tx.write(&b.cells[0], 1)?;
        Err("enough".into())
    });
    assert_eq!(stopped.unwrap_err().to_string(), "enough");
    assert_eq!((committed.get(), aborted.get()), (0, 1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        a.transaction(|tx| {
            tx.write(&a.cells[1], 1)?;
            if tx.read(&a.cells[1])? == 1 {
                panic!("in the middle");
            }
            Ok::<_, Error>(())
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"in the middle"));
    a.transaction(|tx| {
        tx.on_commit(count(&committed));
        tx.on_abort(count(&aborted));
        tx.write(&a.cells[2], 5)
    })
    .unwrap();
    assert_eq!((committed.get(), aborted.get()), (1, 1));
    assert_eq!([get(&a, 0), get(&b, 0), get(&a, 1), get(&a, 2)], [0, 0, 0, 5]);
}

#[test]
fn bytes_stay_when_an_object_gets_another_class() {
    everywhere(|world| {
        let pool = world.format();
        let mut plain = pool.create_attached("a", 16_384).unwrap();
        plain.as_mut_slice()[..8].copy_from_slice(&9_u64.to_le_bytes());
        plain.as_mut_slice()[32..40].copy_from_slice(&4_u64.to_le_bytes());
        plain.psync().unwrap();
        assert_eq!(pool.set_class("a", b"", Class::Transactional).unwrap_err().kind(), ErrorKind::Held);
        plain.detach().unwrap();
        pool.set_class("a", b"", Class::Transactional).unwrap();
        let a = attach(&pool, "a");
        assert_eq!((a.constant, get(&a, 0)), (9, 4));
        a.transaction(|tx| tx.update(&a.cells[0], |value| value + 1)).unwrap();
        assert_eq!(pool.set_class("a", b"", Class::Psync).unwrap_err().kind(), ErrorKind::Held);
        a.detach().unwrap();
        pool.set_class("a", b"", Class::Psync).unwrap();
        let plain = pool.attach("a").unwrap();
        assert_eq!(plain.as_slice()[32..40], 5_u64.to_le_bytes());
    });
}

#[test]
fn s1_16_an_object_is_attached_by_its_class_alone() {
    let world = simulated();
    let pool = world.format();
    pool.create_with("strict", &how(16_384)).unwrap();
    pool.create("plain", 16_384).unwrap();
    pool.create_with("small", &how(64)).unwrap();
    let wrong = pool.attach("strict").unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::ClassMismatch);
    let text = wrong.to_string();
    assert!(text.contains("it is transactional") && text.contains("pmo set --class"), "{text}");
    let kind = |result: indelible::Result<TxObject<Table>>| result.unwrap_err().kind();
    assert_eq!(kind(pool.attach_transactional("plain")), ErrorKind::ClassMismatch);
    assert_eq!(kind(pool.attach_transactional("small")), ErrorKind::BadSize);
    assert_eq!(kind(pool.attach_transactional("none")), ErrorKind::NotFound);
    assert_eq!(
        pool.create_attached_with("new", &how(4096)).unwrap_err().kind(),
        ErrorKind::ClassMismatch,
        "a call that attaches it as what it is not"
    );
    assert_eq!(pool.stat("new").unwrap_err().kind(), ErrorKind::NotFound);
    for refused in [how(4096).sparse(true), how(4096).sealed(&seal_key(), "")] {
        assert_eq!(pool.create_with("new", &refused).unwrap_err().kind(), ErrorKind::ClassMismatch);
    }
    pool.create_with("locked", &how(16_384).read_only(true)).unwrap();
    assert_eq!(kind(pool.attach_transactional("locked")), ErrorKind::ObjectReadOnly);
    pool.create_with("keyed", &how(16_384).key(b"k")).unwrap();
    assert_eq!(kind(pool.attach_transactional("keyed")), ErrorKind::WrongKey);
    pool.attach_transactional_with_key::<Table>("keyed", b"k").unwrap();
    let strict = attach(&pool, "strict");
    assert_eq!(kind(pool.attach_transactional("strict")), ErrorKind::Held);
    drop(strict);
}

#[test]
fn a_pool_that_is_read_only_has_no_transactions() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    for (name, class) in [("strict", Class::Transactional), ("late", Class::OnDemand)] {
        pool.create_with(name, &CreateOptions::new(16_384).class(class)).unwrap();
    }
    drop(pool);
    let reading = world.options().read_only(true).open(world.path()).unwrap();
    for name in ["strict", "late"] {
        let refused = reading.attach_transactional::<Table>(name).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
        assert!(refused.to_string().contains(name), "{refused}");
        assert_eq!(reading.stat(name).unwrap().name, name);
    }
}

#[test]
fn calls_that_do_not_fit_a_transaction_are_errors_by_name() {
    let world = simulated();
    let (pool, a, b) = both(&world);
    pool.create("plain", 4096).unwrap();
    let mut plain = pool.attach("plain").unwrap();
    plain.as_mut_slice()[0] = 1;
    a.transaction(|tx| {
        let nested = b.transaction(|tx| tx.write(&b.cells[0], 1));
        let attached = pool.attach_transactional::<Table>("c").map(drop);
        let psynced = [a.psync(), plain.psync(), psync_all(&mut [&mut plain])];
        for result in [nested, attached].into_iter().chain(psynced) {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InTransaction);
        }
        let elsewhere = TxCell::new(1_u64);
        assert_eq!(tx.read(&elsewhere).unwrap_err().kind(), ErrorKind::NotAttached);
        assert_eq!(tx.write(&b.cells[0], 1).unwrap_err().kind(), ErrorKind::NotAttached);
        tx.write(&a.cells[0], 2)
    })
    .unwrap();
    plain.psync().unwrap();
    assert_eq!((get(&a, 0), get(&b, 0)), (2, 0));
    let none: indelible::Result<()> = transaction(&[], |_| Ok(()));
    assert_eq!(none.unwrap_err().kind(), ErrorKind::NotAttached);
    let other = simulated();
    let (_pool, c, _d) = both(&other);
    let apart: indelible::Result<()> = transaction(&[&a, &c], |_| panic!("it never begins"));
    assert_eq!(apart.unwrap_err().kind(), ErrorKind::DifferentPools);
}

#[test]
fn a_transaction_larger_than_the_log_gets_room_or_changes_nothing() {
    #[derive(Plain)]
    #[repr(C)]
    struct Large {
        cells: [TxCell<[u64; 8]>; 1 << 18],
    }
    let world = simulated();
    let pool = world.format();
    pool.create_with("large", &how(16 << 20)).unwrap();
    let large = pool.attach_transactional::<Large>("large").unwrap();
    let fill = |count: usize, value: u64| {
        large.transaction(|tx| large.cells[..count].iter().try_for_each(|cell| tx.write(cell, [value; 8])))
    };
    fill(1 << 15, 1).unwrap();
    let free = pool.info().unwrap().largest_free;
    pool.create("filling", free - (4 << 20)).unwrap();
    assert_eq!(fill(1 << 18, 2).unwrap_err().kind(), ErrorKind::NoRoom);
    let sum = || {
        large.transaction(|tx| {
            large
                .cells
                .iter()
                .try_fold(0, |sum, cell| Ok::<_, Error>(sum + tx.read(cell)?.iter().sum::<u64>()))
        })
    };
    assert_eq!(sum().unwrap(), 8 << 15, "nothing of it is left");
    fill(1, 3).unwrap();
    drop(large);
    let large = pool.attach_transactional::<Large>("large").unwrap();
    assert_eq!(large.transaction(|tx| tx.read(&large.cells[0])).unwrap(), [3; 8]);
}

#[test]
fn threads_see_and_leave_all_of_a_transaction_or_nothing() {
    for ground in [Ground::File, Ground::Memory] {
        let world = World::new(ground, Tracking::Explicit, false);
        let (pool, a, b) = both(&world);
        transaction(&[&a, &b], |tx| a.cells.iter().chain(&b.cells).try_for_each(|cell| tx.write(cell, 100)))
            .unwrap();
        let all = 2 * CELLS as u64 * 100;
        let moved = AtomicU64::new(0);
        let (first, second, moved_in_all) = (&a, &b, &moved);
        let sum = move || {
            transaction(&[first, second], |tx| {
                let cells = first.cells.iter().chain(&second.cells);
                cells.map(|cell| tx.read(cell)).sum::<indelible::Result<u64>>()
            })
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    let mut random = Seeded::new(thread);
                    for _ in 0..60 {
                        let (from, to) = (random.usize(0..CELLS), random.usize(0..CELLS));
                        let amount = random.u64(1..20);
                        let moved = transaction(&[first, second], |tx| {
                            let Some(left) = tx.read(&first.cells[from])?.checked_sub(amount) else {
                                return Ok(0);
                            };
                            tx.write(&first.cells[from], left)?;
                            tx.update(&second.cells[to], |money| money + amount)?;
                            Ok::<_, Error>(amount)
                        });
                        moved_in_all.fetch_add(moved.unwrap(), Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(move || (0..20).for_each(|_| assert_eq!(sum().unwrap(), all, "a sum in between")));
        });
        assert_eq!(sum().unwrap(), all);
        let other =
            b.transaction(|tx| b.cells.iter().map(|cell| tx.read(cell)).sum::<indelible::Result<u64>>());
        assert_eq!(other.unwrap(), all / 2 + moved.load(Ordering::Relaxed));
        drop((a, b, pool));
        let pool = world.open();
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        let sum = transaction(&[&a, &b], |tx| {
            a.cells.iter().chain(&b.cells).map(|cell| tx.read(cell)).sum::<indelible::Result<u64>>()
        });
        assert_eq!(sum.unwrap(), all);
    }
}

#[test]
fn threads_share_durable_writes() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let (pool, a, b) = both(&world);
    const EACH: u64 = 100;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for round in 1..=EACH {
                    let object = if thread % 2 == 0 { a } else { b };
                    object.transaction(|tx| tx.write(&object.cells[thread * 8], round)).unwrap();
                }
            });
        }
    });
    drop((a, b));
    let psyncs: u64 = ["a", "b"].map(|name| pool.stat(name).unwrap().psyncs).iter().sum();
    assert!(psyncs < 8 * EACH, "{psyncs} batches for {} transactions", 8 * EACH);
}

#[test]
fn s1_03_code_behind_alone_runs_once_beside_others() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let (_pool, a, b) = both(&world);
    const EACH: u64 = 200;
    let effects = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (a, b, effects) = (&a, &b, &effects);
            let change = move || {
                transaction(&[a, b], |tx| {
                    if thread < 2 {
                        tx.alone()?;
                    }
                    let (left, right) = (tx.read(&a.cells[0])?, tx.read(&b.cells[0])?);
                    if thread < 2 {
                        effects.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(left, right);
                    }
                    tx.write(&a.cells[0], left + 1)?;
                    tx.write(&b.cells[0], right + 1)
                })
                .unwrap();
            };
            scope.spawn(move || (0..EACH).for_each(|_| change()));
        }
    });
    assert_eq!(effects.load(Ordering::Relaxed), 2 * EACH, "once each");
    assert_eq!([get(&a, 0), get(&b, 0)], [8 * EACH; 2]);
}

#[test]
fn after_a_failure_nothing_is_acknowledged_until_the_objects_are_attached_anew() {
    for (kind, fault) in [(OpKind::WriteDurable, Fault::Io), (OpKind::WriteDurable, Fault::After)] {
        let world = simulated();
        let (pool, a, b) = both(&world);
        pool.create_with("c", &how(16_384)).unwrap();
        a.transaction(|tx| tx.write(&a.cells[0], 1)).unwrap();
        world.sim().unwrap().fail_at(kind, 0, fault);
        let failed = transaction(&[&a, &b], |tx| {
            tx.write(&a.cells[0], 2)?;
            tx.write(&b.cells[0], 2)
        });
        let failed = failed.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Io, "{failed}");
        world.sim().unwrap().clear_faults();
        let kinds = [
            b.transaction(|tx| tx.read(&b.cells[1])).unwrap_err().kind(),
            a.transaction(|tx| tx.write(&a.cells[3], 1)).unwrap_err().kind(),
            a.psync().unwrap_err().kind(),
            pool.attach_transactional::<Table>("c").unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Poisoned; 4]);
        assert!(a.detach().is_err(), "it cannot say that all is well");
        drop(b);
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        let found = (get(&a, 0), get(&b, 0), get(&a, 3));
        assert!(found == (1, 0, 0) || found == (2, 2, 0), "{fault:?}: {found:?}");
        a.transaction(|tx| tx.write(&a.cells[0], 3)).unwrap();
    }
}

fn read_what_is_not_durable(acknowledged: &Cell<bool>) -> indelible::Result<u64> {
    let world = simulated();
    let (_pool, a, b) = both(&world);
    let told = Rc::new(Cell::new(false));
    let read = b.transaction(|_| Ok::<_, Error>(())).and_then(|()| {
        transaction(&[&a, &b], |tx| {
            let told = told.clone();
            tx.on_commit(move || told.set(true));
            if get_elsewhere(&a) == 0 {
                world.sim().unwrap().fail_at(OpKind::WriteDurable, 0, Fault::Io);
                let failed = std::thread::scope(|scope| {
                    scope.spawn(|| a.transaction(|tx| tx.write(&a.cells[0], 7))).join().unwrap()
                });
                failed.unwrap_err();
            }
            tx.read(&a.cells[0])
        })
    });
    acknowledged.set(told.get());
    read
}

/// Whether the failing write was tried: a second run of the closure must not repeat it.
fn get_elsewhere(a: &TxObject<Table>) -> u64 {
    std::thread::scope(|scope| {
        let looked = scope.spawn(|| a.transaction(|tx| tx.read(&a.cells[0])));
        looked.join().unwrap().unwrap_or(u64::MAX)
    })
}

#[test]
fn s1_03_what_was_read_is_durable_when_a_reader_returns() {
    let acknowledged = Cell::new(false);
    let read = read_what_is_not_durable(&acknowledged);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn nothing_is_done_on_commit_before_what_was_read_is_durable() {
    let acknowledged = Cell::new(false);
    let _ = read_what_is_not_durable(&acknowledged);
    assert!(!acknowledged.get());
}

#[test]
fn s1_03_a_power_cut_leaves_a_prefix_of_all_transactions() {
    const ROUNDS: u64 = 12;
    let world = simulated();
    let (pool, a, b) = both(&world);
    drop((a, b, pool));
    world.sim().unwrap().settle();
    let record = |sim: &indelible_testing::SimMedium| {
        let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        let mut random = Seeded::new(16);
        for round in 1..=ROUNDS {
            let cells: Vec<usize> = (0..4).map(|_| random.usize(10..CELLS)).collect();
            transaction(&[&a, &b], |tx| {
                tx.write(&a.cells[0], round)?;
                tx.write(&b.cells[0], round)?;
                cells.iter().try_for_each(|cell| tx.write(&b.cells[*cell], round * round))?;
                tx.update(&a.cells[1], |sum| sum + round)
            })
            .unwrap();
            sim.mark(round);
        }
    };
    let judge = |image: &CrashImage| {
        let pool = world.options().on_device(Arc::new(image.medium()), false).map_err(|e| e.to_string())?;
        let (a, b) = (attach(&pool, "a"), attach(&pool, "b"));
        let (last, other, sum) = (get(&a, 0), get(&b, 0), get(&a, 1));
        let most = b.transaction(|tx| {
            b.cells[10..].iter().map(|cell| tx.read(cell)).collect::<indelible::Result<Vec<_>>>()
        });
        let most = most.unwrap().into_iter().max().unwrap_or(0);
        let done = image.last_mark().unwrap_or(0);
        let whole = last == other && sum == last * (last + 1) / 2 && most == last * last;
        match whole && (done..=done + 1).contains(&last) {
            true => Ok(()),
            false => Err(format!("{done} returned: {last} and {other}, sum {sum}, at most {most}")),
        }
    };
    let limits = Limits { exhaustive: 16, singles: 3, random: 3, points: 60, seed: 1 };
    let report = for_each_crash(world.sim().unwrap(), record, judge, &limits).unwrap();
    assert!(report.distinct > 20, "{report:?}");
}

#[test]
fn s1_16_pages_at_the_object_s_address_are_closed() {
    let (pool, a, _b) = both(&simulated());
    let address = pool.stat("a").unwrap().address;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        (from..to).contains(&address)
    });
    assert!(line.is_some_and(|line| line.contains(" ---p ")), "{line:?}");
    a.transaction(|tx| tx.write(&a.cells[0], 1)).unwrap();
}

#[test]
fn s1_16_the_kernel_reads_nothing_at_the_object_s_address() {
    let (pool, a, _b) = both(&simulated());
    let address = pool.stat("a").unwrap().address as usize;
    let (_reader, writer) = std::io::pipe().unwrap();
    let pointer = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the kernel looks whether it may read there.
    let written = unsafe { libc::write(std::os::fd::AsRawFd::as_raw_fd(&writer), pointer.cast(), 8) };
    let error = std::io::Error::last_os_error();
    assert_eq!((written, error.raw_os_error()), (-1, Some(libc::EFAULT)));
    drop(a);
}

#[test]
fn snapshots_are_made_beside_transactions() {
    everywhere(|world| {
        let (pool, a, b) = both(world);
        a.transaction(|tx| tx.write(&a.cells[0], 1)).unwrap();
        pool.snapshot("a", "then", b"").unwrap();
        transaction(&[&a, &b], |tx| {
            tx.write(&a.cells[0], 2)?;
            tx.write(&a.cells[500], 2)?;
            tx.write(&b.cells[0], 2)
        })
        .unwrap();
        drop((a, b, pool));
        let pool = world.open();
        let a = attach(&pool, "a");
        assert_eq!((get(&a, 0), get(&a, 500), get(&a, 1)), (2, 2, 0));
        drop(a);
        let then = pool.attach_read("then").unwrap();
        assert_eq!(then.as_slice()[32..40], 1_u64.to_le_bytes());
    });
}

#[cfg(feature = "__mutants")]
mod mutants {
    use crate::{transactional_growth as growth, transactional_heap as heap};
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, [Test; 2])] = &[
        (
            Mutant::CommitLineBefore,
            [
                super::s1_03_a_transaction_is_durable_when_it_returns,
                super::s1_03_a_power_cut_leaves_a_prefix_of_all_transactions,
            ],
        ),
        (
            Mutant::AddressOpen,
            [
                super::s1_16_pages_at_the_object_s_address_are_closed,
                super::s1_16_the_kernel_reads_nothing_at_the_object_s_address,
            ],
        ),
        (
            Mutant::OutsideWritable,
            [
                crate::readable::s1_16_pages_at_a_readable_object_s_address_are_read_only,
                crate::readable::s1_16_the_kernel_stores_nothing_at_a_readable_object_s_address,
            ],
        ),
        (
            Mutant::ReadNotAwaited,
            [
                super::s1_03_what_was_read_is_durable_when_a_reader_returns,
                super::nothing_is_done_on_commit_before_what_was_read_is_durable,
            ],
        ),
        (
            Mutant::AllocatedAtOnce,
            [
                heap::s1_03_an_aborted_transaction_allocates_and_frees_nothing,
                crate::transactional_heap_crash::s1_03_a_power_cut_loses_no_block_and_no_transaction,
            ],
        ),
        (
            Mutant::FreedAtOnce,
            [
                heap::s1_03_blocks_are_there_when_their_transaction_has_committed,
                heap::s1_03_an_aborted_transaction_allocates_and_frees_nothing,
            ],
        ),
        (
            Mutant::FreedTwice,
            [
                heap::blocks_are_freed_once_and_by_their_first_byte,
                heap::s1_03_a_block_freed_twice_is_given_away_once,
            ],
        ),
        (
            Mutant::GrowthUntold,
            [
                growth::s1_03_a_heap_grows_and_its_transaction_is_run_again,
                growth::s1_03_power_cuts_while_a_heap_grows_lose_nothing,
            ],
        ),
    ];

    #[test]
    fn every_broken_rule_is_noticed() {
        let watched: Vec<Mutant> = WATCHES.iter().map(|(mutant, _)| *mutant).collect();
        assert_eq!(watched, Mutant::TRANSACTIONS);
        let others: [(Mutant, [Test; 1]); 2] = [
            (Mutant::ClassIgnored, [super::s1_16_an_object_is_attached_by_its_class_alone]),
            (Mutant::CommitNotAwaited, [super::s1_03_a_power_cut_leaves_a_prefix_of_all_transactions]),
        ];
        let own = WATCHES.iter().map(|(mutant, tests)| (*mutant, &tests[..]));
        for (mutant, tests) in own.chain(others.iter().map(|(mutant, tests)| (*mutant, &tests[..]))) {
            for (nth, test) in tests.iter().enumerate() {
                let run = AssertUnwindSafe(*test);
                assert!(
                    with_mutant(mutant, || catch_unwind(run)).is_err(),
                    "{mutant:?} goes unnoticed by {nth}"
                );
            }
        }
    }
}
