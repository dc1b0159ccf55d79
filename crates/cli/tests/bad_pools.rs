//! Paths that are no usable pools: each is refused in one line, with its code.

use crate::common::{self, PMO, Rig, Run, is_root, skipped};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const COMMANDS: [&[&str]; 6] =
    [&["ls"], &["stat"], &["create", "x", "4K"], &["cat", "x"], &["check"], &["repair"]];

#[track_caller]
fn each_fails(rig: &Rig, code: i32, needle: &str) {
    for command in COMMANDS {
        let mut run = Command::new(PMO);
        run.arg(command[0]).arg(&rig.pool).args(&command[1..]);
        let run = Run::of(&mut run, b"").fails(code, needle);
        assert_eq!((run.out.as_str(), run.err.lines().count()), ("", 2), "{command:?}: {run:?}");
    }
}

fn overwrite(pool: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(pool).expect("the pool");
    for slot in [0, 4096] {
        file.write_all_at(bytes, slot + at).expect("written");
    }
}

fn shorten(pool: &Path, len: u64) {
    OpenOptions::new().write(true).open(pool).and_then(|file| file.set_len(len)).expect("cut");
}

#[test]
fn a_missing_pool() {
    each_fails(&Rig::empty(), 5, "No such file");
}

#[test]
fn an_empty_file() {
    let rig = Rig::empty();
    File::create(&rig.pool).expect("made");
    each_fails(&rig, 9, "not a pool");
}

#[test]
fn a_text_file() {
    let rig = Rig::empty();
    std::fs::write(&rig.pool, "not a pool\n".repeat(1000)).expect("written");
    each_fails(&rig, 9, "not an Indelible pool");
    std::fs::write(&rig.pool, "short").expect("written");
    each_fails(&rig, 9, "not an Indelible pool");
}

#[test]
fn a_wrong_magic() {
    let rig = Rig::new();
    shorten(&rig.pool, 16 << 20);
    overwrite(&rig.pool, 0, b"DELIBLE!");
    each_fails(&rig, 9, "not an Indelible pool");
}

#[test]
fn a_format_of_the_future() {
    let rig = Rig::new();
    overwrite(&rig.pool, 8, &99_u32.to_le_bytes());
    each_fails(&rig, 9, "format version 99");
    let run = rig.pmo(["dump"], ["superblock"]).fine();
    assert!(run.out.contains("not usable: Version(99)"), "{run:?}");
}

#[test]
fn a_truncated_pool() {
    let rig = Rig::new();
    shorten(&rig.pool, 8 << 20);
    for command in COMMANDS.iter().filter(|command| command[0] != "check") {
        let mut run = Command::new(PMO);
        Run::of(run.arg(command[0]).arg(&rig.pool).args(&command[1..]), b"").fails(3, "it was truncated");
    }
}

#[test]
fn a_pool_in_a_longer_file_is_fine() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    OpenOptions::new().write(true).open(&rig.pool).and_then(|file| file.set_len(32 << 20)).expect("grown");
    assert_eq!(rig.line("a"), "D - 4 KiB a");
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn a_directory() {
    let rig = Rig::empty();
    std::fs::create_dir(&rig.pool).expect("made");
    each_fails(&rig, 9, "is a directory");
    rig.pmo(["format"], [""; 0]).fails(9, "is a directory");
    rig.pmo(["format"], ["--force"]).fails(9, "is a directory");
}

#[test]
fn a_fifo_is_refused_not_waited_for() {
    let rig = Rig::empty();
    let made = Command::new("mkfifo").arg(&rig.pool).status();
    if !made.is_ok_and(|status| status.success()) {
        return skipped("no mkfifo");
    }
    each_fails(&rig, 9, "is a FIFO");
    rig.pmo(["format"], [""; 0]).fails(9, "is a FIFO");
}

#[test]
fn a_device_that_is_none_of_ours() {
    let run = common::pmo(["ls", "/dev/null"]).fails(9, "character device");
    assert_eq!(run.err.lines().count(), 2);
    common::pmo(["format", "/dev/null", "--size", "1G"]).fails(2, "leave --size out");
}

#[test]
fn no_permission() {
    let rig = Rig::new();
    std::fs::set_permissions(&rig.pool, Permissions::from_mode(0o000)).expect("set");
    let mut command = rig.command(["ls"]);
    if is_root() {
        // Root ignores permissions: another user runs the tool.
        std::fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).expect("set");
        command.uid(65534).gid(65534);
        if Command::new(PMO).arg("--version").uid(65534).gid(65534).output().is_err() {
            return skipped("no permission: user 65534 cannot run the tool");
        }
    }
    Run::of(&mut command, b"").fails(6, "Permission denied");
}

#[test]
fn read_permission_is_enough_to_look() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    std::fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).expect("set");
    std::fs::set_permissions(&rig.pool, Permissions::from_mode(0o444)).expect("set");
    if is_root() && Command::new(PMO).arg("--version").uid(65534).gid(65534).output().is_err() {
        return skipped("read permission: user 65534 cannot run the tool");
    }
    let run = |before: &'static str, after: &[&str]| {
        let mut command = rig.command([before]);
        if is_root() {
            command.uid(65534).gid(65534);
        }
        Run::of(command.args(after), b"")
    };
    run("ls", &[]).fine();
    run("stat", &["a"]).fine();
    run("dump", &["lanes"]).fine();
    run("check", &[]).fine();
    run("repair", &["--dry-run"]).fine();
    assert_eq!(run("cat", &["a"]).fine().raw, [0; 4096]);
    run("attach-check", &["a"]).fine();
    run("attach-check", &["a", "--write"]).fails(6, "Permission denied");
    run("create", &["b", "4K"]).fails(6, "Permission denied");
    run("repair", &[]).fails(6, "Permission denied");
}

#[test]
fn reading_beside_a_writer_needs_a_writable_pool() {
    let rig = Rig::new();
    rig.pmo(["create"], ["a", "4K"]).fine();
    let held = rig.hold("a", true);
    std::fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).expect("set");
    std::fs::set_permissions(&rig.pool, Permissions::from_mode(0o444)).expect("set");
    if is_root() && Command::new(PMO).arg("--version").uid(65534).gid(65534).output().is_err() {
        return skipped("read permission: user 65534 cannot run the tool");
    }
    for (command, after) in [("cat", &["a"][..]), ("types", &["a"]), ("diff", &["a", "a"])] {
        let mut tool = rig.command([command]);
        if is_root() {
            tool.uid(65534).gid(65534);
        }
        let run = Run::of(tool.args(after), b"").fails(4, "held by");
        let says = run.err.contains("the pool must be writable from here");
        assert!(says || command == "diff", "{run:?}");
    }
    held.release();
}

fn in_own_namespace(script: &str) -> Option<Run> {
    let possible = |flags: &str| {
        let run = Command::new("unshare").args([flags, "sh", "-c", "mount -t tmpfs none /mnt"]).output();
        run.is_ok_and(|output| output.status.success())
    };
    let flags = ["-m", "-rm"].into_iter().find(|flags| possible(flags))?;
    Some(Run::of(Command::new("unshare").args([flags, "sh", "-c", script, PMO]), b""))
}

#[test]
fn a_read_only_file_system() {
    let script = "
        mount -t tmpfs none /mnt && \"$0\" format /mnt/p --size 2M >/dev/null && \"$0\" create /mnt/p a 4K >/dev/null || exit 99
        mkdir /mnt/d && \"$0\" volume create /mnt/p >/dev/null && \"$0\" volume cp /mnt/p /mnt/d :/ >/dev/null || exit 99
        mount -o remount,ro /mnt 2>/dev/null || mount -o remount,bind,ro /mnt || exit 99
        \"$0\" ls /mnt/p >/dev/null || exit 98
        \"$0\" cat /mnt/p a >/dev/null || exit 97
        \"$0\" check /mnt/p >/dev/null || exit 96
        test \"$(\"$0\" volume ls /mnt/p --json | grep -c '\"d\"')\" = 1 || exit 94
        mount -t tmpfs none /media && \"$0\" volume cp /mnt/p :/d /media/d >/dev/null && test -d /media/d || exit 93
        \"$0\" format /mnt/q; test $? = 6 || exit 95
        \"$0\" create /mnt/p b 4K";
    match in_own_namespace(script) {
        Some(run) if run.code != Some(99) => drop(run.fails(6, "read-only")),
        _ => skipped("read-only file system: no mount namespace to be had"),
    }
}

#[test]
fn a_full_file_system() {
    let script = "
        mount -t tmpfs -o size=4M none /mnt || exit 99
        \"$0\" format /mnt/p --size 64M >/dev/null || exit 98
        \"$0\" create /mnt/p a 32M; test $? = 8 || exit 97
        \"$0\" create /mnt/p b 4K >/dev/null || exit 96
        \"$0\" create /mnt/p c 1M --sparse >/dev/null || exit 95
        \"$0\" check /mnt/p >/dev/null";
    match in_own_namespace(script) {
        Some(run) if run.code != Some(99) => drop(run.fails(0, "no space left")),
        _ => skipped("full file system: no mount namespace to be had"),
    }
}

/// On btrfs each store needs new space.
#[test]
fn a_read_attach_on_a_full_copy_on_write_file_system_needs_no_space() {
    let rig = Rig::empty();
    let image = rig.path("image");
    std::fs::File::create(&image).and_then(|file| file.set_len(128 << 20)).expect("an image");
    let made = Command::new("mkfs.btrfs").args(["--quiet", "--mixed"]).arg(&image).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skipped("a full copy-on-write file system: mkfs.btrfs (package btrfs-progs)");
    }
    let script = format!(
        "
        mount -t btrfs -o loop '{}' /mnt || exit 99
        \"$0\" format /mnt/p --size 16M >/dev/null || exit 98
        echo psynced | \"$0\" put /mnt/p a --create >/dev/null || exit 97
        for size in 1M 64K 4K 1K; do dd if=/dev/zero of=/mnt/fill-$size bs=$size 2>/dev/null; sync; done
        dd if=/dev/zero of=/mnt/more bs=4K count=1 2>/dev/null && test $(stat -c %s /mnt/more) -gt 0 && exit 96
        \"$0\" ls /mnt/p >/dev/null || exit 95
        \"$0\" check /mnt/p >/dev/null || exit 94
        test \"$(\"$0\" cat /mnt/p a)\" = psynced || exit 93
        \"$0\" attach-check /mnt/p a >/dev/null || exit 92
        echo more | \"$0\" put /mnt/p a 2>&1",
        image.display()
    );
    match in_own_namespace(&script) {
        Some(run) if run.code != Some(99) => {
            assert!(run.code == Some(8) && run.out.contains("free space on the file system"), "{run:?}");
        }
        _ => skipped(
            "a full copy-on-write file system: no mount namespace with loop devices and btrfs to be had",
        ),
    }
}
