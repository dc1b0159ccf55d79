use crate::support::{Ground, World, name_root};
use indelible::heap::HeapStats;
use indelible::{ErrorKind, Heap, HeapOptions, Object, Pool, ReadHeap, TypeInfo};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

fn world() -> World {
    World::new(Ground::Memory, indelible::Tracking::Auto, false)
}

fn pool_of(world: &World, size: usize) -> Pool {
    let pool = world.format();
    pool.create("heap", size as u64).unwrap();
    pool
}

fn heap_of(world: &World, size: usize) -> Heap {
    Heap::format(pool_of(world, size).attach("heap").unwrap()).unwrap()
}

fn attach(world: &World) -> Object {
    world.open().attach("heap").unwrap()
}

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    result.err().expect("this had to fail").kind()
}

fn free(heap: &Heap, block: *mut u8) -> indelible::Result<()> {
    // SAFETY: tests free their own blocks, or blocks that the heap must refuse.
    unsafe { heap.free(block) }
}

const POINT: TypeInfo =
    TypeInfo { name: "Point", fingerprint: 0x1234, layout: "  x: f64 at 0\n  y: f64 at 8" };

#[test]
fn bad_pointers_are_refused_and_nothing_changes() {
    let world = world();
    let mut heap = heap_of(&world, 8 * MIB);
    let (small, run, large) =
        (heap.malloc(100).unwrap(), heap.malloc(100 * KIB).unwrap(), heap.malloc(3 * MIB).unwrap());
    for block in [small, run, large] {
        // SAFETY: offsets within live blocks.
        for inside in unsafe { [block.as_ptr().add(1), block.as_ptr().add(96)] } {
            let error = free(&heap, inside).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotABlock);
            assert!(error.to_string().contains(&format!("{:#x}", block.addr())), "{error}");
        }
    }
    let base = heap.base().cast_mut();
    let mut outside = 0_u64;
    let beyond = base.wrapping_add(8 * MIB);
    for foreign in [base, base.wrapping_add(4096), beyond, base.wrapping_sub(1), (&raw mut outside).cast()] {
        assert_eq!(kind(free(&heap, foreign)), ErrorKind::NotABlock);
        assert_eq!(kind(heap.usable_size(foreign)), ErrorKind::NotABlock);
        // SAFETY: refused.
        assert_eq!(kind(unsafe { heap.realloc(foreign, 10) }), ErrorKind::NotABlock);
    }
    assert_eq!(kind(free(&heap, std::ptr::null_mut())), ErrorKind::NotABlock);
    for block in [small, run, large] {
        free(&heap, block.as_ptr()).unwrap();
        let again = kind(free(&heap, block.as_ptr()));
        assert!(matches!(again, ErrorKind::DoubleFree | ErrorKind::NotABlock), "{again:?}");
    }
    assert_eq!(kind(free(&heap, small.as_ptr())), ErrorKind::DoubleFree);
    assert_eq!(heap.check(), []);
    assert_eq!(heap.stats().unwrap().blocks, 0);
}

#[test]
fn sizes_and_alignments_that_cannot_be_are_refused() {
    let world = world();
    let heap = heap_of(&world, MIB);
    assert_eq!(kind(heap.calloc(usize::MAX / 2, 3)), ErrorKind::BadSize);
    assert_eq!(kind(heap.malloc(usize::MAX)), ErrorKind::BadSize);
    assert_eq!(kind(heap.malloc(isize::MAX as usize)), ErrorKind::HeapFull);
    assert_eq!(kind(heap.malloc(2 * MIB)), ErrorKind::HeapFull);
    for align in [0, 3, 24, 4 * MIB] {
        assert_eq!(kind(heap.aligned(align, 8)), ErrorKind::BadAlignment);
    }
    for align in [1, 2, 16, 64, 4096, 16 * KIB, 64 * KIB] {
        assert!(heap.aligned(align, 10).unwrap().addr().get().is_multiple_of(align));
    }
    let error = heap.malloc(2 * MIB).unwrap_err().to_string();
    assert!(error.contains("2097152 bytes") && error.contains("grow the object"), "{error}");
}

#[test]
fn a_block_is_found_wherever_a_piece_is_large_enough() {
    const PIECE: usize = 14 * 4096;
    for size in [30_720, 32 * KIB, 20_000, 9000, 5000, 700] {
        let world = world();
        let mut heap = heap_of(&world, MIB);
        let fill = |heap: &Heap, size: usize| -> Vec<*mut u8> {
            std::iter::from_fn(|| heap.malloc(size).ok().map(|block| block.as_ptr())).collect()
        };
        let pieces = fill(&heap, PIECE);
        fill(&heap, 9 * 4096);
        free(&heap, pieces[3]).unwrap();
        let block = heap.malloc(size).unwrap_or_else(|error| panic!("{size}: {error}")).as_ptr();
        let more = fill(&heap, size);
        let room = (PIECE / (size + 4096)).max(1) - 1;
        assert!(more.len() >= room, "{size}: {}", more.len());
        assert_eq!((heap.usable_size(block).unwrap() >= size, heap.check()), (true, vec![]));
        heap.psync().unwrap();
        for block in more.into_iter().chain([block]) {
            free(&heap, block).unwrap();
        }
        assert_eq!(heap.check(), []);
    }
}

#[test]
fn an_object_that_is_no_heap_is_refused() {
    let world = world();
    let pool = pool_of(&world, MIB);
    assert_eq!(kind(Heap::open(pool.attach("heap").unwrap())), ErrorKind::NotAHeap);
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    heap.psync().unwrap();
    assert_eq!(kind(Heap::format(heap.into_object())), ErrorKind::Exists);
    let mut object = attach(&world);
    object.as_mut_slice()[8] = 2;
    let error = Heap::open(object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(error.to_string().contains("version 2"), "{error}");
    pool.create("tiny", 8 * KIB as u64).unwrap();
    assert_eq!(kind(Heap::format(pool.attach("tiny").unwrap())), ErrorKind::BadSize);
    pool.create("least", 12 * KIB as u64).unwrap();
    let heap = Heap::format(pool.attach("least").unwrap()).unwrap();
    heap.malloc(16).unwrap();
}

#[test]
fn readers_find_roots_and_allocate_nothing() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let block = heap.malloc(16).unwrap();
    name_root(&heap, "p", block.as_ptr(), 16, &POINT).unwrap();
    heap.psync().unwrap();
    drop(heap);
    let heap = ReadHeap::open(world.open().attach_read("heap").unwrap()).unwrap();
    assert_eq!(heap.root("p", &POINT).unwrap().address, block.addr().get());
    assert_eq!(heap.check(), []);
    assert_eq!((heap.blocks().count(), heap.stats().unwrap().roots), (1, 1));
    assert_eq!(heap.usable_size(block.as_ptr()).unwrap(), 16);
}

#[test]
fn roots_are_kept_by_name_and_type() {
    let world = world();
    let mut heap = heap_of(&world, 4 * MIB);
    let block = heap.malloc(16).unwrap().as_ptr();
    name_root(&heap, "p", block, 16, &POINT).unwrap();
    assert_eq!(kind(name_root(&heap, "p", block, 16, &POINT)), ErrorKind::RootExists);
    assert_eq!(kind(heap.root("q", &POINT)), ErrorKind::RootMissing);
    assert_eq!(kind(heap.remove_root("q")), ErrorKind::RootMissing);
    let error = name_root(&heap, "far", std::ptr::null(), 16, &POINT);
    assert_eq!(kind(error), ErrorKind::NotABlock);
    for name in [String::new(), "x".repeat(256)] {
        assert_eq!(kind(name_root(&heap, &name, block, 16, &POINT)), ErrorKind::BadName);
    }
    let long = "ü".repeat(127);
    name_root(&heap, &long, block, 16, &POINT).unwrap();
    let block = heap.malloc(1000).unwrap().as_ptr();
    for number in 0..600 {
        name_root(&heap, &format!("root {number}"), block, number, &POINT).unwrap();
    }
    heap.psync().unwrap();
    drop(heap);
    let mut heap = Heap::open(attach(&world)).unwrap();
    for number in 0..600 {
        assert_eq!(heap.root(&format!("root {number}"), &POINT).unwrap().size, number);
    }
    assert_eq!(heap.roots().unwrap().len(), 602);
    assert_eq!(heap.check(), []);
    for number in 0..600 {
        heap.remove_root(&format!("root {number}")).unwrap();
    }
    let names: Vec<_> = heap.roots().unwrap().into_iter().map(|root| root.name).collect();
    assert_eq!(names, ["p".to_owned(), long]);
    assert_eq!(heap.check(), []);
}

#[test]
fn the_bytes_of_a_root_are_in_a_block_in_use() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    for size in [64, 20_000] {
        let block = heap.malloc(size).unwrap().as_ptr();
        let room = heap.usable_size(block).unwrap() as u64;
        let inside = block.wrapping_add(32);
        assert_eq!(kind(name_root(&heap, "long", block, room + 1, &POINT)), ErrorKind::BadSize);
        assert_eq!(kind(name_root(&heap, "long", inside, room - 31, &POINT)), ErrorKind::BadSize);
        name_root(&heap, "whole", block, room, &POINT).unwrap();
        name_root(&heap, "part", inside, room - 32, &POINT).unwrap();
        assert_eq!(heap.check(), []);
        for name in ["whole", "part"] {
            assert_eq!(kind(free(&heap, block)), ErrorKind::RootExists);
            heap.remove_root(name).unwrap();
        }
        free(&heap, block).unwrap();
        assert_eq!(kind(name_root(&heap, "freed", block, 16, &POINT)), ErrorKind::DoubleFree);
        assert_eq!(heap.check(), []);
    }
}

#[test]
fn s4_03_a_root_of_another_layout_is_an_error_that_shows_both() {
    let world = world();
    let heap = heap_of(&world, MIB);
    let block = heap.malloc(16).unwrap().as_ptr();
    name_root(&heap, "p", block, 16, &POINT).unwrap();
    let other = TypeInfo { fingerprint: 0x1235, layout: "  x: f32 at 0", ..POINT };
    let error = heap.root("p", &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let text = error.to_string();
    assert!(text.contains("another layout"), "{text}");
    assert!(text.contains("y: f64 at 8") && text.contains("x: f32 at 0"), "{text}");
    let error = heap.root("p", &TypeInfo { name: "Line", ..other }).unwrap_err().to_string();
    assert!(error.contains("another type") && error.contains("Point") && error.contains("Line"), "{error}");
}

#[test]
fn an_aborted_allocation_is_gone_and_a_psynced_one_stays() {
    let world = world();
    let mut heap = heap_of(&world, MIB);
    let kept = heap.malloc(64).unwrap();
    heap.psync().unwrap();
    heap.malloc(64).unwrap();
    free(&heap, kept.as_ptr()).unwrap();
    drop(heap);
    let mut heap = Heap::open(attach(&world)).unwrap();
    let blocks: Vec<usize> = heap.blocks().map(|block| block.unwrap().address).collect();
    assert_eq!(blocks, [kept.addr().get()]);
    assert_eq!(heap.check(), []);
    free(&heap, kept.as_ptr()).unwrap();
    assert_eq!(heap.stats().unwrap().blocks, 0);
}

#[test]
fn heaps_and_objects_are_one_step() {
    let world = world();
    let pool = pool_of(&world, MIB);
    pool.create("second heap", MIB as u64).unwrap();
    pool.create("bytes", 4096).unwrap();
    let mut one = Heap::format(pool.attach("heap").unwrap()).unwrap();
    let mut two = Heap::format(pool.attach("second heap").unwrap()).unwrap();
    let mut bytes = pool.attach("bytes").unwrap();
    let psyncs = [one.object().psyncs(), two.object().psyncs(), bytes.psyncs()];
    one.malloc(100).unwrap();
    two.malloc(200).unwrap();
    bytes.as_mut_slice()[0] = 7;
    Heap::psync_all(&mut [&mut one, &mut two], &mut [&mut bytes]).unwrap();
    assert_eq!([one.object().psyncs(), two.object().psyncs(), bytes.psyncs()], psyncs.map(|count| count + 1));
    drop((one, two, bytes));
    for name in ["heap", "second heap"] {
        assert_eq!(Heap::open(pool.attach(name).unwrap()).unwrap().stats().unwrap().blocks, 1);
    }
    assert_eq!(pool.attach("bytes").unwrap().as_slice()[0], 7);
}

#[test]
fn short_attachments_use_the_spans_of_those_before() {
    let world = world();
    let mut heap = heap_of(&world, 4 * MIB);
    heap.psync().unwrap();
    drop(heap);
    for _ in 0..200 {
        let mut heap = Heap::open(attach(&world)).unwrap();
        heap.malloc(48).unwrap();
        heap.psync().unwrap();
    }
    let mut heap = Heap::open(attach(&world)).unwrap();
    let HeapStats { blocks, free_bytes, .. } = heap.stats().unwrap();
    assert_eq!(blocks, 200);
    assert!(free_bytes >= 4 * MIB as u64 - 8 * 4096, "{free_bytes} bytes are free");
    assert_eq!(heap.check(), []);
}

#[test]
fn freed_space_is_used_again_whole() {
    let world = world();
    let mut heap = heap_of(&world, 16 * MIB);
    let before = heap.stats().unwrap();
    for size in [24, 1000, 20 * KIB, 100 * KIB, MIB, 3 * MIB, 9 * MIB] {
        let mut blocks = Vec::new();
        let error = loop {
            match heap.malloc(size) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::HeapFull, "{error}");
        let stats = heap.stats().unwrap();
        let share = stats.block_bytes as f64 / stats.bytes as f64;
        assert!(share >= 0.5 && stats.blocks == blocks.len() as u64, "{size}: {share}");
        for block in blocks {
            free(&heap, block.as_ptr()).unwrap();
        }
        assert_eq!(heap.check(), []);
    }
    let after = heap.stats().unwrap();
    assert!(after.free_bytes + 512 * KIB as u64 >= before.free_bytes, "{after:?}");
    assert_eq!(after.blocks, 0);
}

/// A thread keeps a span per used class, but returns empty ones before the heap counts as full.
#[test]
fn a_full_heap_takes_back_what_its_thread_keeps_empty() {
    let world = world();
    let heap = heap_of(&world, 2 * MIB);
    let before = heap.stats().unwrap();
    for size in (1..=8).map(|kib| kib * KIB) {
        let block = heap.malloc(size).unwrap();
        free(&heap, block.as_ptr()).unwrap();
    }
    let kept = before.largest_free - heap.stats().unwrap().largest_free;
    assert!(kept >= 64 * KIB as u64, "{kept}");
    let block = heap.malloc(before.largest_free as usize).unwrap();
    free(&heap, block.as_ptr()).unwrap();
    assert_eq!(heap.stats().unwrap(), before);
}

#[test]
fn the_heap_grows_with_its_object_where_that_is_allowed() {
    let world = world();
    let pool = world.format();
    let create = indelible::CreateOptions::new(MIB as u64).reach(64 * MIB as u64);
    pool.create_with("heap", &create).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    assert_eq!(kind(heap.malloc(2 * MIB)), ErrorKind::HeapFull);
    heap.grow(8 * MIB as u64).unwrap();
    heap.malloc(2 * MIB).unwrap();
    heap.psync().unwrap();
    drop(heap);
    let options = HeapOptions::new().grow(true);
    let mut heap = Heap::open_with(pool.attach("heap").unwrap(), options).unwrap();
    let blocks: Vec<_> = (0..10).map(|_| heap.malloc(MIB).unwrap()).collect();
    assert!(heap.size() > 8 * MIB);
    assert_eq!(heap.check(), []);
    heap.psync().unwrap();
    assert_eq!(heap.stats().unwrap().blocks, blocks.len() as u64 + 1);
}

#[test]
fn a_heap_without_a_free_page_grows_beyond_its_directory() {
    let world = world();
    let pool = world.options().format(world.path(), 700 << 20).unwrap();
    let create = indelible::CreateOptions::new(256 * MIB as u64).reach(600 * MIB as u64);
    pool.create_with("heap", &create).unwrap();
    let options = HeapOptions::new().grow(true);
    let mut heap = Heap::format_with(pool.attach("heap").unwrap(), options).unwrap();
    for pages in std::iter::once(510).chain([511; 127]) {
        heap.malloc(pages * 4096).unwrap();
    }
    assert_eq!((heap.size(), heap.stats().unwrap().largest_free), (256 * MIB, 0));
    heap.malloc(16).unwrap();
    assert!(heap.size() > 256 * MIB);
    heap.malloc(20 * MIB).unwrap();
    assert_eq!(heap.check(), []);
    heap.psync().unwrap();
    drop(heap);
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 130));
}

#[test]
fn reserve_makes_room_whatever_lies_behind_the_object() {
    let world = world();
    let pool = world.format();
    let create = indelible::CreateOptions::new(MIB as u64).reach(32 * MIB as u64);
    pool.create_with("heap", &create).unwrap();
    pool.create("behind", MIB as u64).unwrap();
    let object = || pool.attach("heap").unwrap();
    let mut heap = Heap::format_with(object(), HeapOptions::new().grow(true)).unwrap();
    let block = heap.calloc(1, 100 * KIB).unwrap();
    let old = (heap.base(), heap.size());
    heap.reserve(2 * MIB).unwrap();
    assert_eq!(heap.base(), old.0, "growth keeps the address");
    assert!(heap.size() > old.1);
    heap.malloc(2 * MIB).unwrap();
    assert_eq!(heap.usable_size(block.as_ptr()).unwrap(), 100 * KIB);
    assert_eq!(heap.check(), []);
    assert_eq!(kind(heap.reserve(128 * MIB)), ErrorKind::NoRoom);
    heap.psync().unwrap();
    drop(heap);
    let mut heap = Heap::open(object()).unwrap();
    assert_eq!(kind(heap.reserve(32 * MIB)), ErrorKind::HeapFull, "growth was not allowed");
    assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 2));
}

#[test]
fn debug_mode_finds_stores_that_went_astray() {
    let world = world();
    let pool = pool_of(&world, MIB);
    let debug = HeapOptions::new().debug(true);
    let mut heap = Heap::format_with(pool.attach("heap").unwrap(), debug).unwrap();
    let (one, two) = (heap.malloc(40).unwrap().as_ptr(), heap.malloc(40 * KIB).unwrap().as_ptr());
    assert_eq!(heap.usable_size(one).unwrap(), 40);
    assert_eq!(heap.check(), []);
    for (block, size) in [(one, 40), (two, 40 * KIB)] {
        // SAFETY: one byte too far, as bad programs do; the page is the heap's own.
        unsafe { block.add(size).write(1) };
        assert_eq!(heap.check().len(), 1);
        assert_eq!(kind(free(&heap, block)), ErrorKind::Overwritten);
        // SAFETY: puts it right.
        unsafe { block.add(size).write(0xc5) };
        free(&heap, block).unwrap();
        assert_eq!(heap.check(), []);
    }
    // SAFETY: a store after the free, as bad programs do.
    unsafe { one.add(7).write(1) };
    assert_eq!(heap.check().len(), 1);
    let found = (0..1000).find_map(|_| heap.malloc(40).err()).expect("it is given away again");
    assert_eq!(found.kind(), ErrorKind::Overwritten);
}

#[test]
fn a_sparse_giant_costs_what_is_used_of_it() {
    let world = world();
    let pool = world.format();
    let _ = &pool;
    let size = 48 * MIB;
    pool.create_with("big", &indelible::CreateOptions::new(size as u64).sparse(true)).unwrap();
    let mut heap = Heap::format(pool.attach("big").unwrap()).unwrap();
    let block = heap.malloc(40 * MIB).unwrap();
    free(&heap, block.as_ptr()).unwrap();
    heap.malloc(100).unwrap();
    heap.psync().unwrap();
    let written = heap.object().stats();
    assert!(heap.stats().unwrap().largest_free >= 40 * MIB as u64, "{written:?}");
}
