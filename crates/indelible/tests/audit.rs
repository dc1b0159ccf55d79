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

fn described(layout: &str, size: u64, words: &[u64]) -> (tempfile::TempDir, Heap) {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 32 << 20).unwrap();
    let heap = Heap::format(pool.create_attached("o", 8 << 20).unwrap()).unwrap();
    let block = heap.calloc(1, size as usize).unwrap().as_ptr();
    for (index, word) in words.iter().enumerate() {
        // SAFETY: a block of this heap, large enough.
        unsafe { block.cast::<u64>().add(index).write(*word) };
    }
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("root", block, size, &TypeInfo::described("Any", layout)) }.unwrap();
    (dir, heap)
}

#[test]
fn a_description_of_no_type_is_not_used_and_it_is_said_why() {
    let nested: String = (1..20_000).map(|at| format!("f@{at}:1 S:1:1 {{ a@0:1 ={at} }} ")).collect();
    let cases = [
        (String::new(), "word 1: the text ends in the middle of a type"),
        ("Any:8:8 { next@0:8 PBox ".to_owned(), "word 5: the text ends in the middle of a type"),
        ("Any:8:8 { own@0:8 =0 } ".to_owned(), "a type that is a part of itself"),
        ("Any:8:8 { one@0:8 u64 two@4:8 u64 } ".to_owned(), "field two of Any is not where a field can be"),
        ("[1000000000] [1000000000] u8 ".to_owned(), "word 3: a type larger than any object"),
        (
            format!("Any:8:8 {{ {}b@0:1 bool }} ", "a@0:0 () ".repeat(100_000)),
            "Any: 100000 fields without bytes",
        ),
        ("PVec ".repeat(200_000), "word 101: more than 100 types within each other"),
        (
            format!("Any:20000:1 {{ a@0:1 S:1:1 {{ a@0:1 bool }} {nested}}} "),
            "more than 100 types within each other",
        ),
        ("Any:8:8 { a@0:8 u64 } and more".to_owned(), "word 6: behind the end of the type"),
    ];
    for (layout, why) in cases {
        let (_dir, mut heap) = described(&layout, 64, &[]);
        let audit = heap.audit().unwrap();
        sound(&audit);
        assert!(!audit.roots[0].described && audit.leaks.is_empty());
        assert!(audit.roots[0].why_not.as_deref().unwrap().ends_with(why), "{:?}", audit.roots[0].why_not);
        let error = heap.root_mut::<u64>("root").unwrap_err();
        assert_eq!(error.kind(), indelible::ErrorKind::RootType);
    }
}

#[test]
fn a_description_of_another_block_is_a_finding() {
    let misplaced = "root: a root is not where it could be";
    let no_value = "root.list: this is no value of its type";
    let list = "Any:24:8 { list@0:24 PVec u64 } ";
    let cases = [
        ("Any:128:8 { a@0:1 bool } ", 64, vec![], misplaced),
        ("Any:32:8 { a@0:1 bool } ", 64, vec![], misplaced),
        ("[1000000000] bool ", 64, vec![], misplaced),
        (list, 24, vec![1 << 60, 4, 4], no_value),
        (list, 24, vec![64, u64::MAX, 1], no_value),
        ("Any:8:8 { tag:u8 A=1 ( a@8:0 () ) B=255 } ", 8, vec![2], "root: this is no value of its type"),
    ];
    for (layout, size, words, what) in cases {
        let (_dir, mut heap) = described(layout, size, &words);
        let audit = heap.audit().unwrap();
        let found: Vec<_> = audit.findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(found, [what], "{layout}");
        assert_eq!((audit.roots[0].described, &audit.roots[0].why_not), (true, &None));
    }
}

#[test]
fn findings_are_limited_in_number_and_length() {
    let name = "n".repeat(500_000);
    let count = 1 << 20;
    let layout = format!("Any:{count}:1 {{ {name}@0:{count} [{count}] bool }} ");
    let (_dir, mut heap) = described(&layout, count, &vec![u64::MAX; count as usize / 8]);
    let audit = heap.audit().unwrap();
    assert_eq!(audit.findings.len(), 10_001);
    assert!(audit.findings.iter().all(|finding| finding.what.len() < 1100));
    let last = &audit.findings[10_000].what;
    assert_eq!(*last, format!("{} more findings of the same audit", count - 10_000));
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
    let why = audit.roots[1].why_not.as_deref().unwrap();
    assert_eq!(why, format!("the description is not that of fingerprint {:032x}", root.fingerprint));
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
