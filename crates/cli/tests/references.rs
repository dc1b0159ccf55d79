//! Far pointers: objects by ID, export and import, dangling pointers.

use crate::common::{Rig, pmo};
use indelible::{CreateOptions, Far, FarEntry, FarTarget, Heap, Pool, Rights};
use std::path::Path;

fn made(pool: &Path) -> String {
    let pool = Pool::open(pool).unwrap();
    let free = CreateOptions::new(1 << 20).position_independent(true);
    pool.create_with("b", &free).unwrap();
    let b = pool.stat("b").unwrap().id;
    let mut heap = Heap::format(pool.create_attached_with("a", &free).unwrap()).unwrap();
    let to = heap.far_index(&FarEntry { target: FarTarget::Object(b), rights: Rights::READ }).unwrap();
    let target = FarTarget::Name { resolver: "name".into(), name: "b".into() };
    let named = heap.far_index(&FarEntry { target, rights: Rights::READ }).unwrap();
    let pointers = [Far::<u64>::new(to, 4096).unwrap(), Far::new(named, 8).unwrap(), Far::null()];
    heap.root_or_insert_with::<[Far<u64>; 3], _>("all", |_| pointers).unwrap();
    heap.psync().unwrap();
    drop(heap);
    format!("id:{:032x}", u128::from_be_bytes(pool.stat("a").unwrap().id))
}

#[test]
fn s2_01_every_command_takes_ids_for_names() {
    let rig = Rig::new();
    let id = made(&rig.pool);
    assert_eq!(rig.pmo(["stat"], [&*id, "--json"]).fine().json()["name"], "a");
    rig.pmo(["mv"], [&*id, "c"]).fine();
    assert_eq!(rig.pmo(["stat"], [&*id, "--json"]).fine().json()["name"], "c");
    rig.pmo(["create"], [&*id, "4K"]).fails(2, "stands for the object with that ID");
    rig.pmo(["rm"], [&*id]).fine();
    rig.pmo(["stat"], [&*id]).fails(5, "no such object");
}

#[test]
fn s2_09_pointers_that_lead_nowhere_are_listed() {
    let rig = Rig::new();
    made(&rig.pool);
    assert!(rig.pmo(["check"], ["--references"]).fine().out.contains("clean"));
    let json = rig.pmo(["check"], ["--references", "--json"]).fine().json();
    assert_eq!((&json["clean"], &json["references"]["dangling"]), (&true.into(), &serde_json::json!([])));
    let held = rig.hold("a", true);
    let run = rig.pmo(["check"], ["--references"]).fine();
    assert!(run.out.contains("\"a\" was left out"), "{}", run.out);
    held.release();
    rig.pmo(["resize"], ["b", "4000", "--shrink"]).fine();
    let run = rig.pmo(["check"], ["--references", "--json"]);
    assert_eq!(run.code, Some(3));
    let found = run.json()["references"]["dangling"].clone();
    assert_eq!((&found[0]["path"], &found[0]["object"]), (&"all[0]".into(), &"a".into()), "{found}");
    rig.pmo(["rm"], ["b"]).fine();
    let run = rig.pmo(["check"], ["--references"]);
    assert_eq!(run.code, Some(3));
    assert!(run.out.contains("none of the 1 pools") && run.out.contains("name:b"), "{}", run.out);
}

#[test]
fn s2_10_objects_are_exported_with_what_they_lead_to() {
    let rig = Rig::new();
    made(&rig.pool);
    let (other, file) = (rig.path("other.pmo"), rig.path("a.export"));
    let (other, file) = (other.to_str().unwrap(), file.to_str().unwrap());
    pmo(["format", other, "--size", "16M"]).fine();
    let run = rig.pmo(["export"], ["a", file]).fine();
    assert!(run.out.contains("2 objects of 2 MiB"), "{}", run.out);
    rig.pmo(["export"], ["a", file]).fails(7, "exists already");
    let json = rig.pmo(["export"], ["a", file, "--only", "--force", "--json"]).fine().json();
    assert_eq!(json["objects"], 1);
    rig.pmo(["export"], ["a", file, "--force"]).fine();
    rig.pmo(["export"], ["absent", file, "--force"]).fails(5, "no such object");
    assert_eq!(pmo(["verify", file]).code, Some(0));
    let run = pmo(["import", file, other]).fine();
    assert!(run.out.contains("imported 2 objects"), "{}", run.out);
    pmo(["import", file, other]).fails(7, "exists");
    assert_eq!(pmo(["check", other, "--references"]).code, Some(0));
    pmo(["import", "absent", other]).fails(5, "cannot read");
    let bytes = std::fs::read(file).unwrap();
    pmo(["rm", other, "a"]).fine();
    pmo(["rm", other, "b"]).fine();
    std::fs::write(file, &bytes[..bytes.len() - 9]).unwrap();
    pmo(["import", file, other]).fails(3, "damaged");
    std::fs::write(file, b"no backup").unwrap();
    pmo(["import", file, other]).fails(9, "is no backup");
}
