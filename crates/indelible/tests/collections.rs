use crate::support::{self, Ground, World, everywhere, name_root};
use indelible::collections::{
    HeapRef, IntoPersist, PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PHashMap, PHashSet, POption, PString, PVec,
};
use indelible::{ErrorKind, Heap, Persist, Pool, ReadHeap};
use std::cell::Cell;
use std::num::{NonZeroI64, NonZeroI128, NonZeroU8, NonZeroU64, NonZeroUsize};

const MIB: u64 = 1 << 20;

fn world() -> World {
    World::new(Ground::Memory, indelible::Tracking::Auto, false)
}

fn pool_of(world: &World, size: u64) -> Pool {
    let pool = world.format();
    pool.create("heap", size).unwrap();
    pool
}

fn heap_of(world: &World, size: u64) -> Heap {
    Heap::open_or_format(pool_of(world, size).attach("heap").unwrap()).unwrap()
}

fn reopen(world: &World) -> Heap {
    Heap::open_or_format(world.open().attach("heap").unwrap()).unwrap()
}

fn blocks(heap: &mut Heap) -> u64 {
    assert_eq!(heap.check(), []);
    let stats = heap.stats().unwrap();
    stats.blocks - stats.roots
}

#[derive(Persist)]
#[repr(C)]
struct Account<'h> {
    owner: PString<'h>,
    kind: Kind,
    open: bool,
    limit: POption<u64>,
    transfers: PVec<'h, [i64; 2]>,
    parent: Option<PBox<'h, Account<'h>>>,
}

#[derive(Persist, Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Kind {
    Private = 1,
    Business = 7,
}

fn account<'h>(owner: &str, heap: HeapRef<'h>) -> Account<'h> {
    Account {
        owner: PString::from_in(owner, heap),
        kind: Kind::Business,
        open: true,
        limit: POption::some(500),
        transfers: PVec::from_in([[1, -1], [2, -2]], heap),
        parent: None,
    }
}

#[test]
fn psynced_roots_are_found_again_by_name_and_type() {
    everywhere(|world| {
        let mut heap = heap_of(world, MIB);
        let made = heap.root_or_insert_with::<Account, _>("first", |heap| account("alice", heap)).unwrap();
        made.owner.push_str(" and bob");
        let parent = account("carol", made.owner.heap());
        made.parent = Some(PBox::new_in(parent, made.owner.heap()));
        heap.psync().unwrap();
        let lost = heap.root_mut::<Account>("first").unwrap();
        lost.owner.push_str(", never psynced");
        lost.transfers.clear();
        lost.parent = None;
        drop(heap);
        let mut heap = reopen(world);
        let found = heap.root_ref::<Account>("first").unwrap();
        assert_eq!(found.owner, "alice and bob");
        assert_eq!((found.kind, found.open, found.limit.as_ref()), (Kind::Business, true, Some(&500)));
        assert_eq!(found.transfers, [[1, -1], [2, -2]]);
        assert_eq!(found.parent.as_ref().unwrap().owner, "carol");
        assert_eq!(blocks(&mut heap), 5);
        heap.drop_root::<Account>("first").unwrap();
        assert_eq!(heap.root_ref::<Account>("first").err().unwrap().kind(), ErrorKind::RootMissing);
        assert_eq!(blocks(&mut heap), 0);
    });
}

mod later {
    use super::{Kind, PBox, POption, PString, PVec, Persist};

    #[derive(Persist)]
    #[repr(C)]
    pub struct Account<'h> {
        pub owner: PString<'h>,
        pub kind: Kind,
        pub open: bool,
        pub limit: POption<u64>,
        pub transfers: PVec<'h, [i32; 4]>,
        pub parent: Option<PBox<'h, Account<'h>>>,
    }
}

#[test]
fn s4_03_a_root_of_another_type_or_layout_is_an_error_that_shows_both() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    heap.root_or_insert_with::<Account, _>("a", |heap| account("alice", heap)).unwrap();
    let error = heap.root_mut::<later::Account>("a").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let text = error.to_string();
    for line in [
        "another layout",
        "Account: size 80, alignment 8",
        "  owner: PString at 0, size 24",
        "  limit: POption<u64> at 32, size 16",
        "  transfers: PVec<[i64; 2]> at 48, size 24",
        "  transfers: PVec<[i32; 4]> at 48, size 24",
        "  parent: Option<PBox<Account>> at 72, size 8",
        "  Business = 7",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    for error in [
        heap.root_mut::<PVec<u64>>("a").err(),
        heap.root_or_default::<PString>("a").err(),
        heap.drop_root::<u64>("a").err(),
    ] {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::RootType);
        assert!(error.to_string().contains("another type"), "{error}");
    }
    assert_eq!(heap.root_ref::<u64>("b").err().unwrap().kind(), ErrorKind::RootMissing);
}

mod layouts {
    use indelible::Persist;
    macro_rules! item {
        ($module:ident, $($text:tt)*) => {
            pub mod $module {
                use super::Persist;
                #[derive(Persist)]
                #[repr(C)]
                pub struct Inner($($text)*);
                #[derive(Persist)]
                #[repr(C)]
                pub struct Outer { pub inner: Inner, pub other: u32 }
            }
        };
    }
    item!(a, u32);
    item!(b, i32);
    item!(c, u16, u16);
    #[derive(Persist)]
    #[repr(C)]
    pub struct Mixed<A, B, C> {
        pub a: A,
        pub b: B,
        pub c: C,
    }
    #[derive(Persist)]
    #[repr(u8)]
    pub enum One {
        X = 1,
        Y = 2,
    }
    pub mod swapped {
        use super::Persist;
        #[derive(Persist)]
        #[repr(u8)]
        pub enum One {
            Y = 1,
            X = 2,
        }
    }
}

#[test]
fn fingerprints_tell_types_apart_through_nested_ones() {
    use layouts::*;
    let world = world();
    let mut heap = heap_of(&world, 4 * MIB);
    macro_rules! fingerprints {
        ($($ty:ty),* $(,)?) => {{
            let mut all = Vec::new();
            $(
                let name = format!("root {}", all.len());
                let block = heap.calloc(1, size_of::<$ty>()).unwrap();
                name_root(&heap, &name, block.as_ptr(), size_of::<$ty>() as u64,
                    &indelible::TypeInfo { name: "x", fingerprint: 0, layout: "" }).unwrap();
                let error = heap.root_mut::<$ty>(&name).err().expect("another fingerprint").to_string();
                let at = error.rfind("fingerprint ").unwrap();
                all.push((error[at + 12..at + 44].to_owned(), stringify!($ty)));
            )*
            all
        }};
    }
    let mut all = fingerprints![
        u64, i64, f64, usize, bool, char, NonZeroU64, NonZeroI64, NonZeroUsize, [u64; 2], [u32; 4], *mut u64, *const u64,
        a::Inner, b::Inner, c::Inner, a::Outer, b::Outer, c::Outer, One, swapped::One,
        Mixed<a::Inner, b::Inner, a::Inner>, Mixed<a::Inner, b::Inner, b::Inner>,
        Mixed<b::Inner, a::Inner, b::Inner>,
        PVec<u64>, PVec<i64>, PVec<PVec<u64>>, PVec<PString>, PBox<u64>, Option<PBox<u64>>, POption<u64>,
        PVec<a::Inner>, PVec<b::Inner>, PString, Account, later::Account,
    ];
    let count = all.len();
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(all.len(), count, "two types have one fingerprint; left are {all:?}");
}

#[test]
fn readers_read_and_cannot_store() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let list = heap.root_or_default::<PVec<PString>>("list").unwrap();
    list.extend(["one", "two"]);
    heap.psync().unwrap();
    drop(heap);
    let pool = world.open();
    let (first, second) = (pool.attach_read("heap").unwrap(), pool.attach_read("heap").unwrap());
    let (first, second) = (ReadHeap::open(first).unwrap(), ReadHeap::open(second).unwrap());
    let list = first.root_ref::<PVec<PString>>("list").unwrap();
    assert_eq!(second.root_ref::<PVec<PString>>("list").unwrap().len(), 2);
    drop(second);
    assert_eq!(list.iter().map(|text| text.to_string()).collect::<Vec<_>>(), ["one", "two"]);
    let copy = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| list.clone().len()));
    let text = *copy.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("attached for reading"), "{text}");
}

thread_local! {
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

#[derive(Persist)]
#[repr(C)]
struct Counted<'h> {
    text: PString<'h>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        assert!(self.text.starts_with("counted"));
        DROPPED.set(DROPPED.get() + 1);
    }
}

struct Count(u64);

impl<'h> IntoPersist<'h, Counted<'h>> for Count {
    fn into_persist(self, heap: HeapRef<'h>) -> indelible::Result<Counted<'h>> {
        let text = format!("counted {}", self.0);
        Ok(Counted { text: text.into_persist(heap)? })
    }
}

fn dropped(f: impl FnOnce()) -> u64 {
    let before = DROPPED.get();
    f();
    DROPPED.get() - before
}

#[test]
fn each_element_is_dropped_once_and_frees_what_it_has() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let list = heap.root_or_default::<PVec<Counted>>("list").unwrap();
    list.extend((0..100).map(Count));
    assert_eq!(dropped(|| drop(list.pop())), 1);
    assert_eq!(dropped(|| drop(list.remove(3))), 1);
    assert_eq!(dropped(|| drop(list.swap_remove(5))), 1);
    assert_eq!(dropped(|| list.truncate(90)), 7);
    assert_eq!(dropped(|| list.retain(|element| element.text.ends_with('1'))), 81);
    assert_eq!(dropped(|| list[0] = Counted { text: PString::from_in("counted", list.heap()) }), 1);
    assert_eq!(dropped(|| assert_eq!(list.drain(..).take(2).count(), 2)), 9);
    list.extend((0..10).map(Count));
    let taken = std::mem::take(list);
    assert_eq!(dropped(|| taken.into_iter().skip(4).for_each(std::mem::forget)), 4);
    assert_eq!(blocks(&mut heap), 6, "only what was forgotten is left");
    heap.psync().unwrap();
    let list = heap.root_mut::<PVec<Counted>>("list").unwrap();
    list.extend((0..10).map(Count));
    heap.psync().unwrap();
    assert_eq!(dropped(|| drop(heap)), 0);
    let mut heap = reopen(&world);
    assert_eq!(dropped(|| heap.drop_root::<PVec<Counted>>("list").unwrap()), 10);
    assert_eq!(blocks(&mut heap), 6);
}

#[test]
fn a_full_heap_is_an_error_and_the_vector_is_as_it_was() {
    let world = world();
    let mut heap = heap_of(&world, 64 << 10);
    let list = heap.root_or_default::<PVec<PString>>("list").unwrap();
    let long = "x".repeat(300);
    let mut pushed = 0;
    let error = loop {
        match list.try_push(long.as_str()) {
            Ok(()) => pushed += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::HeapFull);
    assert_eq!(list.len(), pushed);
    assert!(list.iter().all(|text| *text == long) && pushed > 50);
    let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| list.push(long.as_str())));
    assert!(text.unwrap_err().downcast::<String>().unwrap().contains("no room for"));
    assert_eq!(list.len(), pushed);
    list.truncate(pushed / 2);
    list.push("there is room again");
    heap.psync().unwrap();
    heap.drop_root::<PVec<PString>>("list").unwrap();
    assert_eq!(blocks(&mut heap), 0);
}

#[test]
fn many_values_are_added_whole_or_not_at_all() {
    let mut heap = heap_of(&world(), MIB);
    let (list, place) = heap.root_and_heap::<PVec<PString>>("list").unwrap();
    list.extend(["one", "two"]);
    let large = vec!["a text that needs a block".repeat(1000); 100];
    assert_eq!(list.try_extend(&large).unwrap_err().kind(), ErrorKind::HeapFull);
    assert_eq!(*list, ["one", "two"]);
    assert_eq!(PVec::<PString>::try_from_in(&large, place).unwrap_err().kind(), ErrorKind::HeapFull);
    assert_eq!(PVec::<u8>::try_from_slice_in(&[7; 2 << 20], place).unwrap_err().kind(), ErrorKind::HeapFull);
    let texts: PVec<PString> = PVec::from_in(&large[..10], place);
    assert_eq!(texts[9], large[9]);
    let full = (0..100).find_map(|_| list.try_extend(texts.iter().map(|text| text.as_str())).err());
    assert_eq!(full.unwrap().kind(), ErrorKind::HeapFull);
    drop(texts);
    list.truncate(2);
    list.shrink_to_fit();
    assert_eq!(blocks(&mut heap), 3);
}

#[test]
fn a_vector_is_filled_by_iterators_that_are_wrong_about_their_length() {
    struct Liar(u64, (usize, Option<usize>));

    impl Iterator for Liar {
        type Item = u64;

        fn next(&mut self) -> Option<u64> {
            self.0 = self.0.checked_sub(1)?;
            Some(self.0)
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            self.1
        }
    }

    impl ExactSizeIterator for Liar {}

    let mut heap = heap_of(&world(), MIB);
    let (list, place) = heap.root_and_heap::<PVec<u64>>("list").unwrap();
    let expected: Vec<u64> = (0..1000).rev().collect();
    for hint in [(0, None), (0, Some(0)), (3, Some(3)), (999, Some(999)), (1000, Some(1000)), (5000, None)] {
        list.clear();
        list.extend(Liar(1000, hint));
        assert_eq!(*list, expected);
        assert_eq!(PVec::<u64>::from_in(Liar(1000, hint), place), expected);
    }
    assert_eq!(blocks(&mut heap), 1);
}

#[test]
fn keys_of_bytes_are_looked_up_by_whatever_has_bytes() {
    let mut heap = heap_of(&world(), MIB);
    let map = heap.root_or_default::<PHashMap<PVec<u8>, PVec<u8>>>("map").unwrap();
    map.insert(&b"first"[..], &b"1"[..]);
    map.insert(b"second", vec![2_u8; 3]);
    let long = vec![3_u8; 300];
    map.insert(&long, [3_u8; 300]);
    assert_eq!(map.insert(*b"first", b"one").unwrap(), b"1");
    map.entry(&b"first"[..]).or_insert(b"no").extend_from_slice(b" and more");
    map.entry(b"third").or_insert(&b"3"[..]);
    assert_eq!((map.len(), &map[&b"first"[..]][..]), (4, &b"one and more"[..]));
    assert_eq!(map[b"second"], [2; 3]);
    assert_eq!(map[&long], long);
    assert_eq!(map.remove(&b"third"[..]).unwrap(), b"3");
    heap.drop_root::<PHashMap<PVec<u8>, PVec<u8>>>("map").unwrap();

    let ids = heap.root_or_default::<PHashMap<[u8; 4], u64>>("ids").unwrap();
    ids.insert([1, 2, 3, 4], 7);
    let packet = [0, 1, 2, 3, 4, 5];
    assert_eq!((ids.get(&packet[1..5]), ids.get(&packet[..4]), ids.get(&packet[..])), (Some(&7), None, None));
    let names = heap.root_or_default::<PBTreeMap<PVec<u16>, u64>>("names").unwrap();
    names.insert(&[1_u16, 2][..], 12);
    *names.entry([1_u16]).or_insert(0) += 1;
    assert_eq!((names.get(&[1_u16, 2][..]), names.get(&vec![1_u16]), names.len()), (Some(&12), Some(&1), 2));
}

#[test]
fn sets_are_compared_as_std_compares_them() {
    let mut heap = heap_of(&world(), MIB);
    let (hashed, sorted) =
        heap.roots2::<PVec<PHashSet<u64>>, PVec<PBTreeSet<u64>>>("hashed", "sorted").unwrap();
    let numbers: [std::collections::BTreeSet<u64>; 2] =
        [(0..40).filter(|n| n % 3 != 0).collect(), (20..70).filter(|n| n % 2 == 0).collect()];
    for numbers in &numbers {
        hashed.push(PHashSet::new());
        sorted.push(PBTreeSet::new());
        hashed.last_mut().unwrap().extend(numbers.iter().copied());
        sorted.last_mut().unwrap().extend(numbers.iter().copied());
    }
    let pairs: [[usize; 2]; 4] = [[0, 1], [1, 0], [0, 0], [1, 1]];
    for [a, b] in pairs {
        let ((x, y), (p, q), (u, v)) =
            ((&numbers[a], &numbers[b]), (&hashed[a], &hashed[b]), (&sorted[a], &sorted[b]));
        let ours = |values: &mut dyn Iterator<Item = &u64>| {
            let mut all: Vec<u64> = values.copied().collect();
            all.sort_unstable();
            all
        };
        let std = |values: &mut dyn Iterator<Item = &u64>| values.copied().collect::<Vec<u64>>();
        assert_eq!(ours(&mut p.union(q)), std(&mut x.union(y)));
        assert_eq!(ours(&mut p.intersection(q)), std(&mut x.intersection(y)));
        assert_eq!(ours(&mut p.difference(q)), std(&mut x.difference(y)));
        assert_eq!(ours(&mut p.symmetric_difference(q)), std(&mut x.symmetric_difference(y)));
        assert!(u.union(v).eq(x.union(y)) && u.intersection(v).eq(x.intersection(y)));
        assert!(u.difference(v).eq(x.difference(y)));
        assert!(u.symmetric_difference(v).eq(x.symmetric_difference(y)));
        assert_eq!((p.is_subset(q), p.is_superset(q)), (x.is_subset(y), x.is_superset(y)));
        assert_eq!((u.is_subset(v), u.is_disjoint(v)), (x.is_subset(y), x.is_disjoint(y)));
        assert_eq!((u == v, u.cmp(v)), (x == y, x.cmp(y)));
    }
}

#[test]
fn two_roots_are_used_at_once() {
    let mut heap = heap_of(&world(), MIB);
    let (one, two) = heap.roots2::<PVec<u64>, PBinaryHeap<u64>>("one", "two").unwrap();
    one.push(7_u64);
    two.extend(one.iter().copied());
    one[0] += 1;
    assert_eq!((one[0], two.pop()), (8, Some(7)));
    let same = heap.roots2::<PVec<u64>, PVec<u64>>("one", "one").unwrap_err();
    assert!(same.kind() == ErrorKind::BadName && same.to_string().contains("twice"), "{same}");
    let other = heap.roots2::<PVec<u64>, PVec<u64>>("one", "two").unwrap_err();
    assert_eq!(other.kind(), ErrorKind::RootType, "a queue is no vector");
    assert_eq!(heap.roots().unwrap().len(), 2);
}

#[test]
fn a_heap_that_may_grow_grows_under_a_container() {
    let world = world();
    let object = pool_of(&world, 64 << 10).attach("heap").unwrap();
    let mut heap = Heap::format_with(object, indelible::HeapOptions::new().grow(true)).unwrap();
    let list = heap.root_or_default::<PVec<PString>>("list").unwrap();
    list.extend((0..2000).map(|number| format!("{number:100}")));
    assert!(list.iter().enumerate().all(|(number, text)| text.trim() == number.to_string()));
    heap.psync().unwrap();
    assert!(heap.size() > 200 << 10);
    drop(heap);
    let heap = reopen(&world);
    assert_eq!(heap.root_ref::<PVec<PString>>("list").unwrap().len(), 2000);
}

#[test]
fn a_container_without_a_heap_says_so() {
    let mut vec = PVec::<u64>::new();
    let error = vec.try_push(1_u64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotAttached);
    assert!(error.to_string().contains("new_in"), "{error}");
}

#[test]
fn a_value_of_another_heap_is_refused() {
    let (one, two) = (world(), world());
    let (mut one, mut two) = (heap_of(&one, MIB), heap_of(&two, MIB));
    let a = one.root_or_default::<PVec<PString>>("list").unwrap();
    let b = two.root_or_default::<PVec<PString>>("list").unwrap();
    a.push("of one");
    let taken = a.pop().unwrap();
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| b.push(taken)));
    let text = *refused.unwrap_err().downcast::<&str>().unwrap();
    assert!(text.contains("in one heap cannot be stored in another"), "{text}");
    assert!(b.is_empty());
    a.push("of one");
    b.push("of two");
    std::mem::swap(&mut a[0], &mut b[0]);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| a[0].len()));
    assert!(found.unwrap_err().downcast::<String>().unwrap().contains("damaged"));
}

#[test]
fn psync_of_several_heaps_takes_typed_data_on_every_rung() {
    support::everywhere(|world| {
        let pool = world.format();
        let open = |name: &str| {
            if pool.stat(name).is_err() {
                pool.create(name, 1 << 20).unwrap();
            }
            Heap::open_or_format(pool.attach(name).unwrap()).unwrap()
        };
        let (mut one, mut two) = (open("one"), open("two"));
        for heap in [&mut one, &mut two] {
            heap.root_or_default::<PVec<u64>>("list").unwrap().push(0_u64);
        }
        for value in 1..=3_u64 {
            for heap in [&mut one, &mut two] {
                heap.root_mut::<PVec<u64>>("list").unwrap()[0] = value;
            }
            Heap::psync_all(&mut [&mut one, &mut two], &mut []).unwrap();
        }
        drop((one, two));
        for name in ["one", "two"] {
            assert_eq!(open(name).root_mut::<PVec<u64>>("list").unwrap()[..], [3]);
        }
    });
}

#[test]
fn numbers_are_found_whatever_lies_behind_them() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    for count in 1..200_u64 {
        let map = heap.root_or_default::<PBTreeMap<u64, u64>>("map").unwrap();
        for number in (1..=2 * count).rev() {
            map.insert(number * 10, number);
        }
        for number in (1..=2 * count).step_by(2) {
            assert_eq!(map.remove(&(number * 10)), Some(number));
        }
        for number in 0..=2 * count + 1 {
            let expected = (number > 0 && number % 2 == 0 && number <= 2 * count).then_some(number);
            assert_eq!(map.get(&(number * 10)).copied(), expected, "{count}: {number}");
            assert_eq!(map.get(&(number * 10 + 1)), None, "{count}: behind {number}");
        }
        assert_eq!(map.get(&u64::MAX), None);
        heap.drop_root::<PBTreeMap<u64, u64>>("map").unwrap();
    }
    assert_eq!(blocks(&mut heap), 0);
}

#[test]
fn a_walk_in_one_go_is_the_walk_step_by_step() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let map = heap.root_or_default::<PBTreeMap<u64, u64>>("map").unwrap();
    assert_eq!(map.iter().fold(0, |count, _| count + 1), 0);
    map.extend((0..600).map(|number| (number, number * 3)));
    for (front, back) in [(0, 0), (1, 0), (0, 1), (7, 8), (16, 300), (299, 300), (300, 300)] {
        let mut walk = map.iter();
        assert_eq!(walk.by_ref().take(front).count(), front);
        assert_eq!(walk.by_ref().rev().take(back).count(), back);
        let mut step = walk.clone();
        let steps: Vec<_> = std::iter::from_fn(|| step.next()).collect();
        let all = walk.fold(Vec::new(), |mut all, pair| {
            all.push(pair);
            all
        });
        assert_eq!(all, steps, "{front} and {back}");
        assert_eq!(all.len(), 600 - front - back);
    }
    for (from, to) in [(0, 0), (5, 5), (0, 600), (13, 14), (100, 463)] {
        let mut sum = 0;
        map.range_mut(from..to).for_each(|(key, value)| {
            *value += 1;
            sum += *key;
        });
        assert_eq!(sum, (from..to).sum::<u64>(), "{from}..{to}");
    }
}

#[test]
fn integers_that_are_never_zero() {
    type Counts<'h> = PHashMap<'h, NonZeroU64, NonZeroI128>;
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let (one, least) = (NonZeroU64::MIN, NonZeroI128::MIN);
    let counts = heap.root_or_default::<Counts>("counts").unwrap();
    counts.insert(one, least);
    let list = heap.root_or_default::<PVec<NonZeroU8>>("list").unwrap();
    list.extend([NonZeroU8::MIN, NonZeroU8::MAX]);
    heap.psync().unwrap();
    drop(heap);
    let mut heap = reopen(&world);
    let counts = heap.root_mut::<Counts>("counts").unwrap();
    assert_eq!((counts.get(&one), counts.get(&NonZeroU64::MAX)), (Some(&least), None));
    let list = heap.root_mut::<PVec<NonZeroU8>>("list").unwrap();
    let place = list.as_ptr().cast_mut().cast::<u8>();
    assert_eq!(list.iter().map(|value| value.get()).collect::<Vec<_>>(), [1, 255]);
    assert_eq!(heap.audit().unwrap().findings.len(), 0);
    // SAFETY: the second element of the vector, which nothing borrows now.
    unsafe { place.add(1).write(0) };
    let found = heap.audit().unwrap().findings;
    assert!(found.len() == 1 && format!("{:?}", found[0]).contains("no value of its type"), "{found:?}");
    let list = heap.root_mut::<PVec<NonZeroU8>>("list").unwrap();
    let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| list[1].get()));
    assert!(taken.unwrap_err().downcast::<String>().unwrap().contains("damaged"));
}
