//! Layers of evidence, each small enough to be run against every mutant.
//!
//! A layer says what it found wrong, and nothing on the protocol as it is. To add one: a function and a
//! line in [`LAYERS`].

use crate::crashes::{Chosen, Pools, at_once, guarded, recovery_of, sweep};
use indelible_store::Mutant;
use indelible_store::format::lane::BODY;
use indelible_store::medium::Medium;
use indelible_store::store::{FormatOptions, Severity, Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::oracle::{How, PROCESSES, Program, Start, Step, Together, random, short};
use indelible_testing::pool::{Snapshot, check_tiling, contents, process, psync, snapshot};
use indelible_testing::scenario::{formatted, judge_medium, judge_state, media};
use indelible_testing::{
    Choice, ClassLimits, Fault, Limits, OpKind, SimConfig, SimMedium, TearUnit, for_each_crash,
};
use std::sync::Arc;

/// A layer's finding, if any.
pub(super) type Verdict = Result<(), String>;

/// A layer: its short name, what it does, and how.
pub(super) struct Layer {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) run: fn(&Pools) -> Verdict,
}

/// All of them, in the order of the table's columns.
pub(super) const LAYERS: &[Layer] = &[
    Layer { name: "images", what: "every image of short programs", run: images },
    Layer {
        name: "random",
        what: "random programs against the model, with power cuts",
        run: random_programs,
    },
    Layer { name: "recover", what: "power cuts during recovery", run: recoveries },
    Layer { name: "deaths", what: "processes that die in a call, and others that go on", run: deaths },
    Layer { name: "model", what: "random programs against the model, without power cuts", run: model },
    Layer { name: "check", what: "the pool's own check after random programs", run: check },
    Layer { name: "barriers", what: "each barrier and each durable write fails once", run: barriers },
    Layer { name: "failing", what: "operations that fail in programs that go on", run: failing_programs },
    Layer { name: "at once", what: "processes interleaved at every operation", run: interleaved },
    Layer { name: "format", what: "power cuts while a pool is formatted", run: format },
    Layer { name: "damage", what: "a batch where it does not belong", run: damage },
];

/// Mutants beneath the simulated medium: the rig must notice them.
pub(super) const BENEATH: &[Mutant] = &[Mutant::NoWriteBack, Mutant::NoFence];

const KEY: Key<'static> = Key(&[]);
pub(super) const SEED: u64 = 2;

/// The media of the table: one that tears small, one that tears large and groups commits.
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

/// Runs a program and judges what the loss of power leaves at its end.
fn run_and_cut(pools: &Pools, start: Start, medium: usize, program: &Program) -> Verdict {
    guarded(SEED, || {
        let medium = pools.get(start, medium).medium();
        let promise = program.run(&medium).map_err(|wrong| wrong.to_string())?;
        let image = medium.power_cut(Choice::None);
        judge_state(&image.medium(), &promise.allowed(&image)).map(drop)
    })
}

/// Each step of each short program dies in each of its operations; then another process goes on.
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

/// Random programs that nothing happens to.
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
            // Judging the run against the model is another layer's work.
            let _ = program.run(&medium);
            let image = medium.power_cut(Choice::All).medium();
            let report = Store::check(Arc::new(image), &mut |_, _| {}).map_err(|e| e.to_string())?;
            let wrong = report.findings.iter().find(|finding| finding.severity >= Severity::Warning);
            wrong.map_or(Ok(()), |finding| Err(format!("{finding:?}")))
        })
    })
}

const CONFIG: SimConfig = SimConfig {
    tear_unit: TearUnit::Line,
    group_commit: false,
    discard: indelible_testing::Discard::Keep,
    transfers: indelible_testing::SMALL,
    seed: 0,
};

/// A pool with two objects, each attached by a process that has a lane for it.
fn two_writers(medium: &SimMedium) -> Result<(Arc<Store>, Vec<Writer>), String> {
    let text = |error: indelible_store::error::StoreError| error.to_string();
    let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
    let mut writers = Vec::new();
    for name in ["a", "b"] {
        store.create(name, &CreateOptions { size: 9000, ..CreateOptions::default() }).map_err(text)?;
        writers.push(store.attach_writer(name, KEY).map_err(text)?);
    }
    Ok((store, writers))
}

/// Psyncs and checkpoints, one of whose barriers or durable writes fails. Those that succeeded are promised;
/// the failed one may have happened or not.
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
        // Success makes them rely on what is in place.
        writers.iter().for_each(|writer| drop(writer.checkpoint()));
    }
    medium.clear_faults();
    for choice in [Choice::None, Choice::All, Choice::Random(nth)] {
        judge_medium(&medium.power_cut(choice).medium(), &allowed)?;
    }
    Ok(())
}

fn failing_programs(pools: &Pools) -> Verdict {
    for (nth, (name, start, program)) in (0..).zip(short()) {
        let medium = MEDIA[nth as usize % 2];
        sweep(pools.get(start, medium), &program, SEED, 25).map_err(|cause| format!("{name}: {cause}"))?;
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

/// No write that the protocol makes puts a batch where another one belongs; one that is misdirected does.
fn damage(_: &Pools) -> Verdict {
    guarded(SEED, || {
        let text = |error: indelible_store::error::StoreError| error.to_string();
        let medium = formatted(1 << 20, CONFIG);
        let (store, mut writers) = two_writers(&medium)?;
        for value in 1..3 {
            psync(&mut writers[0], &[(0, &[value; 64])]).map_err(text)?;
        }
        let mine = writers[0].object().entry.lane.get();
        let lanes = store.lanes().map_err(text)?;
        let lane = lanes.iter().find(|lane| lane.index == Some(mine)).ok_or("no lane")?;
        let used = writers[0].lane_use();
        let mut batch = vec![0; (used.bytes / used.batches) as usize];
        let promised = contents(&store, writers[0].object()).map_err(text)?;
        let state = snapshot(&store).map_err(text)?;
        medium.read(lane.offset + BODY, &mut batch).map_err(|error| error.to_string())?;
        medium.write(lane.offset + BODY + used.bytes, &batch).map_err(|error| error.to_string())?;
        if promised[..64] != [2; 64] {
            return Err("the object is not as psynced".into());
        }
        judge_medium(&medium.power_cut(Choice::All).medium(), &[state]).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_as_it_is_passes_every_layer() {
        let pools = Pools::new();
        for layer in LAYERS {
            (layer.run)(&pools).unwrap_or_else(|cause| panic!("{}: {cause}", layer.name));
        }
    }
}
