use crate::support::{self, Ground, POOL, World, everywhere};
use crate::transactional_heap::{Top, blocks, push, simulated, stop, values};
use indelible::{Class, CreateOptions, Error, ErrorKind, Pool, Tracking, TxCell, TxHeap};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, SimMedium, for_each_crash, sparse};
use std::cell::Cell;
use std::sync::Arc;

const SMALL: u64 = 64 << 10;
const LARGE: usize = 40;

type Page = TxCell<[u64; 512]>;

fn large() -> [Page; LARGE] {
    [const { TxCell::new([1_u64; 512]) }; LARGE]
}

type Kind = (bool, Words);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Plain,
    Checked,
    Kept,
    Together,
}

const KINDS: [Kind; 6] = [
    (false, Words::Plain),
    (true, Words::Plain),
    (false, Words::Checked),
    (true, Words::Checked),
    (true, Words::Kept),
    (false, Words::Together),
];

fn heap_of(pool: &Pool, (walled, words): Kind) -> TxHeap {
    if words == Words::Checked {
        pool.create_with("h", &CreateOptions::new(SMALL).class(Class::Transactional).ecc(true)).unwrap();
    }
    let heap = attach(pool, words).unwrap();
    if walled {
        pool.create("behind", SMALL).unwrap();
    }
    heap
}

fn attach(pool: &Pool, words: Words) -> indelible::Result<TxHeap> {
    match words {
        Words::Plain | Words::Checked => pool.transactional_heap("h", SMALL),
        Words::Kept => pool.heap_on_demand("h", SMALL),
        Words::Together => pool.heap_with_on_demand("h", SMALL),
    }
}

#[test]
pub(crate) fn s1_03_a_heap_grows_and_its_transaction_is_run_again() {
    let worlds = Cell::new(0);
    everywhere(|world| {
        let step = sparse(3);
        let first = worlds.replace(worlds.get() + 1) % step;
        for kind in KINDS.into_iter().skip(first).step_by(step) {
            let pool = world.format();
            let heap = heap_of(&pool, kind);
            let top = heap.root_or_default::<Top>("top").unwrap();
            let runs = Cell::new(0);
            let block = heap.transaction(|tx| {
                runs.set(runs.get() + 1);
                push(tx, &heap, top, 7)?;
                tx.alloc(&heap, large())
            });
            let block = block.unwrap();
            let expected = if matches!(kind.1, Words::Kept | Words::Together) { 3 } else { 2 };
            assert_eq!((runs.get(), blocks(&heap)), (expected, 3), "one block more for each run is lost");
            assert!(heap.size() as u64 > SMALL);
            let grown = heap.size();
            let mut count = 1;
            while heap.size() == grown {
                heap.transaction(|tx| (0..500).try_for_each(|_| push(tx, &heap, top, count).map(drop)))
                    .unwrap();
                count += 1;
            }
            let expected = blocks(&heap);
            assert_eq!(values(&heap, top).len() as u64, expected - 2);
            heap.transaction(|tx| {
                let pages = tx.at(block)?;
                pages.iter().try_for_each(|page| {
                    assert_eq!(tx.read(page)?, [1; 512]);
                    Ok::<_, Error>(())
                })
            })
            .unwrap();
            let size = heap.size();
            heap.detach().unwrap();
            drop(pool);
            let pool = world.open();
            let (_, words) = kind;
            let heap = attach(&pool, words).unwrap();
            let top = heap.root::<Top>("top").unwrap();
            assert_eq!((heap.size(), blocks(&heap)), (size, expected));
            assert_eq!(values(&heap, top).last(), Some(&7));
            drop(heap);
            if words == Words::Checked {
                let scrubbed = pool.scrub("h", b"", &mut |_, _| {}).unwrap();
                assert_eq!((scrubbed.words, scrubbed.repaired), (size as u64 / 8, 0));
            }
            drop(pool);
            if world.ground != Ground::Simulated {
                std::fs::remove_file(world.path()).unwrap();
            } else {
                break;
            }
        }
    });
}

#[test]
fn a_heap_that_cannot_grow_says_why() {
    let world = simulated();
    let pool = world.format();
    let how = CreateOptions::new(SMALL).class(Class::Transactional).reach(4 * SMALL);
    pool.create_with("short", &how).unwrap();
    let short = pool.transactional_heap("short", 0).unwrap();
    pool.create_with("short and checked", &how.clone().ecc(true)).unwrap();
    let checked = pool.transactional_heap("short and checked", 0).unwrap();
    let wide = pool.transactional_heap("wide", SMALL).unwrap();
    let rest = POOL - (12 << 20);
    pool.create("rest", rest).unwrap();
    for (heap, says, advice) in [
        (&short, "its address range ends there", "larger reach"),
        (&checked, "its address range ends there", "larger reach"),
        (&wide, "the pool has no free piece", "`pmo grow`"),
    ] {
        let top = heap.root_or_default::<Top>("top").unwrap();
        let before = blocks(heap);
        let full = heap.transaction(|tx| (0..200).try_for_each(|_| tx.alloc(heap, large()).map(drop)));
        let full = full.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::HeapFull, "{full}");
        assert!(full.to_string().contains(says) && full.to_string().contains(advice), "{full}");
        assert_eq!(blocks(heap), before);
        let small = || heap.transaction(|tx| tx.alloc(heap, [const { TxCell::new([1_u64; 512]) }; 4]));
        let got = (0..5000).take_while(|_| small().is_ok()).count() as u64;
        heap.transaction(|tx| {
            let refused = tx.alloc(heap, large()).unwrap_err();
            match refused.kind() {
                ErrorKind::HeapFull => push(tx, heap, top, got).map(drop),
                _ => Err(refused),
            }
        })
        .unwrap();
        assert!(got > 0 && values(heap, top) == [got]);
        assert_eq!(blocks(heap), before + 1 + got, "{got} blocks");
    }
}

#[test]
fn a_heap_that_cannot_grow_in_a_pool_that_was_given_up_says_so() {
    for kind in KINDS {
        let world = simulated();
        let pool = world.format();
        let heap = heap_of(&pool, kind);
        let grow = || heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap_err();
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::WriteDurable, 0, Fault::Io);
        let first = grow();
        sim.clear_faults();
        let second = grow();
        assert_eq!(second.kind(), ErrorKind::Poisoned, "{kind:?}: {first}; {second}");
        assert!(second.to_string().contains("attach again"), "{second}");
    }
}

#[test]
fn a_heap_grows_in_a_transaction_that_is_alone() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let heap = heap_of(&pool, KINDS[1]);
    let alone = Cell::new(0);
    heap.transaction(|tx| {
        tx.alone()?;
        alone.set(alone.get() + 1);
        (0..10).try_for_each(|_| tx.alloc(&heap, large()).map(drop))
    })
    .unwrap();
    assert_eq!((alone.get(), blocks(&heap)), (1, 10));
    let size = heap.size();
    let stopped = heap.transaction(|tx| {
        tx.alone()?;
        (0..40).try_for_each(|_| tx.alloc(&heap, large()).map(drop))?;
        Err::<(), _>(stop())
    });
    stopped.unwrap_err();
    assert_eq!(blocks(&heap), 10);
    assert!(heap.size() > size);
}

#[test]
fn s1_03_threads_that_meet_the_end_together_lose_nothing() {
    for (ground, words) in
        [(Ground::Memory, Words::Plain), (Ground::File, Words::Plain), (Ground::File, Words::Kept)]
    {
        let world = World::new(ground, Tracking::Explicit, false);
        let pool = world.format();
        let heap = heap_of(&pool, (true, words));
        let tops = heap.root_or_default::<[Top; 4]>("tops").unwrap();
        std::thread::scope(|scope| {
            for top in tops {
                let heap = &heap;
                scope.spawn(move || {
                    for round in 0..60 {
                        heap.transaction(|tx| {
                            (0..100)
                                .try_for_each(|value| push(tx, heap, top, 100 * round + value).map(drop))?;
                            let block = tx.alloc(heap, large())?;
                            if round % 3 == 0 { Ok(()) } else { tx.free(block) }
                        })
                        .unwrap();
                    }
                });
            }
        });
        for top in tops {
            assert_eq!(values(&heap, top), (0..6000).rev().collect::<Vec<_>>());
        }
        assert_eq!(blocks(&heap), 1 + 4 * 6000 + 4 * 20);
        assert!(heap.size() > 4 << 20);
    }
}

fn pushes(heap: &TxHeap, sim: &SimMedium, rounds: u64) -> (u64, Option<Error>) {
    let top = match heap.root_or_default::<Top>("top") {
        Ok(top) => top,
        Err(error) => return (0, Some(error)),
    };
    let (mut done, mut first) = (0, None);
    for round in 1..=rounds {
        let pushed = heap.transaction(|tx| {
            (0..400).try_for_each(|_| push(tx, heap, top, round).map(drop))?;
            let block = tx.alloc(heap, large())?;
            tx.free(block)
        });
        match pushed.and_then(|()| heap.tx_sync()) {
            Ok(()) => {
                done = round;
                sim.mark(round);
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    (done, first)
}

fn judge(pool: &Pool, words: Words, returned: u64) -> Result<(), String> {
    support::memory_of(pool).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    pool.give_memory_up("h", b"").map_err(|error| error.to_string())?;
    let heap = attach(pool, words).map_err(|error| error.to_string())?;
    let top = heap.root_or_default::<Top>("top").map_err(|error| error.to_string())?;
    let found = values(&heap, top);
    let rounds: Vec<u64> = found.chunks(400).map(|chunk| chunk[0]).collect();
    let whole = found.len().is_multiple_of(400)
        && found.chunks(400).all(|chunk| chunk.iter().all(|value| *value == chunk[0]));
    if !whole || !rounds.is_sorted_by(|a, b| a > b) || rounds.first().copied().unwrap_or(0) < returned {
        return Err(format!("{returned} returned, and {rounds:?} are there"));
    }
    if blocks(&heap) != found.len() as u64 + 1 {
        return Err(format!("{} blocks for {} values", blocks(&heap), found.len()));
    }
    heap.transaction(|tx| (0..10).try_for_each(|_| tx.alloc(&heap, large()).map(drop)))
        .map_err(|error| error.to_string())
}

fn limits(points: u64) -> Limits {
    Limits { exhaustive: 8, singles: 2, random: 2, points, seed: 5 }
}

#[test]
pub(crate) fn s1_03_power_cuts_while_a_heap_grows_lose_nothing() {
    for kind in KINDS.into_iter().step_by(sparse(2)) {
        let (_, words) = kind;
        let world = simulated();
        let pool = world.format();
        drop(heap_of(&pool, kind));
        drop(pool);
        world.sim().unwrap().settle();
        let record = |sim: &SimMedium| {
            let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
            let heap = attach(&pool, words).unwrap();
            let (done, error) = pushes(&heap, sim, 8);
            assert!(error.is_none() && done == 8, "{error:?}");
            assert!(heap.size() as u64 > 3 * SMALL);
        };
        let check = |image: &CrashImage| {
            let pool =
                world.options().on_device(Arc::new(image.medium()), false).map_err(|e| e.to_string())?;
            judge(&pool, words, image.last_mark().unwrap_or(0))
        };
        let report = for_each_crash(world.sim().unwrap(), record, check, &limits(25)).unwrap();
        assert!(report.distinct > 20, "{report:?}");
    }
}

#[test]
fn s1_03_after_a_growth_that_failed_a_power_cut_loses_nothing() {
    let (mut failed, mut refused) = (0, 0);
    for (kind, fault) in [
        (OpKind::Reserve, Fault::NoSpace),
        (OpKind::Write, Fault::Io),
        (OpKind::WriteDurable, Fault::Io),
        (OpKind::WriteDurable, Fault::NoSpace),
        (OpKind::WriteDurable, Fault::After),
        (OpKind::Barrier, Fault::Io),
    ] {
        for nth in [0, 1, 3, 7].into_iter().step_by(sparse(2)) {
            for heap in [KINDS[1], KINDS[2], KINDS[4]] {
                let (_, words) = heap;
                let world = simulated();
                let pool = world.format();
                drop(heap_of(&pool, heap));
                drop(pool);
                world.sim().unwrap().settle();
                let record = |sim: &SimMedium| {
                    let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
                    let heap = attach(&pool, words).unwrap();
                    sim.fail_at(kind, nth, fault);
                    let (_, error) = pushes(&heap, sim, 7);
                    failed += usize::from(error.is_some());
                    let in_growth = [ErrorKind::HeapFull, ErrorKind::Poisoned];
                    refused += usize::from(error.is_some_and(|error| in_growth.contains(&error.kind())));
                    sim.clear_faults();
                    drop(heap);
                };
                let check = |image: &CrashImage| {
                    let medium = Arc::new(image.medium());
                    let pool = world.options().on_device(medium, false).map_err(|e| e.to_string())?;
                    judge(&pool, words, image.last_mark().unwrap_or(0))
                };
                let done = for_each_crash(world.sim().unwrap(), record, check, &limits(4));
                done.unwrap_or_else(|wrong| {
                    panic!("{kind:?} {nth}, {fault:?}, walled and checked {heap:?}: {wrong}")
                });
            }
        }
    }
    assert!(
        failed > 15 / sparse(2) && refused > 2 / sparse(2),
        "{failed} failures, {refused} of them in a growth"
    );
}

#[test]
fn bytes_behind_the_end_are_zeros_after_a_growth() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let heap = pool.transactional_heap("h", SMALL + 100).unwrap();
    assert_eq!(heap.size() as u64, SMALL + 100);
    heap.transaction(|tx| tx.alloc(&heap, large()).map(drop)).unwrap();
    assert!(heap.size() as u64 > SMALL + 4096);
    assert_eq!(blocks(&heap), 1);
}
