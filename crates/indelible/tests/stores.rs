#[path = "../../../evidence/src/stores/uring.rs"]
mod uring;

use crate::support::{Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Object, Tracking};
use indelible_testing::{Fault, OpKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
const LEN: usize = 64 * PAGE;

fn settled(world: &World) -> (indelible::Pool, Object) {
    let pool = world.format();
    pool.create("a", LEN as u64).unwrap();
    let mut object = pool.attach("a").unwrap();
    for value in [1, 2] {
        object.as_mut_slice().fill(value);
        object.psync().unwrap();
    }
    for _ in 0..40 {
        object.psync().unwrap();
    }
    (pool, object)
}

fn logged(object: &mut Object) -> u64 {
    let before = object.stats().logged_bytes;
    object.psync().unwrap();
    object.stats().logged_bytes - before
}

fn survives(pool: &indelible::Pool, object: Object, at: usize, byte: u8) -> bool {
    drop(object);
    pool.attach("a").unwrap().as_slice()[at] == byte
}

/// io_uring buffers are pinned: reads into them bypass page tables and protection.
#[test]
fn stores_to_pinned_pages_are_found_once_they_are_marked() {
    everywhere(|world| {
        let (pool, mut object) = settled(world);
        let (at, len) = (8 * PAGE, 4 * PAGE);
        object.range_mut(at..at + len).fill(3);
        object.mark_dirty(at..at + len);
        // SAFETY: the object outlives the ring.
        let ring = unsafe { uring::Ring::pin(object.as_mut_ptr().add(at), len) };
        let mut ring = match ring {
            Ok(ring) => ring,
            Err(error) => {
                return indelible_testing::not_tested(format_args!(
                    "stores to pinned pages: no io_uring here: {error}"
                ));
            }
        };
        (0..40).for_each(|_| object.psync().unwrap());
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[9; 2 * PAGE], 0).unwrap();
        for (round, byte) in [(0, 9), (1, 10)] {
            file.write_all_at(&[byte; 2 * PAGE], 0).unwrap();
            // SAFETY: within the buffer.
            let target = unsafe { object.as_mut_ptr().add(at + PAGE) };
            ring.read(file.as_raw_fd(), 0, target, 2 * PAGE as u32).unwrap();
            assert_eq!(object.as_slice()[at + PAGE], byte, "the device's bytes are in the object");
            if round == 0 {
                assert_eq!(
                    logged(&mut object),
                    0,
                    "tracking is not expected to find them: drop this test if it does"
                );
            }
            object.mark_dirty(at + PAGE..at + 3 * PAGE);
            assert_eq!(logged(&mut object), 2 * PAGE as u64, "{:?}, round {round}", world.tracking);
        }
        assert!(survives(&pool, object, at + 3 * PAGE - 1, 10));
    });
}

#[test]
fn marks_by_address_reach_the_object_they_lie_in() {
    everywhere(|world| {
        let (_pool, object) = settled(world);
        let inside = object.as_ptr();
        assert_eq!(indelible::raw::mark_dirty(inside, 8).unwrap_err().kind(), ErrorKind::NotAttached);
        drop(object);
        let pool = world.open();
        let base = indelible::raw::attach(&pool, "a", indelible::raw::Permission::Write, b"").unwrap();
        // SAFETY: the object's last page.
        let last = unsafe { base.as_ptr().add(LEN - PAGE) };
        indelible::raw::mark_dirty(last, usize::MAX).unwrap();
        indelible::raw::mark_dirty(last, 0).unwrap();
        // SAFETY: no thread stores.
        unsafe { indelible::raw::psync(last).unwrap() };
        indelible::raw::detach(base.as_ptr()).unwrap();
    });
}

#[test]
fn stores_by_proc_mem_are_found_or_marked() {
    everywhere(|world| {
        let (pool, mut object) = settled(world);
        let at = 20 * PAGE + 100;
        let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
        if let Err(error) = memory.write_all_at(&[7; 8], (object.as_ptr().addr() + at) as u64) {
            return indelible_testing::not_tested(format_args!("/proc/self/mem: {error}"));
        }
        assert_eq!(object.as_slice()[at], 7);
        if world.tracking == Tracking::WpAsync {
            assert_eq!(logged(&mut object), 64, "found without a mark");
        } else {
            assert_eq!(logged(&mut object), 0, "nothing announced it");
            object.mark_dirty(at..at + 8);
            assert_eq!(logged(&mut object), 64);
        }
        assert!(survives(&pool, object, at, 7));
    });
}

#[test]
fn stores_of_a_cut_without_space_are_in_the_next_psync() {
    for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
        if !tracking.is_available() {
            indelible_testing::not_tested(format_args!("{tracking:?}"));
            continue;
        }
        let world = World::new(Ground::Simulated, tracking, false);
        let pool = world.format();
        pool.create_with("a", &CreateOptions::new(LEN as u64).sparse(true)).unwrap();
        let mut object = pool.attach("a").unwrap();
        *object.root_mut::<u64>().unwrap() = 1;
        object.psync().unwrap();
        object.range_mut(30 * PAGE..30 * PAGE + 8).fill(5);
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::Reserve, 0, Fault::NoSpace);
        assert_eq!(object.psync_cut().unwrap_err().kind(), ErrorKind::NoSpace, "{tracking:?}");
        sim.clear_faults();
        object.psync().unwrap();
        assert!(survives(&pool, object, 30 * PAGE, 5), "{tracking:?}");
    }
}

#[test]
fn dropped_pages_come_back_as_psynced() {
    everywhere(|world| {
        if world.ground == Ground::Simulated || world.fault_in {
            // Memory without a file: SAFETY.md.
            return;
        }
        if !Tracking::WpAsync.is_available() {
            return indelible_testing::not_tested(format_args!(
                "dropped pages: this kernel does not announce them"
            ));
        }
        let (pool, mut object) = settled(world);
        for byte in 3..20 {
            object.range_mut(5 * PAGE..7 * PAGE).fill(byte);
            object.psync().unwrap();
            // SAFETY: there are no references to the pages.
            let done = unsafe {
                libc::madvise(object.as_mut_ptr().add(5 * PAGE).cast(), 2 * PAGE, libc::MADV_DONTNEED)
            };
            assert_eq!(done, 0);
            assert!(object.as_slice()[5 * PAGE..7 * PAGE].iter().all(|b| *b == byte), "{:?}", world.tracking);
            object.range_mut(6 * PAGE..6 * PAGE + 8).fill(byte);
            object.psync().unwrap();
        }
        assert!(survives(&pool, object, 5 * PAGE + 9, 19));
        let mut object = pool.attach("a").unwrap();
        object.grow(2 * LEN as u64).unwrap();
        let at = 2 * LEN - PAGE;
        object.range_mut(at..at + 8).fill(1);
        object.psync().unwrap();
        // SAFETY: there are no references to the page.
        let done = unsafe { libc::madvise(object.as_mut_ptr().add(at).cast(), PAGE, libc::MADV_DONTNEED) };
        assert_eq!(done, 0);
        assert_eq!(object.as_slice()[at], 1, "in what the object grew by");
    });
}

/// A reference to atomics means stores at any time, through any number of cuts.
#[test]
fn stores_through_shared_atomics_are_found() {
    use std::sync::atomic::{AtomicU64, Ordering};
    everywhere(|world| {
        let (pool, mut object) = settled(world);
        {
            let shared = object.share::<[AtomicU64; 100]>().unwrap();
            for value in [11, 12] {
                shared[99].store(value, Ordering::Relaxed);
                shared.psync_cut().unwrap();
            }
            shared[0].store(13, Ordering::Relaxed);
        }
        object.psync().unwrap();
        assert_eq!(object.as_slice()[0], 13);
        assert!(survives(&pool, object, 99 * 8, 12), "{:?}", world.tracking);
        assert_eq!(pool.attach("a").unwrap().as_slice()[0], 13, "{:?}", world.tracking);
    });
}

#[test]
fn an_object_knows_whether_a_detach_would_lose_stores() {
    everywhere(|world| {
        let (pool, mut object) = settled(world);
        assert!(!object.is_unsynced().unwrap(), "{:?}", world.tracking);
        object.range_mut(3 * PAGE..5 * PAGE).fill(2);
        assert!(!object.is_unsynced().unwrap(), "the bytes are what they were");
        object.range_mut(4 * PAGE + 100..4 * PAGE + 101).fill(9);
        assert!(object.is_unsynced().unwrap() && object.is_unsynced().unwrap());
        assert_eq!(logged(&mut object), 64);
        assert!(!object.is_unsynced().unwrap());
        assert!(survives(&pool, object, 4 * PAGE + 100, 9));
    });
}
