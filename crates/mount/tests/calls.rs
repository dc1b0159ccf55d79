//! System calls of the contract: names, locks, copies, special files, refusals.

use crate::support::Place;
use nix::fcntl::{FcntlArg, fcntl};
use rustix::fs::{CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, XattrFlags};
use rustix::fs::{copy_file_range, fallocate, flock, mknodat, open, setxattr};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};

#[test]
fn names_have_any_bytes_and_255_of_them() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let bytes: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    let names = [&bytes[..], &[0xff; 255], &[b'.'; 3], b" ", b"\n"];
    for (at, name) in names.iter().enumerate() {
        fs::write(place.dir.join(OsStr::from_bytes(name)), [at as u8]).unwrap();
    }
    let long = fs::write(place.dir.join("x".repeat(256)), "").unwrap_err();
    assert_eq!(long.raw_os_error(), Some(libc::ENAMETOOLONG));
    mounted.end();
    let Some(mounted) = place.mount() else { return };
    for (at, name) in names.iter().enumerate() {
        assert_eq!(fs::read(place.dir.join(OsStr::from_bytes(name))).unwrap(), [at as u8]);
    }
    assert_eq!(fs::read_dir(&place.dir).unwrap().count(), names.len());
    mounted.end();
}

fn ofd_lock(of: &fs::File) -> nix::Result<i32> {
    let (kind, whence) = (libc::F_WRLCK as i16, libc::SEEK_SET as i16);
    let range = libc::flock { l_type: kind, l_whence: whence, l_start: 10, l_len: 5, l_pid: 0 };
    fcntl(of, FcntlArg::F_OFD_SETLK(&range))
}

#[test]
fn locks_exclude_other_descriptors() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let file = |name: &str| {
        fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(place.path(name))
            .unwrap()
    };
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let (one, two) = (file("locked"), file("locked"));
    flock(&one, exclusive).unwrap();
    assert_eq!(flock(&two, exclusive), Err(Errno::WOULDBLOCK));
    // By name: a process that another test starts may hold the descriptor for a moment.
    flock(&one, FlockOperation::Unlock).unwrap();
    flock(&two, exclusive).unwrap();
    let (one, two) = (file("ranges"), file("ranges"));
    ofd_lock(&one).unwrap();
    assert_eq!(ofd_lock(&two), Err(nix::Error::EAGAIN));
    drop(one);
    ofd_lock(&two).unwrap();
    drop(two);
    mounted.end();
}

#[test]
fn ranges_are_copied_within_the_volume() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let bytes: Vec<u8> = (0..400_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(place.path("from"), &bytes).unwrap();
    let (from, to) =
        (fs::File::open(place.path("from")).unwrap(), fs::File::create_new(place.path("to")).unwrap());
    let (mut here, mut there) = (1000, 70_000);
    while here < 300_000 {
        let rest = 300_000 - here as usize;
        assert!(copy_file_range(&from, Some(&mut here), &to, Some(&mut there), rest).unwrap() > 0);
    }
    to.sync_all().unwrap();
    drop((from, to));
    mounted.end();
    let Some(mounted) = place.mount() else { return };
    let copied = fs::read(place.path("to")).unwrap();
    assert!(copied[..70_000].iter().all(|byte| *byte == 0));
    assert_eq!(copied[70_000..], bytes[1000..300_000]);
    mounted.end();
}

#[test]
fn zeroed_ranges_grow_a_file_or_keep_its_length() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let file = fs::File::create_new(place.path("file")).unwrap();
    file.write_all_at(&[7; 100_000], 0).unwrap();
    let zero = FallocateFlags::ZERO_RANGE;
    fallocate(&file, zero | FallocateFlags::KEEP_SIZE, 60_000, 90_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 100_000);
    fallocate(&file, zero, 70_000, 90_000).unwrap();
    drop(file);
    let expected = [vec![7; 60_000], vec![0; 100_000]].concat();
    assert!(fs::read(place.path("file")).unwrap() == expected);
    mounted.end();
}

#[test]
fn special_files_work_and_others_are_refused() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    std::os::unix::net::UnixStream::connect(place.path("socket")).unwrap();
    assert!(fs::symlink_metadata(place.path("socket")).unwrap().file_type().is_socket());
    drop(socket);
    mknodat(CWD, place.path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let fifo = fs::File::options().read(true).write(true).open(place.path("fifo")).unwrap();
    rustix::io::write(&fifo, b"through").unwrap();
    let mut read = [0; 7];
    rustix::io::read(&fifo, &mut read).unwrap();
    assert_eq!(&read, b"through");

    let device = mknodat(CWD, place.path("device"), FileType::CharacterDevice, Mode::RWXU, 1);
    assert_eq!(device, Err(Errno::PERM));
    let unnamed = open(&place.dir, OFlags::TMPFILE | OFlags::RDWR, Mode::RWXU);
    assert_eq!(unnamed.err(), Some(Errno::OPNOTSUPP));
    // An owner, a user, a group, a mask and others; an empty list removes.
    let entries = [(1, !0), (2, 1000), (4, !0), (0x10, !0), (0x20, !0_u32)];
    let entry = |(tag, id): (u8, u32)| [&[tag, 0, 5, 0][..], &id.to_le_bytes()].concat();
    let list = [vec![2_u8, 0, 0, 0], entries.into_iter().flat_map(entry).collect()].concat();
    for name in ["system.posix_acl_access", "system.posix_acl_default"] {
        for value in [&list[..], &list[..4]] {
            let set = setxattr(&place.dir, name, value, XattrFlags::empty());
            assert_eq!(set, Err(Errno::OPNOTSUPP), "{name}, {} bytes", value.len());
        }
    }
    assert_eq!(fs::read_dir(&place.dir).unwrap().count(), 2);
    mounted.end();
}

#[test]
fn an_unmount_keeps_the_writes_of_open_files() {
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    let file = fs::File::create(place.path("open")).unwrap();
    file.write_all_at(b"not synced", 0).unwrap();
    mounted.end();
    assert!(file.write_at(b"too late", 0).is_err());
    let Some(mounted) = place.mount() else { return };
    assert_eq!(fs::read(place.path("open")).unwrap(), b"not synced");
    mounted.end();
}

#[test]
fn an_unmount_leaves_nothing_to_recover() {
    let Some(place) = Place::new(64 << 20) else { return };
    let waits = || indelible::Pool::open(&place.pool).unwrap().stat("files").unwrap().needs_recovery;
    let Some(mut killed) = place.mount() else { return };
    fs::write(place.path("file"), "one").unwrap();
    fs::File::open(&place.dir).unwrap().sync_all().unwrap();
    killed.kill();
    drop(killed);
    assert!(waits());
    let mounted = place.mount().unwrap();
    fs::write(place.path("file"), "two").unwrap();
    mounted.end();
    assert!(!waits());
}
