use crate::heaps::{again, fill, made, release, sound};
use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{PBTreeMap, PBox, PHashMap, POption, PString, PVec};
use indelible::retention::{Extensions, extendible};
use indelible::{ErrorKind, Heap, HeapOptions, Persist, Pool, ReadHeap, Tracking};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub mod v1 {
    use super::*;

    #[extendible]
    #[derive(Persist, Clone, Debug)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
    }

    pub type Items<'h> = PVec<'h, Item<'h>>;
}

pub mod v2 {
    use super::*;

    #[extendible]
    #[derive(Persist, Clone, Debug)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
        #[extension(1, init = |item| i64::from(item.count) * 2)]
        pub price: i64,
        #[extension(1)]
        pub sold: bool,
    }

    pub type Items<'h> = PVec<'h, Item<'h>>;
}

pub mod v3 {
    use super::*;

    #[extendible]
    #[derive(Persist, Clone, Debug)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
        #[extension(1, init = |item| i64::from(item.count) * 2)]
        pub price: i64,
        #[extension(1)]
        pub sold: bool,
        #[extension(2, init = |item| u128::from(item.count))]
        pub wide: u128,
        #[extension(2, init = |item| item.price() + 1)]
        pub gross: i64,
        #[extension(2)]
        pub code: [u8; 5],
    }

    pub type Items<'h> = PVec<'h, Item<'h>>;
}

pub fn make(heap: &mut Heap, count: u32) {
    let (items, h) = heap.root_and_heap::<v1::Items<'_>>("items").unwrap();
    for count in 0..count {
        let name = PString::from_in(&name(count), h);
        items.push(v1::Item { name, count, extensions: Extensions::new() });
    }
    heap.psync().unwrap();
}

pub fn name(count: u32) -> String {
    format!("item number {count}, in a block of its own")
}

#[test]
fn s4_06_a_struct_ends_in_one_word_and_the_other_fields_lie_as_in_a_plain_one() {
    #[repr(C)]
    #[allow(dead_code)]
    struct Plain<'h> {
        name: PString<'h>,
        count: u32,
        extensions: u64,
    }
    macro_rules! same {
        ($($item:ty),*) => {$(
            assert_eq!(size_of::<$item>(), size_of::<Plain<'_>>());
            assert_eq!(std::mem::offset_of!($item, name), std::mem::offset_of!(Plain<'_>, name));
            assert_eq!(std::mem::offset_of!($item, count), std::mem::offset_of!(Plain<'_>, count));
            assert_eq!(std::mem::offset_of!($item, extensions), std::mem::offset_of!(Plain<'_>, extensions));
        )*};
    }
    same!(v1::Item<'_>, v2::Item<'_>, v3::Item<'_>);
}

#[test]
fn s4_07_the_first_store_to_a_later_field_extends_and_no_other_access_does() {
    let (dir, mut heap) = made();
    make(&mut heap, 10);
    let mut heap = again(&dir, heap);
    let items = heap.root_mut::<v2::Items<'_>>("items").unwrap();
    for (count, item) in (0..).zip(items.iter_mut()) {
        assert_eq!((item.count, item.price(), item.sold()), (count, 2 * i64::from(count), false));
        item.count += 100;
        item.name.push('!');
        assert_eq!(item.price(), 2 * i64::from(count + 100), "computed anew, as nothing was stored");
    }
    assert_eq!(sound(&mut heap), 12);

    let items = heap.root_mut::<v2::Items<'_>>("items").unwrap();
    *items[3].price_mut() += 1;
    items[3].count = 0;
    assert_eq!((items[3].price(), items[3].sold()), (207, false));
    assert_eq!(sound(&mut heap), 13);
    let items = heap.root_mut::<v2::Items<'_>>("items").unwrap();
    *items[3].sold_mut() = true;
    assert_eq!((items[3].price(), items[3].sold(), items[4].sold()), (207, true, false));
    assert_eq!(sound(&mut heap), 13, "a field of the same extension");
}

#[test]
pub fn s4_08_items_are_extended_one_by_one_across_runs() {
    let (dir, mut heap) = made();
    make(&mut heap, 12);
    for run in 0..4_u32 {
        heap = again(&dir, heap);
        let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
        for (count, item) in (0..).zip(items.iter_mut()) {
            let done = count < 3 * run;
            let expected = if done { (7, 8) } else { (2 * i64::from(count), 2 * i64::from(count) + 1) };
            assert_eq!((item.price(), item.gross(), item.wide()), (expected.0, expected.1, count.into()));
        }
        for item in &mut items[3 * run as usize..][..3] {
            *item.price_mut() = 7;
            assert_eq!(*item.gross_mut(), 8);
        }
        heap.psync().unwrap();
        *heap.root_mut::<v3::Items<'_>>("items").unwrap()[11].sold_mut() = true;
    }
    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), 2 + 12 + 2 * 12);
}

#[test]
pub fn s4_05_programs_of_all_versions_use_the_same_data() {
    let (dir, mut heap) = made();
    make(&mut heap, 6);
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    for item in &mut items[..4] {
        let view = item.extended();
        (*view.price, *view.sold, *view.wide, *view.gross, *view.code) = (5, true, 1 << 100, -1, *b"abcde");
        *view.count += 1;
    }
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), 8 + 8);

    let items = heap.root_mut::<v1::Items<'_>>("items").unwrap();
    assert!(items.iter().map(|item| item.count).eq([1, 2, 3, 4, 4, 5]));
    items[0].count = 50;
    let copies = [items[0].clone(), items[5].clone()];
    items.extend(copies);
    items.swap(1, 6);
    drop(items.remove(2));
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), 2 + 7 + 8, "a name and two extensions more, and as many less; a name more");

    let items = heap.root_mut::<v2::Items<'_>>("items").unwrap();
    drop(items.remove(0));
    assert_eq!((items[0].price(), items[0].count), (5, 50), "the copy");
    *items[0].price_mut() = 6;
    assert_eq!(sound(&mut heap), 2 + 6 + 6);
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    assert_eq!((items[0].price(), items[0].wide(), items[0].code()), (6, 1 << 100, *b"abcde"));
    heap.drop_root::<v1::Items<'_>>("items").unwrap();
    assert_eq!(sound(&mut heap), 0);
}

#[test]
pub fn s4_09_a_copy_is_deep_and_freeing_a_value_frees_its_chain() {
    let (_dir, mut heap) = made();
    make(&mut heap, 2);
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    *items[0].gross_mut() = 70;
    *items[0].price_mut() = 60;
    let mut copy = items[0].clone();
    (*copy.gross_mut(), *copy.sold_mut()) = (71, true);
    assert_eq!((items[0].gross(), items[0].price(), items[0].sold()), (70, 60, false));
    assert_eq!((copy.gross(), copy.price(), copy.sold()), (71, 60, true));
    items.push(copy);
    let moved = items.swap_remove(0); // no copy: the chain goes with it
    assert_eq!((moved.gross(), items[0].gross()), (70, 71));
    drop(moved);
    assert_eq!(sound(&mut heap), 2 + 2 + 2);
    heap.root_mut::<v3::Items<'_>>("items").unwrap().clear();
    assert_eq!(sound(&mut heap), 2);
}

#[derive(Persist, Default)]
#[repr(C)]
struct Shop<'h> {
    pair: POption<[v2::Item<'h>; 2]>,
    boxed: Option<PBox<'h, v2::Item<'h>>>,
    hashed: PHashMap<'h, u32, v2::Item<'h>>,
    ordered: PBTreeMap<'h, PString<'h>, v2::Item<'h>>,
    shelves: PVec<'h, PVec<'h, Shelf<'h>>>,
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Shelf<'h> {
    item: v2::Item<'h>,
    #[extension(1, init = |shelf| shelf.item.price() as u16)]
    place: u16,
}

#[test]
fn items_in_arrays_options_boxes_maps_and_each_other_are_extended_where_they_are() {
    let (dir, mut heap) = made();
    let (shop, h) = heap.root_and_heap::<Shop<'_>>("shop").unwrap();
    let item = |count| v2::Item { name: PString::new(), count, extensions: Extensions::new() };
    shop.pair = POption::some([item(1), item(2)]);
    shop.boxed = Some(PBox::new_in(item(3), h));
    (0..100).for_each(|number| drop(shop.hashed.insert(number, item(number))));
    (0..100).for_each(|number| drop(shop.ordered.insert(name(number).as_str(), item(number))));
    let mut shelf = PVec::new_in(h);
    shelf.push(Shelf { item: item(9), extensions: Extensions::new() });
    shop.shelves.push(shelf);
    let before = sound(&mut heap);

    let shop = heap.root_mut::<Shop<'_>>("shop").unwrap();
    *shop.pair.as_mut().unwrap()[1].price_mut() += 10;
    *shop.boxed.as_mut().unwrap().price_mut() += 20;
    shop.hashed.values_mut().for_each(|item| *item.price_mut() += 30);
    shop.ordered.values_mut().step_by(2).for_each(|item| *item.price_mut() += 40);
    let shelf = &mut shop.shelves[0][0];
    *shelf.item.price_mut() += 50;
    assert_eq!((shelf.place(), *shelf.place_mut()), (68, 68));
    let at = std::ptr::from_mut(shop.hashed.get_mut(&7).unwrap().price_mut());
    (100..1000).for_each(|number| drop(shop.hashed.insert(number, item(number))));
    assert_eq!(std::ptr::from_mut(shop.hashed.get_mut(&7).unwrap().price_mut()), at);
    heap.psync().unwrap();

    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), before + 1 + 1 + 100 + 50 + 1 + 1);
    let shop = heap.root_mut::<Shop<'_>>("shop").unwrap();
    assert_eq!(shop.pair.as_ref().unwrap().each_ref().map(v2::Item::price), [2, 14]);
    assert!((0..100).all(|number| shop.hashed[&number].price() == 2 * i64::from(number) + 30));
    assert_eq!((shop.shelves[0][0].item.price(), shop.boxed.as_ref().unwrap().price()), (68, 26));
    heap.drop_root::<Shop<'_>>("shop").unwrap();
    assert_eq!(sound(&mut heap), 0);
}

#[test]
fn a_reader_has_initial_values_and_makes_nothing() {
    let (dir, mut heap) = made();
    make(&mut heap, 2);
    *heap.root_mut::<v2::Items<'_>>("items").unwrap()[1].price_mut() = 9;
    heap.psync().unwrap();
    drop(heap);
    let pool = Pool::open(dir.path().join("p")).unwrap();
    let reader = ReadHeap::open(pool.attach_read("o").unwrap()).unwrap();
    let items = reader.root_ref::<v3::Items<'_>>("items").unwrap();
    assert_eq!((items[0].price(), items[0].gross(), items[1].price(), items[1].gross()), (0, 1, 9, 10));
    items.iter().for_each(|item| assert_eq!(item.extend().unwrap_err().kind(), ErrorKind::ReadOnly));
    assert_eq!(reader.audit().unwrap().leaks, []);
}

#[test]
fn a_value_that_is_in_no_heap_is_extended_in_the_one_that_it_was_made_for() {
    let (_dir, mut heap) = made();
    let (items, h) = heap.root_and_heap::<v2::Items<'_>>("items").unwrap();
    let nowhere = v2::Item { name: PString::new(), count: 4, extensions: Extensions::new() };
    assert_eq!((nowhere.price(), nowhere.extend().unwrap_err().kind()), (8, ErrorKind::NotAttached));
    let mut item = v2::Item { name: PString::new(), count: 5, extensions: Extensions::new_in(h) };
    assert_eq!((item.price(), item.clone().price()), (10, 10));
    *item.clone().price_mut() = 1;
    *item.price_mut() = 12;
    items.push(item);
    items.push(v2::Item { name: PString::new(), count: 6, extensions: Extensions::new_in(h) });
    assert_eq!((items[0].price(), items[1].price()), (12, 12));
    assert_eq!(sound(&mut heap), 3);
    heap.drop_root::<v2::Items<'_>>("items").unwrap();
    assert_eq!(sound(&mut heap), 0);
}

thread_local! {
    static RACES: Cell<bool> = const { Cell::new(false) };
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Raced<'h> {
    number: u64,
    #[extension(1, init = |raced| {
        if RACES.replace(false) {
            raced.extend().unwrap();
            return 1;
        }
        2
    })]
    more: u64,
}

#[test]
pub fn the_loser_of_a_race_frees_its_block_and_uses_the_winners() {
    let (_dir, mut heap) = made();
    let make = |_| Raced { number: 1, extensions: Extensions::new() };
    let raced = heap.root_or_insert_with::<Raced<'_>, _>("it", make).unwrap();
    RACES.set(true);
    assert_eq!((*raced.more_mut(), raced.more(), raced.number), (2, 2, 1));
    assert_eq!(sound(&mut heap), 2);
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Unlucky<'h> {
    number: u64,
    #[extension(1, init = |it| {
        assert!(it.number != 13, "unlucky");
        it.number
    })]
    more: u64,
}

#[test]
pub fn an_initial_value_that_panics_leaves_the_value_as_it_was() {
    let (_dir, mut heap) = made();
    let make = |_| Unlucky { number: 13, extensions: Extensions::new() };
    let it = heap.root_or_insert_with::<Unlucky<'_>, _>("it", make).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| *it.more_mut())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| it.extend())).is_err());
    it.number = 12;
    assert_eq!(it.more(), 12);
    assert_eq!(sound(&mut heap), 1);
}

#[test]
fn threads_extend_the_same_values_at_once_beside_cuts() {
    const ITEMS: u32 = 1500;
    let (dir, mut heap) = made();
    make(&mut heap, ITEMS);
    let items = heap.root_ref::<v3::Items<'_>>("items").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| items.iter().for_each(|item| item.extend().unwrap()));
        }
        (0..5).for_each(|_| heap.psync_cut().unwrap());
    });
    let mut heap = again(&dir, heap);
    let extended = sound(&mut heap) - 2 - u64::from(ITEMS);
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    assert!((0..).zip(items.iter()).all(|(count, item)| item.gross() == 2 * i64::from(count) + 1));
    items.iter().for_each(|item| item.extend().unwrap());
    assert!(extended <= 2 * u64::from(ITEMS));
    assert_eq!(sound(&mut heap), 2 + 3 * u64::from(ITEMS));
}

#[test]
fn a_full_heap_leaves_a_value_as_it_was() {
    let (_dir, mut heap) = made();
    make(&mut heap, 1);
    let left = fill(&heap);
    let blocks = heap.blocks().count();
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    let item = &mut items[0];
    assert_eq!(item.extend().unwrap_err().kind(), ErrorKind::HeapFull);
    assert_eq!(item.try_price_mut().unwrap_err().kind(), ErrorKind::HeapFull);
    assert_eq!(item.try_extended().err().unwrap().kind(), ErrorKind::HeapFull);
    assert_eq!((item.price(), item.gross()), (0, 1));
    assert_eq!(heap.blocks().count(), blocks);
    release(&heap, left);
    heap.root_ref::<v3::Items<'_>>("items").unwrap()[0].extend().unwrap();
    assert_eq!(sound(&mut heap), 3 + 2);
}

#[test]
pub fn with_explicit_tracking_extensions_are_durable() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("o", 2 << 20).unwrap()).unwrap();
    drop(pool);
    make(&mut heap, 300);
    let items = heap.root_ref::<v3::Items<'_>>("items").unwrap();
    items.iter().take(100).for_each(|item| item.extend().unwrap());
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "extension of shared values");
    let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
    items.iter_mut().for_each(|item| *item.price_mut() += 3);
    items.iter_mut().step_by(7).for_each(|item| *item.extended().wide += 3);
    let copy = items[0].clone();
    items.push(copy);
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "extension and copies");
    assert_eq!(heap.root_mut::<v3::Items<'_>>("items").unwrap()[300].wide(), 3);
}
