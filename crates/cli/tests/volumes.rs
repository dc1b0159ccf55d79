//! Volumes by the tool alone: made, filled, listed, kept, and read back.

use crate::common::Rig;

#[test]
fn s2_22_a_folder_goes_into_a_volume_and_comes_back() {
    let rig = Rig::new();
    let run = rig.pmo(["volume", "create"], [""; 0]).fine();
    assert_eq!(run.out, "created volume \"files\"\n");
    rig.pmo(["volume", "create"], [""; 0]).fails(7, "files: the pool has an object");
    let from = rig.dir.path().join("from");
    std::fs::create_dir_all(from.join("below")).unwrap();
    std::fs::write(from.join("below/note"), "water the plants").unwrap();
    let from = from.to_str().unwrap();
    let run = rig.pmo(["volume", "cp"], [from, ":/"]).fine();
    assert_eq!(run.out, "copied 1 file, 2 folders, 0 links: 16 B\n");
    rig.pmo(["volume", "cp"], [from, ":/"]).fails(7, "exists");
    rig.pmo(["volume", "cp"], [from, "elsewhere"]).fails(2, "colon");
    rig.pmo(["volume", "snapshot"], ["monday"]).fine();
    rig.pmo(["volume", "cp"], [&format!("{from}/below/note"), ":/from/second"]).fine();
    let run = rig.pmo(["volume", "ls"], ["/from"]).fine();
    let names: Vec<_> = run.out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["below/", "second"]);
    let json = rig.pmo(["volume", "ls"], ["/from", "--volume", "monday", "--json"]).fine().json();
    assert_eq!((json.as_array().unwrap().len(), &json[0]["kind"]), (1, &"directory".into()));
    rig.pmo(["volume", "ls"], ["/none"]).fails(5, "/none");
    rig.pmo(["volume", "ls"], ["--volume", "none"]).fails(5, "none");
    let to = rig.dir.path().join("to");
    rig.pmo(["volume", "cp"], [":/from/below", to.to_str().unwrap()]).fine();
    assert_eq!(std::fs::read(to.join("note")).unwrap(), b"water the plants");
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

/// docs/cookbook/files.md.
#[test]
fn the_page_of_the_cookbook_is_true() {
    let commands = crate::common::run_page(include_str!("../../../docs/cookbook/files.md"));
    assert!(commands > 10, "{commands}");
}
