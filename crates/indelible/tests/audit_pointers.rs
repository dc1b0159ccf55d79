use indelible::collections::{PBox, PString, PVec, RootTypes};
use indelible::heap::HeapAudit;
use indelible::{Heap, Persist, Pool, Relative, TypeInfo};
use std::ptr::{null_mut, without_provenance_mut};
use tempfile::TempDir;

#[derive(Persist)]
#[repr(C)]
struct List<'h> {
    #[persist(target)]
    head: *mut Item<'h>,
}

#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    number: u64,
    name: PString<'h>,
    good: bool,
    #[persist(target)]
    next: *mut Item<'h>,
}

fn blocks<T>(heap: &Heap, count: usize) -> Vec<*mut T> {
    (0..count).map(|_| heap.calloc(1, size_of::<T>()).unwrap().as_ptr().cast()).collect()
}

impl Default for List<'_> {
    fn default() -> Self {
        List { head: null_mut() }
    }
}

struct Ring {
    heap: Heap,
    items: Vec<*mut Item<'static>>,
    pool: Pool,
    _dir: TempDir,
}

fn ring(count: usize) -> Ring {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 32 << 20).unwrap();
    let mut heap = Heap::format(pool.create_attached("o", 16 << 20).unwrap()).unwrap();
    let items = blocks::<Item<'static>>(&heap, count);
    let (list, h) = heap.root_and_heap::<List<'_>>("list").unwrap();
    list.head = items[0].cast();
    for (index, &item) in items.iter().enumerate() {
        let name = PString::from_in(&format!("the name of item {index}, in a block"), h);
        let next = items[(index + 1) % count].cast();
        // SAFETY: a block of this heap, large enough.
        unsafe { item.cast::<Item<'_>>().write(Item { number: index as u64, name, good: true, next }) };
    }
    Ring { heap, items, pool, _dir: dir }
}

fn sound(audit: &HeapAudit) {
    assert_eq!((&audit.findings[..], &audit.pointers[..]), (&[][..], &[][..]));
}

fn findings(heap: &mut Heap) -> Vec<String> {
    heap.audit().unwrap().findings.into_iter().map(|finding| finding.what).collect()
}

#[test]
fn a_ring_is_gone_through_by_type_once() {
    let Ring { mut heap, items, pool: _pool, _dir } = ring(5000);
    let items = items.as_slice();
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!(audit.leaks, []);
    assert_eq!(
        (audit.blocks, audit.owned, audit.referred),
        (10_001, 5001, 5000),
        "the root and names; items"
    );

    // The rest of the list is lost with the names that its items own.
    // SAFETY: an item.
    unsafe { (*items[2999]).next = null_mut() };
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!((audit.leaks.len(), audit.owned, audit.referred), (4000, 3001, 3000));
}

#[test]
fn a_number_of_a_described_target_keeps_no_block() {
    let Ring { mut heap, items, pool: _pool, _dir } = ring(3);
    let items = items.as_slice();
    let lost = heap.malloc(100).unwrap().as_ptr().addr();
    // SAFETY: an item.
    unsafe { (*items[1]).number = lost as u64 };
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!(audit.leaks.iter().map(|block| block.address).collect::<Vec<_>>(), [lost]);
}

#[test]
fn the_block_around_a_target_is_searched_word_by_word() {
    let Ring { mut heap, items, pool: _pool, _dir } = ring(3);
    let items = items.as_slice();
    let kept = heap.malloc(100).unwrap().as_ptr();
    let two = heap.calloc(2, size_of::<Item<'_>>()).unwrap().as_ptr().cast::<Item<'static>>();
    // SAFETY: an item, and room for two.
    unsafe {
        two.write(Item { next: items[2], ..items[1].read() });
        two.add(1).write(Item {
            number: kept.addr() as u64,
            name: PString::new(),
            good: true,
            next: null_mut(),
        });
        (*items[0]).next = two;
        heap.free(items[1].cast()).unwrap();
    }
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!(audit.leaks, [], "the second item is not known to be one, and its number could be an address");
}

#[test]
fn damage_behind_pointers_is_named_by_the_way_to_it() {
    let Ring { mut heap, items, pool, _dir } = ring(3);
    let items = items.as_slice();
    // SAFETY: an item.
    unsafe { (&raw mut (*items[1]).good).cast::<u8>().write(7) };
    assert_eq!(findings(&mut heap), ["list.head.next.good: this is no value of its type"]);
    // SAFETY: an item; its name's length.
    unsafe {
        (&raw mut (*items[1]).good).write(true);
        (&raw mut (*items[2]).name).cast::<u64>().add(2).write(1 << 40);
    }
    let audit = heap.audit().unwrap();
    assert_eq!(audit.findings.len(), 1);
    assert_eq!(audit.findings[0].what, "list.head.next.next.name: this is no value of its type");
    assert_eq!(audit.findings[0].offset, items[2].addr() as u64 - pool.stat("o").unwrap().address + 8);
    assert_eq!(audit.leaks, [], "the name may be anywhere");
}

#[test]
fn pointers_that_lead_to_no_target_are_named() {
    let Ring { mut heap, items, pool: _pool, _dir } = ring(3);
    let items = items.as_slice();
    let small = heap.malloc(16).unwrap().as_ptr();
    let free = heap.malloc(5000).unwrap().as_ptr();
    // SAFETY: a block of this heap.
    unsafe { heap.free(free).unwrap() };
    let way = "list.head.next.next";
    let too_small = format!("{way}: the pointer leads to a block that ends within its target");
    let misaligned = format!("{way}: the pointer is not aligned as its target has to be");
    let cases = [
        (small.cast(), Some(too_small.as_str())),
        (items[2].wrapping_byte_add(8), Some(&too_small)),
        (items[2].wrapping_byte_add(4), Some(&misaligned)),
        (free.cast(), None),
        (without_provenance_mut(64), None),
    ];
    for (next, expected) in cases {
        // SAFETY: an item.
        unsafe { (*items[1]).next = next };
        let audit = heap.audit().unwrap();
        let what: Vec<_> = audit.findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, expected.into_iter().collect::<Vec<_>>());
        let lost: Vec<_> = audit.pointers.iter().map(|lost| (lost.path.as_str(), lost.target)).collect();
        match expected {
            Some(_) => assert_eq!(lost, []),
            None => assert_eq!(lost, [(way, next.addr() as u64)]),
        }
    }
}

#[derive(Persist)]
#[repr(C)]
struct Hub<'h> {
    #[persist(target)]
    before: *mut Item<'h>,
    #[persist(target = Owner<'h>)]
    owner: *mut u8,
    #[persist(target)]
    after: *mut Item<'h>,
    #[persist(target)]
    names: [*const PString<'h>; 2],
}

#[derive(Persist)]
#[repr(C)]
struct Owner<'h> {
    items: PVec<'h, PBox<'h, Item<'h>>>,
}

#[test]
fn owners_behind_pointers_are_found_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
    let owner = blocks::<Owner<'static>>(&heap, 1)[0];
    let lost = without_provenance_mut::<Item<'_>>(72);
    let empty =
        |_| Hub { before: null_mut(), owner: owner.cast(), after: null_mut(), names: [null_mut(); 2] };
    heap.root_or_insert_with::<Hub<'_>, _>("hub", empty).unwrap();
    let h = heap.heap_ref().unwrap();
    let mut items = PVec::new_in(h);
    for _ in 0..2 {
        let name = PString::from_in("a name whose text is in a block", h);
        items.push(PBox::new_in(Item { number: 0, name, good: true, next: lost }, h));
    }
    let at = [0, 1].map(|index| PBox::as_ptr(&items[index]).cast::<Item<'static>>());
    // SAFETY: a block for an owner.
    unsafe { owner.cast::<Owner<'_>>().write(Owner { items }) };
    for (before, after) in [(0, 1), (1, 0), (0, 0)] {
        let hub = heap.root_mut::<Hub<'_>>("hub").unwrap();
        (hub.before, hub.after) = (at[before].cast(), at[after].cast());
        // SAFETY: items.
        hub.names = [0, 1].map(|index| unsafe { (&raw const (*at[index]).name).cast() });
        let audit = heap.audit().unwrap();
        assert_eq!((&audit.findings[..], &audit.leaks[..]), (&[][..], &[][..]));
        assert_eq!((audit.owned, audit.referred), (6, 1), "root, elements, items, names; the owner");
        assert_eq!(audit.pointers.len(), 2, "each once: {:?}", audit.pointers);
    }
}

#[test]
fn verification_does_not_follow_raw_pointers() {
    let Ring { heap, items, pool: _pool, _dir } = ring(3);
    let items = items.as_slice();
    // SAFETY: items.
    unsafe {
        (&raw mut (*items[1]).good).cast::<u8>().write(7);
        (*items[2]).next = without_provenance_mut(3);
    }
    let mut object = heap.into_object();
    let _ = object.as_mut_slice();
    let mut heap = Heap::open(object).unwrap();
    assert_eq!(findings(&mut heap).len(), 1);
    heap.verify(&RootTypes::new().root::<List<'_>>("list")).unwrap();
    assert!(heap.is_trusted());
}

#[test]
fn targets_are_no_part_of_a_type() {
    let Ring { mut heap, pool: _pool, _dir, .. } = ring(3);
    let root = heap.root_any("list").unwrap();
    // Rust's pointers have always had two blanks.
    let own = "List:8:8 { head@0:8 *mut  Item } ";
    let item = "Item:48:8 { number@0:8 u64 name@8:24 PString good@32:1 bool next@40:8 *mut  Item } ";
    assert_eq!(root.layout, format!("{own}-> 0 {item}-> 1 =1 "));
    assert!(root.lines().contains("\nItem: size 48, alignment 8\n"));
    assert_eq!(TypeInfo::described("List", own).fingerprint, root.fingerprint);
    assert_eq!(TypeInfo::described("List", &root.layout).fingerprint, root.fingerprint);

    // Made without described targets: a list still, whose items are scanned word by word.
    heap.remove_root("list").unwrap();
    // SAFETY: a value of the type.
    unsafe {
        heap.create_root("list", root.address as *const u8, root.size, &TypeInfo::described("List", own))
    }
    .unwrap();
    assert!(!heap.root_mut::<List<'_>>("list").unwrap().head.is_null());
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!((audit.leaks.len(), audit.owned, audit.referred), (0, 1, 6));
}

#[derive(Persist)]
#[repr(C)]
struct Named<P> {
    held: P,
    #[persist(target)]
    next: *mut Named<P>,
}

#[test]
fn pointers_in_the_names_of_types_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 32 << 20).unwrap();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    let next = blocks::<Named<Relative<u64>>>(&heap, 1)[0];
    // SAFETY: a block of zeros of this heap, large enough.
    unsafe { (*next).next = without_provenance_mut(3) };
    let named = Named { held: Relative::default(), next };
    heap.root_or_insert_with::<Named<Relative<u64>>, _>("named", |_| named).unwrap();
    let audit = heap.audit().unwrap();
    assert_eq!((&audit.findings[..], &audit.leaks[..]), (&[][..], &[][..]), "the block is found by type");
    let paths: Vec<_> = audit.pointers.iter().map(|pointer| &pointer.path[..]).collect();
    assert_eq!(paths, ["named.next.next"]);
}
