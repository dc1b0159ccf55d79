use super::{LARGE, OBJECTS, OnCopy, PROCESSES, Place, Step, TRANSACTIONAL};
use fastrand::Rng;
use indelible_testing::oracle::Program;
use indelible_testing::{Fault, OpKind};

const DEADLY: [OpKind; 7] = [
    OpKind::Write,
    OpKind::WriteDurable,
    OpKind::Barrier,
    OpKind::Zero,
    OpKind::Reserve,
    OpKind::Lock,
    OpKind::Read,
];

#[derive(Clone, Default)]
struct Has([[bool; OBJECTS.len()]; PROCESSES]);

impl Has {
    fn somebody(&self, object: usize) -> bool {
        self.0.iter().any(|has| has[object])
    }

    fn is_worth(&self, process: usize, step: &Step) -> bool {
        let own = &self.0[process];
        match step {
            Step::Attach { object, .. } => !self.somebody(*object),
            Step::Read { object } => !own[*object],
            Step::Commit { objects, .. } => objects.iter().any(|object| own[*object]),
            Step::Sync { object, .. }
            | Step::Psync { object }
            | Step::Pending { object }
            | Step::Detach { object } => own[*object],
            Step::Leave { object, within } => object != within && own[*object] && own[*within],
            Step::Recover => !self.0.iter().flatten().any(|has| *has),
            Step::Resize { object, .. } => !self.somebody(*object),
            Step::Die => own.iter().any(|has| *has),
            Step::DieIn { step, .. } | Step::FailIn { step, .. } => self.is_worth(process, step),
            _ => true,
        }
    }

    fn take(&mut self, process: usize, step: &Step) {
        match step {
            Step::Attach { object, .. } if !self.somebody(*object) => self.0[process][*object] = true,
            Step::Detach { object } | Step::Leave { object, .. } => self.0[process][*object] = false,
            Step::Die | Step::DieIn { .. } => self.0[process] = Default::default(),
            Step::FailIn { step, .. } => self.take(process, step),
            Step::AtOnce { own, other, its, .. } => {
                own.iter().for_each(|step| self.take(process, step));
                its.iter().for_each(|step| self.take(*other, step));
            }
            Step::PowerCut { .. } => *self = Has::default(),
            _ => {}
        }
    }
}

pub(crate) fn random(len: usize, rng: &mut Rng) -> Program<Step> {
    let (mut has, mut program) = (Has::default(), Program::default());
    while program.0.len() < len {
        let process = if rng.u8(..3) > 0 { 0 } else { rng.usize(..PROCESSES) };
        let step = step(process, &has, rng);
        if has.is_worth(process, &step) || rng.u8(..16) == 0 {
            has.take(process, &step);
            program.0.push((process, step));
        }
    }
    program
}

fn objects(rng: &mut Rng) -> Vec<usize> {
    let mut some: Vec<_> = (0..OBJECTS.len()).filter(|_| rng.bool()).collect();
    if some.is_empty() {
        some.push(rng.usize(..OBJECTS.len()));
    }
    some
}

fn step(process: usize, has: &Has, rng: &mut Rng) -> Step {
    match rng.u8(..100) {
        0..6 => Step::DieIn {
            step: Box::new(call(rng)),
            kind: DEADLY[rng.usize(..DEADLY.len())],
            nth: rng.u64(..12),
            late: rng.bool(),
        },
        6..9 => {
            let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write, OpKind::Reserve, OpKind::Read];
            let faults = [Fault::Io, Fault::Short, Fault::After, Fault::NoSpace];
            let (kind, fault) = (kinds[rng.usize(..5)], faults[rng.usize(..4)]);
            Step::FailIn { step: Box::new(call(rng)), kind, nth: rng.u64(..8), fault }
        }
        9..14 => at_once(process, has, rng),
        14..16 => Step::PowerCut { seed: rng.u64(..) },
        16..20 => Step::Die,
        _ => call(rng),
    }
}

fn at_once(process: usize, has: &Has, rng: &mut Rng) -> Step {
    let other = (process + 1 + rng.usize(..PROCESSES - 1)) % PROCESSES;
    let object = rng.usize(..OBJECTS.len());
    let own = match rng.u8(..4) {
        0 => (0..rng.usize(1..3)).map(|_| call(rng)).collect(),
        way => {
            let mut own = vec![Step::Attach { object, apart: false }];
            own.push(Step::Commit { objects: vec![object, 0, 1], wide: false });
            own.push(
                [Step::Die, Step::Detach { object }, Step::Psync { object }][usize::from(way) - 1].clone(),
            );
            own
        }
    };
    let beside = [
        Step::Collect,
        Step::Read { object },
        Step::Attach { object, apart: false },
        Step::Snapshot { object },
        Step::CopyFile,
        Step::OnCopy(OnCopy::Collect),
        Step::Resize { object, pages: rng.u64(1..5) },
        Step::Recover,
    ];
    let its = (0..rng.usize(1..3)).map(|_| beside[rng.usize(..beside.len())].clone());
    let its = its.filter(|step| *step != Step::Recover || !has.0[process].iter().any(|has| *has)).collect();
    let most = [20, 80, 300][rng.usize(..3)];
    Step::AtOnce { own, other, its, switches: [rng.u64(..most), rng.u64(..most)] }
}

fn call(rng: &mut Rng) -> Step {
    let object = rng.usize(..OBJECTS.len());
    match rng.u8(..100) {
        0..18 => Step::Attach { object, apart: object == TRANSACTIONAL && rng.bool() },
        18..42 => Step::Commit { objects: objects(rng), wide: rng.u8(..4) == 0 },
        42..54 => {
            let places = [
                Place::Between,
                Place::Between,
                Place::OnCommit,
                Place::OnAbort,
                Place::ThreadEnd,
                Place::Elsewhere,
                Place::Within,
            ];
            Step::Sync { object, from: places[rng.usize(..places.len())] }
        }
        54..57 => Step::Psync { object },
        57..59 => Step::Pending { object },
        59..65 => Step::Detach { object },
        65..73 => Step::Leave { object, within: rng.usize(..OBJECTS.len()) },
        73..76 => Step::Read { object },
        76..78 => Step::Recover,
        78..82 => Step::Collect,
        82..85 => Step::Snapshot { object: if rng.bool() { LARGE } else { object } },
        85 => Step::Backup,
        86..88 => Step::Resize { object, pages: rng.u64(1..5) },
        88 => Step::Lengthen,
        89..91 => Step::Fill,
        91..93 => Step::Empty,
        93..96 => Step::CopyFile,
        _ => Step::OnCopy([OnCopy::Collect, OnCopy::Recover, OnCopy::Read][rng.usize(..3)]),
    }
}
