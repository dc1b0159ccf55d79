//! A given seal key, sign key, verify key or anchor is satisfied, or the command fails (S3.5).

use crate::common::{PMO, Rig, Run};
use indelible::{Heap, Pool};
use std::process::Command;

fn rig() -> Rig {
    let rig = Rig::new();
    std::fs::write(rig.path("k"), [1; 32]).unwrap();
    std::fs::write(rig.path("w"), [2; 32]).unwrap();
    std::fs::write(rig.path("phrase"), "correct horse\n").unwrap();
    std::fs::write(rig.path("types.json"), "{\"version\":1,\"roots\":[]}").unwrap();
    let mut verifier = Command::new(PMO);
    verifier.current_dir(rig.dir.path()).args(["key", "verifier", "--sign-key-file", "w"]);
    std::fs::write(rig.path("w.pub"), Run::of(&mut verifier, b"").fine().out).unwrap();
    rig.feed("put", ["plain", "--create"], b"the forgery").fine();
    let pool = Pool::open(&rig.pool).unwrap();
    pool.create("heap", 1 << 16).unwrap();
    let mut heap = Heap::open_or_format(pool.attach("heap").unwrap()).unwrap();
    heap.psync().unwrap();
    drop(heap);
    rig
}

const ASKED: [&[&str]; 8] = [
    &["--seal-key-file", "k"],
    &["--seal-passphrase-file", "phrase"],
    &["--seal-key-command", "cat k"],
    &["--seal-key-file", "k", "--verify-key-file", "w.pub"],
    &["--seal-key-file", "k", "--sign-key-file", "w", "--anchor", "anchor"],
    &["--verify-key-file", "w.pub"],
    &["--sign-key-file", "w"],
    &["--anchor", "anchor"],
];

const COMMANDS: [(&[&str], &[&str]); 12] = [
    (&["cat"], &["plain"]),
    (&["put"], &["plain"]),
    (&["put"], &["plain", "--create"]),
    (&["put"], &["fresh", "--create"]),
    (&["put"], &["fresh", "--by-content"]),
    (&["attach-check"], &["plain"]),
    (&["attach-check"], &["plain", "--write"]),
    (&["resize"], &["plain", "64K"]),
    (&["heap", "roots"], &["heap"]),
    (&["heap", "check"], &["heap"]),
    (&["types"], &["heap"]),
    (&["create"], &["fresh", "8K"]),
];

#[test]
fn a_key_that_is_given_for_an_object_that_is_not_sealed_fails_the_command() {
    let rig = rig();
    let before = std::fs::read(&rig.pool).unwrap();
    let migrate: (&[&str], &[&str]) = (&["migrate", "--plan"], &["heap", "--to", "types.json"]);
    for (command, object) in COMMANDS.into_iter().chain([migrate]) {
        for asked in ASKED {
            let run = Run::of(rig.command(command.iter().copied()).args(object).args(asked), b"TOPSECRET");
            let what = format!("{command:?} {object:?} {asked:?}: {run:?}");
            assert!(matches!(run.code, Some(2 | 5 | 6)), "{what}");
            assert!(run.err.starts_with("error: ") && run.raw.is_empty(), "{what}");
        }
        if !object.contains(&"fresh") && command[0] == "cat" {
            let run = Run::of(rig.command(command.iter().copied()).args(object), b"");
            assert_eq!(run.fine().out, "the forgery");
        }
    }
    let after = std::fs::read(&rig.pool).unwrap();
    assert!(!after.windows(9).any(|window| window == b"TOPSECRET"));
    assert_eq!(before.len(), after.len());
    assert!(!rig.path("anchor").exists());
    let names = rig.pmo(["ls"], ["--json"]).fine().out;
    assert!(!names.contains("fresh"), "{names}");
}

#[test]
fn keys_of_the_environment_are_given_too() {
    let rig = rig();
    for (variable, value) in [
        ("PMO_SEAL_KEY_FILE", "k"),
        ("PMO_SEAL_PASSPHRASE_FILE", "phrase"),
        ("PMO_SEAL_KEY_COMMAND", "cat k"),
        ("PMO_VERIFY_KEY_FILE", "w.pub"),
        ("PMO_SIGN_KEY_FILE", "w"),
        ("PMO_ANCHOR", "anchor"),
    ] {
        for (command, object) in COMMANDS.into_iter().filter(|(command, _)| command[0] != "create") {
            let mut run = rig.command(command.iter().copied());
            let run = Run::of(run.args(object).env(variable, value), b"TOPSECRET");
            let refused = matches!(run.code, Some(2 | 5 | 6)) && run.raw.is_empty();
            assert!(refused, "{variable} {command:?} {object:?}: {run:?}");
        }
    }
}

#[test]
fn an_object_in_the_place_of_a_sealed_one_is_refused() {
    let rig = rig();
    let write = ["prices", "--seal-key-file", "k", "--sign-key-file", "w"];
    rig.pmo(["create"], ["prices", "8K", "--sealed", "--seal-key-file", "k", "--sign-key-file", "w"]).fine();
    rig.feed("put", write, b"apples 3").fine();
    let read = ["prices", "--length", "8", "--seal-key-file", "k", "--verify-key-file", "w.pub"];
    assert_eq!(rig.pmo(["cat"], read).fine().out, "apples 3");
    let check = ["--seals", "--seal-key-file", "k", "--verify-key-file", "w.pub"];
    rig.pmo(["check"], check).fine();
    rig.pmo(["rm"], ["prices"]).fine();
    rig.feed("put", ["prices", "--create"], b"apples 9").fine();
    rig.pmo(["cat"], read).fails(6, "not sealed");
    rig.feed("put", write, b"apples 4").fails(6, "not sealed");
    rig.pmo(["check"], check).fails(6, "opens no object");
}

#[test]
fn an_anchor_without_a_record_proves_nothing_to_a_reader() {
    let rig = rig();
    let sealed = ["ledger", "8K", "--sealed", "--seal-key-file", "k"];
    rig.pmo(["create"], sealed).fine();
    let anchored = ["ledger", "--seal-key-file", "k", "--anchor", "anchor"];
    rig.pmo(["cat"], anchored).fails(6, "no record");
    rig.feed("put", anchored, b"x").fine();
    rig.pmo(["cat"], anchored).fine();
}
