//! Programs of processes with objects on demand, transactional ones, or both in one transaction.
//!
//! A [`Step`] is a call, a recovery or snapshot by others (also within a call), a copy of the file,
//! a death, a failure or a power cut.
//!
//! # What is judged
//!
//! 1. Each transaction stores its number to a cell of its own in each of its objects: it is in all
//!    of them or in none.
//! 2. A returned transaction outlives its process.
//! 3. A transaction acknowledged as durable (`tx_sync`, `psync`, detach, recovery, attach,
//!    `pending` without it) outlives a power cut.
//! 4. A power cut leaves a prefix of a process's transactions.
//! 5. A call fails only if another process has the object, there is no room, or an operation of the
//!    medium failed. Commits in memory are never gone.
//! 6. A copy of the file, a backup or a snapshot is one state of the pool and takes nothing from
//!    it.
//!
//! Processes are handles of one medium, with a pool each and memory in /dev/shm. Any part of a
//! program is a program.

mod found;
mod ledger;
mod memory;
mod others;
mod process;
mod random;
mod run;
mod short;
mod steps;
mod syncs;
mod threads;
mod transaction;
mod world;

use super::contents::{Contents, Phase};
use super::counts::Counts;
use super::judge::{Judged, describe, guarded};
use indelible_testing::oracle::{Program, Shrinks, shrink};
use indelible_testing::scenario::judge_objects;
use indelible_testing::{Choice, Fault, Limits, OpKind, SimConfig};
use std::collections::HashSet;

use random::random;
use short::{beside_an_attach, short};

const PROCESSES: usize = 3;

const OBJECTS: [&str; 4] = ["a", "b", "large", "transactional"];
const LARGE: usize = 2;
const TRANSACTIONAL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Between,
    OnCommit,
    OnAbort,
    ThreadEnd,
    Elsewhere,
    Within,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnCopy {
    Collect,
    Recover,
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// `apart`: a transactional object in a memory of its own.
    Attach {
        object: usize,
        apart: bool,
    },
    /// A transaction on the attached ones. `wide`: it changes each page.
    Commit {
        objects: Vec<usize>,
        wide: bool,
    },
    /// A transaction that only reads, on the attached ones.
    Look {
        objects: Vec<usize>,
    },
    Sync {
        object: usize,
        from: Place,
    },
    Psync {
        object: usize,
    },
    Pending {
        object: usize,
    },
    Detach {
        object: usize,
    },
    Leave {
        object: usize,
        within: usize,
    },
    Read {
        object: usize,
    },
    Recover,
    Collect,
    Snapshot {
        object: usize,
    },
    Backup,
    Resize {
        object: usize,
        pages: u64,
    },
    Lengthen,
    Fill,
    Empty,
    CopyFile,
    OnCopy(OnCopy),
    Die,
    /// The process dies in the step's `nth` operation of this kind.
    DieIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        late: bool,
    },
    FailIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        fault: Fault,
    },
    /// Steps of two processes: the first makes so many operations, then the other one, then the
    /// first ends.
    AtOnce {
        own: Vec<Step>,
        other: usize,
        its: Vec<Step>,
        switches: [u64; 2],
    },
    PowerCut {
        seed: u64,
    },
}

impl Shrinks for Step {
    fn simpler(&self) -> Vec<Step> {
        match self {
            Step::DieIn { step, .. } | Step::FailIn { step, .. } => vec![(**step).clone()],
            Step::AtOnce { own, other, its, switches } => {
                let without = |steps: &[Step], nth: usize| {
                    let mut fewer = steps.to_vec();
                    fewer.remove(nth);
                    fewer
                };
                let (other, switches) = (*other, *switches);
                let less = |own, its| Step::AtOnce { own, other, its, switches };
                let own_less = (0..own.len()).map(|nth| less(without(own, nth), its.clone()));
                own_less.chain((0..its.len()).map(|nth| less(own.clone(), without(its, nth)))).collect()
            }
            Step::Commit { objects, wide: true } => {
                vec![Step::Commit { objects: objects.clone(), wide: false }]
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Demand {
    config: SimConfig,
    program: Program<Step>,
    seed: u64,
}

const SAMPLE: Limits = Limits { exhaustive: 4, singles: 1, random: 2, points: 60, seed: 0 };
const WHOLE: Limits = Limits { exhaustive: 32, singles: 4, random: 6, points: u64::MAX, seed: 0 };

/// Most turns of a call: a call that takes more waits for another process.
const TURNS: u64 = 1000;
/// The calls of [`Demand::beside`].
static BESIDE: [Step; 5] = [
    Step::Collect,
    Step::CopyFile,
    Step::Read { object: 0 },
    Step::Snapshot { object: 0 },
    Step::Resize { object: 0, pages: 2 },
];

impl Demand {
    pub(crate) fn new(config: SimConfig, seed: u64, nth: u64) -> Demand {
        let mut rng =
            fastrand::Rng::with_seed(seed ^ nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let len = [6, 12, 24, 40][rng.usize(..4)];
        Demand { config, program: random(len, &mut rng), seed: rng.u64(..) }
    }

    pub(crate) fn short(config: SimConfig, seed: u64) -> Vec<(String, Demand)> {
        let of = |(name, program)| (name, Demand { config, program, seed });
        short().into_iter().map(of).collect()
    }

    /// Programs of a call between any two operations of an attach, a commit and a death.
    ///
    /// # Errors
    /// A call of which no part runs beside the attach violates a rule.
    pub(crate) fn beside(config: SimConfig, seed: u64) -> Result<Vec<Demand>, String> {
        let all = BESIDE.iter().map(|call| Self::beside_an_attach(&[0], call, config, seed));
        Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn beside_an_attach(
        objects: &[usize],
        call: &Step,
        config: SimConfig,
        seed: u64,
    ) -> Result<Vec<Demand>, String> {
        let of = |switches| beside_an_attach(objects, call, switches);
        // One runs after the other: this counts the turns that each takes.
        let turns = guarded(seed, || Ok(run::run(&of([u64::MAX; 2]), config, seed)?.turns))?;
        if turns.iter().any(|turns| *turns > TURNS) {
            return Err(format!("{call:?} waits after the death of a process: {turns:?} turns"));
        }
        let second = |first| (0..=turns[1]).map(move |second| [first, second]);
        let switches = (0..=turns[0]).flat_map(second);
        Ok(switches.map(|switches| Demand { config, program: of(switches), seed }).collect())
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn judge_short(names: &str, config: SimConfig, seed: u64) -> Result<(), String> {
        let all = Demand::short(config, seed).into_iter().filter(|(name, _)| name.starts_with(names));
        for (name, demand) in all {
            demand.judge().map_err(|cause| format!("{name}: {cause}"))?;
        }
        Ok(())
    }

    #[cfg(feature = "mutants")]
    pub(crate) fn judge_sweeps(
        objects: &[usize],
        step: usize,
        config: SimConfig,
        seed: u64,
    ) -> Result<(), String> {
        let all = Self::beside_an_attach(objects, &Step::Collect, config, seed)?;
        for demand in all.iter().step_by(step) {
            demand.perform().map_err(|cause| format!("{:?}: {cause}", demand.program))?;
        }
        Ok(())
    }

    pub(crate) fn judge(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, Some(&SAMPLE))
    }

    pub(crate) fn judge_whole(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, Some(&WHOLE))
    }

    pub(crate) fn perform(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, None)
    }

    pub(crate) fn explain(&self, cause: String) -> String {
        let mut last = cause;
        let small = shrink(&self.program, |program| match self.judge_program(program, Some(&SAMPLE)) {
            Err(cause) => {
                last = cause;
                true
            }
            Ok(_) => false,
        });
        format!("{last}\non {}, objects {OBJECTS:?}:\n{small:?}", describe(self.config))
    }

    /// `limits`: `None` makes no images.
    fn judge_program(&self, program: &Program<Step>, limits: Option<&Limits>) -> Result<Judged, String> {
        guarded(self.seed, || {
            let done = run::run(program, self.config, self.seed)?;
            let mut contents = Contents::default();
            let mut counts = Counts { programs: 1, on_demand: 1, ..done.counts };
            for segment in done.segments.iter().filter(|_| limits.is_some()) {
                let limits = Limits { seed: self.seed, ..*limits.unwrap_or(&SAMPLE) };
                let (medium, mut seen) = (&segment.medium, HashSet::new());
                let last = [medium.power_cut(Choice::None), medium.power_cut(Choice::All)];
                for image in medium.power_cut_states(&limits).chain(last) {
                    if !seen.insert((image.digest(), image.marks().len())) {
                        continue;
                    }
                    let moment = &segment.moments[image.last_mark().unwrap_or(0) as usize];
                    judge_objects(&image.medium(), others::is_no_filler, |found| done.judge(moment, found))
                        .map_err(|cause| format!("{cause}\nafter {}", image.cut()))?;
                    contents.add(Phase::Before, image.digest());
                    counts.distinct += 1;
                    counts.of_demand += 1;
                }
            }
            Ok(Judged { counts, contents })
        })
    }
}
