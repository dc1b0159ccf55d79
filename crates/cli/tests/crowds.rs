//! Commands keep little of each object.

use crate::common::{PMO, Rig, Run};
use indelible::Pool;
use std::process::Command;

/// Objects, and kilobytes of memory for a command: a name and a few words of each, half of the
/// output of `pmo stat`.
const OBJECTS: u64 = 20_000;
const MOST: u64 = 8_000;

fn with_little(rig: &Rig, arguments: &[&str]) -> Run {
    let script = format!("ulimit -d {MOST} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", PMO, arguments[0]]).arg(&rig.pool).args(&arguments[1..]);
    Run::of(&mut command, b"")
}

fn name(number: u64) -> String {
    let mixed = number * 7919 % OBJECTS;
    format!("directory {:03}/object {mixed:05} of a name that is as long as others", mixed % 100)
}

fn crowd() -> Rig {
    // In memory, to be quick.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let rig = Rig { pool: dir.path().join("t.pmo"), dir };
    let pool = Pool::format(&rig.pool, 1 << 30).unwrap();
    for number in 0..OBJECTS {
        pool.create(&name(number), 1 + number % 7).unwrap();
    }
    rig
}

#[test]
fn lists_of_many_objects_take_little_memory_and_are_sorted() {
    let rig = crowd();
    let mut names: Vec<String> = (0..OBJECTS).map(name).collect();
    names.sort_unstable();
    let listed = with_little(&rig, &["ls", "--columns", "name", "--no-header"]).fine().out;
    assert!(listed.lines().eq(names.iter()));
    let listed = with_little(&rig, &["ls", "--sort", "size", "--reverse", "--json"]).fine().json();
    let sizes = listed.as_array().unwrap().iter().map(|row| row["size"].as_u64().unwrap());
    assert!(listed.as_array().unwrap().len() as u64 == OBJECTS && sizes.is_sorted());
    let listed = with_little(&rig, &["ls", "/", "--json"]).fine().json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[7]["objects"]), (100, &200.into()));
    let found = with_little(&rig, &["ls", "directory 007/object 0010*", "--columns", "name", "--no-header"]);
    assert_eq!(found.fine().out, "directory 007/object 00107 of a name that is as long as others\n");
    let metrics = with_little(&rig, &["metrics"]).fine().out;
    let sizes = metrics.lines().filter(|line| line.starts_with("pmo_object_size_bytes{"));
    let of = |line: &str| line.split("object=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(sizes.map(of).eq(names.iter().cloned()));
    let top = with_little(&rig, &["top", "--once", "--interval", "0.01", "--json"]).fine().json();
    let found = top.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap());
    assert!(found.eq(names.iter()));
}

#[test]
fn a_check_of_many_objects_takes_little_memory() {
    let rig = crowd();
    let checked = with_little(&rig, &["check", "--json"]).fine().json();
    assert_eq!(checked["objects"], OBJECTS);
    assert_eq!(checked["findings"], serde_json::json!([]));
}

#[test]
fn snapshots_of_many_objects_are_one_step() {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let rig = Rig { pool: dir.path().join("t.pmo"), dir };
    let pool = Pool::format(&rig.pool, 256 << 20).unwrap();
    let names: Vec<String> = (0..1000).map(|number| format!("object {number}")).collect();
    names.iter().for_each(|name| pool.create(name, 1).unwrap());
    drop(pool);
    rig.pmo(["snapshot"], &names).fine();
    assert_eq!(Pool::open(&rig.pool).unwrap().list().count(), 2000);
    rig.pmo(["check"], [""; 0]).fine();
}
