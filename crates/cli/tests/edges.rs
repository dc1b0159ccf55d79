//! Limits of the process, files of other users, deceptive names.

use crate::common::{PMO, Rig, Run, skipped};
use indelible::Pool;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_leaves_nothing() {
    let rig = Rig::empty();
    rig.pmo(["format"], ["--size", "8M", "--medium", "file"]).fine();
    let limited = |arguments: &str| {
        // Units are 512 or 1024 bytes, by the shell.
        let script = format!("ulimit -f 4096 || exit 99; exec \"$0\" {arguments}");
        let mut command = Command::new("sh");
        Run::of(command.current_dir(rig.dir.path()).args(["-c", &script, PMO]), b"")
    };
    for (arguments, name) in [
        ("clone t.pmo copy", "copy"),
        ("clone t.pmo copy --rebase", "copy"),
        ("format new --size 8M", "new"),
        ("grow t.pmo 16M", "t.pmo"),
    ] {
        let run = limited(arguments);
        let says =
            run.err.contains(name) && ["File too large", "no space"].iter().any(|why| run.err.contains(why));
        assert!(matches!(run.code, Some(1 | 8)) && says, "{run:?}");
        assert_eq!(files(rig.dir.path()), ["t.pmo"], "{arguments}");
    }
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn a_clone_whose_name_is_not_durable_is_not_there() {
    let rig = Rig::new();
    let folder = rig.path("closed");
    fs::create_dir(&folder).expect("made");
    fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).expect("set");
    let root = rustix::process::geteuid().is_root();
    if root {
        for path in [&folder, &rig.pool] {
            chown(path, Some(65534), Some(65534)).expect("given");
        }
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o300)).expect("set");
    let mut command = rig.command(["clone"]);
    if root {
        command.uid(65534).gid(65534);
        if Command::new(PMO).arg("--version").uid(65534).gid(65534).output().is_err() {
            return skipped("a folder that cannot be made durable: user 65534 cannot run the tool");
        }
    }
    let run = Run::of(command.arg("closed/copy"), b"");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("set");
    run.fails(6, "closed");
    assert_eq!(files(&folder), [""; 0]);
}

#[test]
fn no_output_has_characters_that_command_a_terminal() {
    let mut rig = Rig::empty();
    rig.pool = rig.path("a\u{1b}]0;x\u{7}\u{9b}2J\nb");
    let name = "a\u{202e}b\u{e0041}\u{e007f}\u{ad}";
    Pool::format(&rig.pool, 16 << 20).expect("made").create(name, 5000).expect("made");
    for (command, after) in [
        (&["ls"][..], &[][..]),
        (&["ls", "--json"], &[]),
        (&["stat"], &[]),
        (&["stat", "--json"], &[]),
        (&["stat", "--json"], &[name]),
        (&["metrics"], &[]),
        (&["top", "--once"], &[]),
        (&["top", "--once", "--json"], &[]),
        (&["check", "--json"], &[]),
        (&["create", "--json"], &[name, "4K"]),
        (&["cat", "--json"], &["none"]),
    ] {
        let run = rig.pmo(command.iter().copied(), after);
        let shown = format!("{}{}", run.out, run.err);
        let hidden = ['\u{202e}', '\u{e0041}', '\u{e007f}', '\u{ad}'];
        let bad = |c: char| (c.is_control() && c != '\n') || hidden.contains(&c);
        assert!(!shown.is_empty() && !shown.contains(bad), "{command:?}: {shown:?}");
        if after == [name] && command[0] == "stat" {
            assert_eq!(run.json()["name"], name, "a program reads the name as it is");
        }
    }
}

#[test]
fn a_key_file_that_all_can_read_is_noted() {
    let rig = Rig::new();
    fs::write(rig.path("k"), [0x5a; 32]).expect("written");
    fs::set_permissions(rig.path("k"), Permissions::from_mode(0o644)).expect("set");
    rig.pmo(["create"], ["a", "8K", "--sealed", "--seal-key-file", "k"]).fine();
    fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).expect("set");
    let open = |path: &Path| path.metadata().is_ok_and(|found| found.permissions().mode() & 1 != 0);
    if !rig.dir.path().canonicalize().expect("there").ancestors().all(open) {
        return skipped("key files that all can read: the folder for temporary files is closed");
    }
    let run = rig.pmo(["cat"], ["a", "--seal-key-file", "k"]);
    assert!(run.code == Some(0) && run.err.contains("chmod 600 k"), "{run:?}");
    let run = rig.pmo(["create"], ["b", "8K", "--key-file", "k"]);
    assert!(run.code == Some(0) && run.err.contains("chmod 600 k"), "{run:?}");
    rig.pmo(["cat"], ["a", "--seal-key-file", "k", "--quiet"]).fine();
    fs::set_permissions(rig.path("k"), Permissions::from_mode(0o640)).expect("set");
    rig.pmo(["cat"], ["a", "--seal-key-file", "k"]).fine();
}
