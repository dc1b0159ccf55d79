//! `pmo heap`: roots, damage, leaks and dangling pointers.

use crate::common::Rig;
use indelible::collections::{PHashMap, PString, PVec};
use indelible::{Heap, Persist, Pool, TypeInfo};

#[derive(Persist)]
#[repr(C)]
struct Visit<'h> {
    page: PString<'h>,
    before: *mut Visit<'h>,
}

type Visits<'h> = PHashMap<'h, PString<'h>, PVec<'h, Visit<'h>>>;

fn made(rig: &Rig) -> Heap {
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    let (visits, h) = heap.root_and_heap::<Visits<'_>>("visits").unwrap();
    let mut list = PVec::new_in(h);
    list.push(Visit {
        page: PString::from_in("a page whose name is long enough", h),
        before: std::ptr::null_mut(),
    });
    visits.insert("somebody", list);
    heap.psync().unwrap();
    heap
}

#[test]
fn roots_and_their_types_are_listed() {
    let rig = Rig::new();
    drop(made(&rig));
    let run = rig.pmo(["heap", "roots"], ["words"]).fine();
    assert!(run.out.starts_with("visits: PHashMap<PString, PVec<Visit>>, 40 bytes at "), "{run:?}");
    assert_eq!(run.out.lines().count(), 1);
    let run = rig.pmo(["heap", "roots"], ["words", "--types"]).fine();
    assert!(
        run.out.contains("\n  Visit: size 32, alignment 8\n    page: PString at 0, size 24\n"),
        "{run:?}"
    );
    let json = rig.pmo(["heap", "roots"], ["words", "--json"]).fine().json();
    assert_eq!(json[0]["type"], "PHashMap<PString, PVec<Visit>>");
    assert_eq!(json[0]["size"], 40);
}

#[test]
fn a_sound_heap_is_clean() {
    let rig = Rig::new();
    drop(made(&rig));
    for what in ["check", "leaks", "audit"] {
        let run = rig.pmo(["heap", what], ["words"]).fine();
        assert_eq!(run.out.lines().count(), 1, "{run:?}");
        assert!(
            run.out.starts_with("object \"words\": 5 blocks in use, 5 owned by described values, 0 "),
            "{run:?}"
        );
    }
    rig.pmo(["heap", "check"], ["nothing"]).fails(5, "nothing");
    rig.pmo(["create"], ["blank", "64K"]).fine();
    rig.pmo(["heap", "check"], ["blank"]).fails(9, "holds no heap");
}

#[test]
fn leaks_and_lost_pointers_are_named() {
    let rig = Rig::new();
    let mut heap = made(&rig);
    let lost = heap.malloc(1000).unwrap().as_ptr().addr();
    let base = heap.root_any("visits").unwrap().address & !0xfff;
    rig.pmo(["create"], ["neighbour", "64K"]).fine();
    let neighbour = Pool::open(&rig.pool).unwrap().stat("neighbour").unwrap().address;
    let visits = heap.root_mut::<Visits<'_>>("visits").unwrap();
    visits.get_mut("somebody").unwrap()[0].before = std::ptr::without_provenance_mut(neighbour as usize + 64);
    heap.psync().unwrap();
    drop(heap);
    assert!(lost > base);

    let run = rig.pmo(["heap", "leaks"], ["words"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.starts_with("leaked: 1 KiB (1024 bytes) at "), "{run:?}");
    assert!(run.out.ends_with("1 block leaked (1 KiB)\n"), "{run:?}");
    rig.pmo(["heap", "check"], ["words"]).fine();

    let run = rig.pmo(["heap", "audit"], ["words"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let pointer = run.out.lines().find(|line| line.starts_with("pointer ")).unwrap();
    assert!(pointer.starts_with("pointer visits.values[0][0].before is 0x"), "{pointer}");
    assert!(pointer.ends_with("which leads to object \"neighbour\" at 64"), "{pointer}");
    let json = rig.pmo(["heap", "audit"], ["words", "--json"]).json();
    assert_eq!(json["clean"], false);
    assert_eq!(json["leaks"].as_array().unwrap().len(), 1);
    assert_eq!(json["pointers"][0]["path"], "visits.values[0][0].before");
    assert_eq!(json["findings"], serde_json::json!([]));
}

#[test]
fn a_damaged_value_is_found_by_its_name() {
    let rig = Rig::new();
    let heap = made(&rig);
    let root = heap.root_any("visits").unwrap();
    let mut object = heap.into_object();
    let at = root.address - object.as_ptr().addr();
    let words = [2_u64, 12].map(u64::to_le_bytes).concat();
    object.range_mut(at + 16..at + 32).copy_from_slice(&words);
    object.psync().unwrap();
    object.detach().unwrap();
    let run = rig.pmo(["heap", "check"], ["words"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("visits: a hash table with another number of keys"), "{run:?}");
    leaks_of_a_damaged_heap(&rig);
    let mut object = Pool::open(&rig.pool).unwrap().attach("words").unwrap();
    object.range_mut(at + 16..at + 24).copy_from_slice(&50_u64.to_le_bytes());
    object.psync().unwrap();
    object.detach().unwrap();
    let run = rig.pmo(["heap", "check"], ["words"]);
    assert!(run.out.contains("visits: this is no value of its type"), "{run:?}");
    leaks_of_a_damaged_heap(&rig);
}

#[track_caller]
fn leaks_of_a_damaged_heap(rig: &Rig) {
    let run = rig.pmo(["heap", "leaks"], ["words"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.starts_with("wrong: 1 damaged value, so that the figures for leaks are not "), "{run:?}");
    assert!(run.out.ends_with("; 0 blocks leaked (0 B)\n"), "{run:?}");
    let json = rig.pmo(["heap", "leaks"], ["words", "--json"]).json();
    assert_eq!((&json["clean"], &json["damaged"]), (&false.into(), &1.into()));
    assert_eq!((&json["leaks"], &json["findings"]), (&serde_json::json!([]), &serde_json::Value::Null));
}

#[test]
fn a_root_without_a_description_is_said_to_be_one() {
    let rig = Rig::new();
    let heap = made(&rig);
    let block = heap.calloc(1, 64).unwrap();
    let ty = TypeInfo { name: "struct c", fingerprint: 5, layout: "64 bytes" };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("of C", block.as_ptr(), 64, &ty) }.unwrap();
    let mut heap = heap;
    heap.psync().unwrap();
    drop(heap);
    let run = rig.pmo(["heap", "audit"], ["words"]).fine();
    let note = "note: the type of root of C is not described: word 1: 64: no type of that name\n";
    assert!(run.out.contains(note), "{run:?}");
    assert!(run.out.contains("5 owned by described values, 1 referred to otherwise"), "{run:?}");
}

#[test]
fn a_description_that_was_changed_in_the_object_is_damage() {
    let rig = Rig::new();
    let mut object = made(&rig).into_object();
    let bytes = object.as_mut_slice();
    let field = b"page@0:24";
    let at = bytes.windows(field.len()).position(|text| text == field).unwrap();
    bytes[at + 5] = b'8';
    object.psync().unwrap();
    object.detach().unwrap();
    for what in ["check", "leaks", "audit"] {
        let run = rig.pmo(["heap", what], ["words"]);
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.out.contains("wrong at ") && run.out.contains("root"), "{run:?}");
    }
}

#[test]
fn it_is_said_why_a_forged_description_is_not_used() {
    let rig = Rig::new();
    let heap = made(&rig);
    let visits = heap.root_any("visits").unwrap();
    let other = visits.layout.replace("page@0:24", "page@8:24");
    let cyclic = "Visit:8:8 { itself@0:8 =0 } ";
    for (name, layout, fingerprint) in
        [("another", &*other, None), ("cyclic", cyclic, None), ("swapped", "u64 ", Some(7))]
    {
        let block = heap.calloc(1, 64).unwrap().as_ptr();
        let ty = TypeInfo::described("Visit", layout);
        let ty = TypeInfo { fingerprint: fingerprint.unwrap_or(ty.fingerprint), ..ty };
        // SAFETY: no code uses it by type.
        unsafe { heap.create_root(name, block, 8, &ty) }.unwrap();
    }
    let mut heap = heap;
    heap.psync().unwrap();
    drop(heap);
    let run = rig.pmo(["heap", "audit"], ["words"]).fine();
    let expected = [
        ("another", "field before of Visit is not where a field can be"),
        ("cyclic", "a type that is a part of itself"),
        ("swapped", "the description is not that of fingerprint 00000000000000000000000000000007"),
    ];
    for (name, why) in expected {
        let note = format!("note: the type of root {name} is not described: {why}\n");
        assert!(run.out.contains(&note), "{run:?}");
    }
    let json = rig.pmo(["heap", "audit"], ["words", "--json"]).fine().json();
    assert_eq!(json["undescribed"], serde_json::json!(expected.map(|(name, _)| name)));
    assert_eq!(json["reasons"], serde_json::json!(expected.map(|(_, why)| why)));
}
