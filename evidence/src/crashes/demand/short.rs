//! Short programs of objects on demand: one for each past loss, and variants.

use super::{LARGE, OnCopy, Place, Step, TRANSACTIONAL};
use indelible_testing::OpKind;
use indelible_testing::oracle::Program;

const A: usize = 0;
const B: usize = 1;

fn attach(object: usize) -> Step {
    Step::Attach { object, apart: false }
}

fn commit(objects: &[usize]) -> Step {
    Step::Commit { objects: objects.to_vec(), wide: false }
}

fn look(objects: &[usize]) -> Step {
    Step::Look { objects: objects.to_vec() }
}

fn sync(object: usize) -> Step {
    Step::Sync { object, from: Place::Between }
}

fn of_one(steps: &[Step]) -> Program<Step> {
    Program(steps.iter().map(|step| (0, step.clone())).collect())
}

pub(crate) fn short() -> Vec<(String, Program<Step>)> {
    let mut all = Vec::new();
    let places =
        [Place::Between, Place::OnCommit, Place::OnAbort, Place::ThreadEnd, Place::Elsewhere, Place::Within];
    for from in places {
        for object in [A, TRANSACTIONAL] {
            let steps = [attach(A), attach(B), attach(object), commit(&[A, B]), Step::Sync { object, from }];
            all.push((format!("tx_sync {from:?} on {object}"), of_one(&steps)));
        }
    }
    for last in [sync(B), Step::Psync { object: B }, Step::Detach { object: B }, Step::Pending { object: B }]
    {
        let leave = Step::Leave { object: A, within: B };
        let steps = [attach(A), attach(B), commit(&[A, B]), leave, last.clone(), attach(A), commit(&[A, B])];
        all.push((format!("left in a transaction, then {last:?}"), of_one(&steps)));
    }
    let wide = Step::Commit { objects: vec![LARGE, B], wide: true };
    let without_room = [
        attach(LARGE),
        attach(B),
        wide,
        Step::Snapshot { object: LARGE },
        attach(A),
        Step::Fill,
        Step::Detach { object: LARGE },
        sync(B),
        Step::Empty,
        sync(B),
        attach(LARGE),
    ];
    all.push(("detached without room".into(), of_one(&without_room)));
    let wide = Step::Commit { objects: vec![LARGE], wide: true };
    let without_room = [
        attach(LARGE),
        attach(TRANSACTIONAL),
        wide,
        Step::Snapshot { object: LARGE },
        Step::Fill,
        look(&[LARGE, TRANSACTIONAL]),
        commit(&[LARGE, TRANSACTIONAL]),
        attach(A),
        look(&[LARGE, TRANSACTIONAL]),
        commit(&[LARGE, TRANSACTIONAL]),
        commit(&[A]),
        Step::Empty,
        look(&[LARGE, TRANSACTIONAL]),
        commit(&[LARGE, TRANSACTIONAL]),
        sync(A),
    ];
    all.push(("both classes without room".into(), of_one(&without_room)));
    let cut = Step::DieIn { step: Box::new(Step::Empty), kind: OpKind::Write, nth: 3, late: false };
    all.push(("removed by a process that died".into(), of_one(&[Step::Fill, cut, Step::Empty])));
    let both = [attach(A), attach(TRANSACTIONAL), commit(&[A]), commit(&[A, TRANSACTIONAL])];
    all.push(("both classes".into(), of_one(&both)));
    for call in [OnCopy::Collect, OnCopy::Recover, OnCopy::Read] {
        let mut early = of_one(&[Step::CopyFile, attach(A), attach(B), commit(&[A, B]), Step::Die]);
        early.0.extend([(1, Step::OnCopy(call)), (1, attach(B)), (1, attach(A))]);
        all.push((format!("copied before an attach, then {call:?}"), early));
        let mut late = of_one(&[attach(A), attach(B), commit(&[A, B]), Step::CopyFile, Step::Die]);
        late.0.extend([(1, Step::OnCopy(call)), (1, attach(B)), (1, attach(A))]);
        all.push((format!("copied after a commit, then {call:?}"), late));
    }
    for next in [Step::Recover, Step::Collect, Step::Backup, Step::Read { object: A }, attach(A)] {
        let mut dead = of_one(&[attach(A), attach(B), commit(&[A, B]), sync(A), commit(&[B, A]), Step::Die]);
        dead.0.extend([(1, next.clone()), (1, attach(B)), (2, attach(A))]);
        all.push((format!("dead, then {next:?}"), dead));
    }
    all
}

/// A process attaches these objects, commits to them and dies while another one makes this call;
/// `switches`: the turns that each takes before it lets the other one run.
pub(crate) fn beside_an_attach(objects: &[usize], call: &Step, switches: [u64; 2]) -> Program<Step> {
    let attached = objects.iter().map(|object| attach(*object));
    let own = attached.chain([commit(objects), Step::Die]).collect();
    let both = Step::AtOnce { own, other: 1, its: vec![call.clone()], switches };
    Program(vec![(0, both), (2, attach(A)), (2, commit(&[A])), (2, Step::Detach { object: A })])
}
