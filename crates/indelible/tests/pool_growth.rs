use crate::support::{Ground, POOL, World, everywhere};
use indelible::collections::PVec;
use indelible::{CreateOptions, ErrorKind, Tracking};

const MIB: usize = 1 << 20;

#[test]
fn an_object_grows_into_the_new_space_where_it_stands() {
    everywhere(|world| {
        let pool = world.format();
        drop(pool.create_attached("first", 4096).unwrap());
        let free = pool.info().unwrap().largest_free as usize;
        let options = CreateOptions::new((free - MIB) as u64).sparse(true).reach(4 * POOL);
        pool.create_with("a", &options).unwrap();
        let mut a = pool.attach("a").unwrap();
        let old = a.len();
        a.range_mut(old - 5000..old).fill(1);
        a.psync().unwrap();
        a.range_mut(old - 100..old).fill(2);
        assert_eq!(a.grow((old + 8 * MIB) as u64).unwrap_err().kind(), ErrorKind::NoRoom);
        assert_eq!(pool.grow(3 * POOL).unwrap(), 3 * POOL);
        a.grow((old + 8 * MIB) as u64).unwrap();
        let new = a.len();
        for byte in 3..6 {
            a.range_mut(new - 9000..new).fill(byte);
            a.range_mut(old - 50..old + 50).fill(byte);
            a.psync().unwrap();
        }
        drop((a, pool));
        let pool = world.open();
        assert_eq!(pool.info().unwrap().length, 3 * POOL);
        let a = pool.attach_read("a").unwrap();
        let bytes = a.as_slice();
        assert!(bytes[new - 9000..].iter().all(|byte| *byte == 5), "the new bytes");
        assert!(bytes[old - 50..old + 50].iter().all(|byte| *byte == 5), "the seam");
        assert_eq!((bytes[old - 51], bytes[old - 101], bytes[old + 50]), (2, 1, 0));
    });
}

#[test]
fn heaps_of_a_pool_that_grows_again_and_again_keep_what_they_have() {
    everywhere(|world| {
        let pool = world.format();
        let mut heaps = Vec::new();
        for n in 0..4_u64 {
            pool.grow(POOL << n).unwrap();
            let mut heap = pool.heap(&format!("{n}"), 4 << 20).unwrap();
            heap.root_or_default::<PVec<u64>>("numbers").unwrap().push(n);
            heap.psync().unwrap();
            heaps.push(heap);
            let free = pool.info().unwrap().largest_free;
            pool.create_with(&format!("filling {n}"), &CreateOptions::new(free).sparse(true)).unwrap();
        }
        for (n, heap) in heaps.iter_mut().enumerate() {
            let numbers = heap.root_mut::<PVec<u64>>("numbers").unwrap();
            assert_eq!(numbers[0], n as u64);
            numbers.resize(100_000, 7);
            heap.psync().unwrap();
        }
        drop((heaps, pool));
        let pool = world.open();
        for n in 0..4_u64 {
            let mut heap = pool.heap(&format!("{n}"), 4 << 20).unwrap();
            let numbers = heap.root_ref::<PVec<u64>>("numbers").unwrap();
            assert_eq!((numbers[0], numbers.len(), numbers[99_999]), (n, 100_000, 7));
            assert!(heap.check().is_empty());
        }
    });
}

#[test]
fn a_pool_becomes_no_shorter_and_says_so() {
    let world = World::new(Ground::File, Tracking::Mprotect, false);
    let pool = world.format();
    let error = pool.grow(POOL / 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadSize);
    let text = error.to_string();
    assert!(text.starts_with("cannot grow pool ") && text.contains("becomes longer, not shorter"), "{text}");
    let reading = world.options().read_only(true).open(world.path()).unwrap();
    assert_eq!(reading.grow(2 * POOL).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(pool.info().unwrap().length, POOL);
}
