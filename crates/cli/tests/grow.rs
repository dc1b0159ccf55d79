//! `pmo grow`: longer pools, while other processes use them.

use crate::common::{PMO, Rig, Run, skipped};
use std::process::Command;

#[test]
fn a_pool_grows_beside_a_reader_and_a_writer() {
    let rig = Rig::new();
    for name in ["a", "b"] {
        rig.pmo(["create"], [name, "4K"]).fine();
    }
    rig.pmo(["create"], ["large", "20M"]).fails(8, "no room");
    let (reader, writer) = (rig.hold("a", false), rig.hold("b", true));
    let run = rig.pmo(["grow"], ["64M"]).fine();
    assert!(run.out.contains("has 64 MiB, of which"), "{run:?}");
    assert_eq!(rig.pmo(["--json", "stat"], [""; 0]).json()["length"], 64 << 20);
    rig.pmo(["create"], ["large", "20M"]).fine();
    drop((reader, writer));
    assert_eq!(rig.pmo(["--json", "grow"], ["65M"]).json()["length"], 65 << 20);
    rig.pmo(["check"], [""; 0]).fine();
    assert_eq!(std::fs::metadata(&rig.pool).expect("there").len(), (65 << 20) + 4096);
}

#[test]
fn lengths_that_cannot_be_change_nothing() {
    let rig = Rig::new();
    rig.pmo(["grow"], ["8M"]).fails(2, "becomes longer, not shorter");
    rig.pmo(["grow"], ["40T"]).fails(2, "no pool has more than");
    rig.pmo(["grow"], [""; 0]).fails(2, "give its new size");
    rig.pmo(["grow"], ["16M"]).fine();
    assert_eq!(std::fs::metadata(&rig.pool).expect("there").len(), (16 << 20) + 4096);
    rig.pmo(["check"], [""; 0]).fine();
}

/// As on a file system with shorter files.
#[test]
fn a_file_that_cannot_be_longer_leaves_the_pool_as_it_was() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "1M"]).fine();
    let script = "trap '' XFSZ; ulimit -f 20000; exec \"$0\" grow \"$1\" 64M";
    let run = Run::of(Command::new("sh").args(["-c", script, PMO]).arg(&rig.pool), b"");
    run.fails(8, "no space");
    assert_eq!(std::fs::metadata(&rig.pool).expect("there").len(), (16 << 20) + 4096);
    rig.pmo(["check"], [""; 0]).fine();
    rig.pmo(["grow"], ["64M"]).fine();
}

#[test]
fn a_pool_on_a_device_becomes_as_long_as_the_device() {
    let rig = Rig::empty();
    let disk = rig.path("disk");
    std::fs::File::create(&disk).expect("made").set_len(16 << 20).expect("sparse");
    let made = Command::new("losetup").args(["--find", "--show"]).arg(&disk).output();
    let Ok(made) = made.map_err(drop).and_then(|made| if made.status.success() { Ok(made) } else { Err(()) })
    else {
        return skipped("growth of a pool on a device: this user cannot make a loop device");
    };
    let node = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let pmo = |args: &[&str]| Run::of(Command::new(PMO).args(args), b"");
    pmo(&["format", &node]).fine();
    pmo(&["create", &node, "a", "4K"]).fine();
    pmo(&["grow", &node, "32M"]).fails(2, "its device has 16777216");
    std::fs::write(&disk, [std::fs::read(&disk).expect("read"), vec![0xa5; 16 << 20]].concat())
        .expect("longer");
    let longer = Command::new("losetup").args(["--set-capacity", &node]).status();
    if longer.is_ok_and(|status| status.success()) {
        pmo(&["grow", &node]).fine();
        assert_eq!(pmo(&["--json", "stat", &node]).json()["length"], (32 << 20) - 4096);
        pmo(&["create", &node, "large", "20M"]).fine();
        let run = pmo(&["cat", &node, "large"]).fine();
        assert!(run.raw.iter().all(|byte| *byte == 0) && run.raw.len() == 20 << 20);
        pmo(&["check", &node]).fine();
    } else {
        skipped("growth of a pool on a device: losetup does not make devices longer");
    }
    assert!(Command::new("losetup").args(["--detach", &node]).status().is_ok_and(|status| status.success()));
}
