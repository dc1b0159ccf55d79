//! Restores at other addresses, and clones.

use crate::support::{all, content, elsewhere, expect_same, put, unseen, varied};
use indelible::collections::{PBTreeMap, PHashMap, PString, PVec};
use indelible::{CreateOptions, ErrorKind, Heap, MediumKind, Pool, PoolOptions};
use indelible_backup::{
    BackupError, Choice, RestoreOptions, backup_file, backup_into, clone_pool, clone_rebased, restore,
    restore_objects,
};
use indelible_store::error::StoreError;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const REBASE: RestoreOptions = RestoreOptions { len: None, force: false, rebase: true };

type Words<'h> = PHashMap<'h, PString<'h>, PVec<'h, PString<'h>>>;

fn add(heap: &mut Heap, words: std::ops::Range<u64>) {
    let map = heap.root_or_default::<Words<'_>>("words").unwrap();
    for n in words {
        map.entry(format!("word {n}").as_str()).or_default().push(format!("of {n}, in a block").as_str());
    }
    heap.psync().unwrap();
}

#[track_caller]
fn has(heap: &mut Heap, count: u64) {
    assert_eq!(heap.check(), []);
    let map = heap.root_mut::<Words<'_>>("words").unwrap();
    assert_eq!(map.len() as u64, count);
    assert!((0..count).all(|n| map[format!("word {n}").as_str()][0] == *format!("of {n}, in a block")));
}

/// A heap with a snapshot and a copy, one of a unique size, one with a key, an empty object.
fn described(dir: &TempDir) -> (PathBuf, Pool) {
    let path = dir.path().join("a.pmo");
    let pool = PoolOptions::new().label("mine").format(&path, 32 << 20).unwrap();
    let mut heap = pool.heap("words", 1 << 20).unwrap();
    add(&mut heap, 0..100);
    pool.snapshot("words", "before", b"").unwrap();
    add(&mut heap, 100..300);
    drop(heap);
    pool.create_from("before", "trial", b"", &CreateOptions::new(0)).unwrap();
    let mut tree = Heap::format(
        pool.create_attached_with("locked", &CreateOptions::new(3 << 20).key(b"k").sparse(true)).unwrap(),
    )
    .unwrap();
    tree.root_or_default::<PBTreeMap<'_, u64, u64>>("tree").unwrap().extend((0..1000).map(|n| (n, n)));
    tree.psync().unwrap();
    drop(tree);
    pool.create("empty", 5000).unwrap();
    (path, pool)
}

const KEY: Choice<'static> = Choice { objects: &[], key: b"k", snapshots: false };

fn stands_beside(pool: &Pool, new: &Pool) {
    assert_eq!(new.list().count(), pool.list().count());
    for stat in pool.list().map(Result::unwrap) {
        let there = new.stat(&stat.name).unwrap();
        assert_eq!(
            (there.id, there.size, there.psyncs, there.read_only, there.created),
            (stat.id, stat.size, stat.psyncs, stat.read_only, stat.created)
        );
        assert_ne!(there.address, stat.address, "{}", stat.name);
    }
    let address = |name: &str| new.stat(name).unwrap().address;
    assert_eq!(address("words"), address("before"));
    assert_eq!(address("words"), address("trial"));
    let (mut here, mut there) = (pool.heap("words", 0).unwrap(), new.heap("words", 0).unwrap());
    has(&mut here, 300);
    has(&mut there, 300);
    add(&mut there, 300..2000);
    has(&mut there, 2000);
    has(&mut here, 300);
    drop(there);
    // A rollback needs the same addresses.
    new.rollback("words", "before", b"").unwrap();
    has(&mut new.heap("words", 0).unwrap(), 100);
    has(&mut new.heap("trial", 0).unwrap(), 100);
    let (here, mut there) =
        (pool.attach_with_key("locked", b"k").unwrap(), new.attach_with_key("locked", b"k").unwrap());
    assert_ne!(here.as_ptr(), there.as_ptr());
    there.psync().unwrap();
    let mut there = Heap::open(there).unwrap();
    let tree = there.root_mut::<PBTreeMap<'_, u64, u64>>("tree").unwrap();
    assert!(tree.iter().zip(0..1000).all(|((a, b), n)| (*a, *b) == (n, n)) && tree.len() == 1000);
    let object = new.create_attached("another", 1 << 20).unwrap();
    let _beside = pool.attach_read("empty").unwrap();
    drop(object);
}

#[track_caller]
fn sound(path: &Path) {
    let report = indelible::check(path, &PoolOptions::new(), &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn a_restored_pool_at_other_addresses_is_attached_beside_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let (_, pool) = described(&dir);
    let folder = dir.path().join("backups");
    backup_into(&pool, &KEY, &folder, false, &mut unseen).unwrap();
    add(&mut pool.heap("trial", 0).unwrap(), 0..1);
    backup_into(&pool, &KEY, &folder, false, &mut unseen).unwrap();
    let to = dir.path().join("new.pmo");
    restore(&folder, &to, &REBASE, &PoolOptions::new(), &mut unseen).unwrap();
    let new = Pool::open(&to).unwrap();
    stands_beside(&pool, &new);
    let folder = dir.path().join("others");
    assert_eq!(backup_into(&new, &KEY, &folder, false, &mut unseen).unwrap().base, None);
    add(&mut new.heap("words", 0).unwrap(), 100..120);
    assert!(backup_into(&new, &KEY, &folder, false, &mut unseen).unwrap().base.is_some());
    let again = dir.path().join("again.pmo");
    restore(&folder, &again, &RestoreOptions::default(), &PoolOptions::new(), &mut unseen).unwrap();
    expect_same(&Pool::open(&again).unwrap(), &content(&new));
    drop(new);
    sound(&to);
    sound(&again);
}

#[test]
fn a_pool_with_unknown_pointers_is_not_restored_at_other_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pmo");
    let pool = varied(&path);
    let file = dir.path().join("one.backup");
    backup_file(&pool, &Choice { key: b"secret", ..all() }, &file, false, &mut unseen).unwrap();
    let to = dir.path().join("new.pmo");
    let refused = |done: Result<(), BackupError>| {
        let error = done.unwrap_err();
        let BackupError::Pool(cause) = &error else { panic!("{error}") };
        assert_eq!(cause.kind(), ErrorKind::Unsuitable);
        assert!(error.to_string().contains("object \"array\""), "{error}");
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    };
    let options = PoolOptions::new();
    refused(restore(&file, &to, &REBASE, &options, &mut unseen).map(drop));
    refused(clone_rebased(&pool, b"secret", &to, &options, &mut unseen).map(drop));
    let wrong = clone_rebased(&pool, b"wrong", &to, &options, &mut unseen).unwrap_err();
    assert!(matches!(wrong, BackupError::Object { cause: StoreError::WrongKey, .. }), "{wrong}");
    assert!(!to.exists());
}

#[test]
fn single_objects_come_to_a_pool_that_has_their_addresses_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let (_, pool) = described(&dir);
    pool.create("bytes", 100).unwrap();
    put(&pool, "bytes", 0, b"anything");
    let file = dir.path().join("one.backup");
    backup_file(&pool, &KEY, &file, false, &mut unseen).unwrap();
    let other = elsewhere(&dir.path().join("other.pmo"), &pool);
    let free = other.info().unwrap().free;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let error = restore_objects(&file, &other, &names(&["words"]), false, &mut unseen).unwrap_err();
    assert!(
        matches!(&error, BackupError::Object { cause: StoreError::AddressesTaken { .. }, .. }),
        "{error}"
    );
    assert!(error.remedy().contains("--rebase"));
    let error = restore_objects(&file, &other, &names(&["words", "bytes"]), true, &mut unseen).unwrap_err();
    assert!(error.to_string().contains("\"bytes\""), "{error}");
    assert_eq!((other.list().count(), other.info().unwrap().free), (0, free), "nothing is left of either");
    // Also a snapshot without its object.
    restore_objects(&file, &other, &names(&["before", "locked", "trial"]), true, &mut unseen).unwrap();
    assert_eq!(other.stat("before").unwrap().address, other.stat("trial").unwrap().address);
    has(&mut other.heap("trial", 0).unwrap(), 100);
    let _new = other.create_attached("new", 1 << 20).unwrap();
    let _both = (pool.attach_read("trial").unwrap(), other.attach_read("trial").unwrap());
    drop((_both, _new));
    drop(other);
    sound(&dir.path().join("other.pmo"));
}

#[test]
fn a_clone_is_the_pool_under_another_id() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pmo");
    let pool = varied(&path);
    let (before, label) = (content(&pool), pool.info().unwrap());
    let to = dir.path().join("b.pmo");
    let options = PoolOptions::new();
    let busy = clone_pool(&path, &to, &options, &mut unseen).unwrap_err();
    assert!(matches!(&busy, BackupError::Pool(error) if error.kind() == ErrorKind::Busy), "{busy}");
    drop(pool);
    let mut told = Vec::new();
    let cloned = clone_pool(&path, &to, &options, &mut |done, total| told.push((done, total))).unwrap();
    let file = (32 << 20) + 4096;
    assert_eq!((cloned.len, told.last()), (32 << 20, Some(&(file, file))));
    assert!(cloned.copied < 16 << 20, "holes are not copied: {cloned:?}");
    let (pool, clone) = (Pool::open(&path).unwrap(), Pool::open(&to).unwrap());
    assert_ne!(pool.id(), clone.id());
    expect_same(&clone, &before);
    expect_same(&pool, &before);
    assert_eq!(clone.info().unwrap().window, label.window);
    let mut words = clone.heap("words", 0).unwrap();
    assert_eq!(words.root_or_default::<PHashMap<'_, PString<'_>, u64>>("words").unwrap()["word 77"], 77);
    assert_eq!(pool.attach("words").unwrap_err().kind(), ErrorKind::AddressTaken);
    drop(words);
    put(&clone, "array", 0, b"of the clone");
    assert_eq!(content(&pool)["array"], before["array"]);
    drop((pool, clone));
    sound(&to);
    let again = clone_pool(&path, &to, &options, &mut unseen).unwrap_err();
    assert!(matches!(&again, BackupError::Exists(_)), "{again}");
    clone_pool(&to, &dir.path().join("c.pmo"), &options, &mut unseen).unwrap();
    assert_ne!(Pool::open(dir.path().join("c.pmo")).unwrap().id(), Pool::open(&to).unwrap().id());
}

#[test]
fn a_clone_has_what_a_dead_writer_had_psynced() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy, to) = (dir.path().join("a.pmo"), dir.path().join("dead.pmo"), dir.path().join("b.pmo"));
    let options = PoolOptions::new().medium(MediumKind::File);
    let pool = options.format(&path, 16 << 20).unwrap();
    let mut object = pool.create_attached("o", 100_000).unwrap();
    for n in 0..50 {
        object.as_mut_slice()[n * 1000] = n as u8 + 1;
        object.psync().unwrap();
    }
    // The file as a dead process leaves it.
    std::fs::copy(&path, &copy).unwrap();
    drop((object, pool));
    clone_pool(&copy, &to, &options, &mut unseen).unwrap();
    let clone = options.open(&to).unwrap();
    let object = clone.attach("o").unwrap();
    assert!((0..50).all(|n| object.as_slice()[n * 1000] == n as u8 + 1));
}

#[test]
fn no_clone_is_made_of_anything_but_a_pool() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a"), dir.path().join("b"));
    let options = PoolOptions::new();
    let kind = |done: Result<indelible_backup::Cloned, BackupError>| match done.unwrap_err() {
        BackupError::Pool(error) => error.kind(),
        other => panic!("{other}"),
    };
    assert_eq!(kind(clone_pool(&from, &to, &options, &mut unseen)), ErrorKind::NoPool);
    std::fs::write(&from, vec![7; 3 << 20]).unwrap();
    assert_eq!(kind(clone_pool(&from, &to, &options, &mut unseen)), ErrorKind::NotAPool);
    drop(options.clone().force(true).format(&from, 4 << 20).unwrap());
    let mut bytes = std::fs::read(&from).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&from, &bytes).unwrap();
    clone_pool(&from, &to, &options, &mut unseen).unwrap();
    assert_ne!(Pool::open(&to).unwrap().id(), Pool::open(&from).unwrap().id());
    std::fs::remove_file(&to).unwrap();
    bytes[4196] ^= 1;
    std::fs::write(&from, &bytes).unwrap();
    assert_eq!(kind(clone_pool(&from, &to, &options, &mut unseen)), ErrorKind::Damaged);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
}

#[test]
fn a_clone_at_other_addresses_is_attached_beside_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let (_, pool) = described(&dir);
    let to = dir.path().join("b.pmo");
    let mut held = pool.heap("trial", 0).unwrap();
    add(&mut held, 0..1);
    clone_rebased(&pool, b"k", &to, &PoolOptions::new(), &mut unseen).unwrap();
    drop(held);
    let clone = Pool::open(&to).unwrap();
    assert_ne!((clone.id(), clone.info().unwrap().window), (pool.id(), pool.info().unwrap().window));
    assert_eq!(clone.info().unwrap().label, "mine");
    stands_beside(&pool, &clone);
    drop(clone);
    sound(&to);
    let again = clone_rebased(&pool, b"k", &to, &PoolOptions::new(), &mut unseen).unwrap_err();
    assert!(matches!(&again, BackupError::Exists(_)), "{again}");
}
