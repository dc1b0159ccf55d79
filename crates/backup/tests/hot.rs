//! Backups beside continuous psyncs: each shows one psync, not before the last that had returned.
//!
//! `INDELIBLE_HOT_BACKUPS=100 TMPDIR=/mnt cargo test -p indelible-backup hot` makes more, on that
//! file system.

use super::support::{PAGE, all, content, unseen};
use indelible::{Object, Pool, PoolOptions, psync_all};
use indelible_backup::{RestoreOptions, backup_into, backup_to, restore, restore_stream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGES: usize = 40;
const NAMES: [&str; 2] = ["a", "b"];

fn backups() -> usize {
    std::env::var("INDELIBLE_HOT_BACKUPS").map_or(4, |count| count.parse().expect("a number of backups"))
}

fn changes(page: usize, round: u64) -> bool {
    page == 0 || (round * 7919 + page as u64 * 13).is_multiple_of(5)
}

fn round_of(bytes: &[u8]) -> u64 {
    let word = |page: usize| u64::from_le_bytes(bytes[page * PAGE..][..8].try_into().unwrap());
    let last = word(0);
    for page in 0..PAGES {
        let changed = (1..=last).rev().find(|round| changes(page, *round)).unwrap_or(0);
        assert_eq!(word(page), changed, "page {page} in round {last}");
    }
    last
}

fn write(objects: &mut [Object], done: &AtomicU64, stop: &AtomicBool) {
    for round in 1_u64.. {
        for object in &mut *objects {
            for page in (0..PAGES).filter(|page| changes(*page, round)) {
                object.range_mut(page * PAGE..page * PAGE + 8).copy_from_slice(&round.to_le_bytes());
            }
        }
        psync_all(&mut objects.iter_mut().collect::<Vec<_>>()).unwrap();
        done.store(round, Ordering::SeqCst);
        if stop.load(Ordering::SeqCst) {
            return;
        }
    }
}

#[test]
fn backups_of_a_hot_pool_are_each_one_psync_of_all_objects() {
    let dir = tempfile::tempdir().unwrap();
    let (path, folder) = (dir.path().join("hot.pmo"), dir.path().join("backups"));
    let pool = Pool::format(&path, 16 << 20).unwrap();
    let mut objects = NAMES.map(|name| pool.create_attached(name, (PAGES * PAGE) as u64).unwrap());
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&mut objects, &done, &stop));
        let mut before = 0;
        for nth in 0..backups() {
            let at_least = done.load(Ordering::SeqCst);
            let (new, options) = (dir.path().join("new.pmo"), PoolOptions::new());
            if nth % 2 == 0 {
                let mut stream = Vec::new();
                backup_to(&pool, &all(), &mut stream, &mut unseen).unwrap();
                restore_stream(
                    &mut &stream[..],
                    Path::new("-"),
                    &new,
                    &RestoreOptions { force: true, ..RestoreOptions::default() },
                    &options,
                    &mut unseen,
                )
            } else {
                backup_into(&pool, &all(), &folder, false, &mut unseen).unwrap();
                restore(
                    &folder,
                    &new,
                    &RestoreOptions { force: true, ..RestoreOptions::default() },
                    &options,
                    &mut unseen,
                )
            }
            .unwrap();
            let found = content(&Pool::open(&new).unwrap());
            let [a, b] = NAMES.map(|name| round_of(&found[name].1));
            assert_eq!(a, b, "backup {nth}");
            assert!(a >= at_least && a >= before, "backup {nth}: round {a} after {at_least} and {before}");
            before = a;
        }
        stop.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    for (object, name) in objects.into_iter().zip(NAMES) {
        assert_eq!(round_of(object.as_slice()), done.load(Ordering::SeqCst), "{name}");
        object.detach().unwrap();
    }
}
