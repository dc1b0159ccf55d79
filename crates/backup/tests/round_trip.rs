//! Objects come back with content, identity, address, flags and keys.

use crate::support::{all, content, expect_same, noise, put, unseen, varied};
use indelible::collections::{PHashMap, PString};
use indelible::{CreateOptions, ErrorKind, Object, Pool, PoolOptions, Tx, TxCell, psync_all};
use indelible_backup::{
    BackupError, Choice, RestoreOptions, backup_file, backup_into, backup_to, describe, restore,
    restore_objects, restore_stream, verify, verify_stream,
};
use indelible_store::error::StoreError;
use indelible_testing::sim::{SimConfig, SimMedium};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const KEY: Choice<'static> = Choice { objects: &[], key: b"secret", snapshots: false };

#[test]
fn all_kinds_of_objects_come_back_from_a_folder_and_from_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let pool = varied(&dir.path().join("a.pmo"));
    let before = content(&pool);
    let folder = dir.path().join("backups");
    let made = backup_into(&pool, &KEY, &folder, false, &mut unseen).unwrap();
    assert_eq!((made.objects, made.base), (before.len() as u64, None));
    let mut stream = Vec::new();
    let streamed = backup_to(&pool, &KEY, &mut stream, &mut unseen).unwrap();
    assert_eq!((streamed.bytes, streamed.held), (stream.len() as u64, made.held));
    expect_same(&pool, &before);
    let found = verify(&folder, &mut unseen).unwrap();
    assert!(found.damage.is_empty() && found.bytes == made.held, "{found:?}");
    assert!(verify_stream(&mut &stream[..], Path::new("-"), &mut unseen).unwrap().damage.is_empty());

    let (one, two) = (dir.path().join("one.pmo"), dir.path().join("two.pmo"));
    let options = PoolOptions::new();
    restore(&folder, &one, &RestoreOptions::default(), &options, &mut unseen).unwrap();
    restore_stream(&mut &stream[..], Path::new("-"), &two, &RestoreOptions::default(), &options, &mut unseen)
        .unwrap();
    for path in [&one, &two] {
        let found = Pool::open(path).unwrap();
        expect_same(&found, &before);
        // They have their own IDs: a process can open both.
        assert_ne!(found.id(), pool.id());
        drop(found);
        let report = indelible::check(path, &options, &mut |_, _| {}).unwrap();
        assert!(report.findings.is_empty(), "{report:?}");
    }
    drop(pool);
    let pool = Pool::open(&one).unwrap();
    let mut heap = pool.heap("words", 0).unwrap();
    let words = heap.root_or_default::<PHashMap<PString, u64>>("words").unwrap();
    assert_eq!(words["word 77"], 77);
    words.insert("new", 1);
    heap.psync().unwrap();
    assert_eq!(pool.attach("array yesterday").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
    assert_eq!(pool.attach_read("locked").unwrap_err().kind(), ErrorKind::WrongKey);
    pool.attach_with_key("locked", b"secret").unwrap().detach().unwrap();
    pool.create("another", 1 << 20).unwrap();
    put(&pool, "another", 0, b"x");
}

#[test]
fn writers_go_on_and_what_they_had_psynced_is_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("a.pmo"), 16 << 20).unwrap();
    let mut writers: Vec<_> = ["a", "b"].map(|name| pool.create_attached(name, 100_000).unwrap()).into();
    for object in &mut writers {
        object.as_mut_slice()[..5].copy_from_slice(b"first");
        object.psync().unwrap();
        object.as_mut_slice()[..5].copy_from_slice(b"never");
    }
    let mut stream = Vec::new();
    backup_to(&pool, &all(), &mut stream, &mut unseen).unwrap();
    for object in &mut writers {
        object.psync().unwrap();
    }
    drop(writers);
    let names: Vec<_> = pool.list().map(|stat| stat.unwrap().name).collect();
    assert_eq!(names.len(), 2, "a snapshot stayed: {names:?}");
    let new = dir.path().join("b.pmo");
    restore_stream(
        &mut &stream[..],
        Path::new("-"),
        &new,
        &RestoreOptions::default(),
        &PoolOptions::new(),
        &mut unseen,
    )
    .unwrap();
    let (new, old) = (content(&Pool::open(&new).unwrap()), content(&pool));
    for name in ["a", "b"] {
        assert_eq!((&new[name].1[..5], &old[name].1[..5]), (&b"first"[..], &b"never"[..]));
        assert_eq!((new[name].0.id, new[name].0.address), (old[name].0.id, old[name].0.address));
    }
}

struct Slow<'p> {
    to: Vec<u8>,
    writers: &'p mut [Object],
    round: &'p mut u64,
}

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(1000);
        self.to.extend(&bytes[..taken]);
        *self.round += 1;
        for object in &mut *self.writers {
            object.as_mut_slice().chunks_mut(8).for_each(|word| {
                word.copy_from_slice(&self.round.to_le_bytes()[..word.len()]);
            });
        }
        psync_all(&mut self.writers.iter_mut().collect::<Vec<_>>()).unwrap();
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn writers_go_on_however_slow_the_destination_is() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("a.pmo"), 32 << 20).unwrap();
    let mut writers: Vec<_> = ["a", "b"].map(|name| pool.create_attached(name, 40_000).unwrap()).into();
    writers.iter_mut().for_each(|object| object.as_mut_slice().copy_from_slice(&noise(7, 40_000)));
    psync_all(&mut writers.iter_mut().collect::<Vec<_>>()).unwrap();
    let mut round = 0;
    let mut slow = Slow { to: Vec::new(), writers: &mut writers, round: &mut round };
    backup_to(&pool, &all(), &mut slow, &mut unseen).unwrap();
    let stream = slow.to;
    assert!(round > 50, "{round} psyncs beside it");
    for object in &writers {
        assert_eq!(object.as_slice()[..8], round.to_le_bytes());
    }
    let new = dir.path().join("b.pmo");
    let options = PoolOptions::new();
    restore_stream(&mut &stream[..], Path::new("-"), &new, &RestoreOptions::default(), &options, &mut unseen)
        .unwrap();
    for (name, (_, bytes)) in content(&Pool::open(&new).unwrap()) {
        assert!(bytes == noise(7, 40_000), "{name}");
    }
}

#[test]
fn snapshots_that_a_killed_backup_left_are_removed_and_never_kept() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("a.pmo"), 16 << 20).unwrap();
    pool.create("a", 100_000).unwrap();
    put(&pool, "a", 0, b"kept");
    pool.snapshot("a", "pmo-backup.0011223344556677.0", b"").unwrap();
    // A user's.
    let mine = ["pmo-backup.0011223344556677", "pmo-backup.monday"];
    mine.iter().for_each(|name| pool.snapshot("a", name, b"").unwrap());
    let made = backup_into(&pool, &all(), &dir.path().join("b"), false, &mut unseen).unwrap();
    assert_eq!(made.objects, 3);
    let mut names: Vec<_> = pool.list().map(|stat| stat.unwrap().name).collect();
    names.sort();
    assert_eq!(names, ["a", mine[0], mine[1]]);
    let forced = Choice { snapshots: true, ..all() };
    assert_eq!(backup_to(&pool, &forced, &mut Vec::new(), &mut unseen).unwrap().objects, 3);
    assert_eq!(pool.list().count(), 3);
}

#[test]
fn chosen_objects_come_back_to_a_pool_that_has_their_addresses_free() {
    let dir = tempfile::tempdir().unwrap();
    let pool = varied(&dir.path().join("a.pmo"));
    let file = dir.path().join("a.backup");
    let wrong = Choice { key: b"", ..KEY };
    assert!(matches!(
        backup_file(&pool, &wrong, &file, false, &mut unseen),
        Err(BackupError::Object { cause: StoreError::WrongKey, name }) if name == "locked"
    ));
    assert!(!file.exists());
    backup_file(&pool, &KEY, &file, false, &mut unseen).unwrap();
    let before = content(&pool);
    let back = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        restore_objects(&file, &pool, &names, false, &mut unseen)
    };
    assert!(matches!(back(&["array"]), Err(BackupError::Object { cause: StoreError::Exists, .. })));
    assert!(matches!(back(&["none"]), Err(BackupError::NoObject(name)) if name == "none"));
    pool.destroy("sparse").unwrap();
    back(&["sparse"]).unwrap();
    expect_same(&pool, &before);
    // Another object has its place.
    pool.destroy("sparse").unwrap();
    let (address, reserved) = (before["sparse"].0.address, before["sparse"].0.reserved);
    while pool.list().all(|stat| !(address..address + reserved).contains(&stat.unwrap().address)) {
        pool.create(&format!("in the way {}", pool.list().count()), PAGE_OBJECT).unwrap();
    }
    assert!(matches!(
        back(&["sparse"]),
        Err(BackupError::Object { cause: StoreError::AddressesTaken { .. }, .. })
    ));
    let only = ["empty".to_owned()];
    let chosen = Choice { objects: &only, ..KEY };
    assert_eq!(backup_to(&pool, &chosen, &mut Vec::new(), &mut unseen).unwrap().objects, 1);
}

const PAGE_OBJECT: u64 = 4096;

#[test]
fn pools_on_a_simulated_medium_are_kept_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let device = |len| Arc::new(SimMedium::new(len, SimConfig::default()));
    let pool = PoolOptions::new().on_device(device(4 << 20), true).unwrap();
    pool.create("a", 50_000).unwrap();
    put(&pool, "a", 100, &noise(3, 30_000));
    let file = dir.path().join("a.backup");
    backup_file(&pool, &all(), &file, false, &mut unseen).unwrap();
    let (kept, before) = (describe(&file).unwrap(), content(&pool));
    drop(pool);
    let (start, len) = kept.window;
    let new = PoolOptions::new().window(start, len).on_device(device(4 << 20), true).unwrap();
    restore_objects(&file, &new, &["a".to_owned()], false, &mut unseen).unwrap();
    expect_same(&new, &before);
}

#[test]
fn a_pool_that_is_in_use_or_too_small_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pmo");
    let pool = varied(&path);
    let file = dir.path().join("a.backup");
    backup_file(&pool, &KEY, &file, false, &mut unseen).unwrap();
    let (before, options) = (content(&pool), PoolOptions::new());
    let over = |path: &Path, len, force| {
        let how = RestoreOptions { len, force, rebase: false };
        restore(&file, path, &how, &options, &mut unseen)
    };
    assert!(matches!(over(&path, None, false), Err(BackupError::Exists(_))));
    let in_use = |result| matches!(result, Err(BackupError::Pool(error)) if error.kind() == ErrorKind::Busy);
    let writer = pool.attach("array").unwrap();
    assert!(in_use(over(&path, None, true)));
    writer.detach().unwrap();
    let reader = pool.attach_read("array").unwrap();
    assert!(in_use(over(&path, None, true)));
    reader.detach().unwrap();
    // Nothing is attached, but could be.
    assert!(in_use(over(&path, None, true)));
    drop(pool);
    let small = over(&path, Some(2 << 20), true);
    assert!(matches!(small, Err(BackupError::Object { cause: StoreError::NoRoom { .. }, .. })), "{small:?}");
    expect_same(&Pool::open(&path).unwrap(), &before);
    put(&Pool::open(&path).unwrap(), "array", 0, b"lost");
    over(&path, None, true).unwrap();
    expect_same(&Pool::open(&path).unwrap(), &before);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn words_come_back_with_their_check_words() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("a.pmo"), 16 << 20).unwrap();
    pool.create_with("checked", &CreateOptions::new(8192).ecc(true)).unwrap();
    let checked = pool.attach_transactional::<[TxCell<u64>; 1024]>("checked").unwrap();
    let fill = |tx: &mut Tx<'_>| (0..1024).try_for_each(|nth| tx.write(&checked.root()[nth], nth as u64 * 7));
    checked.transaction(fill).unwrap();
    let folder = dir.path().join("backups");
    let all = Choice { objects: &[], key: b"", snapshots: false };
    backup_into(&pool, &all, &folder, false, &mut unseen).unwrap();
    drop(checked);
    let path = dir.path().join("b.pmo");
    restore(&folder, &path, &RestoreOptions::default(), &PoolOptions::new(), &mut unseen).unwrap();
    let restored = Pool::open(&path).unwrap();
    let (stat, found) = (restored.stat("checked").unwrap(), restored.scrub("checked", b"", &mut |_, _| {}));
    assert_eq!((stat.size, stat.extent, stat.ecc), (8192, 16384, true));
    let found = found.unwrap();
    assert_eq!((found.words, found.repaired, found.lost), (1024, 0, vec![]));
    let read = restored.attach_read("checked").unwrap();
    let expected: Vec<u8> = (0..1024).flat_map(|nth: u64| (nth * 7).to_le_bytes()).collect();
    assert_eq!(read.as_slice(), expected);
}

/// A new pool of that length has larger structures of its own than the original, which was short.
#[test]
fn a_full_pool_that_was_made_longer_comes_back_whole() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("short.pmo"), 1 << 20).unwrap();
    pool.grow(64 << 20).unwrap();
    let mut names = Vec::new();
    for size in [4 << 20, 1 << 20, 64 << 10, 4 << 10] {
        while pool.create(&format!("{}", names.len()), size).is_ok() {
            put(&pool, &format!("{}", names.len()), 0, &names.len().to_le_bytes());
            names.push(format!("{}", names.len()));
        }
    }
    let before = content(&pool);
    let mut stream = Vec::new();
    backup_to(&pool, &all(), &mut stream, &mut unseen).unwrap();
    let (back, options) = (dir.path().join("back.pmo"), PoolOptions::new());
    let into = |len| {
        let how = RestoreOptions { len, ..RestoreOptions::default() };
        restore_stream(&mut &stream[..], Path::new("-"), &back, &how, &options, &mut unseen)
    };
    let refused = into(Some(64 << 20)).unwrap_err();
    assert!(refused.to_string().contains("no room"), "{refused}");
    into(None).unwrap();
    expect_same(&Pool::open(&back).unwrap(), &before);
    let report = indelible::check(&back, &options, &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn thousands_of_objects_are_kept_as_of_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    for count in [1000, 5000] {
        let pool = Pool::format(dir.path().join(format!("{count}.pmo")), 256 << 20).unwrap();
        (0..count).for_each(|number| pool.create(&format!("object {number}"), 1).unwrap());
        let choice = Choice { snapshots: true, ..all() };
        let made = backup_to(&pool, &choice, &mut Vec::new(), &mut unseen).unwrap();
        assert_eq!((made.objects, pool.list().count() as u64), (count, count));
    }
}
