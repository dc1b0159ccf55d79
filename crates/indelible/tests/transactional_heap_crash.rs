use crate::support::{self, Ground, World};
use crate::transactional_heap::{blocks, simulated};
use indelible::collections::transactional::{TxCountedMap, TxHashMap, TxList, TxOrderedMap, TxQueue, TxVec};
use indelible::{Error, ErrorKind, Persist, Plain, Pool, Tracking, Tx, TxHeap};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, Seeded, SimMedium, for_each_crash};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const SIZE: u64 = 1 << 20;

#[derive(Plain, Persist)]
#[repr(C)]
struct All {
    list: TxList<[u64; 3]>,
    vec: TxVec<u64>,
    map: TxHashMap<u64, [u64; 10]>,
    ordered: TxOrderedMap<u64, u64>,
    queue: TxQueue<u64>,
    counted: TxCountedMap<u64, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    list: Vec<[u64; 3]>,
    vec: Vec<u64>,
    map: BTreeMap<u64, [u64; 10]>,
    ordered: BTreeMap<u64, u64>,
    queue: VecDeque<u64>,
    counted: BTreeMap<u64, u64>,
}

fn change(tx: &mut Tx<'_>, all: &All, seed: u64) -> Result<(), Error> {
    let mut random = Seeded::new(seed);
    for _ in 0..random.usize(1..6) {
        let (value, key) = (random.u64(1..), random.u64(0..40));
        match random.u8(0..13) {
            0 => all.list.push_front(tx, [value; 3])?,
            1 => all.list.push_back(tx, [value; 3])?,
            2 => drop(all.list.pop_front(tx)?),
            3 => all.vec.push(tx, value)?,
            4 => drop(all.vec.swap_remove(tx, key)?),
            5 => drop(all.map.insert(tx, key, [value; 10])?),
            6 => drop(all.map.remove(tx, key)?),
            7 => drop(all.ordered.insert(tx, key, value)?),
            8 => drop(all.ordered.remove(tx, key)?),
            9 => all.queue.push(tx, value)?,
            10 => drop(all.counted.insert(tx, key, value)?),
            11 => drop(all.counted.remove(tx, key)?),
            _ => drop(all.queue.pop(tx)?),
        }
    }
    Ok(())
}

fn model_change(model: &mut Model, seed: u64) {
    let mut random = Seeded::new(seed);
    for _ in 0..random.usize(1..6) {
        let (value, key) = (random.u64(1..), random.u64(0..40));
        match random.u8(0..13) {
            0 => model.list.insert(0, [value; 3]),
            1 => model.list.push([value; 3]),
            2 => drop((!model.list.is_empty()).then(|| model.list.remove(0))),
            3 => model.vec.push(value),
            4 => drop(((key as usize) < model.vec.len()).then(|| model.vec.swap_remove(key as usize))),
            5 => drop(model.map.insert(key, [value; 10])),
            6 => drop(model.map.remove(&key)),
            7 => drop(model.ordered.insert(key, value)),
            8 => drop(model.ordered.remove(&key)),
            9 => model.queue.push_back(value),
            10 => drop(model.counted.insert(key, value)),
            11 => drop(model.counted.remove(&key)),
            _ => drop(model.queue.pop_front()),
        }
    }
}

fn content(heap: &TxHeap, all: &All) -> Model {
    let read = heap.transaction(|tx| {
        let mut model = Model { list: all.list.to_vec(tx)?, vec: all.vec.to_vec(tx)?, ..Model::default() };
        all.map.for_each(tx, |tx, key, value| {
            assert!(model.map.insert(key, tx.read(value)?).is_none(), "a key that is there twice");
            Ok(())
        })?;
        model.ordered.extend(all.ordered.to_vec(tx)?);
        model.queue.extend(all.queue.to_vec(tx)?);
        all.counted.for_each(tx, |tx, key, value| {
            model.counted.insert(key, tx.read(value)?);
            Ok(())
        })?;
        assert_eq!(all.counted.len(tx)?, model.counted.len() as u64);
        Ok::<_, Error>(model)
    });
    read.unwrap()
}

fn nothing_is_lost(heap: &TxHeap, all: &All) {
    let cleared = heap.transaction(|tx| {
        all.list.clear(tx)?;
        all.vec.clear(tx)?;
        all.map.clear(tx)?;
        all.ordered.clear(tx)?;
        all.queue.clear(tx)?;
        all.counted.clear(tx)
    });
    cleared.unwrap();
    assert_eq!(blocks(heap), 1, "blocks were lost");
    assert_eq!(content(heap, all), Model::default());
}

#[test]
pub fn s1_03_a_power_cut_loses_no_block_and_no_transaction() {
    const ROUNDS: u64 = 24;
    let world = simulated();
    let pool = world.format();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    heap.root_or_default::<All>("all").unwrap();
    drop((heap, pool));
    world.sim().unwrap().settle();
    let record = |sim: &SimMedium| {
        let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
        let heap = pool.transactional_heap("h", SIZE).unwrap();
        let all = heap.root::<All>("all").unwrap();
        for round in 1..=ROUNDS {
            let stopped = heap.transaction(|tx| {
                change(tx, all, round + 1000)?;
                Err::<(), Error>(Pool::open("/none/there").unwrap_err())
            });
            stopped.unwrap_err();
            heap.transaction(|tx| change(tx, all, round)).unwrap();
            sim.mark(round);
        }
    };
    let mut states = vec![Model::default()];
    for round in 1..=ROUNDS {
        let mut next = states[states.len() - 1].clone();
        model_change(&mut next, round);
        states.push(next);
    }
    let judge = |image: &CrashImage| {
        let pool = world.options().on_device(Arc::new(image.medium()), false).map_err(|e| e.to_string())?;
        let heap = pool.transactional_heap("h", SIZE).map_err(|e| e.to_string())?;
        let all = heap.root::<All>("all").map_err(|e| e.to_string())?;
        let done = image.last_mark().unwrap_or(0) as usize;
        let found = content(&heap, all);
        if !states[done..(done + 2).min(states.len())].contains(&found) {
            return Err(format!("{done} returned, and this is there: {found:?}"));
        }
        nothing_is_lost(&heap, all);
        Ok(())
    };
    let limits = Limits { exhaustive: 16, singles: 3, random: 3, points: 60, seed: 1 };
    let report = for_each_crash(world.sim().unwrap(), record, judge, &limits).unwrap();
    assert!(report.distinct > 20, "{report:?}");
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let pool = support::options_of(&std::env::var("WORK_WORLD").unwrap()).open(path).unwrap();
    let heap = pool.transactional_heap("h", SIZE).unwrap();
    let all = heap.root::<All>("all").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let heap = &heap;
            scope.spawn(move || {
                let mut random = Seeded::new(thread);
                loop {
                    let seed = random.u64(0..);
                    let number = heap.transaction(|tx| {
                        change(tx, all, seed)?;
                        let number = all.map.get(tx, 1000)?.map_or(0, |numbers| numbers[0]) + 1;
                        all.map.insert(tx, 1000, [number; 10])?;
                        Ok::<_, Error>(number)
                    });
                    println!("ROUND {}", number.unwrap());
                }
            });
        }
    });
}

#[test]
fn s1_03_killed_at_any_moment_no_block_is_lost() {
    for ground in [Ground::Memory, Ground::File] {
        let world = World::new(ground, Tracking::Explicit, false);
        let pool = world.format();
        pool.transactional_heap("h", SIZE).unwrap().root_or_default::<All>("all").unwrap();
        drop(pool);
        let (mut random, mut said) = (Seeded::new(7), 0);
        for _ in 0..10 {
            let killed =
                support::killed_at_work(&world, "transactional_heap_crash::work", random.usize(1..100));
            said = killed.unwrap_or(said).max(said);
            let pool = world.open();
            let heap = pool.transactional_heap("h", SIZE).unwrap();
            let all = heap.root::<All>("all").unwrap();
            let number =
                heap.transaction(|tx| all.map.get(tx, 1000)).unwrap().map_or(0, |numbers| numbers[0]);
            assert!(number >= said, "{said} was acknowledged, {number} are there");
            let found = content(&heap, all);
            nothing_is_lost(&heap, all);
            let put_back = heap.transaction(|tx| {
                found.list.iter().try_for_each(|value| all.list.push_back(tx, *value))?;
                found.map.iter().try_for_each(|(key, value)| all.map.insert(tx, *key, *value).map(drop))
            });
            put_back.unwrap();
        }
        assert!(said > 50, "only {said} transactions");
    }
}

#[test]
fn after_a_failure_no_block_is_lost() {
    let mut failed = 0;
    let kinds = [
        (OpKind::WriteDurable, Fault::Io),
        (OpKind::WriteDurable, Fault::After),
        (OpKind::Barrier, Fault::Io),
    ];
    for ((kind, fault), nth) in kinds.into_iter().flat_map(|kind| (0..4).map(move |nth| (kind, nth))) {
        let world = simulated();
        let pool = world.format();
        let heap = pool.transactional_heap("h", SIZE).unwrap();
        let all = heap.root_or_default::<All>("all").unwrap();
        let sim = world.sim().unwrap();
        let (mut before, mut after) = (Model::default(), Model::default());
        sim.fail_at(kind, nth, fault);
        for seed in 0..60 {
            before = after.clone();
            model_change(&mut after, seed);
            if let Err(error) = heap.transaction(|tx| change(tx, all, seed)) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let again = heap.transaction(|tx| change(tx, all, seed)).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::Poisoned);
                failed += 1;
                break;
            }
            before = after.clone();
        }
        sim.clear_faults();
        drop(heap);
        let heap = pool.transactional_heap("h", SIZE).unwrap();
        let all = heap.root::<All>("all").unwrap();
        let found = content(&heap, all);
        assert!(found == before || found == after, "{kind:?} {nth}, {fault:?}: {found:?}");
        nothing_is_lost(&heap, all);
    }
    assert!(failed >= 8, "{failed} failures");
}
