//! One pool shipped to several stores, and pools of many objects.

use crate::support::{
    LEASE, Memory, PAGE, Place, Random, Ticks, claim, content, difference, restore_to, ship_once,
};
use indelible::Pool;
use indelible_replicate::{Shipped, Shipper, StoreAuthority};

const LEN: usize = 1 << 20;
/// More than a round changes, and much less than the pool has.
const FEW: u64 = 64 << 10;

fn pool(place: &Place) -> Pool {
    let pool = Pool::format(&place.pool, 64 << 20).unwrap();
    let mut random = Random(7);
    for name in ["a", "b"] {
        let mut object = pool.create_attached(name, LEN as u64).unwrap();
        object.as_mut_slice().fill_with(|| random.next() as u8);
        object.psync().unwrap();
        object.detach().unwrap();
    }
    pool
}

fn change(pool: &Pool, name: &str, round: usize) {
    let mut object = pool.attach(name).unwrap();
    object.as_mut_slice()[round * PAGE] = round as u8;
    object.psync().unwrap();
    object.detach().unwrap();
}

fn snapshots(pool: &Pool) -> Vec<String> {
    let names = pool.list().map(|stat| stat.unwrap().name);
    names.filter(|name| name.starts_with("pmo-replica.")).collect()
}

#[track_caller]
fn restores(place: &Place, bucket: &Memory, pool: &Pool) {
    let target = place.path("restored.pmo");
    restore_to(bucket, &target, None).unwrap();
    let found = content(&Pool::open(&target).unwrap());
    assert_eq!(difference(&found, &content(pool)), None);
}

#[track_caller]
fn expect_few(shipped: Option<Shipped>) {
    assert!(shipped.is_none_or(|shipped| !shipped.full && shipped.bytes < FEW), "{shipped:?}");
}

#[test]
fn a_pool_goes_to_two_stores_at_once_and_whole_to_each_once() {
    let place = Place::new();
    let pool = pool(&place);
    let (one, two, clock) = (Memory::default(), Memory::default(), Ticks::default());
    let mut authorities = [&one, &two].map(|bucket| StoreAuthority::new(bucket, &clock, LEASE));
    let mut shippers: Vec<_> = authorities
        .iter_mut()
        .map(|authority| Shipper::begin(&pool, b"", authority, &claim(&pool, "owner")).unwrap())
        .collect();
    for shipper in &mut shippers {
        let first = shipper.tick().unwrap().unwrap();
        assert!(first.full && first.bytes > LEN as u64, "{first:?}");
    }
    let mut held = None;
    for round in 1..9 {
        // A writer that stays, later on.
        if round == 5 {
            held = Some(pool.attach("b").unwrap());
        }
        change(&pool, "a", round);
        if let Some(object) = &mut held {
            object.as_mut_slice()[round * PAGE..][..9].fill(round as u8);
            object.psync().unwrap();
        }
        for turn in 0..shippers.len() {
            let at = (turn + round / 2) % 2;
            expect_few(shippers[at].tick().unwrap());
        }
        [&one, &two].into_iter().for_each(|bucket| restores(&place, bucket, &pool));
    }
    drop(held);
    // Each finds the snapshots of the other, and rests.
    for _ in 0..2 {
        shippers.iter_mut().for_each(|shipper| expect_few(shipper.tick().unwrap()));
    }
    let before = snapshots(&pool);
    for _ in 0..3 {
        shippers.iter_mut().for_each(|shipper| assert_eq!(shipper.tick().unwrap(), None));
    }
    assert_eq!(snapshots(&pool), before);
    [&one, &two].into_iter().for_each(|bucket| restores(&place, bucket, &pool));
    shippers.into_iter().for_each(Shipper::end);
    assert_eq!(snapshots(&pool), [""; 0]);
}

#[test]
fn runs_to_two_stores_by_turns_leave_the_snapshots_of_the_other() {
    let place = Place::new();
    let pool = pool(&place);
    let (one, two, clock) = (Memory::default(), Memory::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&one, &clock, LEASE);
    let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
    owner.tick().unwrap().unwrap();
    for round in 1..5 {
        change(&pool, "a", round);
        assert!(ship_once(&two, &pool).unwrap().unwrap().full);
        expect_few(owner.tick().unwrap());
        [&one, &two].into_iter().for_each(|bucket| restores(&place, bucket, &pool));
    }
    // A killed run's go with the next run to its store alone.
    let left = snapshots(&pool);
    std::mem::forget(owner);
    assert_eq!(left.len(), 2);
    ship_once(&two, &pool).unwrap().unwrap();
    assert_eq!(snapshots(&pool), left);
    // It goes on from them.
    expect_few(ship_once(&one, &pool).unwrap());
    assert_eq!(snapshots(&pool), [""; 0]);
    restores(&place, &one, &pool);
}

#[test]
fn a_thousand_objects_are_one_moment() {
    let place = Place::new();
    let pool = Pool::format(&place.pool, 256 << 20).unwrap();
    (0..1000).for_each(|number| pool.create(&format!("object {number}"), 1).unwrap());
    let bucket = Memory::default();
    ship_once(&bucket, &pool).unwrap().unwrap();
    assert_eq!(snapshots(&pool), [""; 0]);
    let target = place.path("restored.pmo");
    assert_eq!(restore_to(&bucket, &target, None).unwrap().objects.len(), 1000);
}
