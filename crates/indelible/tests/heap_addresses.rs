use crate::support::{Ground, POOL, World, everywhere};
use indelible::collections::PVec;
use indelible::{CreateOptions, ErrorKind, Heap, HeapOptions, Pool, Tracking};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn hemmed_in(world: &World, size: u64) -> Pool {
    let pool = world.format();
    drop(pool.create_attached("first", 4096).unwrap());
    let how = |size: u64, reach: u64| CreateOptions::new(size).reach(reach);
    pool.create_with("hole", &how(64 * KIB, 512 * KIB)).unwrap();
    pool.create_with("a", &how(size, size)).unwrap();
    pool.destroy("hole").unwrap();
    pool.create_with("in the way", &how(128 * KIB, 128 * KIB)).unwrap();
    let (a, other) = (pool.stat("a").unwrap(), pool.stat("in the way").unwrap());
    assert_eq!((a.reach, a.offset + a.extent), (size, other.offset));
    assert!(other.address < a.address);
    pool
}

#[test]
fn an_object_grows_into_free_addresses_wherever_its_pages_go() {
    for size in [192 * KIB, MIB] {
        everywhere(|world| {
            let pool = hemmed_in(world, size);
            let address = pool.stat("a").unwrap().address;
            pool.resize("a", 2 * size, b"").unwrap();
            let mut a = pool.attach("a").unwrap();
            a.as_mut_slice().fill(7);
            a.psync().unwrap();
            a.grow(5 * size).unwrap();
            assert!(a.as_slice()[..2 * size as usize].iter().all(|byte| *byte == 7));
            drop(a);
            let stat = pool.stat("a").unwrap();
            assert_eq!((stat.address, stat.reach, stat.size), (address, 5 * size, 5 * size));
        });
    }
}

#[test]
fn a_heap_grows_into_free_addresses_wherever_its_pages_go() {
    everywhere(|world| {
        let pool = hemmed_in(world, MIB);
        pool.set_reach("a", b"", 8 * MIB).unwrap();
        let object = pool.attach("a").unwrap();
        let mut heap = Heap::format_with(object, HeapOptions::new().grow(true)).unwrap();
        heap.root_or_default::<PVec<u64>>("numbers").unwrap().extend(0..300_000);
        heap.psync().unwrap();
        assert!(heap.size() as u64 > 2 * MIB);
        assert_eq!(heap.check(), []);
    });
}

fn filled(heap: &Heap) -> String {
    loop {
        if let Err(error) = heap.malloc(100_000) {
            assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
            return error.to_string();
        }
    }
}

#[test]
fn a_heap_goes_on_in_a_pool_that_becomes_longer() {
    everywhere(|world| {
        let pool = world.format();
        let heap = pool.heap("h", MIB).unwrap();
        let behind = pool.heap("behind", 64 * KIB).unwrap();
        for times in [1, 2, 5] {
            pool.grow(times * POOL).unwrap();
            let said = filled(&heap);
            assert!(said.contains("the pool has no free piece that is large enough"), "{said}");
            assert!(heap.size() as u64 > times * POOL / 4, "{} of {}", heap.size(), times * POOL);
        }
        drop((heap, behind));
        let reach = pool.stat("behind").unwrap().reach;
        assert!(reach >= 8 * POOL, "{reach}");
        pool.set_reach("behind", b"", 2 * reach).unwrap();
        assert_eq!(pool.stat("behind").unwrap().reach, 2 * reach);
    });
}

#[test]
fn addresses_behind_an_object_are_kept_if_they_are_free() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let how = |reach: u64| CreateOptions::new(64 * KIB).reach(reach);
    pool.create_with("h", &how(256 * KIB)).unwrap();
    let open = || {
        let object = pool.attach("h").unwrap();
        Heap::open_or_format_with(object, HeapOptions::new().grow(true)).unwrap()
    };
    let mut heap = open();
    let said = filled(&heap);
    assert!(said.contains("its address range ends there") && said.contains("`pmo set --reach`"), "{said}");
    pool.set_reach("h", b"", MIB).unwrap();
    pool.set_reach("h", b"", MIB).unwrap();
    heap.psync().unwrap();
    drop(heap);
    let mut heap = open();
    filled(&heap);
    assert_eq!((heap.size() as u64, pool.stat("h").unwrap().reach), (MIB, MIB));
    heap.psync().unwrap();
    drop(heap);
    assert_eq!(pool.set_reach("h", b"", 64 * KIB).unwrap_err().kind(), ErrorKind::BadSize);
    assert_eq!(pool.set_reach("none", b"", MIB).unwrap_err().kind(), ErrorKind::NotFound);
    pool.snapshot("h", "s", b"").unwrap();
    assert_eq!(pool.set_reach("s", b"", 2 * MIB).unwrap_err().kind(), ErrorKind::NoAddresses);
    pool.create_with("wall", &how(64 * KIB)).unwrap();
    assert_eq!(pool.set_reach("h", b"", 2 * MIB).unwrap_err().kind(), ErrorKind::NoAddresses);
    assert_eq!(pool.stat("h").unwrap().reach, MIB);
    pool.destroy("wall").unwrap();
    pool.set_reach("h", b"", 2 * MIB).unwrap();
    drop(pool);
    assert_eq!(world.open().stat("h").unwrap().reach, 2 * MIB);
}
