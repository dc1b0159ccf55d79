//! Programs in which one operation fails and all processes go on.

use super::{NAMES, PROCESSES, Program, Step};
use crate::sim::{Fault, OpKind};

const KINDS: [(OpKind, u64); 7] = [
    (OpKind::WriteDurable, 8),
    (OpKind::Barrier, 6),
    (OpKind::Write, 10),
    (OpKind::Reserve, 4),
    (OpKind::Zero, 4),
    (OpKind::Read, 12),
    (OpKind::Verify, 2),
];
const FAULTS: [Fault; 4] = [Fault::Io, Fault::NoSpace, Fault::After, Fault::Short];

const AT: [u32; 3] = [8950, 4950, 19_950];

const TAILS: u64 = 5;

/// Shows `judge` every `stride`th program in which an operation of a step fails. `judge` tells
/// whether the failure was met; returns their number.
pub fn failing(
    program: &Program,
    seed: u64,
    stride: u64,
    mut judge: impl FnMut(&Program) -> Result<bool, String>,
) -> Result<u64, String> {
    let (mut met, mut number) = (0, 0);
    for at in 0..program.0.len() {
        let (process, step) = &program.0[at];
        if !step.can_fail() || matches!(step, Step::DieIn { .. } | Step::FailIn { .. }) {
            continue;
        }
        for (kind, most) in KINDS {
            let faults =
                if matches!(kind, OpKind::Read | OpKind::Verify) { &FAULTS[..1] } else { &FAULTS[..] };
            for nth in 0..most {
                let mut any = false;
                for fault in faults {
                    number += 1;
                    let choice: u64 = seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    if !choice.is_multiple_of(stride) {
                        any = true;
                        continue;
                    }
                    let choice = choice / stride;
                    let lasts = choice % 3 == 2;
                    let mut broken = Program(program.0[..at].to_vec());
                    let step = Box::new(step.clone());
                    broken.0.push((*process, Step::FailIn { step, kind, nth, fault: *fault, lasts }));
                    broken.0.extend(tail(*process, &program.0[at].1, choice));
                    let found = judge(&broken).map_err(|cause| format!("{cause}\n{broken:?}"))?;
                    met += u64::from(found);
                    any |= found;
                }
                if !any {
                    break;
                }
            }
        }
    }
    Ok(met)
}

fn tail(process: usize, step: &Step, choice: u64) -> Vec<(usize, Step)> {
    let other = (process + 1) % PROCESSES;
    let all = Step::Psync { objects: (0..NAMES.len()).collect() };
    let take_over = |process, value| {
        (0..3).flat_map(move |object| {
            [
                (process, Step::Attach { object }),
                (process, Step::Store { object, at: AT[object], len: 100, value }),
                (process, Step::Psync { objects: vec![object] }),
                (process, Step::Checkpoint { object }),
            ]
        })
    };
    let checkpoints = (0..3).map(|object| (process, Step::Checkpoint { object }));
    let again = (process, step.clone());
    let create = (other, Step::Create { object: 3, size: 5000, sparse: false });
    let mut steps = Vec::new();
    match choice % TAILS {
        // The failed process repeats the step, does more, then dies.
        0 => {
            steps.extend([again, (process, all)]);
            steps.extend(checkpoints);
            steps.push((process, Step::Die));
            steps.extend(take_over(other, 0xd1));
        }
        // Another process changes the table and gets the error.
        1 => {
            steps.extend([create, (other, Step::Rename { object: 3, to: 2 }), again, (process, all)]);
            steps.extend((0..3).map(|object| (process, Step::Detach { object })));
            steps.extend(take_over(process, 0xd2));
        }
        // The step fails in another way; another recovers while a barrier fails.
        2 => {
            let failing = |step: &Step, kind, nth| {
                let (step, fault) = (Box::new(step.clone()), Fault::Io);
                Step::FailIn { step, kind, nth, fault, lasts: false }
            };
            steps.extend([
                (process, failing(step, OpKind::WriteDurable, 1)),
                (process, failing(&all, OpKind::Barrier, 0)),
                (process, Step::Die),
                (other, failing(&Step::Attach { object: 0 }, OpKind::Barrier, choice % 3)),
            ]);
            steps.extend(take_over(other, 0xd3));
        }
        // A refused detach poisons the lane.
        3 => {
            steps.push((other, Step::Hold { object: 0 }));
            steps.extend([again.clone(), (process, all.clone()), (process, Step::Detach { object: 0 })]);
            steps.extend([
                (process, Step::Attach { object: 0 }),
                (process, all),
                (other, Step::LetGo),
                again,
            ]);
            steps.extend(take_over(process, 0xd5));
            steps.extend([(other, Step::Hold { object: 0 }), (process, Step::Die)]);
            steps.extend(take_over(other, 0xd6));
            steps.push((other, Step::LetGo));
            steps.extend(take_over(other, 0xd7));
        }
        // An unrelated process fills lanes and checkpoints.
        _ => {
            steps.push(create);
            steps.push((other, Step::Attach { object: 3 }));
            for value in 1..4 {
                steps.extend([
                    (other, Step::Store { object: 3, at: 0, len: 5000, value }),
                    (other, Step::Psync { objects: vec![3] }),
                    (other, Step::Checkpoint { object: 3 }),
                ]);
            }
            steps.extend([again, (process, all), (process, Step::Die)]);
            steps.extend(take_over(other, 0xd4));
        }
    }
    steps
}
