//! Layers of evidence, small enough to run against every mutant.
//!
//! A layer returns its finding; the intact protocol has none. Add one as a function and a line in
//! [`LAYERS`].

use super::common::{CONFIG, SEED, Verdict, two_writers};
use super::{damage, demand, repairs};
use crate::crashes::{Chosen, Pools, at_once, commits, guarded, recovery_of, sweep};
use indelible_store::Mutant;
use indelible_store::store::{FormatOptions, Severity, Store};
use indelible_store::table::Key;
use indelible_testing::oracle::{
    How, PROCESSES, Program, Start, Step, Together, Transactions, random, short,
};
use indelible_testing::pool::{Snapshot, check_tiling, process, psync, snapshot};
use indelible_testing::rules::whenever_pages_are_dropped;
use indelible_testing::scenario::{formatted, judge_medium, judge_state, media};
use indelible_testing::{Choice, ClassLimits, Fault, Limits, OpKind, SimMedium, for_each_crash};
use std::sync::Arc;

pub(super) struct Layer {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) run: fn(&Pools) -> Verdict,
}

impl Layer {
    pub(super) fn reaches(&self, mutant: Mutant) -> bool {
        !BENEATH.contains(&mutant) && (self.name == DEMAND || !demand::watch(mutant))
    }
}

const DEMAND: &str = "demand";

/// Fast ones first, as the short form ends once a mutant was noticed twice.
pub(super) const LAYERS: &[Layer] = &[
    Layer { name: "barriers", what: "each barrier and each durable write fails once", run: barriers },
    Layer { name: "format", what: "power cuts while a pool is formatted", run: format },
    Layer { name: "damage", what: "damage to what a dead writer left, line by line", run: damage::run },
    Layer { name: "dropped", what: "pages are lost and dropped before any read of a call", run: dropped },
    Layer { name: "repair", what: "power cuts during repairs", run: repairs::run },
    Layer {
        name: "commits",
        what: "transactions of several objects, with failures, deaths and power cuts",
        run: transactions,
    },
    Layer {
        name: DEMAND,
        what: "random programs of objects on demand, judged across objects",
        run: on_demand,
    },
    Layer { name: "check", what: "the pool's own check after random programs", run: check },
    Layer { name: "model", what: "random programs against the model, without power cuts", run: model },
    Layer { name: "at once", what: "processes interleaved at every operation", run: interleaved },
    Layer { name: "deaths", what: "processes that die in a call, and others that go on", run: deaths },
    Layer { name: "images", what: "every image of short programs", run: images },
    Layer {
        name: "random",
        what: "random programs against the model, with power cuts",
        run: random_programs,
    },
    Layer { name: "recover", what: "power cuts during recovery", run: recoveries },
    Layer { name: "failing", what: "operations that fail in programs that go on", run: failing_programs },
];

/// Mutants beneath the simulated medium: the rig must notice them.
pub(super) const BENEATH: &[Mutant] = &[Mutant::NoWriteBack, Mutant::NoFence];

const KEY: Key<'static> = Key(&[]);

const MEDIA: [usize; 2] = [2, 5];

fn images(pools: &Pools) -> Verdict {
    let limits = ClassLimits { seed: SEED, ..ClassLimits::default() };
    for (name, start, program) in short() {
        for medium in MEDIA {
            let chosen = Chosen { start, medium, program: program.clone(), seed: SEED };
            chosen.exhaust(pools, &limits).map_err(|cause| format!("{name}: {cause}"))?;
        }
    }
    Ok(())
}

fn random_programs(pools: &Pools) -> Verdict {
    let limits = ClassLimits { per_point: 40, torn: 2, seed: SEED, merge: true };
    (0..24).try_for_each(|nth| Chosen::new(SEED, nth).exhaust(pools, &limits).map(drop))
}

fn recoveries(pools: &Pools) -> Verdict {
    for (name, start, program) in short() {
        for medium in MEDIA {
            let chosen = Chosen { start, medium, program: program.clone(), seed: SEED };
            recovery_of(&chosen.case(pools, &chosen.program)).map_err(|cause| format!("{name}: {cause}"))?;
        }
    }
    Ok(())
}

fn run_and_cut(pools: &Pools, start: Start, medium: usize, program: &Program) -> Verdict {
    guarded(SEED, || {
        let medium = pools.get(start, medium).medium();
        let promise = program.run(&medium).map_err(|wrong| wrong.to_string())?;
        let image = medium.power_cut(Choice::None);
        judge_state(&image.medium(), &promise.allowed(&image)).map(drop)
    })
}

fn deaths(pools: &Pools) -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    for (name, start, program) in short() {
        for at in 0..program.0.len() {
            let (process, step) = &program.0[at];
            if matches!(step, Step::Die | Step::DieIn { .. } | Step::Store { .. }) {
                continue;
            }
            for (kind, nth, late) in KINDS
                .into_iter()
                .flat_map(|kind| (0..3).flat_map(move |nth| [false, true].map(|late| (kind, nth, late))))
            {
                let mut broken = Program(program.0[..at].to_vec());
                broken.0.push((*process, Step::DieIn { step: Box::new(step.clone()), kind, nth, late }));
                let other = (process + 1) % PROCESSES;
                for object in 0..3 {
                    broken.0.extend([
                        (other, Step::Attach { object }),
                        (other, Step::Store { object, at: 0, len: 10, value: 0xdd }),
                        (other, Step::Psync { objects: vec![object] }),
                    ]);
                }
                run_and_cut(pools, start, MEDIA[at % 2], &broken)
                    .map_err(|cause| format!("{name}, dead in {step:?} at {kind:?} {nth}: {cause}"))?;
            }
        }
    }
    Ok(())
}

fn undisturbed(nth: u64) -> (Start, usize, Program) {
    let chosen = Chosen::new(SEED, nth);
    let mut rng = fastrand::Rng::with_seed(nth);
    let mut program = random(chosen.start, 80, &mut rng);
    program.0.retain(|(_, step)| !matches!(step, Step::Die | Step::DieIn { .. }));
    (chosen.start, chosen.medium, program)
}

fn model(pools: &Pools) -> Verdict {
    (0..60).try_for_each(|nth| {
        let (start, medium, program) = undisturbed(nth);
        guarded(SEED, || {
            program.run(&pools.get(start, medium).medium()).map(drop).map_err(|wrong| wrong.to_string())
        })
    })
}

fn check(pools: &Pools) -> Verdict {
    (0..30).try_for_each(|nth| {
        let (start, medium, program) = undisturbed(nth);
        guarded(SEED, || {
            let medium = pools.get(start, medium).medium();
            let _ = program.run(&medium);
            let image = medium.power_cut(Choice::All).medium();
            let report = Store::check(Arc::new(image), &mut |_, _| {}).map_err(|e| e.to_string())?;
            let wrong = report.findings.iter().find(|finding| finding.severity >= Severity::Warning);
            wrong.map_or(Ok(()), |finding| Err(format!("{finding:?}")))
        })
    })
}

fn barriers(_: &Pools) -> Verdict {
    for kind in [OpKind::Barrier, OpKind::WriteDurable] {
        for nth in 0..12 {
            guarded(SEED, || fault(kind, nth).map_err(|cause| format!("{kind:?} {nth} fails: {cause}")))?;
        }
    }
    Ok(())
}

fn fault(kind: OpKind, nth: u64) -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let (store, mut writers) = two_writers(&medium)?;
    medium.settle();
    let mut allowed = vec![snapshot(&store).map_err(|error| error.to_string())?];
    medium.fail_at(kind, nth, Fault::Io);
    for round in 1..5_u8 {
        for at in [0, 1] {
            let name = ["a", "b"][at];
            let bytes = [round; 9000];
            let done = psync(&mut writers[at], &[(0, &bytes)]).is_ok();
            let mut after: Vec<Snapshot> = allowed.clone();
            after
                .iter_mut()
                .filter_map(|state| state.get_mut(name))
                .for_each(|state| state.2 = bytes.to_vec());
            if done {
                allowed = after;
            } else {
                allowed.extend(after);
            }
        }
        writers.iter().for_each(|writer| drop(writer.checkpoint()));
    }
    medium.clear_faults();
    for choice in [Choice::None, Choice::All, Choice::Random(nth)] {
        judge_medium(&medium.power_cut(choice).medium(), &allowed)?;
    }
    Ok(())
}

fn failing_programs(pools: &Pools) -> Verdict {
    for (name, start, program) in short() {
        for (medium, stride) in MEDIA.into_iter().zip([50, 12]) {
            sweep(pools.get(start, medium), &program, SEED, stride)
                .map_err(|cause| format!("{name}: {cause}"))?;
        }
    }
    Ok(())
}

fn interleaved(_: &Pools) -> Verdict {
    (0..12).try_for_each(|seed| {
        let how = How::Processes;
        let together = Together { how, actors: 3, steps: 16, fails: seed % 3 == 0, seed };
        at_once(media()[seed as usize % media().len()], together).map(drop)
    })
}

fn transactions(_: &Pools) -> Verdict {
    (0..24).try_for_each(|seed| {
        let program = Transactions { steps: 24, fails: seed % 3 > 0, dies: seed % 2 == 0, seed };
        commits(media()[MEDIA[seed as usize / 2 % 2]], program).map(drop)
    })
}

fn on_demand(_: &Pools) -> Verdict {
    demand::random()
}

fn format(_: &Pools) -> Verdict {
    guarded(SEED, || {
        let medium = SimMedium::new(1 << 20, CONFIG);
        let how = FormatOptions { zeroed: true, ..FormatOptions::default() };
        let run = |medium: &SimMedium| drop(Store::format(Arc::new(medium.handle()), process(1), &how));
        let judge = |image: &indelible_testing::CrashImage| {
            Store::open(Arc::new(image.medium()), process(2)).map_or(Ok(()), |store| check_tiling(&store))
        };
        for_each_crash(&medium, run, judge, &Limits::default())
            .map(drop)
            .map_err(|failure| failure.to_string())
    })
}

fn dropped(_: &Pools) -> Verdict {
    let key = KEY;
    whenever_pages_are_dropped(&["10", "renamed"], |store| store.rename("10", "renamed", key))?;
    whenever_pages_are_dropped(&["11"], |store| store.destroy("11", key))?;
    whenever_pages_are_dropped(&["12"], |store| store.resize("12", key, 50_000).map(drop))?;
    whenever_pages_are_dropped(&["13"], |store| store.attach_writer("13", key)?.detach())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_as_it_is_passes_every_quick_layer() {
        let pools = Pools::new();
        for layer in LAYERS.iter().take_while(|layer| layer.name != "deaths") {
            (layer.run)(&pools).unwrap_or_else(|cause| panic!("{}: {cause}", layer.name));
        }
    }

    #[test]
    fn programs_of_transactions_notice_broken_commits() {
        let broken = [
            Mutant::CommitNotAwaited,
            Mutant::CommitsReordered,
            Mutant::CommitOlderLine,
            Mutant::CommitApart,
            Mutant::CommitFailureForgotten,
        ];
        for mutant in broken {
            let verdict = indelible_store::with_mutant(mutant, || transactions(&Pools::new()));
            assert!(verdict.is_err(), "{mutant:?} goes unnoticed");
        }
    }
}
