use indelible::collections::PVec;
use indelible::{Class, CreateOptions, ErrorKind, Heap, Pool, PoolOptions, SecurityContext, Severity, View};
use indelible_store::table::Key;

const MIB: u64 = 1 << 20;

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    (folder, path)
}

fn needed(pool: &Pool, size: u64) -> u64 {
    let refused = pool.resize("o", size, b"").expect_err("live data would be cut off");
    assert_eq!(refused.kind(), ErrorKind::BadSize, "{refused}");
    let text = refused.to_string();
    let number = text.split_once(" needs ").and_then(|(_, rest)| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

fn errors(path: &std::path::Path) -> Vec<String> {
    let report = indelible::check(path, &PoolOptions::new(), &mut |_, _| {}).unwrap();
    let errors = report.findings.into_iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.what).collect()
}

#[test]
fn the_heap_of_a_sealed_object_does_not_become_shorter() {
    let (_folder, path) = folder();
    let (pool, key) = (Pool::format(&path, 64 * MIB).unwrap(), crate::support::seal_key());
    pool.create_with("s", &CreateOptions::new(4 * MIB).sealed(&key, "")).unwrap();
    let mut heap = Heap::format(pool.attach_sealed("s", b"", &key).unwrap()).unwrap();
    heap.psync().unwrap();
    heap.into_object().detach().unwrap();
    let refused = pool.resize_sealed("s", MIB, b"", &key).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BadSize);
    assert!(refused.to_string().contains("needs 4194304 bytes"), "{refused}");
    assert!(refused.remedy().contains("the heap of a sealed object does not become shorter"), "{refused}");
}

#[test]
pub fn s0_07_a_heap_gives_what_is_free_at_its_end_and_no_more() {
    let (_folder, path) = folder();
    let pool = Pool::format(&path, 64 * MIB).unwrap();
    let mut heap = pool.heap("o", MIB).unwrap();
    heap.root_or_default::<PVec<u64>>("kept").unwrap().extend(0..1000);
    heap.root_or_default::<PVec<u64>>("long").unwrap().extend(0..1_000_000);
    heap.psync().unwrap();
    heap.into_object().detach().unwrap();

    assert!(needed(&pool, MIB) > 8 * MIB);
    let mut heap = pool.heap("o", MIB).unwrap();
    let long = heap.root_mut::<PVec<u64>>("long").unwrap();
    assert!(long.iter().copied().eq(0..1_000_000));
    long.truncate(10);
    long.shrink_to_fit();
    heap.psync().unwrap();
    heap.into_object().detach().unwrap();

    let least = needed(&pool, 4096);
    assert!(least < pool.stat("o").unwrap().size);
    pool.resize("o", least, b"").unwrap();
    assert_eq!(pool.stat("o").unwrap().size, least);
    let mut heap = pool.heap("o", MIB).unwrap();
    assert_eq!(heap.check(), []);
    assert!(heap.root_mut::<PVec<u64>>("kept").unwrap().iter().copied().eq(0..1000));
    assert!(heap.root_mut::<PVec<u64>>("long").unwrap().iter().copied().eq(0..10));

    heap.root_mut::<PVec<u64>>("long").unwrap().extend(10..1_000_000);
    heap.psync().unwrap();
    assert_eq!(heap.check(), []);
    heap.into_object().detach().unwrap();
    let mut heap = pool.heap("o", MIB).unwrap();
    assert!(heap.root_mut::<PVec<u64>>("kept").unwrap().iter().copied().eq(0..1000));
    assert!(heap.root_mut::<PVec<u64>>("long").unwrap().iter().copied().eq(0..1_000_000));
    heap.into_object().detach().unwrap();
    drop(pool);
    assert_eq!(errors(&path), Vec::<String>::new());
}

#[test]
pub fn s0_07_a_transactional_heap_with_check_words_gives_up_its_end() {
    use indelible::collections::transactional::TxHashMap;

    let (_folder, path) = folder();
    let pool = Pool::format(&path, 64 * MIB).unwrap();
    let how = CreateOptions::new(8 * MIB).class(Class::Transactional).ecc(true);
    pool.create_with("o", &how).unwrap();
    let heap = pool.transactional_heap("o", MIB).unwrap();
    let map = heap.root_or_default::<TxHashMap<u64, u64>>("map").unwrap();
    for key in 0..100 {
        heap.transaction(|tx| map.insert(tx, key, key + 1)).unwrap();
    }
    heap.detach().unwrap();

    let least = needed(&pool, 4096);
    assert!(least < 4 * MIB);
    pool.resize("o", least, b"").unwrap();
    let heap = pool.transactional_heap("o", MIB).unwrap();
    assert_eq!(heap.check().unwrap(), []);
    assert_eq!(heap.size() as u64, least);
    let map = heap.root_or_default::<TxHashMap<u64, u64>>("map").unwrap();
    for key in 0..100 {
        assert_eq!(heap.transaction(|tx| map.get(tx, key)).unwrap(), Some(key + 1));
    }
    heap.detach().unwrap();
    assert_eq!(pool.scrub("o", b"", &mut |_, _| {}).unwrap().lost, Vec::<u64>::new());
}

#[test]
pub fn a_view_and_a_security_context_keep_their_entries() {
    let (_folder, path) = folder();
    let pool = Pool::format(&path, 64 * MIB).unwrap();
    drop(View::create(&pool, "o", 1000).unwrap());
    assert_eq!(needed(&pool, 4096), 64 + 32 * 1000);
    pool.resize("o", 64 + 32 * 1000, b"").unwrap();
    assert_eq!(View::open(&pool, "o").unwrap().slots(), 1000);
    pool.destroy("o").unwrap();
    drop(SecurityContext::create(&pool, "o", 1000).unwrap());
    assert_eq!(needed(&pool, 4096), 64 + 128 * 1000);
    pool.resize("o", 64 + 128 * 1000, b"").unwrap();
    assert_eq!(SecurityContext::open(&pool, "o").unwrap().room(), 1000);
}

#[test]
fn a_check_finds_a_heap_and_an_array_longer_than_their_objects() {
    let (_folder, path) = folder();
    let pool = Pool::format(&path, 64 * MIB).unwrap();
    let mut heap = pool.heap("heap", MIB).unwrap();
    heap.psync().unwrap();
    heap.into_object().detach().unwrap();

    let description = br#"[["a", "<i4"], ["b", "<f8", [3]]]"#;
    let mut header = [0; 128];
    header[..8].copy_from_slice(b"PMO-NDAR");
    header[8..12].copy_from_slice(&1_u32.to_le_bytes());
    header[16..20].copy_from_slice(&4096_u32.to_le_bytes());
    header[24..26].copy_from_slice(&[1, b'C']);
    header[28..32].copy_from_slice(&(description.len() as u32).to_le_bytes());
    header[32..40].copy_from_slice(&1000_u64.to_le_bytes());
    header[40..40 + description.len()].copy_from_slice(description);
    let mut object = pool.create_attached("o", 64 << 10).unwrap();
    object.as_mut_slice()[..128].copy_from_slice(&header);
    object.psync().unwrap();
    object.detach().unwrap();
    assert_eq!(needed(&pool, 30_000), 4096 + 28 * 1000);
    pool.resize("o", 4096 + 28 * 1000, b"").unwrap();
    pool.create("bytes", 64 << 10).unwrap();
    pool.resize("bytes", 10, b"").unwrap();

    pool.store().resize("heap", Key(b""), 64 << 10).unwrap();
    pool.store().resize("o", Key(b""), 8192).unwrap();
    drop(pool);
    let mut found = errors(&path);
    found.sort_unstable();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("array has 32096 bytes") && found[1].contains("heap has 1048576 bytes"),
        "{found:?}"
    );
}
