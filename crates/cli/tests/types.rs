//! `pmo types` and `pmo migrate --plan`: stored types, and a program's differences.

use crate::common::Rig;
use indelible::collections::{PHashMap, PString, PVec, RootTypes};
use indelible::{Heap, Persist, Pool, TypeInfo};

#[derive(Persist)]
#[repr(C)]
struct Visit<'h> {
    page: PString<'h>,
    from: Place,
    how: Link,
}

#[derive(Persist)]
#[repr(C)]
struct Place {
    x: u16,
    y: u32,
}

#[derive(Persist)]
#[repr(u8)]
#[allow(dead_code)]
enum Link {
    Typed,
    Followed { from: u64 } = 7,
}

mod later {
    use super::*;

    #[derive(Persist)]
    #[repr(C)]
    pub struct Visit<'h> {
        page: PString<'h>,
        from: super::Place,
        how: super::Link,
        seconds: f32,
    }
}

type Visits<'h> = PHashMap<'h, PString<'h>, PVec<'h, Visit<'h>>>;

fn made(rig: &Rig) {
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    heap.root_or_default::<Visits<'_>>("visits").unwrap();
    heap.root_or_default::<u64>("count").unwrap();
    heap.root_or_default::<PVec<'_, u32>>("numbers").unwrap();
    let block = heap.calloc(1, 64).unwrap();
    let ty = TypeInfo { name: "struct c", fingerprint: 5, layout: "64 bytes" };
    // SAFETY: no code uses it by type.
    unsafe { heap.create_root("of C", block.as_ptr(), 64, &ty) }.unwrap();
    heap.psync().unwrap();
}

#[test]
fn types_are_shown_with_their_fields() {
    let rig = Rig::new();
    made(&rig);
    let run = rig.pmo(["types"], ["words", "visits"]).fine();
    let (head, rest) = run.out.split_once('\n').unwrap();
    assert!(head.starts_with("visits: PHashMap<PString, PVec<Visit>>, 40 bytes, fingerprint "), "{run:?}");
    assert_eq!(
        rest,
        "  Visit: size 48, alignment 8
    page: PString at 0, size 24
    from: Place at 24, size 8
    how: Link at 32, size 16
  Place: size 8, alignment 4
    x: u16 at 0, size 2
    y: u32 at 4, size 4
  Link: size 16, alignment 8
    tag: u8 at 0
    Typed = 0
    Followed = 7
      from: u64 at 8, size 8
"
    );
    let run = rig.pmo(["types"], ["words"]).fine();
    let roots: Vec<_> = run.out.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(roots.len(), 4, "{run:?}");
    assert!(run.out.contains("\n  not described by the heap; the program that made it says:\n  64 bytes\n"));
    rig.pmo(["types"], ["words", "nothing"]).fails(5, "object \"words\" has no root \"nothing\"");
    let json = rig.pmo(["types"], ["words", "--json"]).fine().json();
    assert_eq!((&json[0]["root"], &json[0]["definitions"]), (&"count".into(), &serde_json::json!([])));
    assert_eq!(json[2]["definitions"], serde_json::Value::Null);
    assert_eq!(
        json[3]["definitions"][1],
        serde_json::json!({"name": "Place", "kind": "struct", "size": 8, "alignment": 4, "fields": [
            {"name": "x", "type": "u16", "offset": 0, "size": 2},
            {"name": "y", "type": "u32", "offset": 4, "size": 4},
        ]})
    );
    let link = &json[3]["definitions"][2];
    assert_eq!((&link["kind"], &link["variants"][1]["number"]), (&"enum".into(), &"7".into()));
    assert_eq!(link["variants"][1]["fields"][0]["offset"], 8);
}

#[test]
fn the_types_of_a_program_are_compared_with_those_of_a_heap() {
    let rig = Rig::new();
    made(&rig);
    let file = rig.path("types.json");
    let types = RootTypes::new()
        .root::<PHashMap<PString, PVec<later::Visit>>>("visits")
        .root::<u64>("count")
        .root::<PVec<u64>>("numbers")
        .root::<u8>("of C")
        .root::<PString>("new");
    std::fs::write(&file, types.to_json()).unwrap();
    let file = file.to_str().unwrap();
    let run = rig.pmo(["migrate", "--plan"], ["words", "--to", file]).fine();
    let refused = run.out.lines().find_map(|line| line.strip_prefix("  a reset is refused: ")).unwrap();
    assert!(
        refused.contains("root \"of C\" cannot be reset: the heap has no description of its type"),
        "{refused}"
    );
    assert_eq!(
        run.out.replace(refused, "WHY"),
        "count: u64: the same
numbers: PVec<u32>: differs; first, PVec<u32>[0]: u32 here, u64 there
  a reset frees 1 block, 32 B
of C: struct c in the heap, u8 in the program, not both described
  a reset is refused: WHY
visits: PHashMap<PString, PVec<Visit>>: only grew; first, PHashMap<PString, PVec<Visit>>.values[0].seconds is there only
  a reset frees 1 block, 48 B
new: PString: in the program only, which makes it
"
    );
    let json = rig.pmo(["migrate", "--plan"], ["words", "--to", file, "--json"]).fine().json();
    let types: Vec<_> = json.as_array().unwrap().iter().map(|line| line["types"].as_str().unwrap()).collect();
    assert_eq!(types, ["same", "differ", "undescribed", "appended", "program-only"]);
    assert_eq!(json[1]["reset"], serde_json::json!({"blocks": 1, "bytes": 32}));
    assert!(json[2]["reset"]["refused"].is_string() && json[0]["reset"].is_null());
    std::fs::write(file, RootTypes::new().to_json()).unwrap();
    let run = rig.pmo(["migrate", "--plan"], ["words", "--to", file]).fine();
    assert!(run.out.lines().all(|line| line.ends_with(": in the heap only")), "{run:?}");
}

#[test]
fn a_file_without_types_is_refused() {
    let rig = Rig::new();
    made(&rig);
    let file = rig.path("types.json");
    let path = file.to_str().unwrap();
    rig.pmo(["migrate", "--plan"], ["words", "--to", path]).fails(5, "types.json");
    for (text, why) in [
        ("", "EOF"),
        ("[]", "invalid length"),
        ("{\"version\": 2, \"roots\": []}", "version 2; this tool knows version 1"),
        ("{\"version\": 1, \"roots\": [{\"name\": \"a\"}]}", "missing field"),
    ] {
        std::fs::write(&file, text).unwrap();
        rig.pmo(["migrate", "--plan"], ["words", "--to", path]).fails(2, why);
    }
    rig.pmo(["migrate"], ["words", "--to", path]).fails(2, "--plan");
    let forged =
        "{\"version\": 1, \"roots\": [{\"name\": \"count\", \"type\": \"u64\", \"description\": \"PVec\"}]}";
    std::fs::write(&file, forged).unwrap();
    let run = rig.pmo(["migrate", "--plan"], ["words", "--to", path]).fine();
    assert!(
        run.out.starts_with("count: u64 in the heap, u64 in the program, not both described\n"),
        "{run:?}"
    );
}
