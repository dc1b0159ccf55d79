//! Puts that fail or kill the shipper, and stores whose objects were removed or changed: never a
//! wrong restore.

use crate::support::{
    Content, FAULTS, Fault, LEASE, Memory, PAGE, Place, Ticks, claim, content, difference, restore_to,
    ship_once,
};
use indelible::Pool;
use indelible_replicate::{Position, ReplicateError, Shipper, StoreAuthority};
use std::collections::BTreeMap;

const STEPS: u8 = 5;

fn step(pool: &Pool, n: u8) {
    match n {
        0 => pool.create("a", 3 * PAGE as u64).unwrap(),
        3 => pool.create("b", 100).unwrap(),
        _ => {}
    }
    let mut object = pool.attach("a").unwrap();
    object.range_mut(usize::from(n) * 1000..usize::from(n) * 1000 + 700).fill(n + 1);
    object.psync().unwrap();
    object.detach().unwrap();
}

fn fresh(place: &Place) -> Pool {
    let _ = std::fs::remove_file(&place.pool);
    Pool::format(&place.pool, 16 << 20).unwrap()
}

/// Content after each step, and restored moments must be among them.
struct States(Vec<Content>);

impl States {
    fn of(place: &Place) -> States {
        let pool = fresh(place);
        let mut states = Vec::new();
        for n in 0..STEPS {
            step(&pool, n);
            states.push(plain(content(&pool)));
        }
        States(states)
    }

    #[track_caller]
    fn expect(&self, found: Content, wanted: usize, what: &str) {
        assert_eq!(difference(&plain(found), &self.0[wanted]), None, "{what}");
    }

    fn which(&self, found: Content) -> Option<usize> {
        let found = plain(found);
        self.0.iter().position(|state| difference(&found, state).is_none())
    }
}

/// Without IDs, addresses and times, in which two runs differ.
fn plain(content: Content) -> Content {
    let same = |(name, (mut attributes, bytes)): (String, (indelible_store::store::Attributes, Vec<u8>))| {
        (attributes.id, attributes.address, attributes.created) = ([0; 16], 0, 0);
        attributes.published = 0;
        attributes.reserved = 0;
        attributes.keys = [[0; 16]; 2];
        (name, (attributes, bytes))
    };
    content.into_iter().map(same).collect()
}

/// Ships after each step; returns the number of the last acknowledged one.
fn ship(bucket: &Memory, pool: &Pool) -> (Option<u8>, Option<ReplicateError>) {
    let clock = Ticks::default();
    let mut authority = StoreAuthority::new(bucket, &clock, LEASE);
    let mut shipper = match Shipper::begin(pool, b"", &mut authority, &claim(pool, "shipper")) {
        Ok(shipper) => shipper,
        Err(error) => {
            (0..STEPS).for_each(|n| step(pool, n));
            return (None, Some(error));
        }
    };
    let (mut acknowledged, mut failed) = (None, None);
    for n in 0..STEPS {
        step(pool, n);
        clock.pass(LEASE / 2);
        match shipper.tick() {
            Ok(Some(_)) if failed.is_none() => acknowledged = Some(n),
            Ok(_) => {}
            Err(error) => failed = failed.take().or(Some(error)),
        }
    }
    (acknowledged, failed)
}

#[test]
fn s2_23_a_shipper_killed_at_any_put_loses_nothing_acknowledged() {
    let place = Place::new();
    let (states, target) = (States::of(&place), place.path("restored.pmo"));
    let mut kills = 0;
    for fault in [Fault::DiesBefore, Fault::DiesAfter] {
        for nth in 1.. {
            let (pool, bucket) = (fresh(&place), Memory::default());
            bucket.fail(nth, fault);
            let (acknowledged, failed) = ship(&bucket, &pool);
            if bucket.puts() < nth {
                assert!(failed.is_none());
                break;
            }
            kills += 1;
            let what = format!("{fault:?} at put {nth}, acknowledged {acknowledged:?}");
            bucket.revive();
            match restore_to(&bucket, &target, None) {
                Ok(_) => {
                    let found = states.which(content(&Pool::open(&target).unwrap()));
                    let found = found.unwrap_or_else(|| panic!("{what}: a state that never was"));
                    assert!(acknowledged.is_none_or(|last| found >= usize::from(last)), "{what}: {found}");
                }
                Err(ReplicateError::Empty(_)) => assert_eq!(acknowledged, None, "{what}"),
                Err(error) => panic!("{what}: {error}"),
            }
            // The next shipper goes on.
            ship_once(&bucket, &pool).unwrap_or_else(|error| panic!("{what}: {error}"));
            restore_to(&bucket, &target, None).unwrap();
            states.expect(content(&Pool::open(&target).unwrap()), usize::from(STEPS) - 1, &what);
        }
    }
    assert!(kills > 16, "{kills}");
}

#[test]
fn s2_23_failing_puts_are_tried_again() {
    let place = Place::new();
    let (states, target) = (States::of(&place), place.path("restored.pmo"));
    for fault in FAULTS {
        for nth in 1.. {
            let (pool, bucket) = (fresh(&place), Memory::default());
            bucket.fail(nth, fault);
            let (acknowledged, failed) = ship(&bucket, &pool);
            let what = format!("{fault:?} at put {nth}");
            assert!(failed.is_none(), "{what}: {failed:?}");
            assert_eq!(acknowledged, Some(STEPS - 1), "{what}");
            let total = bucket.puts();
            for n in 0..STEPS {
                let at = Position { epoch: 1, seq: u64::from(n) + 1 };
                restore_to(&bucket, &target, Some(at)).unwrap_or_else(|error| panic!("{what}: {error}"));
                states.expect(content(&Pool::open(&target).unwrap()), usize::from(n), &what);
            }
            if total < nth {
                break;
            }
        }
    }
}

/// A store that refuses everything ends the shipper, and names the object.
#[test]
fn s2_23_a_store_that_stays_away_is_named() {
    struct Away;
    impl indelible_replicate::Bucket for Away {
        fn get(&self, _: &str) -> Result<Vec<u8>, indelible_replicate::Trouble> {
            Err(indelible_replicate::Trouble::Unclear("500 Internal Server Error".into()))
        }
        fn put_new(&self, _: &str, _: &[u8]) -> Result<(), indelible_replicate::Trouble> {
            Err(indelible_replicate::Trouble::Unclear("500 Internal Server Error".into()))
        }
        fn put(&self, _: &str, _: &[u8]) -> Result<(), indelible_replicate::Trouble> {
            Err(indelible_replicate::Trouble::Unclear("500 Internal Server Error".into()))
        }
        fn list(&self, _: &str) -> Result<Vec<String>, indelible_replicate::Trouble> {
            Err(indelible_replicate::Trouble::Unclear("500 Internal Server Error".into()))
        }
    }
    let place = Place::new();
    let error = ship_once(&Away, &fresh(&place)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ReplicateError::Unreachable { .. }) && text.contains("500"), "{text}");
    let error = restore_to(&Away, &place.path("restored.pmo"), None).unwrap_err();
    assert!(matches!(error, ReplicateError::Unreachable { .. }), "{error}");
}

#[test]
fn the_file_of_a_killed_restore_is_removed_by_the_next() {
    let place = Place::new();
    let (bucket, pool, target) = (Memory::default(), fresh(&place), place.path("restored.pmo"));
    ship_once(&bucket, &pool).unwrap();
    let left = place.path("restored.pmo.999999.partial");
    std::fs::write(&left, b"half a pool").unwrap();
    restore_to(&bucket, &target, None).unwrap();
    assert!(!left.exists() && target.exists());
}

type Objects = BTreeMap<String, Vec<u8>>;

/// Restores each moment of a changed store: each is its state, or an error.
fn judge(place: &Place, states: &States, objects: Objects, name: &str, what: &str) -> (usize, usize) {
    let (bucket, target) = (Memory::default(), place.path("restored.pmo"));
    bucket.set(objects);
    let (mut right, mut errors) = (0, 0);
    for n in (0..STEPS).map(Some).chain([None]) {
        let at = n.map(|n| Position { epoch: 1, seq: u64::from(n) + 1 });
        match restore_to(&bucket, &target, at) {
            Ok(_) => {
                let found = content(&Pool::open(&target).unwrap());
                match n {
                    Some(n) => states.expect(found, usize::from(n), &format!("{name} {what}, moment {n}")),
                    None => assert!(states.which(found).is_some(), "{name} {what}: a state that never was"),
                }
                right += 1;
            }
            Err(error) => {
                let text = error.to_string();
                // The epoch of another pool makes all segments foreign.
                let other = matches!(error, ReplicateError::NoMoment { .. } | ReplicateError::Foreign { .. });
                let names = text.contains(name) || other;
                let none = matches!(error, ReplicateError::Empty(_));
                assert!(names || none, "{name} {what}, moment {n:?}: {text}");
                assert!(!target.exists());
                errors += 1;
            }
        }
    }
    (right, errors)
}

#[test]
fn s2_23_removed_changed_cut_and_foreign_objects_give_no_wrong_restore() {
    let place = Place::new();
    let states = States::of(&place);
    let (bucket, pool) = (Memory::default(), fresh(&place));
    assert_eq!(ship(&bucket, &pool).0, Some(STEPS - 1));
    let (other, other_pool) = (Memory::default(), fresh(&place));
    assert_eq!(ship(&other, &other_pool).0, Some(STEPS - 1));
    let objects = bucket.objects();
    let (mut right, mut errors) = (0, 0);
    let mut judged = |changed: Objects, name: &str, what: &str| {
        let (good, bad) = judge(&place, &states, changed, name, what);
        (right, errors) = (right + good, errors + bad);
    };
    for (name, bytes) in &objects {
        let with = |bytes: Vec<u8>| {
            let mut changed = objects.clone();
            changed.insert(name.clone(), bytes);
            changed
        };
        let mut removed = objects.clone();
        removed.remove(name);
        judged(removed, name, "removed");
        judged(with([&bytes[..], &bytes[..]].concat()), name, "doubled");
        judged(with(Vec::new()), name, "empty");
        judged(with(other.objects()[name].clone()), name, "of another pool");
        for part in 1..8 {
            judged(with(bytes[..bytes.len() * part / 8].to_vec()), name, "cut");
        }
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(24)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            judged(with(changed), name, &format!("changed at {at}"));
        }
        for (from, other) in objects.iter().filter(|(from, _)| *from != name) {
            judged(with(other.clone()), name, &format!("replaced by {from}"));
        }
    }
    println!("{right} right restores, {errors} errors");
    assert!(right > 100 && errors > 100, "{right}, {errors}");
}
