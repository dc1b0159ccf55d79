use crate::heaps::{again, fill, made, release, sound};
use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{HeapRef, PBTreeMap, PHashMap, PString, PVec};
use indelible::retention::Converted;
use indelible::{ErrorKind, Heap, HeapOptions, Persist, Tracking, TypeInfo};
use indelible_testing::Seeded;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod v1 {
    use super::*;

    #[derive(Persist, Default)]
    #[repr(C)]
    pub struct Shop<'h> {
        pub items: PVec<'h, Item<'h>>,
        pub round: u32,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub price: u32,
    }
}

mod v2 {
    use super::*;

    #[derive(Persist, Default)]
    #[repr(C)]
    pub struct Shop<'h> {
        pub items: PBTreeMap<'h, u64, Item<'h>>,
        pub round: u64,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub price: u64,
    }
}

mod v3 {
    use super::*;

    #[derive(Persist, Default)]
    #[repr(C)]
    pub struct Shop<'h> {
        pub items: PHashMap<'h, PString<'h>, u64>,
        pub round: u64,
    }
}

fn name(number: u64) -> String {
    format!("item number {number}, a name of a block of its own")
}

fn make_v1(heap: &mut Heap, count: u64) {
    let (shop, h) = heap.root_and_heap::<v1::Shop<'_>>("shop").unwrap();
    shop.round = 7;
    for number in 0..count {
        shop.items.push(v1::Item { name: PString::from_in(&name(number), h), price: number as u32 });
    }
}

fn first_to_second<'h>(old: &v1::Shop<'h>, heap: HeapRef<'h>) -> Converted<v2::Shop<'h>> {
    let mut items = PBTreeMap::new_in(heap);
    for (number, item) in (0..).zip(&old.items) {
        let name = PString::from_in(&item.name, heap);
        items.try_insert(number, v2::Item { name, price: u64::from(item.price) })?;
    }
    Ok(v2::Shop { items, round: u64::from(old.round) })
}

fn second_to_third<'h>(old: &v2::Shop<'h>, heap: HeapRef<'h>) -> Converted<v3::Shop<'h>> {
    let mut items = PHashMap::new_in(heap);
    for (_, item) in &old.items {
        items.try_insert(item.name.as_str(), item.price)?;
    }
    Ok(v3::Shop { items, round: old.round })
}

fn open_third(heap: &mut Heap) -> indelible::Result<&mut v3::Shop<'_>> {
    heap.root_from("shop").convert(first_to_second).convert(second_to_third).open()
}

fn check_third(heap: &mut Heap, count: u64) {
    let blocks = sound(heap);
    let shop = heap.root_mut::<v3::Shop<'_>>("shop").unwrap();
    assert_eq!((shop.round, shop.items.len() as u64), (7, count));
    (0..count).for_each(|number| assert_eq!(shop.items[&*name(number)], number));
    assert_eq!(blocks, 2 + count);
}

#[test]
fn s4_04_a_chain_begins_at_the_version_in_the_heap() {
    let (dir, mut heap) = made();
    make_v1(&mut heap, 100);
    heap.psync().unwrap();
    open_third(&mut heap).unwrap();
    check_third(&mut heap, 100);
    let mut heap = again(&dir, heap);
    assert_eq!(heap.root_mut::<v1::Shop<'_>>("shop").unwrap().items.len(), 100);
    assert_eq!(sound(&mut heap), 102);

    let shop: &mut v2::Shop<'_> = heap.root_from("shop").convert(first_to_second).open().unwrap();
    assert_eq!((shop.items[&99].price, &*shop.items[&99].name), (99, &*name(99)));
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    let never = |_: &v1::Shop<'_>, _: HeapRef<'_>| panic!("the heap has the second version");
    let shop: &mut v3::Shop<'_> =
        heap.root_from("shop").convert::<v2::Shop<'_>, _>(never).convert(second_to_third).open().unwrap();
    assert_eq!(shop.items.len(), 100);
    check_third(&mut heap, 100);
    heap.psync().unwrap();

    let mut heap = again(&dir, heap);
    let never = |_: &v2::Shop<'_>, _: HeapRef<'_>| panic!("the heap has the third version");
    heap.root_from("shop")
        .convert(first_to_second)
        .convert::<v3::Shop<'_>, _>(never)
        .open()
        .unwrap()
        .items
        .insert("more", 1_u64);
    assert_eq!(heap.root_mut::<v3::Shop<'_>>("shop").unwrap().items.len(), 101);
}

#[test]
fn a_version_that_no_converter_knows_is_an_error_that_names_those_that_are_known() {
    let (_dir, mut heap) = made();
    heap.root_or_default::<PVec<'_, u8>>("shop").unwrap().push(1);
    let error = open_third(&mut heap).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let text = error.to_string();
    assert!(
        text.contains("first (here the heap, there the program), PVec<u8>: PVec here, struct Shop there"),
        "{text}"
    );
    let known = text.split("The program converts from\n").nth(1).unwrap();
    let known: Vec<_> = known.lines().take(2).collect();
    assert!(known.iter().all(|line| line.starts_with("Shop (fingerprint ")), "{known:?}");
    assert_ne!(known[0], known[1]);
    assert_eq!(heap.root_mut::<PVec<'_, u8>>("shop").unwrap()[0], 1);
    heap.root_or_default::<v2::Shop<'_>>("later").unwrap();
    let error = heap.root_from::<v1::Shop<'_>>("later").open().map(drop).unwrap_err();
    assert!(error.to_string().contains("Shop.items: PBTreeMap<u64, Item> here, PVec<Item> there"), "{error}");
    assert!(!error.to_string().contains("converts from"));
}

#[test]
fn a_root_that_is_missing_is_made_if_that_was_said() {
    let (_dir, mut heap) = made();
    assert_eq!(open_third(&mut heap).map(drop).unwrap_err().kind(), ErrorKind::RootMissing);
    let never = |_: &u8, _: HeapRef<'_>| panic!("nothing to convert");
    *heap.root_from("it").convert::<u64, _>(never).or_default().unwrap() += 1;
    let never = |_: &u8, _: HeapRef<'_>| panic!("nothing to convert");
    assert_eq!(*heap.root_from("it").convert::<u64, _>(never).or_insert_with(|_| 50).unwrap(), 1);
    assert_eq!(*heap.root_from::<u64>("more").or_insert_with(|_| 50).unwrap(), 50);
}

fn check_first(heap: &mut Heap, count: u64) {
    assert_eq!(sound(heap), count + 2);
    let shop = heap.root_mut::<v1::Shop<'_>>("shop").unwrap();
    assert_eq!((shop.round, shop.items.len() as u64), (7, count));
    (0..count).for_each(|number| assert_eq!(&*shop.items[number as usize].name, &*name(number)));
}

#[test]
fn a_converter_that_fails_leaves_the_old_value_and_no_block_more() {
    let (_dir, mut heap) = made();
    make_v1(&mut heap, 50);
    let fails = |_: &v2::Shop<'_>, heap: HeapRef<'_>| {
        let _half = PString::from_in("half of the new value", heap);
        Err::<v3::Shop<'_>, _>("no price can be that low".into())
    };
    let error = heap.root_from("shop").convert(first_to_second).convert(fails).open().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let text = error.to_string();
    assert!(text.contains("cannot convert a root of object \"o\""), "{text}");
    assert!(text.contains("root \"shop\": converting Shop (fingerprint"), "{text}");
    assert!(text.contains(" failed: no price can be that low (correct the converter"), "{text}");
    check_first(&mut heap, 50);

    let full = heap.root_from::<v1::Shop<'_>>("shop").convert(|_, heap| {
        let mut list = PVec::<u8>::new_in(heap);
        list.try_reserve(100 << 20)?;
        Ok(list)
    });
    let error = full.open().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HeapFull);
    check_first(&mut heap, 50);

    for step in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let second = heap.root_from::<v1::Shop<'_>>("shop").convert(|old, heap| {
                let made = first_to_second(old, heap);
                assert!(step != 0, "in the first step");
                made
            });
            let third = second.convert(|_, heap| -> Converted<v3::Shop<'_>> {
                let _half = PString::from_in("half of the new value", heap);
                panic!("in the second step")
            });
            third.open().map(drop)
        }));
        assert!(panicked.is_err());
        check_first(&mut heap, 50);
    }
    open_third(&mut heap).unwrap();
    check_third(&mut heap, 50);
}

#[test]
fn a_conversion_runs_out_of_heap_at_every_point() {
    let (_dir, mut heap) = made();
    make_v1(&mut heap, 40);
    let (mut left, mut rng) = (fill(&heap), Seeded::new(4));
    let (mut failed, mut panics) = (0, 0);
    loop {
        let done = catch_unwind(AssertUnwindSafe(|| open_third(&mut heap).map(drop)));
        match done {
            Ok(Ok(())) => break,
            Ok(Err(error)) => assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}"),
            Err(_) => panics += 1,
        }
        failed += 1;
        let shop = heap.root_mut::<v1::Shop<'_>>("shop").unwrap();
        assert_eq!((shop.round, shop.items.len()), (7, 40));
        assert_eq!(heap.blocks().count(), 42 + left.len(), "blocks were leaked, or freed");
        for _ in 0..3 {
            let piece = left.swap_remove(rng.usize(left.len() / 4..left.len()));
            release(&heap, vec![piece]);
        }
    }
    assert!(failed > 10 && panics > 0, "{failed} failures, {panics} of them panics");
    release(&heap, left);
    check_third(&mut heap, 40);
}

thread_local! {
    static DROPPED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

#[derive(Persist)]
#[repr(C)]
struct Watched<'h> {
    text: PString<'h>,
    number: u64,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|dropped| dropped.push(self.number));
        assert!(self.number != 13, "dropped");
    }
}

#[test]
pub fn the_old_value_is_dropped_once_after_the_new_one_is_in_its_place() {
    let (_dir, mut heap) = made();
    heap.root_or_insert_with("it", |h| Watched { text: PString::from_in(&name(1), h), number: 1 }).unwrap();
    let to_number = |old: &Watched<'_>, _: HeapRef<'_>| {
        DROPPED.with_borrow(|dropped| assert!(dropped.is_empty()));
        Ok(old.number)
    };
    assert_eq!(*heap.root_from("it").convert(to_number).open().unwrap(), 1);
    DROPPED.with_borrow_mut(|dropped| assert_eq!(std::mem::take(dropped), [1]));
    assert_eq!(sound(&mut heap), 1);

    heap.root_or_insert_with("bad", |h| Watched { text: PString::from_in(&name(2), h), number: 13 }).unwrap();
    let panicked =
        catch_unwind(AssertUnwindSafe(|| heap.root_from("bad").convert(to_number).open().copied()));
    assert!(panicked.is_err());
    DROPPED.with_borrow_mut(|dropped| assert_eq!(std::mem::take(dropped), [13]));
    assert_eq!(*heap.root_mut::<u64>("bad").unwrap(), 13);
    assert_eq!(sound(&mut heap), 2);
}

#[test]
fn s4_01_one_root_is_reset_another_converted_and_a_third_stays() {
    let (dir, mut heap) = made();
    make_v1(&mut heap, 30);
    heap.root_or_default::<PVec<'_, PString<'_>>>("cache").unwrap().push(&*name(1));
    heap.root_or_default::<PVec<'_, u64>>("stays").unwrap().push(5);
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    let cache: &mut PHashMap<'_, u64, PString<'_>> =
        heap.root_from("cache").or_reset(|_| ()).or_default().unwrap();
    assert!(cache.is_empty());
    let reset = |_: &indelible::retention::Reset| panic!("a version that is known is converted");
    let from = heap.root_from("shop").convert(first_to_second).convert(second_to_third);
    from.or_reset(reset).or_default().unwrap();
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    assert_eq!(heap.root_from::<PVec<'_, u64>>("stays").open().unwrap()[0], 5);
    assert_eq!(heap.root_mut::<v3::Shop<'_>>("shop").unwrap().items.len(), 30);
    assert_eq!(heap.root_mut::<PHashMap<'_, u64, PString<'_>>>("cache").unwrap().len(), 0);
    assert_eq!(sound(&mut heap), 32 + 1 + 2);
}

#[test]
fn names_of_types_tell_versions_apart_as_their_fields_do() {
    #[derive(Persist, Default)]
    #[repr(C)]
    struct Shop {
        items: u64,
    }
    let (_dir, mut heap) = made();
    heap.root_or_default::<Shop>("shop").unwrap();
    let same = |old: &Shop, _: HeapRef<'_>| Ok(Shop { items: old.items + 1 });
    assert_eq!(heap.root_from("shop").convert(same).open().unwrap().items, 0);
    let described = TypeInfo::described("Shop", "Shop:8:8 { items@0:8 u64 } ");
    assert_eq!(heap.root_any("shop").unwrap().fingerprint, described.fingerprint);
}

#[test]
fn an_untrusted_root_is_not_converted() {
    let (_dir, mut heap) = made();
    make_v1(&mut heap, 3);
    let mut object = heap.into_object();
    object.as_mut_slice()[(1 << 20) + 5] = 1;
    let mut heap = Heap::open(object).unwrap();
    assert_eq!(open_third(&mut heap).map(drop).unwrap_err().kind(), ErrorKind::Untrusted);
    heap.verify(&indelible::collections::RootTypes::new().root::<v1::Shop<'_>>("shop")).unwrap();
    open_third(&mut heap).unwrap();
    check_third(&mut heap, 3);
}

#[test]
fn with_explicit_tracking_all_of_a_conversion_is_durable() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("o", 2 << 20).unwrap()).unwrap();
    drop(pool);
    make_v1(&mut heap, 200);
    heap.psync().unwrap();
    open_third(&mut heap).unwrap();
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "conversion");
    check_third(&mut heap, 200);
}
