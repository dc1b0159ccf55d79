//! Sealed objects with limited memory: evicted pages come back as last psynced, and no store is
//! lost (S3.3).

use super::support::{Ground, World, everywhere, faults_in, seal_key as key};
use indelible::{CreateOptions, ErrorKind, Plain, Pool, PoolOptions, Tracking};
use indelible_testing::Seeded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGE: usize = 4096;
const PAGES: usize = 1000;
const SIZE: usize = PAGES * PAGE;
const LIMIT: usize = 256;

fn byte(page: usize) -> u8 {
    (page % 251) as u8 + 1
}

fn options(world: &World) -> PoolOptions {
    world.options().memory_limit((LIMIT * PAGE) as u64)
}

fn filled(world: &World) -> Pool {
    let pool = match world.sim() {
        Some(sim) => options(world).on_device(Arc::new(sim.handle()), true),
        None => options(world).format(world.path(), super::support::POOL),
    }
    .unwrap();
    pool.create_with("a", &CreateOptions::new(SIZE as u64).sealed(&key(), "test")).unwrap();
    let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
    for page in 0..PAGES {
        a.range_mut(page * PAGE..(page + 1) * PAGE).fill(byte(page));
        if page % 100 == 99 {
            a.psync().unwrap();
            assert!(resident(a.as_ptr()) <= LIMIT + 80, "{} pages after {page}", resident(a.as_ptr()));
        }
    }
    a.detach().unwrap();
    pool
}

fn resident(address: *const u8) -> usize {
    let mut pages = [0_u8; PAGES];
    // SAFETY: the kernel fills a byte for each page of the object, which is attached.
    assert_eq!(unsafe { libc::mincore(address.cast_mut().cast(), SIZE, pages.as_mut_ptr()) }, 0);
    pages.iter().filter(|page| **page & 1 != 0).count()
}

// S3.3
#[test]
fn a_reader_of_an_object_larger_than_its_memory_reads_all_of_it() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        let world = World::new(ground, Tracking::Auto, false);
        let pool = filled(&world);
        let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
        let mut rng = Seeded::new(0x5eed);
        for step in 0..6000 {
            let page = if step % 2000 < 1000 { rng.usize(..PAGES) } else { step % PAGES };
            assert_eq!(a.as_slice()[page * PAGE + 77], byte(page), "step {step}");
            assert!(resident(a.as_ptr()) <= LIMIT + 80, "{} pages at step {step}", resident(a.as_ptr()));
        }
        assert_eq!(a.prefault(0..SIZE).unwrap(), LIMIT * PAGE, "more would drop the first again");
    }
}

#[test]
fn a_writer_of_an_object_larger_than_its_memory_loses_nothing() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    everywhere(|world| {
        let pool = filled(world);
        let mut expected: Vec<u8> = (0..SIZE).map(|at| byte(at / PAGE)).collect();
        let mut rng = Seeded::new(0x5eed);
        let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
        for round in 0..12 {
            for step in 0..120 {
                let at = rng.usize(..SIZE - 300);
                assert_eq!(a.as_slice()[at], expected[at], "round {round}, step {step}");
                if step % 3 == 0 {
                    a.range_mut(at..at + 300).fill(step as u8);
                    expected[at..at + 300].fill(step as u8);
                }
            }
            match round % 3 {
                0 => a.psync().unwrap(),
                1 => a.psync_cut().unwrap(),
                _ => {
                    a.checkpoint().unwrap();
                    a.psync().unwrap();
                }
            }
            assert!(resident(a.as_ptr()) <= LIMIT + 160, "{} pages, round {round}", resident(a.as_ptr()));
        }
        assert!(a.as_slice() == expected);
        a.range_mut(0..SIZE).fill(0xee);
        a.revert().unwrap();
        assert!(a.as_slice() == expected);
        a.detach().unwrap();
        assert!(pool.attach_read_sealed("a", b"", &key()).unwrap().as_slice() == expected);
    });
}

#[derive(Plain)]
#[repr(C)]
struct Counters {
    pages: [[AtomicU64; PAGE / 8]; PAGES],
}

fn cuts_lose_no_store(tracking: Tracking) {
    const EACH: u64 = 30_000;
    let world = World::new(Ground::Simulated, tracking, false);
    let device = Arc::new(world.sim().unwrap().handle());
    let pool = options(&world).on_device(device, true).unwrap();
    pool.create_with("a", &CreateOptions::new(SIZE as u64).sealed(&key(), "test")).unwrap();
    let mut a = pool.attach_sealed("a", b"", &key()).unwrap();
    let counters = a.share::<Counters>().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                let counters = &counters;
                scope.spawn(move || {
                    let mut rng = Seeded::new(0x5eed + thread as u64);
                    for _ in 0..EACH {
                        counters.pages[rng.usize(..PAGES)][thread].fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended = &done;
        scope.spawn(move || {
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            ended.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            counters.psync_cut().unwrap();
        }
    });
    counters.psync_cut().unwrap();
    a.detach().unwrap();
    let a = pool.attach_read_sealed("a", b"", &key()).unwrap();
    let counted = |thread: usize| {
        let counter = |page: usize| page * PAGE + thread * 8;
        let value = |page| u64::from_le_bytes(a.as_slice()[counter(page)..][..8].try_into().unwrap());
        (0..PAGES).map(value).sum::<u64>()
    };
    assert_eq!([counted(0), counted(1)], [EACH; 2], "stores were lost");
}

#[test]
fn cuts_that_drop_pages_lose_no_store_with_protection_by_the_kernel() {
    if !faults_in() || !Tracking::WpAsync.is_available() {
        return indelible_testing::not_tested(format_args!("eviction with wp-async"));
    }
    cuts_lose_no_store(Tracking::WpAsync);
}

#[test]
fn cuts_that_drop_pages_lose_no_store_with_protected_pages() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    cuts_lose_no_store(Tracking::Mprotect);
}

#[test]
fn a_limit_that_is_too_low_is_refused() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let error = world
        .options()
        .memory_limit(1 << 16)
        .on_device(Arc::new(world.sim().unwrap().handle()), true)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("1048576") && error.to_string().contains("65536"), "{error}");
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn pages_that_are_dropped_outside_the_gate_are_noticed() {
        let all = [Mutant::EvictedOutsideGate, Mutant::UnsyncedDropped];
        assert_eq!(Mutant::MEMORY, all, "each mutant has its tests, the second in `own_pages.rs`");
        let available = super::faults_in();
        type Test = fn();
        let tests: [(bool, Test); 2] = [
            (
                available && super::Tracking::WpAsync.is_available(),
                super::cuts_that_drop_pages_lose_no_store_with_protection_by_the_kernel,
            ),
            (available, super::cuts_that_drop_pages_lose_no_store_with_protected_pages),
        ];
        for (available, test) in tests {
            if !available {
                indelible_testing::not_tested(format_args!("the mutant of eviction without fault-in"));
                continue;
            }
            let run = AssertUnwindSafe(test);
            assert!(with_mutant(Mutant::EvictedOutsideGate, || catch_unwind(run)).is_err(), "unnoticed");
        }
    }
}
