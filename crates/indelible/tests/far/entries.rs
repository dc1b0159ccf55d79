use crate::graph::{Node, free, made};
use crate::references::two_types;
use crate::support::{Ground, World, everywhere, psynced_whole};
use indelible::{
    ErrorKind, Far, FarEntry, FarTarget, Heap, HeapOptions, Pool, ReadHeap, Rights, Tracking, TypeInfo,
};
use indelible_testing::Seeded;

pub fn by_id(number: u32) -> FarEntry {
    let id = (u128::from(number) << 64 | 7).to_be_bytes();
    FarEntry { target: FarTarget::Object(id), rights: Rights::READ }
}

pub fn by_name(name: &str) -> FarEntry {
    FarEntry { target: FarTarget::Name { resolver: "name".into(), name: name.into() }, rights: Rights::READ }
}

fn heap(pool: &Pool, name: &str, size: u64) -> Heap {
    pool.create_with(name, &free(size)).unwrap();
    Heap::format(pool.attach(name).unwrap()).unwrap()
}

#[test]
fn entries_are_found_again_by_number_and_by_what_they_name() {
    everywhere(|world| {
        let pool = world.format();
        let heap = heap(&pool, "o", 16 << 20);
        let entries: Vec<FarEntry> = (0..700)
            .map(|number| {
                if number % 5 == 4 {
                    by_name(&format!("object {number} {}", "x".repeat(number as usize % 90)))
                } else {
                    by_id(number)
                }
            })
            .collect();
        for (number, entry) in (1..).zip(&entries) {
            assert_eq!(heap.far_index(entry).unwrap(), number);
        }
        let mut heap = psynced_whole(world, heap, HeapOptions::new(), "700 entries");
        assert_eq!(heap.check(), []);
        for (number, entry) in (1..).zip(&entries) {
            assert_eq!(heap.far_index(entry).unwrap(), number, "it was there");
            assert_eq!(&heap.far_entry(number).unwrap(), entry);
        }
        let missing = heap.far_entry(701).unwrap_err();
        assert!(
            missing.kind() == ErrorKind::Dangling && missing.to_string().contains("no entry 701"),
            "{missing}"
        );
        assert_eq!(heap.far_entry(0).unwrap_err().kind(), ErrorKind::Dangling);
        assert_eq!(heap.far_entry(u32::MAX).unwrap_err().kind(), ErrorKind::Dangling);
        drop(heap);
        let reading = ReadHeap::open(world.open().attach_read("o").unwrap()).unwrap();
        assert_eq!(reading.check(), []);
        let found: Vec<FarEntry> =
            reading.far_entries().unwrap().into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(found, entries);
    });
}

#[test]
fn a_table_that_counts_too_many_entries_is_damaged() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let heap = heap(&pool, "o", 1 << 20);
    const MOST: u32 = (1 << 24) - 1;
    heap.far_index(&by_id(1)).unwrap();
    let counting = |heap: Heap, count: u32| {
        let mut object = heap.into_object();
        let table = u64::from_le_bytes(object.as_slice()[352..360].try_into().unwrap()) as usize * 4096;
        object.range_mut(table + 8..table + 16).copy_from_slice(&u64::from(count).to_le_bytes());
        Heap::open(object).unwrap()
    };
    let mut heap = counting(heap, MOST);
    assert_eq!(heap.check(), []);
    assert_eq!(heap.far_index(&by_id(2)).unwrap(), 2);
    assert_eq!(heap.far_index(&by_id(3)).unwrap(), 3);
    assert_eq!(heap.far_entry(MOST).unwrap_err().kind(), ErrorKind::Dangling);
    assert_eq!(heap.check(), []);
    let mut heap = counting(heap, MOST + 1);
    assert_eq!(heap.far_index(&by_id(9)).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(heap.far_entry(1).unwrap_err().kind(), ErrorKind::Damaged);
    assert!(heap.check()[0].what.contains("more entries than can be"));
}

#[test]
fn a_full_heap_takes_no_entry_and_loses_none() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = heap(&pool, "o", 256 << 10);
        heap.far_index(&by_id(0)).unwrap();
        let mut blocks: Vec<_> = std::iter::from_fn(|| heap.malloc(4096).ok()).collect();
        let mut added = 1;
        let full = loop {
            match heap.far_index(&by_name(&format!("{added}: {}", "n".repeat(900)))) {
                Ok(_) => added += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::HeapFull);
        assert_eq!(heap.check(), [], "no page is lost");
        heap.psync().unwrap();
        for _ in 0..4 {
            let block = blocks.pop().unwrap();
            // SAFETY: an unused block of this test.
            unsafe { heap.free(block.as_ptr()) }.unwrap();
        }
        assert_eq!(heap.far_index(&by_name(&format!("{added}: {}", "n".repeat(900)))).unwrap(), added + 1);
        assert_eq!(heap.check(), []);
        let growing = psynced_whole(world, heap, HeapOptions::new().grow(true), "a full heap");
        let before = growing.size();
        for number in 0..400 {
            growing.far_index(&by_name(&format!("{number} {}", "m".repeat(1000)))).unwrap();
        }
        assert!(growing.size() > before);
        let mut heap = psynced_whole(world, growing, HeapOptions::new(), "a grown heap");
        assert_eq!(heap.check(), []);
        assert_eq!(heap.far_entries().unwrap().len() as u32, added + 1 + 400);
    });
}

#[test]
fn names_leave_no_page_behind() {
    for seed in 0..6 {
        let world = World::new(Ground::Simulated, Tracking::Auto, false);
        let pool = world.format();
        let (mut heap, mut random) = (heap(&pool, "o", 1 << 20), Seeded::new(seed));
        let mut numbers = Vec::new();
        for step in 0..300 {
            let entry = match random.usize(..3) {
                0 => by_id(step),
                _ => by_name(&format!("{step} {}", "x".repeat(random.usize(..1000)))),
            };
            match random.usize(..4) {
                0 if !numbers.is_empty() => {
                    heap.retarget(numbers[random.usize(..numbers.len())], &entry).unwrap();
                }
                1 if random.usize(..10) == 0 => {
                    assert_eq!(heap.compact_far().unwrap().kept, 0);
                    numbers.clear();
                }
                _ => numbers.push(heap.far_index(&entry).unwrap()),
            }
            assert_eq!(heap.check(), [], "seed {seed}, step {step}");
        }
        heap.psync().unwrap();
        assert!(heap.size() == 1 << 20);
    }
}

#[test]
fn names_have_bounds() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let heap = heap(&world.format(), "o", 1 << 20);
    let named = |resolver: &str, name: &str| FarEntry {
        target: FarTarget::Name { resolver: resolver.into(), name: name.into() },
        rights: Rights::READ,
    };
    let long = |count: usize| "y".repeat(count);
    for (resolver, name, fits) in [
        ("", "a".to_owned(), false),
        ("name", String::new(), false),
        (&*long(255), "a".to_owned(), true),
        (&*long(256), "a".to_owned(), false),
        ("name", long(4092), true),
        ("name", long(4093), false),
        (&*long(255), long(3841), true),
        (&*long(255), long(3842), false),
    ] {
        match heap.far_index(&named(resolver, &name)) {
            Ok(index) => assert!(fits && heap.far_entry(index).unwrap() == named(resolver, &name)),
            Err(error) => assert!(!fits && error.kind() == ErrorKind::BadName, "{error}"),
        }
    }
}

#[test]
pub fn compact_takes_the_entries_that_no_pointer_needs() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a", "b", "c"]);
        let last = space.create(&ids[1], Node::new(2, Far::null())).unwrap();
        let last = space.far(&ids[0], &ids[1], last, Rights::READ).unwrap();
        let next = space.create(&ids[0], Node::new(1, last)).unwrap();
        space.root_or_insert(&ids[0], "first", Node::new(0, next)).unwrap();
        let unused = space.far(&ids[0], &ids[2], Far::<Node>::own(4096).unwrap(), Rights::WRITE).unwrap();
        let before = crate::graph::values(&space, &ids[0]);
        let done = space.compact(&ids[0]).unwrap();
        assert_eq!((done.kept, done.removed), (1, 1), "one to `b`");
        assert_eq!(crate::graph::values(&space, &ids[0]), before);
        let gone = space.get(&ids[0], unused).err().unwrap();
        assert_eq!(gone.kind(), ErrorKind::Dangling);
        assert_eq!(before, [0, 1, 2]);
        let again = space.far(&ids[0], &ids[1], Far::<Node>::own(4096).unwrap(), Rights::WRITE).unwrap();
        assert_eq!(again.index(), unused.index());
        space.create(&ids[0], Node::new(9, again)).unwrap();
        let refused = space.compact(&ids[0]).unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Unsuitable
                && refused.to_string().contains("no described value leads"),
            "{refused}"
        );
        space.psync_all().unwrap();
    });
}

#[test]
pub fn compact_keeps_the_entries_of_arrays() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b", "c"]);
    let there = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
    let there = space.far(&ids[0], &ids[1], there, Rights::READ).unwrap();
    let array: Vec<Node> =
        (0..5).map(|at| Node::new(at, if at == 3 { there } else { Far::null() })).collect();
    let array = space.create_slice(&ids[0], &array).unwrap();
    space.root_or_insert(&ids[0], "first", Node::new(0, array)).unwrap();
    space.far(&ids[0], &ids[2], array, Rights::READ).unwrap();
    let done = space.compact(&ids[0]).unwrap();
    assert_eq!((done.kept, done.removed), (1, 1));
    let fourth = space.get(&ids[0], array).unwrap().slice(5).unwrap()[3].next;
    assert_eq!(space.get(&ids[0], fourth).unwrap().value, 7);
    let last = space.create(&ids[0], Node::new(9, Far::null())).unwrap();
    space.slice_mut(&ids[0], array, 5).unwrap()[4].next = last;
    let mut heap = space.remove(&ids[0]).unwrap();
    assert_eq!(heap.audit().unwrap().leaks, []);
}

#[test]
pub fn compact_keeps_the_entries_of_a_second_type() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    for first in [false, true] {
        let name = format!("first: {first}");
        let mut heap = two_types(&pool, &name, Far::new(2, 8).unwrap(), first);
        assert_eq!((heap.far_index(&by_id(1)).unwrap(), heap.far_index(&by_id(2)).unwrap()), (1, 2));
        let done = heap.compact_far().unwrap();
        assert_eq!((done.kept, done.removed), (1, 1), "{name}");
        assert_eq!(heap.far_entry(2).unwrap(), by_id(2));
    }
}

#[test]
pub fn compact_keeps_entries_behind_a_root() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let heap = heap(&pool, "o", 1 << 20);
    let number = heap.far_index(&by_id(1)).unwrap();
    heap.far_index(&by_id(2)).unwrap();
    let block = heap.calloc(2, 16).unwrap();
    let word = Far::<u64>::new(number, 8).unwrap().word();
    // SAFETY: a block of 32 bytes of this test's, the second half of which has a pointer.
    unsafe {
        block.as_ptr().cast::<u64>().add(2).write(word);
        heap.create_root("pair", block.as_ptr(), 16, &TypeInfo::described("Pair", "[2] u64 ")).unwrap();
    }
    let mut heap = heap;
    let done = heap.compact_far().unwrap();
    assert_eq!((done.kept, done.removed), (1, 1));
    assert_eq!(heap.far_entry(number).unwrap(), by_id(1));
}

#[test]
fn a_revert_takes_entries_back() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = heap(&pool, "o", 1 << 20);
        assert_eq!(heap.far_index(&by_id(1)).unwrap(), 1);
        heap.psync().unwrap();
        for entry in [by_id(2), by_name("three")] {
            assert_eq!(heap.far_index(&entry).unwrap(), 2);
            heap.revert().unwrap();
            assert_eq!(heap.far_entry(2).unwrap_err().kind(), ErrorKind::Dangling);
        }
        assert_eq!((heap.far_index(&by_name("three")).unwrap(), heap.far_index(&by_id(1)).unwrap()), (2, 1));
        let mut heap = psynced_whole(world, heap, HeapOptions::new(), "after a revert");
        assert_eq!((heap.far_entry(2).unwrap(), heap.check()), (by_name("three"), vec![]));
    });
}
