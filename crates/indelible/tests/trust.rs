//! The limits of trust: bytes of unknown origin are not used by type before the heap was verified.
//! These programs have no unsafe code: safe code reaches all that they reach.
#![forbid(unsafe_code)]

use crate::forged::{LIST, Planted, format, list, pool, types};
use indelible::collections::{PBox, PHashMap, PMutex, PString, PVec, RootTypes};
use indelible::{ErrorKind, Heap, Pool, PoolOptions, ReadHeap};
use std::panic::AssertUnwindSafe;

fn untrusted(heap: &mut Heap) {
    let error = heap.root_mut::<PVec<Planted>>(LIST).err().expect("not to be used by type");
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    let text = error.to_string();
    assert!(text.contains("\"list\"") && text.contains("Heap::verify"), "{text}");
    assert_eq!(heap.root_ref::<PVec<Planted>>(LIST).err().unwrap().kind(), ErrorKind::Untrusted);
    assert_eq!(heap.root_or_default::<PVec<Planted>>(LIST).err().unwrap().kind(), ErrorKind::Untrusted);
    assert_eq!(heap.root_and_heap::<PVec<Planted>>(LIST).err().unwrap().kind(), ErrorKind::Untrusted);
    assert_eq!(heap.drop_root::<PVec<Planted>>(LIST).err().unwrap().kind(), ErrorKind::Untrusted);
}

#[test]
fn an_object_stored_by_typed_code_is_opened_without_a_walk() {
    let (_dir, pool) = pool();
    format(&pool);
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!(list(&mut heap).len(), 3);
    list(&mut heap).push(Planted { text: PString::new(), number: 4 });
    heap.psync().unwrap();
    let object = heap.into_object();
    assert_eq!(object.as_slice().len(), object.len());
    let mut heap = Heap::open(object).unwrap();
    assert_eq!(list(&mut heap).len(), 4);
}

#[test]
fn check_finds_nothing_wrong_with_typed_objects() {
    let (_dir, pool) = pool();
    format(&pool);
    let check = || {
        let found = indelible::check(pool.path(), &PoolOptions::new(), &mut |_, _| {}).unwrap();
        assert!(found.is_clean() && found.findings.is_empty(), "{found:?}");
    };
    check();
    let heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    check();
    drop(heap);
    check();
}

/// A vector's block contains its own header: storing to elements changes its pointer.
#[test]
fn a_container_whose_block_overlaps_itself_is_not_used() {
    let (_dir, pool) = pool();
    format(&pool);
    let heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    let root = heap.root_any(LIST).unwrap().address;
    let base = heap.base().addr();
    let mut object = heap.into_object();
    let header: Vec<u8> = [root as u64, 1, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    object.range_mut(root - base..root - base + 24).copy_from_slice(&header);
    let mut heap = Heap::open(object).unwrap();
    untrusted(&mut heap);
    let error = heap.heap_ref().unwrap_err();
    assert!(error.kind() == ErrorKind::Untrusted && error.to_string().contains("typed code"), "{error}");
    assert_eq!(heap.check(), [], "the heap's own data are right");
    let findings = heap.check_roots(&types());
    assert!(findings.iter().any(|finding| finding.what.contains("two owners")), "{findings:?}");
    assert_eq!(heap.verify(&types()).unwrap_err().kind(), ErrorKind::Damaged);
    untrusted(&mut heap);
    heap.psync().unwrap();
    drop(heap);
    untrusted(&mut Heap::open(pool.attach("heap").unwrap()).unwrap());
    let heap = ReadHeap::open(pool.attach_read("heap").unwrap()).unwrap();
    assert_eq!(heap.check_roots(&types()), findings);
}

#[test]
fn bytes_that_were_lent_are_verified_once() {
    type Lend = fn(&mut indelible::Object);
    let ways: [(&str, Lend); 5] = [
        ("as_mut_slice", |object| object.as_mut_slice()[8000] = 0),
        ("range_mut", |object| object.range_mut(8000..8001)[0] = 0),
        ("root_mut", |object| object.root_mut::<[u8; 64]>().unwrap()[63] |= 0),
        ("as_mut_ptr", |object| assert!(!object.as_mut_ptr().is_null())),
        ("share", |object| assert!(object.share::<[std::sync::atomic::AtomicU64; 2]>().is_ok())),
    ];
    let (_dir, pool) = pool();
    format(&pool);
    for (way, lend) in ways {
        eprintln!("{way}");
        let mut object = pool.attach("heap").unwrap();
        lend(&mut object);
        let mut heap = Heap::open(object).unwrap();
        untrusted(&mut heap);
        drop(heap);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        assert_eq!(list(&mut heap).len(), 3);
        let mut object = heap.into_object();
        lend(&mut object);
        object.psync().unwrap();
        drop(object);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        untrusted(&mut heap);
        heap.verify(&types()).unwrap();
        assert_eq!(list(&mut heap).len(), 3);
        drop(heap);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        untrusted(&mut heap);
        heap.verify(&types()).unwrap();
        heap.psync().unwrap();
        drop(heap);
        assert_eq!(list(&mut Heap::open(pool.attach("heap").unwrap()).unwrap()).len(), 3);
    }
}

#[test]
fn bytes_that_were_lent_before_there_was_a_heap_are_foreign_to_it() {
    let (_dir, pool) = pool();
    let mut object = pool.create_attached("heap", 1 << 20).unwrap();
    object.as_mut_slice()[4096..].fill(0xa5);
    let mut heap = Heap::format(object).unwrap();
    assert_eq!(heap.check(), []);
    let error = heap.root_or_default::<PVec<u64>>("numbers").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Untrusted);
    heap.verify(&RootTypes::new()).unwrap();
    heap.root_or_default::<PVec<u64>>("numbers").unwrap().extend([1_u64, 2]);
    heap.psync().unwrap();
    drop(heap);
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!(*heap.root_mut::<PVec<u64>>("numbers").unwrap(), [1, 2]);
}

#[test]
fn roots_that_are_verified_may_be_used_and_others_not() {
    let (_dir, pool) = pool();
    format(&pool);
    let mut object = pool.attach("heap").unwrap();
    object.as_mut_slice()[8000] = 0;
    let mut heap = Heap::open(object).unwrap();
    heap.verify(&RootTypes::new().root::<PHashMap<PString, PBox<u64>>>("map").root::<u64>("none")).unwrap();
    assert_eq!(*heap.root_mut::<PHashMap<PString, PBox<u64>>>("map").unwrap()["a"], 1);
    untrusted(&mut heap);
    assert_eq!(*heap.root_or_insert_with::<u64, _>("new", |_| 7_u64).unwrap(), 7);
    heap.psync().unwrap();
    drop(heap);
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!(heap.root_mut::<u64>("new").err().unwrap().kind(), ErrorKind::Untrusted);
    untrusted(&mut heap);
    let error = heap.verify(&RootTypes::new().root::<PVec<u64>>(LIST)).unwrap_err();
    assert!(error.to_string().contains("another type"), "{error}");
}

#[test]
fn a_growth_and_a_rename_change_nothing() {
    let (_dir, pool) = pool();
    format(&pool);
    pool.create("behind", 1 << 20).unwrap();
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    heap.grow(6 << 20).unwrap();
    heap.psync().unwrap();
    drop(heap);
    pool.resize("heap", 7 << 20, b"").unwrap();
    pool.rename("heap", "other", b"").unwrap();
    let mut heap = Heap::open(pool.attach("other").unwrap()).unwrap();
    assert_eq!(list(&mut heap).len(), 3);
    drop(heap);
    pool.destroy("other").unwrap();
    let mut object = pool.create_attached("other", 1 << 20).unwrap();
    object.as_mut_slice()[8000] = 1;
    object.psync().unwrap();
    drop(object);
    let mut heap = Heap::format(pool.attach("other").unwrap()).unwrap();
    assert_eq!(heap.root_or_default::<u64>("number").unwrap_err().kind(), ErrorKind::Untrusted);
}

#[test]
fn nothing_in_an_untrusted_pool_is_used_before_it_was_verified() {
    let (dir, pool) = pool();
    format(&pool);
    drop(pool);
    let path = dir.path().join("pool.pmo");
    let options = PoolOptions::new().untrusted(true);
    let pool = options.open(&path).unwrap();
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    untrusted(&mut heap);
    heap.verify(&types()).unwrap();
    assert_eq!(list(&mut heap).len(), 3);
    heap.psync().unwrap();
    drop(heap);
    untrusted(&mut Heap::open(pool.attach("heap").unwrap()).unwrap());
    drop(pool);
    let pool = Pool::open(&path).unwrap();
    assert_eq!(list(&mut Heap::open(pool.attach("heap").unwrap()).unwrap()).len(), 3);
}

/// Atomics in a reader's pages could not be stored to.
#[test]
fn a_reader_is_refused_types_with_atomics() {
    use std::sync::atomic::AtomicU64;
    let (_dir, pool) = pool();
    let mut heap = Heap::format(pool.create_attached("heap", 1 << 20).unwrap()).unwrap();
    heap.root_or_default::<PVec<AtomicU64>>("hits").unwrap().push(AtomicU64::new(7));
    heap.root_or_insert_with::<PMutex<u64>, _>("lock", |heap| PMutex::new_in(7_u64, heap)).unwrap();
    heap.psync().unwrap();
    drop(heap);
    let heap = ReadHeap::open(pool.attach_read("heap").unwrap()).unwrap();
    let error = heap.root_ref::<PVec<AtomicU64>>("hits").expect_err("atomics");
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(error.to_string().contains("AtomicU64> has atomics"), "{error}");
    let lock = heap.root_ref::<PMutex<u64>>("lock").unwrap();
    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| drop(lock.lock()))).unwrap_err();
    assert!(panic.downcast::<String>().unwrap().contains("attached for reading"));
}
