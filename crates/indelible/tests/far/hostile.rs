use crate::entries::{by_id, by_name};
use crate::graph::free;
use crate::support::{Ground, World};
use indelible::{ErrorKind, Heap, Tracking};
use indelible_testing::Seeded;

fn made(world: &World) -> Vec<u8> {
    let pool = world.format();
    pool.create_with("o", &free(1 << 20)).unwrap();
    let mut heap = Heap::format(pool.attach("o").unwrap()).unwrap();
    for number in 0..300 {
        heap.far_index(&if number % 3 == 0 { by_name(&format!("object {number}")) } else { by_id(number) })
            .unwrap();
    }
    heap.psync().unwrap();
    assert_eq!(heap.check(), []);
    heap.into_object().as_slice().to_vec()
}

fn page(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize * 4096
}

#[test]
fn damaged_tables_are_named_and_never_followed_out_of_the_object() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let whole = made(&world);
    let pool = world.open();
    let table = page(&whole, 352);
    let middle = page(&whole, table + 2048);
    let leaves = [page(&whole, middle), page(&whole, middle + 8), page(&whole, middle + 16)];
    let own_pages =
        [0, 1, (table / 4096) as u64, (middle / 4096) as u64, 255, 256, 1 << 20, u64::MAX, u64::MAX / 4096];
    let mut places: Vec<usize> = vec![
        352,
        table,
        table + 8,
        table + 16,
        table + 24,
        table + 2048,
        table + 2056,
        middle,
        middle + 8,
        middle + 24,
    ];
    places.extend(leaves.iter().flat_map(|leaf| (0..6 * 32).step_by(8).map(move |at| leaf + at)));
    let mut random = Seeded::new(1);
    let mut changes: Vec<(usize, u64)> =
        places.iter().flat_map(|at| own_pages.map(|value| (*at, value))).collect();
    changes.extend((0..300).map(|_| (places[random.usize(..places.len())], random.u64(..))));
    let (mut named, mut refused) = (0, 0);
    for (at, value) in changes {
        let mut object = pool.attach("o").unwrap();
        object.as_mut_slice().copy_from_slice(&whole);
        object.range_mut(at..at + 8).copy_from_slice(&value.to_le_bytes());
        let mut heap = match Heap::open(object) {
            Ok(heap) => heap,
            Err(error) => panic!("{at:#x} = {value:#x}: {error}"),
        };
        named += usize::from(!heap.check().is_empty());
        for index in [0, 1, 2, 3, 127, 128, 300, 301, u32::MAX] {
            if let Err(error) = heap.far_entry(index) {
                assert!(
                    matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Dangling),
                    "{at:#x} = {value:#x}: {error}"
                );
                refused += 1;
            }
        }
        let _ = heap.far_entries();
        let added = heap.far_index(&by_id(1_000_000)).map(|index| heap.far_entry(index).unwrap());
        assert!(
            added.is_err() || heap.check().iter().all(|finding| finding.what.contains("lost")),
            "{at:#x} = {value:#x}"
        );
        assert!(added.is_err() || added.is_ok_and(|entry| entry == by_id(1_000_000)), "{at:#x} = {value:#x}");
        let _ = heap.retarget(2, &by_name("other"));
        let _ = heap.compact_far();
    }
    assert!(named > 250 && refused > 3000, "{named} named, {refused} refused");
}

/// The heap's feature bit keeps older software from reclaiming the table's pages.
#[test]
fn the_features_of_a_heap_say_that_there_is_a_table() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let bytes = made(&world);
    assert_eq!(bytes[12] & 2, 2);
    let pool = world.open();
    let heap = Heap::format(pool.create_attached("plain", 1 << 20).unwrap()).unwrap();
    assert_eq!(heap.into_object().as_slice()[12], 0);
    let mut object = pool.attach("o").unwrap();
    object.range_mut(12..13)[0] |= 8;
    assert_eq!(Heap::open(object).err().unwrap().kind(), ErrorKind::Version);
}
