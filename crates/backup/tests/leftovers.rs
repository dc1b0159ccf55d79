//! The next process that makes a killed one's file removes its leftovers, and nothing else.

use crate::support::{all, content, expect_same, unseen, varied};
use indelible::PoolOptions;
use indelible_backup::{BackupError, RestoreOptions, backup_file, clone_pool, restore};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const NOBODY: u32 = 4_194_305;

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[test]
fn leftovers_are_removed_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let pool = varied(&dir.path().join("a.pmo"));
    let before = content(&pool);
    let backup = dir.path().join("one.backup");
    let (restored, cloned) = (dir.path().join("restored.pmo"), dir.path().join("cloned.pmo"));
    let mut kept = Vec::new();
    for path in [&backup, &restored, &cloned] {
        for end in [format!(".{NOBODY}.partial"), ".7.partial".into()] {
            fs::write(beside(path, &end), vec![7; 100_000]).unwrap();
        }
        // Other names, a folder, and a file in progress.
        for end in [".partial", ".x.partial", ".7.partial.old", "7.partial"] {
            kept.push(beside(path, end));
            fs::write(kept.last().unwrap(), b"mine").unwrap();
        }
        kept.push(beside(path, ".8.partial"));
        fs::create_dir(kept.last().unwrap()).unwrap();
        kept.push(beside(path, ".9.partial"));
    }
    let making: Vec<File> = kept
        .iter()
        .filter(|path| path.to_str().unwrap().ends_with(".9.partial"))
        .map(|path| {
            let file = File::create(path).unwrap();
            file.try_lock().unwrap();
            file
        })
        .collect();

    backup_file(&pool, &all_keys(), &backup, false, &mut unseen).unwrap();
    drop(pool);
    restore(&backup, &restored, &RestoreOptions::default(), &PoolOptions::new(), &mut unseen).unwrap();
    clone_pool(&dir.path().join("a.pmo"), &cloned, &PoolOptions::new(), &mut unseen).unwrap();
    assert_eq!(making.len(), 3);
    let mut found: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut expected = kept.clone();
    expected.extend([dir.path().join("a.pmo"), backup.clone(), restored.clone(), cloned.clone()]);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    for path in [&backup, &restored, &cloned] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    for path in [&restored, &cloned] {
        expect_same(&indelible::Pool::open(path).unwrap(), &before);
    }
}

#[test]
fn a_file_that_this_process_makes_already_is_not_made_twice() {
    let dir = tempfile::tempdir().unwrap();
    drop(varied(&dir.path().join("a.pmo")));
    let to = dir.path().join("b.pmo");
    let clone = || clone_pool(&dir.path().join("a.pmo"), &to, &PoolOptions::new(), &mut unseen);
    let partial = beside(&to, &format!(".{}.partial", std::process::id()));
    let other = File::create(&partial).unwrap();
    other.try_lock().unwrap();
    assert!(matches!(clone(), Err(BackupError::InUse { .. })));
    assert!(partial.exists() && !to.exists());
    drop(other);
    // A link is neither followed nor replaced.
    fs::remove_file(&partial).unwrap();
    std::os::unix::fs::symlink(dir.path().join("planted"), &partial).unwrap();
    assert!(matches!(clone(), Err(BackupError::File { .. })));
    assert!(!dir.path().join("planted").exists() && !to.exists());
    fs::remove_file(&partial).unwrap();
    clone().unwrap();
    assert!(!partial.exists());
    let gone = clone_pool(
        &dir.path().join("a.pmo"),
        &dir.path().join("none/c.pmo"),
        &PoolOptions::new(),
        &mut unseen,
    );
    assert!(matches!(gone, Err(BackupError::File { .. })));
    let one = Path::new("none.backup");
    assert!(
        restore(one, &dir.path().join("d.pmo"), &RestoreOptions::default(), &PoolOptions::new(), &mut unseen)
            .is_err()
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

fn all_keys() -> indelible_backup::Choice<'static> {
    indelible_backup::Choice { key: b"secret", ..all() }
}
