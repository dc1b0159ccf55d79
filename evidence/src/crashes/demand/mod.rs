//! Programs of processes that have objects on demand, transactional ones, or both in one
//! transaction, against the commits acknowledged across objects.
//!
//! A [`Step`] is one call of one process: attaches, commits, waits for durability wherever code can
//! run, leaves, also within transactions and without room; recoveries, sweeps, snapshots and
//! backups by others, also between any two operations of a call; copies of the pool's file, and
//! calls on these; sizes; deaths, failures, power cuts.
//!
//! # What is judged
//!
//! 1. Each transaction has a number, which it stores to a cell of its own in each of its objects:
//!    it is in all of them, or in none.
//! 2. A transaction that returned is there after the death of its process.
//! 3. A transaction that a call acknowledged as durable is there after a power cut: `tx_sync`,
//!    `psync`, a detach, a recovery or an attach that returned, and `pending` that has none.
//! 4. The transactions of a process that are there after a power cut are its first ones, without a
//!    gap.
//! 5. No call fails but for a reason: another process has the object, there is no room, or an
//!    operation of the medium failed. Commits in memory are never gone.
//! 6. A copy of the file is one state of the pool, and takes nothing from it. So are a backup and a
//!    snapshot.
//!
//! Processes are handles of one medium, with a pool each; their memory is in /dev/shm, as ever. Any
//! part of a program is a program.

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
use indelible_testing::scenario::judge_by;
use indelible_testing::{Choice, Fault, Limits, OpKind, SimConfig};
use std::collections::HashSet;

use random::random;
use short::{beside_an_attach, short};

/// Processes of a program.
const PROCESSES: usize = 3;

/// Objects: two on demand, a large one on demand, and a transactional one.
const OBJECTS: [&str; 4] = ["a", "b", "large", "transactional"];
const LARGE: usize = 2;
const TRANSACTIONAL: usize = 3;

/// The place that code runs at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The process's thread, between its transactions.
    Between,
    /// An action on commit.
    OnCommit,
    /// An action on abort.
    OnAbort,
    /// The end of a thread that has committed.
    ThreadEnd,
    /// A thread without a transaction.
    Elsewhere,
    /// Within a transaction, where it is refused.
    Within,
}

/// A call on the copy of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnCopy {
    Collect,
    Recover,
    Read,
}

/// One step of one process; objects go by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// `apart`: a transactional object is not in one memory with those on demand.
    Attach {
        object: usize,
        apart: bool,
    },
    /// A transaction on those that are attached of the objects. `wide`: it changes each page.
    Commit {
        objects: Vec<usize>,
        wide: bool,
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
    /// Drops the object within a transaction on another one.
    Leave {
        object: usize,
        within: usize,
    },
    /// Attaches for reading.
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
    /// Takes all room that the pool has.
    Fill,
    /// Gives it back.
    Empty,
    /// Copies the file as it is.
    CopyFile,
    OnCopy(OnCopy),
    Die,
    /// The process dies in the `nth` operation of this kind that the step makes.
    DieIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        late: bool,
    },
    /// That operation fails.
    FailIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        fault: Fault,
    },
    /// Steps of this process and of another one: the first makes so many operations of the medium,
    /// then the other one, then the first makes its others.
    AtOnce {
        own: Vec<Step>,
        other: usize,
        its: Vec<Step>,
        switches: [u64; 2],
    },
    /// All processes are gone, and memory.
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

/// A program, and the choices that decide its images.
pub(crate) struct Demand {
    config: SimConfig,
    program: Program<Step>,
    seed: u64,
}

/// How thoroughly random programs are cut.
const SAMPLE: Limits = Limits { exhaustive: 4, singles: 1, random: 2, points: 60, seed: 0 };
/// How thoroughly short ones are.
const WHOLE: Limits = Limits { exhaustive: 32, singles: 4, random: 6, points: u64::MAX, seed: 0 };

/// Calls beside an attach.
fn beside() -> [Step; 4] {
    [Step::Collect, Step::CopyFile, Step::Read { object: 0 }, Step::Snapshot { object: 0 }]
}

/// Operations after which processes switch, at most, in the programs of [`Demand::beside`].
const SWITCHES: [u64; 2] = [120, 60];

impl Demand {
    /// The `nth` random program of a seed.
    pub(crate) fn new(config: SimConfig, seed: u64, nth: u64) -> Demand {
        let mut rng =
            fastrand::Rng::with_seed(seed ^ nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let len = [6, 12, 24, 40][rng.usize(..4)];
        Demand { config, program: random(len, &mut rng), seed: rng.u64(..) }
    }

    /// The short programs, by name.
    pub(crate) fn short(config: SimConfig, seed: u64) -> Vec<(String, Demand)> {
        let of = |(name, program)| (name, Demand { config, program, seed });
        short().into_iter().map(of).collect()
    }

    /// The `nth` program of a call between two operations of an attach, a commit and a death, all
    /// of which it takes in turn. `None`: there are fewer.
    pub(crate) fn beside(config: SimConfig, seed: u64, nth: u64) -> Option<Demand> {
        let calls = beside();
        let [first, second] = SWITCHES;
        let call = calls.get((nth / (first * second)) as usize)?;
        let switches = [nth % (first * second) / second, nth % second];
        Some(Demand { config, program: beside_an_attach(call, switches), seed })
    }

    /// Runs the program, and samples what power cuts leave of it.
    pub(crate) fn judge(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, Some(&SAMPLE))
    }

    /// The same, cut everywhere.
    pub(crate) fn judge_whole(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, Some(&WHOLE))
    }

    /// Runs the program alone.
    pub(crate) fn perform(&self) -> Result<Judged, String> {
        self.judge_program(&self.program, None)
    }

    /// The smallest program found that violates a rule, and the rule.
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

    /// `limits`: of the images; `None`: there are none.
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
                    judge_by(&image.medium(), |found| done.judge(moment, found))
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
