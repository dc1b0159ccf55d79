use crate::support::{AMPLE, PATIENCE, Rig, attach, step, until};
use indelible_guard::{Budget, Outcome, rehearse};
use std::time::Duration;

const SHORT: Budget = Budget {
    hold_up: Duration::from_millis(1100),
    safety: Duration::from_millis(100),
    bandwidth: Some(1 << 20),
};

#[test]
fn s1_07_at_the_signal_everything_that_was_committed_becomes_durable() {
    let rig = Rig::new(AMPLE);
    let mut writer = rig.writer("busy");
    rig.registered(1);
    let before = (0..200).map(|_| writer.said().unwrap()).last().unwrap();
    assert!(rig.durable() < before, "the guard did not ask");
    let round = rig.fail();
    assert!(round.durable && round.writers[0].outcome == Outcome::Published, "{round:?}");
    assert!(rig.durable() >= before);
    assert!(round.writers[0].bytes > 0, "{round:?}");
    for _ in 0..50 {
        let said = writer.said().unwrap();
        assert!(rig.durable() >= said, "while the power fails every transaction is durable when it returns");
    }
    std::fs::write(&rig.power, "fine").unwrap();
    until("the power is back", || !rig.status().failing);
    until("commits run ahead of what is durable", || {
        let said = writer.said().unwrap();
        said > rig.durable()
    });
}

fn late_writer(mutant: Option<&str>) {
    let rig = Rig::new(SHORT);
    let mut writer = rig.writer_with("stuck", mutant);
    while writer.said().unwrap() < 20 {}
    let last = 20;
    rig.registered(1);
    let round = rig.fail();
    assert_eq!(rig.durable(), last, "{round:?}");
    assert!(round.durable && round.writers[0].outcome == Outcome::Recovered, "{round:?}");
    assert_eq!(writer.said(), None, "it is dead");
}

#[test]
fn s1_07_a_writer_that_does_not_answer_in_time_is_killed_and_recovered() {
    late_writer(None);
}

#[cfg(feature = "__mutants")]
#[test]
fn mutants_that_acknowledge_before_they_publish_are_noticed() {
    let failed = std::panic::catch_unwind(|| late_writer(Some("AcknowledgedUnflushed")));
    assert!(failed.is_err(), "AcknowledgedUnflushed goes unnoticed");
}

#[test]
fn a_rehearsal_publishes_and_kills_nobody() {
    let rig = Rig::new(SHORT);
    let nobody = rehearse(&rig.socket, PATIENCE).unwrap();
    assert!(nobody.durable && nobody.writers.is_empty() && nobody.cause == "rehearsal", "{nobody:?}");
    let (pool, a, b) = attach(&rig.pool, &rig.socket);
    rig.registered(1);
    let last = (0..10).map(|_| step(&a, &b)).last().unwrap();
    let round = rehearse(&rig.socket, PATIENCE).unwrap();
    assert!(round.durable && round.writers[0].outcome == Outcome::Published, "{round:?}");
    assert_eq!((rig.durable(), rig.status().last), (last, Some(round)));
    until("commits are on demand again", || {
        step(&a, &b);
        a.pending().bytes > 0
    });
    drop((a, b, pool));
    let mut writer = rig.writer("stuck");
    while writer.said().unwrap() < 20 {}
    until("the other one is registered", || {
        rig.status().writers.iter().any(|found| found.pid as u32 == writer.child.id())
    });
    let round = rehearse(&rig.socket, PATIENCE).unwrap();
    let outcomes: Vec<_> = round.writers.iter().map(|writer| writer.outcome).collect();
    assert!(!round.durable && outcomes.contains(&Outcome::Silent), "{round:?}");
    assert!(writer.child.try_wait().unwrap().is_none(), "it lives");
}

#[test]
fn s1_10_a_budget_bounds_the_commits_that_are_not_durable() {
    // One second at 512 bytes per second, for one writer.
    let budget = Budget {
        hold_up: Duration::from_millis(1150),
        safety: Duration::from_millis(100),
        bandwidth: Some(512),
    };
    let rig = Rig::new(budget);
    let (pool, a, b) = attach(&rig.pool, &rig.socket);
    rig.registered(1);
    assert_eq!(rig.status().writers[0].budget, 512);
    let pending = || pool.pending("a").unwrap().unwrap();
    until("the bound holds", || {
        (0..8).for_each(|cell| a.transaction(|tx| tx.write(&a[cell * 8], 1)).unwrap());
        (0..8).for_each(|cell| b.transaction(|tx| tx.write(&b[cell * 8], 1)).unwrap());
        pending().at_once > 0
    });
    for round in 0..50 {
        (0..8).for_each(|cell| a.transaction(|tx| tx.write(&a[cell * 8], round)).unwrap());
        (0..8).for_each(|cell| b.transaction(|tx| tx.write(&b[cell * 8], round)).unwrap());
        assert!(a.pending().bytes <= 512, "{:?}", a.pending());
    }
    let before = pending().at_once;
    assert!(before >= 50, "{before}");
    let other = Rig::without_guard();
    let _writer = other.writer_at("idle", &rig.socket);
    rig.registered(2);
    until("it is shared", || rig.status().writers.iter().all(|writer| writer.budget == 256));
}
