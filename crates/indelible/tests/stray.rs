use crate::support::{Ground, World};
use indelible::{Audit, CreateOptions, ErrorKind, Heap, HeapOptions, Outside, Persist, Tracking, TypeInfo};
use std::ptr::null;

#[derive(Persist)]
#[repr(C)]
struct Item {
    number: u64,
    next: *const u8,
}

static CONSTANT: u64 = 7;

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn outside(other: &Heap) -> Vec<(Outside, *const u8)> {
    let local = Box::leak(Box::new([7_u8; 100]));
    let on_stack = std::hint::black_box(0_u8);
    vec![
        (Outside::Program, (&raw const CONSTANT).cast()),
        (Outside::Program, (outside as fn(&Heap) -> _) as *const u8),
        (Outside::Library, libc::malloc as *const u8),
        (Outside::Memory, local.as_ptr()),
        (Outside::Memory, &raw const on_stack),
        (Outside::Object, other.base().wrapping_add(5000)),
    ]
}

#[test]
fn addresses_of_each_kind_are_found_with_the_way_to_them() {
    let world = world();
    let pool = world.format();
    let mut heap = pool.heap("heap", 1 << 20).unwrap();
    let other = pool.heap("other", 1 << 20).unwrap();
    heap.root_or_insert_with::<Item, _>("item", |_| Item { number: 1, next: null() }).unwrap();
    assert_eq!(heap.stray_pointers().unwrap(), []);
    for (into, address) in outside(&other) {
        heap.root_mut::<Item>("item").unwrap().next = address;
        let found = heap.stray_pointers().unwrap();
        assert_eq!(found.len(), 1, "{into:?}: {found:?}");
        assert_eq!((found[0].into, found[0].target), (into, address.addr() as u64));
        assert_eq!(found[0].place, "item.next (*const u8)");
        assert_eq!(found[0].name == "other", into == Outside::Object);
    }
    for address in [heap.base().wrapping_add(100), std::ptr::without_provenance(3)] {
        heap.root_mut::<Item>("item").unwrap().next = address;
        assert_eq!(heap.stray_pointers().unwrap(), []);
    }
}

#[test]
fn each_psync_of_a_heap_that_audits_refuses_them_before_anything_is_durable() {
    let world = world();
    let pool = world.format();
    let other = pool.heap("other", 1 << 20).unwrap();
    for audit in [Audit::Process, Audit::Everything, Audit::Off] {
        let options = HeapOptions::new().audit(audit);
        let mut heap = pool.heap_with("heap", 1 << 20, options).unwrap();
        heap.root_or_insert_with::<Item, _>("item", |_| Item { number: 1, next: null() }).unwrap();
        heap.psync().unwrap();
        for (into, address) in outside(&other) {
            let refuses = match audit {
                Audit::Off => false,
                Audit::Process => into != Outside::Object,
                _ => true,
            };
            heap.root_mut::<Item>("item").unwrap().next = address;
            let psyncs: [fn(&mut Heap) -> indelible::Result<()>; 4] = [
                |heap| heap.psync(),
                |heap| heap.psync_cut(),
                |heap| heap.commit().wait(),
                |heap| Heap::psync_all(&mut [heap], &mut []),
            ];
            for psync in psyncs {
                match psync(&mut heap) {
                    Ok(()) => assert!(!refuses, "{audit:?} {into:?}"),
                    Err(error) => {
                        assert!(refuses, "{error}");
                        assert_eq!(error.kind(), ErrorKind::StrayPointer);
                        assert!(error.to_string().contains("item.next (*const u8)"), "{error}");
                    }
                }
            }
            assert_eq!(heap.is_unsynced().unwrap(), refuses);
        }
        heap.root_mut::<Item>("item").unwrap().next = null();
        heap.psync().unwrap();
    }
}

#[test]
fn an_object_without_a_heap_is_searched_whole() {
    let world = world();
    let pool = world.format();
    let mut object = pool.create_attached("bytes", 10_000).unwrap();
    assert_eq!(object.stray_pointers().unwrap(), []);
    let local = Box::new(7_u8);
    object.range_mut(8000..8008).copy_from_slice(&(&raw const *local).addr().to_le_bytes());
    let found = object.stray_pointers().unwrap();
    assert_eq!((found.len(), found[0].offset, found[0].into), (1, 8000, Outside::Memory));
    assert_eq!(found[0].place, "the object of 10000 bytes");
    drop(object);
    let heap =
        Heap::format(pool.create_attached_with("heap", &CreateOptions::new(1 << 20)).unwrap()).unwrap();
    let block = heap.malloc(64).unwrap().cast::<usize>();
    let address = (&raw const *local).addr();
    // SAFETY: a block of that size, of this test's.
    unsafe { block.add(2).write(address) };
    let mut object = heap.into_object();
    let found = object.stray_pointers().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].offset as usize, block.addr().get() + 16 - object.as_ptr().addr());
    assert_eq!(found[0].place, "a block of 64 bytes");
    let heap = Heap::open(object).unwrap();
    // SAFETY: as above.
    unsafe { heap.free(block.as_ptr().cast()) }.unwrap();
    assert_eq!(heap.into_object().stray_pointers().unwrap(), []);
}

#[test]
fn objects_are_known_as_long_as_they_are_attached() {
    const WORD: TypeInfo<'static> = TypeInfo { name: "u64", fingerprint: 64, layout: "u64 at 0" };
    let world = world();
    let pool = world.format();
    let mut heap = pool.heap("heap", 1 << 20).unwrap();
    let block = heap.calloc(1, 8).unwrap();
    // SAFETY: a block of zeros, the root's from now on.
    unsafe { heap.create_root("word", block.as_ptr(), 8, &WORD) }.unwrap();
    heap.psync().unwrap();
    pool.create("bytes", 8192).unwrap();
    let attached = |heap: &mut Heap| {
        let address = pool.stat("bytes").unwrap().address as usize + 4096;
        // SAFETY: the root's block.
        unsafe { block.cast::<usize>().write(address) };
        heap.stray_pointers()
            .unwrap()
            .iter()
            .map(|found| (found.into, found.name.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(attached(&mut heap), []);
    let object = pool.attach("bytes").unwrap();
    assert_eq!(attached(&mut heap), [(Outside::Object, "bytes".to_owned())]);
    drop(object);
    assert_eq!(attached(&mut heap), []);
    let object = pool.attach_read("bytes").unwrap();
    assert_eq!(attached(&mut heap), [(Outside::Object, "bytes".to_owned())]);
    drop(object);
}
