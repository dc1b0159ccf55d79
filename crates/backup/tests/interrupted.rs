//! Interrupted backups into a folder, and their continuation.

use crate::support::{PAGE, all, content, expect_same, noise, put, unseen};
use indelible::{Pool, PoolOptions};
use indelible_backup::{BackupError, RestoreOptions, Summary, backup_into, restore, verify};
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: usize = 700;

fn pool(at: &Path) -> Pool {
    let pool = Pool::format(at.join("a.pmo"), 32 << 20).unwrap();
    for (name, seed) in [("one", 1), ("two", 2)] {
        pool.create(name, (PAGES * PAGE) as u64).unwrap();
        put(&pool, name, 0, &noise(seed, PAGES * PAGE));
    }
    pool
}

fn made(pool: &Pool, folder: &Path, full: bool) -> Summary {
    backup_into(pool, &all(), folder, full, &mut unseen).unwrap()
}

fn ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(end))
        .collect();
    found.sort();
    found
}

fn interrupted(folder: &Path, whole: &Path, len: usize) {
    let bytes = fs::read(whole).unwrap();
    fs::remove_file(whole).unwrap();
    fs::write(folder.join(".x-000009.partial"), &bytes[..len]).unwrap();
}

fn expect_restored(pool: &Pool, folder: &Path, to: &Path) {
    assert!(verify(folder, &mut unseen).unwrap().damage.is_empty());
    let options = RestoreOptions { force: true, ..RestoreOptions::default() };
    restore(folder, to, &options, &PoolOptions::new(), &mut unseen).unwrap();
    expect_same(&Pool::open(to).unwrap(), &content(pool));
}

#[test]
fn a_backup_that_was_interrupted_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, to) = (pool(dir.path()), dir.path().join("new.pmo"));
    let folder = dir.path().join("b");
    let whole = made(&pool, &folder, true);
    let len = whole.bytes as usize;
    fs::remove_dir_all(&folder).unwrap();
    let cuts = (0..12).map(|n| len * n / 11).chain([100, 288, 700, len - 1, len - 60, len - 200]);
    for (round, cut) in cuts.enumerate() {
        let first = made(&pool, &folder, true);
        interrupted(&folder, &first.path.unwrap(), cut);
        put(&pool, "one", 5 * PAGE + round, b"changed");
        put(&pool, "two", (PAGES - 3) * PAGE + round, &[0; 3]);
        let next = made(&pool, &folder, round % 2 == 0);
        let parts = ending(&folder, "pmopart");
        assert_eq!(parts.len(), usize::from(next.resumed), "{cut} of {len}");
        if next.resumed {
            assert_eq!(next.base.as_ref(), parts.first());
            let there = fs::metadata(&parts[0]).unwrap().len();
            assert!(next.bytes < len as u64 - there + 80_000, "{} bytes, {there} of {len} there", next.bytes);
            for refused in [
                verify(&parts[0], &mut unseen).map(drop),
                restore(
                    &parts[0],
                    &dir.path().join("x.pmo"),
                    &RestoreOptions::default(),
                    &PoolOptions::new(),
                    &mut unseen,
                )
                .map(drop),
            ] {
                assert!(matches!(refused, Err(BackupError::Interrupted(_))), "{refused:?}");
            }
            assert!(!dir.path().join("x.pmo").exists());
        } else {
            assert!(next.base.is_none() && cut < 200_000, "{cut} of {len}");
        }
        assert!(ending(&folder, "partial").is_empty());
        expect_restored(&pool, &folder, &to);
        put(&pool, "two", 9 * PAGE, &[round as u8 + 1; 9]);
        let later = made(&pool, &folder, false);
        assert!(!later.resumed && later.base == next.path && later.held == PAGE as u64, "{later:?}");
        expect_restored(&pool, &folder, &to);
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// It keeps its base; a full one does not continue it.
#[test]
fn an_incremental_backup_that_was_interrupted_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, to) = (pool(dir.path()), dir.path().join("new.pmo"));
    for full in [false, true] {
        let folder = dir.path().join(format!("b-{full}"));
        let below = made(&pool, &folder, false);
        put(&pool, "one", 0, &noise(7, PAGES / 2 * PAGE));
        let part = made(&pool, &folder, false);
        assert_eq!(part.base, below.path);
        interrupted(&folder, &part.path.unwrap(), part.bytes as usize / 2);
        put(&pool, "one", PAGES / 2 * PAGE, b"changed");
        let next = made(&pool, &folder, full);
        assert_eq!((next.resumed, next.base.is_some()), (!full, !full));
        assert_eq!(ending(&folder, "pmopart").len(), usize::from(!full));
        expect_restored(&pool, &folder, &to);
        if !full {
            interrupted(&folder, &next.path.unwrap(), next.bytes as usize * 2 / 3);
            let last = made(&pool, &folder, false);
            assert!(last.resumed && ending(&folder, "pmopart").len() == 2, "{last:?}");
            expect_restored(&pool, &folder, &to);
        }
    }
}

/// A process died between naming a backup and removing the other name.
#[test]
fn a_backup_that_has_its_name_is_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, folder) = (pool(dir.path()), dir.path().join("b"));
    let first = made(&pool, &folder, false).path.unwrap();
    let bytes = fs::read(&first).unwrap();
    fs::hard_link(&first, folder.join(".x-000001.partial")).unwrap();
    put(&pool, "one", 0, b"changed");
    let next = made(&pool, &folder, false);
    assert!(!next.resumed && next.base.as_ref() == Some(&first), "{next:?}");
    assert!(fs::read(&first).unwrap() == bytes, "it was changed");
    assert!(ending(&folder, "partial").is_empty() && ending(&folder, "pmopart").is_empty());
    assert!(verify(&first, &mut unseen).unwrap().damage.is_empty());
    expect_restored(&pool, &folder, &dir.path().join("new.pmo"));
}

#[test]
fn leftovers_of_others_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, folder) = (pool(dir.path()), dir.path().join("b"));
    let other = Pool::format(dir.path().join("other.pmo"), 8 << 20).unwrap();
    other.create("one", (300 * PAGE) as u64).unwrap();
    put(&other, "one", 0, &noise(3, 300 * PAGE));
    let theirs = made(&other, &folder, false);
    interrupted(&folder, &theirs.path.unwrap(), theirs.bytes as usize - 50);
    fs::write(folder.join(".y.partial"), noise(4, 5000)).unwrap();
    fs::write(folder.join(".z.partial"), b"").unwrap();
    let own = made(&pool, &folder, false);
    assert!(!own.resumed && own.base.is_none());
    assert!(ending(&folder, "partial").is_empty() && ending(&folder, "pmopart").is_empty());
    expect_restored(&pool, &folder, &dir.path().join("new.pmo"));
}
