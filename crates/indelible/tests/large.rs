use indelible::{MediumKind, Object, Pool, PoolOptions, psync_all};
use std::os::unix::fs::FileExt;
use std::path::Path;

const POOL: u64 = 64 << 20;
const LARGE: usize = 10 << 20;
const SMALL: usize = 5000;

fn open(path: &Path) -> Pool {
    PoolOptions::new().medium(MediumKind::Memory).open(path).unwrap()
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 64 % 251) as u8 ^ seed).collect()
}

fn survives(psync: impl Fn(&mut Object, &mut Object)) {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let (path, crashed) = (dir.path().join("pool"), dir.path().join("crashed"));
    let pool = PoolOptions::new().medium(MediumKind::Memory).format(&path, POOL).unwrap();
    let mut objects = [("large", LARGE), ("small", SMALL)].map(|(name, len)| {
        pool.create(name, len as u64).unwrap();
        let mut object = pool.attach(name).unwrap();
        object.as_mut_slice().copy_from_slice(&bytes(len, 1));
        object.psync().unwrap();
        object
    });
    for round in 2..5 {
        let [large, small] = &mut objects;
        for object in [&mut *large, &mut *small] {
            let len = object.len();
            object.as_mut_slice().copy_from_slice(&bytes(len, round));
        }
        psync(large, small);
        std::fs::copy(&path, &crashed).unwrap();
    }
    let stats = objects.each_ref().map(|object| object.stat().unwrap());
    let logged = objects[0].stats().logged_bytes;
    assert_eq!(logged, 3 * LARGE as u64, "every line changed in every round");
    drop(objects);
    drop(pool);
    let file = std::fs::File::options().write(true).open(&crashed).unwrap();
    for stat in &stats {
        file.write_all_at(&vec![0xee; stat.extent as usize], stat.offset).unwrap();
    }
    for (path, way) in [(&crashed, "redone from the lane"), (&path, "in place after detach")] {
        let pool = open(path);
        for (name, len) in [("large", LARGE), ("small", SMALL)] {
            let object = pool.attach(name).unwrap();
            assert!(object.as_slice()[..len] == bytes(len, 4), "{name} is not {way}");
        }
    }
}

#[test]
fn of_one_object_after_the_other() {
    survives(|large, small| {
        large.psync().unwrap();
        small.psync().unwrap();
    });
}

#[test]
fn of_a_large_and_a_small_object_at_once() {
    survives(|large, small| psync_all(&mut [small, large]).unwrap());
}

#[test]
fn as_a_cut() {
    survives(|large, small| {
        large.psync_cut().unwrap();
        small.psync_cut().unwrap();
    });
}

#[test]
fn pages_that_changed_in_part_keep_the_rest() {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let path = dir.path().join("pool");
    let pool = PoolOptions::new().medium(MediumKind::Memory).format(&path, POOL).unwrap();
    pool.create("object", LARGE as u64).unwrap();
    let mut object = pool.attach("object").unwrap();
    let mut expected = bytes(LARGE, 1);
    object.as_mut_slice().copy_from_slice(&expected);
    object.psync().unwrap();
    for (round, step) in [(2_u8, 64), (3, 65), (4, 320), (5, 512), (6, 4096), (7, 577)] {
        for at in (0..LARGE).step_by(step) {
            expected[at] = expected[at].wrapping_add(round);
            object.as_mut_slice()[at] = expected[at];
        }
        object.psync().unwrap();
        assert!(object.as_slice() == expected, "steps of {step}");
    }
    object.detach().unwrap();
    drop(pool);
    assert!(open(&path).attach_read("object").unwrap().as_slice() == expected);
}
