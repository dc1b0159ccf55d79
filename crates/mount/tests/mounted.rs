//! System calls on a mounted volume.

use crate::support::{Place, process, work};
use indelible::Pool;
use rustix::fs::{FallocateFlags, SeekFrom, XattrFlags, fallocate, getxattr, removexattr, seek, setxattr};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

#[test]
fn s2_22_programs_use_a_mounted_volume_as_any_file_system() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let path = |name: &str| place.path(name);
    fs::create_dir_all(path("a/b")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 5) as u8).collect();
    fs::write(path("a/file"), &bytes).unwrap();
    fs::hard_link(path("a/file"), path("a/b/second")).unwrap();
    symlink("a/file", path("link")).unwrap();
    fs::rename(path("a/b"), path("c")).unwrap();
    assert_eq!(fs::read(path("link")).unwrap(), bytes);
    let found = path("c/second").metadata().unwrap();
    assert_eq!((found.nlink(), found.len()), (2, 3_000_000));
    fs::set_permissions(path("c/second"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(path("a/file").metadata().unwrap().mode(), 0o100_640);
    setxattr(path("a/file"), "user.mime", b"text/plain", XattrFlags::CREATE).unwrap();
    let mut value = [0; 100];
    assert_eq!(getxattr(path("c/second"), "user.mime", &mut value).unwrap(), 10);
    let acl = setxattr(path("c/second"), "system.acl", b"", XattrFlags::empty());
    assert_eq!(acl, Err(rustix::io::Errno::OPNOTSUPP));
    for number in 0..500 {
        fs::write(path(&format!("a/{number:03}")), []).unwrap();
    }
    assert_eq!(fs::read_dir(path("a")).unwrap().count(), 501);
    assert_eq!(fs::read_dir(path("")).unwrap().count(), 3);
    // An open file outlives its name.
    let mut open = fs::File::options().read(true).write(true).open(path("a/007")).unwrap();
    fs::remove_file(path("a/007")).unwrap();
    open.write_all(b"still here").unwrap();
    let mut read = [0; 20];
    assert_eq!(open.read_at(&mut read, 0).unwrap(), 10);
    drop(open);
    let mut both = fs::File::options();
    let sparse = both.read(true).write(true).create_new(true).open(path("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    sparse.write_all_at(b"far", 1 << 39).unwrap();
    assert_eq!(seek(&sparse, SeekFrom::Data(0)).unwrap(), 1 << 39);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&sparse, punch, 1 << 39, 2).unwrap();
    sparse.read_exact_at(&mut read[..3], 1 << 39).unwrap();
    assert_eq!(&read[..3], b"\0\0r");
    sparse.sync_all().unwrap();
    drop(sparse);
    mounted.end();

    let Some(mounted) = place.mount() else { return };
    assert_eq!(fs::read(path("c/second")).unwrap(), bytes);
    assert!(!path("a/007").exists());
    let free = rustix::fs::statvfs(place.path("")).unwrap();
    assert!(free.f_bfree > 0 && free.f_bfree < free.f_blocks);
    mounted.end();
    let mut volume = indelible_posix::Volume::open(&Pool::open(&place.pool).unwrap(), "files").unwrap();
    assert_eq!(volume.check(), [""; 0]);
}

#[test]
fn impossible_operations_are_errors() {
    let Some(place) = Place::new(16 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    // The full volume's file is unchanged.
    let file = fs::File::create(place.path("file")).unwrap();
    let mut length = 0;
    let error = loop {
        match file.write_at(&[7; 100_000], length) {
            Ok(written) => length += written as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(file.metadata().unwrap().len(), length);
    file.set_len(0).unwrap();
    file.sync_all().unwrap();
    fs::write(place.path("other"), b"there is room again").unwrap();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let said = place.try_mount(&elsewhere, "").err().unwrap();
    assert!(said.contains("in use"), "{said}");
    let said = place.try_mount(&elsewhere, "volume=none").err().unwrap();
    assert!(said.contains("none"), "{said}");
    let said = place.try_mount(&elsewhere, "nonsense").err().unwrap();
    assert!(said.contains("nonsense"), "{said}");
    mounted.end();
    assert!(file.write_at(b"x", 0).is_err());
    let Some(_mounted) = place.mount() else { return };
    assert_eq!(fs::read(place.path("other")).unwrap(), b"there is room again");
}

#[test]
fn a_snapshot_is_mounted_beside_its_volume() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let kept = place.path("kept");
    fs::write(&kept, "monday").unwrap();
    fs::File::open(&kept).unwrap().sync_all().unwrap();
    Pool::open(&place.pool).unwrap().snapshot("files", "monday", b"").unwrap();
    fs::remove_file(&kept).unwrap();
    let monday = place.folder.path().join("monday");
    fs::create_dir(&monday).unwrap();
    let snapshot = place.try_mount(&monday, "snapshot=monday").unwrap();
    assert_eq!(fs::read(monday.join("kept")).unwrap(), b"monday");
    let error = fs::write(monday.join("kept"), "tuesday").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EROFS));
    assert!(!kept.exists());
    snapshot.end();
    mounted.end();
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn member() {
    let Some(dir) = work() else { return };
    setxattr(&dir, "pmo.group", b"600", XattrFlags::empty()).unwrap();
    assert_eq!(setxattr(&dir, "pmo.group", b"600", XattrFlags::empty()), Err(rustix::io::Errno::BUSY));
    for name in ["one", "two"] {
        let mut file = fs::File::create(dir.join(name)).unwrap();
        file.write_all(b"new").unwrap();
        file.sync_all().unwrap(); // returns, though the group is open
    }
    println!("WROTE");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    removexattr(&dir, "pmo.group").unwrap();
    println!("ENDED");
}

/// The volume's process has received another thread's `fsync`.
fn wait_for_request(thread: u32, place: &Place) {
    let sleeps = || {
        let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| !rest.starts_with('R'))
    };
    while !sleeps() {
        std::thread::yield_now();
    }
    // Requests are served in sequence.
    rustix::fs::statvfs(&place.dir).unwrap();
}

#[test]
fn a_group_of_files_changes_as_one_step() {
    let Some(place) = Place::new(64 << 20) else { return };
    for ends in [false, true] {
        let Some(mut mounted) = place.mount() else { return };
        let bystander = fs::File::create(place.path("bystander")).unwrap();
        let mut member =
            process("mounted::member", &place.dir).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(member.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.by_ref().any(|line| line.contains("WROTE")));
        assert_eq!(removexattr(&place.dir, "pmo.group"), Err(rustix::io::Errno::PERM));
        (&bystander).write_all(b"x").unwrap();
        let synced = std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let thread = scope.spawn(move || {
                tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
                bystander.sync_all()
            });
            wait_for_request(told.recv().unwrap(), &place);
            match ends {
                true => member.stdin.take().unwrap().write_all(b"\n").unwrap(),
                false => mounted.kill(),
            }
            thread.join().unwrap()
        });
        // The bystander's changes become durable with the group.
        assert_eq!(synced.is_ok(), ends, "{synced:?}");
        drop(member.stdin.take());
        assert_eq!(member.wait().unwrap().success(), ends);
        drop(mounted);
        let Some(mut mounted) = place.mount() else { return };
        let there = ["one", "two"].map(|name| place.path(name).exists());
        let length = place.path("bystander").metadata().unwrap().len();
        assert_eq!((there, length), ([ends; 2], u64::from(ends)));
        mounted.kill();
    }
}

#[test]
fn a_group_ends_with_its_owner() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mut mounted) = place.mount() else { return };
    let bystander = fs::File::create(place.path("bystander")).unwrap();
    let mut member =
        process("mounted::member", &place.dir).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(member.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains("WROTE")));
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let thread = scope.spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            bystander.sync_all()
        });
        wait_for_request(told.recv().unwrap(), &place);
        member.kill().unwrap();
        member.wait().unwrap();
        // Within the ten minutes of the dead owner's group.
        let began = setxattr(&place.dir, "pmo.group", b"600", XattrFlags::empty());
        if began.is_err() {
            mounted.kill();
        }
        assert_eq!((began, thread.join().unwrap().is_ok()), (Ok(()), true));
    });
    mounted.kill();
    let Some(mounted) = place.mount() else { return };
    // Nothing takes changes back: those until the death are durable.
    assert!(["one", "two"].iter().all(|name| place.path(name).exists()));
    let absent = setxattr(&place.dir, "pmo.group", b"600 2147483647", XattrFlags::empty());
    assert_eq!(absent, Err(rustix::io::Errno::SRCH));
    mounted.end();
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn late_member() {
    let Some(dir) = work() else { return };
    setxattr(&dir, "pmo.group", b"1", XattrFlags::empty()).unwrap();
    println!("BEGAN");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert_eq!(removexattr(&dir, "pmo.group"), Err(rustix::io::Errno::TIMEDOUT));
    println!("ENDED");
}

#[test]
fn a_group_that_another_followed_was_too_late() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let mut member =
        process("mounted::late_member", &place.dir).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(member.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains("BEGAN")));
    // Until the first one's time is over.
    while let Err(error) = setxattr(&place.dir, "pmo.group", b"600", XattrFlags::empty()) {
        assert_eq!(error, rustix::io::Errno::BUSY);
        std::thread::yield_now();
    }
    member.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(lines.by_ref().any(|line| line.contains("ENDED")));
    assert!(member.wait().unwrap().success());
    removexattr(&place.dir, "pmo.group").unwrap();
    assert_eq!(removexattr(&place.dir, "pmo.group"), Err(rustix::io::Errno::INVAL));
    mounted.end();
}

#[test]
fn a_dead_process_leaves_errors_until_the_next_mount() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mut mounted) = place.mount() else { return };
    let mut file = fs::File::create(place.path("file")).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_all().unwrap();
    file.write_all(b" and not").unwrap();
    mounted.kill();
    assert_eq!(fs::metadata(place.path("file")).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    let again = place.mount();
    let mut text = String::new();
    fs::File::open(place.path("file")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "synced");
    again.unwrap().end();
}
