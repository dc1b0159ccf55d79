//! Judges the images of power cuts of a program.
//!
//! Each image is recovered and compared with the states that the model allows. One in [`FULL`] is
//! also checked before recovery, used, and compared again.

use super::contents::{Contents, Phase};
use super::counts::Counts;
use indelible_store::store::Store;
use indelible_store::with_seed;
use indelible_testing::oracle::{Cuts, Program, Promise, Together, Transactions, failing};
use indelible_testing::pool::{Snapshot, process, recover_all, snapshot};
use indelible_testing::scenario::{allowed, formatted, judge_by, judge_medium, judge_state};
use indelible_testing::{
    Choice, ClassLimits, CrashImage, Limits, SimConfig, SimMedium, for_each_class, for_each_crash,
};
use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const FULL: u64 = 16;
/// One of so many images gets power cuts during recovery.
const NESTED: u64 = 40;

pub(crate) const SAMPLE: Limits = Limits { exhaustive: 32, singles: 3, random: 5, points: 120, seed: 0 };
const RECOVERY: Limits = Limits { exhaustive: 4, singles: 1, random: 2, points: 12, seed: 0 };
const SECOND: Limits = Limits { exhaustive: 2, singles: 0, random: 1, points: 4, seed: 0 };

pub(super) fn describe(config: SimConfig) -> String {
    let group = if config.disk { ", grouped commits" } else { "" };
    format!("a medium that tears at {} bytes{group}", config.tear_unit.bytes())
}

#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) pool: &'a CrashImage,
    pub(crate) program: &'a Program,
    pub(crate) seed: u64,
}

#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) counts: Counts,
    pub(crate) contents: Contents,
}

impl Judged {
    pub(crate) fn join(&mut self, other: Judged) {
        self.counts += other.counts;
        self.contents.join(other.contents);
    }
}

type Seen = HashSet<(u64, usize)>;

pub(crate) fn guarded<R>(seed: u64, body: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    let seed = fastrand::Rng::with_seed(seed).u64(..);
    catch_unwind(AssertUnwindSafe(|| with_seed(seed, body))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn judge(image: &CrashImage, allowed: &[impl Borrow<Snapshot>], in_full: bool) -> Result<(), String> {
    let verdict = if in_full { judge_medium } else { judge_state };
    verdict(&image.medium(), allowed).map(drop)
}

impl Case<'_> {
    fn run(&self, medium: &SimMedium) -> Result<Promise, String> {
        medium.reseed(self.seed);
        self.program.run(medium).map_err(|wrong| wrong.to_string())
    }

    pub(crate) fn judge(&self, classes: &ClassLimits, limits: &Limits) -> Result<Judged, String> {
        let mut seen = Seen::new();
        let (mut judged, _) = self.exhaust(classes, &mut seen)?;
        judged.join(self.sample(limits, &mut seen)?);
        Ok(judged)
    }

    fn sample(&self, limits: &Limits, seen: &mut Seen) -> Result<Judged, String> {
        guarded(self.seed, || {
            let medium = self.pool.medium();
            let (counts, contents) = (Cell::new(Counts::default()), RefCell::new(Contents::default()));
            let promise = RefCell::new(Err("the program did not run".to_owned()));
            let report = for_each_crash(
                &medium,
                |medium| drop(promise.replace(self.run(medium))),
                |image| {
                    let promise = promise.borrow();
                    let promise = promise.as_ref().map_err(Clone::clone)?;
                    if !seen.insert((image.digest(), image.marks().len())) {
                        return Ok(());
                    }
                    contents.borrow_mut().add(Phase::Before, image.digest());
                    let mut count = counts.get();
                    let allowed = promise.allowed(image);
                    let in_full = count.distinct % FULL == 0;
                    judge(image, &allowed, in_full)?;
                    let nested = count.distinct % NESTED == self.seed % NESTED;
                    count.distinct += 1;
                    count.full += u64::from(in_full);
                    counts.set(count);
                    let judged = |inner: &CrashImage, in_full| judge(inner, &allowed, in_full);
                    if nested { recovery(image, &judged, 1, &counts, &contents) } else { Ok(()) }
                },
                &Limits { seed: self.seed, ..*limits },
            );
            let report = report.map_err(|failure| failure.to_string())?;
            let mut counts = counts.get();
            counts.made = report.images;
            Ok(Judged { counts, contents: contents.into_inner() })
        })
    }

    /// Judges at least one image of each class; also returns log2 of their number.
    pub(crate) fn exhaust(&self, limits: &ClassLimits, seen: &mut Seen) -> Result<(Judged, f64), String> {
        guarded(self.seed, || {
            let medium = self.pool.medium();
            let mut counts = Counts { programs: 1, ..Counts::default() };
            let mut contents = Contents::default();
            let promise = RefCell::new(Err("the program did not run".to_owned()));
            let report = for_each_class(
                &medium,
                |medium| drop(promise.replace(self.run(medium))),
                |image, medium| {
                    let promise = promise.borrow();
                    let allowed = promise.as_ref().map_err(Clone::clone)?.allowed(image);
                    judge_state(medium, &allowed)?;
                    contents.add(Phase::Before, image.digest());
                    counts.classes += 1;
                    counts.distinct += u64::from(seen.insert((image.digest(), image.marks().len())));
                    if counts.classes % FULL == 1 {
                        counts.full += 1;
                        judge(image, &allowed, true)?;
                    }
                    Ok::<(), String>(())
                },
                limits,
            )
            .map_err(|failure| failure.to_string())?;
            if let Ok(promise) = &*promise.borrow() {
                counts.steps = promise.steps;
                counts.deaths = promise.deaths;
                counts.refused = promise.refused;
                counts.failures = promise.failures;
                counts.unknown = promise.unknown;
            }
            counts.points = report.points;
            counts.cut_short = report.cut_short;
            counts.covered = u64::from(report.cut_short == 0);
            counts.merged = report.merged;
            Ok((Judged { counts, contents }, report.legal_log2))
        })
    }
}

const FEW: Limits = Limits { exhaustive: 1, singles: 0, random: 1, points: 6, seed: 0 };

pub(crate) fn sweep(pool: &CrashImage, program: &Program, seed: u64, stride: u64) -> Result<Judged, String> {
    let mut all = Judged::default();
    failing(program, seed, stride, |program| {
        guarded(seed, || {
            let medium = pool.medium();
            medium.reseed(seed);
            let promise = program.run(&medium).map_err(|wrong| wrong.to_string())?;
            let limits = Limits { seed, ..FEW };
            for image in medium.power_cut_states(&limits).chain([medium.power_cut(Choice::None)]) {
                judge(&image, &promise.allowed(&image), false)
                    .map_err(|cause| format!("{cause} after {}", image.cut()))?;
                all.contents.add(Phase::Before, image.digest());
                all.counts.distinct += 1;
            }
            all.counts.programs += 1;
            all.counts.sweeps += 1;
            all.counts.steps += promise.steps;
            all.counts.failures += promise.failures;
            all.counts.unknown += promise.unknown;
            all.counts.deaths += promise.deaths;
            all.counts.refused += promise.refused;
            Ok(promise.failures > 0)
        })
    })?;
    Ok(all)
}

pub(crate) fn at_once(config: SimConfig, together: Together) -> Result<Judged, String> {
    guarded(together.seed, || {
        let medium = formatted(4 << 20, config);
        medium.reseed(together.seed);
        let shared = together.run(&medium).map_err(|cause| format!("{together:?}: {cause}"))?;
        let mut all = Judged::default();
        let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 40, seed: together.seed };
        for image in medium.power_cut_states(&limits) {
            judge_by(&image.medium(), |found| shared.judge(&image, found))
                .map_err(|cause| format!("{together:?}: {cause} after {}", image.cut()))?;
            all.contents.add(Phase::Before, image.digest());
            all.counts.distinct += 1;
        }
        all.counts.programs = 1;
        all.counts.together = 1;
        all.counts.steps = shared.calls;
        all.counts.unknown = shared.failures;
        Ok(all)
    })
}

pub(crate) fn cut_beside_stores(config: SimConfig, cuts: Cuts) -> Result<Judged, String> {
    guarded(cuts.seed, || {
        let medium = formatted(2 << 20, config);
        medium.reseed(cuts.seed);
        let made = cuts.run(&medium).map_err(|error| format!("{cuts:?}: {error}"))?;
        let mut all = Judged::default();
        let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 40, seed: cuts.seed };
        for image in medium.power_cut_states(&limits) {
            judge(&image, allowed(&image, &made.states), false)
                .map_err(|cause| format!("{cuts:?}: {cause} after {}", image.cut()))?;
            all.contents.add(Phase::Before, image.digest());
            all.counts.distinct += 1;
        }
        all.counts.programs = 1;
        all.counts.cuts = made.states.len() as u64 - 1;
        all.counts.steps = all.counts.cuts;
        all.counts.beside = made.beside;
        Ok(all)
    })
}

pub(crate) fn commits(config: SimConfig, program: Transactions) -> Result<Judged, String> {
    guarded(program.seed, || {
        let medium = formatted(2 << 20, config);
        medium.reseed(program.seed);
        let committed = program.run(&medium).map_err(|cause| format!("{program:?}: {cause}"))?;
        let (counts, contents) = (Cell::new(Counts::default()), RefCell::new(Contents::default()));
        let mut seen = Seen::new();
        let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 40, seed: program.seed };
        for image in medium.power_cut_states(&limits) {
            if !seen.insert((image.digest(), image.marks().len())) {
                continue;
            }
            let judged = |inner: &CrashImage, _| {
                judge_by(&inner.medium(), |found| committed.judge(&image, found)).map(drop)
            };
            let nested = counts.get().distinct % NESTED == program.seed % NESTED;
            judged(&image, false)
                .and_then(|()| if nested { recovery(&image, &judged, 1, &counts, &contents) } else { Ok(()) })
                .map_err(|cause| format!("{program:?}: {cause} after {}", image.cut()))?;
            contents.borrow_mut().add(Phase::Before, image.digest());
            counts.set(Counts { distinct: counts.get().distinct + 1, ..counts.get() });
        }
        let mut counts = counts.get();
        counts.of_commits = counts.judged();
        counts.programs = 1;
        counts.commits = committed.commits;
        counts.steps = committed.commits;
        counts.unknown = committed.failures;
        counts.deaths = committed.deaths;
        Ok(Judged { counts, contents: contents.into_inner() })
    })
}

/// Cuts the power during an image's recovery, and during the recovery from that. `judged` judges
/// cuts before the first recovery ends, in full if asked.
fn recovery(
    image: &CrashImage,
    judged: &dyn Fn(&CrashImage, bool) -> Result<(), String>,
    depth: u32,
    counts: &Cell<Counts>,
    contents: &RefCell<Contents>,
) -> Result<(), String> {
    let medium = image.medium();
    let decided = RefCell::new(Err("the recovery did not run".to_owned()));
    let nth = Cell::new(0);
    let recover = |medium: &SimMedium| {
        let store = Store::open(Arc::new(medium.handle()), process(8))?;
        recover_all(&store)?;
        snapshot(&store)
    };
    let report = for_each_crash(
        &medium,
        |medium| {
            let found = recover(medium).map_err(|error| error.to_string());
            if found.is_ok() {
                medium.mark(1);
            }
            drop(decided.replace(found));
        },
        |inner| {
            let decided = decided.borrow();
            let decided = decided.as_ref().map_err(Clone::clone)?;
            nth.set(nth.get() + 1);
            let mut count = counts.get();
            if depth == 1 {
                count.recovery += 1
            } else {
                count.second += 1
            }
            let in_full = nth.get() % FULL == 1;
            count.full += u64::from(in_full);
            counts.set(count);
            let done = inner.last_mark().is_some();
            let phase = if done { Phase::After } else { Phase::During };
            contents.borrow_mut().add(phase, inner.digest());
            if done {
                judge(inner, std::slice::from_ref(decided), in_full)?;
            } else {
                judged(inner, in_full)?;
            }
            if depth == 1 && nth.get().is_multiple_of(8) && !done {
                return recovery(inner, judged, 2, counts, contents);
            }
            Ok::<(), String>(())
        },
        &Limits { seed: image.digest(), ..if depth == 1 { RECOVERY } else { SECOND } },
    );
    report.map(drop).map_err(|failure| format!("during recovery, {depth} deep: {failure}"))
}

#[cfg(feature = "mutants")]
pub(crate) fn recovery_of(case: &Case<'_>) -> Result<(), String> {
    guarded(case.seed, || {
        let medium = case.pool.medium();
        let promise = case.run(&medium)?;
        let limits = Limits { exhaustive: 1, singles: 0, random: 0, points: 4, seed: case.seed };
        medium.power_cut_states(&limits).try_for_each(|image| {
            let allowed = promise.allowed(&image);
            let judged = |inner: &CrashImage, in_full| judge(inner, &allowed, in_full);
            recovery(&image, &judged, 2, &Cell::default(), &RefCell::default())
        })
    })
}
