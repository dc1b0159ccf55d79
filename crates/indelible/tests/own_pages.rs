//! Objects with limited memory: a process's own copies of psynced pages go back to the kernel, and
//! no store is lost (docs/decisions/0081).

use super::support::{Ground, World};
use indelible::{Beside, Bystanders, ErrorKind, Object, Plain, Pool, Tracking};
use indelible_testing::Seeded;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGE: usize = 4096;
const PAGES: usize = 2000;
const SIZE: usize = PAGES * PAGE;
const LIMIT: usize = 256;

/// Where the file is mapped: on disk, where lines wait to be applied, and in memory.
fn everywhere(test: impl Fn(&World)) {
    for ground in [Ground::File, Ground::Memory] {
        for tracking in [Tracking::WpAsync, Tracking::FaultLog, Tracking::Mprotect, Tracking::Explicit] {
            if !tracking.is_available() {
                indelible_testing::not_tested(format_args!("on {ground:?}: tracking by {tracking:?}"));
                continue;
            }
            eprintln!("world: {ground:?}, {tracking:?}");
            test(&World::new(ground, tracking, false));
        }
    }
}

fn limited(world: &World) -> Pool {
    world.options().memory_limit((LIMIT * PAGE) as u64).format(world.path(), super::support::POOL).unwrap()
}

/// Pages of the object that are the process's own.
fn own(object: &Object) -> usize {
    let (start, smaps) = (object.as_ptr().addr(), std::fs::read_to_string("/proc/self/smaps").unwrap());
    let (mut within, mut kibibytes) = (false, 0);
    for line in smaps.lines() {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        if let Some((from, _)) = range
            && let Ok(from) = usize::from_str_radix(from, 16)
        {
            within = (start..start + object.len()).contains(&from);
        } else if within && let Some(size) = line.strip_prefix("Anonymous:") {
            kibibytes += size.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
        }
    }
    kibibytes * 1024 / PAGE
}

fn byte(page: usize) -> u8 {
    (page % 251) as u8 + 1
}

fn fill(object: &mut Object, pages: std::ops::Range<usize>) {
    for page in pages {
        object.range_mut(page * PAGE..(page + 1) * PAGE).fill(byte(page));
    }
}

fn is_filled(object: &Object, pages: std::ops::Range<usize>) -> bool {
    pages.into_iter().all(|page| object.as_slice()[page * PAGE..][..PAGE].iter().all(|b| *b == byte(page)))
}

#[test]
fn an_object_filled_and_psynced_in_pieces_stays_within_its_memory() {
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        let mut at = 0;
        while at < PAGES {
            // Both kinds of changes: logged ones, and ones written to their places at once.
            let end = (at + if at % 400 == 0 { 100 } else { 300 }).min(PAGES);
            fill(&mut a, at..end);
            a.psync().unwrap();
            assert!(own(&a) <= LIMIT, "{} own pages after {end}", own(&a));
            at = end;
        }
        assert!(is_filled(&a, 0..PAGES));
        assert!(own(&a) <= LIMIT, "reading makes no copies");
        a.detach().unwrap();
        assert!(is_filled(&pool.attach("a").unwrap(), 0..PAGES));
    });
}

#[test]
fn without_a_limit_few_pages_stay() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let mut a = world.format().create_attached("a", SIZE as u64).unwrap();
    fill(&mut a, 0..PAGES);
    a.psync().unwrap();
    assert!(own(&a) >= PAGES, "{}", own(&a));
}

#[test]
fn pages_that_every_psync_changes_stay_within_the_memory() {
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        for round in 0..25_u8 {
            for page in 0..2 * LIMIT {
                a.range_mut(page * PAGE + 8..page * PAGE + 9).fill(round);
            }
            a.psync().unwrap();
            assert!(own(&a) <= LIMIT, "{} own pages in round {round}", own(&a));
        }
        assert!((0..2 * LIMIT).all(|page| a.as_slice()[page * PAGE + 8] == 24));
    });
}

#[test]
fn objects_psynced_together_stay_within_their_memory() {
    everywhere(|world| {
        let pool = limited(world);
        let mut both = ["a", "b"].map(|name| pool.create_attached(name, SIZE as u64 / 2).unwrap());
        for piece in 0..5 {
            both.iter_mut().for_each(|object| fill(object, piece * 200..(piece + 1) * 200));
            let [a, b] = &mut both;
            indelible::psync_all(&mut [a, b]).unwrap();
            assert!(both.iter().all(|object| own(object) <= LIMIT), "after piece {piece}");
        }
        assert!(both.iter().all(|object| is_filled(object, 0..PAGES / 2)));
    });
}

#[test]
fn random_changes_psyncs_cuts_reverts_and_snapshots_leave_the_model() {
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        let (mut model, mut durable) = (vec![0; SIZE], vec![0; SIZE]);
        let (mut rng, mut most) = (Seeded::new(0x5eed), 0);
        for round in 0..60 {
            for _ in 0..rng.usize(1..60) {
                let at = rng.usize(..SIZE - 3 * PAGE);
                let (len, value) = (rng.usize(1..3 * PAGE), rng.u8(..));
                a.range_mut(at..at + len).fill(value);
                model[at..at + len].fill(value);
            }
            match round % 8 {
                0 | 1 | 5 => a.psync().unwrap(),
                2 | 6 => a.psync_cut().unwrap(),
                3 => {
                    a.checkpoint().unwrap();
                    a.psync().unwrap();
                }
                4 => {
                    a.revert().unwrap();
                    model.clone_from(&durable);
                }
                _ => {}
            }
            if !matches!(round % 8, 4 | 7) {
                durable.clone_from(&model);
                most = most.max(own(&a));
            }
            assert!(a.as_slice() == model, "round {round}");
        }
        assert!(most <= LIMIT, "{most} own pages after a psync");
        // Memory shows an extent that is the snapshot's from here on: its pages stay.
        a.psync().unwrap();
        pool.snapshot("a", "s", b"").unwrap();
        for piece in 0..PAGES / 100 {
            fill(&mut a, piece * 100..(piece + 1) * 100);
            a.psync().unwrap();
        }
        assert!(is_filled(&a, 0..PAGES));
        a.detach().unwrap();
        assert!(pool.attach_read("s").unwrap().as_slice() == model);
        assert!(is_filled(&pool.attach("a").unwrap(), 0..PAGES));
    });
}

#[test]
fn a_grown_object_stays_within_its_memory() {
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", 100 * PAGE as u64).unwrap();
        for pages in (0..1000).step_by(100) {
            a.grow((pages + 100) as u64 * PAGE as u64).unwrap();
            fill(&mut a, pages..pages + 100);
            a.psync().unwrap();
        }
        assert!(own(&a) <= LIMIT, "{} own pages", own(&a));
        assert!(is_filled(&a, 0..1000));
    });
}

/// Stores to all pages once the content of a cut is fixed.
struct Late<'a>(&'a Object);

const STORED: usize = 300;

impl Bystanders for Late<'_> {
    fn before_copy(&mut self, _: u32, _: usize) -> Beside {
        Beside::Copy
    }

    fn go_on(&mut self) {
        for page in 0..STORED {
            // SAFETY: a byte of the object, which no other code uses now.
            unsafe { self.0.as_ptr().cast_mut().add(page * PAGE + 5).write_volatile(0xee) };
        }
    }
}

fn stores_after_the_content_is_fixed_stay() {
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        fill(&mut a, 0..200);
        a.psync_cut().unwrap();
        fill(&mut a, 200..STORED);
        a.psync_cut_beside(&mut Late(&a)).unwrap();
        let late = |a: &Object| (0..STORED).filter(|page| a.as_slice()[page * PAGE + 5] == 0xee).count();
        assert_eq!(late(&a), STORED, "stores are in memory, marked or not");
        // Borrowing marks the bytes, where that is needed.
        (0..STORED).for_each(|page| a.range_mut(page * PAGE + 5..page * PAGE + 6).fill(0xee));
        a.psync().unwrap();
        assert_eq!(late(&a), STORED);
        a.detach().unwrap();
        assert_eq!(late(&pool.attach("a").unwrap()), STORED);
    });
}

#[test]
fn stores_between_a_cut_and_the_end_of_its_call_are_not_dropped() {
    stores_after_the_content_is_fixed_stay();
}

#[derive(Plain)]
#[repr(C)]
struct Counters {
    pages: [[AtomicU64; PAGE / 8]; PAGES],
}

fn threads_store_beside_cuts() {
    const EACH: u64 = 20_000;
    everywhere(|world| {
        let pool = limited(world);
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        let counters = a.share::<Counters>().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|thread| {
                let counters = &counters;
                scope.spawn(move || {
                    let mut rng = Seeded::new(0x5eed + thread as u64);
                    for _ in 0..EACH {
                        counters.pages[rng.usize(..PAGES)][thread].fetch_add(1, Ordering::Relaxed);
                    }
                })
            });
            let ended = &done;
            scope.spawn(move || {
                threads.into_iter().for_each(|thread| thread.join().unwrap());
                ended.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                counters.psync_cut().unwrap();
            }
        });
        // Pages that differed are tried again after so many others.
        for page in 0..3 * LIMIT / 16 {
            counters.pages[page][2].fetch_add(1, Ordering::Relaxed);
            counters.psync_cut().unwrap();
        }
        assert!(own(&a) <= LIMIT, "{} own pages", own(&a));
        let counted = |a: &Object| {
            [0, 1].map(|thread| {
                let counter = |page: usize| a.as_slice()[page * PAGE + thread * 8..][..8].try_into().unwrap();
                (0..PAGES).map(|page| u64::from_le_bytes(counter(page))).sum::<u64>()
            })
        };
        assert_eq!(counted(&a), [EACH; 2], "stores were lost in memory");
        a.detach().unwrap();
        assert_eq!(counted(&pool.attach("a").unwrap()), [EACH; 2], "stores were lost");
    });
}

#[test]
fn threads_that_store_beside_cuts_lose_nothing() {
    threads_store_beside_cuts();
}

/// In a thread whose system calls of this kind fail.
fn failing<T: Send>(call: libc::c_long, work: impl FnOnce() -> T + Send) -> Option<T> {
    let run = || {
        let step = |code: u32, jump: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump, jf: 0, k };
        let back = libc::BPF_RET | libc::BPF_K;
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
            step(back, 0, libc::SECCOMP_RET_ALLOW),
            step(back, 0, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
        ];
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: a filter of as many steps as it says; it binds this thread alone, which ends with
        // the work.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        };
        installed.then(work)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn a_failed_psync_or_application_drops_nothing() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "own_pages::failed_psyncs_and_applications", "--nocapture", "--ignored"])
        .output()
        .unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    eprint!("{said}");
}

/// `pwritev2` makes a psync durable, `pwrite64` applies its lines to their places, `madvise` drops
/// pages. Drops of another test's pages would apply the lines first (`fault/removal.rs`).
#[test]
#[ignore = "run by the other test as a process of its own"]
fn failed_psyncs_and_applications() {
    for tracking in [Tracking::Auto, Tracking::Mprotect, Tracking::Explicit] {
        for call in [libc::SYS_pwritev2, libc::SYS_pwrite64, libc::SYS_madvise] {
            let world = World::new(Ground::File, tracking, false);
            let pool = limited(&world);
            let mut a = pool.create_attached("a", SIZE as u64).unwrap();
            fill(&mut a, 0..PAGES);
            a.psync().unwrap();
            let before = own(&a);
            assert!(before <= LIMIT);
            for page in 0..2 * LIMIT {
                a.range_mut(page * PAGE..page * PAGE + 8).fill(7);
            }
            let changed = |a: &[u8]| {
                let right = |page: usize| if page < 2 * LIMIT { 7 } else { byte(page) };
                (0..PAGES).all(|page| a[page * PAGE] == right(page) && a[page * PAGE + 8] == byte(page))
            };
            let Some(done) = failing(call, || a.psync()) else {
                return indelible_testing::not_tested("failing psyncs: seccomp is not allowed here");
            };
            assert_eq!(done.is_ok(), call == libc::SYS_madvise, "{tracking:?}, {call}: {done:?}");
            assert!(changed(a.as_slice()), "{tracking:?}, {call}: in memory");
            if done.is_err() {
                assert!(own(&a) >= 2 * LIMIT, "{tracking:?}, {call}: {} own pages", own(&a));
                fill(&mut a, 600..700);
                assert_eq!(a.psync().unwrap_err().kind(), ErrorKind::Poisoned, "{tracking:?}, {call}");
                assert!(changed(a.as_slice()) && own(&a) >= 2 * LIMIT);
                let _ = a.detach();
            } else {
                assert!(own(&a) >= 2 * LIMIT, "{tracking:?}: {} own pages", own(&a));
                fill(&mut a, 600..700);
                a.psync().unwrap();
                assert!(own(&a) <= LIMIT, "{tracking:?}: {} own pages", own(&a));
                a.detach().unwrap();
            }
            drop(pool);
            let a = world.open();
            let a = a.attach("a").unwrap();
            let first = a.as_slice()[10 * PAGE];
            assert!(first == 7 || (done.is_err() && first == byte(10)), "{tracking:?}, {call}: {first}");
            assert!((10..2 * LIMIT).all(|page| {
                let bytes = &a.as_slice()[page * PAGE..][..9];
                bytes[0] == if first == 7 { 7 } else { byte(page) } && bytes[8] == byte(page)
            }));
        }
    }
}

#[test]
fn pages_that_a_device_may_have_pinned_stay() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = limited(&world);
    let mut a = pool.create_attached("a", SIZE as u64).unwrap();
    a.mark_dirty(0..PAGE);
    fill(&mut a, 0..PAGES);
    a.psync().unwrap();
    assert!(own(&a) >= PAGES, "{}", own(&a));
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn pages_that_are_dropped_with_later_stores_are_noticed() {
        type Test = fn();
        let tests: [(Mutant, Test); 3] = [
            (Mutant::UnsyncedDropped, super::stores_after_the_content_is_fixed_stay),
            (Mutant::UnsyncedDropped, super::threads_store_beside_cuts),
            (Mutant::EvictedOutsideGate, super::threads_store_beside_cuts),
        ];
        for (mutant, test) in tests {
            let noticed = || with_mutant(mutant, || catch_unwind(AssertUnwindSafe(test))).is_err();
            // Threads meet the moment by chance.
            assert!((0..50).any(|_| noticed()), "{mutant:?} is unnoticed");
        }
    }
}
