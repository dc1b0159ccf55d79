//! Incidents: the tool's printed advice helps.

use crate::common::{PMO, Rig, Run, is_root, pmo, skipped};
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

fn rig() -> Rig {
    let rig = Rig::new();
    rig.feed("put", ["a", "--create"], b"one").fine();
    rig
}

fn overwrite(pool: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(pool).and_then(|file| file.write_all_at(bytes, at)).expect("written");
}

fn shorten(pool: &Path, len: u64) {
    OpenOptions::new().write(true).open(pool).and_then(|file| file.set_len(len)).expect("cut");
}

fn advised(said: &str, before: &str, pool: &Path) -> Vec<String> {
    let rest = said.split_once(before).unwrap_or_else(|| panic!("{before:?} is not in {said}")).1;
    let command = format!("{}{rest}", before.trim_start_matches('`'));
    let command = command.split('`').next().expect("a command");
    command.replace("POOL", &text(pool)).split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn follow(said: &str, before: &str, pool: &Path) {
    let words = advised(said, before, pool);
    let (program, rest) = words.split_first().expect("a command");
    let program = if program == "pmo" { PMO } else { program };
    Run::of(Command::new(program).args(rest), b"").fine();
}

#[track_caller]
fn is_whole(rig: &Rig) {
    assert_eq!(rig.pmo(["cat"], ["a"]).fine().raw, b"one");
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(run.out.ends_with("clean\n"), "{run:?}");
}

fn as_another(rig: &Rig, command: &mut Command) -> bool {
    if !is_root() {
        return true;
    }
    fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o777)).expect("set");
    std::os::unix::fs::chown(&rig.pool, Some(65534), Some(65534)).expect("root may");
    command.uid(65534).gid(65534);
    if Command::new(PMO).arg("--version").uid(65534).gid(65534).output().is_err() {
        skipped("permissions: user 65534 cannot run the tool");
        return false;
    }
    true
}

#[test]
fn the_first_pages_of_a_pool_are_overwritten() {
    let longer = rig();
    longer.pmo(["grow"], ["64M"]).fine();
    for rig in [rig(), longer] {
        overwrite(&rig.pool, 0, &[0; 8192]);
        let run = rig.pmo(["ls"], [""; 0]).fails(9, "not an Indelible pool");
        assert!(run.err.contains("`pmo repair`"), "{run:?}");
        let run = rig.pmo(["check"], [""; 0]);
        assert!(run.code == Some(3) && run.out.contains("the copy behind the pool serves"), "{run:?}");
        assert!(run.out.contains("help: repair rewrites it"), "{run:?}");
        rig.pmo(["repair"], [""; 0]).fine();
        is_whole(&rig);
    }
}

#[test]
fn a_pool_without_a_copy_of_its_superblock_is_not_sent_in_a_circle() {
    let rig = rig();
    rig.pmo(["backup"], [&text(&rig.path("one.backup"))]).fine();
    shorten(&rig.pool, 16 << 20);
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(run.out.starts_with("note: superblock at 16777216: no copy"), "{run:?}");
    for slot in [100, 4196] {
        overwrite(&rig.pool, slot, &[0x5a; 200]);
    }
    let run = rig.pmo(["check"], [""; 0]);
    assert!(run.code == Some(3) && run.out.contains("help: restore the pool from a backup"), "{run:?}");
    for rest in [&[][..], &["--drop-damaged"]] {
        let run = rig.pmo(["repair"], rest).fails(3, "no copy lies behind the pool");
        assert!(run.err.contains("help: restore the pool from a backup"), "{run:?}");
    }
    overwrite(&rig.pool, 0, &[0; 8192]);
    for command in ["check", "repair"] {
        let run = rig.pmo([command], [""; 0]).fails(9, "not an Indelible pool");
        assert!(run.err.contains("restore it from a backup") && !run.err.contains("`pmo "), "{run:?}");
    }
    pmo(["restore", &text(&rig.path("one.backup")), &text(&rig.pool), "--force"]).fine();
    is_whole(&rig);
}

#[test]
fn a_pool_without_a_copy_gets_one_as_check_advises() {
    let rig = rig();
    shorten(&rig.pool, 16 << 20);
    let run = rig.pmo(["check"], [""; 0]).fine();
    follow(&run.out, "`pmo grow", &rig.pool);
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(!run.out.contains("note"), "{run:?}");
    overwrite(&rig.pool, 0, &[0xff; 8192]);
    rig.pmo(["repair"], [""; 0]).fine();
    is_whole(&rig);
}

#[test]
fn a_clone_has_a_copy_of_its_own_superblock() {
    let rig = rig();
    let clone = rig.path("clone.pmo");
    rig.pmo(["clone"], [&text(&clone)]).fine();
    let id = |pool: &Path| pmo(["stat", &text(pool), "--json"]).json()["id"].clone();
    let own = id(&clone);
    assert_ne!(own, id(&rig.pool));
    overwrite(&clone, 0, &[0; 8192]);
    pmo(["repair", &text(&clone)]).fine();
    assert_eq!(id(&clone), own);
}

#[test]
fn a_pool_that_lost_free_space_at_its_end_comes_back_as_a_whole() {
    let rig = rig();
    shorten(&rig.pool, 9 << 20);
    let run = rig.pmo(["ls"], [""; 0]).fails(3, "was truncated");
    assert!(run.err.contains("help: `pmo check` says what was cut off"), "{run:?}");
    let run = rig.pmo(["check"], [""; 0]);
    assert!(run.code == Some(3) && run.out.contains("free space alone"), "{run:?}");
    follow(&run.out, "`truncate -s", &rig.pool);
    is_whole(&rig);
}

#[test]
fn a_pool_that_lost_a_part_of_an_object_names_it_and_keeps_the_others() {
    let rig = rig();
    rig.pmo(["create"], ["large", "6M"]).fine();
    rig.feed("put", ["large"], &[7; 6 << 20]).fine();
    let at = rig.pmo(["--json", "dump"], ["object", "large"]).json();
    let at = at["primary"].as_u64().expect("its first page") * 4096;
    shorten(&rig.pool, at + (2 << 20));
    let run = rig.pmo(["check"], [""; 0]);
    assert!(run.code == Some(3) && run.out.contains("object \"large\": 4194304 bytes"), "{run:?}");
    follow(&run.out, "`truncate -s", &rig.pool);
    rig.pmo(["rm"], ["large"]).fine();
    is_whole(&rig);
}

#[test]
fn a_pool_that_lost_a_part_of_its_table_keeps_the_objects_whose_entries_are_left() {
    let rig = rig();
    (0..30)
        .for_each(|number| drop(rig.pmo(["create"], [format!("object {number}"), "4K".to_owned()]).fine()));
    let entry = |name: &str| {
        rig.pmo(["--json", "dump"], ["object", name]).json()["entry"].as_u64().expect("an offset")
    };
    shorten(&rig.pool, entry("object 20") / 4096 * 4096);
    let run = rig.pmo(["check"], [""; 0]);
    assert!(run.code == Some(3) && run.out.contains("parts of its table"), "{run:?}");
    follow(&run.out, "`truncate -s", &rig.pool);
    let repaired = rig.pmo(["repair"], ["--drop-damaged"]);
    assert!(repaired.out.contains("objects, which cannot be named"), "{repaired:?}");
    assert_eq!(rig.pmo(["cat"], ["object 1"]).fine().raw, [0; 4096]);
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(run.out.ends_with("clean\n"), "{run:?}");
}

#[test]
fn a_pool_on_a_read_only_mount_is_backed_up() {
    let rig = rig();
    let backup = rig.path("one.backup");
    let script = format!(
        "mkdir ro && mount --bind . ro && mount -o remount,ro,bind ro && \"{PMO}\" backup ro/t.pmo {} && \"{PMO}\" check ro/t.pmo && \
         ! \"{PMO}\" clone ro/t.pmo clone.pmo",
        backup.display()
    );
    let mut mounts = Command::new("unshare");
    mounts
        .args(["-rm", "sh", "-c", "mkdir -p x && mount -t tmpfs none x && umount x"])
        .current_dir(rig.dir.path());
    if !mounts.output().is_ok_and(|output| output.status.success()) {
        return skipped("backups on a read-only mount: this user cannot mount");
    }
    let run =
        Run::of(Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(rig.dir.path()), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("help: a pool that can only be read is copied by `pmo backup`"), "{run:?}");
    let new = text(&rig.path("new.pmo"));
    pmo(["restore", &text(&backup), &new]).fine();
    assert_eq!(pmo(["cat", &new, "a"]).fine().raw, b"one");
}

#[test]
fn a_pool_that_this_user_may_only_read_is_backed_up() {
    let rig = rig();
    let backup = rig.path("one.backup");
    fs::set_permissions(&rig.pool, Permissions::from_mode(0o444)).expect("set");
    let run = || {
        let mut command = rig.command(["backup"]);
        as_another(&rig, &mut command).then(|| Run::of(command.arg(&backup), b""))
    };
    let Some(done) = run() else { return };
    done.fine();
    pmo(["verify", &text(&backup)]).fine();
    fs::set_permissions(&rig.pool, Permissions::from_mode(0o644)).expect("set");
    let writer = rig.hold("a", true);
    fs::set_permissions(&rig.pool, Permissions::from_mode(0o444)).expect("set");
    fs::remove_file(&backup).expect("removed");
    run().expect("as before").fails(4, "held by");
    writer.release();
    run().expect("as before").fine();
}

#[test]
fn a_pool_of_mode_0_is_read_once_its_owner_may_read_it() {
    let rig = rig();
    let run = |words: &[&str], mode: u32| {
        fs::set_permissions(&rig.pool, Permissions::from_mode(mode)).expect("set");
        let mut command = Command::new(PMO);
        command.arg(words[0]).arg(&rig.pool).args(&words[1..]);
        as_another(&rig, &mut command).then(|| Run::of(&mut command, b"two"))
    };
    let Some(refused) = run(&["ls"], 0) else { return };
    assert!(refused.fails(6, "cannot read").err.contains("`chmod u+r`"));
    run(&["ls"], 0o400).expect("as before").fine();
    let refused = run(&["put", "a"], 0o400).expect("as before").fails(6, "cannot write to");
    assert!(refused.err.contains("`chmod u+w`"), "{refused:?}");
    run(&["put", "a"], 0o600).expect("as before").fine();
}

#[test]
fn commands_that_wait_name_the_holder_and_succeed_once_it_is_gone() {
    let rig = rig();
    let clone = text(&rig.path("clone.pmo"));
    let commands: [&[&str]; 5] =
        [&["put", "a"], &["repair"], &["clone", &clone], &["upgrade"], &["format", "--force"]];
    for words in commands {
        let command = || {
            let mut command = Command::new(PMO);
            command.args(["--wait", "60"]).arg(words[0]).arg(&rig.pool).args(&words[1..]);
            command
        };
        let writer = rig.hold("a", true);
        let mut plain = Command::new(PMO);
        plain.arg(words[0]).arg(&rig.pool).args(&words[1..]);
        let run = Run::of(&mut plain, b"two").fails(4, &format!("process {}", writer.pid()));
        if words[0] != "format" && run.err.contains("--wait") {
            let waiting = std::thread::spawn({
                let mut command = command();
                move || Run::of(&mut command, b"two")
            });
            writer.release();
            waiting.join().expect("ended").fine();
        } else {
            writer.release();
            Run::of(&mut plain, b"two").fine();
        }
    }
}

#[test]
fn a_full_disk_is_exit_8_and_names_the_file() {
    let rig = rig();
    rig.pmo(["create"], ["noise", "6M"]).fine();
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..6_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    rig.feed("put", ["noise"], &noise).fine();
    let backup = rig.path("one.backup");
    rig.pmo(["backup"], [&text(&backup)]).fine();
    let pool = text(&rig.pool);
    let to = |name: &str| text(&rig.path(name));
    let (export, clone, restored, copy, new) =
        (to("x.export"), to("clone.pmo"), to("restored.pmo"), to("two.backup"), to("new.pmo"));
    let backup = text(&backup);
    let cases: [(&[&str], &str); 6] = [
        (&["backup", &pool, &copy], &copy),
        (&["export", &pool, "noise", &export], &export),
        (&["clone", &pool, &clone], &clone),
        (&["restore", &backup, &restored], &restored),
        (&["format", &new, "--size", "64M"], &new),
        (&["grow", &pool, "64M"], &pool),
    ];
    for (words, file) in cases {
        let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"";
        let run = Run::of(Command::new("sh").args(["-c", script, PMO]).args(words), b"");
        assert_eq!(run.code, Some(8), "{words:?}: {run:?}");
        assert!(run.err.contains(file), "{words:?}: {run:?}");
        for left in fs::read_dir(rig.dir.path()).expect("a folder").flatten() {
            assert!(!text(&left.path()).contains("partial"), "{words:?} leaves {left:?}");
        }
    }
    for words in [
        &["ls"][..],
        &["stat"],
        &["check"],
        &["cat", "a"],
        &["metrics"],
        &["backup", "-"],
        &["export", "a", "-"],
    ] {
        let script = "exec \"$0\" \"$@\" > /dev/full";
        let run =
            Run::of(Command::new("sh").args(["-c", script, PMO, words[0], &pool]).args(&words[1..]), b"");
        assert_eq!(run.code, Some(8), "{words:?}: {run:?}");
    }
    is_whole(&rig);
}

/// On a tmpfs without a free page: a read must not claim one.
#[test]
fn a_copied_sparse_pool_is_read_on_a_full_disk() {
    let rig = rig();
    rig.pmo(["create"], ["holes", "4M"]).fine();
    let mut tail = vec![0; 4 << 20];
    tail[(4 << 20) - 1] = 9;
    rig.feed("put", ["holes"], &tail).fine();
    let script = format!(
        "mkdir full && mount -t tmpfs -o size=40M none full && cp --sparse=always t.pmo full/ && \
         {{ dd if=/dev/zero of=full/rest bs=4k 2>/dev/null; true; }} && \
         \"{PMO}\" ls full/t.pmo >/dev/null && \"{PMO}\" cat full/t.pmo a && \"{PMO}\" cat full/t.pmo holes | cksum && \
         \"{PMO}\" backup full/t.pmo out.backup -q && \"{PMO}\" check full/t.pmo >/dev/null"
    );
    let tried = "mkdir tried && mount -t tmpfs -o size=1M none tried";
    let unshare = |script: &str| {
        Run::of(Command::new("unshare").args(["-rm", "sh", "-c", script]).current_dir(rig.dir.path()), b"")
    };
    if unshare(tried).code != Some(0) {
        return skipped("pools on a full tmpfs: this user cannot mount one");
    }
    let run = unshare(&script);
    let expected = Run::of(Command::new("sh").args(["-c", "cksum"]), &tail).out;
    assert_eq!((run.code, run.out), (Some(0), format!("one{expected}")), "{}", run.err);
}

#[test]
fn a_killed_restore_is_named_by_check_and_removed_by_gc() {
    let rig = rig();
    // No process has this number.
    let left: PathBuf = rig.path("t.pmo.4194305.partial");
    fs::write(&left, [7; 1000]).expect("written");
    let run = rig.pmo(["check"], [""; 0]).fine();
    assert!(run.out.contains(&text(&left)), "{run:?}");
    follow(&run.out, "`pmo gc", &rig.pool);
    assert!(!left.exists());
    is_whole(&rig);
}

#[test]
fn a_damaged_change_of_the_table_is_an_error_and_repair_keeps_it() {
    let rig = rig();
    rig.pmo(["create"], ["last", "4K"]).fine();
    let bytes = fs::read(&rig.pool).expect("read");
    let mut lane = (24576..20480 + (256 << 10)).step_by(64);
    let last = lane.rfind(|at| bytes[*at..*at + 4] == *b"BTCH").expect("a batch");
    overwrite(&rig.pool, ((last + 4096) / 4096 * 4096) as u64, &[0xa5; 4096]);
    let run = rig.pmo(["check"], [""; 0]);
    assert!(run.code == Some(3) && run.out.contains("batches of the table were applied"), "{run:?}");
    rig.pmo(["ls"], [""; 0]).fails(3, "damaged");
    rig.pmo(["repair"], [""; 0]).fine();
    assert_eq!(rig.line("last"), "D - 4 KiB last");
    is_whole(&rig);
}
