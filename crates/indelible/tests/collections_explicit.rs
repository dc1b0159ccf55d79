use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{
    Entry, OrderedEntry, PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PHashMap, PHashSet, PMutex, POption,
    PRwLock, PString, PVec, PVecDeque,
};
use indelible::{Heap, HeapOptions, Persist, Tracking};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Wide = [u64; 9];

#[derive(Persist)]
#[repr(C, u8)]
enum Count {
    None,
    Some(AtomicU64),
}

#[derive(Persist)]
#[repr(C)]
struct Counter {
    wide: Wide,
    counts: POption<[AtomicU64; 2]>,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    list: PVec<'h, u64>,
    texts: PVec<'h, PString<'h>>,
    text: PString<'h>,
    boxed: Option<PBox<'h, Wide>>,
    boxes: PVec<'h, PBox<'h, POption<u64>>>,
    hash: PHashMap<'h, u64, Wide>,
    words: PHashMap<'h, PString<'h>, PVec<'h, u64>>,
    set: PHashSet<'h, u64>,
    queue: PBinaryHeap<'h, u64>,
    ring: PVecDeque<'h, Wide>,
    sorted: PBTreeSet<'h, u64>,
    tree: PBTreeMap<'h, u64, Wide>,
    names: PBTreeMap<'h, PString<'h>, PVec<'h, u64>>,
    locks: PVec<'h, PMutex<'h, Wide>>,
    shared: Option<PBox<'h, PRwLock<'h, Wide>>>,
    counts: PVec<'h, Count>,
    counters: PVec<'h, Counter>,
    atomics: PHashMap<'h, u64, AtomicU64>,
    deep: PBTreeMap<'h, u64, PHashMap<'h, u64, AtomicU64>>,
}

fn fill(heap: &mut Heap) {
    let (data, heap) = heap.root_and_heap::<Data>("data").unwrap();
    for number in 0..300_u64 {
        data.list.push(number);
        data.texts.push(format!("text {number}").as_str());
        data.text.push_str("text");
        data.boxes.push(PBox::new_in(POption::some(number), heap));
        data.hash.insert(number, [number; 9]);
        data.words.insert(format!("word {number}").as_str(), [number; 20]);
        data.set.insert(number);
        data.queue.push(number * 7 % 300);
        data.ring.push_back([number; 9]);
        data.sorted.insert(number);
        data.tree.insert(number * 2, [number; 9]);
        data.names.insert(format!("name {number}").as_str(), [number; 20]);
        data.locks.push(PMutex::new_in([number; 9], heap));
        data.counts.push(if number % 2 == 0 { Count::None } else { Count::Some(AtomicU64::new(number)) });
        let counts = POption::some([AtomicU64::new(number), AtomicU64::new(number)]);
        data.counters.push(Counter { wide: [number; 9], counts });
        data.atomics.insert(number, AtomicU64::new(number));
        data.deep.insert(number, PHashMap::new());
        data.deep.get_mut(&number).unwrap().insert(number, AtomicU64::new(number));
    }
    data.boxed = Some(PBox::new_in([1; 9], heap));
    data.shared = Some(PBox::new_in(PRwLock::new_in([1; 9], heap), heap));
}

fn world() -> World {
    World::new(Ground::Memory, Tracking::Explicit, false)
}

fn filled(world: &World) -> Heap {
    let pool = world.format();
    pool.create("heap", 3 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    fill(&mut heap);
    heap
}

type Change = fn(&mut Data<'_>);

fn done<T>(_: T) {}

const LISTS: &[(&str, Change)] = &[
    ("push", |data| data.list.push(1_u64)),
    ("insert", |data| data.list.insert(150, 1_u64)),
    ("remove", |data| done(data.list.remove(150))),
    ("swap_remove", |data| done(data.list.swap_remove(150))),
    ("truncate", |data| data.texts.truncate(100)),
    ("clear", |data| data.texts.clear()),
    ("retain", |data| data.texts.retain(|text| text.len() % 3 == 0)),
    ("store in retain", |data| data.list.retain(|value| [*value += 1, ()].len() == 2)),
    ("drain", |data| done(data.texts.drain(..).nth(100))),
    ("drain of some", |data| done(data.texts.drain(50..100).nth(7))),
    ("drain of the last", |data| data.texts.drain(250..).rev().for_each(drop)),
    ("dedup", |data| data.texts.dedup_by_key(|text| text.len())),
    ("resize", |data| data.list.resize(1000, 7)),
    ("split_off", |data| data.list = data.list.split_off(100)),
    ("queue, push", |data| data.queue.push(1000_u64)),
    ("queue, pop", |data| (0..20).for_each(|_| done(data.queue.pop()))),
    ("ring, ends", |data| {
        (0..20).for_each(|number| {
            done((data.ring.pop_front(), data.ring.pop_back()));
            data.ring.push_front([number; 9]);
        });
        data.ring.push_back([7; 9]);
    }),
    ("ring, growth", |data| (0..300).for_each(|number| data.ring.push_front([number; 9]))),
    ("ring, insert", |data| [3, 250].into_iter().for_each(|at| data.ring.insert(at, [7; 9]))),
    ("ring, insert around the end", |data| {
        (0..20).for_each(|_| data.ring.push_front([7; 9]));
        [3, 100, 280].into_iter().for_each(|at| data.ring.insert(at, [8; 9]));
        [3, 100, 280].into_iter().for_each(|at| done(data.ring.remove(at)));
    }),
    ("ring, remove", |data| [3, 250].into_iter().for_each(|at| done(data.ring.remove(at)))),
    ("ring, in a row", |data| {
        data.ring.push_front([7; 9]);
        done(data.ring.make_contiguous());
    }),
    ("ring, borrowed", |data| {
        data.ring.push_front([7; 9]);
        data.ring.iter_mut().step_by(50).for_each(|wide| wide[4] = 1);
        (data.ring[77][8], data.ring.front_mut().unwrap()[0], data.ring.back_mut().unwrap()[1]) = (1, 2, 3);
    }),
    ("ring, retain", |data| data.ring.retain(|wide| wide[0] % 3 == 0)),
    ("sorted", |data| assert!(data.sorted.insert(7_000) && data.sorted.remove(&7))),
    ("append", |data| data.list.try_append(&[7; 40]).unwrap()),
    ("extend", |data| data.list.extend((0..200_u64).filter(|number| number % 3 > 0))),
    ("extend that cannot end", |data| assert!(data.list.try_extend(0_u64..).is_err())),
    ("extend_from_slice", |data| data.list.extend_from_slice(&[7; 500])),
    ("extend_from_slice, of text", |data| {
        let texts = std::mem::take(&mut data.texts);
        data.texts.extend_from_slice(&texts[10..20]);
        data.texts.extend(texts);
    }),
    ("shrink", |data| data.list.shrink_to_fit()),
    ("reserve", |data| data.list.reserve(10_000)),
    ("sort", |data| data.list.sort_by_key(|value| std::cmp::Reverse(*value))),
    ("as_mut_slice", |data| data.list.as_mut_slice()[150] = 7),
    ("get_mut", |data| *data.list.get_mut(150).unwrap() = 7),
    ("last_mut", |data| *data.list.last_mut().unwrap() = 7),
    ("index", |data| data.list[150] = 7),
    ("range", |data| data.list[100..200].fill(7)),
    ("iter_mut", |data| data.list.iter_mut().for_each(|value| *value += 1)),
    ("iter_mut from behind", |data| *data.list.iter_mut().nth_back(100).unwrap() += 1),
    ("swap", |data| data.texts.swap(10, 200)),
    ("assign", |data| data.texts[100] = PString::new()),
    ("element", |data| data.texts[100].push_str(" and a longer one that moves")),
    ("elements", |data| data.texts.iter_mut().for_each(|text| done(text.pop()))),
    ("text", |data| data.text.push_str("text")),
    ("text, long", |data| data.text.extend(std::iter::repeat_n("text", 1000))),
    ("text, truncated", |data| data.text.truncate(7)),
    ("box", |data| data.boxed.as_mut().unwrap()[8] = 7),
    ("box, gone", |data| done(data.boxed.take())),
    ("box, emptied", |data| assert_eq!(PBox::into_inner(data.boxed.take().unwrap())[0], 1)),
    ("box, cloned", |data| data.boxes.push(data.boxes[0].clone())),
    ("option", |data| done(data.boxes[100].take())),
    ("option, replaced", |data| done(data.boxes[100].replace(7))),
    ("option, stored to", |data| *data.boxes[100].as_mut().unwrap() = 7),
];

const HASHES: &[(&str, Change)] = &[
    ("insert", |data| assert!(data.hash.insert(7_000, [1; 9]).is_none())),
    ("insert again", |data| assert!(data.hash.insert(7, [1; 9]).is_some())),
    ("insert many", |data| data.hash.extend((1000..3000).map(|key| (key, [key; 9])))),
    ("remove", |data| assert!(data.words.remove("word 7").is_some())),
    ("get_mut", |data| data.hash.get_mut(&7).unwrap()[8] = 1),
    ("update", |data| data.hash.update(&7, |value| value[8] = 1).unwrap()),
    ("update of a container", |data| data.words.update("word 7", |places| places.push(1_u64)).unwrap()),
    ("get_mut of a container", |data| data.words.get_mut("word 7").unwrap().push(1_u64)),
    ("iter_mut", |data| data.hash.iter_mut().take(20).for_each(|(key, value)| value[8] = *key + 1)),
    ("values_mut", |data| data.hash.values_mut().for_each(|value| value[8] += 1)),
    ("for", |data| {
        for (_, value) in &mut data.hash {
            value[0] += 1;
        }
    }),
    ("retain", |data| data.words.retain(|word, _| word.len() % 2 == 0)),
    ("store in retain", |data| data.hash.retain(|_, value| [value[8] += 1, ()].len() == 2)),
    ("drain", |data| done(data.words.drain().nth(7))),
    ("clear", |data| data.words.clear()),
    ("clear and shrink", |data| {
        data.words.clear();
        data.words.shrink_to_fit();
    }),
    ("or_insert", |data| data.hash.entry(7).or_insert([0; 9])[8] = 1),
    ("or_insert, new", |data| data.hash.entry(7_000).or_insert([0; 9])[8] = 1),
    ("and_modify", |data| done(data.hash.entry(7).and_modify(|value| value[8] = 1))),
    ("occupied", |data| {
        let Entry::Occupied(mut entry) = data.hash.entry(7) else { panic!() };
        entry.insert([5; 9]);
        let Entry::Occupied(entry) = data.hash.entry(8) else { panic!() };
        assert_eq!(entry.remove(), [8; 9]);
    }),
    ("set", |data| assert!(data.set.insert(7_000) && data.set.remove(&7))),
    ("clone", |data| data.words = data.words.clone()),
    ("into_iter", |data| done(std::mem::take(&mut data.words).into_iter().nth(7))),
];

const TREES: &[(&str, Change)] = &[
    ("insert", |data| assert!(data.tree.insert(7, [1; 9]).is_none())),
    ("insert at the end", |data| assert!(data.tree.insert(7_000, [1; 9]).is_none())),
    ("insert again", |data| assert!(data.tree.insert(8, [1; 9]).is_some())),
    ("insert many", |data| data.tree.extend((0..300).map(|key| (key * 2 + 1, [key; 9])))),
    ("insert many in front", |data| data.names.extend((0..300).map(|key| (format!("a {key}"), [key])))),
    ("remove", |data| assert!(data.names.remove("name 7").is_some())),
    ("remove many", |data| (0..250).for_each(|key| done(data.tree.remove(&(key * 2)).unwrap()))),
    ("remove many from behind", |data| {
        (50..300).rev().for_each(|key| done(data.tree.remove(&(key * 2)).unwrap()));
    }),
    ("remove some", |data| (0..300).step_by(3).for_each(|key| done(data.tree.remove(&(key * 2)).unwrap()))),
    ("pop_first", |data| done(data.names.pop_first())),
    ("pop_last", |data| (0..20).for_each(|_| done(data.names.pop_last()))),
    ("get_mut", |data| data.tree.get_mut(&8).unwrap()[8] = 1),
    ("get_mut of a container", |data| data.names.get_mut("name 7").unwrap().push(1_u64)),
    ("iter_mut", |data| data.tree.iter_mut().for_each(|(key, value)| value[8] = *key + 1)),
    ("iter_mut from behind", |data| data.tree.iter_mut().rev().take(3).for_each(|(_, value)| value[8] = 1)),
    ("values_mut", |data| data.tree.values_mut().for_each(|value| value[8] += 1)),
    ("values_mut, one", |data| data.tree.values_mut().nth(100).unwrap()[8] += 1),
    ("range_mut", |data| data.tree.range_mut(100..120).for_each(|(_, value)| value[8] += 1)),
    ("retain", |data| data.names.retain(|name, _| name.len() % 2 == 0)),
    ("store in retain", |data| data.tree.retain(|_, value| [value[8] += 1, ()].len() == 2)),
    ("clear", |data| data.names.clear()),
    ("or_insert", |data| data.tree.entry(8).or_insert([0; 9])[8] = 1),
    ("or_insert, new", |data| data.tree.entry(7).or_insert([0; 9])[8] = 1),
    ("and_modify", |data| done(data.tree.entry(8).and_modify(|value| value[8] = 1))),
    ("occupied", |data| {
        let OrderedEntry::Occupied(mut entry) = data.tree.entry(8) else { panic!() };
        entry.insert([5; 9]);
        let OrderedEntry::Occupied(entry) = data.tree.entry(16) else { panic!() };
        assert_eq!(entry.remove(), [8; 9]);
    }),
    ("clone", |data| data.names = data.names.clone()),
    ("into_iter", |data| done(std::mem::take(&mut data.names).into_iter().nth(7))),
];

const SHARED: &[(&str, Change)] = &[
    ("lock", |data| data.locks[100].lock()[8] = 1),
    ("try_lock", |data| data.locks[100].try_lock().unwrap()[8] = 1),
    ("exclusive", |data| data.locks[100].get_mut()[8] = 1),
    ("write", |data| data.shared.as_ref().unwrap().write()[8] = 7),
    ("a guard that is forgotten", |data| std::mem::forget(data.locks[100].lock())),
    ("a shared guard that is forgotten", |data| std::mem::forget(data.shared.as_ref().unwrap().read())),
    ("atomic in an enum", |data| match &data.counts[101] {
        Count::Some(count) => count.store(7, Relaxed),
        Count::None => panic!(),
    }),
    ("atomic in an array, in an option, in a struct", |data| {
        data.counters[100].counts.as_ref().unwrap()[1].store(7, Relaxed);
    }),
    ("atomics in a slice", |data| {
        data.counts.as_slice().iter().for_each(|count| {
            if let Count::Some(count) = count {
                count.store(7, Relaxed);
            }
        });
    }),
    ("atomic of a map", |data| data.atomics[&100].store(7, Relaxed)),
    ("atomics of a map", |data| data.atomics.values().for_each(|count| count.store(7, Relaxed))),
    ("atomic further in", |data| data.deep[&100][&100].store(7, Relaxed)),
];

#[test]
fn every_byte_that_is_stored_is_marked() {
    let world = world();
    let mut heap = filled(&world);
    for (kind, changes) in [("list", LISTS), ("hash map", HASHES), ("ordered map", TREES), ("shared", SHARED)]
    {
        for (name, change) in changes {
            let what = format!("{kind}: {name}");
            heap.drop_root::<Data>("data").unwrap();
            fill(&mut heap);
            heap = psynced_whole(&world, heap, HeapOptions::new(), &what);
            change(heap.root_mut::<Data>("data").unwrap());
            heap = psynced_whole(&world, heap, HeapOptions::new(), &what);
            assert_eq!(heap.check(), [], "{what}");
        }
    }
}

#[test]
fn each_insertion_and_removal_is_marked_by_itself() {
    let world = world();
    let pool = world.format();
    pool.create("heap", 256 << 10).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    drop(pool);
    let each = |mut heap: Heap, what: &str, change: &dyn Fn(&mut PBTreeMap<u64, Wide>)| {
        change(heap.root_or_default("tree").unwrap());
        psynced_whole(&world, heap, HeapOptions::new(), what)
    };
    for key in (0..80).chain((100..140).rev()) {
        heap = each(heap, &format!("insert {key}"), &|tree| done(tree.insert(key, [key; 9])));
    }
    for round in 0..60 {
        heap = each(heap, &format!("pop_first {round}"), &|tree| done(tree.pop_first().unwrap()));
        heap = each(heap, &format!("pop_last {round}"), &|tree| done(tree.pop_last().unwrap()));
    }
    assert_eq!(heap.check(), []);
}

#[test]
fn roots_are_marked_when_they_are_borrowed() {
    let world = world();
    let mut heap = filled(&world);
    *heap.root_or_insert_with::<Wide, _>("wide", |_| [1; 9]).unwrap() = [2; 9];
    heap.root_or_insert_with::<AtomicU64, _>("count", |_| AtomicU64::new(1)).unwrap();
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "made");
    heap.root_mut::<Wide>("wide").unwrap()[8] = 3;
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "by root_mut");
    heap.root_or_insert_with::<Wide, _>("wide", |_| [1; 9]).unwrap()[8] = 4;
    let heap = psynced_whole(&world, heap, HeapOptions::new(), "by root_or_insert_with");
    heap.root_ref::<AtomicU64>("count").unwrap().store(5, Relaxed);
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "by an atomic");
    heap.drop_root::<Data>("data").unwrap();
    psynced_whole(&world, heap, HeapOptions::new(), "drop_root");
}

fn cost(heap: &mut Heap, f: impl FnOnce(&mut Heap)) -> (u64, u64) {
    let before = heap.object().stats();
    f(heap);
    heap.psync().unwrap();
    let after = heap.object().stats();
    (after.logged_bytes - before.logged_bytes, after.pages_compared - before.pages_compared)
}

#[test]
fn a_psync_costs_what_was_stored_and_not_the_object() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = world.format();
    pool.create("heap", 32 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let load = |key: u64| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15), key);
    heap.root_or_default::<PHashMap<u64, u64>>("hash").unwrap().extend((0..100_000).map(load));
    heap.root_or_default::<PBTreeMap<u64, u64>>("tree").unwrap().extend((0..100_000).map(load));
    heap.psync().unwrap();
    for key in 200_000..200_100 {
        let (bytes, pages) = cost(&mut heap, |heap| {
            let (key, value) = load(key);
            heap.root_mut::<PHashMap<u64, u64>>("hash").unwrap().insert(key, value);
        });
        assert!(bytes <= 3 * 64 && pages <= 3, "{bytes} bytes, {pages} pages");
        let (bytes, pages) = cost(&mut heap, |heap| {
            let (key, value) = load(key);
            heap.root_mut::<PBTreeMap<u64, u64>>("tree").unwrap().insert(key, value);
        });
        assert!(bytes <= 40 * 64 && pages <= 12, "{bytes} bytes, {pages} pages");
    }
    let looked = cost(&mut heap, |heap| {
        let map = heap.root_mut::<PHashMap<u64, u64>>("hash").unwrap();
        assert_eq!(map.values().count(), 100_100);
    });
    assert_eq!(looked, (0, 1), "of a map that was looked at, only its root was lent");
}

fn durable<R>(world: &World, heap: Heap, look: impl FnOnce(&Heap) -> R) -> R {
    drop(heap);
    look(&Heap::open(world.open().attach("heap").unwrap()).unwrap())
}

/// A lent reference may be stored to at any time: cuts look there again. `update` lends none.
#[test]
fn a_cut_looks_again_at_what_was_lent_and_not_at_what_was_updated() {
    type Wides<'h> = PMutex<'h, PHashMap<'h, u64, Wide>>;
    let world = world();
    let mut heap = filled(&world);
    heap.root_or_insert_with::<Wides, _>("wides", |place| PMutex::new_in(PHashMap::new(), place)).unwrap();
    let count = 1000;
    let wides = heap.root_ref::<Wides>("wides").unwrap();
    for key in 0..count {
        wides.lock().insert(key, [0; 9]);
    }
    heap.psync().unwrap();
    let compared = |change: fn(&mut PHashMap<u64, Wide>, u64)| {
        let wides = heap.root_ref::<Wides>("wides").unwrap();
        (0..count).for_each(|key| change(&mut wides.lock(), key));
        heap.psync_cut().unwrap();
        let before = heap.psync_stats().pages_compared;
        heap.psync_cut().unwrap();
        heap.psync_stats().pages_compared - before
    };
    let updated = compared(|wides, key| wides.update(&key, |value| value[3] += 1).unwrap());
    assert!(updated <= 3, "{updated} pages, beside those of the lock");
    let lent = compared(|wides, key| wides.get_mut(&key).unwrap()[3] += 1);
    assert!(lent > 10, "{lent} pages: they could still be stored to");
    let found = durable(&world, heap, |heap| {
        let wides = heap.root_ref::<Wides>("wides").unwrap().lock();
        wides.values().map(|value| value[3]).sum::<u64>()
    });
    assert_eq!(found, 2 * count);
}

#[test]
fn a_cut_finds_what_was_lent_before_the_one_before() {
    let world = world();
    let mut heap = filled(&world);
    heap.root_or_insert_with::<AtomicU64, _>("count", |_| AtomicU64::new(1)).unwrap();
    heap.psync().unwrap();
    let count = heap.root_ref::<AtomicU64>("count").unwrap();
    let data = heap.root_ref::<Data>("data").unwrap();
    let own = data.text.heap();
    let mut boxed: PBox<Wide> = PBox::new_in([0; 9], own);
    let (mut hash, mut tree) = (PHashMap::<u64, Wide>::new_in(own), PBTreeMap::<u64, Wide>::new_in(own));
    let mut lent = [&mut *boxed, hash.entry(1).or_insert([0; 9]), tree.entry(1).or_insert([0; 9])];
    let places = lent.each_ref().map(|lent| std::ptr::from_ref(&**lent));
    let inner = &data.atomics[&7];
    for value in 1..4_u64 {
        heap.psync_cut().unwrap();
        count.store(value, Relaxed);
        inner.store(value + 10, Relaxed);
        lent.iter_mut().for_each(|lent| lent[8] = value + 20);
    }
    heap.psync_cut().unwrap();
    std::mem::forget((boxed, hash, tree));
    let found = durable(&world, heap, |heap| {
        let data = heap.root_ref::<Data>("data").unwrap();
        // SAFETY: in blocks of the object, which lies where it lay; their owners were forgotten.
        let own = places.map(|place| unsafe { (*place)[8] });
        (heap.root_ref::<AtomicU64>("count").unwrap().load(Relaxed), data.atomics[&7].load(Relaxed), own)
    });
    assert_eq!(found, (3, 13, [23; 3]));
}

#[test]
fn cuts_beside_threads_miss_nothing_that_locks_protect() {
    let world = world();
    let heap = filled(&world);
    let data = heap.root_ref::<Data>("data").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3_usize {
            let locks = &data.locks;
            scope.spawn(move || {
                for round in 1..=200 {
                    locks[(thread + round) % 300].lock()[thread] += 1000;
                }
            });
        }
        for _ in 0..20 {
            heap.psync_cut().unwrap();
        }
    });
    heap.psync_cut().unwrap();
    let expected: Vec<Wide> = data.locks.iter().map(|lock| *lock.lock()).collect();
    let found = durable(&world, heap, |heap| {
        let data = heap.root_ref::<Data>("data").unwrap();
        data.locks.iter().map(|lock| *lock.lock()).collect::<Vec<Wide>>()
    });
    assert_eq!(found, expected);
}
