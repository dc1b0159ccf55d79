//! Each operation: names, links, renames, orphans, holes, damage, groups.

use crate::support::{OWN, check, dump, errno, fresh};
use indelible::Pool;
use indelible_posix::{Allocate, Existing, Kind, New, ROOT, Rename, Seek, Set, Synced, Time, Volume};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

#[test]
fn s2_22_a_tree_is_as_the_last_sync_left_it() {
    let (_folder, pool, mut volume) = fresh(32 << 20);
    let folder = volume.create_directory(ROOT, b"folder", &OWN).unwrap();
    let file = volume.create_file(folder, b"file", &OWN).unwrap();
    volume.write(file, 0, b"one").unwrap();
    assert_eq!(volume.sync().unwrap(), Synced::Durable);
    let synced = dump(&volume);
    volume.write(file, 0, b"two").unwrap();
    volume.rename((folder, b"file"), (ROOT, b"moved"), Rename::Replace).unwrap();
    drop(volume);
    let mut volume = Volume::open(&pool, "files").unwrap();
    assert_eq!(dump(&volume), synced);
    check(&mut volume);
    assert_eq!(errno(Volume::create(&pool, "files", &OWN)), libc::EEXIST);
    pool.create("bytes", 4096).unwrap();
    assert_eq!(
        errno(Volume::create(&pool, "none", &OWN).and_then(|_| Volume::open(&pool, "absent"))),
        libc::ENOENT
    );
    drop(volume);
    let read = Volume::open_read(&pool, "files").unwrap();
    assert_eq!(dump(&read), synced);
}

#[test]
fn names_are_any_bytes_and_at_most_255_of_them() {
    let (_folder, _pool, mut volume) = fresh(32 << 20);
    let bytes: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    let long = vec![0xff; 255];
    for name in [&bytes[..], &long, b"...", b" ", b"\n"] {
        let inode = volume.create_file(ROOT, name, &OWN).unwrap();
        assert_eq!(volume.lookup(ROOT, name).unwrap(), inode);
    }
    let refused: [(&[u8], i32); 6] = [
        (b"", libc::ENOENT),
        (b".", libc::EEXIST),
        (b"..", libc::EEXIST),
        (b"a/b", libc::EINVAL),
        (b"a\0b", libc::EINVAL),
        (&[b'x'; 256], libc::ENAMETOOLONG),
    ];
    for (name, expected) in refused {
        assert_eq!(errno(volume.create_file(ROOT, name, &OWN)), expected, "{name:?}");
    }
    let names: Vec<_> = volume.entries(ROOT, None, 9).unwrap().into_iter().map(|entry| entry.name).collect();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!((names.len(), names.clone()), (5, sorted));
    assert_eq!(volume.entries(ROOT, Some(&names[1]), 2).unwrap()[0].name, names[2]);
    assert_eq!(errno(volume.create_node(ROOT, b"disk", &New::of(libc::S_IFBLK | 0o600, 0, 0))), libc::EPERM);
}

#[test]
fn renames_replace_keep_and_exchange() {
    let (_folder, _pool, mut volume) = fresh(32 << 20);
    let (a, b) = (
        volume.create_directory(ROOT, b"a", &OWN).unwrap(),
        volume.create_directory(ROOT, b"b", &OWN).unwrap(),
    );
    let inner = volume.create_directory(a, b"inner", &OWN).unwrap();
    let file = volume.create_file(b, b"file", &OWN).unwrap();
    let how = Rename::Replace;
    assert_eq!(errno(volume.rename((ROOT, b"a"), (inner, b"a"), how)), libc::EINVAL);
    assert_eq!(errno(volume.rename((b, b"file"), (a, b"inner"), how)), libc::EISDIR);
    assert_eq!(errno(volume.rename((a, b"inner"), (b, b"file"), how)), libc::ENOTDIR);
    assert_eq!(errno(volume.rename((ROOT, b"b"), (ROOT, b"a"), how)), libc::ENOTEMPTY);
    assert_eq!(errno(volume.rename((b, b"file"), (a, b"inner"), Rename::Keep)), libc::EEXIST);
    assert_eq!(errno(volume.rename((b, b"file"), (a, b"none"), Rename::Exchange)), libc::ENOENT);
    assert_eq!(errno(volume.rename((ROOT, b"a"), (a, b"inner"), Rename::Exchange)), libc::EINVAL);
    volume.rename((b, b"file"), (a, b"inner"), Rename::Exchange).unwrap();
    assert_eq!((volume.lookup(a, b"inner").unwrap(), volume.lookup(b, b"file").unwrap()), (file, inner));
    assert_eq!(volume.lookup(inner, b"..").unwrap(), b);
    assert_eq!((volume.attributes(a).unwrap().links, volume.attributes(b).unwrap().links), (2, 3));
    volume.rename((b, b"file"), (ROOT, b"a2"), Rename::Keep).unwrap();
    volume.rename((ROOT, b"b"), (ROOT, b"a2"), how).unwrap();
    assert_eq!(volume.find(b"/a2").unwrap(), b);
    assert_eq!(errno(volume.attributes(inner)), libc::ESTALE);
    volume.link(file, b, b"second").unwrap();
    volume.rename((b, b"second"), (a, b"inner"), how).unwrap(); // two names of one file: nothing happens
    assert_eq!(volume.attributes(file).unwrap().links, 2);
    check(&mut volume);
}

#[test]
fn open_files_outlive_their_names_until_the_next_open() {
    let (_folder, pool, mut volume) = fresh(32 << 20);
    let mut files = Vec::new();
    for name in [&b"a"[..], b"b", b"c", b"d"] {
        let file = volume.create_file(ROOT, name, &OWN).unwrap();
        volume.write(file, 0, name).unwrap();
        volume.hold(file).unwrap();
        volume.unlink(ROOT, name).unwrap();
        files.push(file);
    }
    assert_eq!(errno(volume.link(files[0], ROOT, b"again")), libc::ENOENT);
    volume.release(files[1], 1).unwrap();
    assert_eq!(errno(volume.attributes(files[1])), libc::ESTALE);
    volume.write(files[2], 1, b"more").unwrap();
    assert_eq!(volume.read(files[2], 0, 9).unwrap(), b"cmore");
    let unnamed = volume.create_unnamed(ROOT, &OWN, true).unwrap();
    volume.write(unnamed, 0, b"later named").unwrap();
    volume.link(unnamed, ROOT, b"named").unwrap();
    volume.release(unnamed, 1).unwrap();
    let secret = volume.create_unnamed(ROOT, &OWN, false).unwrap();
    assert_eq!(errno(volume.link(secret, ROOT, b"named too")), libc::ENOENT);
    check(&mut volume);
    volume.sync().unwrap();
    let before = volume.room().unwrap().inodes;
    drop(volume);
    let mut volume = Volume::open(&pool, "files").unwrap();
    assert_eq!((before, volume.room().unwrap().inodes), (6, 2));
    assert_eq!(volume.read(volume.find(b"named").unwrap(), 0, 99).unwrap(), b"later named");
    check(&mut volume);
}

#[test]
fn a_sparse_file_of_a_tebibyte_takes_the_room_of_its_data() {
    let (_folder, _pool, mut volume) = fresh(32 << 20);
    let file = volume.create_file(ROOT, b"sparse", &OWN).unwrap();
    let far = 1 << 40;
    volume.write(file, far, b"end").unwrap();
    volume.write(file, 100_000, &[7; 100_000]).unwrap();
    let attributes = volume.attributes(file).unwrap();
    assert_eq!(attributes.size, far + 3);
    assert!(attributes.held < 1 << 20, "{attributes:?}");
    assert_eq!(volume.seek(file, 0, Seek::Data).unwrap(), 65_536); // of the block
    assert_eq!(volume.seek(file, 65_536, Seek::Hole).unwrap(), 200_000);
    assert_eq!(volume.seek(file, 200_000, Seek::Data).unwrap(), far);
    assert_eq!(volume.seek(file, far, Seek::Hole).unwrap(), far + 3);
    assert_eq!(errno(volume.seek(file, far + 3, Seek::Data)), libc::ENXIO);
    assert_eq!(volume.read(file, far - 1, 10).unwrap(), b"\0end");
    volume.allocate(file, 65_536..131_072, Allocate::Punch).unwrap();
    assert_eq!(volume.seek(file, 0, Seek::Data).unwrap(), 131_072);
    volume.allocate(file, 150_000..160_000, Allocate::Punch).unwrap();
    assert_eq!(volume.read(file, 149_999, 2).unwrap(), [7, 0]);
    assert_eq!(volume.read(file, 159_999, 2).unwrap(), [0, 7]);
    volume.set(file, &Set { size: Some(170_000), ..Set::default() }).unwrap();
    volume.set(file, &Set { size: Some(180_000), ..Set::default() }).unwrap();
    assert_eq!(volume.read(file, 169_999, 3).unwrap(), [7, 0, 0]);
    volume.allocate(file, 0..140_000, Allocate::Zero).unwrap();
    assert_eq!(volume.read(file, 139_999, 2).unwrap(), [0, 7]);
    volume.allocate(file, 0..300_000, Allocate::Keep).unwrap();
    assert_eq!(volume.attributes(file).unwrap().size, 180_000);
    volume.allocate(file, 150_000..300_000, Allocate::ZeroKeep).unwrap();
    assert_eq!(volume.read(file, 149_999, 40_000).unwrap(), [vec![7], vec![0; 30_000]].concat());
    assert_eq!(errno(volume.write(file, i64::MAX as u64, b"x")), libc::EFBIG);
    check(&mut volume);
}

#[test]
fn attributes_are_kept() {
    let (_folder, _pool, mut volume) = fresh(32 << 20);
    volume.set_clock(|| Time { seconds: 7, nanoseconds: 5 });
    let shared = volume.create_directory(ROOT, b"shared", &New::of(0o2775, 1, 42)).unwrap();
    let below = volume.create_directory(shared, b"below", &OWN).unwrap();
    let attributes = volume.attributes(below).unwrap();
    assert_eq!((attributes.gid, attributes.mode, attributes.kind), (42, 0o42755, Kind::Directory));
    let old = Time { seconds: -1, nanoseconds: 999_999_999 };
    let set = Set { mode: Some(0o100), uid: Some(3), modified: Some(old), ..Set::default() };
    volume.set(below, &set).unwrap();
    let attributes = volume.attributes(below).unwrap();
    assert_eq!((attributes.uid, attributes.mode, attributes.modified), (3, 0o40100, old));
    assert_eq!(attributes.born, Time { seconds: 7, nanoseconds: 5 });
    let name = b"user.mime";
    volume.set_attribute(below, name, b"text", Existing::Refuse).unwrap();
    assert_eq!(errno(volume.set_attribute(below, name, b"", Existing::Refuse)), libc::EEXIST);
    assert_eq!(errno(volume.set_attribute(below, b"user.x", b"", Existing::Require)), libc::ENODATA);
    assert_eq!(errno(volume.set_attribute(below, name, &[0; 65_537], Existing::Any)), libc::E2BIG);
    assert_eq!(volume.attribute(below, name).unwrap(), b"text");
    assert_eq!(volume.attribute_names(below).unwrap(), [name.to_vec()]);
    volume.remove_attribute(below, name).unwrap();
    assert_eq!(errno(volume.attribute(below, name)), libc::ENODATA);
}

#[test]
fn directories_are_deep_and_wide() {
    let count = std::env::var("FILES").map_or(20_000, |text| text.parse().unwrap());
    let (_folder, pool, mut volume) = fresh(1 << 30);
    let mut inode = ROOT;
    for _ in 0..100_000 {
        inode = volume.create_directory(inode, b"d", &OWN).unwrap();
    }
    let wide = volume.create_directory(ROOT, b"wide", &OWN).unwrap();
    for number in 0..count {
        volume.create_file(wide, format!("{number:08}").as_bytes(), &OWN).unwrap();
    }
    volume.sync().unwrap();
    drop(volume);
    let mut volume = Volume::open(&pool, "files").unwrap();
    let path = b"d/".repeat(100_000);
    assert_eq!(volume.find(&path).unwrap(), inode);
    assert_eq!(errno(volume.rename((ROOT, b"d"), (inode, b"loop"), Rename::Replace)), libc::EINVAL);
    let (mut last, mut seen) = (None, 0);
    loop {
        let some = volume.entries(wide, last.as_deref(), 1000).unwrap();
        seen += some.len();
        let Some(entry) = some.into_iter().next_back() else { break };
        last = Some(entry.name);
    }
    assert_eq!(seen, count);
    for number in 0..count {
        volume.unlink(wide, format!("{number:08}").as_bytes()).unwrap();
    }
    volume.remove_directory(ROOT, b"wide").unwrap();
    check(&mut volume);
}

#[test]
fn a_group_is_one_step() {
    let (_folder, pool, mut volume) = fresh(32 << 20);
    let synced = dump(&volume);
    volume.begin_group(Duration::from_secs(3600)).unwrap();
    assert_eq!(errno(volume.begin_group(Duration::ZERO)), libc::EBUSY);
    volume.create_file(ROOT, b"one", &OWN).unwrap();
    assert_eq!(volume.sync().unwrap(), Synced::Later);
    drop(volume);
    let mut volume = Volume::open(&pool, "files").unwrap();
    assert_eq!(dump(&volume), synced);
    volume.begin_group(Duration::from_secs(3600)).unwrap();
    volume.create_file(ROOT, b"one", &OWN).unwrap();
    volume.end_group().unwrap();
    assert_eq!(errno(volume.end_group()), libc::EINVAL);
    drop(volume);
    let mut volume = Volume::open(&pool, "files").unwrap();
    volume.find(b"one").unwrap();
    volume.begin_group(Duration::ZERO).unwrap();
    volume.create_file(ROOT, b"two", &OWN).unwrap();
    assert_eq!(volume.sync().unwrap(), Synced::Durable); // its time is over
    assert_eq!(errno(volume.end_group()), libc::ETIMEDOUT);
    drop(volume);
    Volume::open(&pool, "files").unwrap().find(b"two").unwrap();
}

#[test]
fn a_closed_volume_has_nothing_to_recover() {
    let (_folder, pool, mut volume) = fresh(32 << 20);
    volume.begin_group(Duration::from_secs(3600)).unwrap();
    let file = volume.create_file(ROOT, b"kept", &OWN).unwrap();
    volume.close().unwrap();
    assert!(!pool.stat("files").unwrap().needs_recovery);
    assert_eq!(errno(volume.write(file, 0, b"late")), libc::ENODEV);
    assert_eq!(errno(volume.attributes(file)), libc::ENODEV);
    assert!(!volume.check().is_empty(), "a closed volume is not said to be sound");
    volume.close().unwrap();
    let mut again = Volume::open(&pool, "files").unwrap();
    assert_eq!(again.find(b"kept").unwrap(), file);
    check(&mut again);
}

#[test]
fn snapshots_are_volumes_that_are_read() {
    let (_folder, pool, mut volume) = fresh(32 << 20);
    volume.create_file(ROOT, b"kept", &OWN).unwrap();
    volume.sync().unwrap();
    pool.snapshot("files", "monday", b"").unwrap();
    volume.unlink(ROOT, b"kept").unwrap();
    volume.sync().unwrap();
    drop(volume);
    let mut monday = Volume::open_read(&pool, "monday").unwrap();
    monday.find(b"kept").unwrap();
    assert_eq!(errno(monday.unlink(ROOT, b"kept")), libc::EROFS);
    check(&mut monday);
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let (folder, pool, mut volume) = fresh(32 << 20);
    let path = folder.path().join("pool.pmo");
    let a = volume.create_directory(ROOT, b"a", &OWN).unwrap();
    for (name, byte) in [(&b"damaged"[..], 0xa7), (b"sound", 0xb8)] {
        let file = volume.create_file(a, name, &OWN).unwrap();
        volume.write(file, 0, &[byte; 3000]).unwrap();
    }
    volume.sync().unwrap();
    let stat = pool.stat("files").unwrap();
    drop((volume, pool));
    // The bytes, and their pointer.
    let mut bytes = std::fs::read(&path).unwrap();
    let object = stat.offset as usize..(stat.offset + stat.size) as usize;
    let data = bytes[object.clone()].windows(3000).position(|some| some == [0xa7; 3000]).unwrap();
    let pointer = (stat.address + data as u64).to_le_bytes();
    let place = bytes[object.clone()].chunks(8).position(|word| word == pointer).unwrap();
    bytes[object.start + place * 8..][..8].fill(0xff);
    std::fs::write(&path, bytes).unwrap();

    let pool = Pool::open(&path).unwrap();
    let mut volume = Volume::open(&pool, "files").unwrap();
    let damaged = volume.find(b"a/damaged").unwrap();
    let error = volume.read(damaged, 0, 10).unwrap_err();
    assert_eq!(error.errno(), libc::EIO);
    assert!(error.to_string().contains("/a/damaged"), "{error}");
    assert_eq!(volume.read(volume.find(b"a/sound").unwrap(), 2999, 10).unwrap(), [0xb8]);
    assert!(!volume.check().is_empty());
    // A change that meets damage ends all changes, and nothing of it becomes durable.
    volume.create_file(ROOT, b"new", &OWN).unwrap();
    assert_eq!(errno(volume.write(damaged, 5000, b"x")), libc::EIO);
    assert!(volume.failure().is_some());
    assert_eq!(errno(volume.create_file(ROOT, b"newer", &OWN)), libc::EIO);
    assert_eq!(errno(volume.sync()), libc::EIO);
    drop(volume);
    assert_eq!(errno(Volume::open(&pool, "files").unwrap().find(b"new")), libc::ENOENT);
}

#[test]
fn trees_are_copied_in_and_out() {
    let (folder, _pool, mut volume) = fresh(64 << 20);
    let from = folder.path().join("from");
    std::fs::create_dir_all(from.join("below/deep")).unwrap();
    std::fs::write(from.join("below/file"), vec![5; 3_000_000]).unwrap();
    let sparse = std::fs::File::create(from.join("sparse")).unwrap();
    sparse.set_len(1 << 33).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"far", 1 << 32).unwrap();
    std::os::unix::fs::symlink("below/file", from.join("link")).unwrap();
    let copied = volume.copy_in(&from, ROOT, b"tree").unwrap();
    assert_eq!((copied.files, copied.directories, copied.links), (2, 3, 1));
    assert_eq!(errno(volume.copy_in(&from, ROOT, b"tree")), libc::EEXIST);
    assert_eq!(errno(volume.copy_in(&folder.path().join("none"), ROOT, b"none")), libc::ENOENT);
    volume.sync().unwrap();
    check(&mut volume);
    let to = folder.path().join("to");
    let tree = volume.find(b"tree").unwrap();
    assert_eq!(volume.copy_out(tree, &to).unwrap(), copied);
    assert_eq!(std::fs::read(to.join("link")).unwrap(), vec![5; 3_000_000]);
    let mut far = [0; 4];
    let sparse = std::fs::File::open(to.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&sparse, &mut far, (1 << 32) - 1).unwrap();
    assert_eq!((&far, sparse.metadata().unwrap().len()), (b"\0far", 1 << 33));
    let times = [&from, &to].map(|tree| tree.join("below").metadata().unwrap().modified().unwrap());
    assert_eq!(times[0], times[1]);
    assert_eq!(errno(volume.copy_out(tree, &to)), libc::EEXIST);
}

#[test]
fn a_name_that_leads_elsewhere_is_damage_and_nothing_is_copied() {
    let (folder, pool, mut volume) = fresh(32 << 20);
    let path = folder.path().join("pool.pmo");
    let tree = volume.create_directory(ROOT, b"tree", &OWN).unwrap();
    let name = b"XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX_victim";
    let file = volume.create_file(tree, name, &OWN).unwrap();
    volume.write(file, 0, b"bytes").unwrap();
    volume.sync().unwrap();
    drop((volume, pool));
    let mut bytes = std::fs::read(&path).unwrap();
    let other = [&b"../"[..], &b"./".repeat(17), b"/victim"].concat();
    // In the log, too.
    while let Some(place) = bytes.windows(name.len()).position(|some| some == name) {
        bytes[place..][..name.len()].copy_from_slice(&other);
    }
    std::fs::write(&path, bytes).unwrap();

    let pool = Pool::open(&path).unwrap();
    let mut volume = Volume::open(&pool, "files").unwrap();
    let to = folder.path().join("to");
    let error = volume.copy_out(volume.find(b"tree").unwrap(), &to).unwrap_err();
    assert_eq!(error.errno(), libc::EIO);
    assert!(error.to_string().contains("no possible name"), "{error}");
    assert!(!to.exists() && !folder.path().join("victim").exists());
    assert_eq!(errno(volume.entries(tree, None, 10)), libc::EIO);
    assert!(volume.check().iter().any(|wrong| wrong.contains("is no name")));
}

#[test]
fn copies_out_lend_rights_of_their_own_owner_alone() {
    let (folder, _pool, mut volume) = fresh(32 << 20);
    let own = std::fs::metadata(folder.path()).unwrap();
    let of = |uid, gid| New::of(0o6755, uid, gid);
    let (uid, gid) = (own.uid(), own.gid());
    let all = [(uid, gid, 0o6755), (uid + 1, gid, 0o2755), (uid, gid + 1, 0o4755), (uid + 1, gid + 1, 0o755)];
    for (nth, (uid, gid, mode)) in all.into_iter().enumerate() {
        let file = volume.create_file(ROOT, &[b'a' + nth as u8], &of(uid, gid)).unwrap();
        let to = folder.path().join(format!("{nth}"));
        volume.copy_out(file, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().mode() & 0o7777, mode, "{nth}");
    }
}

#[test]
fn a_file_without_a_length_is_copied_whole() {
    let (_folder, _pool, mut volume) = fresh(32 << 20);
    let from = std::path::Path::new("/proc/self/status");
    let copied = volume.copy_in(from, ROOT, b"status").unwrap();
    let read = volume.read(volume.find(b"status").unwrap(), 0, usize::MAX).unwrap();
    assert!(read.starts_with(b"Name:") && copied.bytes == read.len() as u64, "{copied:?}");
}
