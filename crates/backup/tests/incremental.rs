//! Incremental backups: small, and useless without their bases.

use crate::support::{PAGE, all, content, expect_same, noise, put, unseen};
use indelible::{CreateOptions, Pool, PoolOptions};
use indelible_backup::{BackupError, RestoreOptions, backup_into, restore, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn made(pool: &Pool, folder: &Path) -> indelible_backup::Summary {
    backup_into(pool, &all(), folder, false, &mut unseen).unwrap()
}

fn restored(folder: &Path, to: &Path) -> Pool {
    restore(
        folder,
        to,
        &RestoreOptions { force: true, ..RestoreOptions::default() },
        &PoolOptions::new(),
        &mut unseen,
    )
    .unwrap();
    Pool::open(to).unwrap()
}

#[test]
fn one_page_of_a_hundred_takes_three_percent_of_a_full_backup_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("b");
    let pool = Pool::format(dir.path().join("a.pmo"), 64 << 20).unwrap();
    let pages = 4000;
    pool.create("noise", (pages * PAGE) as u64).unwrap();
    put(&pool, "noise", 0, &noise(1, pages * PAGE));
    let text: Vec<u8> =
        (0..pages).flat_map(|n| [noise(n as u64, PAGE / 2), vec![7; PAGE / 2]].concat()).collect();
    pool.create("text", text.len() as u64).unwrap();
    put(&pool, "text", 0, &text);
    let full = made(&pool, &folder);
    let mut page = 0;
    while page < pages {
        put(&pool, "noise", page * PAGE + 77, b"changed");
        put(&pool, "text", page * PAGE + 77, b"changed");
        page += 100;
    }
    let part = made(&pool, &folder);
    assert!(part.base.is_some() && part.held == (2 * pages / 100 * PAGE) as u64, "{part:?}");
    assert!(part.bytes * 100 <= full.bytes * 3, "{} of {} bytes", part.bytes, full.bytes);
    println!(
        "full {} bytes, 1 % changed {} bytes: {:.2} %",
        full.bytes,
        part.bytes,
        part.bytes as f64 / full.bytes as f64 * 100.
    );
    let none = made(&pool, &folder);
    assert!(none.held == 0 && none.bytes < 2000, "{none:?}");
    let before = content(&pool);
    drop(pool);
    expect_same(&restored(&folder, &dir.path().join("c.pmo")), &before);
}

#[test]
fn objects_that_changed_between_two_backups_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("b");
    let pool = Pool::format(dir.path().join("a.pmo"), 32 << 20).unwrap();
    for name in ["shrinks", "vanishes", "is replaced", "is renamed", "loses pages"] {
        pool.create(name, 400_000).unwrap();
        put(&pool, name, 0, &noise(name.len() as u64, 400_000));
    }
    let mut states = vec![(made(&pool, &folder).path.unwrap(), content(&pool))];
    let mut step = |change: &dyn Fn()| {
        change();
        let made = made(&pool, &folder);
        assert!(made.base.is_some());
        states.push((made.path.unwrap(), content(&pool)));
    };
    step(&|| {
        pool.resize("shrinks", 5000, b"").unwrap();
        pool.destroy("vanishes").unwrap();
        pool.destroy("is replaced").unwrap();
        pool.create("is replaced", 400_000).unwrap();
        put(&pool, "is replaced", 8192, b"other");
        pool.rename("is renamed", "has another name", b"").unwrap();
        put(&pool, "loses pages", 40_000, &[0; 200_000]);
    });
    // Bytes cut off by a shrink are zeros after a growth.
    step(&|| {
        pool.resize("shrinks", 300_000, b"").unwrap();
        pool.create_with("new", &CreateOptions::new(1 << 20).sparse(true)).unwrap();
        put(&pool, "new", 500_000, b"new");
        put(&pool, "loses pages", 100_000, b"some come back");
    });
    step(&|| put(&pool, "shrinks", 250_000, b"again"));
    drop(pool);
    for (file, content) in states {
        assert!(verify(&file, &mut unseen).unwrap().damage.is_empty());
        expect_same(&restored(&file, &dir.path().join("c.pmo")), &content);
    }
}

fn chain(dir: &Path, seed: u64) -> (Pool, Vec<PathBuf>) {
    let pool = Pool::format(dir.join(format!("{seed}.pmo")), 4 << 20).unwrap();
    pool.create("a", 100_000).unwrap();
    let mut files = Vec::new();
    for round in 0..3 {
        put(&pool, "a", round * 20_000, &noise(seed + round as u64, 6000));
        files.push(made(&pool, &dir.join("b")).path.unwrap());
    }
    (pool, files)
}

#[test]
fn a_backup_whose_base_is_gone_damaged_or_another_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, files) = chain(dir.path(), 1);
    let target = dir.path().join("c.pmo");
    let attempt = || {
        restore(&files[2], &target, &RestoreOptions::default(), &PoolOptions::new(), &mut unseen).map(drop)
    };
    let aside = dir.path().join("aside");
    fs::rename(&files[1], &aside).unwrap();
    assert!(matches!(attempt(), Err(BackupError::BaseMissing { .. })));
    assert!(matches!(verify(&files[2], &mut unseen), Err(BackupError::BaseMissing { .. })));
    fs::rename(&aside, &files[1]).unwrap();

    let whole = fs::read(&files[0]).unwrap();
    let mut torn = whole.clone();
    torn[3000] ^= 1;
    fs::write(&files[0], &torn).unwrap();
    assert!(matches!(attempt(), Err(BackupError::Damaged { .. })));
    let damage = verify(&files[2], &mut unseen).unwrap().damage;
    assert!(
        damage.iter().all(|damage| damage.path == files[0] && damage.what.contains("\"a\"")),
        "{damage:?}"
    );
    fs::remove_file(index_of(&files[2])).unwrap();
    let full = made(&pool, &dir.path().join("b"));
    assert!(full.base.is_none() && full.why_full.unwrap().contains("damaged"));
    fs::remove_file(full.path.unwrap()).unwrap();

    // The same name and ID, with other content.
    fs::write(&files[0], &whole).unwrap();
    attempt().unwrap();
    fs::remove_file(&target).unwrap();
    fs::write(&files[0], forged(&whole)).unwrap();
    assert!(verify(&files[0], &mut unseen).unwrap().damage.is_empty());
    assert!(matches!(attempt(), Err(BackupError::BaseSwapped { .. })));
    assert!(!verify(&files[2], &mut unseen).unwrap().damage.is_empty());
    assert!(!target.exists());
}

fn index_of(backup: &Path) -> PathBuf {
    backup.with_extension("pmoindex")
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// A base that is damaged in the middle shows whether the chain was read.
#[test]
fn an_index_spares_the_reading_of_the_chain_it_was_made_of() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("b");
    let (pool, files) = chain(dir.path(), 1);
    let count = || {
        let ends = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        ends.filter(|path| path.extension().is_some_and(|end| end == "pmoindex")).count()
    };
    assert_eq!(count(), 1, "the newest backup alone has an index");
    let index = index_of(&files[2]);
    let (own, len) = (fs::read(&index).unwrap(), fs::read(&index).unwrap().len());
    flip(&files[0], 3000);
    let base = |what: &str, expected: bool| {
        put(&pool, "a", 50_000, b"new");
        let made = made(&pool, &folder);
        assert_eq!((made.base.is_some(), made.why_full.is_none()), (expected, expected), "{what}");
        fs::remove_file(made.path.as_ref().unwrap()).unwrap();
        let _ = fs::remove_file(index_of(made.path.as_ref().unwrap()));
        fs::write(&index, &own).unwrap();
    };
    base("whole", true);
    for at in (0..len).step_by(len / 60).chain(len - 100..len) {
        flip(&index, at);
        base(&format!("byte {at} of {len}"), false);
    }
    for shorter in [0, 1, 40, len - 1] {
        fs::write(&index, &own[..shorter]).unwrap();
        base(&format!("{shorter} bytes"), false);
    }
    fs::remove_file(&index).unwrap();
    base("without an index", false);
    let whole = fs::read(&files[1]).unwrap();
    fs::write(&files[1], &whole[..whole.len() - 1]).unwrap();
    base("a base that is shorter", false);
    fs::write(&files[1], &whole).unwrap();
    flip(&files[1], whole.len() - 1);
    base("a base with another end", false);
    fs::write(&files[1], forged(&whole)).unwrap();
    base("another base of that name", false);
    fs::write(&files[1], &whole).unwrap();
    base("the same base again", true);
}

/// With an index and without one, a backup has the same pages.
#[test]
fn an_index_has_what_its_chain_has() {
    let dir = tempfile::tempdir().unwrap();
    let [with, without] = ["with", "without"].map(|name| dir.path().join(name));
    let pool = Pool::format(dir.path().join("a.pmo"), 32 << 20).unwrap();
    let mut rng = 7_u64;
    let mut next = |below: u64| {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (rng >> 33) % below
    };
    for name in ["a", "b", "c"] {
        pool.create(name, 400_000).unwrap();
    }
    for round in 0..40_u64 {
        for _ in 0..4 {
            let name = ["a", "b", "c"][next(3) as usize];
            let size = pool.stat(name).unwrap().size;
            match next(6) {
                0 => pool.resize(name, 4096 * (1 + next(100)), b"").unwrap(),
                1 => {
                    pool.destroy(name).unwrap();
                    pool.create(name, 300_000).unwrap();
                }
                2 => put(&pool, name, 0, &vec![0; size as usize]),
                _ => {
                    let at = next(size) as usize;
                    let len = (next(20_000) as usize + 1).min(size as usize - at);
                    put(&pool, name, at, &noise(round, len));
                }
            }
        }
        let [one, other] = [&with, &without].map(|folder| made(&pool, folder));
        fs::remove_file(index_of(other.path.as_ref().unwrap())).unwrap();
        assert_eq!((one.held, one.bytes), (other.held, other.bytes), "round {round}");
        assert_eq!(one.base.is_some(), round > 0);
    }
    let before = content(&pool);
    drop(pool);
    expect_same(&restored(&with, &dir.path().join("c.pmo")), &before);
    expect_same(&restored(&without, &dir.path().join("c.pmo")), &before);
}

fn forged(whole: &[u8]) -> Vec<u8> {
    use crate::hostile::{records, seal};
    let (header, mut records) = records(whole);
    records.retain(|record| record[0] != 2);
    let end = records.len() - 1;
    records[end][24..32].fill(0);
    seal(&header, &records)
}

#[test]
fn two_backups_into_one_folder_do_not_meet_and_partial_ones_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, files) = chain(dir.path(), 1);
    let folder = dir.path().join("b");
    let other = fs::File::open(folder.join(".pmo-backup.lock")).unwrap();
    other.lock().unwrap();
    assert!(matches!(
        backup_into(&pool, &all(), &folder, false, &mut unseen),
        Err(BackupError::FolderBusy(_))
    ));
    drop(other);
    // A killed one's partial file.
    let partial = folder.join(".00000000-000009.partial");
    fs::write(&partial, &fs::read(&files[0]).unwrap()[..500]).unwrap();
    assert_eq!(verify(&folder, &mut unseen).unwrap().kept.path, files[2]);
    made(&pool, &folder);
    assert!(!partial.exists());
    let (_second, others) = chain(dir.path(), 9);
    assert_eq!(others.len(), 3);
    assert!(verify(&others[2], &mut unseen).unwrap().damage.is_empty());
}

fn redate(path: &Path, seconds: u64) {
    use crate::hostile::{records, seal};
    let (mut header, records) = records(&fs::read(path).unwrap());
    header[72..80].copy_from_slice(&seconds.to_le_bytes());
    fs::write(path, seal(&header, &records)).unwrap();
}

/// The clock was set back, or two backups share a second: the state decides.
#[test]
fn the_newest_backup_in_a_folder_is_found_without_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("b");
    let (pool, files) = chain(dir.path(), 1);
    put(&pool, "a", 0, b"the newest");
    let full = backup_into(&pool, &all(), &folder, true, &mut unseen).unwrap().path.unwrap();
    let before = content(&pool);
    redate(&full, 1);
    assert_eq!(verify(&folder, &mut unseen).unwrap().kept.path, full);
    let taken = restore(
        &folder,
        &dir.path().join("c.pmo"),
        &RestoreOptions::default(),
        &PoolOptions::new(),
        &mut unseen,
    );
    assert_eq!(taken.unwrap().kept.path, full, "a restore says which backup it took");
    expect_same(&Pool::open(dir.path().join("c.pmo")).unwrap(), &before);
    put(&pool, "a", 0, b"newer");
    let next = made(&pool, &folder);
    assert_eq!(next.base.as_ref(), Some(&full));
    assert_eq!(verify(&folder, &mut unseen).unwrap().kept.path, next.path.clone().unwrap());
    // Numbers go on beside a full backup, a damaged chain and removed files.
    fs::remove_file(&files[0]).unwrap();
    let mut torn = fs::read(&full).unwrap();
    torn[3000] ^= 1;
    fs::write(&full, torn).unwrap();
    fs::remove_file(index_of(next.path.as_ref().unwrap())).unwrap();
    let last = made(&pool, &folder);
    assert!(last.base.is_none() && last.why_full.is_some());
    assert_eq!(verify(&folder, &mut unseen).unwrap().kept.path, last.path.clone().unwrap());
    let mut torn = fs::read(last.path.as_ref().unwrap()).unwrap();
    torn[20] ^= 1;
    fs::write(last.path.as_ref().unwrap(), torn).unwrap();
    assert!(matches!(verify(&folder, &mut unseen), Err(BackupError::Damaged { .. })));
}

/// The pool's file was replaced by an earlier copy.
#[test]
fn the_backup_of_a_pool_that_was_brought_back_is_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, path) = (dir.path().join("b"), dir.path().join("1.pmo"));
    let (pool, _) = chain(dir.path(), 1);
    drop(pool);
    let earlier = fs::read(&path).unwrap();
    let pool = Pool::open(&path).unwrap();
    for round in 0..9 {
        put(&pool, "a", 0, &[round]);
    }
    made(&pool, &folder);
    drop(pool);
    fs::write(&path, earlier).unwrap();
    let pool = Pool::open(&path).unwrap();
    let last = made(&pool, &folder);
    assert_eq!(verify(&folder, &mut unseen).unwrap().kept.path, last.path.unwrap());
    let before = content(&pool);
    drop(pool);
    expect_same(&restored(&folder, &dir.path().join("c.pmo")), &before);
}

/// Another user's lock would block backups.
#[test]
fn nobody_else_can_lock_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (pool, _) = chain(dir.path(), 1);
    let lock = dir.path().join("b/.pmo-backup.lock");
    let mode = || fs::metadata(&lock).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
    let folder = dir.path().join("b");
    made(&pool, &folder);
    assert_eq!(mode(), 0o600);
    // A link is not followed, and a pipe not waited for.
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(dir.path().join("planted"), &lock).unwrap();
    let made = backup_into(&pool, &all(), &folder, false, &mut unseen);
    assert!(matches!(made, Err(BackupError::File { .. })), "{made:?}");
    assert!(!dir.path().join("planted").exists());
    fs::remove_file(&lock).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::RWXU).unwrap();
    let made = backup_into(&pool, &all(), &folder, false, &mut unseen);
    assert!(matches!(made, Err(BackupError::File { .. })), "{made:?}");
}
