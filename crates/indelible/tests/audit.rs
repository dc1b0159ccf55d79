//! Audits of a heap: leaks, raw pointers that lead nowhere, damaged values, named by the way to them.

use indelible::collections::{PBTreeMap, PBox, PHashMap, PString, PVec};
use indelible::heap::{AuditedRoot, HeapAudit};
use indelible::{Heap, Persist, Pool, TypeInfo};

#[derive(Persist)]
#[repr(C)]
struct Node<'h> {
    name: PString<'h>,
    next: *mut Node<'h>,
    owned: Option<PBox<'h, Node<'h>>>,
}

type Index<'h> = PHashMap<'h, PString<'h>, PVec<'h, Node<'h>>>;

fn sound(audit: &HeapAudit) {
    assert_eq!((&audit.findings[..], &audit.pointers[..]), (&[][..], &[][..]));
}

/// A heap with a list of nodes, an index of them, and an ordered map.
fn made(pool: &Pool) -> Heap {
    let mut heap = Heap::format(pool.create_attached("o", 4 << 20).unwrap()).unwrap();
    {
        let (index, h) = heap.root_and_heap::<Index<'_>>("index").unwrap();
        for list in 0..40_u64 {
            let mut nodes = PVec::new_in(h);
            for number in 0..list {
                let name = PString::from_in(&format!("node {number} of {list}, with a long name"), h);
                nodes.push(Node { name, next: std::ptr::null_mut(), owned: None });
            }
            index.insert(format!("list {list}").as_str(), nodes);
        }
    }
    let tree = heap.root_or_default::<PBTreeMap<'_, u64, PString<'_>>>("tree").unwrap();
    for number in 0..1000 {
        tree.insert(number, format!("{number}").as_str());
    }
    heap
}

#[test]
fn blocks_that_values_own_are_no_leaks() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = made(&pool);
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!(audit.leaks, []);
    assert_eq!((audit.owned, audit.referred), (audit.blocks, 0));
    assert_eq!(audit.blocks, heap.blocks().count() as u64);
    let root = |name: &str, ty: &str| (name.to_owned(), ty.to_owned(), true);
    let roots: Vec<_> = audit
        .roots
        .into_iter()
        .map(|AuditedRoot { name, type_name, described, .. }| (name, type_name, described))
        .collect();
    assert_eq!(
        roots,
        [root("index", "PHashMap<PString, PVec<Node>>"), root("tree", "PBTreeMap<u64, PString>")]
    );
}

#[test]
fn a_block_that_nothing_refers_to_is_leaked() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = made(&pool);
    let lost: Vec<usize> = (1..20).map(|size| heap.malloc(size * 100).unwrap().as_ptr().addr()).collect();
    // Without its root, all that the map owns is lost.
    let before = heap.audit().unwrap();
    assert_eq!(before.leaks.iter().map(|block| block.address).collect::<Vec<_>>(), {
        let mut sorted = lost.clone();
        sorted.sort_unstable();
        sorted
    });
    heap.remove_root("tree").unwrap();
    let after = heap.audit().unwrap();
    sound(&after);
    let gone = before.owned - after.owned;
    assert!(gone > 1000 + 1000 / 15, "{gone}");
    assert_eq!(after.leaks.len() as u64, lost.len() as u64 + gone);
    heap.psync().unwrap();
    drop(heap);
    let reader = indelible::ReadHeap::open(pool.attach_read("o").unwrap()).unwrap();
    assert_eq!(reader.audit().unwrap(), after);
}

#[test]
fn raw_pointers_that_lead_to_no_block_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = made(&pool);
    let free = heap.malloc(5000).unwrap().as_ptr().cast::<Node<'_>>();
    let kept = heap.malloc(500).unwrap().as_ptr().cast::<Node<'_>>();
    let outside = std::ptr::from_ref(&dir).cast_mut().cast::<Node<'_>>();
    // SAFETY: a block of this heap.
    unsafe { heap.free(free.cast()).unwrap() };
    let index = heap.root_mut::<Index<'_>>("index").unwrap();
    let nodes = index.get_mut("list 7").unwrap();
    nodes[2].next = free;
    nodes[3].next = outside;
    nodes[4].next = kept.wrapping_byte_add(100);
    let own = nodes.as_mut_ptr();
    nodes[5].next = own;
    let (free, outside_at) = (free.addr() as u64, outside.addr());
    let audit = heap.audit().unwrap();
    assert_eq!(audit.findings, []);
    assert_eq!((audit.leaks.len(), audit.referred), (0, 1), "the block is kept by an address in its middle");
    let found: Vec<_> = audit.pointers.iter().map(|pointer| (pointer.target, pointer.inside)).collect();
    assert_eq!(found, [(free, true), (outside_at as u64, false)]);
    let (path, list) = (&audit.pointers[0].path, ".values[");
    assert!(path.starts_with("index") && path.contains(list) && path.ends_with("][2].next"), "{path}");
}

#[test]
fn blocks_without_a_description_are_searched_word_by_word() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
    // A list as a C program makes it: next, then data.
    let blocks: Vec<_> = (0..50).map(|_| heap.calloc(1, 48).unwrap().as_ptr().cast::<u64>()).collect();
    for pair in blocks.windows(2) {
        // SAFETY: blocks of this heap.
        unsafe { pair[0].add(3).write(pair[1].addr() as u64) };
    }
    let ty = TypeInfo {
        name: "struct list",
        fingerprint: 1,
        layout: "48 bytes\n  next: struct list * at 24, 8 bytes",
    };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("list", blocks[0].cast(), 48, &ty) }.unwrap();
    let audit = heap.audit().unwrap();
    sound(&audit);
    assert_eq!((audit.blocks, audit.owned, audit.referred), (50, 0, 50));
    assert!(!audit.roots[0].described);
    // SAFETY: a block of this heap.
    unsafe { blocks[29].add(3).write(0) };
    let audit = heap.audit().unwrap();
    assert_eq!((audit.leaks.len(), audit.referred), (20, 30));
}

#[test]
fn a_description_that_is_not_that_of_the_fingerprint_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = made(&pool);
    let root = heap.root_any("tree").unwrap();
    heap.remove_root("tree").unwrap();
    let forged =
        TypeInfo { name: &root.type_name, fingerprint: root.fingerprint, layout: "PBTreeMap u64 u64 " };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("tree", root.address as *const u8, root.size, &forged) }.unwrap();
    let audit = heap.audit().unwrap();
    assert_eq!(audit.roots.iter().map(|root| root.described).collect::<Vec<_>>(), [true, false]);
    assert_eq!(audit.leaks, []);
    assert!(audit.referred > 1000);
}

#[test]
fn a_long_description_is_kept_whole() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = Heap::format(pool.create_attached("o", 4 << 20).unwrap()).unwrap();
    let fields: String = (0..4000).map(|field| format!("field_{field}@{}:8 u64 ", 8 * field)).collect();
    let text = format!("Wide:32000:8 {{ {fields}}} ");
    let block = heap.calloc(1, 32_000).unwrap().as_ptr();
    let ty = |layout| TypeInfo { name: "Wide", fingerprint: 7, layout };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("wide", block, 32_000, &ty(&text)) }.unwrap();
    assert_eq!(heap.root_any("wide").unwrap().layout, text);
    assert_eq!(heap.check(), []);
    heap.psync().unwrap();
    let pages = heap.stats().unwrap().free_bytes;
    heap.remove_root("wide").unwrap();
    assert!(
        heap.stats().unwrap().free_bytes >= pages + text.len() as u64,
        "all pages of the root are free again"
    );
    let long = "x".repeat((1 << 20) + 1);
    // SAFETY: no code uses it by type.
    let error = unsafe { heap.create_root("wide", block, 32_000, &ty(&long)) }.unwrap_err();
    assert!(error.to_string().contains("1048577"), "{error}");
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("wide", block, 32_000, &ty(&long[1..])) }.unwrap();
    assert_eq!(heap.root_any("wide").unwrap().layout.len(), 1 << 20);
    assert_eq!(heap.check(), []);
}
