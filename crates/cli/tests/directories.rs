//! Directories in names: listed, moved as one step, removed.

use crate::common::{Rig, run_page};
use serde_json::{Value, json};

const NAMES: [&str; 5] = ["a/1", "a/b/1", "a/b/2", "ab", "c/1"];

fn with_directories() -> Rig {
    let rig = Rig::new();
    for name in NAMES {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    rig
}

fn names(rig: &Rig, after: &[&str]) -> Vec<String> {
    let listed = rig.pmo(["ls", "--json"], after).fine().json();
    listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_directory_is_listed_with_those_in_it_as_a_line_each() {
    let rig = with_directories();
    assert_eq!(names(&rig, &["/"]), ["a/", "c/", "ab"]);
    assert_eq!(names(&rig, &["a/"]), ["a/b/", "a/1"]);
    assert_eq!(names(&rig, &["a/", "--recursive"]), ["a/1", "a/b/1", "a/b/2"]);
    assert_eq!(names(&rig, &["a/*"]), ["a/1", "a/b/1", "a/b/2"]);
    assert_eq!(names(&rig, &["/", "--reverse"]), ["c/", "a/", "ab"]);
    let listed = rig.pmo(["ls", "--json"], ["a/"]).fine().json();
    let inner = json!({"name": "a/b/", "directory": true, "objects": 2, "size": 8192, "own": 8192});
    assert_eq!(listed[0], inner);
    let text = rig.pmo(["ls"], ["a/"]).fine().out;
    assert_eq!(
        text,
        "STATE  HOLDER      SIZE  NAME\n/      2 objects  8 KiB  a/b/\nD      -          4 KiB  a/1\n"
    );
    let run = rig.pmo(["ls"], ["x/"]).fails(5, "there is no directory \"x/\"");
    assert!(run.err.contains("`pmo ls POOL /`"), "{run:?}");
    rig.pmo(["ls"], ["--recursive"]).fails(2, "required");
}

#[test]
fn a_directory_is_moved_with_all_that_is_in_it() {
    let rig = with_directories();
    let moved: Value = rig.pmo(["mv", "--json"], ["a/", "d/e/"]).fine().json();
    assert_eq!(moved, json!({"from": "a/", "to": "d/e/", "objects": 3}));
    assert_eq!(names(&rig, &[]), ["ab", "c/1", "d/e/1", "d/e/b/1", "d/e/b/2"]);
    rig.pmo(["mv"], ["d/e/1", "c/"]).fails(7, "exists");
    rig.pmo(["mv"], ["d/e/b/2", "c/"]).fine();
    rig.pmo(["mv"], ["c/", "d/e/b/"]).fails(7, "object \"d/e/b/1\"");
    rig.pmo(["mv"], ["d/", "d/x/"]).fails(2, "into itself");
    rig.pmo(["mv"], ["x/", "y/"]).fails(5, "there is no directory \"x/\"");
    rig.pmo(["mv"], ["d/", "y"]).fails(2, "with / at its end");
    rig.pmo(["mv"], ["d/", "--to", "other.pmo"]).fails(2, "stays in its pool");
    let held = rig.hold("d/e/b/1", false);
    rig.pmo(["mv"], ["d/", "y/"]).fails(4, "object \"d/e/b/1\"");
    held.release();
    assert_eq!(names(&rig, &[]), ["ab", "c/1", "c/2", "d/e/1", "d/e/b/1"]);
    rig.pmo(["mv"], ["d/e/", "/"]).fine();
    assert_eq!(names(&rig, &[]), ["1", "ab", "b/1", "c/1", "c/2"]);
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn a_directory_is_removed_with_all_that_is_in_it() {
    let rig = with_directories();
    let run = rig.pmo(["rm"], ["a/"]).fails(5, "no such object");
    assert!(run.err.contains("`pmo rm --recursive`"), "{run:?}");
    rig.pmo(["rm", "--recursive"], ["x/"]).fails(5, "there is no directory \"x/\"");
    rig.pmo(["rm", "--recursive", "--force"], ["x/"]).fine();
    let dry = rig.pmo(["rm", "-r", "--dry-run"], ["a/b/"]).fine().out;
    assert_eq!(dry, "would destroy object \"a/b/1\", 4 KiB\nwould destroy object \"a/b/2\", 4 KiB\n");
    rig.pmo(["rm", "-r"], ["a/", "c/1"]).fine();
    assert_eq!(names(&rig, &[]), ["ab"]);
    rig.pmo(["rm", "-r"], ["/"]).fine();
    assert_eq!(names(&rig, &[]), [""; 0]);
}

#[test]
fn the_page_of_the_cookbook_is_true() {
    assert_eq!(run_page(include_str!("../../../docs/cookbook/directories.md")), 11);
}
