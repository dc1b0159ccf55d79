//! Signed objects (S3.5).

use crate::common::{PMO, Rig, Run};
use std::process::Command;

#[test]
fn s3_05_a_signed_object_is_read_by_all_and_written_by_the_sign_key() {
    let rig = Rig::new();
    for (name, byte) in [("k", 1), ("w", 2), ("other", 3)] {
        std::fs::write(rig.path(name), [byte; 32]).unwrap();
    }
    let verifier = |name: &str| {
        let mut command = Command::new(PMO);
        command.current_dir(rig.dir.path()).args(["key", "verifier", "--sign-key-file", name]);
        Run::of(&mut command, b"").fine().out
    };
    for (name, of) in [("w.pub", "w"), ("other.pub", "other")] {
        let shown = verifier(of);
        assert!(shown.trim().len() == 64 && shown.ends_with('\n'), "{shown}");
        std::fs::write(rig.path(name), shown).unwrap();
    }
    let (read, write) = (["--verify-key-file", "w.pub"], ["--sign-key-file", "w"]);
    let with = |[option, file]: [&'static str; 2]| ["ledger", "--seal-key-file", "k", option, file];
    rig.pmo(["create"], ["same", "8K", "--sealed", "--seal-key-file", "k", "--sign-key-file", "k"])
        .fails(6, "its sign key is the seal key");
    rig.pmo(["create"], ["ledger", "8K", "--sealed", "--seal-key-file", "k", "--sign-key-file", "w"]).fine();
    rig.feed("put", with(write), b"planted").fine();
    for key in [read, write] {
        assert!(rig.pmo(["cat"], with(key)).fine().out.starts_with("planted"));
    }
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fails(6, "--verify-key-file");
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"forged").fails(6, "give its sign key");
    rig.feed("put", with(read), b"forged").fails(6, "--sign-key-file");
    rig.pmo(["cat"], with(["--verify-key-file", "other.pub"])).fails(3, "its signature is not of the key");
    rig.pmo(["cat"], with(["--verify-key-file", "w"])).fails(6, "64 hexadecimal digits");
    rig.pmo(["cat"], with(["--sign-key-file", "absent"])).fails(5, "absent");
    rig.pmo(["check"], ["--seal-key-file", "k", "--verify-key-file", "w.pub"]).fine();
    rig.pmo(["check"], ["--seal-key-file", "k"]).fails(6, "it is signed");
    // One that is not signed hides nothing of the other, nor the other of it.
    rig.pmo(["create"], ["plain", "8K", "--sealed", "--seal-key-file", "k"]).fine();
    let run = rig.pmo(["check"], ["--seal-key-file", "k"]);
    assert!(run.code == Some(6) && run.out.contains("1 object not verified"), "{run:?}");
    let run = rig.pmo(["check", "--json"], ["--seal-key-file", "k", "--verify-key-file", "w.pub"]);
    let found = run.json();
    assert_eq!((run.code, &found["findings"][0]["object"]), (Some(3), &"plain".into()), "{found}");
    assert_eq!(found["seals"][0]["object"], "ledger", "{found}");
    rig.pmo(["rm"], ["plain"]).fine();
    let mut command = Command::new(PMO);
    command.current_dir(rig.dir.path()).env("PMO_SEAL_KEY_FILE", "k").env("PMO_VERIFY_KEY_FILE", "w.pub");
    let run = Run::of(command.arg("cat").arg(&rig.pool).args(["ledger", "--length", "7"]), b"");
    assert_eq!(run.fine().out, "planted");
    let sign = |new: &'static str| {
        ["ledger", "--seal-key-file", "k", "--sign-key-file", "w", "--new-sign-key-file", new]
    };
    let run = rig.pmo(["key", "sign"], sign("other")).fine();
    assert!(run.out.contains(verifier("other").trim()), "{run:?}");
    rig.pmo(["cat"], with(read)).fails(3, "its signature is not of the key");
    rig.pmo(["cat"], with(["--verify-key-file", "other.pub"])).fine();
    rig.pmo(["key", "sign"], sign("other")).fails(3, "its signature is not of the key");
}

#[test]
fn s3_05_what_nobody_signed_is_refused_where_a_signature_is_asked_for() {
    let rig = Rig::new();
    std::fs::write(rig.path("k"), [1; 32]).unwrap();
    std::fs::write(rig.path("w"), [2; 32]).unwrap();
    rig.pmo(["create"], ["ledger", "8K", "--sealed", "--seal-key-file", "k"]).fine();
    let key = ["ledger", "--seal-key-file", "k", "--sign-key-file", "w"];
    rig.pmo(["cat"], key).fails(3, "it is not signed");
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "k", "--sign-key-file", "w", "--verify-key-file", "w"])
        .fails(2, "cannot be used with");
}
