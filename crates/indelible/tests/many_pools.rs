//! Many pools in one process: their objects must not claim the same addresses.

use indelible::{CreateOptions, Pool};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Mutex, MutexGuard, PoisonError};

const POOLS: usize = 1000;

/// One of these tests at a time: together they would need more addresses than chance keeps apart.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const LEN: u64 = 4 << 20;

const DESCRIPTORS: u64 = 4;

fn roomy() -> tempfile::TempDir {
    let room = rustix::fs::statvfs("/dev/shm").map_or(0, |fs| fs.f_bavail * fs.f_frsize);
    let memory = (room > POOLS as u64 * LEN).then(|| tempfile::tempdir_in("/dev/shm").ok()).flatten();
    memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

#[test]
fn a_thousand_pools_are_attached_in_one_process() {
    let _alone = alone();
    let limit = getrlimit(Resource::Nofile);
    let wanted = POOLS as u64 * DESCRIPTORS + 100;
    if limit.maximum.is_some_and(|most| most < wanted) {
        indelible_testing::not_tested(format!(
            "a thousand pools: the limit of descriptors is below {wanted}"
        ));
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
    let folder = roomy();
    let mut open = Vec::new();
    for n in 0..POOLS as u64 {
        let pool = Pool::format(folder.path().join(format!("{n}.pmo")), LEN).unwrap();
        pool.create("object", 1 << 20).unwrap();
        let mut object = pool.attach("object").unwrap();
        *object.root_mut::<u64>().unwrap() = n;
        object.psync().unwrap();
        open.push((pool, object));
    }
    for (n, (_, object)) in open.iter().enumerate() {
        assert_eq!(*object.root::<u64>().unwrap(), n as u64);
    }
}

#[test]
fn forty_pools_with_objects_of_16_gib_are_attached_in_one_process() {
    let _alone = alone();
    const POOLS: u64 = 40;
    const SIZE: u64 = 16 << 30;
    let folder = tempfile::tempdir().unwrap();
    let mut open = Vec::new();
    for n in 0..POOLS {
        let pool = Pool::format(folder.path().join(format!("{n}.pmo")), SIZE + (1 << 30)).unwrap();
        pool.create_with("object", &CreateOptions::new(SIZE).sparse(true)).unwrap();
        let mut object = pool.attach("object").unwrap();
        let words = object.as_mut_slice();
        let end = words.len() - 8;
        words[end..].copy_from_slice(&n.to_le_bytes());
        object.psync().unwrap();
        open.push((pool, object));
    }
    let mut ranges: Vec<_> = open.iter().map(|(_, object)| object.as_slice().as_ptr_range()).collect();
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for (n, (_, object)) in (0_u64..).zip(&open) {
        assert_eq!(object.as_slice()[SIZE as usize - 8..], n.to_le_bytes());
    }
}
