use indelible::collections::{PBTreeMap, PBox, PHashMap, PHashSet, POption, PString, PVec};
use indelible::{ErrorKind, Heap, Persist, Pool};

macro_rules! difference {
    ($before:ty, $after:ty) => {{
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
        let mut heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
        heap.root_or_default::<$before>("it").unwrap();
        heap.root_mut::<$before>("it").expect("its own type");
        let error = heap.root_mut::<$after>("it").err().expect("another type");
        assert_eq!(error.kind(), ErrorKind::RootType);
        heap.root_mut::<$before>("it").expect("as it was");
        error.to_string()
    }};
}

fn named(cases: &[(String, &str)]) {
    for (error, first) in cases {
        let expected = format!("first (here the heap, there the program), {first}: in the heap is\n");
        assert!(error.contains(&expected), "{first:?} is missing in\n{error}");
    }
}

macro_rules! version {
    ($name:ident { $($(#[$attribute:meta])* struct $struct:ident $(<$generic:ident>)? { $($field:ident: $ty:ty),* $(,)? })* }) => {
        mod $name {
            use super::*;
            $(
                #[derive(Persist, Default)]
                #[repr(C)]
                $(#[$attribute])*
                pub struct $struct $(<$generic>)? { $(pub $field: $ty),* }
            )*
        }
    };
}

version!(v1 {
    struct Point { x: u32, y: u32 }
    struct Pair<T> { one: T, two: T }
    struct Line { from: Point, to: Point, name: u64 }
    struct Item { id: u32, price: u32, tags: [u8; 4] }
    struct Nothing {}
});
version!(appended {
    struct Point { x: u32, y: u32, z: u32 }
    struct Line { from: Point, to: Point, name: u64 }
    struct Item { id: u32, price: u32, tags: [u8; 4], stock: u64 }
    struct Nothing { something: u8 }
});
version!(reordered {
    struct Item { price: u32, id: u32, tags: [u8; 4] }
});
version!(widened {
    struct Item { id: u32, price: u64, tags: [u8; 4] }
    struct Point { x: u32, y: u64 }
    struct Line { from: Point, to: Point, name: u64 }
});
version!(shrunk {
    struct Item { id: u32, price: u16, tags: [u8; 4] }
});
version!(removed {
    struct Item { id: u32, tags: [u8; 4] }
    struct Point { x: u32 }
});
version!(renamed {
    struct Item { id: u32, cost: u32, tags: [u8; 4] }
    struct Article { id: u32, price: u32, tags: [u8; 4] }
});
version!(retyped {
    struct Item { id: u32, price: f32, tags: [u8; 4] }
});
version!(longer {
    struct Item { id: u32, price: u32, tags: [u8; 8] }
});
version!(nested {
    struct Money { amount: u32 }
    struct Item { id: u32, price: Money, tags: [u8; 4] }
});
version!(aligned {
    #[repr(align(16))]
    struct Item { id: u32, price: u32, tags: [u8; 4] }
    #[repr(align(16))]
    struct Point { x: u32, y: u32 }
    struct Line { from: Point, to: Point, name: u64 }
});

#[test]
pub fn s4_03_each_change_of_a_struct_names_its_first_field() {
    let cases = [
        (difference!(v1::Item, appended::Item), "Item.stock is there only"),
        (difference!(appended::Item, v1::Item), "Item.stock is here only"),
        (difference!(v1::Nothing, appended::Nothing), "Nothing.something is there only"),
        (difference!(v1::Item, reordered::Item), "Item.id here, Item.price there"),
        (difference!(v1::Item, widened::Item), "Item.price: u32 here, u64 there"),
        (difference!(v1::Item, shrunk::Item), "Item.price: u32 here, u16 there"),
        (difference!(v1::Item, removed::Item), "Item.price here, Item.tags there"),
        (difference!(v1::Point, removed::Point), "Point.y is here only"),
        (difference!(v1::Item, renamed::Item), "Item.price here, Item.cost there"),
        (difference!(v1::Item, renamed::Article), "Item: struct Item here, struct Article there"),
        (difference!(v1::Item, retyped::Item), "Item.price: u32 here, f32 there"),
        (difference!(v1::Item, longer::Item), "Item.tags: [u8; 4] here, [u8; 8] there"),
        (difference!(v1::Item, nested::Item), "Item.price: u32 here, Money there"),
        (difference!(nested::Item, v1::Item), "Item.price: Money here, u32 there"),
        (
            difference!(v1::Item, aligned::Item),
            "Item: 12 bytes, alignment 4 here, 16 bytes, alignment 16 there",
        ),
        (difference!(v1::Line, appended::Line), "Line.from.z is there only"),
        (difference!(v1::Line, widened::Line), "Line.from.y: u32 here, u64 there"),
        (
            difference!(v1::Line, aligned::Line),
            "Line.from: 8 bytes, alignment 4 here, 16 bytes, alignment 16 there",
        ),
        (difference!(v1::Pair<u32>, v1::Pair<u64>), "Pair<u32>.one: u32 here, u64 there"),
        (difference!(v1::Pair<v1::Point>, v1::Pair<appended::Point>), "Pair<Point>.one.z is there only"),
    ];
    named(&cases);
}

#[test]
fn s4_03_a_change_of_a_type_within_a_container_names_the_way_to_its_field() {
    let cases = [
        (difference!(PVec<v1::Item>, PVec<appended::Item>), "PVec<Item>[0].stock is there only"),
        (difference!(PVec<v1::Item>, PHashSet<u64>), "PVec<Item>: PVec here, PHashSet there"),
        (
            difference!(PHashMap<u64, v1::Item>, PHashMap<u64, widened::Item>),
            "PHashMap<u64, Item>.values.price: u32 here, u64 there",
        ),
        (
            difference!(PHashMap<u32, PString>, PHashMap<u64, PString>),
            "PHashMap<u32, PString>.keys: u32 here, u64 there",
        ),
        (
            difference!(PHashMap<u64, PString>, PBTreeMap<u64, PString>),
            "PHashMap<u64, PString>: PHashMap here, PBTreeMap there",
        ),
        (
            difference!(PBTreeMap<u64, PVec<v1::Item>>, PBTreeMap<u64, PVec<retyped::Item>>),
            "PBTreeMap<u64, PVec<Item>>.values[0].price: u32 here, f32 there",
        ),
        (difference!(PVec<v1::Pair<u8>>, PVec<v1::Pair<u16>>), "PVec<Pair<u8>>[0].one: u8 here, u16 there"),
        (difference!(POption<u8>, POption<i8>), "POption<u8>: u8 here, i8 there"),
        (
            difference!(Option<PBox<v1::Item>>, Option<PBox<renamed::Item>>),
            "Option<PBox<Item>>.price here, Option<PBox<Item>>.cost there",
        ),
        (difference!([v1::Point; 3], [v1::Point; 4]), "[Point; 3]: [3] here, [4] there"),
    ];
    named(&cases);
}

macro_rules! kinds {
    ($($module:ident: #[$repr:meta] { $($body:tt)* })*) => {
        $(mod $module {
            use super::*;
            #[derive(Persist, Default)]
            #[$repr]
            #[allow(dead_code)]
            pub enum Kind { #[default] $($body)* }
        })*
    };
}

kinds! {
    plain: #[repr(u8)] { Free, Sold, Lost }
    more: #[repr(u8)] { Free, Sold, Lost, Found }
    swapped: #[repr(u8)] { Free, Lost, Sold }
    renumbered: #[repr(u8)] { Free = 0, Sold = 5, Lost = 6 }
    called: #[repr(u8)] { Free, Gone, Lost }
    wide: #[repr(u16)] { Free, Sold, Lost }
    full: #[repr(u8)] { Free, Sold { price: u32 }, Lost }
    fuller: #[repr(u8)] { Free, Sold { price: u32, day: u16 }, Lost }
    other: #[repr(u8)] { Free, Sold { price: u64 }, Lost }
    tagged: #[repr(u16)] { Free, Sold { price: u32 }, Lost }
}

#[test]
fn s4_03_each_change_of_an_enum_names_its_variant() {
    let cases = [
        (difference!(plain::Kind, more::Kind), "Kind: variant Found = 3 is there only"),
        (difference!(more::Kind, plain::Kind), "Kind: variant Found = 3 is here only"),
        (difference!(plain::Kind, swapped::Kind), "Kind: variant Sold = 1 here, Lost = 1 there"),
        (difference!(plain::Kind, renumbered::Kind), "Kind: variant Sold = 1 here, Sold = 5 there"),
        (difference!(plain::Kind, called::Kind), "Kind: variant Sold = 1 here, Gone = 1 there"),
        (difference!(plain::Kind, wide::Kind), "Kind: enum Kind of 1 bytes here, enum Kind of 2 bytes there"),
        (
            difference!(plain::Kind, full::Kind),
            "Kind: enum Kind of 1 bytes here, enum Kind with a tag of u8 there",
        ),
        (difference!(full::Kind, fuller::Kind), "Kind.Sold.day is there only"),
        (difference!(full::Kind, other::Kind), "Kind.Sold.price: u32 here, u64 there"),
        (
            difference!(full::Kind, tagged::Kind),
            "Kind: enum Kind with a tag of u8 here, enum Kind with a tag of u16 there",
        ),
        (difference!(PVec<plain::Kind>, PVec<more::Kind>), "PVec<Kind>[0]: variant Found = 3 is there only"),
    ];
    named(&cases);
}
