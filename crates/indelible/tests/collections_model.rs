use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{
    PBTreeMap, PBTreeSet, PBinaryHeap, PHashMap, PHashSet, PString, PVec, PVecDeque,
};
use indelible::{ErrorKind, Heap, HeapOptions, Persist, Tracking};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    list: PVec<'h, PString<'h>>,
    words: PHashMap<'h, PString<'h>, PVec<'h, u64>>,
    numbers: PHashMap<'h, u64, u64>,
    set: PHashSet<'h, u32>,
    sorted: PBTreeSet<'h, PString<'h>>,
    queue: PBinaryHeap<'h, PString<'h>>,
    ring: PVecDeque<'h, PString<'h>>,
    ordered: PBTreeMap<'h, u64, PString<'h>>,
    names: PBTreeMap<'h, PString<'h>, u64>,
    deep: PBTreeMap<'h, u64, PHashMap<'h, u64, PBTreeMap<'h, u64, PString<'h>>>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    list: Vec<String>,
    words: HashMap<String, Vec<u64>>,
    numbers: HashMap<u64, u64>,
    set: HashSet<u32>,
    sorted: BTreeSet<String>,
    queue: Vec<String>,
    ring: VecDeque<String>,
    ordered: BTreeMap<u64, String>,
    names: BTreeMap<String, u64>,
    deep: BTreeMap<u64, HashMap<u64, BTreeMap<u64, String>>>,
}

/// Few keys, so that they collide.
#[derive(Clone, Debug)]
enum Step {
    Push(String),
    Insert(usize, String),
    Remove(usize),
    Truncate(usize),
    Resize(usize, String),
    Dedup(usize),
    Drain(usize, usize),
    SplitOff(usize),
    Sorted(String),
    Unsorted(String),
    Queue(String),
    Dequeue,
    RingFront(String),
    RingBack(String),
    RingInsert(usize, String),
    RingRemove(usize),
    RingTake(usize, bool),
    RingRow(usize),
    Word(String, u64),
    Forget(String),
    Number(u64, u64),
    Take(u64),
    Numbers(u64, u64, bool),
    Retain(u64),
    Set(u32),
    Ordered(u64, String),
    OrderedMany(u64, u64, bool),
    OrderedTake(u64),
    OrderedTakeMany(u64, u64),
    OrderedRetain(u64),
    Name(String, u64),
    NameTake(String),
    PopFirst(usize),
    PopLast(usize),
    Change(u64, u64),
    Deep(u64, u64, u64, String),
    DeepTake(u64, u64),
    Clear(u8),
    Psync,
    Revert,
    Rebase,
    Crash,
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-f]{0,3}", 1 => "[a-z]{10,60}", 1 => "\\PC{0,12}"]
}

fn key() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0_u64..60, 2 => 0_u64..1000, 1 => any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => word().prop_map(Step::Push),
        2 => (any::<usize>(), word()).prop_map(|(at, text)| Step::Insert(at, text)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => (0_usize..30).prop_map(Step::Truncate),
        1 => (0_usize..30, word()).prop_map(|(len, text)| Step::Resize(len, text)),
        1 => (1_usize..4).prop_map(Step::Dedup),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Drain(from, to)),
        1 => any::<usize>().prop_map(Step::SplitOff),
        2 => word().prop_map(Step::Sorted),
        1 => word().prop_map(Step::Unsorted),
        2 => word().prop_map(Step::Queue),
        2 => Just(Step::Dequeue),
        2 => word().prop_map(Step::RingFront),
        2 => word().prop_map(Step::RingBack),
        2 => (any::<usize>(), word()).prop_map(|(at, text)| Step::RingInsert(at, text)),
        2 => any::<usize>().prop_map(Step::RingRemove),
        2 => (0_usize..8, any::<bool>()).prop_map(|(many, front)| Step::RingTake(many, front)),
        1 => (0_usize..6).prop_map(Step::RingRow),
        4 => (word(), any::<u64>()).prop_map(|(word, at)| Step::Word(word, at)),
        2 => word().prop_map(Step::Forget),
        3 => (key(), any::<u64>()).prop_map(|(key, value)| Step::Number(key, value)),
        2 => key().prop_map(Step::Take),
        2 => (key(), 1_u64..300, any::<bool>()).prop_map(|(key, many, thin)| Step::Numbers(key, many, thin)),
        1 => (1_u64..5).prop_map(Step::Retain),
        2 => (0_u32..50).prop_map(Step::Set),
        3 => (key(), word()).prop_map(|(key, text)| Step::Ordered(key, text)),
        2 => (key(), 1_u64..400, any::<bool>()).prop_map(|(key, many, down)| Step::OrderedMany(key, many, down)),
        2 => key().prop_map(Step::OrderedTake),
        2 => (key(), 1_u64..400).prop_map(|(key, many)| Step::OrderedTakeMany(key, many)),
        1 => (1_u64..5).prop_map(Step::OrderedRetain),
        3 => (word(), any::<u64>()).prop_map(|(word, value)| Step::Name(word, value)),
        2 => word().prop_map(Step::NameTake),
        1 => (0_usize..40).prop_map(Step::PopFirst),
        1 => (0_usize..40).prop_map(Step::PopLast),
        1 => (key(), key()).prop_map(|(from, to)| Step::Change(from.min(to), from.max(to))),
        3 => (0_u64..8, 0_u64..8, 0_u64..8, word()).prop_map(|(a, b, c, text)| Step::Deep(a, b, c, text)),
        1 => (0_u64..8, 0_u64..8).prop_map(|(a, b)| Step::DeepTake(a, b)),
        1 => (0_u8..8).prop_map(Step::Clear),
        2 => Just(Step::Psync),
        1 => Just(Step::Revert),
        1 => Just(Step::Rebase),
        1 => Just(Step::Crash),
    ]
}

fn done<T>(result: indelible::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
            None
        }
    }
}

fn apply(data: &mut Data<'_>, model: &mut Model, step: &Step) {
    match step.clone() {
        Step::Push(text) => {
            if done(data.list.try_push(text.as_str())).is_some() {
                model.list.push(text);
            }
        }
        Step::Insert(at, text) => {
            let at = at % (model.list.len() + 1);
            if done(data.list.try_insert(at, &text)).is_some() {
                model.list.insert(at, text);
            }
        }
        Step::Remove(at) if !model.list.is_empty() => {
            let at = at % model.list.len();
            if at.is_multiple_of(2) {
                assert_eq!(data.list.remove(at), model.list.remove(at));
            } else {
                assert_eq!(data.list.swap_remove(at), model.list.swap_remove(at));
            }
        }
        Step::Remove(_) => assert!(data.list.pop().is_none()),
        Step::Resize(len, word) => {
            if let Some(places) = data.words.get_mut(word.as_str())
                && done(places.try_resize(len, 7)).is_some()
            {
                model.words.get_mut(&word).unwrap().resize(len, 7);
            }
        }
        Step::Dedup(len) => {
            data.list.dedup_by(|this, before| this.len() / len == before.len() / len);
            model.list.dedup_by(|this, before| this.len() / len == before.len() / len);
        }
        Step::Drain(from, to) => {
            let (from, to) = (from % (model.list.len() + 1), to % (model.list.len() + 1));
            let (range, taken) = (from.min(to)..from.max(to), from % 3);
            let drained: Vec<String> =
                data.list.drain(range.clone()).take(taken).map(|text| text.to_string()).collect();
            let expected: Vec<String> = model.list.drain(range).collect();
            assert_eq!(drained, expected[..taken.min(expected.len())]);
        }
        Step::SplitOff(at) => {
            let at = at % (model.list.len() + 1);
            if let Some(rest) = done(data.list.try_split_off(at)) {
                assert_eq!(rest, model.list.split_off(at));
            }
        }
        Step::Sorted(text) => {
            if let Some(new) = done(data.sorted.try_insert(text.as_str())) {
                assert_eq!(new, model.sorted.insert(text));
            }
        }
        Step::Unsorted(text) => {
            assert_eq!(data.sorted.remove(text.as_str()), model.sorted.remove(&text));
            if text.len() % 5 == 1 {
                let (first, last) = (data.sorted.pop_first(), data.sorted.pop_last());
                let (one, two) = (model.sorted.pop_first(), model.sorted.pop_last());
                assert!(
                    first.map(|text| text.to_string()) == one && last.map(|text| text.to_string()) == two
                );
            }
        }
        Step::Queue(text) => {
            if done(data.queue.try_push(text.as_str())).is_some() {
                model.queue.push(text);
                model.queue.sort();
            }
        }
        Step::Dequeue => {
            assert_eq!(data.queue.peek().map(|text| text.as_str()), model.queue.last().map(String::as_str));
            assert_eq!(data.queue.pop().map(|text| text.to_string()), model.queue.pop());
        }
        Step::RingFront(text) => {
            if done(data.ring.try_push_front(text.as_str())).is_some() {
                model.ring.push_front(text);
            }
        }
        Step::RingBack(text) => {
            if done(data.ring.try_push_back(text.as_str())).is_some() {
                model.ring.push_back(text);
            }
        }
        Step::RingInsert(at, text) => {
            let at = at % (model.ring.len() + 1);
            if done(data.ring.try_insert(at, text.as_str())).is_some() {
                model.ring.insert(at, text);
            }
        }
        Step::RingRemove(at) => {
            let at = at % (model.ring.len() + 1);
            let (found, expected) = (data.ring.remove(at), model.ring.remove(at));
            assert_eq!(found.as_ref().map(PString::as_str), expected.as_deref());
        }
        Step::RingTake(many, front) => {
            for _ in 0..many {
                let (found, expected) = match front {
                    true => (data.ring.pop_front(), model.ring.pop_front()),
                    false => (data.ring.pop_back(), model.ring.pop_back()),
                };
                assert_eq!(found.as_ref().map(PString::as_str), expected.as_deref());
            }
            assert_eq!(data.ring.front().map(PString::as_str), model.ring.front().map(String::as_str));
            assert_eq!(data.ring.back().map(PString::as_str), model.ring.back().map(String::as_str));
        }
        Step::RingRow(0) => (data.ring.shrink_to_fit(), model.ring.shrink_to_fit()).0,
        Step::RingRow(1) => {
            data.ring.make_contiguous().sort();
            model.ring.make_contiguous().sort();
        }
        Step::RingRow(2) => {
            data.ring.retain(|text| text.len() % 3 > 0);
            model.ring.retain(|text| text.len() % 3 > 0);
        }
        Step::RingRow(3) => {
            let len = model.ring.len() / 2;
            data.ring.truncate(len);
            model.ring.truncate(len);
        }
        Step::RingRow(4) => data.ring = std::mem::take(&mut data.ring).into_vec().into(),
        Step::RingRow(_) => {
            for (text, other) in data.ring.iter_mut().rev().zip(model.ring.iter_mut().rev()) {
                text.truncate(0);
                other.clear();
            }
        }
        Step::Truncate(len) => {
            data.list.truncate(len);
            model.list.truncate(len);
        }
        Step::Word(word, at) => {
            if !data.words.contains_key(word.as_str()) {
                let Some(old) = done(data.words.try_insert(word.as_str(), PVec::new())) else { return };
                assert!(old.is_none());
            }
            let places = data.words.get_mut(word.as_str()).unwrap();
            let expected = model.words.entry(word).or_default();
            if done(places.try_push(at)).is_some() {
                expected.push(at);
            }
        }
        Step::Forget(word) => {
            let (found, expected) = (data.words.remove(&word), model.words.remove(&word));
            assert_eq!(found.as_ref().map(|places| places.to_vec()), expected);
        }
        Step::Number(key, value) => {
            if let Some(old) = done(data.numbers.try_insert(key, value)) {
                assert_eq!(old, model.numbers.insert(key, value));
            }
        }
        Step::Take(key) => assert_eq!(data.numbers.remove_entry(&key), model.numbers.remove_entry(&key)),
        Step::Numbers(key, many, thin) => {
            for number in (0..many).step_by(if thin { 3 } else { 1 }) {
                let key = key.wrapping_add(number);
                if thin {
                    assert_eq!(data.numbers.remove(&key), model.numbers.remove(&key));
                } else if let Some(old) = done(data.numbers.try_insert(key, number)) {
                    assert_eq!(old, model.numbers.insert(key, number));
                }
            }
        }
        Step::Retain(divisor) => {
            data.numbers.retain(|key, value| {
                *value = value.wrapping_add(1);
                key.is_multiple_of(divisor)
            });
            model.numbers.retain(|key, value| {
                *value = value.wrapping_add(1);
                key.is_multiple_of(divisor)
            });
            data.words.retain(|word, _| (word.len() as u64).is_multiple_of(divisor));
            model.words.retain(|word, _| (word.len() as u64).is_multiple_of(divisor));
        }
        Step::Set(value) => {
            if data.set.contains(&value) {
                assert!(model.set.remove(&value) && data.set.remove(&value));
            } else if done(data.set.try_insert(value)) == Some(true) {
                assert!(model.set.insert(value));
            }
        }
        Step::Ordered(key, text) => {
            if let Some(old) = done(data.ordered.try_insert(key, text.as_str())) {
                assert_eq!(old.as_ref().map(PString::as_str), model.ordered.get(&key).map(String::as_str));
                model.ordered.insert(key, text);
            }
        }
        Step::OrderedMany(key, many, down) => {
            for number in 0..many {
                let key = if down { key.wrapping_sub(number) } else { key.wrapping_add(number) };
                if done(data.ordered.try_insert(key, "x")).is_some() {
                    model.ordered.insert(key, "x".into());
                }
            }
        }
        Step::OrderedTake(key) => {
            let (found, expected) = (data.ordered.remove(&key), model.ordered.remove(&key));
            assert_eq!(found.as_ref().map(PString::as_str), expected.as_deref());
        }
        Step::OrderedTakeMany(key, many) => {
            for number in (0..many).step_by(2) {
                let key = key.wrapping_add(number);
                let found = data.ordered.remove_entry(&key).map(|(key, text)| (key, text.to_string()));
                assert_eq!(found, model.ordered.remove_entry(&key));
            }
        }
        Step::OrderedRetain(divisor) => {
            data.ordered.retain(|key, _| key.is_multiple_of(divisor));
            model.ordered.retain(|key, _| key.is_multiple_of(divisor));
            data.names.retain(|_, value| value.is_multiple_of(divisor));
            model.names.retain(|_, value| value.is_multiple_of(divisor));
        }
        Step::Name(name, value) => {
            if let Some(old) = done(data.names.try_insert(name.as_str(), value)) {
                assert_eq!(old, model.names.insert(name, value));
            }
        }
        Step::NameTake(name) => assert_eq!(data.names.remove(&name), model.names.remove(&name)),
        Step::PopFirst(many) => {
            for _ in 0..many {
                let found = data.ordered.pop_first().map(|(key, text)| (key, text.to_string()));
                assert_eq!(found, model.ordered.pop_first());
            }
        }
        Step::PopLast(many) => {
            for _ in 0..many {
                let found = data.ordered.pop_last().map(|(key, text)| (key, text.to_string()));
                assert_eq!(found, model.ordered.pop_last());
            }
        }
        Step::Change(from, to) => {
            for (_, text) in data.ordered.range_mut::<u64>((Bound::Excluded(from), Bound::Included(to))) {
                text.truncate(0);
            }
            if from < to {
                for (_, text) in model.ordered.range_mut((Bound::Excluded(from), Bound::Included(to))) {
                    text.clear();
                }
            }
        }
        Step::Deep(a, b, c, text) => {
            if data.deep.get(&a).is_none() && done(data.deep.try_insert(a, PHashMap::new())).is_none() {
                return;
            }
            let second = data.deep.get_mut(&a).unwrap();
            let expected = model.deep.entry(a).or_default();
            if second.get(&b).is_none() && done(second.try_insert(b, PBTreeMap::new())).is_none() {
                return;
            }
            let third = second.get_mut(&b).unwrap();
            let expected = expected.entry(b).or_default();
            if done(third.try_insert(c, &text)).is_some() {
                expected.insert(c, text);
            }
        }
        Step::DeepTake(a, b) => {
            if b == 0 {
                assert_eq!(data.deep.remove(&a).is_some(), model.deep.remove(&a).is_some());
            } else if let (Some(second), Some(expected)) = (data.deep.get_mut(&a), model.deep.get_mut(&a)) {
                assert_eq!(second.remove(&b).is_some(), expected.remove(&b).is_some());
            }
        }
        Step::Clear(0) => (data.list.clear(), model.list.clear()).0,
        Step::Clear(1) => (data.words.clear(), model.words.clear()).0,
        Step::Clear(2) => (data.numbers.clear(), model.numbers.clear()).0,
        Step::Clear(3) => (data.set.clear(), model.set.clear()).0,
        Step::Clear(4) => (data.ordered.clear(), model.ordered.clear()).0,
        Step::Clear(6) => {
            data.sorted.retain(|text| text.len() % 2 == 0);
            model.sorted.retain(|text| text.len() % 2 == 0);
            data.queue.clear();
            model.queue.clear();
        }
        Step::Clear(5) => (data.names.clear(), model.names.clear()).0,
        Step::Clear(_) => {
            data.words.shrink_to_fit();
            data.numbers.shrink_to_fit();
            data.list.shrink_to_fit();
        }
        Step::Psync | Step::Revert | Step::Rebase | Step::Crash => unreachable!("not on the data alone"),
    }
}

fn read(data: &Data<'_>) -> Model {
    let tree = |tree: &PBTreeMap<'_, u64, PString<'_>>| -> BTreeMap<u64, String> {
        tree.iter().map(|(key, text)| (*key, text.to_string())).collect()
    };
    assert!(data.ordered.keys().is_sorted() && data.names.keys().is_sorted());
    Model {
        list: data.list.iter().map(|text| text.to_string()).collect(),
        words: data.words.iter().map(|(word, places)| (word.to_string(), places.to_vec())).collect(),
        numbers: data.numbers.iter().map(|(key, value)| (*key, *value)).collect(),
        set: data.set.iter().copied().collect(),
        sorted: data.sorted.iter().map(|text| text.to_string()).collect(),
        queue: {
            let mut all: Vec<String> = data.queue.iter().map(|text| text.to_string()).collect();
            all.sort();
            all
        },
        ring: data.ring.iter().map(|text| text.to_string()).collect(),
        ordered: tree(&data.ordered),
        names: data.names.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
        deep: data
            .deep
            .iter()
            .map(|(a, second)| (*a, second.iter().map(|(b, third)| (*b, tree(third))).collect()))
            .collect(),
    }
}

fn verify(heap: &mut Heap, model: &Model) {
    assert_eq!(heap.check(), []);
    let data = heap.root_ref::<Data>("data").unwrap();
    assert_eq!(&read(data), model);
    assert_eq!(data.numbers.len(), model.numbers.len());
    assert_eq!(data.ordered.len(), model.ordered.len());
    assert!(model.numbers.iter().all(|(key, value)| data.numbers.get(key) == Some(value)));
    assert!(model.words.keys().all(|word| data.words.contains_key(word)));
    assert!(model.names.iter().all(|(name, value)| data.names.get(name) == Some(value)));
    assert!(model.ordered.iter().all(|(key, text)| data.ordered[key] == *text));
    let back: Vec<u64> = data.ordered.keys().rev().copied().collect();
    assert!(back.iter().eq(model.ordered.keys().rev()));
    assert!(data.sorted.iter().map(|text| text.as_str()).eq(model.sorted.iter().map(String::as_str)));
    let (first, last) = (data.sorted.first(), data.sorted.last());
    assert_eq!(first.map(|text| text.as_str()), model.sorted.first().map(String::as_str));
    assert_eq!(last.map(|text| text.as_str()), model.sorted.last().map(String::as_str));
    let behind = data.sorted.range("c".to_owned()..).map(|text| text.as_str());
    assert!(behind.eq(model.sorted.range("c".to_owned()..).map(String::as_str)));
    assert!(
        (0..=model.ring.len())
            .all(|at| { data.ring.get(at).map(PString::as_str) == model.ring.get(at).map(String::as_str) })
    );
    assert!(data.ring.iter().rev().map(|text| text.as_str()).eq(model.ring.iter().rev().map(String::as_str)));
    let keys: BTreeSet<u64> = model.ordered.keys().copied().step_by(7).chain([0, 30, u64::MAX]).collect();
    for pair in keys.iter().collect::<Vec<_>>().windows(2) {
        let (from, to) = (*pair[0], *pair[1]);
        for range in [
            (Bound::Included(from), Bound::Included(to)),
            (Bound::Excluded(from), Bound::Excluded(to)),
            (Bound::Included(from), Bound::Excluded(to)),
            (Bound::Excluded(to), Bound::Unbounded),
            (Bound::Unbounded, Bound::Included(from)),
        ] {
            let (mut found, mut expected) = (data.ordered.range::<u64>(range), model.ordered.range(range));
            loop {
                let next = found.next().map(|(key, _)| *key);
                assert_eq!(next, expected.next().map(|(key, _)| *key));
                let back = found.next_back().map(|(key, _)| *key);
                assert_eq!(back, expected.next_back().map(|(key, _)| *key));
                if next.is_none() || back.is_none() {
                    break;
                }
            }
        }
    }
}

fn rebased(world: &World, mut heap: Heap, options: HeapOptions, model: &Model) -> Heap {
    heap.psync().unwrap();
    let pool = world.open();
    pool.copy_rebased("heap", b"", &pool, "copy", &mut |_, _| {}).unwrap();
    let mut copy = Heap::open_with(pool.attach("copy").unwrap(), options).unwrap();
    verify(&mut copy, model);
    let audit = copy.audit().unwrap();
    assert!(audit.findings.is_empty() && audit.leaks.is_empty() && audit.owned == audit.blocks, "{audit:?}");
    heap.drop_root::<Data>("data").unwrap();
    assert_eq!(heap.stats().unwrap().blocks, 0);
    verify(&mut copy, model);
    heap.revert().unwrap();
    copy.drop_root::<Data>("data").unwrap();
    assert_eq!(copy.stats().unwrap().blocks, 0, "all that the copy has is its own");
    verify(&mut heap, model);
    drop((heap, copy));
    pool.destroy("heap").unwrap();
    pool.rename("copy", "heap", b"").unwrap();
    let mut heap = Heap::open_with(pool.attach("heap").unwrap(), options).unwrap();
    verify(&mut heap, model);
    heap
}

fn run(world: &World, size: u64, options: HeapOptions, steps: &[Step]) {
    let pool = world.format();
    pool.create("heap", size).unwrap();
    let mut heap = Heap::format_with(pool.attach("heap").unwrap(), options).unwrap();
    heap.root_or_default::<Data>("data").unwrap();
    heap.psync().unwrap();
    drop(pool);
    let (mut live, mut psynced) = (Model::default(), Model::default());
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Psync => {
                heap.psync().unwrap();
                psynced = live.clone();
                if world.tracking == Tracking::Explicit && number % 3 == 0 {
                    heap = psynced_whole(world, heap, options, "a psync of the program");
                }
            }
            Step::Revert => {
                heap.revert().unwrap();
                live = psynced.clone();
                verify(&mut heap, &live);
            }
            Step::Rebase => {
                heap = rebased(world, heap, options, &live);
                psynced = live.clone();
            }
            Step::Crash => {
                drop(heap);
                heap = Heap::open_with(world.open().attach("heap").unwrap(), options).unwrap();
                live = psynced.clone();
                verify(&mut heap, &live);
            }
            step => apply(heap.root_mut::<Data>("data").unwrap(), &mut live, step),
        }
        if number % 16 == 15 {
            verify(&mut heap, &live);
        }
    }
    verify(&mut heap, &live);
    if world.tracking == Tracking::Explicit {
        heap = psynced_whole(world, heap, options, "the whole program");
    }
    heap.drop_root::<Data>("data").unwrap();
    if world.tracking == Tracking::Explicit {
        heap = psynced_whole(world, heap, options, "dropping all of it");
    }
    assert_eq!(heap.check(), []);
    assert_eq!(heap.stats().unwrap().blocks, 0, "blocks are left");
}

fn random(ground: Ground, tracking: Tracking, cases: u32, size: u64, options: HeapOptions) {
    if !tracking.is_available() {
        indelible_testing::not_tested(format_args!("collections with tracking by {tracking:?}"));
        return;
    }
    let seed = indelible_testing::Seeded::new(size).seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, rng)
        .run(&prop::collection::vec(step(), 1..200), |steps| {
            run(&World::new(ground, tracking, false), size, options, &steps);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("object of {size} bytes: {failure}"));
}

#[test]
fn random_programs_agree_with_std() {
    random(Ground::Memory, Tracking::Auto, 60, 8 << 20, HeapOptions::new());
}

#[test]
fn random_programs_agree_with_std_when_the_heap_is_full() {
    random(Ground::Memory, Tracking::Auto, 60, 72 << 10, HeapOptions::new());
}

#[test]
fn random_programs_agree_with_std_in_debug_mode() {
    random(Ground::Memory, Tracking::Auto, 20, 4 << 20, HeapOptions::new().debug(true));
}

#[test]
fn random_programs_agree_with_std_in_a_growing_heap() {
    random(Ground::Memory, Tracking::Auto, 20, 64 << 10, HeapOptions::new().grow(true));
}

#[test]
fn random_programs_agree_with_std_with_explicit_tracking() {
    random(Ground::File, Tracking::Explicit, 12, 1 << 20, HeapOptions::new());
    random(Ground::Memory, Tracking::Explicit, 24, 1 << 20, HeapOptions::new());
    random(Ground::Memory, Tracking::Explicit, 24, 72 << 10, HeapOptions::new());
    random(Ground::Memory, Tracking::Explicit, 8, 1 << 20, HeapOptions::new().debug(true));
    random(Ground::Memory, Tracking::Explicit, 8, 64 << 10, HeapOptions::new().grow(true));
}

#[test]
fn random_programs_agree_with_std_where_pages_are_protected() {
    random(Ground::File, Tracking::Mprotect, 12, 1 << 20, HeapOptions::new());
}

#[test]
fn random_programs_agree_with_std_on_the_simulated_medium() {
    random(Ground::Simulated, Tracking::Auto, 12, 1 << 20, HeapOptions::new());
}
