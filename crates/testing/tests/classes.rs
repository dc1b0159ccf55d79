//! The enumeration of classes: counts equal those by hand, and merging loses no outcome.

use indelible_store::medium::Medium;
use indelible_testing::{
    ClassLimits, ClassReport, Seeded, SimConfig, SimMedium, TearUnit, for_each_class, for_each_crash,
};
use std::collections::BTreeSet;

const ALL: ClassLimits = ClassLimits { per_point: u64::MAX, torn: u64::MAX, merge: false, seed: 0 };
const MERGED: ClassLimits = ClassLimits { per_point: u64::MAX, torn: u64::MAX, merge: true, seed: 0 };

fn medium(tear_unit: TearUnit) -> SimMedium {
    SimMedium::new(64 << 10, SimConfig { tear_unit, ..SimConfig::default() })
}

fn word(medium: &SimMedium, word: u64) -> u8 {
    let mut byte = [0];
    medium.read(word * 8, &mut byte).unwrap();
    byte[0]
}

fn count(
    limits: &ClassLimits,
    run: impl FnOnce(&SimMedium),
    look: impl Fn(&SimMedium),
) -> (ClassReport, Vec<Vec<u8>>) {
    let mut seen = Vec::new();
    let judge = |image: &indelible_testing::CrashImage, medium: &SimMedium| {
        look(medium);
        seen.push(image.medium().to_bytes()[..64].iter().step_by(8).copied().collect());
        Ok::<(), String>(())
    };
    let report = for_each_class(&medium(TearUnit::Word), run, judge, limits).unwrap();
    (report, seen)
}

fn three_words(medium: &SimMedium) {
    medium.write(0, &[1; 24]).unwrap();
    medium.barrier().unwrap();
}

#[test]
fn counts_of_tiny_runs() {
    let nothing = |_: &SimMedium| {};
    let (report, seen) = count(&ALL, three_words, nothing);
    assert_eq!((report.points, report.judged, report.cut_short), (1, 8, 0));
    assert_eq!((report.legal_log2 * 1000.0).round(), 3000.0);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 8);
    assert_eq!(count(&MERGED, three_words, nothing).0.judged, 1);
    assert_eq!(count(&MERGED, three_words, |m| _ = word(m, 1)).0.judged, 2);
    let lazy = |m: &SimMedium| {
        if word(m, 0) == 1 {
            word(m, 2);
        }
    };
    let (report, _) = count(&MERGED, three_words, lazy);
    assert_eq!((report.judged, report.merged), (3, 3));
    let overwrite = |m: &SimMedium| {
        m.write(0, &[9; 16]).unwrap();
        (0..3).for_each(|at| _ = word(m, at));
    };
    assert_eq!(count(&MERGED, three_words, overwrite).0.judged, 2);
}

#[test]
fn versions_of_a_unit_and_marks() {
    let run = |m: &SimMedium| {
        m.write(0, &[1; 8]).unwrap();
        m.write(0, &[2; 8]).unwrap();
        m.mark(1);
        m.write(8, &[1; 8]).unwrap();
    };
    assert_eq!(count(&ALL, run, |_| {}).0.judged, 3 + 6);
}

#[test]
fn a_torn_durable_write_is_one_class() {
    let run = |m: &SimMedium| m.write_durable(0, &[1; 32]).unwrap();
    let look = |m: &SimMedium| _ = word(m, 0);
    assert_eq!(count(&ALL, run, look).0.judged, 16);
    assert_eq!(count(&MERGED, run, look).0.judged, 16, "few enough to try all");
    let (report, seen) = count(&ClassLimits { torn: 7, ..MERGED }, run, look);
    assert_eq!(report.judged, 8, "seven ways to tear it, and the whole");
    assert_eq!(seen.iter().filter(|words| words[..4] == [1; 4]).count(), 1);
    assert!(seen.contains(&vec![0; 8]));
    assert_eq!(count(&ClassLimits { torn: 7, ..MERGED }, run, |_| {}).0.judged, 1);
}

#[test]
fn a_point_with_too_many_classes_says_so() {
    let limits = ClassLimits { per_point: 5, ..ALL };
    let (report, _) = count(&limits, three_words, |_| {});
    assert_eq!((report.judged, report.cut_short), (5, 1));
}

#[test]
#[should_panic(expected = "it is no function")]
fn a_judge_that_depends_on_something_else_is_found_out() {
    let calls = std::cell::Cell::new(0);
    let look = |m: &SimMedium| {
        calls.set(calls.get() + 1);
        word(m, calls.get() % 3);
    };
    count(&MERGED, three_words, look);
}

#[test]
fn merging_loses_no_outcome() {
    let mut rng = Seeded::new(7);
    let mut spared = 0;
    for _ in 0..300 {
        let unit = *rng.choice(&[TearUnit::Word, TearUnit::Line]).unwrap();
        let spread = unit.bytes() as u64;
        let steps: Vec<(u8, u64, u64)> =
            (0..rng.usize(2..7)).map(|_| (rng.u8(..6), rng.u64(..6), rng.u64(1..4))).collect();
        let run = |m: &SimMedium| {
            for (nth, (kind, at, len)) in (1..).zip(&steps) {
                let bytes = vec![nth; (len * spread) as usize];
                match kind {
                    0 => m.barrier().unwrap(),
                    1 => m.mark(nth.into()),
                    2 => m.write_durable(at * spread, &bytes).unwrap(),
                    _ => m.write(at * spread, &bytes).unwrap(),
                }
            }
        };
        let table: Vec<u64> = (0..64).map(|_| rng.u64(..9)).collect();
        let judge = |m: &SimMedium| {
            let (mut at, mut outcome) = (0, Vec::new());
            for _ in 0..4 {
                let mut byte = [0];
                m.read(table[at] * spread, &mut byte).unwrap();
                at = (at * 7 + usize::from(byte[0]) + 1) % table.len();
                outcome.push(byte[0]);
            }
            outcome
        };
        let outcomes = |limits: &ClassLimits| {
            let mut found = BTreeSet::new();
            let keep = |image: &indelible_testing::CrashImage, m: &SimMedium| {
                found.insert((image.last_mark(), judge(m)));
                Ok::<(), String>(())
            };
            let report = for_each_class(&medium(unit), run, keep, limits).unwrap();
            (found, report.judged)
        };
        let ((all, made), (merged, judged)) = (outcomes(&ALL), outcomes(&MERGED));
        assert_eq!(all, merged, "{steps:?} {table:?}");
        spared += made - judged;
        let mut everywhere = BTreeSet::new();
        let keep = |image: &indelible_testing::CrashImage| {
            everywhere.insert((image.last_mark(), judge(&image.medium())));
            Ok::<(), String>(())
        };
        let limits = indelible_testing::Limits { exhaustive: u64::MAX, ..Default::default() };
        for_each_crash(&medium(unit), run, keep, &limits).unwrap();
        assert_eq!(everywhere, merged, "{steps:?} {table:?}");
    }
    assert!(spared > 10_000, "merging spared {spared} images only");
}
