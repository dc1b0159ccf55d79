//! The contract of DESIGN §2, through the public API, in every world.

use crate::support::{self, everywhere};
use indelible::{CreateOptions, ErrorKind, Plain, Pool, psync_all, raw};
use indelible_testing::Seeded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Plain)]
#[repr(C)]
struct Root {
    value: u64,
    next: *mut Root,
}

fn value_of(pool: &Pool, name: &str) -> u64 {
    *pool.attach_read(name).unwrap().root::<u64>().unwrap()
}

#[test]
fn s0_18_what_was_psynced_stays_and_what_was_not_goes() {
    everywhere(|world| {
        {
            let pool = world.format();
            pool.create("a", 100_000).unwrap();
            let mut a = pool.attach("a").unwrap();
            assert!(a.as_slice().iter().all(|byte| *byte == 0));
            a.as_mut_slice()[70_000] = 1;
            a.psync().unwrap();
            a.as_mut_slice()[70_000] = 2;
            a.as_mut_slice()[0] = 9;
        }
        let pool = world.open();
        let mut a = pool.attach("a").unwrap();
        assert_eq!((a.as_slice()[0], a.as_slice()[70_000]), (0, 1));
        a.psync().unwrap();
        assert_eq!(a.lane_use().batches, 0, "nothing changed, nothing was written");
        assert_eq!(a.psyncs(), 1);
    });
}

// S0.18, S0.20: any number of stores, anywhere, against a model.
#[test]
fn s0_18_random_programs_agree_with_a_model() {
    everywhere(|world| {
        let mut random = Seeded::new(0x1d);
        let mut pool = world.format();
        let size = 40 * 4096;
        pool.create("a", size as u64).unwrap();
        let mut object = pool.attach("a").unwrap();
        let mut now = vec![0_u8; size];
        let mut durable = now.clone();
        for _ in 0..400 {
            match random.u32(0..20) {
                0 => {
                    drop(object);
                    pool = world.open();
                    object = pool.attach("a").unwrap();
                    now.clone_from(&durable);
                }
                1..=5 => {
                    object.psync().unwrap();
                    durable.clone_from(&now);
                }
                6 => object.checkpoint().unwrap(),
                7 => {
                    object.revert().unwrap();
                    now.clone_from(&durable);
                }
                _ => {
                    let at = random.usize(0..size);
                    let len = random.usize(1..300).min(size - at);
                    let byte = random.u8(..);
                    object.range_mut(at..at + len).fill(byte);
                    now[at..at + len].fill(byte);
                }
            }
            if random.u32(0..10) == 0 {
                assert!(object.as_slice() == now, "the shadow differs from the model");
            }
        }
        drop(object);
        drop(pool);
        let pool = world.open();
        assert!(
            pool.attach_read("a").unwrap().as_slice() == durable,
            "the object differs from the last psync"
        );
    });
}

// S0.18 for ranges never psynced before, which are written straight to the primary.
#[test]
fn s0_18_a_first_load_is_written_once_and_published_as_one_step() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 8 << 20).unwrap();
        let mut a = pool.attach("a").unwrap();
        let image: Vec<u8> = (0..a.len()).map(|i| (i / 4096) as u8 | 1).collect();
        a.range_mut(0..6 << 20).copy_from_slice(&image[..6 << 20]);
        a.psync().unwrap();
        assert_eq!(a.stats().direct_bytes, 6 << 20);
        assert!(a.lane_use().bytes < 4096, "{:?}", a.lane_use());
        a.range_mut(5 << 20..8 << 20).copy_from_slice(&image[5 << 20..8 << 20]);
        a.range_mut(0..1)[0] = 77;
        a.psync().unwrap();
        assert_eq!(a.stats().direct_bytes, 8 << 20);
        a.range_mut(4096..4097)[0] = 78;
        drop(a);
        drop(pool);
        let a = world.open().attach_read("a").unwrap();
        assert_eq!(a.as_slice()[0], 77);
        assert!(a.as_slice()[1..] == image[1..]);
    });
}

// S0.8, S0.9, S0.10
#[test]
fn s0_10_attach_refuses_what_is_absent_locked_or_not_allowed() {
    everywhere(|world| {
        let pool = world.format();
        assert_eq!(pool.attach("a").unwrap_err().kind(), ErrorKind::NotFound);
        pool.create_with("a", &CreateOptions::new(10).read_key(b"r").write_key(b"w")).unwrap();
        pool.create_with("fixed", &CreateOptions::new(10).read_only(true)).unwrap();
        assert_eq!(pool.attach("a").unwrap_err().kind(), ErrorKind::WrongKey);
        assert_eq!(pool.attach_with_key("a", b"r").unwrap_err().kind(), ErrorKind::WrongKey);
        assert_eq!(pool.attach_read_with_key("a", b"x").unwrap_err().kind(), ErrorKind::WrongKey);
        assert_eq!(pool.attach("fixed").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
        assert_eq!(pool.create("a", 5).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(pool.create("big", 1 << 40).unwrap_err().kind(), ErrorKind::NoRoom);
        assert_eq!(pool.create("zero", 0).unwrap_err().kind(), ErrorKind::BadSize);
        assert_eq!(pool.create("", 1).unwrap_err().kind(), ErrorKind::BadName);
        assert_eq!(pool.destroy("a").unwrap_err().kind(), ErrorKind::WrongKey);
        let writer = pool.attach_with_key("a", b"w").unwrap();
        assert_eq!(pool.destroy_with_key("a", b"w").unwrap_err().kind(), ErrorKind::Held);
        assert_eq!(pool.attach_read_with_key("a", b"r").unwrap_err().kind(), ErrorKind::Held);
        let message = pool.attach_with_key("a", b"w").unwrap_err().to_string();
        assert!(
            message.contains("\"a\"") && message.contains("this process") && message.contains("detach it"),
            "{message}"
        );
        drop(writer);
        let readers = [(); 3].map(|()| pool.attach_read_with_key("a", b"r").unwrap());
        assert_eq!(readers[0].as_ptr(), readers[2].as_ptr());
        assert_eq!(pool.attach_with_key("a", b"w").unwrap_err().kind(), ErrorKind::Held);
        drop(readers);
        pool.destroy_with_key("a", b"w").unwrap();
        pool.create("a", 10).unwrap();
    });
}

// S0.14, S0.22
#[test]
fn s0_22_addresses_are_fixed_unique_and_good_for_native_pointers() {
    everywhere(|world| {
        let (first, second);
        {
            let pool = world.format();
            pool.create("a", 5000).unwrap();
            pool.create("b", 5000).unwrap();
            let (mut a, mut b) = (pool.attach("a").unwrap(), pool.attach("b").unwrap());
            (first, second) = (a.as_ptr().addr(), b.as_ptr().addr());
            assert!(first.abs_diff(second) >= 8192);
            assert!(first >= 1 << 46, "the upper half is for objects");
            let target = b.root_mut::<Root>().unwrap();
            target.value = 42;
            let target: *mut Root = target;
            a.root_mut::<Root>().unwrap().next = target;
            psync_all(&mut [&mut a, &mut b]).unwrap();
        }
        let pool = world.open();
        let a = pool.attach_read("a").unwrap();
        let b = pool.attach("b").unwrap();
        assert_eq!((a.as_ptr().addr(), b.as_ptr().addr()), (first, second));
        let next = a.root::<Root>().unwrap().next;
        assert_eq!(next.addr(), second);
        // SAFETY: it points at b's root, and b is attached.
        assert_eq!(unsafe { (*next).value }, 42);
        drop(a);
        let a = pool.attach("a").unwrap();
        assert_eq!(a.as_ptr().addr(), first, "S0.14");
    });
}

#[test]
fn psync_of_several_objects_is_one_step() {
    everywhere(|world| {
        let pool = world.format();
        let names: Vec<String> = (0..6).map(|i| format!("object {i}")).collect();
        for name in &names {
            pool.create(name, 9000).unwrap();
        }
        {
            let mut objects: Vec<_> = names.iter().map(|name| pool.attach(name).unwrap()).collect();
            for round in 1..=5_u64 {
                for object in &mut objects {
                    *object.root_mut::<u64>().unwrap() = round;
                }
                let mut all: Vec<_> = objects.iter_mut().collect();
                psync_all(&mut all).unwrap();
            }
            *objects[3].root_mut::<u64>().unwrap() = 99;
            objects[2].psync().unwrap();
        }
        assert!(names.iter().all(|name| value_of(&pool, name) == 5));
        let other = support::World::new(support::Ground::Memory, world.tracking, false);
        let elsewhere = other.format();
        elsewhere.create("x", 1).unwrap();
        let (mut x, mut y) = (elsewhere.attach("x").unwrap(), pool.attach(&names[0]).unwrap());
        assert!(psync_all(&mut [&mut x, &mut y]).is_err(), "objects of two pools cannot be one step");
    });
}

// S0.15, S0.16, S0.17
#[test]
fn s0_15_objects_are_known_by_address_to_all_threads() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let a = raw::attach(&pool, "a", raw::Permission::Write, b"").unwrap();
        // SAFETY: attached for writing, and known to no other code.
        unsafe { a.cast::<u64>().write(7) };
        world.mark(a.as_ptr(), 8);
        let address = a.addr().get();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let a = std::ptr::with_exposed_provenance::<u8>(address);
                // SAFETY: no thread stores meanwhile.
                unsafe { raw::psync(a) }.or_else(|_| raw::psync_cut(a)).unwrap();
            });
        });
        a.as_ptr().expose_provenance();
        raw::detach(a.as_ptr()).unwrap();
        assert_eq!(raw::detach(a.as_ptr()).unwrap_err().kind(), ErrorKind::NotAttached);
        // SAFETY: refused before anything is touched.
        assert_eq!(unsafe { raw::psync(a.as_ptr()) }.unwrap_err().kind(), ErrorKind::NotAttached);
        assert_eq!(
            raw::detach(std::ptr::without_provenance(0x1234_5000)).unwrap_err().kind(),
            ErrorKind::NotAttached
        );
        let a = raw::attach(&pool, "a", raw::Permission::Read, b"").unwrap();
        let again = raw::attach(&pool, "a", raw::Permission::Read, b"").unwrap();
        assert_eq!(a, again);
        // SAFETY: no thread stores; ignored on a read-only attach (S0.17).
        unsafe { raw::psync(a.as_ptr()) }.unwrap();
        raw::detach(a.as_ptr()).unwrap();
        // SAFETY: attached once more for reading.
        assert_eq!(unsafe { a.cast::<u64>().read() }, 7);
        raw::detach(a.as_ptr()).unwrap();
        assert!(raw::detach(a.as_ptr()).is_err());
    });
}

#[test]
fn s0_19_threads_psync_different_objects_at_once() {
    everywhere(|world| {
        let pool = world.format();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let pool = pool.clone();
                scope.spawn(move || {
                    let name = format!("object {thread}");
                    pool.create(&name, 300_000).unwrap();
                    let mut object = pool.attach(&name).unwrap();
                    for round in 1..=60_u64 {
                        let at = (round * 4096 * 7 % 290_000) as usize;
                        object.range_mut(at..at + 8).copy_from_slice(&round.to_le_bytes());
                        *object.root_mut::<u64>().unwrap() = round;
                        object.psync().unwrap();
                    }
                    *object.root_mut::<u64>().unwrap() = 1000;
                });
            }
        });
        for thread in 0..4 {
            assert_eq!(value_of(&pool, &format!("object {thread}")), 60);
        }
    });
}

// DESIGN §2: PMO_PSYNC_CUT.
#[test]
fn a_cut_never_tears_concurrent_stores() {
    everywhere(|world| {
        if world.tracking == indelible::Tracking::Explicit {
            return; // Stores through shared references cannot be marked before they are made.
        }
        let pool = world.format();
        pool.create("a", 3 * 4096).unwrap();
        let mut object = pool.attach("a").unwrap();
        let stop = AtomicBool::new(false);
        // The second counter follows the first; a cut may fall between the two stores, not
        // elsewhere.
        #[derive(Plain)]
        #[repr(C)]
        struct Pair {
            first: AtomicU64,
            gap: [u64; 1000],
            second: AtomicU64,
        }
        let pair = object.share::<Pair>().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    pair.first.store(n, Ordering::SeqCst);
                    pair.second.store(n, Ordering::SeqCst);
                }
            });
            for _ in 0..100 {
                pair.psync_cut().unwrap();
                if let Some(reader) = peek(&pool, "a") {
                    let (first, second) = reader;
                    assert!(first == second || first == second + 1, "torn: {first} {second}");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        pair.psync_cut().unwrap();
        let last = pair.first.load(Ordering::SeqCst);
        drop(object);
        assert_eq!(value_of(&pool, "a"), last);
    });

    fn peek(pool: &Pool, name: &str) -> Option<(u64, u64)> {
        let stat = pool.stat(name).ok()?;
        let word = |offset: u64| {
            let mut bytes = [0; 8];
            pool.store().device().read(offset, &mut bytes).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        Some((word(stat.offset)?, word(stat.offset + 8 + 8000)?))
    }
}

/// Regression: the shadow still had the old bytes, and the next psync brought them back.
#[test]
fn bytes_cut_off_by_a_shrink_do_not_come_back_when_an_attached_object_grows() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 20_000).unwrap();
        let mut a = pool.attach("a").unwrap();
        a.as_mut_slice().fill(1);
        a.psync().unwrap();
        a.detach().unwrap();
        pool.resize("a", 5000, b"").unwrap();
        let mut a = pool.attach("a").unwrap();
        for value in 2..5 {
            a.range_mut(4096..4100).fill(value);
            a.psync().unwrap();
        }
        for size in [12_000, 1 << 20] {
            a.grow(size).unwrap();
            assert!(a.as_slice()[5000..].iter().all(|byte| *byte == 0));
            a.range_mut(0..1)[0] += 1;
            a.psync().unwrap();
        }
        a.detach().unwrap();
        let a = pool.attach_read("a").unwrap();
        assert!(a.as_slice()[5000..].iter().all(|byte| *byte == 0));
        assert_eq!(a.as_slice()[4096..4100], [4; 4]);
    });
}

/// Regression: growth zeroed the rest of the last page.
#[test]
fn every_byte_of_an_object_survives_growth() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        for size in [5000, 9000, 20_001] {
            a.grow(size).unwrap();
            assert_eq!(a.len() as u64, size);
            a.as_mut_slice().fill(1);
            a.psync().unwrap();
        }
        a.grow(30_000).unwrap();
        assert!(a.as_slice()[..20_001].iter().all(|byte| *byte == 1));
        a.detach().unwrap();
        assert_eq!(pool.attach_read("a").unwrap().len(), 30_000);
    });
}

#[test]
fn s0_07_growing_keeps_the_address_and_unsynced_stores() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 10_000).unwrap();
        let mut a = pool.attach("a").unwrap();
        let address = a.as_ptr();
        a.as_mut_slice()[5] = 5;
        a.psync().unwrap();
        a.as_mut_slice()[9000] = 9;
        a.grow(50_000).unwrap(); // in place
        pool.create("wall", 10_000).unwrap();
        a.as_mut_slice()[40_000] = 4;
        a.grow(90_000).unwrap();
        assert_eq!(a.as_ptr(), address);
        assert!(a.len() >= 90_000);
        assert_eq!(
            (a.as_slice()[5], a.as_slice()[9000], a.as_slice()[40_000], a.as_slice()[80_000]),
            (5, 9, 4, 0)
        );
        a.as_mut_slice()[80_000] = 8;
        assert_eq!(a.grow(10).unwrap_err().kind(), ErrorKind::BadSize);
        a.psync().unwrap();
        a.as_mut_slice()[80_000] = 1;
        drop(a);
        drop(pool);
        let pool = world.open();
        {
            let a = pool.attach_read("a").unwrap();
            assert_eq!(
                (a.as_slice()[5], a.as_slice()[9000], a.as_slice()[40_000], a.as_slice()[80_000]),
                (5, 9, 4, 8)
            );
        }
        pool.resize("a", 200_000, b"").unwrap();
        pool.resize("a", 6_000, b"").unwrap();
        let a = pool.attach_read("a").unwrap();
        assert_eq!((a.len(), a.as_slice()[5], a.as_ptr()), (6_000, 5, address));
    });
}

// S0.16, S0.24: only written pages are compared, and pages that stay hot cost no fault and no
// protection.
#[test]
fn s0_24_only_pages_that_were_written_are_looked_at() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 4 << 20).unwrap();
        let mut a = pool.attach("a").unwrap();
        let sum: u64 = a.as_slice().iter().map(|byte| u64::from(*byte)).sum();
        assert_eq!(sum, 0);
        a.psync().unwrap();
        assert_eq!(a.stats().pages_changed, 0);
        for round in 0..10 {
            a.range_mut(1 << 20..(1 << 20) + 1)[0] = round + 1;
            a.psync().unwrap();
        }
        let stats = a.stats();
        assert_eq!(stats.pages_changed, 10);
        assert!(stats.pages_compared <= 1100, "{stats:?}");
        assert_eq!(stats.logged_bytes, 640, "one line each");
    });
}
