#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::explicit::Explicit;
use super::mprotect::Mprotect;
use super::policy::{Adaptive, FaultPolicy, Policy, ScanPolicy, SecondChance};
use super::wp_async::WpAsync;
use super::*;
use crate::mapping::Mapping;
use crate::sys::mmap::Protection;

pub(crate) fn window(n: usize) -> usize {
    0x5200_0000_0000 + (n << 37)
}

pub(crate) fn rungs() -> Vec<Rung> {
    let (here, absent): (Vec<_>, Vec<_>) = Rung::ALL.into_iter().partition(|rung| rung.available());
    for rung in absent {
        indelible_testing::not_tested(format_args!("rung {rung}"));
    }
    here
}

pub(super) struct Rig {
    pub(super) tracker: Tracker,
    mapping: Mapping,
    out: Vec<PageRange>,
}

impl Rig {
    pub(super) fn new(addr: usize, pages: usize, rung: Rung) -> Rig {
        Rig::advised(addr, pages, rung, Advice::Measured)
    }

    pub(super) fn advised(addr: usize, pages: usize, rung: Rung, advice: Advice) -> Rig {
        Rig::with(
            addr,
            pages,
            rung,
            TrackerParams {
                base: addr,
                len: pages * PAGE,
                rung,
                watched_by: WatchedBy::Tracker(None),
                filled: false,
                advice,
            },
        )
    }

    fn with(addr: usize, pages: usize, rung: Rung, params: TrackerParams) -> Rig {
        let file = tempfile::tempfile().unwrap();
        file.set_len((pages * PAGE) as u64).unwrap();
        let protection = if rung.starts_read_only() { Protection::Read } else { Protection::ReadWrite };
        let mapping = Mapping::file(addr, pages * PAGE, file.as_fd(), 0, protection).unwrap();
        Rig { tracker: Tracker::new(params).unwrap(), mapping, out: Vec::new() }
    }

    pub(super) fn at(&self, page: usize) -> *mut u64 {
        self.mapping.base().as_ptr().wrapping_add(page * PAGE).cast()
    }

    fn stored(&self, page: usize) {
        if self.tracker.rung() == Rung::Explicit {
            self.tracker.marks().mark(std::iter::once(page * PAGE..(page + 1) * PAGE));
        }
    }

    pub(super) fn store(&self, page: usize, value: u64) {
        self.stored(page);
        // SAFETY: a page of the mapping, which only this test's threads know.
        unsafe { self.at(page).write_volatile(value) };
    }

    pub(super) fn load(&self, page: usize) -> u64 {
        // SAFETY: as above.
        unsafe { self.at(page).read_volatile() }
    }

    pub(super) fn renew(&mut self) {
        // SAFETY: no other thread stores, and the tests do not rely on the stored bytes.
        unsafe { self.mapping.renew(0) }.unwrap();
        self.tracker.renewed().unwrap();
    }

    fn protects(&mut self) -> bool {
        self.scanner().is_some_and(|rung| rung.policy().protects_at_scan())
    }

    fn scanner(&mut self) -> Option<&mut WpAsync<Adaptive>> {
        self.tracker.backend.as_any().downcast_mut()
    }

    pub(super) fn collect(&mut self) -> BTreeSet<usize> {
        self.out.clear();
        self.tracker.collect(&mut self.out).unwrap();
        for pair in self.out.windows(2) {
            assert!(pair[0].end() <= pair[1].start, "unordered: {pair:?}");
        }
        self.out.iter().flat_map(|run| run.start as usize..run.end() as usize).collect()
    }

    pub(super) fn settle(&mut self, dirty: &BTreeSet<usize>, changed: &BTreeSet<usize>) {
        let runs = |pages: Vec<usize>| pages.iter().map(|p| PageRange::new(*p, p + 1)).collect::<Vec<_>>();
        let yes = runs(dirty.intersection(changed).copied().collect());
        let no = runs(dirty.difference(changed).copied().collect());
        self.tracker.settle(&yes, &no).unwrap();
    }
}

pub(super) fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn no_stored_page_is_ever_missed() {
    for (rung, advised) in rungs().into_iter().flat_map(|rung| [(rung, false), (rung, true)]) {
        for (seed, pages, skew) in [(1, 5, 0), (2, 300, 3), (3, 3000, 511), (4, 40_000, 7), (5, 200_000, 0)] {
            if advised && pages > 3000 {
                continue;
            }
            eprintln!("{rung}, seed {seed}, {pages} pages, random advice: {advised}");
            let mut random_state = seed;
            let mut below = |n: usize| random(&mut random_state) as usize % n;
            let advice = if advised { Advice::Random(seed) } else { Advice::Measured };
            let mut rig = Rig::advised(window(0) + skew * PAGE, pages, rung, advice);
            let mut model = BTreeSet::new();
            let mut value = 0;
            for round in 0..200 {
                let anywhere = round / 8 % 2;
                for _ in 0..below(30) {
                    let page = if below(2) >= anywhere { below(pages) } else { below(pages.min(8)) };
                    if below(4) == 0 {
                        rig.load(page);
                        continue;
                    }
                    value += 1;
                    rig.store(page, value);
                    model.insert(page);
                }
                let held = below(5) == 0;
                if held {
                    rig.tracker.hold(false, Cut::Closed).unwrap();
                }
                let dirty = rig.collect();
                assert!(dirty.is_superset(&model), "round {round}: missed {:?}", model.difference(&dirty));
                let settles = below(4) != 0;
                if settles {
                    rig.settle(&dirty, &model);
                    model.clear();
                }
                if held {
                    rig.tracker.release().unwrap();
                }
                if settles && rung == Rung::WpAsync && below(10) == 0 {
                    rig.renew();
                }
            }
            // Random advice may leave a page writable for ever.
            if advised {
                continue;
            }
            for _ in 0..17 {
                let dirty = rig.collect();
                rig.settle(&dirty, &BTreeSet::new());
            }
            assert_eq!(rig.collect(), BTreeSet::new(), "something stays dirty for ever");
        }
    }
}

#[test]
fn a_page_that_was_only_read_is_not_dirty() {
    for rung in rungs() {
        let mut rig = Rig::new(window(1), 2000, rung);
        for page in (0..2000).step_by(3) {
            assert_eq!(rig.load(page), 0);
        }
        rig.store(1000, 7);
        assert_eq!(rig.collect(), BTreeSet::from([1000]), "{rung}");
    }
}

#[test]
fn a_page_dirty_time_after_time_costs_no_fault() {
    for rung in [Rung::WpAsync, Rung::Mprotect] {
        if !rung.available() {
            indelible_testing::not_tested(format_args!("rung {rung}"));
            continue;
        }
        let mut rig = Rig::new(window(2), 64, rung);
        let hot = BTreeSet::from([3]);
        for value in 1..4 {
            rig.store(3, value);
            let dirty = rig.collect();
            assert_eq!(dirty, hot);
            rig.settle(&dirty, &hot);
        }
        let none = BTreeSet::new();
        let (mut idle, bounds) = (0, if rung == Rung::Mprotect { 2..=2 } else { 9..=17 });
        while rig.collect() == hot {
            rig.settle(&hot, &none);
            idle += 1;
        }
        assert_eq!(rig.collect(), none, "{rung}");
        assert!(bounds.contains(&idle), "{rung}, idle for {idle}");
        rig.store(3, 9);
        assert_eq!(rig.collect(), hot, "{rung}");
    }
}

#[test]
fn an_unsettled_collect_is_repeated() {
    for rung in rungs() {
        let mut rig = Rig::new(window(3), 2000, rung);
        rig.store(1, 1);
        rig.store(1999, 1);
        let first = rig.collect();
        rig.store(700, 1);
        let second = rig.collect();
        assert!(second.is_superset(&first) && second.contains(&700), "{rung}: {first:?} {second:?}");
        rig.settle(&second, &second.clone());
    }
}

#[test]
fn growth_is_tracked_from_its_first_store() {
    for rung in rungs() {
        let addr = window(4);
        let mut rig = Rig::new(addr, 3, rung);
        rig.store(1, 1);
        let dirty = rig.collect();
        rig.settle(&dirty, &dirty.clone());
        let mut model = BTreeSet::new();
        for pages in [4, 5, 9, 700, 1025] {
            let old = rig.mapping.len() / PAGE;
            let protection = if rung.starts_read_only() { Protection::Read } else { Protection::ReadWrite };
            let more = Mapping::anonymous(addr + old * PAGE, (pages - old) * PAGE, protection).unwrap();
            std::mem::forget(more);
            rig.mapping.adopt(pages * PAGE);
            rig.tracker.grow(pages * PAGE).unwrap();
            for page in [old, pages - 1, (old + pages) / 2] {
                rig.store(page, 1);
                model.insert(page);
            }
            let dirty = rig.collect();
            assert!(dirty.is_superset(&model), "{rung}: {:?}", model.difference(&dirty));
            let untouched = (old..pages).filter(|page| !model.contains(page));
            assert!(!untouched.into_iter().any(|page| dirty.contains(&page)), "{rung}: {dirty:?}");
            rig.settle(&dirty, &model);
            model.clear();
        }
    }
}

#[test]
fn a_cut_never_tears() {
    for rung in rungs() {
        let mut rig = Rig::new(window(5), 600, rung);
        rig.store(10, 0);
        rig.store(590, 0);
        let (a, b) = (rig.at(10).expose_provenance(), rig.at(590).expose_provenance());
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stop = AtomicBool::new(false);
        let stored = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    value += 1;
                    // SAFETY: pages of the mapping, which outlives this scope; volatile.
                    unsafe {
                        std::ptr::with_exposed_provenance_mut::<u64>(a).write_volatile(value);
                        std::ptr::with_exposed_provenance_mut::<u64>(b).write_volatile(value);
                    }
                    stored.store(value, Ordering::Relaxed);
                }
            });
            let _stop = Stop(&stop);
            for round in 0..200 {
                let before = stored.load(Ordering::Relaxed);
                rig.stored(10);
                rig.stored(590);
                rig.tracker.hold(false, Cut::Closed).unwrap();
                let first = (rig.load(10), rig.load(590));
                let dirty = rig.collect();
                assert!(round > 0 && rung != Rung::Explicit || dirty.contains(&10) || before == 0, "{rung}");
                rig.settle(&dirty, &dirty.clone());
                let second = (rig.load(10), rig.load(590));
                rig.tracker.release().unwrap();
                assert_eq!(first, second, "{rung}: a store landed during the hold");
                assert!(first.0 == first.1 || first.0 == first.1 + 1, "{rung}: {first:?}");
                while stored.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
            }
        });
    }
}

#[test]
fn a_scan_that_protects_reports_once_and_forgets_nothing() {
    if !Rung::WpAsync.available() {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
        return;
    }
    let pages = 4096;
    let mut rig = Rig::new(window(10), pages, Rung::WpAsync);
    let fresh = |round: usize| -> BTreeSet<usize> { (0..40).map(|n| n * 36 + round).collect() };
    for round in 0..30 {
        let model = fresh(round);
        model.iter().for_each(|page| rig.store(*page, round as u64 + 1));
        assert_eq!(rig.protects(), round > 1);
        let dirty = rig.collect();
        assert!(dirty.is_superset(&model), "round {round}");
        assert!(round < 2 || dirty == model, "round {round}: {dirty:?}");
        if round % 5 == 4 {
            rig.store(4000, round as u64);
            let again = rig.collect();
            assert!(again.is_superset(&dirty) && again.contains(&4000) && again.len() == 41, "{again:?}");
            rig.settle(&again, &again.clone());
        } else {
            rig.settle(&dirty, &dirty.clone());
        }
        assert_eq!(rig.collect(), BTreeSet::new(), "round {round}");
        rig.settle(&BTreeSet::new(), &BTreeSet::new());
    }
    let hot = BTreeSet::from([7, 9]);
    for value in 100..103 {
        hot.iter().for_each(|page| rig.store(*page, value));
        assert_eq!(rig.collect(), hot);
        rig.settle(&hot, &hot);
    }
    assert!(!rig.protects());
    assert_eq!(rig.collect(), hot, "left unprotected");
}

#[test]
fn a_store_before_the_settle_is_late_and_not_lost() {
    if !Rung::WpAsync.available() {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
        return;
    }
    let mut rig = Rig::new(window(13), 512, Rung::WpAsync);
    (300..310).for_each(|page| rig.store(page, 1));
    let dirty = rig.collect();
    rig.settle(&dirty, &dirty.clone());
    let (apart, between) = (BTreeSet::from([5, 40]), BTreeSet::from([20, 21, 39]));
    apart.iter().for_each(|page| rig.store(*page, 1));
    assert!(!rig.protects());
    assert_eq!(rig.collect(), apart);
    between.iter().for_each(|page| rig.store(*page, 1));
    rig.settle(&apart, &apart.clone());
    assert_eq!(rig.collect(), between);
    rig.settle(&between, &between);
    assert_eq!(rig.collect(), BTreeSet::new());
}

#[test]
fn a_cut_by_scans_that_protect_misses_no_racing_store() {
    for rung in [Rung::WpAsync, Rung::Mprotect] {
        if !rung.available() {
            indelible_testing::not_tested(format_args!("rung {rung}"));
            continue;
        }
        let pages = 3000;
        let mut rig = Rig::new(window(11), pages, rung);
        let addrs: Vec<usize> = (0..pages).map(|page| rig.at(page).expose_provenance()).collect();
        let mut primary = vec![0; pages];
        let stop = AtomicBool::new(false);
        let (stored, allowed) = (AtomicU64::new(0), AtomicU64::new(40));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut seed = 7;
                while !stop.load(Ordering::Relaxed) {
                    if stored.load(Ordering::Relaxed) >= allowed.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                        continue;
                    }
                    let addr = addrs[random(&mut seed) as usize % pages];
                    // SAFETY: a page of the mapping, which outlives this scope; atomic.
                    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(addr)) }
                        .fetch_add(1, Ordering::Relaxed);
                    stored.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut check = |rig: &mut Rig| {
                rig.tracker.hold(false, Cut::Closed).unwrap();
                let dirty = rig.collect();
                for (page, value) in primary.iter_mut().enumerate() {
                    if dirty.contains(&page) {
                        *value = rig.load(page);
                    }
                    assert_eq!(*value, rig.load(page), "{rung}: page {page} was missed");
                }
                rig.settle(&dirty, &dirty.clone());
                rig.tracker.release().unwrap();
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..60 {
                    let before = stored.load(Ordering::Relaxed);
                    allowed.store(before + 40, Ordering::Relaxed);
                    check(&mut rig);
                    while stored.load(Ordering::Relaxed) < before + 20 {
                        std::thread::yield_now();
                    }
                }
            }));
            stop.store(true, Ordering::Relaxed);
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

#[test]
fn a_stored_page_under_a_hold_is_collected_afterwards() {
    for rung in rungs() {
        let mut rig = Rig::new(window(6), 8, rung);
        for value in 1..50 {
            rig.tracker.hold(false, Cut::Closed).unwrap();
            let dirty = rig.collect();
            rig.settle(&dirty, &dirty.clone());
            rig.tracker.release().unwrap();
            rig.store(5, value);
            assert_eq!(rig.collect(), BTreeSet::from([5]), "{rung}");
        }
    }
}

#[test]
fn a_system_call_that_writes_into_the_range_dirties_it() {
    use std::io::Read;
    if !Rung::WpAsync.available() {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
        return;
    }
    let mut rig = Rig::new(window(7), 1000, Rung::WpAsync);
    let mut zeros = std::fs::File::open("/dev/urandom").unwrap();
    rig.load(600);
    rig.store(900, 1);
    for _ in 0..4 {
        let dirty = rig.collect();
        rig.settle(&dirty, &BTreeSet::new());
    }
    for page in [5, 600, 900] {
        // SAFETY: pages of the mapping, which only this test knows.
        let bytes = unsafe { std::slice::from_raw_parts_mut(rig.at(page).cast::<u8>(), PAGE) };
        zeros.read_exact(bytes).unwrap();
    }
    assert_eq!(rig.collect(), BTreeSet::from([5, 600, 900]));
    let dirty = rig.collect();
    rig.settle(&dirty, &dirty.clone());
    rig.renew();
    assert_eq!((rig.collect(), rig.load(900)), (BTreeSet::new(), 0));
    rig.store(5, 1);
    let dirty = rig.collect();
    rig.settle(&dirty, &dirty.clone());
    for page in [5, 6, 900] {
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts_mut(rig.at(page).cast::<u8>(), PAGE) };
        zeros.read_exact(bytes).unwrap();
    }
    assert_eq!(rig.collect(), BTreeSet::from([5, 6, 900]));
}

#[test]
fn chunks_of_few_pages_are_tracked_page_by_page() {
    if !Rung::WpAsync.available() {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
        return;
    }
    let pages = 64 << 9;
    let mut rig = Rig::new(window(12) + 77 * PAGE, pages, Rung::WpAsync);
    let known = |rig: &mut Rig| rig.scanner().unwrap().known();
    for chunk in 0..64 {
        let model = BTreeSet::from([chunk << 9, (chunk << 9) + 300]);
        model.iter().for_each(|page| rig.store(*page, 1));
        assert_eq!(rig.collect(), model);
        rig.settle(&model, &model);
    }
    assert_eq!((rig.collect(), known(&mut rig)), (BTreeSet::new(), 0));
    let hot = BTreeSet::from([5 << 9]);
    for value in 2..6 {
        rig.store(5 << 9, value);
        assert_eq!(rig.collect(), hot);
        rig.settle(&hot, &hot);
    }
    assert_eq!((rig.collect(), known(&mut rig)), (hot.clone(), 1), "left unprotected");
    let many: BTreeSet<usize> = (9 << 9..(9 << 9) + 50).collect();
    many.iter().for_each(|page| rig.store(*page, 3));
    let dirty = rig.collect();
    assert!(dirty.is_superset(&many));
    rig.settle(&dirty, &many);
    assert!(known(&mut rig) >= 2);
    rig.store((9 << 9) + 200, 3);
    assert!(rig.collect().contains(&((9 << 9) + 200)));
}

#[test]
fn few_mappings_only_make_the_clusters_larger() {
    let addr = window(8);
    let pages = 4096;
    let mut rig = Rig::new(addr, pages, Rung::Mprotect);
    rig.tracker.backend = Box::new(Explicit::new(addr, pages * PAGE));
    rig.tracker.backend = Box::new(Mprotect::with_budget(addr, pages, 4, SecondChance::default()).unwrap());
    let model: BTreeSet<_> = (0..pages).step_by(97).collect();
    for page in &model {
        rig.store(*page, 1);
    }
    let dirty = rig.collect();
    assert!(dirty.is_superset(&model));
    rig.settle(&dirty, &model);
    for _ in 0..3 {
        let dirty = rig.collect();
        rig.settle(&dirty, &BTreeSet::new());
    }
    assert_eq!(rig.collect(), BTreeSet::new());
}

#[test]
fn without_mappings_everything_is_protected_by_one_call() {
    struct Apart;
    impl Policy for Apart {
        fn grow(&mut self, _: usize) {}

        fn leaves(&mut self, page: usize, _: bool) -> bool {
            page.is_multiple_of(2)
        }
    }
    impl FaultPolicy for Apart {
        fn splits(&mut self, _: usize) -> usize {
            1
        }

        fn protects_all(&mut self, _: usize) -> bool {
            false
        }
    }
    let (addr, pages) = (window(14), 200_000);
    let mut rig = Rig::new(addr, pages, Rung::Mprotect);
    rig.tracker.backend = Box::new(Explicit::new(addr, pages * PAGE));
    rig.tracker.backend = Box::new(Mprotect::new(addr, pages, Apart).unwrap());
    [0, 100, 200].into_iter().for_each(|page| rig.store(page, 1));
    let dirty = rig.collect();
    assert_eq!(dirty.len(), pages);
    rig.settle(&dirty, &dirty.clone());
    assert_eq!(rig.collect().len(), pages / 2, "those that were to be left");
    rig.store(101, 1);
    assert!(rig.collect().contains(&101));
}

#[test]
fn rungs_have_names() {
    for rung in Rung::ALL {
        assert_eq!(rung.to_string().parse::<Rung>().unwrap(), rung);
    }
    assert!("soft-dirty".parse::<Rung>().is_err());
}

#[test]
fn foreign_faults_reach_the_earlier_handler() {
    extern "C" fn earlier(_: libc::c_int) {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(42) };
    }
    // SAFETY: the child uses memory and system calls, no lock that another thread may hold:
    // `signal::install`'s is free, or taken for good, and then the earlier handler is Rust's own.
    let chained = fork(|| {
        // SAFETY: installs a handler in this child only.
        unsafe { libc::signal(libc::SIGSEGV, earlier as *const () as usize) };
        crate::sys::signal::reinstall_for_tests();
        // SAFETY: deliberately none: the address is not mapped.
        unsafe { std::ptr::without_provenance_mut::<u8>(16).write_volatile(1) };
        1
    });
    assert!(libc::WIFEXITED(chained) && libc::WEXITSTATUS(chained) == 42, "status {chained:#x}");

    let rig = Rig::new(window(9), 4, Rung::Mprotect);
    rig.store(0, 1);
    let inherited = fork(|| {
        rig.store(1, 1);
        0
    });
    assert!(
        libc::WIFSIGNALED(inherited) && libc::WTERMSIG(inherited) == libc::SIGSEGV,
        "status {inherited:#x}"
    );
}

fn fork(child: impl FnOnce() -> i32) -> libc::c_int {
    // SAFETY: see the callers: the children only touch memory and make system calls.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = child();
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    status
}
