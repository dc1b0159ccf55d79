//! Many pools in one process: their objects must not claim the same addresses.

use indelible::Pool;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const POOLS: usize = 1000;

/// The bytes of a pool.
const LEN: u64 = 4 << 20;

/// Descriptors that an open pool with an attached object has at most.
const DESCRIPTORS: u64 = 4;

/// A folder in memory, where that has room: on a disk most of the time goes into its flushes.
fn roomy() -> tempfile::TempDir {
    let room = rustix::fs::statvfs("/dev/shm").map_or(0, |fs| fs.f_bavail * fs.f_frsize);
    let memory = (room > POOLS as u64 * LEN).then(|| tempfile::tempdir_in("/dev/shm").ok()).flatten();
    memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

#[test]
fn a_thousand_pools_are_attached_in_one_process() {
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
