//! Programs so short that all their images can be judged.

use super::{Program, Start, Step};
use crate::sim::{Fault, OpKind};

/// Each with its name and its start.
#[must_use]
#[allow(clippy::too_many_lines)]
pub fn short() -> Vec<(&'static str, Start, Program)> {
    use Step as S;
    let store = |object, at, len, value| S::Store { object, at, len, value };
    let psync = |objects: &[usize]| S::Psync { objects: objects.to_vec() };
    let attach = |object| S::Attach { object };
    let alone = |steps: Vec<Step>| Program(steps.into_iter().map(|step| (0, step)).collect());
    vec![
        ("create", Start::Fresh, alone(vec![S::Create { object: 0, size: 5000, sparse: false }])),
        (
            "create in used space",
            Start::Used,
            alone(vec![S::Create { object: 3, size: 5000, sparse: false }]),
        ),
        ("destroy", Start::Used, alone(vec![S::Destroy { object: 1 }])),
        (
            "longer",
            Start::Tight,
            Program(vec![
                (0, attach(0)),
                (1, S::Lengthen),
                (0, S::Create { object: 3, size: 60_000, sparse: false }),
                (0, attach(3)),
                (0, store(3, 59_000, 200, 1)),
                (0, psync(&[0, 3])),
            ]),
        ),
        (
            "longer, after a superblock that could not be written",
            Start::Used,
            Program(vec![
                (
                    0,
                    S::FailIn {
                        step: Box::new(S::Lengthen),
                        kind: OpKind::WriteDurable,
                        nth: 1,
                        fault: Fault::After,
                        lasts: false,
                    },
                ),
                (1, S::Lengthen),
            ]),
        ),
        (
            "deleted beside its writer",
            Start::Used,
            Program(vec![
                (0, attach(0)),
                (1, S::Delete { object: 0 }),
                (1, S::Create { object: 3, size: 9000, sparse: false }),
                (0, store(0, 0, 200, 1)),
                (0, psync(&[0])),
                (1, S::Read { object: 0 }),
                (0, S::Detach { object: 0 }),
            ]),
        ),
        ("rename", Start::Used, alone(vec![S::Rename { object: 0, to: 3 }])),
        ("attach and detach", Start::Used, alone(vec![attach(0), S::Detach { object: 0 }])),
        ("read", Start::Used, alone(vec![S::Read { object: 0 }, S::Detach { object: 0 }])),
        (
            "psync twice",
            Start::Used,
            alone(vec![
                attach(0),
                store(0, 0, 70, 1),
                psync(&[0]),
                store(0, 30, 70, 2),
                psync(&[0]),
                S::Detach { object: 0 },
            ]),
        ),
        (
            // A batch of the lap before follows the one after the checkpoint.
            "psyncs around a checkpoint",
            Start::Used,
            alone(vec![
                attach(0),
                store(0, 0, 64, 1),
                psync(&[0]),
                store(0, 0, 64, 2),
                psync(&[0]),
                S::Checkpoint { object: 0 },
                store(0, 0, 64, 3),
                psync(&[0]),
            ]),
        ),
        (
            "psync of two",
            Start::Used,
            alone(vec![
                attach(0),
                attach(1),
                store(0, 0, 64, 1),
                store(1, 4096, 64, 1),
                psync(&[0, 1]),
                store(0, 64, 64, 2),
                store(1, 0, 64, 2),
                psync(&[0, 1]),
            ]),
        ),
        (
            // The second psync moves one object to the other's lane.
            "psync of one, then of two",
            Start::Used,
            alone(vec![
                attach(0),
                attach(1),
                store(1, 0, 300, 1),
                psync(&[1]),
                store(0, 0, 64, 2),
                store(1, 4096, 64, 2),
                psync(&[0, 1]),
            ]),
        ),
        (
            "load and publish",
            Start::Used,
            alone(vec![attach(1), S::Load { object: 1, len: 300, value: 7 }, psync(&[1])]),
        ),
        (
            "load and forget",
            Start::Used,
            alone(vec![attach(1), S::Load { object: 1, len: 300, value: 7 }, S::Detach { object: 1 }]),
        ),
        ("grow in place", Start::Used, alone(vec![attach(2), S::Grow { object: 2, size: 30_000 }])),
        (
            "grow by moving",
            Start::Used,
            alone(vec![attach(0), store(0, 100, 64, 3), psync(&[0]), S::Grow { object: 0, size: 60_000 }]),
        ),
        ("shrink", Start::Used, alone(vec![S::Resize { object: 2, size: 5000 }])),
        ("resize in place", Start::Used, alone(vec![S::Resize { object: 1, size: 9000 }])),
        ("resize by moving", Start::Used, alone(vec![S::Resize { object: 0, size: 60_000 }])),
        (
            "changes of the table across the end of its lane",
            Start::TableLaneFull,
            alone((0..8).map(|n| S::Rename { object: 3 * (n % 2), to: 3 - 3 * (n % 2) }).collect()),
        ),
        (
            "load after a checkpoint and a death",
            Start::Used,
            Program(vec![
                (0, attach(1)),
                (0, store(1, 3000, 64, 1)),
                (0, psync(&[1])),
                (0, S::Checkpoint { object: 1 }),
                (0, S::Die),
                (1, attach(1)),
                (1, S::Load { object: 1, len: 1000, value: 7 }),
            ]),
        ),
        (
            "another process recovers what is visible and not durable",
            Start::Used,
            Program(vec![
                (0, attach(0)),
                (0, attach(1)),
                (0, store(0, 0, 128, 1)),
                (0, store(1, 0, 128, 1)),
                (
                    0,
                    S::DieIn {
                        step: Box::new(psync(&[0, 1])),
                        kind: OpKind::WriteDurable,
                        nth: 0,
                        late: true,
                    },
                ),
                (1, S::Read { object: 0 }),
                (1, S::Read { object: 1 }),
            ]),
        ),
        (
            "held still, and dead meanwhile",
            Start::Used,
            Program(vec![
                (0, attach(0)),
                (0, store(0, 0, 128, 1)),
                (0, psync(&[0])),
                (1, S::Hold { object: 0 }),
                (0, store(0, 64, 128, 2)),
                (0, psync(&[0])),
                (0, S::Die),
                (2, attach(0)),
                (1, S::LetGo),
                (2, attach(0)),
                (2, psync(&[0])),
            ]),
        ),
        (
            "repaired after a death",
            Start::Used,
            Program(vec![
                (0, attach(0)),
                (0, store(0, 0, 128, 1)),
                (0, psync(&[0])),
                (0, S::Die),
                (1, S::Repair { drop_damaged: true }),
                (1, attach(0)),
                (1, store(0, 64, 128, 2)),
                (1, psync(&[0])),
            ]),
        ),
        (
            "repaired after an object was deleted and its writer died",
            Start::TableLaneFull,
            Program(vec![
                (0, attach(0)),
                (2, attach(2)),
                (0, S::Delete { object: 2 }),
                (0, S::Die),
                (2, S::Load { object: 2, len: 64, value: 216 }),
                (2, S::Repair { drop_damaged: false }),
            ]),
        ),
        (
            "snapshot",
            Start::Used,
            alone(vec![
                attach(0),
                store(0, 0, 128, 1),
                psync(&[0]),
                S::Detach { object: 0 },
                S::Copy { object: 0, to: 3, snapshot: true },
            ]),
        ),
        (
            "back to a snapshot",
            Start::Used,
            alone(vec![
                S::Copy { object: 0, to: 3, snapshot: true },
                attach(0),
                store(0, 60, 8, 1),
                psync(&[0]),
                S::Detach { object: 0 },
                S::Rollback { object: 0, to: 3 },
                attach(0),
                store(0, 4090, 12, 2),
                psync(&[0]),
            ]),
        ),
        (
            "first changes of a copy, and of what it was made from",
            Start::Used,
            alone(vec![
                S::Copy { object: 0, to: 3, snapshot: false },
                attach(0),
                store(0, 60, 8, 1),
                psync(&[0]),
                attach(3),
                store(3, 4090, 12, 2),
                psync(&[3]),
                store(3, 4000, 12, 3),
                psync(&[3]),
            ]),
        ),
        (
            "a copy outlives what it was made from",
            Start::Used,
            Program(vec![
                (0, S::Copy { object: 0, to: 3, snapshot: false }),
                (0, attach(3)),
                (0, store(3, 0, 64, 1)),
                (0, psync(&[3])),
                (1, S::Destroy { object: 0 }),
                (1, S::Create { object: 0, size: 9000, sparse: false }),
                (0, S::Die),
                (1, S::Copy { object: 3, to: 2, snapshot: true }),
                (1, attach(3)),
                (1, store(3, 8000, 64, 2)),
                (1, psync(&[3])),
            ]),
        ),
        (
            "the last that rests on a base is destroyed",
            Start::Used,
            alone(vec![
                S::Copy { object: 0, to: 3, snapshot: true },
                S::Destroy { object: 3 },
                S::Destroy { object: 0 },
            ]),
        ),
        ("create sealed in used space", Start::Used, alone(vec![S::CreateSealed { object: 3, size: 5000 }])),
        (
            "psync of a sealed object and of one that is not",
            Start::Sealed,
            alone(vec![
                attach(0),
                attach(1),
                store(0, 4000, 200, 1),
                store(1, 0, 64, 1),
                psync(&[0, 1]),
                store(0, 4000, 64, 2),
                psync(&[0]),
                S::Detach { object: 0 },
            ]),
        ),
        (
            "a sealed object that is kept beside its writer, and goes back",
            Start::Sealed,
            Program(vec![
                (0, attach(0)),
                (0, store(0, 60, 8, 1)),
                (0, psync(&[0])),
                (1, S::Follow { object: 0 }),
                (1, S::Copy { object: 0, to: 3, snapshot: true }),
                (0, store(0, 4090, 12, 2)),
                (0, psync(&[0])),
                (0, S::Detach { object: 0 }),
                (1, S::Rollback { object: 0, to: 3 }),
                (1, S::Merge { object: 0 }),
            ]),
        ),
        (
            "copies of a sealed object go on from one base",
            Start::Sealed,
            alone(vec![
                S::Copy { object: 0, to: 3, snapshot: false },
                attach(0),
                store(0, 60, 8, 1),
                psync(&[0]),
                attach(3),
                store(3, 4090, 12, 2),
                psync(&[3]),
                S::Die,
                attach(3),
            ]),
        ),
        (
            "another process recovers",
            Start::Used,
            Program(vec![
                (0, attach(0)),
                (0, store(0, 0, 64, 1)),
                (0, psync(&[0])),
                (0, S::Die),
                (1, attach(0)),
                (1, store(0, 0, 64, 2)),
                (1, psync(&[0])),
            ]),
        ),
    ]
}
