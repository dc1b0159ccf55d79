use indelible::collections::{PString, PVec, RootTypes};
use indelible::{ErrorKind, Heap, Persist, Pool, ReadHeap, TypeInfo};
use tempfile::TempDir;

#[derive(Persist, Clone, Copy, Default)]
#[repr(C)]
struct Point {
    x: f64,
    y: f32,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Place {
    id: u32,
    open: bool,
    name: [u8; 5],
    spot: Point,
    corners: [[Point; 3]; 2],
    raw: [u8; 3],
}

const PLACE: &str = "Place:136:8 { id@0:4 u32 open@4:1 bool name@5:5 [5] u8 spot@16:16 Point:16:8 { x@0:8 f64 y@8:4 f32 } \
    corners@32:96 [2] [3] =1 raw@128:3 [3] u8 } ";
const PAIR: &str = "Pair:8:4 { a@0:4 u32 b@4:4 u32 } ";

fn made() -> (TempDir, Pool, Heap) {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
    (dir, pool, heap)
}

fn sound(heap: &mut Heap) {
    let audit = heap.audit().unwrap();
    assert_eq!((&audit.findings[..], &audit.leaks[..]), (&[][..], &[][..]));
    assert!(audit.roots.iter().all(|root| root.described));
}

#[test]
fn a_record_of_python_is_a_struct_of_rust() {
    let (_dir, pool, mut heap) = made();
    let ty = TypeInfo::described("Place", PLACE);
    let mut first = [0; 136];
    first[0] = 7;
    let root = heap.record("home", &ty, &first).unwrap();
    assert_eq!(heap.record("home", &ty, &[0; 136]).unwrap(), root);
    let place = heap.root_mut::<Place>("home").unwrap();
    assert_eq!((place.id, place.open), (7, false));
    place.corners[1][2].y = 1.5;
    sound(&mut heap);
    heap.psync().unwrap();
    drop(heap);
    let reader = ReadHeap::open(pool.attach_read("o").unwrap()).unwrap();
    assert_eq!(reader.find_record("home", &ty).unwrap(), root);
    assert_eq!(reader.find_record("none", &ty).unwrap_err().kind(), ErrorKind::RootMissing);
}

#[test]
fn a_record_of_another_type_is_an_error_that_names_the_field() {
    let (_dir, _pool, mut heap) = made();
    heap.record("pair", &TypeInfo::described("Pair", PAIR), &[0; 8]).unwrap();
    let other = PAIR.replace("b@4:4 u32", "b@4:4 f32");
    let error = heap.record("pair", &TypeInfo::described("Pair", &other), &[0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(error.to_string().contains("Pair.b: u32 here, f32 there"), "{error}");
}

#[test]
fn types_that_own_or_lie_are_no_records() {
    let (_dir, _pool, mut heap) = made();
    let blocks = heap.blocks().count();
    for words in [
        "PVec u64 ",
        "PString ",
        "[2] *mut u8 ",
        "POption u8 ",
        "E:1:1 { A=1 } ",
        "X:8:8 < > ",
        "S:8:8 { ",
        "",
    ] {
        let error = heap.record("other", &TypeInfo::described("other", words), &[0; 24]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RootType);
        assert!(error.to_string().contains("cannot be a record"), "{error}");
    }
    heap.root_or_default::<PVec<'_, u64>>("list").unwrap().push(1);
    let list = heap.root_any("list").unwrap();
    let lie = TypeInfo { name: &list.type_name, fingerprint: list.fingerprint, layout: "[3] u64 " };
    let error = heap.record("other", &lie, &[0; 24]).unwrap_err();
    assert!(error.to_string().contains("the fingerprint is not that of its description"), "{error}");
    let pair = TypeInfo::described("Pair", PAIR);
    assert!(heap.record("other", &pair, &[0; 9]).unwrap_err().to_string().contains("8 bytes, its value 9"));
    assert!(heap.record(&"x".repeat(256), &pair, &[0; 8]).is_err());
    assert_eq!(heap.blocks().count(), blocks + 2, "nothing is left of a record that could not be made");
}

#[test]
fn a_record_becomes_one_of_another_type_if_it_is_as_it_was() {
    let (_dir, _pool, mut heap) = made();
    let (pair, one) =
        (TypeInfo::described("Pair", PAIR), TypeInfo::described("One", "One:8:8 { a@0:8 u64 } "));
    heap.record("it", &pair, &[1; 8]).unwrap();
    let blocks = heap.blocks().count();
    assert!(!heap.convert_record("it", (&pair, &[2; 8]), (&one, &[3; 8])).unwrap());
    assert!(heap.convert_record("it", (&one, &[1; 8]), (&one, &[3; 8])).is_err());
    assert!(heap.convert_record("it", (&pair, &[1; 8]), (&one, &[3; 9])).is_err());
    assert_eq!((heap.find_record("it", &pair).is_ok(), heap.blocks().count()), (true, blocks));
    assert!(heap.convert_record("it", (&pair, &[1; 8]), (&one, &[3; 8])).unwrap());
    assert!(heap.convert_record("it", (&one, &[3; 8]), (&one, &[4; 8])).unwrap());
    assert_eq!((heap.find_record("it", &pair).is_err(), heap.blocks().count()), (true, blocks));
    sound(&mut heap);
}

#[test]
fn any_root_is_reset_to_a_record_with_all_that_it_owns() {
    let (_dir, _pool, mut heap) = made();
    let (names, place) = heap.root_and_heap::<PVec<'_, PString<'_>>>("it").unwrap();
    names.push(PString::from_in("a text that has a block of its own", place));
    let pair = TypeInfo::described("Pair", PAIR);
    assert_eq!(heap.reset_to_record("it", &pair, &[1; 8]).unwrap().0, 3);
    assert_eq!(heap.blocks().count(), 1);
    heap.find_record("it", &pair).unwrap();
    assert_eq!(heap.reset_to_record("none", &pair, &[1; 8]).unwrap_err().kind(), ErrorKind::RootMissing);
    sound(&mut heap);
}

#[test]
fn records_of_an_object_with_foreign_bytes_are_used_once_verified() {
    let (_dir, _pool, mut heap) = made();
    let pair = TypeInfo::described("Pair", PAIR);
    heap.record("one", &pair, &[1; 8]).unwrap();
    heap.record("two", &pair, &[1; 8]).unwrap();
    heap.root_or_default::<PVec<'_, u64>>("list").unwrap().push(1);
    let mut object = heap.into_object();
    let _ = object.as_mut_slice();
    let mut heap = Heap::open(object).unwrap();
    for name in ["one", "new"] {
        assert_eq!(heap.record(name, &pair, &[0; 8]).unwrap_err().kind(), ErrorKind::Untrusted);
    }
    assert_eq!(heap.find_record("one", &pair).unwrap_err().kind(), ErrorKind::Untrusted);
    assert_eq!(heap.reset_to_record("one", &pair, &[0; 8]).unwrap_err().kind(), ErrorKind::Untrusted);
    let records = heap.records().unwrap();
    assert_eq!(records.iter().map(|root| &*root.name).collect::<Vec<_>>(), ["one", "two"]);

    let at = records[0].address as *const u8;
    heap.remove_root("two").unwrap();
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("two", at, 8, &pair) }.unwrap();
    let types = || RootTypes::new().root::<PVec<'_, u64>>("list").described_root("one", pair);
    let error = heap.verify(&types().described_root("two", pair)).unwrap_err();
    assert!(error.to_string().contains("two: a block has two owners"), "{error}");
    heap.verify(&types()).unwrap();
    heap.record("one", &pair, &[0; 8]).unwrap();
    assert_eq!(heap.record("two", &pair, &[0; 8]).unwrap_err().kind(), ErrorKind::Untrusted);
}
