//! Creating, destroying, attaching, renaming and resizing are as crash-consistent as psync (S0.5).

use indelible_store::error::Result;
use indelible_store::store::{SnapshotOf, Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::Limits;
use indelible_testing::pool::psync;
use indelible_testing::scenario::{Scenario, crash_everywhere, formatted, media};
use std::sync::Arc;

const LIMITS: Limits = Limits { exhaustive: 16, singles: 2, random: 3, points: u64::MAX, seed: 7 };
const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn attach(store: &Arc<Store>, name: &str) -> Writer {
    store.attach_writer(name, KEY).unwrap()
}

fn fill(store: &Arc<Store>, name: &str, byte: u8) {
    let mut writer = attach(store, name);
    let size = writer.object().entry.size.get() as usize;
    psync(&mut writer, &[(0, &vec![byte; size])]).unwrap();
    writer.detach().unwrap();
}

const FEWER: Limits = Limits { exhaustive: 8, singles: 1, random: 2, ..LIMITS };

fn everywhere(name: &str, prepare: impl Fn(&Arc<Store>), program: impl Fn(&mut Scenario) -> Result<()>) {
    within(&LIMITS, name, prepare, program);
}

fn within(
    limits: &Limits,
    name: &str,
    prepare: impl Fn(&Arc<Store>),
    program: impl Fn(&mut Scenario) -> Result<()>,
) {
    let limits = &limits.sparse(80);
    for config in media() {
        let medium = formatted(2 << 20, config);
        prepare(&Scenario::begin(&medium, 1).unwrap().store);
        medium.settle();
        let report = crash_everywhere(&medium, limits, &program)
            .unwrap_or_else(|failure| panic!("{name}, {config:?}: {failure}"));
        println!("{name}, {config:?}: {report:?}");
    }
}

// S0.5 S0.8 S0.9
#[test]
fn create_and_destroy() {
    everywhere(
        "create and destroy",
        |store| {
            for (name, byte) in [("old", 1), ("older", 2)] {
                store.create(name, &of(20_000)).unwrap();
                fill(store, name, byte);
            }
        },
        |run| {
            run.step(|store| store.create("a", &of(100)))?;
            run.step(|store| store.create("b", &CreateOptions { sparse: true, ..of(9000) }))?;
            run.step(|store| store.destroy("old", KEY))?;
            run.step(|store| store.create("c", &of(20_000)))?;
            run.step(|store| store.destroy("a", KEY))?;
            run.step(|store| store.destroy("older", KEY))?;
            run.step(|store| store.create("d", &of(40_000)))?;
            Ok(())
        },
    );
}

#[test]
fn attach_and_detach() {
    everywhere(
        "attach and detach",
        |store| {
            store.create("a", &of(5000)).unwrap();
            fill(store, "a", 1);
            store.create("r", &CreateOptions { read_only: true, ..of(5000) }).unwrap();
        },
        |run| {
            let a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.quiet(|_| a.detach())?;
            let (r, s) =
                run.quiet(|store| Ok((store.attach_reader("a", KEY)?, store.attach_reader("a", KEY)?)))?;
            run.quiet(|_| r.detach())?;
            run.quiet(|_| s.detach())?;
            let r = run.quiet(|store| store.attach_reader("r", KEY))?;
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.quiet(|_| a.checkpoint())?;
            run.step(|_| psync(&mut a, &[(0, &[5; 5000])]))?;
            run.quiet(|_| a.checkpoint())?;
            run.quiet(|_| a.detach())?;
            run.quiet(|_| r.detach())
        },
    );
}

#[test]
fn by_content() {
    everywhere(
        "by content",
        |_| (),
        |run| {
            run.step(|store| store.create_by_content("a", &[3; 5000]).map(drop))?;
            run.quiet(|store| store.create_by_content("b", &[3; 5000]).map(drop))?;
            run.step(|store| store.create_by_content("b", &[4; 5000]).map(drop))?;
            run.step(|store| store.destroy("a", KEY))?;
            run.step(|store| store.create_by_content("a", &[3; 5000]).map(drop))
        },
    );
}

#[test]
fn rename() {
    everywhere(
        "rename",
        |store| {
            store.create("a", &of(5000)).unwrap();
            fill(store, "a", 1);
        },
        |run| {
            run.step(|store| store.rename("a", "b", KEY))?;
            run.step(|store| store.create("a", &of(64)))?;
            run.step(|store| store.rename("b", &"\u{20ac}".repeat(170), KEY))?;
            run.step(|store| store.rename("a", "b", KEY))
        },
    );
}

/// Small objects move by one batch; sparse and large ones by a hidden object.
fn both_ways_to_move() -> [(&'static str, CreateOptions<'static>); 2] {
    [("with one batch", of(9000)), ("by a hidden object", CreateOptions { sparse: true, ..of(9000) })]
}

#[test]
fn resize() {
    for (way, how) in both_ways_to_move() {
        within(
            &FEWER,
            &format!("resize {way}"),
            |store| {
                for name in ["a", "wall", "b"] {
                    store.create(name, &how).unwrap();
                    fill(store, name, 1);
                }
            },
            |run| {
                run.step(|store| store.resize("b", KEY, 30_000))?;
                run.step(|store| store.resize("a", KEY, 50_000))?;
                run.step(|store| store.resize("a", KEY, 20_000))?;
                run.step(|store| store.resize("b", KEY, 29_000))?;
                run.step(|store| store.resize("a", KEY, 50_000))?;
                run.step(|store| store.destroy("wall", KEY))?;
                run.step(|store| store.resize("b", KEY, 9_000))?;
                run.step(|store| store.create("c", &of(60_000)))?;
                Ok(())
            },
        );
    }
}

#[test]
fn grow_while_attached() {
    for (way, how) in both_ways_to_move() {
        within(
            &FEWER,
            &format!("grow while attached {way}"),
            |store| {
                for name in ["a", "b"] {
                    store.create(name, &how).unwrap();
                }
            },
            |run| {
                let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
                run.step(|_| psync(&mut a, &[(0, &[1; 9000])]))?;
                run.step(|_| psync(&mut b, &[(0, &[2; 9000])]))?;
                run.step(|_| a.grow(30_000))?;
                run.step(|_| psync(&mut a, &[(100, &[3; 29_000])]))?;
                run.step(|_| b.grow(9001))?;
                run.step(|_| psync(&mut b, &[(9000, &[4])]))?;
                run.step(|_| a.grow(90_000))?;
                run.step(|_| psync(&mut a, &[(0, &[5]), (89_000, &[5; 1000])]))?;
                run.quiet(|_| b.detach())?;
                run.quiet(|_| a.detach())
            },
        );
    }
}

#[test]
fn grow_while_in_use() {
    for (way, how) in both_ways_to_move() {
        within(
            &FEWER,
            &format!("grow while in use {way}"),
            |store| {
                for name in ["a", "b", "wall"] {
                    store.create(name, &how).unwrap();
                    fill(store, name, 7);
                }
                store.snapshot(&[SnapshotOf { object: "b", key: KEY, name: "then" }]).unwrap();
            },
            |run| {
                let (mut a, mut b) = (attach(&run.store, "a"), attach(&run.store, "b"));
                run.step(|_| psync(&mut a, &[(0, &[1; 9000])]))?;
                run.step(|_| psync(&mut b, &[(5000, &[2; 700])]))?;
                assert!(run.step(|_| a.grow_beside(30_000, true))?);
                run.step(|_| psync(&mut a, &[(100, &[3; 29_000])]))?;
                run.step(|store| store.create("behind", &of(100)))?;
                assert!(run.step(|_| b.grow_beside(60_000, false))?);
                run.step(|_| psync(&mut b, &[(100, &[4]), (50_000, &[5; 10_000])]))?;
                run.step(|store| store.create("behind b", &of(100)))?;
                run.step(|_| a.grow_beside(90_000, false))?;
                run.step(|_| psync(&mut a, &[(0, &[5]), (89_000, &[5; 1000])]))?;
                run.quiet(|_| b.detach())?;
                run.quiet(|_| a.detach())
            },
        );
    }
}

#[test]
fn create_attached() {
    everywhere(
        "create attached",
        |store| {
            store.create("old", &of(20_000)).unwrap();
            fill(store, "old", 1);
        },
        |run| {
            let mut a = run.step(|store| store.create_writer("a", &of(9000)))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 9000])]))?;
            run.step(|store| store.destroy("old", KEY))?;
            let mut b = run.step(|store| store.create_writer("b", &of(20_000)))?;
            run.step(|_| psync(&mut b, &[(19_000, &[2; 1000])]))?;
            run.quiet(|_| a.detach())?;
            run.quiet(|_| b.detach())
        },
    );
}

#[test]
fn directories() {
    for config in media() {
        let medium = formatted(2 << 20, config);
        let program = |run: &mut Scenario| {
            for name in ["a/1", "a/2", "a/b/3", "a/b/b/3", "other"] {
                run.step(|store| store.create(name, &of(100)))?;
            }
            for (from, to) in [("a/", "c/"), ("c/b/", "c/"), ("c/", "")] {
                run.step(|store| store.rename_directory(from, to, KEY).map_err(|unmoved| unmoved.cause))?;
            }
            Ok(())
        };
        let report =
            crash_everywhere(&medium, &LIMITS, program).unwrap_or_else(|f| panic!("{config:?}: {f}"));
        println!("directories, {config:?}: {report:?}");
    }
}

#[test]
fn table_lane_full() {
    let limits = Limits { exhaustive: 8, singles: 2, random: 3, points: 40, seed: 8 };
    for config in media() {
        let medium = formatted(2 << 20, config);
        let program = |run: &mut Scenario| {
            for round in 0..60 {
                let name = format!("object {round}");
                run.step(|store| store.create(&name, &of(100 + round)))?;
                run.step(|store| store.rename(&name, &format!("{name}!"), KEY))?;
                if round % 3 > 0 {
                    run.step(|store| store.destroy(&format!("{name}!"), KEY))?;
                }
            }
            Ok(())
        };
        let report =
            crash_everywhere(&medium, &limits, program).unwrap_or_else(|f| panic!("{config:?}: {f}"));
        println!("table lane full, {config:?}: {report:?}");
    }
}

#[test]
fn format() {
    use indelible_store::error::StoreError;
    use indelible_store::store::FormatOptions;
    use indelible_testing::pool::{check_tiling, process};
    use indelible_testing::{SimMedium, for_each_crash};
    for config in media() {
        for zeroed in [true, false] {
            let medium = SimMedium::new(1 << 20, config);
            if !zeroed {
                medium.scribble(0..1 << 20, 3);
            }
            let how = FormatOptions { zeroed, ..FormatOptions::default() };
            let limits = Limits { exhaustive: 16, singles: 8, random: 16, ..LIMITS };
            let report = for_each_crash(
                &medium,
                |medium| {
                    Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
                    medium.mark(1);
                },
                |image| match Store::open(Arc::new(image.medium()), process(2)) {
                    Ok(store) => check_tiling(&store),
                    Err(
                        StoreError::NotAPool
                        | StoreError::Damaged { .. }
                        | StoreError::Version { found: 0, .. },
                    ) if image.marks().is_empty() => Ok(()),
                    Err(error) => Err(error.to_string()),
                },
                &limits,
            );
            let report = report.unwrap_or_else(|failure| panic!("{config:?}: {failure}"));
            println!("format, {config:?}: {report:?}");
        }
    }
}
