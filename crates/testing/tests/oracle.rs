//! Programs that the judge once took for violations, and programs with failures.

use indelible_testing::oracle::{
    Cuts, How, Made, Program, Start, Step, Together, Transactions, failing, random, short, starts,
};
use indelible_testing::scenario::{allowed, formatted, judge_by, judge_state, media};
use indelible_testing::{Choice, Fault, Limits, OpKind, SimConfig, SimMedium, sparse};

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

/// If the object was not deleted, its writer may not read it, too.
#[test]
fn a_writer_that_reads_an_object_that_may_be_deleted_is_told_who_has_it() {
    let fail = Step::FailIn {
        step: Box::new(Step::Follow { object: 0 }),
        kind: OpKind::WriteDurable,
        nth: 0,
        fault: Fault::After,
        lasts: false,
    };
    let program = Program(vec![
        (0, Step::Attach { object: 0 }),
        (0, fail),
        (1, Step::Delete { object: 0 }),
        (0, Step::Read { object: 0 }),
    ]);
    for config in media() {
        run_and_cut(&Start::Tight.pool(config).medium(), &program, 1).unwrap();
    }
}

/// A repair of the dead writer's lane lost the power: the lane still has the torn line.
#[test]
fn a_deleted_object_that_nobody_freed_may_have_a_torn_progress_line() {
    let medium = Start::TableLaneFull.pool(media()[0]).medium();
    let program = Program(vec![
        (0, Step::Attach { object: 0 }),
        (2, Step::Attach { object: 2 }),
        (0, Step::Delete { object: 2 }),
        (0, Step::Die),
        (2, Step::Load { object: 2, len: 64, value: 216 }),
        (2, Step::Repair { drop_damaged: false }),
    ]);
    let promise = program.run(&medium).unwrap();
    let limits = Limits { exhaustive: 1, singles: 0, random: 20, ..Limits::default() };
    for image in medium.power_cut_states(&limits) {
        judge_state(&image.medium(), &promise.allowed(&image)).unwrap();
    }
}

fn run_and_cut(medium: &SimMedium, program: &Program, seed: u64) -> Result<bool, String> {
    medium.reseed(seed);
    let promise = program.run(medium).map_err(|wrong| wrong.to_string())?;
    let limits = Limits { exhaustive: 1, singles: 0, random: 1, points: 4, seed };
    for image in medium.power_cut_states(&limits).chain([medium.power_cut(Choice::None)]) {
        judge_state(&image.medium(), &promise.allowed(&image))
            .map_err(|cause| format!("{cause} after {} of seed {seed}", image.cut()))?;
    }
    Ok(promise.failures > 0)
}

#[test]
fn any_operation_of_any_call_may_fail_and_everybody_goes_on() {
    let mut wrong = Vec::new();
    let mut met = 0;
    for (nth, (name, start, program)) in short().into_iter().enumerate() {
        let pool = start.pool(media()[if nth % 2 == 0 { 5 } else { 2 }]);
        let found = failing(&program, nth as u64, 12 * sparse(2) as u64, |program| {
            run_and_cut(&pool.medium(), program, nth as u64)
        });
        match found {
            Ok(found) => met += found,
            Err(cause) => wrong.push(format!("{name}: {cause}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), short().len(), wrong.join("\n"));
    println!("{met} failures");
}

#[test]
fn random_programs_go_on_after_failures() {
    let mut wrong = Vec::new();
    for seed in 0..100 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (start, config) = (starts()[rng.usize(..starts().len())], media()[rng.usize(..6)]);
        let program = random(start, 40, &mut rng);
        if let Err(cause) = run_and_cut(&start.pool(config).medium(), &program, seed) {
            wrong.push(format!("{seed}: {cause}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_failed_call_poisons_and_the_next_attachment_goes_on() {
    let psync = Step::Psync { objects: vec![0] };
    let program = Program(vec![
        (0, Step::Attach { object: 0 }),
        (0, Step::Store { object: 0, at: 0, len: 64, value: 1 }),
        (
            0,
            Step::FailIn {
                step: Box::new(psync.clone()),
                kind: OpKind::WriteDurable,
                nth: 0,
                fault: Fault::Io,
                lasts: false,
            },
        ),
        (0, psync),
        (0, Step::Detach { object: 0 }),
        (0, Step::Attach { object: 0 }),
    ]);
    let medium = Start::Used.pool(media()[5]).medium();
    let promise = program.run(&medium).unwrap();
    // A barrier of the attach may report the failure once more.
    assert_eq!((promise.failures, promise.refused), (1, 1));
    assert!(promise.unknown >= 1);
}

/// The object stays bound to the lane, no longer than its process has others attached.
#[test]
fn a_failed_detach_holds_the_object_no_longer_than_its_process_writes() {
    let mut met = 0;
    for config in media() {
        for kind in [OpKind::Lock, OpKind::Verify, OpKind::Read, OpKind::WriteDurable, OpKind::Barrier] {
            for nth in 0..6 {
                let detach = Box::new(Step::Detach { object: 0 });
                let fail = Step::FailIn { step: detach, kind, nth, fault: Fault::Io, lasts: false };
                let attach = |object| (0, Step::Attach { object });
                let detach = |object| (0, Step::Detach { object });
                let store = (0, Step::Store { object: 0, at: 0, len: 64, value: 7 });
                let psync = (0, Step::Psync { objects: vec![0] });
                let other = (1, Step::Attach { object: 0 });
                let program = Program(vec![
                    attach(0),
                    attach(1),
                    store,
                    psync,
                    (0, fail),
                    other.clone(),
                    attach(2),
                    detach(1),
                    detach(2),
                    other,
                ]);
                met += u64::from(run_and_cut(&Start::Used.pool(config).medium(), &program, nth).unwrap());
            }
        }
    }
    assert!(met > 20, "{met}");
}

#[test]
fn a_poisoned_object_does_not_grow() {
    let program = Program(vec![
        (0, Step::Attach { object: 2 }),
        (2, Step::WritebackFails { no_space: false }),
        (0, Step::Store { object: 2, at: 14_506, len: 3000, value: 5 }),
        (0, Step::Psync { objects: vec![1, 2, 3, 3] }),
        (0, Step::Grow { object: 2, size: 24_000 }),
    ]);
    let promise = program.run(&Start::Tight.pool(media()[4]).medium()).unwrap();
    assert_eq!((promise.unknown, promise.refused), (1, 1));
}

fn together(together: Together, medium: usize) -> Result<(u64, u64), String> {
    let medium = formatted(4 << 20, media()[medium]);
    medium.reseed(together.seed);
    let shared = together.run(&medium)?;
    assert!(together.fails || shared.failures == 0);
    let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 25, seed: together.seed };
    for image in medium.power_cut_states(&limits) {
        judge_by(&image.medium(), |found| shared.judge(&image, found))
            .map_err(|cause| format!("{cause} after {}", image.cut()))?;
    }
    Ok((medium.digest(), shared.joined))
}

#[test]
fn processes_interleaved_at_every_operation_keep_what_they_were_promised() {
    let mut wrong = Vec::new();
    for seed in 0..12 {
        let program = Together {
            how: How::Processes,
            actors: 2 + seed as usize % 2,
            steps: 14,
            fails: seed % 3 == 0,
            seed,
        };
        if let Err(cause) = together(program, seed as usize % 6) {
            wrong.push(format!("{program:?}: {cause}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Threads meet in more ways than power cuts after a few runs show.
#[test]
fn threads_find_what_they_were_promised_after_failures() {
    for nth in 0..150 {
        let program = Together { how: How::Threads, actors: 4, steps: 14, fails: true, seed: nth / 10 };
        let medium = formatted(4 << 20, media()[[5, 1, 4][nth as usize % 3]]);
        medium.reseed(nth);
        program.run(&medium).unwrap_or_else(|cause| panic!("{program:?} on medium {nth}: {cause}"));
    }
}

#[test]
fn s1_03_programs_of_transactions_keep_what_they_were_promised() {
    let (mut commits, mut failures, mut deaths) = (0, 0, 0);
    for seed in 0..36 {
        let program = Transactions { steps: 24, fails: seed % 3 > 0, dies: seed % 2 == 0, seed };
        let medium = formatted(2 << 20, media()[seed as usize % media().len()]);
        medium.reseed(seed);
        let committed = program.run(&medium).unwrap_or_else(|cause| panic!("{program:?}: {cause}"));
        let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 15, seed };
        for image in medium.power_cut_states(&limits) {
            judge_by(&image.medium(), |found| committed.judge(&image, found))
                .unwrap_or_else(|cause| panic!("{program:?}: {cause} after {}", image.cut()));
        }
        commits += committed.commits;
        failures += committed.failures;
        deaths += committed.deaths;
    }
    assert!(
        commits > 500 && failures > 20 && deaths > 10,
        "{commits} commits, {failures} failures, {deaths} deaths"
    );
}

/// Found by campaigns: after a failed checkpoint and a second failure, nothing told a lane's
/// generation.
#[test]
fn processes_that_were_once_refused_a_lane() {
    for seed in [1, 290_305] {
        let program = Together { how: How::Processes, actors: 2, steps: 20, fails: true, seed };
        together(program, 0).unwrap_or_else(|cause| panic!("{program:?}: {cause}"));
    }
}

/// The system read a lost page's old bytes, a psync took a line from it, and recovery redid that
/// psync.
#[test]
fn a_line_of_a_lost_page_is_not_published() {
    let seed = 20_282 ^ 66 << 8;
    let program = Together { how: How::Processes, actors: 2, steps: 20, fails: true, seed };
    together(program, 0).unwrap_or_else(|cause| panic!("{program:?}: {cause}"));
}

#[test]
fn processes_that_take_turns_do_the_same_again() {
    let program = Together { how: How::Processes, actors: 3, steps: 10, fails: false, seed: 5 };
    let log = || {
        let medium = indelible_store::with_seed(1, || formatted(4 << 20, media()[5]));
        program.run(&medium).unwrap();
        let events = medium.events();
        events.iter().map(|(_, event)| format!("{event:?}")).collect::<Vec<_>>()
    };
    assert_eq!(log(), log());
}

#[test]
fn threads_that_join_one_commit_keep_what_they_were_promised() {
    let mut wrong = Vec::new();
    for seed in 0..9 {
        let program = Together { how: How::Threads, actors: 4, steps: 14, fails: seed % 3 == 0, seed };
        if let Err(cause) = together(program, [5, 1, 4][seed as usize % 3]) {
            wrong.push(format!("{program:?}: {cause}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn cut(cuts: Cuts) -> (SimMedium, Made) {
    let medium =
        indelible_store::with_seed(cuts.seed, || formatted(2 << 20, media()[cuts.seed as usize % 6]));
    medium.reseed(cuts.seed);
    let made = cuts.run(&medium).unwrap();
    (medium, made)
}

fn cut_and_judge(cuts: Cuts) -> Result<Made, String> {
    let (medium, made) = cut(cuts);
    let limits = Limits { exhaustive: 1, singles: 1, random: 2, points: 25, seed: cuts.seed };
    for image in medium.power_cut_states(&limits).chain([medium.power_cut(Choice::None)]) {
        judge_state(&image.medium(), allowed(&image, &made.states))
            .map_err(|cause| format!("{cuts:?}: {cause} after {}", image.cut()))?;
    }
    Ok(made)
}

#[test]
fn cuts_beside_storing_threads_leave_what_was_held() {
    let (mut beside, mut waited) = (0, 0);
    for seed in 0..12 {
        let cuts = Cuts { threads: 1 + seed as usize % 3, cuts: 6, held: true, seed };
        let made = cut_and_judge(cuts).unwrap();
        (beside, waited) = (beside + made.beside, waited + made.waited);
    }
    assert!(beside > 100 && waited > 100, "{beside} stores beside commits, {waited} waited");
}

#[test]
fn threads_that_store_beside_cuts_do_the_same_again() {
    let cuts = Cuts { threads: 3, cuts: 6, held: true, seed: 5 };
    let [(a, one), (b, two)] = [cut(cuts), cut(cuts)];
    assert_eq!((a.digest(), one.beside, one.waited), (b.digest(), two.beside, two.waited));
    assert!(one.states == two.states);
}

#[test]
fn cuts_that_hold_nobody_are_noticed() {
    let torn = |seed| cut_and_judge(Cuts { threads: 3, cuts: 6, held: false, seed }).is_err();
    assert_eq!((0..6).filter(|seed| torn(*seed)).count(), 6);
}

/// A failed resize left a lost block in the object's last page, which was not healed as it was not
/// all new.
#[test]
fn a_resize_that_failed_in_a_shared_page_costs_no_later_psync() {
    let mut met = 0;
    for (start, medium) in [Start::Used, Start::Tight]
        .into_iter()
        .flat_map(|start| media().into_iter().map(move |medium| (start, medium)))
    {
        for kind in [OpKind::WriteDurable, OpKind::Write, OpKind::Barrier, OpKind::Zero] {
            for nth in 0..6 {
                let step = Box::new(Step::Resize { object: 1, size: 9000 });
                let fail = Step::FailIn { step, kind, nth, fault: Fault::Io, lasts: false };
                let attach = (0, Step::Attach { object: 1 });
                let program = Program(vec![
                    (2, fail),
                    attach.clone(),
                    attach,
                    (0, Step::Store { object: 1, at: 4200, len: 300, value: 7 }),
                    (0, Step::Psync { objects: vec![1] }),
                    (0, Step::Checkpoint { object: 1 }),
                ]);
                met += u64::from(run_and_cut(&start.pool(medium).medium(), &program, nth).unwrap());
            }
        }
    }
    assert!(met > 20, "{met}");
}

/// The error said that nothing had happened, but the object had shrunk.
#[test]
fn an_error_of_a_sealed_object_that_shrinks_says_that_nothing_happened() {
    let mut met = 0;
    for medium in media() {
        let pool = Start::Sealed.pool(medium);
        let operations =
            [(OpKind::Read, 70), (OpKind::WriteDurable, 8), (OpKind::Write, 8), (OpKind::Barrier, 8)];
        for (kind, most) in operations {
            for nth in 0..most {
                let resize = |size| Step::Resize { object: 2, size };
                let step = Box::new(resize(9000));
                let fail = Step::FailIn { step, kind, nth, fault: Fault::After, lasts: nth % 2 == 0 };
                let attach = |object| (0, Step::Attach { object });
                let load = Step::Load { object: 2, len: 9000, value: 3 };
                let program = Program(vec![attach(1), (0, fail), (0, resize(5000)), attach(2), (0, load)]);
                met += u64::from(run_and_cut(&pool.medium(), &program, nth).unwrap());
            }
        }
    }
    assert!(met > 20, "{met}");
}

/// Objects left the held lane by a detach, a psync, a recovery, or a destruction; and a refused
/// attach poisoned another object.
#[test]
fn an_object_that_is_held_still_does_not_leave_its_lane() {
    let attach = |object| Step::Attach { object };
    let hold = |object| Step::Hold { object };
    let detach = |object| Step::Detach { object };
    let store = |object| Step::Store { object, at: 100, len: 3000, value: 9 };
    let psync = Step::Psync { objects: vec![0, 1, 2, 3] };
    let load = |object| Step::Load { object, len: 9000, value: 3 };
    let destroy = |object| (0, Step::Destroy { object });
    let create = |object, size| (0, Step::Create { object, size, sparse: false });
    let written = |object| [(0, attach(object)), (0, store(object)), (0, psync.clone())];
    let mut programs = vec![
        vec![(0, attach(2)), (0, attach(0)), (0, store(2)), (1, hold(2)), (0, psync.clone())],
        vec![(0, attach(2)), (1, hold(2)), (0, detach(2)), destroy(2), create(3, 30_000), create(2, 20_000)],
        vec![
            (0, attach(0)),
            (0, attach(1)),
            (1, hold(1)),
            (0, detach(1)),
            (0, detach(0)),
            (0, attach(1)),
            (0, load(1)),
        ],
        vec![(0, attach(0)), (0, load(0)), (0, Step::Die), (0, attach(1)), (1, hold(1)), (0, attach(0))],
        vec![(0, attach(0)), (1, hold(0)), (1, Step::Die), (0, Step::Die), destroy(0)],
        vec![(0, attach(0)), (0, Step::Die), (2, attach(1)), (1, hold(0))],
    ];
    programs[5].extend(written(0));
    let repair = (0, Step::Repair { drop_damaged: false });
    programs.push([vec![(0, attach(0)), (1, hold(0)), repair], written(0).to_vec()].concat());
    for (nth, mut steps) in programs.into_iter().enumerate() {
        steps.push((1, Step::LetGo));
        for start in [Start::Used, Start::Tight] {
            for config in media() {
                let done = run_and_cut(&start.pool(config).medium(), &Program(steps.clone()), nth as u64);
                assert_eq!(done, Ok(false), "program {nth}, {start:?}");
            }
        }
    }
}

/// A repair took a failed write, or a read that failed once, for damage, and dropped changes of the
/// table.
#[test]
fn a_repair_that_fails_gives_nothing_up() {
    let kinds =
        [OpKind::Read, OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Reserve, OpKind::Verify];
    let mut met = 0;
    for (nth, kind) in (0..500).flat_map(|nth| kinds.map(|kind| (nth, kind))) {
        if nth > 16 && (kind != OpKind::Read || nth % (3 * sparse(2) as u64) > 0) {
            continue;
        }
        for (fault, drop_damaged) in [(Fault::Io, true), (Fault::NoSpace, false), (Fault::Short, true)] {
            let step = Box::new(Step::Repair { drop_damaged });
            let psync = |process| {
                [
                    (process, Step::Attach { object: 1 }),
                    (process, Step::Store { object: 1, at: 200, len: 300, value: 7 }),
                    (process, Step::Psync { objects: vec![1] }),
                ]
            };
            let mut program = Program(psync(0).to_vec());
            program.0.push((0, Step::FailIn { step, kind, nth, fault, lasts: false }));
            program.0.extend(psync(1));
            let start = [Start::Used, Start::TableLaneFull][nth as usize % 2];
            let pool = start.pool(media()[nth as usize % 6]);
            met += u64::from(run_and_cut(&pool.medium(), &program, nth).unwrap());
        }
    }
    assert!(met > 50, "{met}");
}

/// One copy of the header must stay safe until the other is durable.
#[test]
fn a_repair_that_failed_leaves_the_tables_lane_with_a_header() {
    let repair = Step::Repair { drop_damaged: false };
    let program = Program(vec![
        (0, Step::Attach { object: 0 }),
        (
            0,
            Step::FailIn {
                step: Box::new(repair.clone()),
                kind: OpKind::Barrier,
                nth: 1,
                fault: Fault::Short,
                lasts: false,
            },
        ),
        (0, repair),
    ]);
    for config in media() {
        let medium = Start::Tight.pool(config).medium();
        let promise = program.run(&medium).unwrap();
        let limits = Limits { exhaustive: 64, singles: 8, random: 16, points: u64::MAX, seed: 1 };
        for image in medium.power_cut_states(&limits) {
            judge_state(&image.medium(), &promise.allowed(&image))
                .unwrap_or_else(|cause| panic!("{cause} after {}", image.cut()));
        }
    }
}
