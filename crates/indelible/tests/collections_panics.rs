#![forbid(unsafe_code)]

use indelible::collections::{
    HeapRef, PBTreeMap, PBinaryHeap, PBox, PHashMap, PHashSet, PMutex, POption, PRc, PString, PVec, PVecDeque,
};
use indelible::{Heap, Persist, Pool, StableHash};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DROPPED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static BOMB: Cell<u64> = const { Cell::new(u64::MAX) };
}

#[derive(Persist, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
struct Item<'h> {
    id: u64,
    text: PString<'h>,
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        assert_eq!(self.text, format!("item {}", self.id), "dropped twice, or something else");
        DROPPED.with_borrow_mut(|all| all.push(self.id));
        if BOMB.get() == self.id {
            BOMB.set(u64::MAX);
            panic!("the bomb");
        }
    }
}

fn item(id: u64, heap: HeapRef<'_>) -> Item<'_> {
    Item { id, text: PString::from_in(&format!("item {id}"), heap) }
}

fn with_bomb(bomb: u64, work: impl FnOnce()) -> Vec<u64> {
    DROPPED.take();
    BOMB.set(bomb);
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("the bomb");
    assert_eq!(*panic.downcast::<&str>().expect("the bomb's text"), "the bomb");
    let mut dropped = DROPPED.take();
    dropped.sort_unstable();
    dropped
}

fn ids(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

fn on_heap(left: usize, test: impl FnOnce(&mut Heap)) {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = Heap::format(pool.create_attached("heap", 1 << 20).unwrap()).unwrap();
    test(&mut heap);
    assert_eq!(heap.check(), []);
    assert_eq!(heap.blocks().count(), left, "blocks without an owner, or lost ones");
    heap.psync().unwrap();
}

fn filled<'h>(heap: &'h mut Heap, count: u64) -> (&'h mut PVec<'h, Item<'h>>, HeapRef<'h>) {
    let (list, place) = heap.root_and_heap::<PVec<Item>>("list").unwrap();
    (0..count).for_each(|id| list.push(item(id, place)));
    (list, place)
}

#[test]
fn a_vector_that_is_cleared_truncated_or_drained_drops_each_once() {
    on_heap(3, |heap| {
        let (list, place) = filled(heap, 10);
        assert_eq!(with_bomb(7, || list.truncate(4)), ids(4..10));
        assert_eq!(list.len(), 4);
        assert_eq!(with_bomb(1, || list.clear()), ids(0..4));
        assert_eq!(list.len(), 0);
        (0..10).for_each(|id| list.push(item(id, place)));
        assert_eq!(with_bomb(5, || assert_eq!(list.drain(..).take(3).count(), 3)), ids(0..10));
        assert_eq!(list.len(), 0);
        list.push(item(77, place));
        assert_eq!(list[0].id, 77);
    });
}

#[test]
fn a_range_that_is_drained_is_closed() {
    let left = |list: &PVec<Item>| list.iter().map(|item| item.id).collect::<Vec<_>>();
    on_heap(2 + 7, |heap| {
        let (list, _) = filled(heap, 10);
        assert_eq!(with_bomb(4, || assert_eq!(list.drain(2..5).next().unwrap().id, 2)), ids(2..5));
        assert_eq!(left(list), [0, 1, 5, 6, 7, 8, 9]);
        assert_eq!(list.drain(7..).count() + list.drain(3..3).count(), 0);
        for range in [3..9, 8..8] {
            assert!(catch_unwind(AssertUnwindSafe(|| drop(list.drain(range)))).is_err());
        }
        assert_eq!(list.len(), 7);
    });
    on_heap(2 + 10, |heap| {
        let (list, _) = filled(heap, 10);
        std::mem::forget(list.drain(2..5));
        assert_eq!(left(list), [0, 1]);
    });
}

#[test]
fn duplicates_that_were_not_looked_at_stay() {
    on_heap(2 + 5, |heap| {
        let (list, _) = filled(heap, 10);
        assert_eq!(with_bomb(5, || list.dedup_by_key(|item| item.id / 4)), [1, 2, 3, 5]);
        list.dedup_by_key(|item| item.id / 3);
        assert_eq!(list.iter().map(|item| item.id).collect::<Vec<_>>(), [0, 4, 6, 9]);
        list.push(item(9, list.heap()));
        list.dedup();
        assert_eq!(list.len(), 4);
        let rest = list.split_off(2);
        assert_eq!((list.len(), rest[0].id), (2, 6));
        list.extend(rest);
        list.push(item(77, list.heap()));
    });
}

#[test]
fn a_queue_has_all_its_elements_whatever_their_order_does() {
    thread_local!(static COMPARISONS: Cell<u64> = const { Cell::new(0) });

    #[derive(Persist, PartialEq, Eq)]
    #[repr(C)]
    struct Fickle<'h>(Item<'h>);

    impl PartialOrd for Fickle<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Fickle<'_> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            assert!(!COMPARISONS.get().is_multiple_of(7), "fickle");
            self.0.id.cmp(&other.0.id)
        }
    }

    let all = |queue: &PBinaryHeap<Fickle>| {
        let mut all: Vec<u64> = queue.iter().map(|item| item.0.id).collect();
        all.sort_unstable();
        all
    };
    on_heap(1, |heap| {
        let (queue, place) = heap.root_and_heap::<PBinaryHeap<Fickle>>("queue").unwrap();
        let mut panics = 0;
        for id in 0..40 {
            let pushed = catch_unwind(AssertUnwindSafe(|| queue.push(Fickle(item(id, place)))));
            panics += u64::from(pushed.is_err());
            assert_eq!(all(queue), ids(0..id + 1));
        }
        assert!(panics > 3);
        DROPPED.take();
        while !queue.is_empty() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(queue.pop())));
        }
        let mut dropped = DROPPED.take();
        dropped.sort_unstable();
        assert_eq!(dropped, ids(0..40));
        *queue = PBinaryHeap::new();
    });
}

#[test]
fn a_ring_drops_each_of_its_elements_once() {
    fn around<'h>(ring: &mut PVecDeque<'h, Item<'h>>, place: HeapRef<'h>) {
        (3..10).for_each(|id| ring.push_back(item(id, place)));
        (0..3).rev().for_each(|id| ring.push_front(item(id, place)));
        assert!(ring.iter().map(|item| item.id).eq(0..10));
    }
    on_heap(3, |heap| {
        let (ring, place) = heap.root_and_heap::<PVecDeque<Item>>("ring").unwrap();
        around(ring, place);
        assert_eq!(with_bomb(1, || ring.truncate(1)), ids(1..10));
        assert_eq!(with_bomb(0, || ring.clear()), ids(0..1));
        assert!(ring.is_empty());
        around(ring, place);
        assert_eq!(with_bomb(2, || ring.retain(|item| item.id > 4)), ids(0..3));
        assert!(ring.iter().map(|item| item.id).eq(3..10));
        assert_eq!(with_bomb(4, || drop(std::mem::take(ring))), ids(3..10));
        around(ring, place);
        let mut taken = std::mem::take(ring).into_iter();
        assert_eq!(taken.by_ref().rev().take(2).map(|item| item.id).sum::<u64>(), 17);
        assert_eq!(with_bomb(3, || drop(taken)), ids(0..8));
        ring.push_back(item(77, place));
    });
}

#[test]
fn a_vector_that_is_dropped_frees_all_it_has() {
    on_heap(1, |heap| {
        let (list, _) = filled(heap, 10);
        let taken = std::mem::take(list);
        assert_eq!(with_bomb(3, || drop(taken)), ids(0..10));
    });
    on_heap(1, |heap| {
        let (list, _) = filled(heap, 10);
        let mut taken = std::mem::take(list).into_iter();
        assert_eq!(taken.next().unwrap().id, 0);
        assert_eq!(taken.next_back().unwrap().id, 9);
        assert_eq!(with_bomb(3, || drop(taken)), ids(1..9));
    });
}

#[test]
fn elements_that_retain_did_not_reach_stay() {
    on_heap(8, |heap| {
        let (list, _) = filled(heap, 10);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            list.retain(|item| {
                assert!(item.id < 6, "enough");
                item.id % 3 == 0
            });
        }));
        assert!(panic.is_err());
        assert_eq!(list.iter().map(|item| item.id).collect::<Vec<_>>(), [0, 3, 6, 7, 8, 9]);
    });
    on_heap(8, |heap| {
        let (list, _) = filled(heap, 10);
        assert_eq!(with_bomb(4, || list.retain(|item| item.id % 3 == 0)), [1, 2, 4]);
        assert_eq!(list.iter().map(|item| item.id).collect::<Vec<_>>(), [0, 3, 5, 6, 7, 8, 9]);
        list.pop();
    });
}

#[test]
fn an_iterator_that_panics_leaves_what_it_had_given() {
    on_heap(12, |heap| {
        let (list, place) = filled(heap, 3);
        let more = (3..20).map(|id| {
            assert!(id < 10, "enough");
            item(id, place)
        });
        assert!(catch_unwind(AssertUnwindSafe(|| list.extend(more))).is_err());
        assert_eq!(list.iter().map(|item| item.id).collect::<Vec<_>>(), ids(0..10));
    });
}

#[test]
fn a_copy_that_panics_is_no_copy() {
    thread_local!(static CLONES: Cell<u64> = const { Cell::new(0) });

    #[derive(Persist)]
    #[repr(C)]
    struct Fragile<'h>(PString<'h>);

    impl Clone for Fragile<'_> {
        fn clone(&self) -> Self {
            CLONES.set(CLONES.get() + 1);
            assert!(CLONES.get() < 4, "fragile");
            Fragile(self.0.clone())
        }
    }

    on_heap(2 + 5 + 3, |heap| {
        let (list, place) = heap.root_and_heap::<PVec<Fragile>>("list").unwrap();
        list.extend((0..5).map(|_| Fragile(PString::from_in("text", place))));
        assert!(catch_unwind(AssertUnwindSafe(|| list.clone())).is_err());
        CLONES.set(0);
        let texts = std::mem::take(list);
        let panic = catch_unwind(AssertUnwindSafe(|| list.extend_from_slice(&texts)));
        assert!(panic.is_err());
        assert_eq!(list.len(), 3, "as std's vector has it");
        list.extend(texts);
    });
}

#[test]
fn a_box_is_freed_whatever_its_value_does() {
    on_heap(1, |heap| {
        let (slot, place) = heap.root_and_heap::<Option<PBox<Item>>>("box").unwrap();
        *slot = Some(PBox::new_in(item(1, place), place));
        assert_eq!(with_bomb(1, || *slot = None), [1]);
        assert!(slot.is_none());
        *slot = Some(PBox::new_in(item(2, place), place));
        let taken = PBox::into_inner(slot.take().unwrap());
        assert_eq!(with_bomb(2, || drop(taken)), [2]);
    });
    on_heap(0, |heap| {
        heap.root_or_insert_with::<Item, _>("item", |heap| item(3, heap)).unwrap();
        assert_eq!(with_bomb(3, || heap.drop_root::<Item>("item").unwrap()), [3]);
    });
}

#[test]
fn a_shared_value_is_dropped_once_and_freed_whatever_it_does() {
    on_heap(1, |heap| {
        let (list, place) = heap.root_and_heap::<[Option<PRc<Item>>; 3]>("list").unwrap();
        let owner = PRc::new_in(item(1, place), place);
        *list = [Some(owner.clone()), Some(owner.clone()), Some(owner)];
        DROPPED.take();
        list[1] = None;
        list[0] = None;
        assert_eq!(DROPPED.take(), [0_u64; 0]);
        assert_eq!(with_bomb(1, || list[2] = None), [1]);
        let other = PRc::new_in(item(2, place), place);
        list[0] = Some(other.clone());
        let kept = PRc::into_inner(other).err().unwrap();
        list[0] = None;
        assert_eq!(with_bomb(2, || drop(PRc::into_inner(kept).ok().unwrap())), [2]);
        list[0] = Some(PRc::new_in(item(3, place), place));
        let owner = list[0].clone();
        let first = list[0].as_mut().unwrap();
        assert!(PRc::get_mut(first).is_none());
        drop(owner);
        assert_eq!(PRc::get_mut(first).unwrap().id, 3);
        list[0] = None;
    });
}

#[test]
fn an_option_has_what_it_was_given_last() {
    on_heap(1, |heap| {
        let (slot, place) = heap.root_and_heap::<POption<Item>>("option").unwrap();
        *slot = POption::some(item(1, place));
        assert_eq!(with_bomb(1, || assert_eq!(slot.insert(item(2, place)).id, 2)), [1]);
        assert_eq!(slot.as_ref().unwrap().id, 2);
        assert_eq!(with_bomb(2, || drop(slot.take())), [2]);
        assert!(slot.is_none());
    });
}

fn fill_hash<'h>(map: &mut PHashMap<'h, Item<'h>, Item<'h>>, place: HeapRef<'h>) {
    assert_eq!(map.len(), 0);
    (0..20).for_each(|id| drop(map.insert(item(id, place), item(100 + id, place))));
    assert_eq!(map.iter().count(), 20);
}

fn fill_ordered<'h>(map: &mut PBTreeMap<'h, Item<'h>, Item<'h>>, place: HeapRef<'h>) {
    assert_eq!(map.len(), 0);
    (0..400).for_each(|id| drop(map.insert(item(id, place), item(1000 + id, place))));
}

#[test]
fn a_hash_map_that_is_cleared_or_drained_has_nothing_that_was_dropped() {
    on_heap(6, |heap| {
        let (map, place) = heap.root_and_heap::<PHashMap<Item, Item>>("map").unwrap();
        let all: Vec<u64> = (0..20).chain(100..120).collect();
        fill_hash(map, place);
        assert_eq!(with_bomb(7, || map.clear()), all);
        assert_eq!((map.len(), map.iter().count(), map.drain().count()), (0, 0, 0));
        fill_hash(map, place);
        assert_eq!(with_bomb(107, || map.clear()), all);
        fill_hash(map, place);
        assert_eq!(with_bomb(9, || drop(map.drain())), all);
        fill_hash(map, place);
        let taken = std::mem::take(map);
        assert_eq!(with_bomb(3, || drop(taken)), all);
        *map = PHashMap::new_in(place);
        fill_hash(map, place);
        let mut taken = std::mem::take(map).into_iter();
        let first = taken.next().unwrap();
        let left: Vec<u64> = all.iter().copied().filter(|id| id % 100 != first.0.id).collect();
        assert_eq!(with_bomb(left[1], || drop(taken)), left);
        drop(first);
        *map = PHashMap::new_in(place);
        fill_hash(map, place);
        let kept = with_bomb(4, || map.retain(|key, _| key.id > 17)).len() / 2;
        assert_eq!(map.len(), 20 - kept);
        map.retain(|key, _| key.id > 17);
        assert_eq!(map.len(), 2);
        DROPPED.take();
    });
}

#[test]
fn a_hash_set_has_nothing_that_was_dropped() {
    on_heap(3, |heap| {
        let (set, place) = heap.root_and_heap::<PHashSet<Item>>("set").unwrap();
        (0..20).for_each(|id| assert!(set.insert(item(id, place))));
        assert_eq!(with_bomb(7, || set.clear()), ids(0..20));
        assert_eq!((set.len(), set.iter().count()), (0, 0));
        assert!(set.insert(item(7, place)));
        assert_eq!(set.iter().map(|item| item.id).collect::<Vec<_>>(), [7]);
    });
}

#[test]
fn an_ordered_map_that_is_cleared_has_nothing_that_was_dropped() {
    on_heap(1, |heap| {
        let (map, place) = heap.root_and_heap::<PBTreeMap<Item, Item>>("map").unwrap();
        let all: Vec<u64> = (0..400).chain(1000..1400).collect();
        for bomb in [0, 7, 200, 399, 1003, 1399] {
            fill_ordered(map, place);
            assert_eq!(with_bomb(bomb, || map.clear()), all);
            assert_eq!((map.len(), map.iter().count()), (0, 0));
        }
        fill_ordered(map, place);
        let taken = std::mem::take(map);
        assert_eq!(with_bomb(3, || drop(taken)), all);
        *map = PBTreeMap::new_in(place);
        fill_ordered(map, place);
        let mut taken = std::mem::take(map).into_iter();
        drop((taken.next(), taken.next_back()));
        assert_eq!(with_bomb(1100, || drop(taken)).len(), 2 * 398);
        *map = PBTreeMap::new_in(place);
        fill_ordered(map, place);
        with_bomb(4, || map.retain(|key, _| key.id > 9));
        assert_eq!(map.iter().map(|(key, _)| key.id).collect::<Vec<_>>(), ids(5..400));
        let panic = catch_unwind(AssertUnwindSafe(|| map.retain(|key, _| key.id != 8 || panic!("enough"))));
        assert!(panic.is_err());
        assert_eq!(map.iter().map(|(key, _)| key.id).collect::<Vec<_>>(), ids(5..400));
        map.clear();
        DROPPED.take();
    });
}

#[test]
fn retain_does_not_trust_the_order_of_keys() {
    thread_local!(static LIE: Cell<u32> = const { Cell::new(0) });

    #[derive(Persist, PartialEq, Eq)]
    #[repr(C)]
    struct Liar<'h>(Item<'h>);

    impl PartialOrd for Liar<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Liar<'_> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            LIE.set(LIE.get() * 5 % 17 + u32::from(LIE.get() > 0));
            let right = self.0.id.cmp(&other.0.id);
            if LIE.get() % 3 == 1 { right.reverse() } else { right }
        }
    }

    for seed in 1..40 {
        on_heap(1, |heap| {
            let (map, place) = heap.root_and_heap::<PBTreeMap<Liar, u64>>("map").unwrap();
            (0..60).for_each(|id| assert_eq!(map.insert(Liar(item(id, place)), id), None));
            DROPPED.take();
            LIE.set(seed);
            let _ = catch_unwind(AssertUnwindSafe(|| {
                map.retain(|key, _| {
                    assert_eq!(key.0.text, format!("item {}", key.0.id));
                    key.0.id % 4 == 0
                });
            }));
            LIE.set(0);
            map.clear();
            let mut dropped = DROPPED.take();
            dropped.sort_unstable();
            assert_eq!(dropped, ids(0..60));
        });
    }
}

#[test]
fn a_lock_is_given_back_and_its_value_is_as_it_was_left() {
    on_heap(3, |heap| {
        heap.root_or_insert_with::<PMutex<PVec<Item>>, _>("lock", |heap| {
            PMutex::new_in(PVec::new_in(heap), heap)
        })
        .unwrap();
        let lock = heap.root_mut::<PMutex<PVec<Item>>>("lock").unwrap();
        let place = lock.lock().heap();
        (0..4).for_each(|id| lock.lock().push(item(id, place)));
        assert_eq!(with_bomb(2, || lock.lock().truncate(1)), ids(1..4));
        assert_eq!(lock.lock().len(), 1);
        lock.lock().clear();
        DROPPED.take();
    });
}
