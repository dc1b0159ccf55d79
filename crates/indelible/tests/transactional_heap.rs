use crate::support::nodes::sound;
pub use crate::support::nodes::{Node, Top, blocks, push, stop, values};
use crate::support::{Ground, World, everywhere};
use indelible::{
    Class, CreateOptions, Error, ErrorKind, Persist, Plain, Pool, ReadHeap, Tracking, TxCell, TxHeap, TxPtr,
    transaction,
};
use indelible_testing::Seeded;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Result<T> = indelible::Result<T>;

const SIZE: u64 = 1 << 20;

pub fn simulated() -> World {
    World::new(Ground::Simulated, Tracking::Explicit, false)
}

fn pop(tx: &mut indelible::Tx<'_>, top: &Top) -> Result<Option<u64>> {
    let Some(first) = tx.read(top)?.some() else { return Ok(None) };
    let node = tx.at(first)?;
    let (next, value) = (tx.read(&node.next)?, tx.read(&node.value)?);
    tx.write(top, next)?;
    tx.free(first)?;
    Ok(Some(value))
}

#[test]
pub fn s1_03_blocks_are_there_when_their_transaction_has_committed() {
    everywhere(|world| {
        let pool = world.format();
        let heap = pool.transactional_heap("h", SIZE).unwrap();
        let top = heap.root_or_default::<Top>("top").unwrap();
        heap.transaction(|tx| (0..100).try_for_each(|value| push(tx, &heap, top, value).map(drop))).unwrap();
        for _ in 0..40 {
            heap.transaction(|tx| pop(tx, top)).unwrap();
        }
        assert_eq!(values(&heap, top), (0..60).rev().collect::<Vec<_>>());
        assert_eq!(blocks(&heap), 61);
        drop(heap);
        drop(pool);
        let pool = world.open();
        let heap = pool.transactional_heap("h", SIZE).unwrap();
        let top = heap.root::<Top>("top").unwrap();
        assert_eq!(values(&heap, top), (0..60).rev().collect::<Vec<_>>());
        assert_eq!(blocks(&heap), 61);
        heap.transaction(|tx| while_some(|| pop(tx, top))).unwrap();
        assert_eq!(blocks(&heap), 1);
        heap.detach().unwrap();
        let read = ReadHeap::open(pool.attach_read("h").unwrap()).unwrap();
        assert_eq!(read.check(), []);
        assert_eq!((read.stats().unwrap().blocks, read.roots().unwrap()[0].name.as_str()), (1, "top"));
    });
}

fn while_some<T>(mut next: impl FnMut() -> Result<Option<T>>) -> Result<()> {
    while next()?.is_some() {}
    Ok(())
}

#[test]
pub fn s1_03_an_aborted_transaction_allocates_and_frees_nothing() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    let first = heap.transaction(|tx| (0..10).try_fold(TxPtr::NULL, |_, value| push(tx, &heap, top, value)));
    let first = first.unwrap();
    let before = sound(&heap);
    let change = |tx: &mut indelible::Tx<'_>| {
        pop(tx, top)?;
        pop(tx, top)?;
        (0..300).try_for_each(|value| push(tx, &heap, top, value).map(drop))?;
        tx.alloc(&heap, [const { TxCell::new(0_u64) }; 100])?;
        tx.alloc(&heap, [const { TxCell::new([0_u64; 512]) }; 20])?;
        Ok::<_, Error>(())
    };
    let failed: std::result::Result<(), Box<dyn std::error::Error>> = heap.transaction(|tx| {
        change(tx)?;
        Err("enough".into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "enough");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        heap.transaction(|tx| -> Result<()> {
            change(tx)?;
            panic!("in the middle")
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"in the middle"));
    let tries = Cell::new(0);
    heap.transaction(|tx| {
        change(tx)?;
        tries.set(tries.get() + 1);
        if tries.get() == 1 { tx.alone().map(drop) } else { Err(stop()) }
    })
    .unwrap_err();
    assert_eq!(tries.get(), 2);
    assert_eq!(sound(&heap), before);
    assert_eq!(values(&heap, top), (0..10).rev().collect::<Vec<_>>());
    assert_eq!(heap.transaction(|tx| tx.usable_size(first)).unwrap(), 16, "it is in use as before");
}

#[test]
pub fn blocks_are_freed_once_and_by_their_first_byte() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let other = pool.transactional_heap("other", SIZE).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    let (small, large) = heap
        .transaction(|tx| {
            let large = tx.alloc(&heap, [const { TxCell::new([7_u64; 512]) }; 10])?;
            Ok::<_, Error>((push(tx, &heap, top, 1)?, large))
        })
        .unwrap();
    let before = blocks(&heap);
    let kind = |freed: Result<()>| freed.unwrap_err().kind();
    heap.transaction(|tx| {
        assert_eq!(tx.usable_size(large).unwrap(), 10 * 4096);
        let [inside, far] = [inside(small, 8), inside(large, 4096)];
        assert_eq!(kind(tx.free(inside)), ErrorKind::NotABlock);
        assert_eq!(kind(tx.free(far)), ErrorKind::NotABlock);
        assert_eq!(kind(tx.free(TxPtr::<Node>::NULL)), ErrorKind::NotAttached);
        let elsewhere = inside_of(&pool, "other");
        assert_eq!(kind(tx.free(elsewhere)), ErrorKind::NotAttached, "the heap is not named");
        assert_eq!(tx.alloc(&other, TxCell::new(1_u64)).unwrap_err().kind(), ErrorKind::NotAttached);
        assert_eq!(kind(tx.free(inside_of(&pool, "h"))), ErrorKind::NotABlock, "the heap's own header");
        tx.free(small)?;
        assert_eq!(kind(tx.free(small)), ErrorKind::DoubleFree);
        tx.free(large)?;
        assert_eq!(kind(tx.free(large)), ErrorKind::NotABlock);
        tx.write(top, TxPtr::NULL)
    })
    .unwrap();
    assert_eq!(blocks(&heap), before - 2);
    heap.transaction(|tx| {
        assert_eq!(kind(tx.free(small)), ErrorKind::DoubleFree);
        Ok::<_, Error>(())
    })
    .unwrap();
}

fn inside<T>(pointer: TxPtr<T>, offset: u64) -> TxPtr<Node> {
    self::pointer(pointer.address() + offset)
}

fn inside_of(pool: &Pool, name: &str) -> TxPtr<Node> {
    pointer(pool.stat(name).unwrap().address)
}

#[test]
pub fn s1_03_a_block_freed_twice_is_given_away_once() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let blocks = heap
        .transaction(|tx| {
            let pointers: Vec<TxPtr<TxCell<u64>>> =
                (0..50).map(|value| tx.alloc(&heap, TxCell::new(value))).collect::<Result<_>>()?;
            for pointer in &pointers {
                tx.free(*pointer)?;
                let again = tx.alloc(&heap, TxCell::new(0_u64))?;
                let _ = tx.free(*pointer);
                let _ = again;
            }
            (0..50)
                .map(|value| tx.alloc(&heap, TxCell::new(value)))
                .collect::<Result<Vec<TxPtr<TxCell<u64>>>>>()
        })
        .unwrap();
    let live = sound(&heap).blocks;
    let mut addresses: Vec<u64> = blocks.iter().map(|block| block.address()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 50);
    assert!(live >= 50, "{live} blocks are in use, of which the program has 50");
    let freed = heap.transaction(|tx| {
        blocks.iter().try_for_each(|block| tx.free(*block))?;
        let twice = blocks.iter().filter(|block| tx.free(**block).is_ok()).count();
        Ok::<_, Error>(twice)
    });
    assert_eq!(freed.unwrap(), 0, "a block was freed twice");
}

#[test]
fn a_full_heap_is_an_error_and_empty_spans_are_pages_again() {
    let world = simulated();
    let pool = world.format();
    let how = CreateOptions::new(256 << 10).class(Class::Transactional).reach(256 << 10);
    pool.create_with("h", &how).unwrap();
    let heap = pool.transactional_heap("h", 0).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    let fill = || {
        let mut pushed = 0;
        loop {
            match heap.transaction(|tx| push(tx, &heap, top, pushed)) {
                Ok(_) => pushed += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
                    let text = error.to_string();
                    assert!(
                        text.contains("no room for") && text.contains("its address range ends there"),
                        "{text}"
                    );
                    return pushed;
                }
            }
        }
    };
    let most = fill();
    assert!(most > 8_000, "{most} blocks of 16 bytes in 256 KiB");
    assert_eq!(blocks(&heap), most + 1);
    let wide = || [const { TxCell::new([1_u64; 64]) }; 16];
    heap.transaction(|tx| {
        let full = tx.alloc(&heap, wide()).unwrap_err();
        if full.kind() == ErrorKind::Conflict {
            return Err(full);
        }
        assert_eq!(full.kind(), ErrorKind::HeapFull);
        pop(tx, top)?;
        push(tx, &heap, top, 1).map(drop)
    })
    .unwrap();
    assert_eq!(blocks(&heap), most + 1);
    let block = heap
        .transaction(|tx| {
            while_some(|| pop(tx, top))?;
            tx.alloc(&heap, [const { TxCell::new([1_u64; 512]) }; 40])
        })
        .unwrap();
    assert_eq!(blocks(&heap), 2);
    heap.transaction(|tx| tx.free(block)).unwrap();
    let again = fill();
    assert!(again.abs_diff(most) < 100, "{again} blocks, and {most} before: pages were lost");
    assert_eq!(blocks(&heap), again + 1);
}

#[test]
fn a_heap_takes_in_what_its_object_got() {
    everywhere(|world| {
        let pool = world.format();
        let how = CreateOptions::new(64 << 10).class(Class::Transactional).reach(64 << 10);
        pool.create_with("h", &how).unwrap();
        let heap = pool.transactional_heap("h", 0).unwrap();
        let large = || [const { TxCell::new([1_u64; 512]) }; 40];
        let full = heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::HeapFull);
        heap.detach().unwrap();
        pool.resize("h", 1 << 20, b"").unwrap();
        let heap = pool.transactional_heap("h", 0).unwrap();
        heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap();
        assert_eq!((sound(&heap).bytes, blocks(&heap)), (1 << 20, 1));
    });
}

#[derive(Debug, Plain, Persist)]
#[repr(C)]
struct Account {
    number: TxCell<u64>,
    balance: TxCell<i64>,
}

#[test]
fn roots_are_found_by_name_and_type() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let account = heap.root_or_default::<Account>("main").unwrap();
    heap.transaction(|tx| tx.write(&account.balance, 12)).unwrap();
    let wrong = heap.root_or_default::<TxCell<u64>>("main").unwrap_err();
    assert_eq!(
        (wrong.kind(), heap.root::<TxCell<u64>>("main").unwrap_err().kind()),
        (ErrorKind::RootType, ErrorKind::RootType)
    );
    assert!(wrong.to_string().contains("Account"), "{wrong}");
    assert_eq!(heap.root::<Account>("none").unwrap_err().kind(), ErrorKind::RootMissing);
    let make = |commit: bool| {
        heap.transaction(|tx| {
            let new = tx.alloc(&heap, Account { number: TxCell::new(2), balance: TxCell::new(5) })?;
            heap.create_root(tx, "second", new)?;
            assert_eq!(heap.root_in::<Account>(tx, "second")?, Some(new));
            assert_eq!(heap.create_root(tx, "second", new).unwrap_err().kind(), ErrorKind::RootExists);
            if commit { Ok(new) } else { Err(stop()) }
        })
    };
    make(false).unwrap_err();
    assert_eq!(heap.root::<Account>("second").unwrap_err().kind(), ErrorKind::RootMissing);
    let second = make(true).unwrap();
    drop(heap);
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let found = heap.root::<Account>("second").unwrap();
    let read = heap.transaction(|tx| {
        assert!(std::ptr::eq(tx.at(second)?, found));
        Ok::<_, Error>((tx.read(&found.number)?, tx.read(&found.balance)?))
    });
    assert_eq!(read.unwrap(), (2, 5));
    assert_eq!(blocks(&heap), 2);
    heap.transaction(|tx| {
        heap.remove_root(tx, "second")?;
        tx.free(second)
    })
    .unwrap();
    assert_eq!(blocks(&heap), 1);
    let gone = heap.transaction(|tx| heap.remove_root(tx, "second"));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::RootMissing);
    for name in 0..200 {
        heap.root_or_default::<TxCell<u64>>(&format!("root {name}")).unwrap();
    }
    assert_eq!(sound(&heap).roots, 201);
}

#[test]
fn a_transaction_spans_heaps_and_objects() {
    everywhere(|world| {
        let pool = world.format();
        let [a, b] = ["a", "b"].map(|name| pool.transactional_heap(name, SIZE).unwrap());
        pool.create_with("count", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
        let count = pool.attach_transactional::<TxCell<u64>>("count").unwrap();
        let top = a.root_or_default::<Top>("top").unwrap();
        let both = |commit: bool| {
            transaction(&[&a, &b, &count], |tx| {
                let far = push(tx, &b, top, 7)?;
                assert_eq!(tx.read(&tx.at(far)?.value)?, 7);
                tx.update(&count, |count| count + 1)?;
                if commit { Ok(()) } else { Err(stop()) }
            })
        };
        both(false).unwrap_err();
        both(true).unwrap();
        assert_eq!((blocks(&a), blocks(&b)), (1, 1));
        let alone = a.transaction(|tx| {
            let far = tx.read(top)?;
            Ok::<_, Error>(tx.at(far).map(drop).unwrap_err().kind())
        });
        assert_eq!(alone.unwrap(), ErrorKind::NotAttached);
        drop((a, b, count));
        let [a, b] = ["a", "b"].map(|name| pool.transactional_heap(name, SIZE).unwrap());
        let count = pool.attach_transactional::<TxCell<u64>>("count").unwrap();
        let top = a.root::<Top>("top").unwrap();
        let left = transaction(&[&a, &b, &count], |tx| {
            while_some(|| pop(tx, top))?;
            tx.read(&count)
        });
        assert_eq!((left.unwrap(), blocks(&a), blocks(&b)), (1, 1, 0));
    });
}

#[test]
fn s1_03_threads_lose_no_block_and_share_none() {
    for seed in 0..3 {
        let world = simulated();
        let pool = world.format();
        let heap = pool.transactional_heap("h", 8 << 20).unwrap();
        let lists = heap.root_or_default::<[TxCell<TxPtr<Wide>>; 8]>("lists").unwrap();
        let kept = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let (heap, kept) = (&heap, &kept);
                scope.spawn(move || {
                    let mut random = Seeded::new(seed * 8 + thread as u64);
                    for _ in 0..150 {
                        let list = if random.u8(0..4) == 0 { random.usize(0..8) } else { thread };
                        let (grow, kind, fail) = (random.u8(0..5) < 3, random.u8(0..8), random.u8(0..8) == 0);
                        let done = heap.transaction(|tx| {
                            let change = match grow {
                                true => Wide::push(tx, heap, &lists[list], kind).map(|()| 1),
                                false => Wide::pop(tx, &lists[list]).map(|popped| -(popped as i64)),
                            }?;
                            if fail { Err(stop()) } else { Ok(change) }
                        });
                        let change = done.unwrap_or(0);
                        kept.fetch_add(change as u64, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        let expected = kept.into_inner();
        assert_eq!(blocks(&heap), expected + 1, "seed {seed}");
        heap.transaction(|tx| {
            lists.iter().try_for_each(|list| while_some(|| Ok(Wide::pop(tx, list)?.then_some(()))))
        })
        .unwrap();
        assert_eq!(blocks(&heap), 1, "seed {seed}");
    }
}

#[derive(Plain)]
#[repr(C)]
struct Wide {
    next: TxCell<TxPtr<Wide>>,
    len: TxCell<u64>,
    mark: TxCell<u64>,
    end: TxCell<u64>,
}

#[derive(Plain)]
#[repr(C)]
struct Sized<const N: usize> {
    head: Wide,
    body: [TxCell<u64>; N],
}

impl Wide {
    fn push(tx: &mut indelible::Tx<'_>, heap: &TxHeap, list: &TxCell<TxPtr<Wide>>, kind: u8) -> Result<()> {
        fn one<const N: usize>(
            tx: &mut indelible::Tx<'_>,
            heap: &TxHeap,
            next: TxPtr<Wide>,
        ) -> Result<TxPtr<Wide>> {
            let cell = TxCell::new;
            let head = Wide {
                next: TxCell::new(next),
                len: cell(N as u64),
                mark: cell(next.address()),
                end: cell(0),
            };
            let block = tx.alloc(heap, Sized::<N> { head, body: [const { TxCell::new(0) }; N] })?;
            let body = &tx.at(block)?.body;
            body.iter().try_for_each(|word| tx.write(word, next.address() ^ N as u64))?;
            Ok(pointer(block.address()))
        }
        let next = tx.read(list)?;
        let new = match kind {
            0 => one::<0>(tx, heap, next),
            1 => one::<4>(tx, heap, next),
            2..5 => one::<20>(tx, heap, next),
            5 => one::<200>(tx, heap, next),
            6 => one::<3000>(tx, heap, next),
            _ => one::<6000>(tx, heap, next),
        }?;
        tx.write(list, new)
    }

    fn pop(tx: &mut indelible::Tx<'_>, list: &TxCell<TxPtr<Wide>>) -> Result<bool> {
        fn check<const N: usize>(tx: &mut indelible::Tx<'_>, block: u64, mark: u64) -> Result<()> {
            let body = &tx.at(pointer::<Sized<N>>(block))?.body;
            for word in body {
                let found = tx.read(word)?;
                assert_eq!(found, mark ^ N as u64, "another block has this word");
            }
            Ok(())
        }
        let Some(first) = tx.read(list)?.some() else { return Ok(false) };
        let Wide { next, len, mark, .. } = tx.at(first)?;
        let (next, len, mark) = (tx.read(next)?, tx.read(len)?, tx.read(mark)?);
        let block = first.address();
        match len {
            0 => {}
            4 => check::<4>(tx, block, mark)?,
            20 => check::<20>(tx, block, mark)?,
            200 => check::<200>(tx, block, mark)?,
            3000 => check::<3000>(tx, block, mark)?,
            6000 => check::<6000>(tx, block, mark)?,
            other => panic!("a length that no block was given: {other}"),
        }
        tx.write(list, next)?;
        tx.free(first)?;
        Ok(true)
    }
}

fn pointer<T>(address: u64) -> TxPtr<T> {
    // SAFETY: a pointer of a heap is an integer, whose every value is one.
    unsafe { std::mem::transmute(address) }
}

#[test]
fn damaged_pointers_are_errors_or_lead_to_words_of_the_heap() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", 64 << 10).unwrap();
    let base = pool.stat("h").unwrap().address;
    let kinds = heap.transaction(|tx| {
        let at = [base + 64 + 4, base + (64 << 10) - 8, base + (64 << 10), base - 8, 8, u64::MAX - 7];
        Ok::<_, Error>(at.map(|address| tx.at(pointer::<Node>(address)).err().map(|error| error.kind())))
    });
    let (damaged, none) = (Some(ErrorKind::Damaged), Some(ErrorKind::NotAttached));
    assert_eq!(kinds.unwrap(), [damaged, damaged, none, none, none, none]);
    heap.transaction(|tx| tx.at(pointer::<Node>(base)).map(drop)).unwrap();
}

#[test]
fn code_after_alone_runs_once() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let heap = pool.transactional_heap("h", 16 << 20).unwrap();
    let total = heap.root_or_default::<TxCell<u64>>("total").unwrap();
    let (tries, done) = (Cell::new(0), Cell::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                (0..50).for_each(|_| heap.transaction(|tx| tx.update(total, |total| total + 1)).unwrap());
            });
        }
        heap.transaction(|tx| {
            tries.set(tries.get() + 1);
            tx.update(total, |total| total + 1)?;
            tx.alone()?;
            done.set(done.get() + 1);
            (0..512).try_for_each(|_| tx.alloc(&heap, [const { TxCell::new([3_u64; 512]) }; 4]).map(drop))
        })
        .unwrap();
    });
    assert_eq!(done.get(), 1, "{} tries", tries.get());
    assert_eq!(heap.transaction(|tx| tx.read(total)).unwrap(), 151);
    assert_eq!(blocks(&heap), 513);
}

#[test]
fn calls_that_do_not_fit_are_errors_by_name() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    heap.transaction(|tx| {
        let again = heap.transaction(|tx| tx.alloc(&heap, TxCell::new(1_u64)).map(drop));
        let results = [
            again,
            heap.psync(),
            heap.check().map(drop),
            heap.stats().map(drop),
            heap.root_or_default::<TxCell<u64>>("r").map(drop),
            pool.transactional_heap("g", SIZE).map(drop),
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InTransaction);
        }
        tx.alloc(&heap, TxCell::new(1_u64)).map(drop)
    })
    .unwrap();
    assert_eq!(blocks(&heap), 1);
    assert_eq!(pool.transactional_heap("h", SIZE).unwrap_err().kind(), ErrorKind::Held);
    drop(heap);
    pool.create("plain", SIZE).unwrap();
    assert_eq!(pool.transactional_heap("plain", SIZE).unwrap_err().kind(), ErrorKind::ClassMismatch);
    pool.create_with("small", &CreateOptions::new(8192).class(Class::Transactional)).unwrap();
    assert_eq!(pool.transactional_heap("small", SIZE).unwrap_err().kind(), ErrorKind::BadSize);
    pool.create_with("data", &CreateOptions::new(SIZE).class(Class::Transactional)).unwrap();
    let data = pool.attach_transactional::<TxCell<u64>>("data").unwrap();
    data.transaction(|tx| tx.write(&data, 7)).unwrap();
    drop(data);
    assert_eq!(pool.transactional_heap("data", SIZE).unwrap_err().kind(), ErrorKind::Exists);
    // A plain heap becomes transactional with its object's class, and vice versa.
    let mut plain = pool.heap("made", SIZE).unwrap();
    plain.malloc(100).unwrap();
    plain.psync().unwrap();
    drop(plain);
    pool.set_class("made", b"", Class::Transactional).unwrap();
    let made = pool.transactional_heap("made", SIZE).unwrap();
    made.transaction(|tx| tx.alloc(&made, TxCell::new(1_u64)).map(drop)).unwrap();
    assert_eq!(blocks(&made), 2);
    drop(made);
    pool.set_class("made", b"", Class::Psync).unwrap();
    let mut plain = pool.heap("made", SIZE).unwrap();
    assert_eq!((plain.check(), plain.stats().unwrap().blocks), (vec![], 2));
}

#[test]
fn a_thread_that_ends_in_a_transaction_leaves_nothing() {
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let top = heap.root_or_default::<Top>("top").unwrap();
    let ended = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            heap.transaction(|tx| -> Result<()> {
                push(tx, &heap, top, 1)?;
                std::panic::resume_unwind(Box::new("the thread ends"))
            })
        });
        thread.join()
    });
    assert!(ended.is_err());
    assert_eq!((values(&heap, top), blocks(&heap)), (vec![], 1));
    heap.transaction(|tx| push(tx, &heap, top, 2).map(drop)).unwrap();
    assert_eq!((values(&heap, top), blocks(&heap)), (vec![2], 2));
}
