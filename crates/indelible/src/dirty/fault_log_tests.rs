//! Pages found by name, in one process per test: elsewhere unlogged faults are counted all the
//! time, and a log is hardly ever complete.

#![allow(unsafe_code)]

use super::broken::{BROKEN, Broken};
use super::tests::{Rig, random, window};
use super::{Advice, Rung};
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::process::{Command, Output};
use std::sync::{Barrier, mpsc};

const ALONE: &str = "INDELIBLE_TEST_ALONE";

fn is_possible() -> bool {
    let possible = Rung::FaultLog.available();
    if !possible {
        indelible_testing::not_tested("the log of faults");
    }
    possible
}

fn process(test: &str, broken: Option<Broken>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads=1"]).env(ALONE, "1");
    if let Some(broken) = broken {
        command.env(BROKEN, format!("{broken:?}"));
    }
    command.output().unwrap()
}

fn alone(test: &str, run: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return run();
    }
    if is_possible() {
        let output = process(&format!("dirty::fault_log_tests::{test}"), None);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}

/// A range of which each page exists and is protected, and that the log was asked for.
fn settled(pages: usize) -> Rig {
    let mut rig = Rig::advised(window(20), pages, Rung::FaultLog, Advice::Measured);
    (0..pages).for_each(|page| rig.store(page, 1));
    for _ in 0..20 {
        let dirty = rig.collect();
        rig.settle(&dirty, &BTreeSet::new());
    }
    assert_eq!(rig.collect(), BTreeSet::new());
    rig
}

fn collected(rig: &mut Rig) -> (BTreeSet<usize>, bool) {
    let before = rig.tracker.found_by_name();
    let dirty = rig.collect();
    rig.settle(&dirty, &dirty.clone());
    (dirty, rig.tracker.found_by_name() > before)
}

#[test]
fn stores_of_all_threads_are_found_by_name() {
    alone("stores_of_all_threads_are_found_by_name", || {
        let (begin, done) = (Barrier::new(2), Barrier::new(2));
        let (give, take) = mpsc::channel::<usize>();
        std::thread::scope(|scope| {
            // This one is there before the log is.
            let (begun, ended) = (&begin, &done);
            scope.spawn(move || {
                begun.wait();
                let at: *mut u64 = std::ptr::with_exposed_provenance_mut(take.recv().unwrap());
                // SAFETY: a page of the mapping, which outlives the scope.
                unsafe { at.write_volatile(9) };
                ended.wait();
                // It must not end, and be counted as ending, before the collect.
                begun.wait();
            });
            let mut rig = settled(3000);
            // A system call may be the first to store to a page of the heap.
            let mut named = (2000..2010).map(|page| {
                rig.store(page, 5);
                let (dirty, named) = collected(&mut rig);
                assert!(dirty.contains(&page));
                named
            });
            assert!(named.any(|named| named));
            give.send(rig.at(700).expose_provenance()).unwrap();
            begin.wait();
            done.wait();
            assert!(collected(&mut rig).0.contains(&700));
            begin.wait();
            let later = rig.at(701).expose_provenance();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let at: *mut u64 = std::ptr::with_exposed_provenance_mut(later);
                    // SAFETY: as above.
                    unsafe { at.write_volatile(9) };
                });
            });
            assert!(collected(&mut rig).0.contains(&701));
        });
    });
}

#[test]
fn pages_that_change_again_and_again_are_found_without_a_fault() {
    alone("pages_that_change_again_and_again_are_found_without_a_fault", || {
        let (mut rig, mut by_name) = (settled(3000), 0);
        for value in 2..40 {
            rig.store(7, value);
            rig.store(1000 + 30 * value as usize, value);
            let (dirty, named) = collected(&mut rig);
            assert!(
                dirty.contains(&7) && dirty.contains(&(1000 + 30 * value as usize)),
                "{value}: {dirty:?}"
            );
            by_name += u32::from(named);
        }
        assert!(by_name > 30, "{by_name} times");
    });
}

#[test]
fn a_store_that_is_counted_and_not_logged_is_found_by_a_scan() {
    alone("a_store_that_is_counted_and_not_logged_is_found_by_a_scan", || {
        let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
        let mut rig = settled(3000);
        for page in [5, 2500, 5] {
            memory.write_all_at(&[page as u8; 8], rig.at(page).addr() as u64).unwrap();
            assert_eq!(collected(&mut rig), (BTreeSet::from([page]), false));
            (0..20).for_each(|_| {
                let dirty = rig.collect();
                rig.settle(&dirty, &BTreeSet::new());
            });
            rig.store(9, page as u64);
            assert!(collected(&mut rig).0.contains(&9));
        }
    });
}

#[test]
fn more_faults_than_a_ring_has_room_for_take_a_scan() {
    alone("more_faults_than_a_ring_has_room_for_take_a_scan", || {
        let pages = 20_000;
        let mut rig = settled(pages);
        (0..pages).for_each(|page| rig.store(page, 3));
        let (dirty, named) = collected(&mut rig);
        assert!(dirty.len() == pages && !named, "{} pages, by name: {named}", dirty.len());
        rig.store(11, 4);
        assert!(collected(&mut rig).0.contains(&11));
    });
}

/// Names of an object that asks for none, while another one does.
#[test]
fn names_that_are_too_many_take_a_scan() {
    alone("names_that_are_too_many_take_a_scan", || {
        let mut rig = settled(3000);
        let mut other = Rig::advised(window(21), 600, Rung::FaultLog, Advice::Measured);
        for page in 0..3000 {
            rig.store(page, 3);
            if page % 100 == 0 {
                other.store(page / 10, 1);
                assert!(collected(&mut other).0.contains(&(page / 10)));
            }
        }
        let (dirty, named) = collected(&mut rig);
        assert!(dirty.len() == 3000 && !named, "{} pages, by name: {named}", dirty.len());
    });
}

#[test]
fn threads_that_are_too_many_take_scans() {
    alone("threads_that_are_too_many_take_scans", || {
        let end = Barrier::new(514);
        std::thread::scope(|scope| {
            (0..513).for_each(|_| {
                std::thread::Builder::new().stack_size(1 << 16).spawn_scoped(scope, || end.wait()).unwrap();
            });
            let mut rig = settled(600);
            rig.store(3, 3);
            assert_eq!(collected(&mut rig), (BTreeSet::from([3]), false));
            end.wait();
        });
    });
}

/// Random stores, loads, failed psyncs and renewals on two ranges.
#[test]
fn no_named_page_is_ever_missed() {
    if std::env::var_os(ALONE).is_none() {
        return alone("no_named_page_is_ever_missed", || {});
    }
    let pages = 3000;
    let mut rigs =
        [22, 23].map(|n| (Rig::advised(window(n), pages, Rung::FaultLog, Advice::Measured), BTreeSet::new()));
    let (mut seed, mut named) = (5, 0);
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    for round in 0..1500 {
        let mut below = |n: usize| random(&mut seed) as usize % n;
        let (rig, model) = &mut rigs[below(2)];
        for _ in 0..below(20) {
            let page = if below(3) == 0 { below(pages) } else { below(6) };
            match below(12) {
                0 => {
                    rig.load(page);
                }
                1 if round % 3 == 0 => {
                    memory.write_all_at(&[round as u8; 8], rig.at(page).addr() as u64).unwrap();
                    model.insert(page);
                }
                _ => {
                    rig.store(page, round as u64);
                    model.insert(page);
                }
            }
        }
        let dirty = rig.collect();
        assert!(dirty.is_superset(model), "round {round}: missed {:?}", model.difference(&dirty));
        if below(4) != 0 {
            rig.settle(&dirty, model);
            model.clear();
            if below(60) == 0 {
                rig.renew();
            }
        }
    }
    rigs.iter().for_each(|(rig, _)| named += rig.tracker.found_by_name());
    assert_eq!(named > 200, !Broken::EventsRefused.is_on(), "found by name: {named} times");
}

const MODEL: &str = "dirty::fault_log_tests::no_named_page_is_ever_missed";
const TORTURE: &str = "object::torture::no_advice_loses_a_store_that_the_log_names";
const COUNTED: &str = "dirty::fault_log_tests::a_store_that_is_counted_and_not_logged_is_found_by_a_scan";

#[test]
fn two_detectors_notice_each_broken_rule() {
    if std::env::var_os(ALONE).is_some() || !is_possible() {
        return;
    }
    let detectors = [
        (Broken::RecordDropped, [MODEL, TORTURE]),
        (Broken::CountMisread, [MODEL, COUNTED]),
        (Broken::OpenForgotten, [MODEL, TORTURE]),
    ];
    for (broken, test) in detectors.into_iter().flat_map(|(broken, tests)| tests.map(|test| (broken, test))) {
        let output = process(test, Some(broken));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            !output.status.success() && said.contains("1 failed"),
            "{test} passes, with {broken:?}: {said}"
        );
    }
    for (test, broken) in [(MODEL, None), (MODEL, Some(Broken::EventsRefused)), (TORTURE, None)] {
        let output = process(test, broken);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{test}, with {broken:?}: {said}");
    }
}
