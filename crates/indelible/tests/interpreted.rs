//! Heap and collections under Miri: on the simulated medium, with marked stores, and test memory at
//! the pool's addresses. `cargo xtask tools miri` checks every access.

mod forged;

use forged::{LIST, Part, Planted, fill, list, types};
use indelible::collections::{
    PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PHashMap, PRc, PString, PVec, PVecDeque,
};
use indelible::{Heap, Pool, PoolOptions, ReadHeap, Tracking};
use indelible_testing::{Seeded, SimConfig, SimMedium};
use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const POOL: u64 = 2 << 20;
const OBJECT: u64 = 96 << 10;
const ROUNDS: usize = if cfg!(miri) { 12 } else { 600 };

fn pool() -> Pool {
    let sim = SimMedium::new(POOL, SimConfig::default());
    let mut options = PoolOptions::new().tracking(Tracking::Explicit);
    if cfg!(miri) {
        let window = Layout::from_size_align(8 << 20, 2 << 20).unwrap();
        // SAFETY: of some size; never freed.
        let start = unsafe { std::alloc::alloc_zeroed(window) };
        options = options.window(start.expose_provenance() as u64, window.size() as u64);
    }
    options.on_device(Arc::new(sim.handle()), true).unwrap()
}

fn use_all(heap: &mut Heap, number: u64) {
    let (list, place) = heap.root_and_heap::<PVec<Planted>>(LIST).unwrap();
    list.push(Planted { text: PString::from_in("more", place), number });
    list.retain(|planted| planted.number != 1);
    list.iter_mut().for_each(|planted| planted.text.push_str("!"));
    list.sort_by_key(|planted| planted.number);
    list.dedup_by_key(|planted| planted.number);
    assert!(list.drain(..1.min(list.len())).count() <= 1);
    assert_eq!(list.drain(..).take(1).count(), 1);
    list.insert(0, Planted { text: PString::new(), number: 0 });
    let (map, place) = heap.root_and_heap::<PHashMap<PString, PBox<u64>>>("map").unwrap();
    for key in ["a", "d", "e"] {
        **map.entry(key).or_insert(PBox::new_in(0_u64, place)) += 1;
    }
    assert!(map.values().map(|value| **value).sum::<u64>() > 0);
    map.retain(|key, _| key != "b");
    drop(map.remove("a"));
    let (parts, place) = heap.root_and_heap::<PVec<Part>>("parts").unwrap();
    for part in parts.iter_mut() {
        match part {
            Part::Tree(tree) => {
                (100..120).for_each(|key| drop(tree.insert(key, "new")));
                tree.retain(|key, _| key % 3 != 0);
                assert!(tree.range::<u64>(5..50).map(|(_, text)| text.len()).sum::<usize>() > 0);
                drop((tree.pop_first(), tree.pop_last()));
            }
            Part::Box { of, more } => drop((of.take(), more.take())),
            Part::Lock(lock) => lock.lock().push("z"),
            Part::Nothing => {}
        }
    }
    parts.push(Part::Tree(PBTreeMap::new_in(place)));
    let (names, queue) = heap.roots2::<PBTreeSet<PString>, PBinaryHeap<PString>>("names", "queue").unwrap();
    names.extend(["d", "b", "e"]);
    queue.extend(names.iter().map(|name| name.as_str()));
    assert!(names.pop_first().is_some() && queue.pop().is_some());
    let ring = heap.root_or_default::<PVecDeque<PString>>("ring").unwrap();
    ["p", "q", "r"].iter().for_each(|text| ring.push_front(*text));
    ring.insert(2, "s");
    ring.iter_mut().for_each(|text| text.push_str("!"));
    drop((ring.remove(1), ring.pop_front(), ring.pop_back()));
    ring.retain(|text| text != "r!");
    ring.push_front("t");
    ring.truncate(2);
    let (owners, place) = heap.root_and_heap::<PVec<PRc<PString>>>("owners").unwrap();
    let (owner, there) = (PRc::new_in("owned", place), owners.len());
    owners.push(owner.clone());
    owners.push(owner);
    PRc::make_mut(&mut owners[there]).push_str("!");
    assert!(PRc::get_mut(&mut owners[there + 1]).is_some_and(|text| text == "owned"));
    let second = owners[there + 1].clone();
    owners.truncate(1);
    assert_eq!(PRc::into_inner(second).unwrap(), "owned");
    let first = owners[0].clone();
    owners.push(first);
}

/// Not psynced: Miri knows unwritten padding, and would not let psync compare it.
fn filled(pool: &Pool) -> Heap {
    let mut heap = Heap::format(pool.create_attached("heap", OBJECT).unwrap()).unwrap();
    fill(&mut heap);
    heap
}

#[test]
fn collections_are_used_and_found_again() {
    let pool = pool();
    let mut heap = filled(&pool);
    use_all(&mut heap, 7);
    assert_eq!(heap.check_roots(&types()), []);
    if !cfg!(miri) {
        heap.psync().unwrap();
        drop(heap);
        let read = ReadHeap::open(pool.attach_read("heap").unwrap()).unwrap();
        assert_eq!(read.root_ref::<PVec<Planted>>(LIST).unwrap().len(), 1);
        assert_eq!(read.check_roots(&types()), []);
        drop(read);
        heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    }
    list(&mut heap).clear();
    heap.drop_root::<PHashMap<PString, PBox<u64>>>("map").unwrap();
    heap.drop_root::<PVec<Part>>("parts").unwrap();
    heap.drop_root::<PBTreeSet<PString>>("names").unwrap();
    heap.drop_root::<PBinaryHeap<PString>>("queue").unwrap();
    heap.drop_root::<PVecDeque<PString>>("ring").unwrap();
    heap.drop_root::<PVec<PRc<PString>>>("owners").unwrap();
    heap.drop_root::<PVec<Planted>>(LIST).unwrap();
    assert_eq!(heap.blocks().count(), 0);
}

#[test]
fn hostile_bytes_are_refused_or_do_no_harm() {
    let pool = pool();
    let mut random = Seeded::new(8);
    let (mut refused, mut used) = (0, 0);
    for round in 0..ROUNDS {
        let heap = filled(&pool);
        let base = heap.base().addr();
        let words: Vec<usize> = heap
            .blocks()
            .flat_map(|block| {
                let block = block.unwrap();
                (block.address - base..block.address - base + block.size).step_by(8)
            })
            .collect();
        let mut object = heap.into_object();
        let at = words[random.usize(..words.len())];
        let other = words[random.usize(..words.len())];
        let value = match round % 4 {
            0 if !cfg!(miri) => u64::from_le_bytes(object.as_slice()[other..other + 8].try_into().unwrap()),
            0 | 1 => (base + other) as u64 / 16 * 16,
            2 => random.u64(..),
            _ => random.u64(..70),
        };
        object.as_mut_slice()[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let mut heap = Heap::open(object).unwrap();
        if heap.verify(&types()).is_err() {
            refused += 1;
        } else {
            used += 1;
            let _ = catch_unwind(AssertUnwindSafe(|| use_all(&mut heap, 7)));
            assert_eq!(heap.check_roots(&types()), []);
        }
        drop(heap);
        pool.destroy("heap").unwrap();
    }
    assert!(refused > 0 && used > 0, "{refused} refused, {used} used");
}
