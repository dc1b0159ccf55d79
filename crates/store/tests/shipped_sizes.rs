//! Batches in pieces, redo past the write combiner, and a full combiner: at the shipped sizes with
//! sampled power cuts, at small sizes by classes of images (`indelible_testing::ClassLimits`).

use indelible_store::error::Result;
use indelible_store::format::{LINE, TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::lane::{Batch, LaneLog};
use indelible_store::medium::{Medium, Transfers};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, contents, process, psync, recover_all, snapshot};
use indelible_testing::scenario::{Scenario, allowed, formatted, judge, judge_state};
use indelible_testing::{
    Choice, ClassLimits, CrashImage, Cut, Discard, EventKind, Limits, SMALL, SimConfig, SimMedium, TearUnit,
    for_each_class, for_each_crash,
};
use std::cell::RefCell;
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);
const SAMPLE: Cuts = Cuts::Sampled {
    limits: Limits { exhaustive: 1, singles: 1, random: 1, points: 20, seed: 1 },
    before_durable: 3,
};
const FEW: Cuts = Cuts::Sampled {
    limits: Limits { exhaustive: 1, singles: 0, random: 1, points: 3, seed: 1 },
    before_durable: 1,
};

type Verdict = std::result::Result<(), String>;

#[derive(Clone, Copy)]
enum Cuts {
    Sampled { limits: Limits, before_durable: u64 },
    Every,
}

fn cut(
    medium: &SimMedium,
    cuts: Cuts,
    record: impl FnOnce(&SimMedium),
    verify: impl Fn(&CrashImage, &SimMedium) -> Verdict,
) -> Verdict {
    match cuts {
        Cuts::Sampled { limits, before_durable } => {
            let report = for_each_crash(medium, record, |image| verify(image, &image.medium()), &limits);
            println!("{:?}", report.map_err(|failure| failure.to_string())?);
            for (before, event) in medium.events() {
                if matches!(event.kind, EventKind::Barrier { .. } | EventKind::Persisted { .. }) {
                    for seed in 0..before_durable {
                        let image = medium.crash_at(Cut { before, choice: Choice::Random(seed) });
                        verify(&image, &image.medium())
                            .map_err(|cause| format!("{cause} after {}", image.cut()))?;
                    }
                }
            }
        }
        Cuts::Every => {
            let report = for_each_class(medium, record, &verify, &ClassLimits::default());
            let report = report.map_err(|failure| failure.to_string())?;
            println!("{report:?}");
            assert_eq!(report.cut_short, 0, "{report:?}");
        }
    }
    Ok(())
}

fn config(transfers: Transfers, tear_unit: TearUnit, disk: bool) -> SimConfig {
    SimConfig { tear_unit, disk, discard: Discard::Keep, transfers, seed: 0 }
}

fn pool(size: u64, config: SimConfig) -> SimMedium {
    let medium = formatted((2 * size).next_multiple_of(1 << 20) + (8 << 20), config);
    let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
    store.create("a", &CreateOptions { size, ..CreateOptions::default() }).unwrap();
    medium.settle();
    medium
}

fn writes(medium: &SimMedium) -> Vec<(u64, u64)> {
    let events = medium.events();
    let plain = events.iter().filter(|(_, event)| matches!(event.kind, EventKind::Write | EventKind::Stream));
    plain.flat_map(|(_, event)| event.ranges().collect::<Vec<_>>()).collect()
}

fn overwritten(writes: &[(u64, u64)], start: u64, len: u64) -> bool {
    let mut seen = vec![false; (len / LINE) as usize];
    let inside = writes.iter().filter(|(at, _)| (start..start + len).contains(at));
    inside
        .flat_map(|(at, len)| (at - start) / LINE..(at - start + len) / LINE)
        .any(|line| std::mem::replace(&mut seen[line as usize], true))
}

fn in_pieces(run: &mut Scenario, append: u64) -> Result<()> {
    let size = (24 * append) as usize;
    let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
    for round in [1, 5_u8] {
        run.step(|_| psync(&mut a, &[(0, &[round; 100])]))?;
        run.step(|_| psync(&mut a, &[(0, &vec![round + 1; size])]))?;
        run.step(|_| psync(&mut a, &[(64, &[round + 2; 100])]))?;
        let part = vec![round + 3; (append + append / 2) as usize];
        let parts: Vec<(u64, &[u8])> = (0..12).map(|at| (at * 2 * append, &part[..])).collect();
        run.step(|_| psync(&mut a, &parts))?;
    }
    std::mem::forget(a);
    Ok(())
}

fn pieces(transfers: Transfers, cuts: Cuts) -> Verdict {
    let append = transfers.append();
    let medium = pool(24 * append, config(transfers, TearUnit::Line, false));
    let states = RefCell::new(Vec::new());
    cut(
        &medium,
        cuts,
        |medium| {
            let mut run = Scenario::begin(medium, 2).unwrap();
            in_pieces(&mut run, append).unwrap();
            let whole = writes(medium).iter().filter(|(_, len)| *len == append).count();
            assert!(whole >= 2 * 24 * 2, "{whole} pieces are written and applied");
            states.replace(run.states);
        },
        |image, medium| match cuts {
            Cuts::Sampled { .. } => judge(image, &states.borrow()).map(drop),
            Cuts::Every => judge_state(medium, allowed(image, &states.borrow())).map(drop),
        },
    )
}

#[test]
fn batches_in_many_pieces_as_they_are_shipped() {
    pieces(Transfers::SHIPPED, SAMPLE).unwrap();
}

#[test]
fn batches_in_many_small_pieces() {
    pieces(SMALL, Cuts::Every).unwrap();
}

struct Left(SimMedium, Vec<u8>);

fn dead(medium: &SimMedium, program: impl FnOnce(&mut Writer, &mut [u8])) -> Left {
    let device = Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    let mut expected = contents(&store, a.object()).unwrap();
    let whole = expected.len() as u64 / LINE * LINE;
    store_lines(&mut a, &mut expected, 0, &[(0, whole)]);
    a.checkpoint().unwrap();
    let checkpoints = a.lane_use().checkpoints;
    program(&mut a, &mut expected);
    assert_eq!(a.lane_use().checkpoints, checkpoints, "the lane has all of it");
    device.kill();
    std::mem::forget(a);
    drop(store);
    let left = medium.power_cut(Choice::None).medium();
    let store = Store::open(Arc::new(left.handle()), process(3)).unwrap();
    store.info().unwrap();
    let seed = store.superblock().seed.get();
    let mut log = LaneLog::read(&left, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    left.barrier().unwrap();
    log.next_generation(&left, seed).unwrap();
    left.settle();
    Left(left, expected)
}

fn fill(bytes: &mut [u8], from: u64, round: u8) {
    for (number, line) in (from / LINE..).zip(bytes.chunks_mut(LINE as usize)) {
        line.fill((number as u8).wrapping_mul(7).wrapping_add((number >> 8) as u8) ^ (round << 5 | 1));
    }
}

fn store_lines(writer: &mut Writer, expected: &mut [u8], round: u8, ranges: &[(u64, u64)]) {
    for &(at, len) in ranges {
        fill(&mut expected[at as usize..(at + len) as usize], at, round);
    }
    let collect = &mut |start: u64, batch: &mut Batch| {
        for &(at, len) in ranges {
            fill(batch.lines(start + at, (len / LINE) as usize), at, round);
        }
        Ok(ranges.iter().map(|(at, len)| at + len).max().unwrap_or(0))
    };
    writer.psync(collect).unwrap();
}

fn redo(transfers: Transfers) -> Left {
    let long = transfers.direct() as u64;
    let size = 12 * long;
    let medium = pool(size, config(transfers, TearUnit::Line, true));
    dead(&medium, |writer, expected| {
        let short: Vec<_> = (0..48).map(|at| (at * long / 4, 128)).collect();
        store_lines(writer, expected, 1, &short);
        store_lines(writer, expected, 2, &[(long / 2, 4 * long), (6 * long, 64)]);
        let short: Vec<_> = (1..16).map(|at| (at * long / 4 + 64, 192)).collect();
        store_lines(writer, expected, 3, &short);
        store_lines(writer, expected, 4, &[(3 * long, 2 * long + 64), (7 * long, 3 * long)]);
    })
}

fn recovered(Left(medium, expected): &Left, cuts: Cuts) -> Verdict {
    let medium = &medium.power_cut(Choice::All).medium();
    let recover = |medium: &SimMedium, pid| {
        let store = Store::open(Arc::new(medium.handle()), process(pid))?;
        let writer = store.attach_writer("a", KEY)?;
        let found = contents(&store, writer.object())?;
        Ok::<_, indelible_store::error::StoreError>((*writer.object(), found))
    };
    let judge = |found: &[u8]| match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at} is {} and not {}", found[at], expected[at])),
        None => Ok(()),
    };
    let first = RefCell::new(Ok(()));
    cut(
        medium,
        cuts,
        |medium| {
            let (object, found) = recover(medium, 3).unwrap();
            let (start, len) = (object.entry.primary_offset(), object.entry.extent_len());
            assert!(overwritten(&writes(medium), start, len), "nothing is redone before the end");
            *first.borrow_mut() = judge(&found);
        },
        |_, medium| {
            first.borrow().clone()?;
            let (_, found) = recover(medium, 4).map_err(|error| error.to_string())?;
            judge(&found)
        },
    )
}

#[test]
fn long_redo_as_it_is_shipped() {
    recovered(&redo(Transfers::SHIPPED), SAMPLE).unwrap();
}

#[test]
fn long_redo_at_small_sizes() {
    recovered(&redo(SMALL), Cuts::Every).unwrap();
}

fn combine(transfers: Transfers) -> Left {
    let pages = transfers.combine() as u64 / (4096 + 256 + 8);
    let (size, run) = ((pages + pages / 16 + 2) * 4096, transfers.direct() as u64 - LINE);
    let medium = pool(size, config(transfers, TearUnit::Sector, true));
    dead(&medium, |writer, expected| {
        let all: Vec<_> = (0..size / (run + LINE)).map(|at| (at * (run + LINE), run)).collect();
        store_lines(writer, expected, 1, &all);
        let newer: Vec<_> = [0, size / 3, size - 2 * (run + LINE)].map(|at| (at / LINE * LINE, 512)).into();
        store_lines(writer, expected, 2, &newer);
    })
}

#[test]
fn a_full_write_combiner_as_it_is_shipped() {
    recovered(&combine(Transfers::SHIPPED), FEW).unwrap();
}

#[test]
fn a_full_write_combiner_at_small_sizes() {
    recovered(&combine(SMALL), Cuts::Every).unwrap();
}

#[test]
fn sizes_change_nothing_that_is_on_the_medium() {
    let medium = pool(20_000, config(SMALL, TearUnit::Line, true));
    let Left(medium, expected) = dead(&medium, |writer, expected| {
        for round in 1..5 {
            let from = u64::from(round) * 640;
            store_lines(writer, expected, round, &[(from, 4096), (from + 6400, 64), (from + 12_800, 3200)]);
        }
    });
    let found: Vec<Snapshot> = [SMALL, Transfers::SHIPPED]
        .map(|transfers| {
            let medium = SimMedium::from_bytes(&medium.to_bytes(), config(transfers, TearUnit::Line, true));
            let store = Store::open(Arc::new(medium.handle()), process(3)).unwrap();
            recover_all(&store).unwrap();
            snapshot(&store).unwrap()
        })
        .into();
    assert!(found[0] == found[1] && found[0]["a"].2 == expected);
}

#[cfg(feature = "__mutants")]
mod mutants {
    use super::*;
    use indelible_store::{Mutant, with_mutant};
    use indelible_testing::sparse;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// The shipped sizes notice each mutant; the program alone passes.
    fn caught(mutants: &[Mutant], check: impl Fn() -> Verdict) {
        for mutant in mutants {
            match with_mutant(*mutant, || catch_unwind(AssertUnwindSafe(&check))) {
                Ok(Ok(())) => panic!("{mutant:?} goes unnoticed"),
                Ok(Err(cause)) => println!("{mutant:?}: {}", cause.lines().next().unwrap_or_default()),
                Err(_) => panic!("{mutant:?}: the program does not do what it is made for"),
            }
        }
    }

    #[test]
    fn in_many_pieces() {
        let broken = [Mutant::ApplyPiecesFirst, Mutant::PiecesNotDurable, Mutant::ShortChecksum];
        caught(&broken, || pieces(Transfers::SHIPPED, SAMPLE));
    }

    #[test]
    fn in_long_redo() {
        let broken = [Mutant::EarlyVoid, Mutant::LastBatchForgotten, Mutant::OldestWins];
        let left = redo(Transfers::SHIPPED);
        caught(&broken, || recovered(&left, SAMPLE));
    }

    #[test]
    fn in_a_full_write_combiner() {
        let left = combine(Transfers::SHIPPED);
        let broken = [Mutant::EarlyVoid, Mutant::OldestWins];
        caught(&broken[..2 / sparse(2)], || recovered(&left, FEW));
    }
}
