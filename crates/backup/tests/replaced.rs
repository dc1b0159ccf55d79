//! No process loses its psyncs to a restore over a pool.

use super::support::{all, put, unseen};
use indelible::{ErrorKind, Pool, PoolOptions};
use indelible_backup::{BackupError, RestoreOptions, backup_to, restore_stream};
use std::path::Path;
use tempfile::TempDir;

const FORCE: RestoreOptions = RestoreOptions { len: None, force: true, rebase: false };

fn restore_over(
    path: &Path,
    backup: &[u8],
    progress: &mut dyn FnMut(u64, u64),
) -> indelible_backup::Result<()> {
    let options = PoolOptions::new();
    restore_stream(&mut &backup[..], Path::new("-"), path, &FORCE, &options, progress).map(drop)
}

fn backed_up(dir: &TempDir) -> (std::path::PathBuf, Vec<u8>) {
    let (path, mut backup) = (dir.path().join("a.pmo"), Vec::new());
    let pool = Pool::format(&path, 16 << 20).unwrap();
    pool.create("a", 4096).unwrap();
    put(&pool, "a", 0, b"old");
    backup_to(&pool, &all(), &mut backup, &mut unseen).unwrap();
    (path, backup)
}

fn content(path: &Path) -> Vec<u8> {
    Pool::open(path).unwrap().attach_read("a").unwrap().as_slice()[..3].to_vec()
}

#[test]
fn nothing_that_is_psynced_while_a_restore_replaces_the_pool_is_lost() {
    let dir = TempDir::new().unwrap();
    let (path, backup) = backed_up(&dir);
    let mut tries = Vec::new();
    restore_over(&path, &backup, &mut |_, _| {
        tries.push(Pool::open(&path).map(|pool| put(&pool, "a", 0, b"new")).map_err(|error| error.kind()));
    })
    .unwrap();
    assert!(!tries.is_empty());
    let psynced = tries.iter().any(Result::is_ok);
    assert_eq!(content(&path), if psynced { *b"new" } else { *b"old" });
    assert!(tries.iter().all(|done| *done == Err(ErrorKind::Busy)), "{tries:?}");
}

/// It may attach an object at any moment.
#[test]
fn a_pool_that_is_open_is_not_replaced() {
    let dir = TempDir::new().unwrap();
    let (path, backup) = backed_up(&dir);
    let pool = Pool::open(&path).unwrap();
    let refused = restore_over(&path, &backup, &mut unseen).unwrap_err();
    assert!(matches!(&refused, BackupError::Pool(error) if error.kind() == ErrorKind::Busy), "{refused}");
    assert!(refused.to_string().contains("has the pool open"), "{refused}");
    put(&pool, "a", 0, b"new");
    assert_eq!(content(&path), b"new");
    drop(pool);
    restore_over(&path, &backup, &mut unseen).unwrap();
    assert_eq!(content(&path), b"old");
    std::fs::write(&path, "").unwrap();
    restore_over(&path, &backup, &mut unseen).unwrap();
    assert_eq!(content(&path), b"old");
    std::fs::write(&path, "no pool").unwrap();
    let refused = restore_over(&path, &backup, &mut unseen).unwrap_err();
    assert!(matches!(&refused, BackupError::NotReplaced { found: "no pool", .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"no pool");
}
