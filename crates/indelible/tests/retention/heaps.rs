use indelible::{Heap, Pool};
use tempfile::TempDir;

pub const SIZE: u64 = 2 << 20;

pub fn made() -> (TempDir, Heap) {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let heap = Heap::format(pool.create_attached("o", SIZE).unwrap()).unwrap();
    (dir, heap)
}

pub fn again(dir: &TempDir, heap: Heap) -> Heap {
    drop(heap);
    let pool = Pool::open(dir.path().join("p")).unwrap();
    Heap::open(pool.attach("o").unwrap()).unwrap()
}

#[track_caller]
pub fn sound(heap: &mut Heap) -> u64 {
    assert_eq!(heap.check(), []);
    let audit = heap.audit().unwrap();
    assert_eq!((&audit.findings[..], &audit.leaks[..]), (&[][..], &[][..]));
    let undescribed = audit.roots.iter().find(|root| root.why_not.is_some());
    assert_eq!(undescribed.map(|root| (&root.name, &root.why_not)), None);
    audit.blocks
}

pub fn fill(heap: &Heap) -> Vec<std::ptr::NonNull<u8>> {
    let sizes = [100_000, 4096, 512, 64, 48, 32, 16];
    sizes.into_iter().flat_map(|size| std::iter::from_fn(move || heap.malloc(size).ok())).collect()
}

pub fn release(heap: &Heap, blocks: Vec<std::ptr::NonNull<u8>>) {
    for block in blocks {
        // SAFETY: a block of the heap, known to no other code.
        unsafe { heap.free(block.as_ptr()) }.unwrap();
    }
}
