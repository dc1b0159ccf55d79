//! Costs of a backup that must not depend on the machine.

use crate::support::{all, unseen};
use indelible::Pool;
use indelible_backup::backup_to;
use std::fs::{self, File};

const OBJECTS: usize = 100;
const OPEN: usize = 200;

/// System calls of this thread that read.
fn reads() -> usize {
    let figures = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = figures.lines().find_map(|line| line.strip_prefix("syscr: "));
    line.and_then(|count| count.parse().ok()).expect("a count of reads")
}

#[test]
fn open_files_of_the_machine_are_not_read_again_for_each_object() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("a.pmo"), 8 << 20).unwrap();
    for nth in 0..OBJECTS {
        pool.create(&format!("object {nth}"), 4096).unwrap();
    }
    let _open: Vec<File> = (0..OPEN).map(|_| File::open(dir.path().join("a.pmo")).unwrap()).collect();
    let before = reads();
    backup_to(&pool, &all(), &mut Vec::new(), &mut unseen).unwrap();
    let read = reads() - before;
    assert!(read < OBJECTS * OPEN / 2, "{read} reads");
}
