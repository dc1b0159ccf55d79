//! Erasable objects, whose key files are destroyed (S3.1).

use crate::common::{Rig, pmo};
use std::os::unix::fs::symlink;

fn rig() -> Rig {
    let rig = Rig::new();
    for (file, byte) in [("first", 1), ("second", 2), ("other", 3)] {
        std::fs::write(rig.path(file), [byte; 40]).unwrap();
    }
    rig.pmo(["create"], ["patient", "8K", "--sealed", "--erasable", "--seal-key-file", "first"]).fine();
    rig.feed("put", ["patient", "--seal-key-file", "first"], b"Bob, asthma").fine();
    rig
}

#[test]
fn s3_01_an_erased_object_is_read_from_no_copy_snapshot_or_backup() {
    let rig = rig();
    rig.pmo(["snapshot"], ["patient", "--as", "before"]).fine();
    rig.pmo(["cp"], ["patient", "copied"]).fine();
    let file = |name: &str| rig.path(name).to_str().unwrap().to_owned();
    rig.pmo(["backup"], [file("pool.backup")]).fine();
    let renew = ["patient", "--seal-key-file", "first", "--new-key-file", "second"];
    let run = rig.pmo(["key", "renew"], renew).fine();
    assert!(run.out.contains("is sealed by second now, and first is destroyed"), "{run:?}");
    assert!(!rig.path("first").exists());
    let read = |name: &str, key: &str| {
        rig.pmo(["cat"], [name, "--length", "11", "--seal-key-file", key, "--sealed-as", "patient"])
    };
    assert_eq!(read("patient", "second").fine().out, "Bob, asthma");
    for older in ["before", "copied"] {
        read(older, "second").fails(6, "opens none of its 1 key slots");
    }
    rig.feed("put", ["patient", "--seal-key-file", "second"], b"Bob, healed").fine();
    rig.pmo(["rm"], ["patient", "--erase", "--seal-key-file", "second"]).fine();
    assert!(!rig.path("second").exists());
    rig.pmo(["cat"], ["patient", "--seal-key-file", "other"]).fails(5, "patient");
    std::fs::remove_file(&rig.pool).unwrap();
    pmo(["restore", &file("pool.backup"), &file("t.pmo")]).fine();
    read("patient", "other").fails(6, "opens none of its 1 key slots");
    std::fs::write(rig.path("first"), [1; 40]).unwrap();
    assert_eq!(read("patient", "first").fine().out, "Bob, asthma", "the first key opens the backup");
    assert_eq!(read("copied", "first").fine().out, "Bob, asthma");
}

#[test]
fn nothing_but_the_objects_own_key_file_is_destroyed() {
    let rig = rig();
    rig.pmo(["create"], ["plain", "8K"]).fine();
    rig.pmo(["create"], ["sealed", "8K", "--sealed", "--seal-key-file", "other"]).fine();
    let erase = |name: &str, key: &str| rig.pmo(["rm"], [name, "--erase", "--seal-key-file", key]);
    erase("patient", "other").fails(6, "opens none of its 1 key slots");
    erase("sealed", "other").fails(2, "is not erasable");
    assert_eq!(erase("plain", "other").code, Some(6));
    erase("absent", "first").fails(5, "absent");
    rig.pmo(["rm"], ["patient", "sealed", "--erase", "--seal-key-file", "first"])
        .fails(2, "one object at a time");
    rig.pmo(["rm"], ["patient", "--erase"]).fails(2, "no key file is given");
    rig.pmo(["rm"], ["patient", "--seal-key-file", "first"]).fails(2, "which only --erase needs");
    symlink("first", rig.path("link")).unwrap();
    erase("patient", "link").fails(2, "is no regular file of one name");
    std::fs::hard_link(rig.path("first"), rig.path("again")).unwrap();
    erase("patient", "first").fails(2, "is no regular file of one name");
    std::fs::remove_file(rig.path("again")).unwrap();
    let renew = |name: &str, key: &str, new: &str| {
        rig.pmo(["key", "renew"], [name, "--seal-key-file", key, "--new-key-file", new])
    };
    renew("patient", "other", "second").fails(6, "opens none of its 1 key slots");
    renew("sealed", "other", "second").fails(2, "is not erasable");
    renew("patient", "first", "absent").fails(5, "absent");
    std::fs::write(rig.path("phrase"), "correct horse").unwrap();
    rig.pmo(["key", "renew"], ["patient", "--seal-key-file", "first", "--new-passphrase-file", "phrase"])
        .fails(2, "no key file is given");
    let add = ["patient", "--seal-key-file", "first", "--new-passphrase-file", "phrase"];
    rig.pmo(["key", "add"], add).fails(6, "an erasable object has one key slot");
    rig.pmo(["key", "change"], add).fails(6, "an erasable object has one key slot");
    for file in ["first", "second", "other"] {
        assert_eq!(std::fs::read(rig.path(file)).unwrap().len(), 40, "{file}");
    }
    let run = rig.pmo(["cat"], ["patient", "--length", "11", "--seal-key-file", "first"]).fine();
    assert_eq!(run.out, "Bob, asthma");
    rig.pmo(["create"], ["no", "8K", "--sealed", "--erasable", "--seal-passphrase-file", "phrase"])
        .fails(6, "an erasable object has a key file");
    rig.pmo(["create"], ["no", "8K", "--erasable"]).fails(2, "--sealed");
}

/// The command died once the object was sealed by the new key.
#[test]
fn a_renewal_that_was_cut_short_destroys_no_key_that_it_cannot_prove() {
    let rig = rig();
    let renew = ["patient", "--seal-key-file", "first", "--new-key-file", "second"];
    rig.pmo(["key", "renew"], renew).fine();
    std::fs::write(rig.path("first"), [1; 40]).unwrap();
    rig.pmo(["key", "renew"], renew).fails(2, "is sealed by second already");
    assert!(rig.path("first").exists() && rig.path("second").exists());
}
