//! Durability classes of objects.

use crate::common::{self, Rig};

#[test]
fn the_page_of_the_cookbook_is_true() {
    let commands = common::run_page(include_str!("../../../docs/cookbook/transactions.md"));
    assert!(commands > 7, "{commands}");
}

#[test]
fn s1_16_a_class_is_shown_and_changed() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K", "--class", "transactional"]).fine();
    rig.pmo(["create"], ["b", "4K"]).fine();
    rig.pmo(["create"], ["c", "4K", "--class", "eventual"]).fails(2, "transactional");
    rig.pmo(["create"], ["c", "4K", "--class", "transactional", "--sparse"]).fails(2, "it is sparse");
    let class = |name: &str| rig.pmo(["stat"], [name, "--json"]).fine().json()["class"].clone();
    assert_eq!((class("a"), class("b")), ("transactional".into(), "psync".into()));
    let listed = rig.pmo(["ls"], ["--columns", "name,class", "--no-header"]).fine().out;
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [["a", "transactional"], ["b", "psync"]]);
    rig.feed("put", ["a"], b"x").fails(2, "it is transactional");
    let held = rig.hold("b", true);
    rig.pmo(["set"], ["b", "--class", "transactional"]).fails(4, "as writer");
    held.release();
    rig.pmo(["set"], ["absent", "--class", "psync"]).fails(5, "no such object");
    let run = rig.pmo(["set"], ["b", "--class", "transactional"]).fine();
    assert_eq!(run.out, "object \"b\" is transactional\n");
    let json = rig.pmo(["set"], ["b", "--class", "psync", "--json"]).fine().json();
    assert_eq!((&json["name"], &json["class"]), (&"b".into(), &"psync".into()));
    rig.feed("put", ["b"], b"x").fine();
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
    rig.pmo(["snapshot"], ["a", "--as", "then"]).fine();
    assert_eq!(class("then"), "transactional", "a copy has the class of its original");
    rig.pmo(["set"], ["then", "--class", "psync"]).fails(6, "read-only");
}

#[test]
fn s1_16_an_object_is_readable_outside() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K", "--class", "transactional", "--readable-outside"]).fine();
    rig.pmo(["create", "--quiet"], ["b", "4K", "--class", "on-demand"]).fine();
    rig.pmo(["create"], ["c", "4K"]).fine();
    rig.pmo(["create"], ["d", "4K", "--readable-outside"]).fails(2, "neither transactional nor on-demand");
    rig.pmo(["create"], ["d", "4K", "--ecc", "--readable-outside"]).fails(2, "check words");
    let readable = |name: &str| rig.pmo(["stat"], [name, "--json"]).fine().json()["readable_outside"].clone();
    assert_eq!((readable("a"), readable("b"), readable("c")), (true.into(), false.into(), false.into()));
    assert!(rig.pmo(["stat"], ["a"]).fine().out.contains("readable outside"));
    let listed = rig.pmo(["ls"], ["--columns", "name,flags", "--no-header"]).fine().out;
    assert!(listed.lines().next().unwrap().contains("readable outside"), "{listed}");
    rig.pmo(["set"], ["c", "--readable-outside", "yes"]).fails(2, "neither transactional nor on-demand");
    let run = rig.pmo(["set"], ["b", "--readable-outside", "yes"]).fine();
    assert_eq!(run.out, "object \"b\" is readable outside\n");
    let run = rig.pmo(["set"], ["a", "--readable-outside", "no"]).fine();
    assert_eq!(run.out, "object \"a\" is closed outside of transactions\n");
    assert_eq!((readable("a"), readable("b")), (false.into(), true.into()));
    rig.pmo(["set"], ["a", "--class", "on-demand", "--readable-outside", "yes", "--quiet"]).fine();
    assert_eq!(readable("a"), true);
    rig.pmo(["set"], ["a", "--class", "psync"]).fine();
    assert_eq!(readable("a"), false, "it says nothing of this class");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

#[test]
fn s1_06_an_object_is_on_demand() {
    let rig = Rig::new();
    rig.pmo(["create", "--quiet"], ["a", "4K", "--class", "on-demand"]).fine();
    assert_eq!(rig.pmo(["stat"], ["a", "--json"]).fine().json()["class"], "on-demand");
    rig.feed("put", ["a"], b"x").fails(2, "it is on-demand");
    let run = rig.pmo(["set"], ["a", "--give-memory-up"]).fine();
    assert_eq!(run.out, "object \"a\" is whole: nothing was to be given up\n");
    rig.pmo(["set"], ["a", "--class", "psync"]).fine();
    rig.feed("put", ["a"], b"x").fine();
    rig.pmo(["set", "--quiet"], ["a", "--class", "on-demand"]).fine();
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}
