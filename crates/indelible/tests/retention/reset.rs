use crate::heaps::{again, fill, made, release, sound};
use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{
    PBTreeMap, PBox, PHashMap, PHashSet, PMutex, POption, PRc, PRwLock, PString, PVec,
};
use indelible::retention::{Comparison, Reset};
use indelible::{ErrorKind, Heap, HeapOptions, Persist, ReadHeap, Tracking, TypeInfo};
use std::cell::Cell;

#[derive(Persist, Default)]
#[repr(C)]
struct Everything<'h> {
    words: PHashMap<'h, PString<'h>, PVec<'h, PString<'h>>>,
    order: PBTreeMap<'h, PString<'h>, Tree<'h>>,
    numbers: PHashSet<'h, u64>,
    tree: Tree<'h>,
    maybe: POption<PString<'h>>,
    shapes: PVec<'h, Shape<'h>>,
    locked: Option<PBox<'h, Locked<'h>>>,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Tree<'h> {
    left: Option<PBox<'h, Tree<'h>>>,
    right: Option<PBox<'h, Tree<'h>>>,
    name: PString<'h>,
}

#[derive(Persist)]
#[repr(u8)]
#[allow(dead_code)]
enum Shape<'h> {
    Point,
    Named(PString<'h>),
    Many { parts: PVec<'h, Shape<'h>>, weight: f32 },
}

#[derive(Persist)]
#[repr(C)]
struct Locked<'h> {
    one: PMutex<'h, PVec<'h, u64>>,
    two: PRwLock<'h, PString<'h>>,
}

fn text(number: u64) -> String {
    format!("text number {number}, too long for anything but a block")
}

fn fill_everything(heap: &mut Heap, name: &str, count: u64) {
    let (all, h) = heap.root_and_heap::<Everything<'_>>(name).unwrap();
    let tree = |depth: u64| {
        let leaf = |number| {
            let name = PString::from_in(&text(number), h);
            PBox::new_in(Tree { left: None, right: None, name }, h)
        };
        let name = PString::from_in(&text(depth), h);
        Tree { left: Some(leaf(depth)), right: depth.is_multiple_of(2).then(|| leaf(depth + 1)), name }
    };
    for number in 0..count {
        all.words.entry(text(number % 50).as_str()).or_default().push(text(number).as_str());
        all.order.insert(text(number).as_str(), tree(number));
        all.numbers.insert(number);
        let mut parts = PVec::new_in(h);
        parts.push(Shape::Named(PString::from_in(&text(number), h)));
        parts.push(Shape::Point);
        all.shapes.push(Shape::Many { parts, weight: 1.0 });
    }
    all.tree = tree(count);
    all.maybe = POption::some(PString::from_in(&text(0), h));
    let mut list = PVec::new_in(h);
    list.push(7);
    let locked =
        Locked { one: PMutex::new_in(list, h), two: PRwLock::new_in(PString::from_in("both", h), h) };
    all.locked = Some(PBox::new_in(locked, h));
}

#[test]
pub fn s4_02_a_reset_frees_all_that_the_old_value_owns_and_nothing_else() {
    let (dir, mut heap) = made();
    heap.root_or_default::<PVec<'_, PString<'_>>>("kept").unwrap().push(text(1).as_str());
    let kept = sound(&mut heap);
    fill_everything(&mut heap, "it", 300);
    heap.psync().unwrap();
    let all = sound(&mut heap);
    assert!(all > 2000, "{all}");

    let told = Cell::new(None::<Reset>);
    let value: &mut PString<'_> =
        heap.root_from("it").or_reset(|reset| told.set(Some(reset.clone()))).or_default().unwrap();
    assert_eq!(value, "");
    value.push_str("new");
    let reset = told.take().expect("told");
    assert_eq!((reset.object.as_str(), reset.root.as_str()), ("o", "it"));
    assert_eq!((reset.old_type.as_str(), reset.new_type.as_str()), ("Everything", "PString"));
    assert_eq!(reset.blocks, all - kept);
    assert_eq!(
        reset.to_string(),
        format!(
            "reset root \"it\" of object \"o\", a Everything, to a new PString (here the old type, there the new one, \
             Everything: struct Everything here, PString there); freed {} blocks, {} bytes",
            reset.blocks, reset.bytes
        )
    );
    assert_eq!(sound(&mut heap), kept + 2);

    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), all);
    assert_eq!(heap.root_mut::<Everything<'_>>("it").unwrap().numbers.len(), 300);
    heap.root_from::<PString<'_>>("it").or_reset(|_| ()).or_insert_with(|_| "second").unwrap();
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    assert_eq!(sound(&mut heap), kept + 2);
    assert_eq!(heap.root_mut::<PString<'_>>("it").unwrap(), "second");
    assert_eq!(heap.root_mut::<PVec<'_, PString<'_>>>("kept").unwrap()[0], *text(1));
}

#[test]
fn a_root_of_its_own_type_is_not_reset() {
    let (_dir, mut heap) = made();
    let open = |heap: &mut Heap| {
        let value: &mut PVec<'_, u64> =
            heap.root_from("it").or_reset(|_| panic!("nothing to reset")).or_default().unwrap();
        value.push(1);
        value.len()
    };
    assert_eq!((open(&mut heap), open(&mut heap)), (1, 2));
}

#[test]
fn s4_02_nothing_is_reset_without_being_asked_for() {
    let (_dir, mut heap) = made();
    fill_everything(&mut heap, "it", 20);
    let all = sound(&mut heap);
    for error in [
        heap.root_from::<PString<'_>>("it").or_default().map(drop).unwrap_err(),
        heap.root_from::<PString<'_>>("it").or_insert_with(|_| "x").map(drop).unwrap_err(),
        heap.root_from::<PString<'_>>("it").open().map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::RootType);
        assert!(error.to_string().contains("Everything: struct Everything here, PString there"), "{error}");
    }
    assert_eq!(sound(&mut heap), all);
    assert_eq!(heap.root_from::<Everything<'_>>("it").open().unwrap().numbers.len(), 20);
}

#[test]
fn a_reset_that_cannot_make_the_new_value_changes_nothing() {
    let (_dir, mut heap) = made();
    fill_everything(&mut heap, "it", 20);
    let all = sound(&mut heap);
    let blocks = fill(&heap);
    let error = heap
        .root_from::<PString<'_>>("it")
        .or_reset(|_| panic!("it was not reset"))
        .or_insert_with(|_| "this takes a block")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
    release(&heap, blocks);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let from = heap.root_from::<PString<'_>>("it").or_reset(|_| unreachable!());
        from.or_insert_with(|_| -> &str { panic!("no value") }).map(drop)
    }));
    assert!(panicked.is_err());
    assert_eq!(sound(&mut heap), all);
    assert_eq!(heap.root_mut::<Everything<'_>>("it").unwrap().numbers.len(), 20);
}

#[derive(Persist, Default)]
#[repr(C)]
struct Sharing<'h> {
    all: PVec<'h, PRc<'h, Shared<'h>>>,
}

#[derive(Persist)]
#[repr(C)]
struct Shared<'h> {
    name: PString<'h>,
    inner: Option<PRc<'h, PString<'h>>>,
}

#[test]
fn a_reset_drops_owners_and_leaves_what_others_own() {
    let (dir, mut heap) = made();
    heap.root_or_default::<Sharing<'_>>("it").unwrap();
    {
        let (it, other) = heap.roots2::<Sharing<'_>, Sharing<'_>>("it", "other").unwrap();
        let h = it.all.heap();
        let inner = PRc::new_in(text(0).as_str(), h);
        for number in 0..4 {
            let inner = (number != 1).then(|| inner.clone());
            let owner = PRc::new_in(Shared { name: PString::from_in(&text(number), h), inner }, h);
            it.all.push(owner.clone());
            it.all.push(owner.clone());
            if number >= 2 {
                other.all.push(owner);
            }
        }
    }
    heap.psync().unwrap();
    let all = sound(&mut heap);
    heap.root_from::<PString<'_>>("it")
        .or_reset(|reset| assert_eq!(reset.blocks, 2 + 4))
        .or_default()
        .unwrap();
    assert_eq!(sound(&mut heap), all - 6 + 1, "audits compare counts with owners");
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    let other = heap.root_mut::<Sharing<'_>>("other").unwrap();
    let counts: Vec<u64> = other.all.iter().map(PRc::owners).collect();
    assert_eq!(counts, [1, 1]);
    assert_eq!(PRc::owners(other.all[0].inner.as_ref().unwrap()), 2);
    assert_eq!(*other.all[1].name, *text(3));
    other.all.clear();
    heap.drop_root::<Sharing<'_>>("other").unwrap();
    heap.drop_root::<PString<'_>>("it").unwrap();
    assert_eq!(heap.stats().unwrap().blocks, 0);
}

#[derive(Persist)]
#[repr(C)]
struct Node<'h> {
    name: PString<'h>,
    next: *mut Node<'h>,
}

fn refused(heap: &mut Heap, name: &str) -> indelible::Error {
    let before = heap.blocks().count();
    let error =
        heap.root_from::<u64>(name).or_reset(|_| panic!("it was not reset")).or_default().unwrap_err();
    assert_eq!(heap.blocks().count(), before);
    assert_eq!(heap.check(), []);
    error
}

#[test]
fn a_reset_is_refused_if_it_is_unknown_what_the_value_owns() {
    let (_dir, mut heap) = made();
    let block = heap.calloc(1, 64).unwrap().as_ptr();
    for (name, ty, why) in [
        (
            "texts",
            TypeInfo { name: "struct c", fingerprint: 1, layout: "64 bytes" },
            "no description of its type",
        ),
        (
            "forged",
            TypeInfo { name: "PVec<u8>", fingerprint: 1, layout: "PVec u8 " },
            "no description of its type",
        ),
        (
            "opaque",
            TypeInfo::described("std::map<int, int>", "std::map<int,int>:64:8 < i32 i32 > "),
            "bytes that its description does not explain",
        ),
    ] {
        // SAFETY: no code uses it by type.
        unsafe { heap.create_root(name, block, 64, &ty) }.unwrap();
        let error = refused(&mut heap, name);
        assert_eq!(error.kind(), ErrorKind::RootType);
        let text = error.to_string();
        assert!(text.contains(&format!("root {name:?} cannot be reset")) && text.contains(why), "{text}");
        assert_eq!(heap.root_any(name).unwrap().type_name, ty.name);
        heap.remove_root(name).unwrap();
    }
}

#[test]
fn raw_pointers_are_in_the_way_only_if_a_block_could_be_lost() {
    let (_dir, mut heap) = made();
    let nodes = heap.root_or_default::<PVec<'_, Node<'_>>>("nodes").unwrap();
    for number in 0..3 {
        nodes.push(Node { name: PString::new(), next: std::ptr::null_mut() });
        nodes[number].name.push_str(&text(number as u64));
    }
    let other = heap.root_or_default::<PVec<'_, u64>>("other").unwrap();
    other.push(1);
    let elsewhere = other.as_mut_ptr();
    let lost = heap.malloc(64).unwrap().as_ptr();
    let outside = std::ptr::from_ref(&text).cast_mut();
    let nodes = heap.root_mut::<PVec<'_, Node<'_>>>("nodes").unwrap();
    let own = nodes.as_mut_ptr();
    nodes[0].next = own;
    nodes[1].next = elsewhere.cast();
    nodes[2].next = lost.cast::<Node<'_>>().wrapping_add(1);
    let error = refused(&mut heap, "nodes").to_string();
    assert!(error.contains("nodes[2].next leads to a block that no value owns"), "{error}");
    heap.root_mut::<PVec<'_, Node<'_>>>("nodes").unwrap()[2].next = outside.cast();
    heap.root_from::<u64>("nodes").or_reset(|_| ()).or_default().unwrap();
    // SAFETY: an unused block.
    unsafe { heap.free(lost) }.unwrap();
    assert_eq!(sound(&mut heap), 3);
    assert_eq!(heap.root_mut::<PVec<'_, u64>>("other").unwrap()[0], 1);
}

#[test]
fn a_damaged_value_is_not_reset() {
    let (_dir, mut heap) = made();
    fill_everything(&mut heap, "it", 20);
    heap.psync().unwrap();
    let at = heap.root_any("it").unwrap().address;
    // The number of words. SAFETY: a part of the root's value, which no code uses by type
    // meanwhile.
    unsafe { (at as *mut u64).add(2).write(19) };
    let error = refused(&mut heap, "it");
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("it.words: a hash table with another number of keys"), "{error}");
}

#[test]
fn foreign_bytes_are_compared_with_all_other_roots() {
    let (_dir, mut heap) = made();
    heap.root_or_default::<PVec<'_, u64>>("one").unwrap().push(1);
    heap.root_or_default::<PVec<'_, u64>>("two").unwrap().push(2);
    heap.root_or_default::<PVec<'_, u64>>("three").unwrap().push(3);
    let address = |heap: &Heap, name: &str| heap.root_any(name).unwrap().address - heap.base().addr();
    let (one, two) = (address(&heap, "one"), address(&heap, "two"));
    let mut object = heap.into_object();
    let bytes = object.as_mut_slice();
    let shared = bytes[one..one + 24].to_vec();
    let own = bytes[two..two + 24].to_vec();
    bytes[two..two + 24].copy_from_slice(&shared);
    let mut heap = Heap::open(object).unwrap();
    assert_eq!(refused(&mut heap, "two").kind(), ErrorKind::Untrusted);
    heap.verify(&indelible::collections::RootTypes::new().root::<PVec<'_, u64>>("one")).unwrap();
    let error = refused(&mut heap, "two");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains("a block has two owners"), "{error}");
    let mut object = heap.into_object();
    object.as_mut_slice()[two..two + 24].copy_from_slice(&own);
    let mut heap = Heap::open(object).unwrap();
    heap.verify(&indelible::collections::RootTypes::new().root::<PVec<'_, u64>>("one")).unwrap();
    *heap.root_from::<u64>("two").or_reset(|_| ()).or_default().unwrap() = 5;
    assert_eq!(sound(&mut heap), 5);
    assert_eq!(*heap.root_mut::<u64>("two").unwrap(), 5);
    assert_eq!(heap.root_mut::<PVec<'_, u64>>("three").unwrap_err().kind(), ErrorKind::Untrusted);
    let block = heap.calloc(1, 64).unwrap().as_ptr();
    let ty = TypeInfo { name: "struct c", fingerprint: 1, layout: "64 bytes" };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("of C", block, 64, &ty) }.unwrap();
    let error = refused(&mut heap, "three").to_string();
    assert!(error.contains("root \"of C\" is not described: it may have the same blocks"), "{error}");
}

#[test]
fn a_reader_sees_what_a_reset_would_free() {
    let (dir, mut heap) = made();
    fill_everything(&mut heap, "it", 20);
    let all = sound(&mut heap);
    heap.psync().unwrap();
    drop(heap);
    let pool = indelible::Pool::open(dir.path().join("p")).unwrap();
    let reader = ReadHeap::open(pool.attach_read("o").unwrap()).unwrap();
    let found = reader.reclaimable("it").unwrap();
    assert_eq!(found.blocks, all);
    assert_eq!(reader.reclaimable("nothing").unwrap_err().kind(), ErrorKind::RootMissing);
    drop(reader);
    let mut heap = Heap::open(pool.attach("o").unwrap()).unwrap();
    let told = Cell::new((0, 0));
    heap.root_from::<u8>("it")
        .or_reset(|reset| {
            assert!(matches!(reset.comparison, Comparison::Differs(_)));
            told.set((reset.blocks, reset.bytes));
        })
        .or_default()
        .unwrap();
    assert_eq!(told.get(), (found.blocks, found.bytes));
}

#[test]
fn with_explicit_tracking_all_of_a_reset_is_durable() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("o", 2 << 20).unwrap()).unwrap();
    drop(pool);
    fill_everything(&mut heap, "it", 100);
    heap.psync().unwrap();
    heap.root_from::<PString<'_>>("it").or_reset(|_| ()).or_insert_with(|_| "new").unwrap();
    let mut heap = psynced_whole(&world, heap, HeapOptions::new(), "reset");
    assert_eq!(sound(&mut heap), 2);
    assert_eq!(heap.root_mut::<PString<'_>>("it").unwrap(), "new");
}
