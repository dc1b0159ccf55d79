#![allow(unsafe_code)]

use super::tests::{Rig, window};
use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

const PAGES: usize = 12_000;

struct Patient;

impl Bystanders for Patient {
    fn before_copy(&mut self, _: u32, _: usize) -> Beside {
        std::thread::yield_now();
        Beside::Copy
    }
}

struct Stores {
    base: usize,
    last: Mutex<u64>,
    allowed: AtomicU64,
}

impl Stores {
    fn next(&self) -> bool {
        let mut last = self.last.lock().unwrap();
        if *last >= self.allowed.load(Ordering::SeqCst) {
            return false;
        }
        *last += 1;
        let at = std::ptr::with_exposed_provenance_mut(self.base + place(*last) * PAGE);
        // SAFETY: a page of the mapping, which outlives the threads; atomic.
        unsafe { AtomicU64::from_ptr(at) }.store(*last, Ordering::SeqCst);
        true
    }

    fn last(&self) -> u64 {
        *self.last.lock().unwrap()
    }

    fn reach(&self, store: u64) {
        while self.last() < store {
            std::thread::yield_now();
        }
    }
}

impl Bystanders for &Stores {
    fn before_copy(&mut self, round: u32, _: usize) -> Beside {
        if round < 2 {
            (0..20).for_each(|_| {
                self.next();
            });
        }
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

fn place(n: u64) -> usize {
    let hash = (n.wrapping_mul(6_364_136_223_846_793_005) >> 33) as usize;
    if hash.is_multiple_of(4) { hash / 4 % PAGES } else { hash / 4 % 600 }
}

#[test]
fn a_cut_shows_one_moment_and_loses_nothing() {
    if !possible() {
        return;
    }
    for (number, copied) in [true, false].into_iter().enumerate() {
        let mut rig = Rig::new(window(60 + number), PAGES, Rung::WpAsync);
        let stores =
            Stores { base: rig.at(0).expose_provenance(), last: Mutex::new(0), allowed: AtomicU64::new(0) };
        let stop = AtomicBool::new(false);
        let (mut primary, mut model, mut modelled, mut copies) = (vec![0; PAGES], vec![0; PAGES], 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if !stores.next() {
                        std::thread::yield_now();
                    }
                }
            });
            let _stop = Stop(&stop);
            for round in 0..300 {
                let about = format!("copied: {copied}, round {round}");
                let before = stores.last();
                stores.allowed.store(before + 20, Ordering::SeqCst);
                stores.reach(before + 20);
                // Copies need a moment without stores in the end.
                stores.allowed.store(if copied { before + 3000 } else { u64::MAX }, Ordering::SeqCst);
                stores.reach(before + 25);
                let cut = if copied { Cut::Copied(&mut &stores) } else { Cut::Frozen };
                rig.tracker.hold(false, cut).unwrap();
                let dirty = rig.collect();
                for page in &dirty {
                    let copy = rig.tracker.copy_of(*page as u64);
                    copies += usize::from(copy.is_some());
                    // SAFETY: the first word of a page's copy.
                    primary[*page] =
                        copy.map_or_else(|| rig.load(*page), |copy| unsafe { copy.cast::<u64>().read() });
                }
                if round % 5 != 4 {
                    rig.settle(&dirty, &dirty.clone());
                }
                stores.allowed.store(0, Ordering::SeqCst);
                rig.tracker.release().unwrap();
                let last = primary.iter().copied().max().unwrap();
                assert!(last >= before + 20, "{about}: {last} is before {before}");
                while modelled < last {
                    modelled += 1;
                    model[place(modelled)] = modelled;
                }
                let wrong = (0..PAGES).find(|page| primary[*page] != model[*page]);
                assert_eq!(wrong, None, "{about}: not the state after store {last}");
            }
        });
        assert_eq!(copies > 0, copied);
        for page in rig.collect() {
            primary[page] = rig.load(page);
        }
        let lost = (0..PAGES).find(|page| primary[*page] != rig.load(*page));
        assert_eq!(lost, None, "copied: {copied}: a store was lost");
    }
}

#[test]
fn a_store_after_the_moment_is_the_next_psyncs() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(66), PAGES, Rung::WpAsync);
    let mut expected = BTreeSet::new();
    for round in 0..60 {
        let (hot, late) = (700 + round / 20 * 2000, 800 + round / 20 * 2000 + round);
        rig.store(hot, 2 * round as u64 + 1);
        expected.insert(hot);
        rig.tracker.hold(false, Cut::Copied(&mut Patient)).unwrap();
        let dirty = rig.collect();
        assert!(dirty.is_superset(&expected), "round {round}: {dirty:?}");
        rig.store(late, 1);
        rig.store(hot, 2 * round as u64 + 2);
        // SAFETY: the first word of a page's copy.
        let copy = unsafe { rig.tracker.copy_of(hot as u64).unwrap().cast::<u64>().read() };
        assert_eq!(copy, 2 * round as u64 + 1);
        rig.settle(&dirty, &expected);
        rig.tracker.release().unwrap();
        expected = BTreeSet::from([hot, late]);
    }
    assert!(rig.collect().is_superset(&expected));
}

struct Waiting {
    at: usize,
    begun: AtomicBool,
    done: AtomicBool,
}

impl Waiting {
    fn new(rig: &Rig, page: usize) -> Waiting {
        Waiting {
            at: rig.at(page).expose_provenance(),
            begun: AtomicBool::new(false),
            done: AtomicBool::new(false),
        }
    }

    fn store(&self) {
        self.begun.store(true, Ordering::SeqCst);
        // SAFETY: a page of the mapping, which outlives the thread; atomic.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.at)) }
            .store(2, Ordering::SeqCst);
        self.done.store(true, Ordering::SeqCst);
    }

    fn is_held_up(&self) -> bool {
        while !self.begun.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        (0..3000).for_each(|_| std::thread::yield_now());
        !self.done.load(Ordering::SeqCst)
    }
}

#[test]
fn only_stores_to_dirty_pages_wait() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(62), 3000, Rung::WpAsync);
    rig.store(7, 1);
    rig.tracker.hold(false, Cut::Frozen).unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([7]));
    let (dirty, others) = (Waiting::new(&rig, 7), [8, 2500].map(|page| Waiting::new(&rig, page)));
    std::thread::scope(|scope| {
        scope.spawn(|| others.iter().for_each(Waiting::store)).join().unwrap();
        scope.spawn(|| dirty.store());
        assert_eq!(rig.collect(), BTreeSet::from([7]), "the cut was before that");
        rig.settle(&BTreeSet::from([7]), &BTreeSet::from([7]));
        let held_up = dirty.is_held_up();
        rig.tracker.release().unwrap();
        assert!(held_up);
    });
    assert_eq!(rig.load(7), 2);
    assert_eq!(rig.collect(), BTreeSet::from([7, 8, 2500]));
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Locking<'a> {
    lock: &'a Mutex<()>,
    locked: Option<MutexGuard<'a, ()>>,
    calls: &'a AtomicU64,
}

impl Bystanders for Locking<'_> {
    fn before_copy(&mut self, round: u32, _: usize) -> Beside {
        if round > 0 {
            self.locked.get_or_insert_with(|| self.lock.lock().unwrap());
            return Beside::Copy;
        }
        // A call that began after the look has ended: the next look finds its stores.
        let before = self.calls.load(Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) < before + 2 {
            std::thread::yield_now();
        }
        Beside::Copy
    }
}

#[test]
fn system_calls_go_on_beside_a_cut_by_copies() {
    use std::io::Read;
    if !possible() {
        return;
    }
    const RUN: usize = 300;
    let mut rig = Rig::new(window(63), 4 * RUN, Rung::WpAsync);
    let base = rig.at(0).expose_provenance();
    let (stop, lock, calls) = (AtomicBool::new(false), Mutex::new(()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut source = std::fs::File::open("/dev/zero").unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _locked = lock.lock().unwrap();
                let at = std::ptr::with_exposed_provenance_mut(base + RUN * PAGE);
                // SAFETY: bytes of the mapping that only this thread uses by reference, which
                // outlives this scope.
                let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(at, RUN * PAGE) };
                let read = source.read(bytes);
                calls.fetch_add(1, Ordering::SeqCst);
                if !matches!(read, Ok(read) if read == bytes.len()) {
                    stop.store(true, Ordering::Relaxed);
                }
                assert!(matches!(read, Ok(read) if read == bytes.len()), "{read:?}");
            }
        });
        let _stop = Stop(&stop);
        for value in 1..=200 {
            rig.store(3, value);
            let mut others = Locking { lock: &lock, locked: None, calls: &calls };
            rig.tracker.hold(false, Cut::Copied(&mut others)).unwrap();
            let dirty = rig.collect();
            assert!(
                dirty.contains(&3) && dirty.iter().all(|page| rig.tracker.copy_of(*page as u64).is_some())
            );
            rig.settle(&dirty, &dirty.clone());
            rig.tracker.release().unwrap();
            assert!(others.locked.is_some(), "the thread did not store during the cut");
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    });
}

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

#[test]
fn all_stores_wait_where_pages_are_marked() {
    if !possible() {
        return;
    }
    let mut rig = Rig::new(window(65), 3000, Rung::WpAsync);
    rig.store(1, 1);
    rig.tracker.marks().mark(std::iter::once(5 * PAGE..6 * PAGE));
    rig.tracker.hold(false, Cut::Copied(&mut Patient)).unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([1, 5]));
    assert!(rig.tracker.copy_of(1).is_none());
    let five = Waiting::new(&rig, 5);
    std::thread::scope(|scope| {
        scope.spawn(|| five.store());
        rig.settle(&BTreeSet::from([1, 5]), &BTreeSet::from([1]));
        let held_up = five.is_held_up();
        rig.tracker.release().unwrap();
        assert!(held_up);
    });
    // Marked during the cut: the next psync's.
    rig.tracker.hold(false, Cut::Copied(&mut Patient)).unwrap();
    rig.tracker.marks().mark(std::iter::once(8 * PAGE..9 * PAGE));
    let dirty = rig.collect();
    assert!(dirty.contains(&5) && !dirty.contains(&8), "{dirty:?}");
    rig.settle(&dirty, &dirty.clone());
    rig.tracker.release().unwrap();
    assert_eq!(rig.collect(), BTreeSet::from([8]));
}
