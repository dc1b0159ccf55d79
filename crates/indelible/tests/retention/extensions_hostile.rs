//! Chains that are damaged or of other types, and changed layouts: errors by name.

use crate::extensions::{make, name, v1, v2, v3};
use crate::heaps::{again, made, sound};
use indelible::collections::{PBTreeMap, PBox, PHashMap, POption, PString, PVec, PVecDeque};
use indelible::retention::{Extensions, LayoutError, LayoutLock, extendible};
use indelible::{ErrorKind, Heap, Persist};
use std::panic::{AssertUnwindSafe, catch_unwind};

mod reordered {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
        #[extension(1)]
        pub sold: bool,
        #[extension(1)]
        pub price: i64,
    }
}

mod removed {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u32,
        #[extension(1)]
        pub gross: i64,
    }
}

mod other {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Item<'h> {
        pub name: PString<'h>,
        pub count: u64,
        #[extension(1)]
        pub price: i64,
        #[extension(1)]
        pub sold: bool,
    }
}

fn link<C>(of: &Extensions<'_, C>) -> *mut u64 {
    std::ptr::from_ref(of).cast_mut().cast()
}

fn words<'a>(link: *mut u64) -> &'a mut [u64; 5] {
    // SAFETY: the test has the heap to itself, and uses the block by other means only when the
    // result is no longer used.
    unsafe { &mut *std::ptr::with_exposed_provenance_mut(*link as usize) }
}

#[test]
pub fn an_extension_of_another_type_is_an_error_that_shows_the_programs() {
    let (_dir, mut heap) = made();
    make(&mut heap, 2);
    heap.root_ref::<PVec<'_, reordered::Item<'_>>>("items").unwrap();
    heap.root_ref::<v2::Items<'_>>("items").unwrap()[1].extend().unwrap();
    let items = heap.root_mut::<PVec<'_, reordered::Item<'_>>>("items").unwrap();
    assert!(!items[0].sold());
    for error in [
        items[1].try_sold().unwrap_err(),
        items[1].extend().unwrap_err(),
        items[1].try_price_mut().unwrap_err(),
        items[1].try_extended().err().unwrap(),
    ] {
        assert_eq!(error.kind(), ErrorKind::RootType);
        let text = error.to_string();
        assert!(text.contains("object \"o\""), "{text}");
        assert!(text.contains("extension 1 of Item in the heap has 40 bytes and type "), "{text}");
        assert!(text.contains("sold: bool at 0, size 1\n  price: i64 at 8, size 8"), "{text}");
    }
    let error = heap.root_mut::<PVec<'_, removed::Item<'_>>>("items").err().unwrap();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(text.contains("has 40 bytes and type") && text.contains("this program's has 32 bytes"), "{text}");
    let different = heap.root_mut::<PVec<'_, other::Item<'_>>>("items").err().unwrap();
    assert!(different.to_string().contains("PVec<Item>[0].count: u32 here, u64 there"), "{different}");
    assert_eq!(sound(&mut heap), 5);
}

#[derive(Persist)]
#[repr(C)]
struct Shop<'h, T: Persist<'h>> {
    boxed: Option<PBox<'h, T>>,
    by_name: PHashMap<'h, PString<'h>, T>,
    by_number: PBTreeMap<'h, u32, PVec<'h, T>>,
    last: POption<T>,
    line: PVecDeque<'h, T>,
    shelf: Shelf<'h, T>,
}

#[derive(Persist)]
#[repr(C, u8)]
enum Shelf<'h, T: Persist<'h>> {
    Bare,
    Two([PBox<'h, T>; 2]),
}

impl<'h, T: Persist<'h>> Default for Shop<'h, T> {
    fn default() -> Self {
        Shop {
            boxed: None,
            by_name: PHashMap::default(),
            by_number: PBTreeMap::default(),
            last: POption::default(),
            line: PVecDeque::default(),
            shelf: Shelf::Bare,
        }
    }
}

#[test]
fn an_extension_of_another_type_is_an_error_as_the_root_is_opened() {
    for place in 0..6 {
        let (dir, mut heap) = made();
        let (shop, h) = heap.root_and_heap::<Shop<'_, v2::Item<'_>>>("shop").unwrap();
        let item = |extended: bool| {
            let item =
                v2::Item { name: PString::from_in("item", h), count: 1, extensions: Extensions::new_in(h) };
            if extended {
                item.extend().unwrap();
            }
            item
        };
        shop.boxed = Some(PBox::new_in(item(place == 0), h));
        for number in 0..40 {
            shop.by_name.insert(name(number).as_str(), item(place == 1 && number == 33));
            shop.by_number.entry(number).or_default().push(item(place == 2 && number == 33));
        }
        shop.last = POption::from(Some(item(place == 3)));
        shop.line.push_back(item(false));
        shop.line.push_front(item(place == 5));
        shop.shelf = Shelf::Two([PBox::new_in(item(false), h), PBox::new_in(item(place == 4), h)]);
        assert!(matches!(&shop.shelf, Shelf::Two(two) if two[0].count == 1));
        heap.psync().unwrap();
        heap.root_ref::<Shop<'_, v2::Item<'_>>>("shop").unwrap();
        heap.root_ref::<Shop<'_, v1::Item<'_>>>("shop").unwrap();
        for _ in 0..2 {
            let error = heap.root_ref::<Shop<'_, reordered::Item<'_>>>("shop").err().unwrap();
            assert_eq!(error.kind(), ErrorKind::RootType, "{place}");
            assert!(error.to_string().contains("extension 1 of Item in the heap has 40 bytes"), "{error}");
        }
        let again = again(&dir, heap);
        assert!(again.root_ref::<Shop<'_, reordered::Item<'_>>>("shop").is_err());
    }
}

fn damaged(damage: impl Fn(&mut Heap, *mut u64, *mut u64), finding: &str, version_3: &str) {
    let (_dir, mut heap) = made();
    make(&mut heap, 2);
    let items = heap.root_ref::<v3::Items<'_>>("items").unwrap();
    items.iter().for_each(|item| item.extend().unwrap());
    let (one, two) = (link(&items[0].extensions), link(&items[1].extensions));
    damage(&mut heap, one, two);

    let audit = heap.audit().unwrap();
    let found: Vec<_> = audit.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(found.iter().any(|what| what.contains(finding)), "{found:?} do not say {finding:?}");
    if !version_3.is_empty() {
        let items = heap.root_mut::<v3::Items<'_>>("items").unwrap();
        let error = items[0].extend().unwrap_err();
        assert!(error.to_string().contains(version_3), "{error}");
        assert!(items[0].try_gross_mut().is_err() && items[0].try_extended().is_err());
        drop(items[0].try_gross());
    }
    let items = heap.root_mut::<v1::Items<'_>>("items").unwrap();
    let copied = catch_unwind(AssertUnwindSafe(|| items[0].clone()));
    drop(copied);
    assert_eq!((&*items[0].name, items[0].count), (&*name(0), 0));
    items.truncate(0);
    assert_eq!(heap.check(), []);
}

#[test]
fn damaged_chains_are_errors_and_never_freed_twice() {
    let nothing = "a link to no extension";
    damaged(
        |_, one, _| words(one)[0] = words(one).as_ptr().addr() as u64,
        "a block has two owners",
        "extension 2 of Item in the heap has",
    );
    damaged(|_, one, _| words(one)[0] += 4, "no value of its type", nothing);
    damaged(|_, one, _| words(one)[0] = 1 << 60, "no value of its type", nothing);
    damaged(|heap, one, _| words(one)[0] = heap.base().addr() as u64, "another size", nothing);
    damaged(|_, one, _| words(one)[1] = 8, "another size", "another size");
    damaged(|_, one, _| words(one)[1] = u64::MAX - 7, "another size", "another size");
    damaged(|_, one, _| words(one)[1] = 400, "smaller than its value", "has 400 bytes");
    damaged(|_, one, two| words(one)[0] = words(two)[0], "a block has two owners", "");
    damaged(
        |heap, one, _| {
            let block = heap.malloc(40).unwrap();
            words(one)[0] = block.addr().get() as u64;
            *words(words(one).as_mut_ptr()) = [0, 40, 7, 7, 7];
            // SAFETY: a block that nothing owns.
            unsafe { heap.free(block.as_ptr()) }.unwrap();
        },
        "not that of a block in use",
        "extension 2 of Item in the heap has 40",
    );
}

#[test]
fn a_link_that_leads_out_of_the_object_is_found_with_the_value() {
    let (_dir, mut heap) = made();
    make(&mut heap, 1);
    let items = heap.root_ref::<v2::Items<'_>>("items").unwrap();
    let one = link(&items[0].extensions);
    // SAFETY: the test has the heap to itself.
    unsafe { *one = 1 << 60 };
    let items = heap.root_ref::<v2::Items<'_>>("items").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| items[0].price())).unwrap_err();
    assert!(panicked.downcast_ref::<String>().unwrap().contains("is damaged"));
}

#[test]
fn bytes_that_are_no_value_are_an_error() {
    let (_dir, mut heap) = made();
    make(&mut heap, 1);
    let items = heap.root_ref::<v2::Items<'_>>("items").unwrap();
    items[0].extend().unwrap();
    words(link(&items[0].extensions))[4] = 2;
    let items = heap.root_mut::<v2::Items<'_>>("items").unwrap();
    for error in [items[0].try_price().unwrap_err(), items[0].try_sold_mut().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.to_string().contains("an extension is no value of its type"), "{error}");
    }
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Circular<'h> {
    one: u8,
    #[extension(1, init = Circular::three)]
    two: u8,
    #[extension(2, init = Circular::two)]
    three: u8,
}

#[test]
fn initial_values_that_are_computed_from_each_other_end_in_a_panic() {
    let it = Circular { one: 1, extensions: Extensions::new() };
    let panicked = catch_unwind(AssertUnwindSafe(|| it.two())).unwrap_err();
    let text = panicked.downcast_ref::<&str>().unwrap();
    assert!(text.contains("computed from each other"), "{text}");
    let again = catch_unwind(AssertUnwindSafe(|| it.three()));
    assert!(again.is_err() && it.one == 1);
}

#[test]
fn the_file_of_layouts_grows_and_nothing_in_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("layouts.lock");
    let lock = || LayoutLock::new(&path);
    assert!(matches!(lock().with::<v2::Item<'_>>().check(), Err(LayoutError::Io { .. })));
    lock().with::<v1::Item<'_>>().update().unwrap();
    lock().with::<v1::Item<'_>>().check().unwrap();

    let text = |result: Result<(), LayoutError>| result.unwrap_err().to_string();
    let new = text(lock().with::<v2::Item<'_>>().check());
    assert!(new.contains("extension 1 of Item is not in"), "{new}");
    lock().with::<v2::Item<'_>>().update().unwrap();
    lock().with::<v3::Item<'_>>().update().unwrap();
    lock().with::<v3::Item<'_>>().check().unwrap();
    let locked = std::fs::read_to_string(&path).unwrap();
    assert_eq!(locked.lines().count(), 4);
    assert!(locked.contains("Item 1: ItemExtension1:16:8 { price@0:8 i64 sold@8:1 bool }\n"), "{locked}");

    let reordered = "extension 1: ItemExtension1.price here, ItemExtension1.sold there";
    let base = "the struct itself: Item.count: u32 here, u64 there";
    for (lock, what) in [
        (lock().with::<reordered::Item<'_>>(), reordered),
        (
            lock().with::<removed::Item<'_>>(),
            "extension 1: ItemExtension1.price here, ItemExtension1.gross there",
        ),
        (lock().with::<other::Item<'_>>(), base),
        (lock().with::<v2::Item<'_>>(), "extension 2 is missing"),
        (lock(), "the program does not have it any more"),
        (lock().with::<v3::Item<'_>>().with::<v1::Item<'_>>(), "two structs have the name"),
    ] {
        for result in [lock.check(), lock.update()] {
            let found = text(result);
            assert!(found.starts_with("Item is not as it was released: ") && found.contains(what), "{found}");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), locked);

    for (from, to, what) in [
        ("Item 1: ", "Item 1 ", "line 3: it is not"),
        ("Item 1: ", "Item 3: ", "line 3: Item 3 does not follow"),
        ("i64 sold", "i65 sold", "line 3: word 4: i65: no type of that name"),
        ("sold@8", "sold@4", "field sold of ItemExtension1 is not where"),
        ("Item 0: ", "Item 1: ", "line 2: Item 1 does not follow"),
    ] {
        std::fs::write(&path, locked.replacen(from, to, 1)).unwrap();
        let found = text(lock().with::<v3::Item<'_>>().check());
        assert!(found.contains(what), "{found}");
        assert!(lock().with::<v3::Item<'_>>().update().is_err());
    }
}
