use super::model::{Answer, Model};
use super::{NAMES, PROCESSES, Program, Start, Step};
use crate::sim::{Fault, OpKind};
use fastrand::Rng;

const SIZES: [u32; 7] = [64, 1000, 4096, 5000, 9000, 12_288, 20_000];
const LENGTHS: [u32; 6] = [1, 8, 64, 200, 3000, 9000];
const DEADLY: [OpKind; 6] =
    [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero, OpKind::Reserve, OpKind::Extend];

pub fn random(start: Start, len: usize, rng: &mut Rng) -> Program {
    let mut model = Model::default();
    if start != Start::Fresh {
        for (object, size) in [(0, 9000), (1, 5000), (2, 20_000)] {
            model.durable.insert(NAMES[object].into(), ([0; 16], 0, vec![0; size]));
        }
        if start == Start::Sealed {
            model.sealed.extend([0, 2]);
        }
    }
    let mut program = Program::default();
    while program.0.len() < len {
        let process = if rng.bool() { 0 } else { rng.usize(..PROCESSES) };
        let step = step(rng);
        let mut after = model.clone();
        match after.step(process, &step) {
            Answer::Done if matches!(step, Step::FailIn { .. }) => {
                for object in 0..NAMES.len() {
                    model.poison(process, object);
                }
                if matches!(step.call(), Step::Detach { .. }) {
                    model = after;
                }
            }
            Answer::Done => model = after,
            Answer::Nothing | Answer::Ambiguous => continue,
            _ if rng.u8(..8) > 0 => continue,
            _ => {}
        }
        if matches!(step, Step::DieIn { .. }) {
            model.die(process);
        }
        program.0.push((process, step));
    }
    program
}

fn step(rng: &mut Rng) -> Step {
    let object = rng.usize(..NAMES.len());
    let size = SIZES[rng.usize(..SIZES.len())];
    let value = rng.u8(1..);
    match rng.u8(..134) {
        0..7 => Step::Create { object, size, sparse: rng.u8(..4) == 0 },
        7 => Step::CreateSealed { object, size },
        8..10 => Step::Destroy { object },
        10 => Step::Delete { object },
        11..14 => Step::Rename { object, to: rng.usize(..NAMES.len()) },
        14..18 => Step::Resize { object, size },
        18..32 => Step::Attach { object },
        32..36 => Step::Read { object },
        36..43 => Step::Detach { object },
        43..63 => {
            Step::Store { object, at: rng.u32(..size), len: LENGTHS[rng.usize(..LENGTHS.len())], value }
        }
        63..67 => Step::Load { object, len: size, value },
        67..84 => {
            let mut objects: Vec<usize> = (0..NAMES.len()).filter(|_| rng.u8(..3) == 0).collect();
            objects.push(object);
            Step::Psync { objects }
        }
        84..89 => Step::Grow { object, size: size + 4000 },
        89..93 => Step::Checkpoint { object },
        93..96 => Step::Die,
        96..100 => Step::DieIn {
            step: Box::new(call(rng)),
            kind: DEADLY[rng.usize(..DEADLY.len())],
            nth: rng.u64(..4),
            late: rng.bool(),
        },
        100 => Step::WritebackFails { no_space: rng.bool() },
        101..112 => failing(rng),
        112..115 => Step::Hold { object },
        115..118 => Step::LetGo,
        118..120 => Step::Repair { drop_damaged: rng.bool() },
        120..122 => Step::Merge { object },
        122..124 => Step::Follow { object },
        124..128 => Step::Rollback { object, to: rng.usize(..NAMES.len()) },
        132..134 => Step::Lengthen,
        _ => Step::Copy { object, to: rng.usize(..NAMES.len()), snapshot: rng.u8(..3) == 0 },
    }
}

fn call(rng: &mut Rng) -> Step {
    loop {
        match step(rng) {
            Step::DieIn { .. } | Step::FailIn { .. } => {}
            step if step.can_fail() => break step,
            _ => {}
        }
    }
}

fn failing(rng: &mut Rng) -> Step {
    let (kind, among) = match rng.u8(..12) {
        0..3 => (OpKind::WriteDurable, 3),
        3..6 => (OpKind::Barrier, 3),
        6..8 => (OpKind::Write, 8),
        8 => (OpKind::Reserve, 3),
        9 => (OpKind::Zero, 2),
        10 => (OpKind::Read, 60),
        _ => ([OpKind::Lock, OpKind::Verify, OpKind::Extend][rng.usize(..3)], 3),
    };
    let faults = [Fault::Io, Fault::Short, Fault::After, Fault::NoSpace];
    let fault = faults[rng.usize(..faults.len())];
    Step::FailIn { step: Box::new(call(rng)), kind, nth: rng.u64(..among), fault, lasts: rng.u8(..4) == 0 }
}
