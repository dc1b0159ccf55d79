use super::support::{Ground, World, everywhere};
use indelible::ErrorKind;
use indelible_testing::{Fault, OpKind};

#[test]
fn an_import_has_its_bytes_in_order_and_zeros_behind() {
    everywhere(|world| {
        let pool = world.format();
        let size = 3 * (1 << 20) + 777;
        let bytes: Vec<u8> = (0..size - 100).map(|at| (at * 7 + at / 4096) as u8).collect();
        let mut new = pool.import("new", size as u64).unwrap();
        let (mut at, mut len) = (0, 1);
        while at < bytes.len() {
            let end = bytes.len().min(at + len);
            new.append(&bytes[at..end]).unwrap();
            (at, len) = (end, (len * 5 + 3) % 1_300_000);
        }
        assert_eq!(new.len(), bytes.len() as u64);
        assert_eq!(pool.stat("new").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(new.append(&[0; 101]).unwrap_err().kind(), ErrorKind::BadSize);
        new.publish().unwrap();
        let stat = pool.stat("new").unwrap();
        assert!(stat.snapshot && stat.position_independent && stat.size == size as u64);
        let read = pool.attach_snapshot_anywhere("new", b"").unwrap();
        assert!(read.as_slice()[..bytes.len()] == bytes && read.as_slice()[bytes.len()..] == [0; 100]);
        let again = pool.attach_snapshot_anywhere("new", b"").unwrap();
        assert!(again.as_slice() == read.as_slice());
        drop((read, again));
        assert!(pool.attach("new").unwrap_err().kind() == ErrorKind::ObjectReadOnly);
        drop(pool);
        let again = world.open();
        assert!(again.attach_snapshot("new").unwrap().as_slice()[..bytes.len()] == bytes);
    });
}

#[test]
fn an_import_whose_write_failed_is_never_published() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let sim = world.sim().unwrap();
    for fails in 0.. {
        let mut new = pool.import("new", 4 << 20).unwrap();
        sim.fail_at(OpKind::Write, fails, Fault::NoSpace);
        let failed = (0..40).map(|_| new.append(&[7; 99_000])).filter(Result::is_err).count();
        if failed == 0 {
            assert!(fails > 1, "only {fails} writes failed");
            return;
        }
        assert_eq!(new.publish().unwrap_err().kind(), ErrorKind::Poisoned, "fault {fails}");
        assert_eq!(pool.stat("new").unwrap_err().kind(), ErrorKind::NotFound, "fault {fails}");
    }
}

#[test]
fn an_import_that_is_dropped_leaves_nothing() {
    everywhere(|world| {
        let pool = world.format();
        drop(pool.import("new", 4096).unwrap());
        let free = pool.info().unwrap().free;
        for pieces in 0..3 {
            let mut new = pool.import("new", 1 << 20).unwrap();
            (0..pieces).for_each(|_| new.append(&[1; 300_000]).unwrap());
            drop(new);
            assert_eq!(pool.stat("new").unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(pool.info().unwrap().free, free);
        }
        let new = pool.import("new", 4096).unwrap();
        pool.create("new", 4096).unwrap();
        assert_eq!(new.publish().unwrap_err().kind(), ErrorKind::Exists);
        pool.destroy("new").unwrap();
        let mut full = pool.create_attached("full", 1 << 20).unwrap();
        full.as_mut_slice().fill(0xff);
        full.psync().unwrap();
        full.detach().unwrap();
        pool.destroy("full").unwrap();
        pool.import("new", 1 << 20).unwrap().publish().unwrap();
        assert!(pool.attach_snapshot("new").unwrap().as_slice().iter().all(|byte| *byte == 0));
        assert_eq!(pool.import("new", 1).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(pool.import("none", 0).unwrap_err().kind(), ErrorKind::BadSize);
    });
}
