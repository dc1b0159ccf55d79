//! Programs that the judge of programs once took for violations.

use indelible_testing::SimConfig;
use indelible_testing::oracle::{Program, Start, Step};
use indelible_testing::{OpKind, SimMedium};

/// A psync that names an object of another process concerns the caller's own alone: that the other still has it when
/// the caller is dead is no violation.
#[test]
fn an_object_of_another_process_stays_with_it_when_a_caller_dies() {
    let psync = Step::Psync { objects: vec![2, 3, 2] };
    let program = Program(vec![
        (2, Step::Create { object: 3, size: 64, sparse: false }),
        (0, Step::Attach { object: 2 }),
        (2, Step::Attach { object: 3 }),
        (0, Step::Store { object: 2, at: 4214, len: 64, value: 173 }),
        (0, Step::DieIn { step: Box::new(psync), kind: OpKind::Barrier, nth: 0, late: true }),
    ]);
    let medium: SimMedium = Start::Used.pool(SimConfig::default()).medium();
    let promise = program.run(&medium).unwrap();
    assert_eq!((promise.steps, promise.deaths), (5, 1));
}
