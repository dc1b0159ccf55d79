//! Work with snapshots: go back, compare, thin them, read beside writers.

use crate::common::Rig;
use indelible::collections::PVec;
use indelible::{Heap, Pool};

/// A pool with an object `a` of three pages, its snapshot `then`, and a change of the second page.
fn changed() -> Rig {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], &[1; 12_288]).fine();
    rig.pmo(["snapshot"], ["a", "--as", "then"]).fine();
    rig.feed("put", ["a", "--offset", "5000"], &[2; 100]).fine();
    rig
}

#[test]
fn s2_02_an_object_goes_back_to_its_snapshot() {
    let rig = changed();
    rig.pmo(["create"], ["b", "4K"]).fine();
    rig.pmo(["rollback"], ["a", "b"]).fails(5, "\"b\" is no snapshot of it");
    rig.pmo(["rollback"], ["a", "absent"])
        .fails(5, "\"absent\" is no snapshot of it: there is no such object");
    rig.pmo(["rollback"], ["absent", "then"]).fails(5, "no such object");
    rig.pmo(["rollback"], ["then", "then"]).fails(6, "read-only");
    let held = rig.hold("a", true);
    rig.pmo(["rollback"], ["a", "then"]).fails(4, "as writer");
    held.release();
    let run = rig.pmo(["rollback"], ["a", "then"]).fine();
    assert_eq!(run.out, "object \"a\" is as object \"then\" has it: 12 KiB\n");
    assert_eq!(rig.pmo(["cat"], ["a"]).fine().raw, [1; 12_288]);
    let json = rig.pmo(["rollback"], ["a", "then", "--json"]).fine().json();
    assert_eq!((&json["name"], &json["own"], &json["extent"]), (&"a".into(), &0.into(), &12_288.into()));
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s2_02_objects_are_compared_page_by_page() {
    let rig = changed();
    let run = rig.pmo(["diff"], ["then", "a"]).fine();
    assert_eq!(run.out, "4 KiB at 4096\n1 of 3 pages differ in object \"then\" and object \"a\"\n");
    assert!(rig.pmo(["diff"], ["a", "a"]).fine().out.starts_with("0 of 3 pages"));
    rig.pmo(["resize"], ["a", "5000"]).fine();
    let json = rig.pmo(["diff"], ["then", "a", "--json"]).fine().json();
    let expected = serde_json::json!({
        "older_size": 12_288, "newer_size": 5000, "pages": 2, "bytes": 8192,
        "ranges": [{"offset": 4096, "length": 8192}],
    });
    assert_eq!(json, expected);
    rig.pmo(["diff"], ["then", "absent"]).fails(5, "cannot compare object \"absent\"");
    // A writer is in nobody's way.
    let held = rig.hold("a", true);
    assert!(rig.pmo(["diff"], ["then", "a"]).fine().out.contains("2 of 3 pages"));
    held.release();
}

#[test]
fn what_an_object_has_for_itself_is_shown() {
    let rig = changed();
    let own = |name: &str| rig.pmo(["stat"], [name, "--json"]).fine().json()["own"].as_u64().unwrap();
    // The snapshot has what the object had; the object the page that changed since.
    assert_eq!((own("a"), own("then")), (4096, 12_288));
    let listed = rig.pmo(["ls"], ["--columns", "own,name", "--sort", "own", "--no-header"]).fine();
    assert_eq!(listed.out, "12 KiB  then\n 4 KiB  a\n");
    let rows = rig.pmo(["ls"], ["a", "--json"]).fine().json();
    assert_eq!(rows[0]["own"], 4096);
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("own      4 KiB (4096 bytes)"));
    rig.pmo(["rm"], ["then"]).fine();
    rig.pmo(["gc"], [""; 0]).fine();
    assert_eq!(own("a"), 12_288);
}

#[test]
fn s2_02_old_snapshots_go_by_a_policy() {
    let rig = changed();
    let days: Vec<String> = (10..20).map(|day| format!("a@2025-03-{day}T03:00:00Z")).collect();
    // Names that are like those of the command, and are not; and an object that can be written to.
    let others = ["a@yesterday", "a@2025-03-10T03:00:00Z.old", "ab@2025-03-10T03:00:00Z"];
    for name in days.iter().map(String::as_str).chain(others) {
        rig.pmo(["snapshot"], ["a", "--as", name]).fine();
    }
    rig.pmo(["create"], ["a@2025-03-09T03:00:00Z", "4K"]).fine();
    let names = || -> Vec<String> {
        let rows = rig.pmo(["ls"], ["--json"]).fine().json();
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = names();
    let would = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--dry-run"]).fine();
    assert_eq!(would.out.lines().count(), 9, "{would:?}");
    assert_eq!(names(), before);
    // One of them is read by a process.
    let held = rig.hold(&days[4], false);
    let json = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--json"]).fine().json();
    let gone: Vec<&str> =
        json["destroyed"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let expected: Vec<&str> = days.iter().filter(|day| **day != days[4]).map(String::as_str).collect();
    assert_eq!(gone, expected);
    let made = json["made"][0].as_str().unwrap().to_owned();
    held.release();
    let again = rig.pmo(["snapshot"], ["a", "--keep", "24h:1h,900w:1w"]).fine();
    assert!(again.out.starts_with("kept object \"a\" as object \"a@20"), "{again:?}");
    let left = names();
    assert!(left.contains(&days[4]) && left.contains(&"then".to_owned()), "{left:?}");
    assert!(others.iter().all(|name| left.iter().any(|left| left == name)), "{left:?}");
    let fresh: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    // At the turn of an hour both are the newest of theirs.
    assert!(fresh.len() == 1 && *fresh[0] != made || fresh.len() == 2, "{left:?}");
    assert_eq!(left.len(), before.len() - 9 + fresh.len(), "{left:?}");
    rig.pmo(["snapshot"], ["a", "--keep", "24h"]).fails(2, "\"24h\" has no period");
    rig.pmo(["snapshot"], ["a", "--keep", "24h:1h", "--as", "b"]).fails(2, "cannot be used with");
    rig.pmo(["snapshot"], ["a", "--dry-run"]).fails(2, "--keep");
    rig.pmo(["snapshot"], ["absent", "--keep", "24h:1h", "--dry-run"]).fails(5, "no such object");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

/// The process of the test writes; the tool looks at what its last psync left.
#[test]
fn s2_02_heaps_are_looked_into_beside_their_writer() {
    let rig = Rig::new();
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    heap.root_or_default::<PVec<'_, u64>>("list").unwrap().push(7);
    heap.psync().unwrap();
    heap.root_or_default::<PVec<'_, u64>>("later").unwrap();
    let run = rig.pmo(["heap", "roots"], ["words"]).fine();
    assert!(run.out.starts_with("list: PVec<u64>") && !run.out.contains("later"), "{run:?}");
    for what in ["check", "leaks", "audit"] {
        assert!(rig.pmo(["heap", what], ["words"]).fine().out.contains("2 blocks in use, 2 owned"), "{what}");
    }
    assert!(rig.pmo(["types"], ["words"]).fine().out.starts_with("list: PVec<u64>"));
    assert_eq!(rig.pmo(["cat"], ["words", "--offset", "1M"]).fine().raw, []);
    heap.psync().unwrap();
    assert!(rig.pmo(["heap", "roots"], ["words"]).fine().out.contains("later"));
    drop(heap);
    drop(pool);
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}
