//! A crate without unsafe code can use every derive: a forbidden lint cannot be allowed again, even
//! in derived code.
#![forbid(unsafe_code, unused, missing_debug_implementations, nonstandard_style)]

use indelible::collections::{PBox, PHashMap, PString, PVec};
use indelible::retention::{Extensions, extendible};
use indelible::{Heap, Persist, Plain, Pool, StableHash};

#[derive(Debug, Plain)]
#[repr(C)]
struct Visits {
    count: u64,
    last: [u8; 16],
}

#[derive(Debug, Persist, StableHash, PartialEq, Eq)]
#[repr(C)]
struct Name<'h> {
    text: PString<'h>,
    kind: Kind,
}

#[derive(Debug, Persist, StableHash, PartialEq, Eq, Clone, Copy)]
#[repr(u8)]
enum Kind {
    Person,
    Place,
}

#[derive(Debug, Persist)]
#[repr(C, u8)]
enum Tree<'h, T: Persist<'h>> {
    Leaf(T),
    Inner { left: PBox<'h, Tree<'h, T>>, right: PBox<'h, Tree<'h, T>> },
    Nothing,
}

#[extendible]
#[derive(Debug, Persist)]
#[repr(C)]
struct Extended<'h> {
    r#type: PString<'h>,
    #[extension(1, init = |it| it.r#type.len())]
    letters: usize,
    #[extension(1)]
    r#loop: u8,
    #[extension(2)]
    more: i8,
}

#[derive(Debug, Persist)]
#[repr(C)]
struct Nothing {}

#[derive(Debug, Persist)]
#[repr(transparent)]
struct Wrapped<const N: usize>([u64; N]);

macro_rules! made {
    ($name:ident, $field:ident: $ty:ty) => {
        #[derive(Debug, Persist)]
        #[repr(C)]
        struct $name<'h> {
            $field: $ty,
            heap: PVec<'h, u8>,
        }
    };
}
made!(Made, number: u32);

#[test]
fn a_crate_that_forbids_unsafe_code_derives_everything() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    pool.create("plain", 4096).unwrap();
    let mut object = pool.attach("plain").unwrap();
    object.root_mut::<Visits>().unwrap().count += 1;
    object.root_mut::<Visits>().unwrap().last = *b"alice           ";
    object.psync().unwrap();
    assert_eq!(object.root::<Visits>().unwrap().count, 1);

    pool.create("heap", 1 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let (names, place) = heap.root_and_heap::<PHashMap<Name, u64>>("names").unwrap();
    for (kind, number) in [(Kind::Person, 1_u64), (Kind::Place, 2)] {
        names.insert(Name { text: PString::from_in("Alice", place), kind }, number);
    }
    assert_eq!(names[&Name { text: PString::from_in("Alice", place), kind: Kind::Place }], 2);
    let tree = heap
        .root_or_insert_with::<Tree<u64>, _>("tree", |heap| Tree::Inner {
            left: PBox::new_in(Tree::Leaf(1), heap),
            right: PBox::new_in(Tree::Nothing, heap),
        })
        .unwrap();
    let Tree::Inner { left, right } = tree else { panic!("what was put in") };
    assert!(matches!((&**left, &**right), (Tree::Leaf(1), Tree::Nothing)));
    heap.root_or_insert_with::<Wrapped<3>, _>("wrapped", |_| Wrapped([1, 2, 3])).unwrap();
    heap.root_or_insert_with::<Nothing, _>("nothing", |_| Nothing {}).unwrap();
    let made = heap
        .root_or_insert_with::<Made, _>("made", |heap| Made { number: 7, heap: PVec::new_in(heap) })
        .unwrap();
    assert_eq!((made.number, made.heap.len()), (7, 0));
    let make = |heap| Extended { r#type: PString::from_in("four", heap), extensions: Extensions::new() };
    let extended = heap.root_or_insert_with::<Extended, _>("extended", make).unwrap();
    *extended.loop_mut() = 3;
    assert_eq!((extended.letters(), extended.r#loop(), extended.more()), (4, 3, 0));
    *extended.extended().r#loop += 1;
    assert_eq!(extended.r#loop(), 4);
    heap.psync().unwrap();
}
