use crate::support::{self, Ground, World, everywhere};
use indelible::{
    Class, CreateOptions, Error, ErrorKind, Pool, Tracking, TxCell, TxHeap, TxObject, TxPtr, transaction,
};
use indelible_testing::Seeded;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CELLS: usize = 1024;

type Cells = [TxCell<u64>; CELLS];

const KINDS: [(Class, bool); 3] =
    [(Class::Transactional, false), (Class::OnDemand, true), (Class::Transactional, true)];

fn how(class: Class) -> CreateOptions {
    CreateOptions::new(size_of::<Cells>() as u64).class(class).readable_outside(true)
}

fn attach(pool: &Pool, name: &str, together: bool) -> TxObject<Cells> {
    let attached =
        if together { pool.attach_with_on_demand(name, b"") } else { pool.attach_transactional(name) };
    attached.unwrap()
}

fn load(address: *const u64) -> u64 {
    // SAFETY: a word of an object that is attached, and which transactions store as an atomic.
    unsafe { AtomicU64::from_ptr(address.cast_mut()) }.load(Ordering::Acquire)
}

fn outside(object: &TxObject<Cells>, cell: usize) -> u64 {
    load(object.outside().unwrap().cast::<u64>().wrapping_add(cell))
}

fn simulated() -> World {
    World::new(Ground::Simulated, Tracking::Explicit, false)
}

fn made(pool: &Pool, name: &str, (class, together): (Class, bool)) -> TxObject<Cells> {
    pool.create_with(name, &how(class)).unwrap();
    attach(pool, name, together)
}

#[test]
fn s1_16_loads_outside_see_what_was_committed_and_nothing_of_what_runs_or_failed() {
    everywhere(|world| {
        let pool = world.format();
        for (nth, kind) in KINDS.into_iter().enumerate() {
            let name = format!("object {nth}");
            let object = made(&pool, &name, kind);
            let address = pool.stat(&name).unwrap().address;
            assert_eq!(object.outside().unwrap().expose_provenance() as u64, address, "pointers lead there");
            assert_eq!((outside(&object, 0), outside(&object, CELLS - 1)), (0, 0));
            object
                .transaction(|tx| {
                    tx.write(&object[0], 7)?;
                    tx.write(&object[CELLS - 1], 8)?;
                    assert_eq!((outside(&object, 0), outside(&object, CELLS - 1)), (0, 0), "it runs");
                    Ok::<_, Error>(())
                })
                .unwrap();
            assert_eq!((outside(&object, 0), outside(&object, CELLS - 1)), (7, 8));
            let failed = object.transaction(|tx| {
                tx.write(&object[0], 9)?;
                Err::<(), Box<dyn std::error::Error>>("enough".into())
            });
            assert!(failed.is_err());
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                object.transaction(|tx| -> Result<(), Error> {
                    tx.write(&object[0], 9)?;
                    panic!("enough")
                })
            }));
            assert!(panicked.is_err());
            let alone = object.transaction(|tx| {
                tx.alone()?;
                tx.write(&object[0], 9)?;
                assert_eq!(outside(&object, 0), 7, "one that is alone runs as any other");
                Err::<(), Box<dyn std::error::Error>>("enough".into())
            });
            assert!(alone.is_err());
            assert_eq!(outside(&object, 0), 7);
            object.detach().unwrap();
            pool.snapshot(&name, &format!("then {nth}"), b"").unwrap();
            let object = attach(&pool, &name, kind.1);
            assert_eq!((outside(&object, 0), outside(&object, 1), outside(&object, CELLS - 1)), (7, 0, 8));
            object.transaction(|tx| tx.write(&object[1], 10)).unwrap();
            assert_eq!(outside(&object, 1), 10);
            object.psync().unwrap();
        }
        drop(pool);
        let pool = world.open();
        for (nth, (_, together)) in KINDS.into_iter().enumerate() {
            let object = attach(&pool, &format!("object {nth}"), together);
            assert_eq!((outside(&object, 0), outside(&object, 1), outside(&object, CELLS - 1)), (7, 10, 8));
            assert_eq!(object.transaction(|tx| tx.read(&object[1])).unwrap(), 10);
        }
    });
}

#[test]
fn s1_16_loads_beside_transactions_see_only_what_was_committed() {
    for kind in KINDS {
        let world = simulated();
        let pool = world.format();
        let object = made(&pool, "o", kind);
        let (object, done) = (&object, &AtomicBool::new(false));
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(move || {
                        let (mut last, mut changes) = ([0; 16], 0_u64);
                        while !done.load(Ordering::Relaxed) || changes == 0 {
                            for (cell, last) in last.iter_mut().enumerate() {
                                let found = outside(object, 8 * cell);
                                assert!(found.is_multiple_of(2), "{found} was never committed");
                                assert!(found >= *last, "{found} was committed before {last}");
                                changes += u64::from(found > *last);
                                *last = found;
                            }
                        }
                        changes
                    })
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut random = Seeded::new(thread);
                        for _ in 0..300 {
                            let fails = random.bool();
                            let cells = [random.usize(..16), random.usize(..16)];
                            let ended = object.transaction(|tx| {
                                for cell in cells {
                                    tx.update(&object[8 * cell], |value| value + 2 - u64::from(fails))?;
                                }
                                match fails {
                                    true => Err(Box::<dyn std::error::Error>::from("enough")),
                                    false => Ok(()),
                                }
                            });
                            assert_eq!(ended.is_err(), fails);
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
            let changes: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            assert!(changes > 0);
        });
        for cell in 0..CELLS {
            let committed = object.transaction(|tx| tx.read(&object[cell])).unwrap();
            assert_eq!(outside(object, cell), committed);
        }
    }
}

fn mapping_at(address: u64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let around = |line: &&str| {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        (from..to).contains(&address)
    };
    maps.lines().find(around).unwrap().to_owned()
}

#[test]
pub(crate) fn s1_16_pages_at_a_readable_object_s_address_are_read_only() {
    for kind in KINDS {
        let pool = simulated().format();
        let object = made(&pool, "o", kind);
        let address = pool.stat("o").unwrap().address;
        assert!(mapping_at(address).contains(" r--s "), "{}", mapping_at(address));
        drop(object);
        pool.set_readable_outside("o", b"", false).unwrap();
        let object = attach(&pool, "o", kind.1);
        assert!(mapping_at(address).contains(" ---p "), "{}", mapping_at(address));
        assert_eq!(object.outside(), None);
    }
}

#[test]
pub(crate) fn s1_16_the_kernel_stores_nothing_at_a_readable_object_s_address() {
    for kind in KINDS {
        let pool = simulated().format();
        let object = made(&pool, "o", kind);
        object.transaction(|tx| tx.write(&object[0], 7)).unwrap();
        let at = object.outside().unwrap().cast_mut().cast::<libc::c_void>();
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: the kernel looks whether it may read there.
        let written = unsafe { libc::write(writer.as_raw_fd(), at, 8) };
        assert_eq!(written, 8, "it reads");
        // SAFETY: it looks whether it may write there.
        let read = unsafe { libc::read(reader.as_raw_fd(), at, 8) };
        let error = std::io::Error::last_os_error();
        assert_eq!((read, error.raw_os_error()), (-1, Some(libc::EFAULT)));
        assert_eq!(outside(&object, 0), 7);
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn touch() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = Pool::open(path).unwrap();
    let how = std::env::var("WORK_WORLD").unwrap();
    let object = attach(&pool, "o", how.contains("together"));
    object.transaction(|tx| tx.write(&object[5], 40)).unwrap();
    let address = object.outside().unwrap().cast::<u64>().wrapping_add(5).expose_provenance();
    let touch = || {
        let at = std::ptr::with_exposed_provenance_mut::<u64>(address);
        println!("loaded {}", load(at) + 2);
        if how.contains("store") {
            // SAFETY: none is needed for a process that dies of it; otherwise no other thread uses
            // the word.
            unsafe { at.write_volatile(41) };
        }
    };
    if how.contains("inside") {
        let ended = object.transaction(|tx| {
            tx.write(&object[5], 1)?;
            std::thread::scope(|scope| scope.spawn(touch).join().unwrap());
            tx.write(&object[6], 1)
        });
        ended.unwrap();
    } else {
        touch();
    }
    println!("alive");
}

#[test]
fn s1_16_a_store_outside_to_a_readable_object_is_a_sigsegv() {
    for (class, together) in KINDS {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        world.format().create_with("o", &how(class)).unwrap();
        let run = |how: &str, mutant: Option<&str>| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "readable::touch", "--nocapture", "--ignored"])
                .env("WORK_POOL", world.path())
                .env("WORK_WORLD", format!("{how}{}", if together { " together" } else { "" }))
                .env("PMO_EXPLAIN_FAULTS", "1");
            if let Some(mutant) = mutant {
                command.env("INDELIBLE_MUTANT", mutant);
            }
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            assert!(said[0].contains("loaded 42"), "{how}: {said:?}");
            (output.status.signal(), said.concat())
        };
        for how in ["load", "load inside"] {
            let (signal, said) = run(how, None);
            assert!(signal.is_none() && said.contains("alive"), "{how}: {said}");
        }
        for how in ["store", "store inside"] {
            let (signal, said) = run(how, None);
            assert_eq!(signal, Some(libc::SIGSEGV), "{how}: {said}");
            assert!(!said.contains("alive"), "{said}");
            assert!(said.contains("offset 0x28 of object \"o\", outside of a transaction: only"), "{said}");
        }
        let object = attach(&world.open(), "o", together);
        assert_eq!(outside(&object, 5), 40);
        drop(object);
        #[cfg(feature = "__mutants")]
        for how in ["store", "store inside"] {
            let (signal, said) = run(how, Some("OutsideWritable"));
            assert!(signal.is_none() && said.contains("alive"), "a store goes unnoticed: {said}");
        }
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = support::options_of(&std::env::var("WORK_WORLD").unwrap()).open(path).unwrap();
    let on_demand = pool.stat("a").unwrap().class == Some(Class::OnDemand);
    let (a, b) = (attach(&pool, "a", on_demand), attach(&pool, "b", on_demand));
    std::thread::scope(|scope| {
        for thread in 1..5 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                loop {
                    let number = transaction(&[a, b], |tx| {
                        tx.update(&a[thread * 8], |value| value + 1)?;
                        tx.update(&b[thread * 8], |value| value + 1)?;
                        let number = tx.read(&b[0])? + 1;
                        tx.write(&b[0], number)?;
                        Ok::<_, Error>(number)
                    });
                    let number = number.unwrap();
                    assert!(outside(b, 0) >= number, "a commit that has returned is seen");
                    println!("ROUND {number}");
                }
            });
        }
    });
}

#[test]
fn s1_16_after_a_death_loads_outside_see_whole_transactions() {
    for class in [Class::Transactional, Class::OnDemand] {
        let world = World::new(Ground::File, Tracking::Explicit, false);
        let pool = world.format();
        ["a", "b"].iter().for_each(|name| pool.create_with(name, &how(class)).unwrap());
        drop(pool);
        let (mut random, mut said) = (Seeded::new(11), 0);
        for _ in 0..8 {
            let last = random.usize(1..200);
            let killed = support::killed_at_work(&world, "readable::work", last);
            said = killed.unwrap_or(said).max(said);
            let pool = world.open();
            let together = class == Class::OnDemand;
            let (a, b) = (attach(&pool, "a", together), attach(&pool, "b", together));
            let pairs: Vec<_> =
                (1..5).map(|thread| (outside(&a, thread * 8), outside(&b, thread * 8))).collect();
            let all = outside(&b, 0);
            assert!(pairs.iter().all(|(a, b)| a == b), "half a transaction: {pairs:?}");
            assert_eq!(pairs.iter().map(|(a, _)| a).sum::<u64>(), all, "{pairs:?}");
            assert!(all >= said, "{said} was acknowledged, {all} are there");
        }
        assert!(said > 100, "only {said} transactions");
    }
}

#[test]
fn s1_16_a_readable_object_has_a_class_of_transactions_and_no_check_words() {
    let pool = simulated().format();
    let refused = |done: Result<(), Error>, why: &str| {
        let error = done.unwrap_err();
        assert!(error.kind() == ErrorKind::ClassMismatch && error.to_string().contains(why), "{error}");
    };
    let checked = CreateOptions::new(4096).ecc(true);
    refused(pool.create_with("c", &checked.clone().readable_outside(true)), "check words");
    pool.create_with("c", &checked).unwrap();
    refused(pool.set_readable_outside("c", b"", true), "check words");
    pool.set_readable_outside("c", b"", false).unwrap();
    refused(pool.create_with("p", &CreateOptions::new(4096).readable_outside(true)), "neither transactional");
    pool.create("p", 4096).unwrap();
    refused(pool.set_readable_outside("p", b"", true), "neither transactional");
    let readable = |name: &str| pool.stat(name).unwrap().readable_outside;
    pool.create_with("o", &how(Class::Transactional).key(b"k")).unwrap();
    assert_eq!((readable("c"), readable("p"), readable("o")), (false, false, true));
    assert_eq!(pool.set_readable_outside("o", b"", false).unwrap_err().kind(), ErrorKind::WrongKey);
    let held = pool.attach_transactional_with_key::<Cells>("o", b"k").unwrap();
    held.transaction(|tx| tx.write(&held[0], 3)).unwrap();
    assert_eq!(pool.set_readable_outside("o", b"k", false).unwrap_err().kind(), ErrorKind::Held);
    drop(held);
    pool.set_class("o", b"k", Class::OnDemand).unwrap();
    assert!(readable("o"), "between the two classes it stays");
    pool.set_class("o", b"k", Class::Psync).unwrap();
    assert!(!readable("o"));
    pool.set_class("o", b"k", Class::Transactional).unwrap();
    assert!(!readable("o"), "it is said anew");
    pool.set_readable_outside("o", b"k", true).unwrap();
    let object = pool.attach_transactional_with_key::<Cells>("o", b"k").unwrap();
    assert_eq!(outside(&object, 0), 3, "the bytes stay");
    drop(object);
    pool.snapshot("o", "then", b"k").unwrap();
    pool.create_from("o", "copy", b"k", &CreateOptions::new(0)).unwrap();
    assert!(readable("then") && readable("copy"), "copies are as their original");
    assert_eq!(pool.set_readable_outside("then", b"k", false).unwrap_err().kind(), ErrorKind::ObjectReadOnly);
}

type Block = TxPtr<[TxCell<u64>; 600]>;

fn grown(heap: &TxHeap) -> Vec<Block> {
    let (mut blocks, mut size, mut growths) = (Vec::new(), heap.size(), 0);
    while growths < 2 {
        let block = heap.transaction(|tx| tx.alloc(heap, [const { TxCell::new(0_u64) }; 600])).unwrap();
        blocks.push(block);
        let number = blocks.len() as u64;
        heap.transaction(|tx| tx.write(&tx.at(block)?[599], number)).unwrap();
        assert_eq!(number_outside(heap, block), number);
        growths += u32::from(heap.size() > size);
        size = heap.size();
    }
    blocks
}

fn number_outside(heap: &TxHeap, block: Block) -> u64 {
    let base = heap.outside().unwrap();
    let offset = block.address() as usize + 599 * 8 - base.expose_provenance();
    assert!(offset < heap.size());
    load(base.wrapping_add(offset).cast())
}

fn all_are_seen(heap: &TxHeap, blocks: &[Block]) {
    for (number, block) in (1..).zip(blocks) {
        assert_eq!(number_outside(heap, *block), number);
    }
}

#[test]
fn s1_16_a_heap_that_grows_is_seen_whole() {
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        let world = World::new(ground, Tracking::Explicit, false);
        let pool = world.format();
        let small = CreateOptions::new(64 << 10).class(Class::Transactional).readable_outside(true);
        let made = |name: &str| {
            pool.create_with(name, &small).unwrap();
            pool.transactional_heap(name, 0).unwrap()
        };
        let walled = made("walled");
        pool.create("behind", 64 << 10).unwrap();
        let walled_blocks = grown(&walled);
        let free = made("free");
        let free_blocks = grown(&free);
        all_are_seen(&walled, &walled_blocks);
        all_are_seen(&free, &free_blocks);
        free.detach().unwrap();
        walled.detach().unwrap();
        drop(pool);
        let pool = world.open();
        all_are_seen(&pool.transactional_heap("walled", 0).unwrap(), &walled_blocks);
        all_are_seen(&pool.transactional_heap("free", 0).unwrap(), &free_blocks);
    }
}
