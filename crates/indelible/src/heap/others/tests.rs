use super::super::directory::Directory;
use super::super::layout::FAR_ENTRIES;
use super::entries::add;
use super::table::{Table, Use, put};
use crate::far::{FarEntry, FarTarget, Rights};
use crate::types::far::MOST_INDEX;
use crate::{ErrorKind, Heap, PoolOptions, Tracking};

fn by_id(id: u32) -> FarEntry {
    FarEntry { target: FarTarget::Object(u128::from(id).to_be_bytes()), rights: Rights::READ }
}

const OBJECTS: u32 = 1000;

#[test]
fn the_last_entry_has_number_2_24_less_1() {
    let dir = tempfile::tempdir().unwrap();
    let pool = PoolOptions::new().tracking(Tracking::Explicit).format(dir.path().join("p"), 1 << 30).unwrap();
    let heap = Heap::format(pool.create_attached("o", 700 << 20).unwrap()).unwrap();
    let shared = &heap.raw().allocator.shared;
    for last in (FAR_ENTRIES as u32 - 1..=MOST_INDEX).step_by(FAR_ENTRIES) {
        assert_eq!(add(shared, Some(last), &by_id(last % OBJECTS), Use::Common).unwrap(), last);
        let table = Table::open(Directory::open(&shared.window).unwrap()).unwrap().unwrap();
        for number in (last + 1 - FAR_ENTRIES as u32).max(1)..last {
            put(shared, table.slot(number).unwrap().unwrap(), Some(&by_id(number % OBJECTS)), 0, Use::Common);
        }
    }
    let heap = Heap::open(heap.into_object()).unwrap();
    assert_eq!(heap.far_index(&by_id(7)).unwrap(), 7, "it is there");
    for _ in 0..2 {
        let full = heap.far_index(&by_id(OBJECTS)).unwrap_err();
        assert!(full.kind() == ErrorKind::HeapFull && full.to_string().contains("16,777,215"), "{full}");
    }
    assert_eq!(heap.far_entry(MOST_INDEX).unwrap(), by_id(MOST_INDEX % OBJECTS));
    assert_eq!(heap.far_entry(MOST_INDEX + 1).unwrap_err().kind(), ErrorKind::Dangling);

    assert_eq!(heap.raw().remove_entries(&|number| number != MOST_INDEX).unwrap(), 1);
    assert_eq!(heap.far_entry(MOST_INDEX).unwrap_err().kind(), ErrorKind::Dangling);
    assert_eq!(heap.far_index(&by_id(OBJECTS)).unwrap(), MOST_INDEX);
    assert_eq!(heap.far_entry(MOST_INDEX).unwrap(), by_id(OBJECTS));
    assert_eq!(heap.far_index(&by_id(OBJECTS + 1)).unwrap_err().kind(), ErrorKind::HeapFull);
}
