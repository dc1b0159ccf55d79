//! Volumes by the tool alone: made, filled, listed, kept, and read back.

use crate::common::{PMO, Rig, Run};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

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

/// Names in the pool's folder that begin with a target's.
fn begun(rig: &Rig, target: &str) -> Vec<String> {
    let entries = std::fs::read_dir(rig.dir.path()).unwrap();
    let names = entries.map(|one| one.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(target)).collect()
}

/// Kills a copy out of the volume as soon as anything of it is there.
fn kill_copy(rig: &Rig, from: &str, target: &str) {
    let mut copy = rig.command(["volume", "cp"]).args([from, target]).stdout(Stdio::null()).spawn().unwrap();
    while begun(rig, target).is_empty() && copy.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
}

#[test]
fn a_copy_out_has_its_name_once_it_is_whole() {
    let rig = Rig::new();
    rig.pmo(["volume", "create"], [""; 0]).fine();
    let from = rig.path("from");
    std::fs::create_dir_all(from.join("below")).unwrap();
    std::fs::write(from.join("below/note"), "water the plants").unwrap();
    let large = std::fs::File::create(from.join("large")).unwrap();
    large.write_all_at(&[7; 2 << 20], 0).unwrap();
    large.write_all_at(b"end", 6 << 20).unwrap();
    rig.pmo(["volume", "cp"], ["from", ":/"]).fine();
    let whole = |path: &str, of: &str| {
        std::fs::read(rig.path(path)).unwrap() == std::fs::read(from.join(of)).unwrap()
    };
    for _ in 0..5 {
        kill_copy(&rig, ":/from/large", "file");
        assert!(!rig.path("file").exists() || whole("file", "large"));
        let _ = std::fs::remove_file(rig.path("file"));
        kill_copy(&rig, ":/from", "folder");
        assert!(!rig.path("folder").exists() || whole("folder/large", "large"));
        assert!(!rig.path("folder").exists() || whole("folder/below/note", "below/note"));
        let _ = std::fs::remove_dir_all(rig.path("folder"));
    }
    // Of killed processes.
    std::fs::write(rig.path("file.1.partial"), "half").unwrap();
    std::fs::create_dir_all(rig.path("folder.1.partial/below")).unwrap();
    for (source, target) in [(":/from/large", "file"), (":/from", "folder")] {
        // A full file system, of which files of 4 MiB at most stand for: they exceed what the copy
        // writes to the pool.
        let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" volume cp \"$@\"";
        let mut limited = Command::new("sh");
        limited.args(["-c", script, PMO]).arg(&rig.pool).args([source, target]).current_dir(rig.dir.path());
        let full = Run::of(&mut limited, b"").fails(8, "too large");
        assert!(full.err.contains("help: free room on the file system"), "{full:?}");
        assert_eq!(begun(&rig, target), [""; 0]);
        rig.pmo(["volume", "cp"], [source, target]).fine();
        assert_eq!(begun(&rig, target), [target]);
    }
    assert!(whole("file", "large") && whole("folder/large", "large"));
    assert!(whole("folder/below/note", "below/note"));
    // A name that leaves no room for its partial one.
    let long = "n".repeat(255);
    rig.pmo(["volume", "cp"], [":/from/below/note", &long]).fine();
    assert_eq!(std::fs::read(rig.path(&long)).unwrap(), b"water the plants");
    rig.pmo(["volume", "cp"], [":/from/below/note", &long]).fails(7, "exists");
    rig.pmo(["volume", "cp"], [":/from/below/note", "none/note"]).fails(5, "none/note");
}

#[test]
fn a_volume_that_fills_its_pool_is_read_beside_its_writer() {
    let rig = Rig::new();
    rig.pmo(["volume", "create"], [""; 0]).fine();
    std::fs::write(rig.path("large"), vec![7; 11 << 20]).unwrap();
    std::fs::write(rig.path("note"), "water the plants").unwrap();
    for name in ["large", "note"] {
        rig.pmo(["volume", "cp"], [name, ":/"]).fine();
    }
    let writer = rig.hold("files", true);
    let run = rig.pmo(["volume", "ls"], [""; 0]).fine();
    let names: Vec<_> = run.out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["large", "note"]);
    for name in ["large", "note"] {
        rig.pmo(["volume", "cp"], [&format!(":/{name}"), &format!("{name}.copy")]).fine();
        let [copy, source] =
            [&format!("{name}.copy"), name].map(|name| std::fs::read(rig.path(name)).unwrap());
        assert!(copy == source, "{name}");
    }
    writer.release();
    assert_eq!(rig.pmo(["check"], [""; 0]).code, Some(0));
}

/// docs/cookbook/files.md.
#[test]
fn the_page_of_the_cookbook_is_true() {
    let commands = crate::common::run_page(include_str!("../../../docs/cookbook/files.md"));
    assert!(commands > 10, "{commands}");
}
