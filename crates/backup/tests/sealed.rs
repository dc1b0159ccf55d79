//! Sealed objects: ciphertext with its keys, backed up and restored without a seal key.

use crate::support::{PAGE, all, noise, unseen};
use indelible::{CreateOptions, ErrorKind, Object, Pool, PoolOptions, SealKey};
use indelible_backup::{
    RestoreOptions, backup_into, backup_to, clone_pool, clone_rebased, restore, restore_objects,
    restore_stream, verify,
};
use std::path::Path;

const PAGES: usize = 150;
const PLANTED: &[u8] = b"planted plaintext of thirty-two.";

fn key() -> SealKey {
    SealKey::file(vec![0x5a; 32]).unwrap()
}

fn sealed(pool: &Pool, name: &str) -> Object {
    let size = (PAGES * PAGE) as u64;
    pool.create_attached_with(name, &CreateOptions::new(size).sealed(&key(), "test")).unwrap()
}

#[track_caller]
fn holds(pool: &Pool, name: &str, expected: &[u8]) {
    // The snapshot has its origin's name sealed with it.
    let key = key().sealed_as(if name == "s" { "a" } else { name });
    assert!(pool.attach_read_sealed(name, b"", &key).unwrap().as_slice() == expected, "{name}");
    assert_eq!(pool.attach_read(name).err().unwrap().kind(), ErrorKind::Sealed);
    assert!(pool.verify_sealed(name, b"", &key, &mut |_, _| {}).unwrap().is_empty());
}

fn restored(from: &Path, to: &Path) -> Pool {
    let how = RestoreOptions { force: true, ..RestoreOptions::default() };
    restore(from, to, &how, &PoolOptions::new(), &mut unseen).unwrap();
    Pool::open(to).unwrap()
}

#[test]
fn s3_01_sealed_objects_come_back_from_folders_and_streams() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("backups");
    let pool = Pool::format(dir.path().join("a.pmo"), 32 << 20).unwrap();
    let mut a = sealed(&pool, "a");
    sealed(&pool, "new").detach().unwrap();
    pool.create("plain", 10_000).unwrap();
    a.range_mut(0..PAGES * PAGE).copy_from_slice(&noise(1, PAGES * PAGE));
    a.range_mut(7 * PAGE..7 * PAGE + PLANTED.len()).copy_from_slice(PLANTED);
    a.psync().unwrap();
    let first = a.as_slice().to_vec();
    pool.snapshot("a", "s", b"").unwrap();
    let full = backup_into(&pool, &all(), &folder, false, &mut unseen).unwrap();
    a.range_mut(90 * PAGE..90 * PAGE + PLANTED.len()).copy_from_slice(PLANTED);
    a.psync().unwrap();
    let second = a.as_slice().to_vec();
    let part = backup_into(&pool, &all(), &folder, false, &mut unseen).unwrap();
    // A page, its tree nodes, and the key page with the root.
    assert!(part.base.is_some() && part.held == 4 * PAGE as u64, "{part:?}");
    assert!(full.held > (PAGES * PAGE) as u64, "{full:?}");
    let mut stream = Vec::new();
    backup_to(&pool, &all(), &mut stream, &mut unseen).unwrap();
    a.detach().unwrap();
    assert!(verify(&folder, &mut unseen).unwrap().damage.is_empty());
    let files = std::fs::read_dir(&folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    for bytes in files.chain([stream.clone()]) {
        assert!(!bytes.windows(16).any(|window| window == &PLANTED[..16]), "plaintext");
    }
    let check = |found: &Pool| {
        holds(found, "a", &second);
        holds(found, "s", &first);
        holds(found, "new", &vec![0; PAGES * PAGE]);
        assert_eq!(found.key_slots("a", b"").unwrap(), pool.key_slots("a", b"").unwrap());
    };
    let one = restored(&folder, &dir.path().join("b.pmo"));
    check(&one);
    let two = dir.path().join("c.pmo");
    restore_stream(
        &mut &stream[..],
        Path::new("-"),
        &two,
        &RestoreOptions::default(),
        &PoolOptions::new(),
        &mut unseen,
    )
    .unwrap();
    check(&Pool::open(&two).unwrap());
    let mut a = one.attach_sealed("a", b"", &key()).unwrap();
    a.range_mut(0..9).fill(9);
    a.psync().unwrap();
    a.detach().unwrap();
    drop(one);
    let report = indelible::check(dir.path().join("b.pmo"), &PoolOptions::new(), &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    pool.destroy("a").unwrap();
    restore_objects(&folder, &pool, &["a".to_owned()], false, &mut unseen).unwrap();
    holds(&pool, "a", &second);
}

#[test]
fn sealed_objects_are_cloned_as_they_are_and_get_no_other_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let (path, options) = (dir.path().join("a.pmo"), PoolOptions::new());
    let pool = Pool::format(&path, 32 << 20).unwrap();
    let mut a = sealed(&pool, "a");
    a.range_mut(0..9).fill(9);
    a.psync().unwrap();
    let bytes = a.as_slice().to_vec();
    a.detach().unwrap();
    let error = clone_rebased(&pool, b"", &dir.path().join("r.pmo"), &options, &mut unseen).unwrap_err();
    assert!(error.to_string().contains("\"a\"") && error.to_string().contains("no rebase"), "{error}");
    assert!(!dir.path().join("r.pmo").exists());
    drop(pool);
    clone_pool(&path, &dir.path().join("c.pmo"), &options, &mut unseen).unwrap();
    holds(&Pool::open(dir.path().join("c.pmo")).unwrap(), "a", &bytes);
}
