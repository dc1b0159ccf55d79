use crate::support::{Ground, World, everywhere};
use indelible::{ErrorKind, Persistent, Tracking, TxHeap, persistent};
use indelible_testing::Choice;
use std::sync::Arc;

persistent! {
    static HITS: u64 = 1000;
    static SCORES: [i64; 3] = [7, 8, 9];
}

fn hit(statics: &TxHeap) -> u64 {
    let hits = HITS.of(statics).unwrap();
    statics
        .transaction(|tx| {
            let now = tx.read(hits)? + 1;
            tx.write(hits, now)?;
            Ok::<_, indelible::Error>(now)
        })
        .unwrap()
}

#[test]
fn s1_02_statics_are_found_again_and_made_once() {
    everywhere(|world| {
        let pool = world.format();
        let statics = pool.statics().unwrap();
        assert_eq!((hit(&statics), hit(&statics)), (1001, 1002));
        let scores = statics.transaction(|tx| {
            let scores = SCORES.within(tx, &statics)?;
            tx.update(scores, |[a, b, c]| [a + 1, b, c])?;
            tx.read(scores)
        });
        assert_eq!(scores.unwrap(), [8, 8, 9]);
        statics.detach().unwrap();
        drop(pool);
        let statics = world.open().statics().unwrap();
        assert_eq!(hit(&statics), 1003);
        let scores = SCORES.of(&statics).unwrap();
        assert_eq!(statics.transaction(|tx| tx.read(scores)).unwrap(), [8, 8, 9]);
        assert_eq!(statics.check().unwrap(), []);
    });
}

#[test]
fn a_variable_of_a_transaction_that_fails_was_never_made() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let statics = world.format().statics().unwrap();
    let undone: Result<(), String> = statics
        .transaction(|tx| {
            let hits = HITS.within(tx, &statics).map_err(Undone::from)?;
            tx.write(hits, 5).map_err(Undone::from)?;
            Err(Undone::Wanted)
        })
        .map_err(|error: Undone| format!("{error:?}"));
    assert_eq!(undone.unwrap_err(), "Wanted");
    let root = statics.transaction(|tx| statics.root_in::<indelible::TxCell<u64>>(tx, "HITS"));
    assert!(root.unwrap().is_none());
    assert_eq!(hit(&statics), 1001);
}

#[derive(Debug)]
enum Undone {
    Wanted,
    Failed(#[allow(dead_code)] indelible::Error),
}

impl From<indelible::Error> for Undone {
    fn from(error: indelible::Error) -> Undone {
        Undone::Failed(error)
    }
}

#[test]
fn of_threads_that_race_one_makes_a_variable() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let statics = world.format().statics().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| _ = hit(&statics)));
        }
    });
    let hits = HITS.of(&statics).unwrap();
    assert_eq!(statics.transaction(|tx| tx.read(hits)).unwrap(), 1160);
}

#[test]
fn a_variable_of_another_type_is_refused_with_the_difference() {
    static OTHER: Persistent<f64> = Persistent::new("HITS", 0.5);
    static LONGER: Persistent<[u64; 2]> = Persistent::new("HITS", [0; 2]);
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let statics = world.format().statics().unwrap();
    hit(&statics);
    for error in [OTHER.of(&statics).map(drop), LONGER.of(&statics).map(drop)].map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::RootType);
        assert!(error.to_string().contains("value"), "{error}");
    }
    assert_eq!(hit(&statics), 1002, "it is as it was");
}

#[test]
fn power_cuts_leave_variables_whole() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let sim = world.sim().unwrap();
    let (statics, mut images) = (world.format().statics().unwrap(), Vec::new());
    for count in 1001..1004 {
        assert_eq!(hit(&statics), count);
        images.extend((0..8).map(|seed| (count, seed, sim.power_cut(Choice::Random(seed)).medium())));
    }
    drop(statics);
    for (count, seed, image) in images {
        let pool = world.options().on_device(Arc::new(image), false).unwrap();
        let found = pool.statics().unwrap();
        let hits = HITS.of(&found).unwrap();
        assert_eq!(found.transaction(|tx| tx.read(hits)).unwrap(), count, "seed {seed}");
    }
}
