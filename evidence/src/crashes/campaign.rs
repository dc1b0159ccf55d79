use super::demand::Demand;
use super::judge::{Case, Judged, SAMPLE, at_once, commits, cut_beside_stores, describe, sweep};
use indelible_testing::oracle::{
    Cuts, How, Program, Start, Together, Transactions, random, short, shrink, starts,
};
use indelible_testing::scenario::media;
use indelible_testing::{ClassLimits, CrashImage, Limits, SimConfig};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) images: u64,
    pub(crate) threads: usize,
    /// Time to begin random programs; findings then depend on the machine.
    pub(crate) random: Option<Duration>,
    pub(crate) every: usize,
    /// Runs each `stride`th program with failing operations. 1: a campaign.
    pub(crate) stride: u64,
    pub(crate) only: Option<u64>,
    pub(crate) on_demand: bool,
}

#[derive(Default)]
pub(crate) struct Done {
    pub(crate) judged: Judged,
    pub(crate) lines: Vec<String>,
    pub(crate) failure: Option<String>,
}

pub(crate) struct Pools(Vec<OnceLock<CrashImage>>);

impl Pools {
    pub(crate) fn new() -> Self {
        Pools((0..starts().len() * media().len()).map(|_| OnceLock::new()).collect())
    }

    pub(crate) fn get(&self, start: Start, medium: usize) -> &CrashImage {
        let at = starts().iter().position(|other| *other == start).unwrap_or(0);
        // Apart from programs' seeds, so that no two objects get the same ID.
        let seed = !(at as u64);
        let make = || indelible_store::with_seed(seed, || start.pool(media()[medium]));
        self.0[at * media().len() + medium].get_or_init(make)
    }
}

pub(crate) struct Chosen {
    pub(crate) start: Start,
    pub(crate) medium: usize,
    pub(crate) program: Program,
    pub(crate) seed: u64,
}

impl Chosen {
    pub(crate) fn new(seed: u64, nth: u64) -> Chosen {
        let mut rng =
            fastrand::Rng::with_seed(seed ^ nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start = starts()[rng.usize(..starts().len())];
        let medium = rng.usize(..media().len());
        let len = [6, 12, 24, 48][rng.usize(..4)];
        Chosen { start, medium, program: random(start, len, &mut rng), seed: rng.u64(..) }
    }

    pub(crate) fn judge(&self, pools: &Pools, limits: &Limits) -> Result<Judged, String> {
        self.case(pools, &self.program).judge(&self.classes(), limits)
    }

    fn classes(&self) -> ClassLimits {
        ClassLimits { per_point: 400, torn: 5, seed: self.seed, merge: true }
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn exhaust(&self, pools: &Pools, limits: &ClassLimits) -> Result<Judged, String> {
        self.case(pools, &self.program).exhaust(limits, &mut HashSet::new()).map(|(judged, _)| judged)
    }

    pub(crate) fn case<'a>(&self, pools: &'a Pools, program: &'a Program) -> Case<'a> {
        Case { pool: pools.get(self.start, self.medium), program, seed: self.seed }
    }

    fn explain(&self, pools: &Pools, limits: &Limits, cause: String) -> String {
        let mut last = cause;
        let small =
            shrink(&self.program, |program| match self.case(pools, program).judge(&self.classes(), limits) {
                Err(cause) => {
                    last = cause;
                    true
                }
                Ok(_) => false,
            });
        format!("{last}\non {}, from {:?}:\n{small:?}", describe(media()[self.medium]), self.start)
    }
}

#[derive(Default)]
struct InOrder {
    waiting: BTreeMap<u64, Result<Judged, String>>,
    next: u64,
    judged: Judged,
    failure: Option<(u64, String)>,
}

impl InOrder {
    fn take(&mut self, number: u64, result: Result<Judged, String>, aim: u64) -> bool {
        self.waiting.insert(number, result);
        while !self.is_done(aim)
            && let Some(result) = self.waiting.remove(&self.next)
        {
            match result {
                Ok(judged) => self.judged.join(judged),
                Err(cause) => self.failure = Some((self.next, cause)),
            }
            self.next += 1;
        }
        self.is_done(aim)
    }

    fn is_done(&self, aim: u64) -> bool {
        self.failure.is_some() || self.judged.counts.judged() >= aim
    }
}

fn in_order(
    threads: usize,
    aim: u64,
    end: u64,
    until: Option<Instant>,
    bar: &ProgressBar,
    work: impl Fn(u64) -> Result<Judged, String> + Sync,
) -> InOrder {
    let (next, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let results = Mutex::new(InOrder::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end || until.is_some_and(|until| Instant::now() >= until) {
                        break;
                    }
                    let result = work(number);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Ok(judged) = &result {
                        bar.inc(judged.counts.judged());
                    }
                    enough.fetch_or(results.take(number, result, aim), Ordering::Relaxed);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn run(plan: &Plan, bar: &ProgressBar) -> Done {
    let (pools, mut done) = (Pools::new(), Done::default());
    let sample = SAMPLE;
    if plan.on_demand {
        let is_bounded = plan.images < u64::MAX || plan.random.is_some();
        let programs = if is_bounded { u64::MAX } else { 1000 / plan.stride };
        let (from, end) = plan.only.map_or((0, programs), |nth| (nth, nth + 1));
        let until = plan.random.map(|time| Instant::now() + time);
        return on_demand(plan, (from, end), (plan.images, until), bar);
    }
    if let Some(nth) = plan.only {
        let chosen = Chosen::new(plan.seed, nth);
        match chosen.judge(&pools, &sample) {
            Ok(judged) => done.judged = judged,
            Err(cause) => done.failure = Some(chosen.explain(&pools, &sample, cause)),
        }
        return done;
    }
    bar.set_message("every image of short programs");
    let kinds = media();
    let programs: Vec<_> = short().into_iter().step_by(plan.every).collect();
    let limits = ClassLimits { seed: plan.seed, ..ClassLimits::default() };
    let lines = Mutex::new(BTreeMap::new());
    let exhausted =
        in_order(plan.threads, u64::MAX, (programs.len() * kinds.len()) as u64, None, bar, |number| {
            let (name, start, program) = &programs[number as usize / kinds.len()];
            let medium = number as usize % kinds.len();
            let case = Case { pool: pools.get(*start, medium), program, seed: plan.seed };
            let (judged, log2) = case
                .exhaust(&limits, &mut HashSet::new())
                .map_err(|cause| format!("{name}, on {}: {cause}\n{program:?}", describe(kinds[medium])))?;
            let what = format!("{name}, on {}", describe(kinds[medium]));
            if judged.counts.covered == 0 {
                return Err(format!("{what}: more than {} classes at some point", limits.per_point));
            }
            let line = format!("{what}: 2^{log2:.1} images in {} classes", judged.counts.classes);
            lines.lock().unwrap_or_else(PoisonError::into_inner).insert(number, line);
            Ok(judged)
        });
    done.lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect();
    done.judged = exhausted.judged;
    if let Some((_, cause)) = exhausted.failure {
        done.judged.counts.violations = 1;
        done.failure = Some(cause);
        return done;
    }
    bar.set_message("calls that fail, and all processes go on");
    let swept =
        in_order(plan.threads, u64::MAX, (programs.len() * kinds.len()) as u64, None, bar, |number| {
            let (name, start, program) = &programs[number as usize / kinds.len()];
            let medium = number as usize % kinds.len();
            sweep(pools.get(*start, medium), program, plan.seed ^ number, plan.stride)
                .map_err(|cause| format!("{name}, on {}: {cause}", describe(kinds[medium])))
        });
    bar.set_message("processes and threads at once");
    let together = in_order(plan.threads, u64::MAX, 2000 / plan.stride, None, bar, |number| {
        let how = if number % 2 == 0 { How::Processes } else { How::Threads };
        let fails = number % 3 == 0;
        let (actors, seed) = (2 + number as usize % 3, plan.seed ^ number << 8);
        at_once(kinds[number as usize % kinds.len()], Together { how, actors, steps: 20, fails, seed })
    });
    bar.set_message("psync cuts beside storing threads");
    let cuts = in_order(plan.threads, u64::MAX, 1000 / plan.stride, None, bar, |number| {
        let (threads, seed) = (1 + number as usize % 4, plan.seed ^ number << 8);
        let cuts = Cuts { threads, cuts: 8, held: true, seed };
        cut_beside_stores(kinds[number as usize % kinds.len()], cuts)
    });
    bar.set_message("transactions of several objects");
    let (aim, programs) =
        if plan.stride == 1 { (plan.images / 2, u64::MAX) } else { (u64::MAX, 2000 / plan.stride) };
    let committed = in_order(plan.threads, aim, programs, None, bar, |number| {
        let (fails, dies) = (number % 3 > 0, number % 2 == 0);
        let program = Transactions { steps: 24, fails, dies, seed: plan.seed ^ number << 8 };
        commits(kinds[number as usize % kinds.len()], program)
    });
    for phase in [swept, together, cuts, committed] {
        done.judged.join(phase.judged);
        if let Some((_, cause)) = phase.failure {
            done.judged.counts.violations = 1;
            done.failure = Some(cause);
            return done;
        }
    }
    // A quarter of a campaign's images; so many random programs otherwise.
    let (aim, programs) =
        if plan.stride == 1 { (plan.images / 4, u64::MAX) } else { (u64::MAX, 1000 / plan.stride) };
    let demanded = on_demand(plan, (0, programs), (aim, None), bar);
    done.judged.join(demanded.judged);
    if demanded.failure.is_some() {
        done.failure = demanded.failure;
        return done;
    }
    bar.set_message("random programs");
    let aim = plan.images.saturating_sub(done.judged.counts.judged()).max(plan.images / 2);
    let until = plan.random.map(|time| Instant::now() + time);
    let sampled = in_order(plan.threads, aim, u64::MAX, until, bar, |number| {
        Chosen::new(plan.seed, number).judge(&pools, &sample)
    });
    done.judged.join(sampled.judged);
    if let Some((number, cause)) = sampled.failure {
        done.judged.counts.violations = 1;
        bar.set_message("a violation: looking for a smaller program that shows it");
        let text = Chosen::new(plan.seed, number).explain(&pools, &sample, cause);
        let again = format!("pmo-evidence crashes --seed {} --program {number}", plan.seed);
        done.failure = Some(format!("random program {number} ({again}): {text}"));
    }
    done
}

fn on_demand(
    plan: &Plan,
    (from, end): (u64, u64),
    (images, until): (u64, Option<Instant>),
    bar: &ProgressBar,
) -> Done {
    let (kinds, mut done) = (media(), Done::default());
    let kind = |number: u64| kinds[(number % kinds.len() as u64) as usize];
    if from == 0 {
        bar.set_message("short programs of objects on demand");
        let short = |kind: &SimConfig| Demand::short(*kind, plan.seed);
        // A campaign runs each on every medium; the short form runs each on one.
        let whole = plan.stride == 1;
        let programs: Vec<_> = match whole {
            true => kinds.iter().flat_map(short).collect(),
            false => {
                (0..short(&kinds[0]).len()).map(|nth| short(&kinds[nth % kinds.len()]).remove(nth)).collect()
            }
        };
        let short = in_order(plan.threads, u64::MAX, programs.len() as u64, None, bar, |number| {
            let (name, demand) = &programs[number as usize];
            let judged = if whole { demand.judge_whole() } else { demand.judge() };
            judged.map_err(|cause| format!("{name}: {}", demand.explain(cause)))
        });
        bar.set_message("calls beside an attach");
        // Switches do not depend on the medium.
        let programs = match Demand::beside(kinds[0], plan.seed) {
            Ok(all) => all.into_iter().step_by(4 * plan.stride as usize - 3).collect::<Vec<_>>(),
            Err(cause) => {
                done.judged.counts.violations = 1;
                done.failure = Some(cause);
                return done;
            }
        };
        let beside = in_order(plan.threads, u64::MAX, programs.len() as u64, None, bar, |number| {
            let demand = &programs[number as usize];
            demand.perform().map_err(|cause| demand.explain(cause))
        });
        for phase in [short, beside] {
            done.judged.join(phase.judged);
            if let Some((_, cause)) = phase.failure {
                done.judged.counts.violations = 1;
                done.failure = Some(cause);
                return done;
            }
        }
    }
    bar.set_message("objects on demand");
    let demand = |number: u64| Demand::new(kind(number), plan.seed, number);
    let aim = images.saturating_sub(done.judged.counts.judged());
    let ran = in_order(plan.threads, aim, end - from, until, bar, |number| demand(from + number).judge());
    done.judged.join(ran.judged);
    if let Some((number, cause)) = ran.failure {
        let number = from + number;
        let again = format!("pmo-evidence crashes --on-demand --seed {} --program {number}", plan.seed);
        bar.println(format!("program {number} ({again}): {cause}"));
        bar.set_message("a violation: looking for a smaller program that shows it");
        done.judged.counts.violations = 1;
        done.failure = Some(format!("program {number} ({again}): {}", demand(number).explain(cause)));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use indelible_testing::Discard;

    fn plan(threads: usize) -> Plan {
        Plan {
            seed: 3,
            images: 400,
            threads,
            random: None,
            every: 16,
            stride: 100,
            only: None,
            on_demand: false,
        }
    }

    #[test]
    fn findings_do_not_depend_on_threads() {
        let begin = Instant::now();
        let (one, three) = (run(&plan(1), &ProgressBar::hidden()), run(&plan(3), &ProgressBar::hidden()));
        println!("{} images twice in {:?}", one.judged.counts.judged(), begin.elapsed());
        assert_eq!((&one.failure, &three.failure), (&None, &None));
        let counted = |done: &Done| {
            let counts = &done.judged.counts;
            [
                counts.programs,
                counts.covered,
                counts.classes,
                counts.recovery,
                counts.second,
                counts.cuts,
                counts.beside,
                counts.commits,
                counts.of_commits,
                counts.on_demand,
            ]
        };
        assert_eq!(counted(&one), counted(&three));
        let counts = one.judged.counts;
        assert!(counts.judged() >= 400 && counts.recovery > 0 && counts.second > 0, "{counts:?}");
        assert!(counts.of_commits > counts.commits, "{counts:?}");
        assert!(counts.sweeps > 0 && counts.failures > 0 && counts.together > 0, "{counts:?}");
        assert!(counts.on_demand > 0 && counts.of_demand > 0, "{counts:?}");
        assert!(counts.cuts > 0 && counts.beside > 0 && counts.commits > 0, "{counts:?}");
    }

    #[test]
    fn merging_changes_no_verdict() {
        merging_under_every(4, 3);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn merging_changes_no_verdict_under_any_mutant() {
        merging_under_every(1, 10);
    }

    /// For every `step`th broken rule, all images and one of each class give the same verdict; at
    /// least `least` find the rule.
    fn merging_under_every(step: usize, least: u64) {
        let config = SimConfig { discard: Discard::Keep, ..media()[4] };
        let used = indelible_store::with_seed(0, || Start::Used.pool(config));
        let all = ClassLimits { per_point: 1 << 12, torn: u64::MAX, merge: false, seed: 1 };
        let merged = ClassLimits { merge: true, torn: 3, ..all };
        let verdicts = |limits: &ClassLimits| -> Vec<Option<bool>> {
            let few = ["rename", "psync twice", "psyncs around a checkpoint", "load and forget", "shrink"];
            let mut verdicts = Vec::new();
            for (_, start, program) in short().iter().filter(|(name, ..)| few.contains(name)) {
                assert_eq!(*start, Start::Used);
                let case = Case { pool: &used, program, seed: 1 };
                verdicts.push(match case.exhaust(limits, &mut HashSet::new()) {
                    Ok((judged, _)) => (judged.counts.cut_short == 0).then_some(true),
                    Err(_) => Some(false),
                });
            }
            verdicts
        };
        assert_eq!(verdicts(&all), [Some(true); 5]);
        assert_eq!(verdicts(&merged), [Some(true); 5]);
        #[cfg(feature = "mutants")]
        {
            let mut caught = 0;
            for mutant in indelible_store::Mutant::PROTOCOL.iter().step_by(step) {
                let (all, merged) =
                    indelible_store::with_mutant(*mutant, || (verdicts(&all), verdicts(&merged)));
                for (all, merged) in all.into_iter().zip(merged) {
                    assert!(all.is_none() || all == merged, "{mutant:?}");
                    caught += u64::from(all == Some(false));
                }
            }
            assert!(caught >= least, "only {caught} mutants are noticed at all");
        }
    }
}
