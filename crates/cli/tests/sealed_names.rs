//! Names sealed with objects (S3.5).

use crate::common::{PMO, Rig, Run};
use indelible::Pool;
use indelible_testing::tamper::{EXCHANGES, of_earlier_release, say_identity};
use std::process::Command;

const SEAL: [&str; 2] = ["--seal-key-file", "k"];
const READ: [&str; 4] = ["--seal-key-file", "k", "--verify-key-file", "w.pub"];
const WRITE: [&str; 4] = ["--seal-key-file", "k", "--sign-key-file", "w"];

fn rig(signed: bool) -> Rig {
    let rig = Rig::new();
    std::fs::write(rig.path("k"), [0x5a; 32]).unwrap();
    std::fs::write(rig.path("w"), [2; 32]).unwrap();
    let mut verifier = Command::new(PMO);
    verifier.current_dir(rig.dir.path()).args(["key", "verifier", "--sign-key-file", "w"]);
    std::fs::write(rig.path("w.pub"), Run::of(&mut verifier, b"").fine().out).unwrap();
    let keys = if signed { &WRITE[..] } else { &SEAL[..] };
    for name in ["prod", "test"] {
        rig.pmo(["create"], [&[name, "100K", "--sealed"][..], keys].concat()).fine();
        let text = format!("I am {name}");
        Run::of(rig.command(["put"]).arg(name).args(keys), text.as_bytes()).fine();
    }
    rig
}

fn cat(rig: &Rig, name: &str, keys: &[&str]) -> Run {
    rig.pmo(["cat"], [&[name, "--length", "9"][..], keys].concat())
}

#[test]
fn objects_that_were_exchanged_without_a_key_are_refused() {
    for signed in [false, true] {
        let rig = rig(signed);
        let keys = if signed { &READ[..] } else { &SEAL[..] };
        assert_eq!(cat(&rig, "prod", keys).fine().out, "I am prod");
        rig.pmo(["mv"], ["prod", "x"]).fails(6, "its name is sealed with it");
        let sound = std::fs::read(&rig.pool).unwrap();
        let objects = {
            let pool = Pool::open(&rig.pool).unwrap();
            ["prod", "test"].map(|name| pool.store().find(name).unwrap())
        };
        let judge = || {
            for name in ["prod", "test"] {
                let run = cat(&rig, name, keys).fails(6, "it was sealed under another name");
                assert!(run.raw.is_empty() && run.err.contains("--sealed-as"), "{run:?}");
            }
        };
        for (what, exchange) in EXCHANGES {
            println!("signed {signed}, {what}");
            let mut bytes = sound.clone();
            exchange(&mut bytes, &objects[0], &objects[1]);
            std::fs::write(&rig.pool, &bytes).unwrap();
            judge();
            // The tree of IDs may differ from the entries.
            let run = rig.pmo(["check"], [&["--seals"][..], keys].concat());
            let notes = run.out.lines().filter(|line| line.contains("was sealed under another name"));
            assert_eq!(notes.count(), 2, "{run:?}");
        }
        // `pmo mv` of earlier releases needs no key.
        let say = |is: bool, mut bytes: Vec<u8>| {
            objects.iter().for_each(|object| say_identity(&mut bytes, object, is));
            std::fs::write(&rig.pool, bytes).unwrap();
        };
        say(false, sound);
        for (name, new) in [("prod", "x"), ("test", "prod"), ("x", "test")] {
            rig.pmo(["mv"], [name, new]).fine();
        }
        say(true, std::fs::read(&rig.pool).unwrap());
        judge();
    }
}

#[test]
fn sealed_objects_are_renamed_copied_and_bound_with_their_keys() {
    let rig = rig(true);
    rig.pmo(["mv"], ["prod", "live", "--seal-key-file", "k"]).fails(6, "give its sign key");
    rig.pmo(["mv"], [&["prod", "test"][..], &WRITE].concat()).fails(7, "exists");
    rig.pmo(["mv"], [&["prod", "live"][..], &WRITE].concat()).fine();
    assert_eq!(cat(&rig, "live", &READ).fine().out, "I am prod");
    cat(&rig, "prod", &READ).fails(5, "\"prod\"");
    rig.pmo(["cp"], ["live", "copy"]).fine();
    cat(&rig, "copy", &READ).fails(6, "it was sealed under another name");
    let named = [&READ[..], &["--sealed-as", "live"]].concat();
    assert_eq!(cat(&rig, "copy", &named).fine().out, "I am prod");
    cat(&rig, "test", &named).fails(6, "it was sealed under another name");
    let bind = [&["copy", "--sealed-as", "live"][..], &WRITE].concat();
    rig.pmo(["key", "bind"], bind).fine();
    assert_eq!(cat(&rig, "copy", &READ).fine().out, "I am prod");
    cat(&rig, "copy", &named).fails(6, "it was sealed under another name");
    let json = rig.pmo(["check"], [&["--seals", "--json"][..], &READ].concat()).fine().json();
    let named = json["seals"].as_array().unwrap().iter().map(|seals| seals["named"].as_bool());
    assert_eq!(named.collect::<Vec<_>>(), [Some(true); 3]);
    let seals = [&["--seals", "--sealed-as", "live"][..], &READ].concat();
    rig.pmo(["check"], seals).fails(2, "--sealed-as says that of one");
    rig.pmo(["cat"], ["live", "--sealed-as", "live"]).fails(2, "no seal key is given");
    let create = ["other", "8K", "--sealed", "--seal-key-file", "k", "--sealed-as", "live"];
    rig.pmo(["create"], create).fails(2, "under its own name");
    rig.pmo(["create"], ["plain", "8K"]).fine();
    rig.pmo(["mv"], ["plain", "other", "--seal-key-file", "k"]).fails(6, "it is not sealed");
    rig.pmo(["mv"], ["plain", "other"]).fine();
}

#[test]
fn objects_of_earlier_releases_are_listed_and_bound() {
    let rig = rig(false);
    let object = Pool::open(&rig.pool).unwrap().store().find("prod").unwrap();
    let mut bytes = std::fs::read(&rig.pool).unwrap();
    of_earlier_release(&mut bytes, &object);
    std::fs::write(&rig.pool, bytes).unwrap();
    assert_eq!(cat(&rig, "prod", &SEAL).fine().out, "I am prod");
    cat(&rig, "prod", &[&SEAL[..], &["--sealed-as", "prod"]].concat()).fails(6, "earlier release");
    let run = rig.pmo(["check"], [&["--seals"][..], &SEAL].concat()).fine();
    assert!(run.out.contains("note: object \"prod\" was sealed by an earlier release"), "{run:?}");
    let run = rig.pmo(["key", "bind"], [&["prod"][..], &SEAL].concat()).fine();
    assert_eq!(run.out, "the name of object \"prod\" is sealed with it now\n");
    let run = rig.pmo(["check"], [&["--seals"][..], &SEAL].concat()).fine();
    assert!(!run.out.contains("note: "), "{run:?}");
    assert_eq!(cat(&rig, "prod", &SEAL).fine().out, "I am prod");
}

#[test]
fn an_anchor_that_is_given_to_a_check_is_that_of_an_object() {
    let rig = rig(false);
    let set = ["prod", "--seal-key-file", "k", "--anchor", "anchor"];
    rig.pmo(["key", "anchor"], set).fine();
    let older = std::fs::read(&rig.pool).unwrap();
    rig.feed("put", set, b"I am new!").fine();
    let check = |anchor| rig.pmo(["check"], [&["--seals", "--anchor", anchor][..], &SEAL].concat());
    check("anchor").fine();
    check("none").fails(6, "the anchor is that of no object");
    std::fs::write(&rig.pool, older).unwrap();
    let run = check("anchor");
    assert!(run.code != Some(0) && run.err.contains("was put back to an older state"), "{run:?}");
}
