use super::support::{World, everywhere};
use indelible::collections::PVec;
use indelible::{CreateOptions, ErrorKind, Pool};

const PAGE: usize = 4096;
const SIZE: usize = 600 * PAGE + 100;

fn other(world: &World) -> Pool {
    world.options().format(world.dir().join("other.pmo"), 64 << 20).unwrap()
}

fn filled(pool: &Pool, options: &CreateOptions, key: &[u8]) -> Vec<u8> {
    pool.create_with("a", options).unwrap();
    let mut a = pool.attach_with_key("a", key).unwrap();
    for at in [0, 300 * PAGE + 17, SIZE - 9] {
        a.range_mut(at..at + 9).copy_from_slice(b"some data");
    }
    a.psync().unwrap();
    let bytes = a.as_slice().to_vec();
    a.detach().unwrap();
    bytes
}

#[track_caller]
fn holds(pool: &Pool, name: &str, key: &[u8], expected: &[u8]) {
    let object = pool.attach_read_with_key(name, key).unwrap();
    assert!(object.as_slice() == expected, "{name}");
}

#[test]
fn s2_04_an_object_moves_from_medium_to_medium() {
    everywhere(|world| {
        let (pool, other) = (world.format(), other(world));
        let bytes = filled(&pool, &CreateOptions::new(SIZE as u64).key(b"k"), b"k");
        pool.snapshot("a", "s", b"k").unwrap();
        let before = pool.stat("a").unwrap();
        let kind = |result: indelible::Result<()>| result.unwrap_err().kind();
        let mut silent = |_, _| {};
        assert_eq!(kind(pool.move_to("a", b"wrong", &other, &mut silent)), ErrorKind::WrongKey);
        assert_eq!(kind(pool.move_to("b", b"", &other, &mut silent)), ErrorKind::NotFound);
        assert_eq!(kind(pool.move_to("s", b"k", &other, &mut silent)), ErrorKind::ObjectReadOnly);
        let reader = pool.attach_read_with_key("a", b"k").unwrap();
        assert_eq!(kind(pool.move_to("a", b"k", &other, &mut silent)), ErrorKind::Held);
        drop(reader);
        let mut told = Vec::new();
        pool.move_to("a", b"k", &other, &mut |done, total| told.push((done, total))).unwrap();
        assert!(told.is_sorted() && told.last() == Some(&(SIZE as u64, SIZE as u64)), "{told:?}");
        assert_eq!(pool.stat("a").unwrap_err().kind(), ErrorKind::NotFound);
        let there = other.stat("a").unwrap();
        let known = |stat: &indelible::Stat| {
            (stat.id, stat.size, stat.address, stat.reach, stat.psyncs, stat.created)
        };
        assert_eq!(known(&there), known(&before));
        holds(&other, "a", b"k", &bytes);
        holds(&pool, "s", b"k", &bytes);
        let mut changed = bytes.clone();
        let mut a = other.attach_with_key("a", b"k").unwrap();
        a.range_mut(50..60).fill(5);
        changed[50..60].fill(5);
        a.psync().unwrap();
        a.grow(SIZE as u64 + 9000).unwrap();
        changed.resize(SIZE + 9000, 0);
        a.detach().unwrap();
        other.snapshot("a", "there", b"k").unwrap();
        other.move_to("a", b"k", &pool, &mut silent).unwrap();
        holds(&pool, "a", b"k", &changed);
        assert_eq!(
            (pool.stat("a").unwrap().id, pool.stat("a").unwrap().address),
            (before.id, before.address)
        );
        drop((pool, other));
        holds(&world.open(), "a", b"k", &changed);
        for path in [world.path(), world.dir().join("other.pmo")] {
            if path.exists() {
                let report = indelible::check(path, &world.options(), &mut |_, _| {}).unwrap();
                assert!(report.findings.is_empty(), "{:?}", report.findings);
            }
        }
    });
}

#[test]
fn objects_are_copied_to_other_pools() {
    everywhere(|world| {
        let (pool, other) = (world.format(), other(world));
        let keys = CreateOptions::new(SIZE as u64).read_key(b"read").write_key(b"write").sparse(true);
        let bytes = filled(&pool, &keys, b"write");
        pool.snapshot("a", "s", b"write").unwrap();
        let mut a = pool.attach_with_key("a", b"write").unwrap();
        a.range_mut(7..8).fill(7);
        let mut silent = |_, _| {};
        pool.copy_to("a", b"write", &other, "beside", &mut silent).unwrap();
        a.psync().unwrap();
        pool.copy_to("s", b"write", &other, "then", &mut silent).unwrap();
        a.detach().unwrap();
        pool.copy_to("a", b"write", &other, "now", &mut silent).unwrap();
        let mut changed = bytes.clone();
        changed[7] = 7;
        holds(&other, "now", b"write", &changed);
        for name in ["beside", "then"] {
            assert!(
                other.stat(name).unwrap().id != pool.stat("a").unwrap().id
                    && !other.stat(name).unwrap().read_only
            );
            assert_eq!(other.attach_read(name).unwrap_err().kind(), ErrorKind::WrongKey);
            holds(&other, name, b"write", &bytes);
        }
        let error = pool.copy_to("a", b"write", &other, "then", &mut silent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert!(error.to_string().contains("cannot create object \"then\""), "{error}");
    });
}

#[test]
fn s2_04_a_volatile_object_moves_as_one() {
    everywhere(|world| {
        let (pool, other) = (world.format(), other(world));
        let bytes = filled(&pool, &CreateOptions::new(SIZE as u64).volatile(true), b"");
        pool.copy_to("a", b"", &other, "copy", &mut |_, _| {}).unwrap();
        pool.move_to("a", b"", &other, &mut |_, _| {}).unwrap();
        let volatile = ["a", "copy"].map(|name| other.stat(name).unwrap().volatile);
        assert_eq!(volatile, [true, false]);
        holds(&other, "a", b"", &bytes);
        holds(&other, "copy", b"", &bytes);
    });
}

/// Two pools' windows may coincide: a move does not fail because another object owns the addresses.
#[test]
fn s2_04_objects_move_where_their_addresses_are_owned() {
    everywhere(|world| {
        let pool = world.format();
        let info = pool.info().unwrap();
        let options = world.options().window(info.window, info.window_len);
        let other = options.format(world.dir().join("other.pmo"), 64 << 20).unwrap();
        let bytes = filled(&pool, &CreateOptions::new(SIZE as u64), b"");
        other.create("owner", SIZE as u64).unwrap();
        assert_eq!(other.stat("owner").unwrap().address, pool.stat("a").unwrap().address);
        let mut silent = |_, _| {};
        pool.copy_to("a", b"", &other, "copy", &mut silent).unwrap();
        pool.move_to("a", b"", &other, &mut silent).unwrap();
        for name in ["copy", "a"] {
            holds(&other, name, b"", &bytes);
        }
        let owner = other.attach("owner").unwrap();
        assert_eq!(other.attach_read("a").unwrap_err().kind(), ErrorKind::AddressTaken);
        owner.detach().unwrap();
        other.move_to("a", b"", &pool, &mut silent).unwrap();
        pool.create("next", SIZE as u64).unwrap();
        assert_ne!(pool.stat("next").unwrap().address, pool.stat("a").unwrap().address);
        holds(&pool, "a", b"", &bytes);
    });
}

#[test]
fn a_move_that_does_not_fit_changes_nothing() {
    everywhere(|world| {
        let pool = world.format();
        let small = world.options().format(world.dir().join("small.pmo"), 2 << 20).unwrap();
        let bytes = filled(&pool, &CreateOptions::new(SIZE as u64), b"");
        let free = small.info().unwrap().free;
        for result in [
            pool.move_to("a", b"", &small, &mut |_, _| {}),
            pool.copy_to("a", b"", &small, "b", &mut |_, _| {}),
        ] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::NoRoom);
        }
        assert_eq!((small.info().unwrap().free, small.list().count()), (free, 0));
        holds(&pool, "a", b"", &bytes);
    });
}

#[test]
fn a_heap_that_moves_is_the_heap_that_it_was() {
    everywhere(|world| {
        let (pool, other) = (world.format(), other(world));
        let mut heap = pool.heap("list", 1 << 20).unwrap();
        heap.root_or_default::<PVec<u64>>("numbers").unwrap().extend(0..5000);
        heap.psync().unwrap();
        drop(heap);
        pool.move_to("list", b"", &other, &mut |_, _| {}).unwrap();
        let mut heap = other.heap("list", 1 << 20).unwrap();
        let numbers = heap.root_or_default::<PVec<u64>>("numbers").unwrap();
        assert!(numbers.iter().copied().eq(0..5000));
        numbers.push(1);
        heap.psync().unwrap();
    });
}

#[test]
fn a_copy_of_a_pool_beside_its_original_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [original, copy] = ["original.pmo", "copy.pmo"].map(|name| dir.path().join(name));
    let pool = Pool::format(&original, 16 << 20).unwrap();
    let mut object = pool.create_attached("a", 4096).unwrap();
    *object.root_mut::<u64>().unwrap() = 1;
    object.psync().unwrap();
    object.detach().unwrap();
    std::fs::copy(&original, &copy).unwrap();
    let error = Pool::open(&copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsuitable);
    for part in ["a copy of pool", original.to_str().unwrap(), "one of them at a time", "`pmo clone`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    drop(pool);
    let pool = Pool::open(&copy).unwrap();
    assert_eq!(Pool::open(&original).unwrap_err().kind(), ErrorKind::Unsuitable);
    *pool.attach("a").unwrap().root_mut::<u64>().unwrap() = 2;
    drop(pool);
    assert_eq!(*Pool::open(&original).unwrap().attach("a").unwrap().root::<u64>().unwrap(), 1);
}
