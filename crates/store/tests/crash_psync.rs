//! A power cut at any instant of psync leaves each object as some psync left it (S0.18, S0.26).

use indelible_store::error::Result;
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{psync, psync_many};
use indelible_testing::scenario::{Scenario, crash_everywhere, formatted, media};
use indelible_testing::{Limits, SimMedium};
use std::sync::Arc;

const LIMITS: Limits = Limits { exhaustive: 64, singles: 6, random: 8, points: u64::MAX, seed: 1 };

fn create(store: &Arc<Store>, name: &str, size: u64) {
    store.create(name, &CreateOptions { size, ..CreateOptions::default() }).unwrap();
}

fn attach(store: &Arc<Store>, name: &str) -> Writer {
    store.attach_writer(name, Key::default()).unwrap()
}

fn everywhere(
    name: &str,
    len: u64,
    limits: &Limits,
    prepare: impl Fn(&Arc<Store>),
    program: impl Fn(&mut Scenario) -> Result<()>,
) {
    let limits = &limits.sparse(60);
    for config in media() {
        let medium: SimMedium = formatted(len, config);
        {
            let scenario = Scenario::begin(&medium, 1).unwrap();
            prepare(&scenario.store);
        }
        medium.settle();
        let report = crash_everywhere(&medium, limits, &program);
        let report = report.unwrap_or_else(|failure| panic!("{name}, {config:?}: {failure}"));
        println!("{name}, {config:?}: {report:?}");
    }
}

// S0.18 S0.26 S0.28
#[test]
fn one_object() {
    everywhere(
        "one object",
        1 << 20,
        &LIMITS,
        |store| create(store, "a", 10_000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", Key::default()))?;
            for round in 1..4_u8 {
                run.step(|_| psync(&mut a, &[(0, &[round; 200]), (5000, &[round]), (9_990, &[round; 10])]))?;
            }
            run.quiet(|_| a.detach())
        },
    );
}

#[test]
fn several_objects_are_one_step() {
    everywhere(
        "several objects",
        1 << 20,
        &LIMITS,
        |store| ["a", "b", "c"].iter().for_each(|name| create(store, name, 8192)),
        |run| {
            let (mut a, mut b, mut c) =
                (attach(&run.store, "a"), attach(&run.store, "b"), attach(&run.store, "c"));
            for round in 1..4_u8 {
                run.step(|_| psync(&mut b, &[(64, &[round; 64])]))?;
                run.step(|_| {
                    psync_many(&mut [
                        (&mut a, &[(0, &[round; 64]), (4096, &[round; 130])]),
                        (&mut b, &[(0, &[round; 64])]),
                        (&mut c, &[(8000, &[round; 192])]),
                    ])
                })?;
            }
            run.quiet(|_| a.detach())?;
            run.quiet(|_| c.detach())?;
            run.quiet(|_| b.detach())
        },
    );
}

#[test]
fn pages_kept_come_and_go() {
    let limits = Limits { points: 120, ..LIMITS };
    everywhere(
        "pages come and go",
        1 << 20,
        &limits,
        |store| ["a", "b"].iter().for_each(|name| create(store, name, 32 << 10)),
        |run| {
            let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
            a.set_cached_pages(3);
            for round in 1..12_u8 {
                let page = u64::from(round) * 3 % 7 * 4096;
                run.step(|_| {
                    psync(&mut a, &[(0, &[round; 70]), (page, &[round; 300]), (4000, &[round; 200])])
                })?;
                assert!(a.cached_pages() <= 3);
                if round % 4 == 0 {
                    run.step(|_| {
                        psync_many(&mut [(&mut a, &[(page, &[99])]), (&mut b, &[(page, &[round])])])
                    })?;
                    run.quiet(|_| b.checkpoint())?;
                }
            }
            run.quiet(|_| a.detach())?;
            run.quiet(|_| b.detach())
        },
    );
}

#[test]
fn lane_full() {
    let limits = Limits { exhaustive: 16, singles: 3, random: 4, points: 60, seed: 2 };
    everywhere(
        "lane full",
        1 << 20,
        &limits,
        |store| ["a", "b"].iter().for_each(|name| create(store, name, 16 << 10)),
        |run| {
            let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
            run.step(|_| psync_many(&mut [(&mut a, &[(0, &[1])]), (&mut b, &[(0, &[1])])]))?;
            for round in 1..14_u8 {
                run.step(|_| psync(&mut a, &[(0, &vec![round; 12 << 10])]))?;
                run.step(|_| psync(&mut b, &[(u64::from(round) * 64, &[round; 64])]))?;
            }
            assert!(a.lane_use().checkpoints >= 2);
            run.quiet(|_| a.checkpoint())?;
            run.quiet(|_| b.detach())?;
            run.quiet(|_| a.detach())
        },
    );
}

#[test]
fn lane_enlarged() {
    let limits = Limits { exhaustive: 16, singles: 3, random: 4, points: 60, seed: 3 };
    everywhere(
        "lane enlarged",
        4 << 20,
        &limits,
        |store| {
            create(store, "a", 300 << 10);
            create(store, "b", 4096);
        },
        |run| {
            let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
            run.step(|_| psync_many(&mut [(&mut a, &[(0, &[1])]), (&mut b, &[(0, &[1])])]))?;
            run.step(|_| psync(&mut a, &[(0, &vec![7; 200 << 10])]))?;
            run.step(|_| psync(&mut b, &[(0, &[9; 300])]))?;
            run.step(|_| psync(&mut a, &[(100, &[8; 30])]))?;
            run.quiet(|_| a.detach())?;
            run.step(|_| psync(&mut b, &[(0, &[10; 300])]))?;
            run.quiet(|_| b.detach())
        },
    );
}

#[test]
fn lane_shortened() {
    let limits = Limits { exhaustive: 16, singles: 3, random: 4, points: 60, seed: 5 };
    everywhere(
        "lane shortened",
        2 << 20,
        &limits,
        |store| {
            create(store, "a", 300 << 10);
            create(store, "b", 4096);
        },
        |run| {
            let mut a = attach(&run.store, "a");
            run.step(|_| psync(&mut a, &[(0, &vec![7; 200 << 10])]))?;
            let long = space_of_lanes(&run.store);
            run.quiet(|_| a.detach())?;
            assert!(space_of_lanes(&run.store) < long);
            let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
            run.step(|_| psync_many(&mut [(&mut a, &[(9, &[1])]), (&mut b, &[(0, &[1])])]))?;
            run.step(|_| psync(&mut a, &[(0, &[9; 300])]))?;
            run.quiet(|_| b.detach())?;
            run.quiet(|_| a.detach())
        },
    );
}

fn space_of_lanes(store: &Store) -> u64 {
    store.lanes().unwrap().into_iter().map(|lane| lane.len).sum()
}

#[test]
fn direct_writes() {
    everywhere(
        "direct",
        1 << 20,
        &LIMITS,
        |store| create(store, "a", 64 << 10),
        |run| {
            let mut a = attach(&run.store, "a");
            run.step(|_| psync(&mut a, &[(0, &[1; 100])]))?;
            run.quiet(|_| a.begin_direct(16 << 10))?;
            run.quiet(|_| a.write_direct(4096, &[2; 5000]))?;
            run.quiet(|_| a.write_direct(12 << 10, &[3; 100]))?;
            run.quiet(|_| a.end_direct())?;
            run.step(|_| psync(&mut a, &[(0, &[4; 100])]))?;
            run.quiet(|_| a.begin_direct(32 << 10))?;
            run.quiet(|_| a.write_direct(20 << 10, &[5; 700]))?;
            run.quiet(|_| a.end_direct())?;
            run.step(|_| psync(&mut a, &[]))?;
            run.quiet(|_| a.begin_direct(64 << 10))?;
            run.quiet(|_| a.write_direct(40 << 10, &[6; 700]))?;
            run.quiet(|_| a.detach())
        },
    );
}

#[test]
fn direct_writes_and_everything_else() {
    let limits = Limits { exhaustive: 16, singles: 4, random: 4, points: 80, seed: 4 };
    everywhere(
        "direct and everything else",
        2 << 20,
        &limits,
        |store| {
            create(store, "a", 64 << 10);
            create(store, "wall", 4096);
            create(store, "b", 4096);
        },
        |run| {
            let (mut b, mut a) = (attach(&run.store, "b"), attach(&run.store, "a"));
            run.step(|_| psync(&mut a, &[(0, &[1; 100])]))?;
            run.quiet(|_| a.begin_direct(32 << 10))?;
            run.quiet(|_| a.write_direct(4096, &[2; 700]))?;
            run.quiet(|_| a.checkpoint())?;
            run.quiet(|_| a.write_direct(8192, &[3; 700]))?;
            run.quiet(|_| a.end_direct())?;
            run.step(|_| psync_many(&mut [(&mut b, &[(0, &[1])]), (&mut a, &[(0, &[4])])]))?;
            run.quiet(|_| a.begin_direct(60 << 10))?;
            run.quiet(|_| a.write_direct(40 << 10, &[5; 700]))?;
            run.quiet(|_| a.end_direct())?;
            let mut grown = run.last();
            if let Some((_, _, bytes)) = grown.get_mut("a") {
                bytes.resize(100 << 10, 0);
            }
            assert!(run.step_to(grown, |_| a.grow(100 << 10))?);
            run.step(|_| psync(&mut a, &[(99 << 10, &[6; 100])]))?;
            run.quiet(|_| a.detach())?;
            run.quiet(|_| b.detach())
        },
    );
}
