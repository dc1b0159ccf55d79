//! Cuts at the cost of what changed: one moment, nothing lost, nobody held up but by dirty pages.

#![allow(unsafe_code)]

use super::tests::{Rig, window};
use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Over many page tables, so that most pages are absent, and some of those chunks become known.
const PAGES: usize = 12_000;

/// Copies as long as it takes.
struct Patient;

impl Bystanders for Patient {
    fn before_copy(&mut self, _: u32, _: usize) -> Beside {
        std::thread::yield_now();
        Beside::Copy
    }
}

fn possible() -> bool {
    let possible = Rung::WpAsync.available();
    if !possible {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
    }
    possible
}

/// The page that store `n` goes to: often one of a few, else anywhere.
fn place(n: u64) -> usize {
    let hash = (n.wrapping_mul(6_364_136_223_846_793_005) >> 33) as usize;
    if hash % 4 == 0 { hash / 4 % PAGES } else { hash / 4 % 600 }
}

/// A thread stores 1, 2, 3, … each to a page of its own choice. Whatever a cut has, it is what was there after one of these stores.
#[test]
fn a_cut_shows_one_moment_and_loses_nothing() {
    if !possible() {
        return;
    }
    for (number, what) in ["copied", "frozen"].into_iter().enumerate() {
        let mut rig = Rig::new(window(60 + number), PAGES, Rung::WpAsync);
        let base = rig.at(0).expose_provenance();
        let (stop, stored) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut primary, mut model, mut modelled) = (vec![0; PAGES], vec![0; PAGES], 0);
        let mut copies = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = stored.load(Ordering::Relaxed) + 1;
                    let at = std::ptr::with_exposed_provenance_mut(base + place(n) * PAGE);
                    // SAFETY: a page of the mapping, which outlives this scope; atomic.
                    unsafe { AtomicU64::from_ptr(at) }.store(n, Ordering::SeqCst);
                    stored.store(n, Ordering::Relaxed);
                    if n % 16 == 0 {
                        // So that looks find a quiet moment now and then.
                        std::thread::yield_now();
                    }
                }
            });
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for round in 0..150 {
                    let before = stored.load(Ordering::Relaxed);
                    let cut = if what == "copied" { Cut::Copied(&mut Patient) } else { Cut::Frozen };
                    rig.tracker.hold(false, cut).unwrap();
                    let dirty = rig.collect();
                    for page in &dirty {
                        let copied = rig.tracker.copy_of(*page as u64);
                        copies += usize::from(copied.is_some());
                        // SAFETY: the first word of a page's copy.
                        primary[*page] = copied
                            .map_or_else(|| rig.load(*page), |copy| unsafe { copy.cast::<u64>().read() });
                    }
                    // One psync in five fails, and leaves all to the next.
                    if round % 5 != 4 {
                        rig.settle(&dirty, &dirty.clone());
                    }
                    rig.tracker.release().unwrap();
                    let last = primary.iter().copied().max().unwrap();
                    assert!(last >= before, "{what}, round {round}: {last} is before {before}");
                    while modelled < last {
                        modelled += 1;
                        model[place(modelled)] = modelled;
                    }
                    let wrong = (0..PAGES).find(|page| primary[*page] != model[*page]);
                    assert_eq!(wrong, None, "{what}, round {round}: not the state after store {last}");
                }
            }));
            stop.store(true, Ordering::Relaxed);
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
        assert_eq!(copies > 0, what == "copied");
        for page in rig.collect() {
            primary[page] = rig.load(page);
        }
        let lost = (0..PAGES).find(|page| primary[*page] != rig.load(*page));
        assert_eq!(lost, None, "{what}: a store was lost");
    }
}

/// While dirty pages are frozen, stores to others go on, and are the next psync's; a store to a dirty page waits.
#[test]
fn only_stores_to_dirty_pages_wait() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(62), 3000, Rung::WpAsync);
    rig.store(7, 1);
    rig.tracker.hold(false, Cut::Frozen).unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([7]));
    let (seven, stored) = (rig.at(7).expose_provenance(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let pages: Vec<_> = [8, 2500].map(|page| rig.at(page).expose_provenance()).to_vec();
        // SAFETY: pages of the mapping, which outlives this scope; atomic.
        let store = |at| {
            unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }
                .store(2, Ordering::SeqCst)
        };
        scope.spawn(move || pages.into_iter().for_each(store)).join().unwrap();
        let stored = &stored;
        scope.spawn(move || {
            store(seven);
            stored.store(true, Ordering::SeqCst);
        });
        assert_eq!(rig.collect(), BTreeSet::from([7]), "the cut was before that");
        rig.settle(&BTreeSet::from([7]), &BTreeSet::from([7]));
        assert!(!stored.load(Ordering::SeqCst) && rig.load(7) == 1);
        rig.tracker.release().unwrap();
    });
    assert_eq!(rig.load(7), 2);
    assert_eq!(rig.collect(), BTreeSet::from([7, 8, 2500]));
}

/// Keeps a thread away while pages are copied.
struct Locking<'a> {
    lock: &'a Mutex<()>,
    locked: Option<MutexGuard<'a, ()>>,
    again: u32,
}

impl Bystanders for Locking<'_> {
    fn before_copy(&mut self, round: u32, _: usize) -> Beside {
        if round > 0 {
            self.again += 1;
            self.locked.get_or_insert_with(|| self.lock.lock().unwrap());
        }
        Beside::Copy
    }
}

/// A thread has the kernel store into the object all the time: no such call fails beside a cut by copies.
#[test]
fn system_calls_go_on_beside_a_cut_by_copies() {
    use std::io::Read;
    if !possible() {
        return;
    }
    const RUN: usize = 300;
    let mut rig = Rig::new(window(63), 4 * RUN, Rung::WpAsync);
    let base = rig.at(0).expose_provenance();
    let (stop, lock, mut again) = (AtomicBool::new(false), Mutex::new(()), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut source = std::fs::File::open("/dev/zero").unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _locked = lock.lock().unwrap();
                let at = std::ptr::with_exposed_provenance_mut(base + RUN * PAGE);
                // SAFETY: bytes of the mapping that only this thread uses by reference, which outlives this scope.
                let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(at, RUN * PAGE) };
                let read = source.read(bytes);
                if !matches!(read, Ok(read) if read == bytes.len()) {
                    stop.store(true, Ordering::Relaxed);
                }
                assert!(matches!(read, Ok(read) if read == bytes.len()), "{read:?}");
            }
        });
        for value in 1..=200 {
            rig.store(3, value);
            let mut others = Locking { lock: &lock, locked: None, again: 0 };
            rig.tracker.hold(false, Cut::Copied(&mut others)).unwrap();
            let dirty = rig.collect();
            assert!(
                dirty.contains(&3) && dirty.iter().all(|page| rig.tracker.copy_of(*page as u64).is_some())
            );
            rig.settle(&dirty, &dirty.clone());
            rig.tracker.release().unwrap();
            again += others.again;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(again > 0, "the thread never stored during a cut");
}

/// Gives up as soon as it is asked again.
struct Impatient;

impl Bystanders for Impatient {
    fn before_copy(&mut self, round: u32, _: usize) -> Beside {
        assert_eq!(round, 0);
        Beside::GiveUp
    }
}

#[test]
fn a_cut_that_gives_up_loses_nothing() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(64), 3000, Rung::WpAsync);
    rig.store(9, 1);
    let refused = rig.tracker.hold(false, Cut::Copied(&mut Impatient)).unwrap_err();
    assert!(matches!(refused, DirtyError::Restless), "{refused:?}");
    assert!(!rig.tracker.is_held() && rig.tracker.copy_of(9).is_none());
    rig.store(2000, 1);
    assert_eq!(rig.collect(), BTreeSet::from([9, 2000]));
}

/// A marked page may not be found by a look: nobody can tell when it was stored to, so that all stores wait.
#[test]
fn all_stores_wait_where_pages_are_marked() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(65), 3000, Rung::WpAsync);
    rig.store(1, 1);
    rig.tracker.marks().mark([5 * PAGE..6 * PAGE]);
    rig.tracker.hold(false, Cut::Copied(&mut Patient)).unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([1, 5]));
    assert!(rig.tracker.copy_of(1).is_none());
    let (five, stored) = (rig.at(5).expose_provenance(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: a page of the mapping, which outlives this scope; atomic.
            unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(five)) }
                .store(3, Ordering::SeqCst);
            stored.store(true, Ordering::SeqCst);
        });
        rig.settle(&BTreeSet::from([1, 5]), &BTreeSet::from([1]));
        assert!(!stored.load(Ordering::SeqCst));
        // Marked during the cut: the next psync's.
        rig.tracker.release().unwrap();
    });
    rig.tracker.hold(false, Cut::Copied(&mut Patient)).unwrap();
    rig.tracker.marks().mark([8 * PAGE..9 * PAGE]);
    let dirty = rig.collect();
    assert!(dirty.contains(&5) && !dirty.contains(&8), "{dirty:?}");
    rig.settle(&dirty, &dirty.clone());
    rig.tracker.release().unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([8]));
}
