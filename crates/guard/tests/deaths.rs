use crate::support::{AMPLE, Rig, attach, recover, step, until};
use indelible::Pool;
use indelible_guard::detector::FileDetector;
use indelible_guard::{Note, Outcome};
use indelible_testing::Seeded;
use std::sync::{Arc, Mutex, mpsc};

#[test]
fn s1_09_a_death_publishes() {
    let rig = Rig::new(AMPLE);
    let mut random = Seeded::new(5);
    let mut before = 0;
    for death in 1..=10 {
        let mut writer = rig.writer("busy");
        rig.registered(1);
        let mut said = 0;
        (0..random.usize(1..300)).for_each(|_| said = writer.said().unwrap());
        writer.kill();
        while let Some(number) = writer.said() {
            said = number;
        }
        until("it is recovered", || rig.status().recovered == death);
        let durable = rig.durable();
        assert!(durable >= said && said > before, "{said} was committed, {durable} are durable");
        assert_eq!(Pool::open(&rig.pool).unwrap().pending("b").unwrap(), None, "nothing is left in memory");
        before = durable;
    }
    assert_eq!(rig.status().lost, 0, "{:?}", rig.notes.lock().unwrap());
}

#[test]
fn writers_outlive_their_guard() {
    let mut rig = Rig::new(AMPLE);
    let (_pool, a, b) = attach(&rig.pool, &rig.socket);
    let mut last = 0;
    for _ in 0..3 {
        rig.registered(1);
        std::fs::write(&rig.power, "failing").unwrap();
        rig.end();
        until("commits are on demand", || {
            step(&a, &b);
            a.pending().bytes > 0
        });
        last = step(&a, &b);
        std::fs::remove_file(&rig.power).unwrap();
        rig.guard(AMPLE, vec![Box::new(FileDetector::new(&rig.power))]);
    }
    rig.registered(1);
    assert!(rig.durable() <= last);
    a.tx_sync().unwrap();
    assert_eq!(rig.durable(), last);
}

#[test]
fn a_writer_that_detaches_leaves() {
    let rig = Rig::new(AMPLE);
    let (_pool, a, b) = attach(&rig.pool, &rig.socket);
    rig.registered(1);
    step(&a, &b);
    drop((a, b));
    rig.registered(0);
    let notes = rig.notes.lock().unwrap();
    assert!(notes.iter().any(|note| matches!(note, Note::Left { .. })), "{notes:?}");
    assert!(
        !notes.iter().any(|note| matches!(note, Note::Recovered { .. } | Note::Lost { .. })),
        "{notes:?}"
    );
}

#[test]
fn without_a_guard_a_death_loses_nothing() {
    let mut rig = Rig::new(AMPLE);
    let mut writer = rig.writer("busy");
    rig.registered(1);
    let said = (0..50).map(|_| writer.said().unwrap()).last().unwrap();
    rig.end();
    writer.kill();
    assert!(Pool::open(&rig.pool).unwrap().pending("b").unwrap().unwrap().transactions > 0);
    assert!(Pool::open(&rig.pool).unwrap().recover().unwrap() > 0);
    assert!(rig.durable() >= said);
}

/// Until the earlier death's recovery is done, not everything is durable.
#[test]
fn a_round_waits_for_recoveries_that_began_before_it() {
    let mut rig = Rig::without_guard();
    let (go_on, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let held = Arc::new(move |departed: &_| {
        gate.lock().unwrap().recv().unwrap();
        recover(departed)
    });
    rig.guard_with(AMPLE, vec![Box::new(FileDetector::new(&rig.power))], held);
    let mut writer = rig.writer("idle");
    while writer.said().unwrap() < 20 {}
    rig.registered(1);
    writer.kill();
    rig.registered(0);
    std::fs::write(&rig.power, "failing").unwrap();
    until("the power fails", || rig.status().failing);
    assert_eq!((rig.status().last, rig.status().recovered), (None, 0), "the pool lacks what it committed");
    go_on.send(()).unwrap();
    let round = rig.fail();
    assert!(round.durable && round.writers[0].outcome == Outcome::Recovered, "{round:?}");
    assert_eq!(rig.durable(), 20);
}
