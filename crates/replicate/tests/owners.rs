//! Two processes that want to ship to one prefix: no moment that one of them acknowledged is lost.

use crate::support::{LEASE, Memory, PAGE, Place, Ticks, claim, content, difference, restore_to, ship_once};
use indelible::Pool;
use indelible_replicate::{
    Authority, Bucket, Claim, Clock, Folder, Position, ReplicateError, Shipper, StoreAuthority, Trouble,
};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::time::Duration;

/// Calls something before one put, or during one wait.
struct Hooked<'a> {
    bucket: &'a dyn Bucket,
    clock: Ticks,
    puts: Mutex<u64>,
    at: u64,
    hook: Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>,
    in_wait: bool,
}

impl<'a> Hooked<'a> {
    fn new(bucket: &'a dyn Bucket, at: u64, in_wait: bool, hook: impl FnOnce() + Send + 'a) -> Self {
        let (clock, puts) = (Ticks::default(), Mutex::new(0));
        Hooked { bucket, clock, puts, at, hook: Mutex::new(Some(Box::new(hook))), in_wait }
    }

    fn call(&self) {
        let hook = self.hook.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
    }

    fn has_called(&self) -> bool {
        self.hook.lock().unwrap().is_none()
    }

    fn count(&self) {
        let mut puts = self.puts.lock().unwrap();
        *puts += 1;
        if *puts == self.at && !self.in_wait {
            self.call();
        }
    }
}

impl Bucket for Hooked<'_> {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        self.bucket.get(name)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.count();
        self.bucket.put_new(name, bytes)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.count();
        self.bucket.put(name, bytes)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        self.bucket.list(folder)
    }
}

impl Clock for Hooked<'_> {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wait(&self, time: Duration) -> bool {
        if self.in_wait {
            self.call();
        }
        self.clock.wait(time)
    }
}

fn pool(place: &Place) -> Pool {
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    pool.create("counter", PAGE as u64).unwrap();
    pool
}

fn count(pool: &Pool, number: u8) {
    let mut object = pool.attach("counter").unwrap();
    object.range_mut(0..1)[0] = number;
    object.psync().unwrap();
    object.detach().unwrap();
}

fn restored(place: &Place, bucket: &dyn Bucket, at: Option<Position>) -> u8 {
    let target = place.path("restored.pmo");
    restore_to(bucket, &target, at).unwrap();
    Pool::open(&target).unwrap().attach_read("counter").unwrap().as_slice()[0]
}

fn taking_over(pool: &Pool, owner: &str) -> Claim {
    Claim { take_over: true, ..claim(pool, owner) }
}

#[test]
fn s2_23_a_fenced_owner_ships_nothing_more() {
    let place = Place::new();
    let pool = pool(&place);
    let (bucket, clock, other) = (Memory::default(), Ticks::default(), Ticks::default());
    let mut first = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut first = Shipper::begin(&pool, b"", &mut first, &claim(&pool, "first")).unwrap();
    count(&pool, 1);
    first.tick().unwrap();
    // It stands still for longer than its lease: the second waits that long, and takes over.
    let mut second = StoreAuthority::new(&bucket, &other, LEASE);
    let mut second = Shipper::begin(&pool, b"", &mut second, &claim(&pool, "second")).unwrap();
    assert!(other.now() >= LEASE);
    count(&pool, 2);
    let error = first.tick().unwrap_err();
    assert!(matches!(error, ReplicateError::Fenced { epoch: 1, .. }), "{error}");
    assert_eq!(restored(&place, &bucket, None), 1);
    assert!(first.has_ended() && first.tick().is_err());
    second.tick().unwrap().unwrap();
    assert_eq!(restored(&place, &bucket, None), 2);
    // Earlier moments stay.
    assert_eq!(restored(&place, &bucket, Some(Position { epoch: 1, seq: 1 })), 1);
}

#[test]
fn s2_23_an_owner_that_lives_is_left_alone() {
    let place = Place::new();
    let pool = pool(&place);
    let (bucket, clock) = (Memory::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
    owner.tick().unwrap();
    let mut beats = || {
        clock.pass(LEASE);
        owner.tick().unwrap();
    };
    let beats: &mut (dyn FnMut() + Send) = &mut beats;
    let waits = Hooked::new(&bucket, 0, true, beats);
    let error = StoreAuthority::new(&waits, &waits, LEASE).claim(&claim(&pool, "late")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ReplicateError::Owned { epoch: 1, .. }) && text.contains("owner"), "{text}");
    drop(waits);
    count(&pool, 7);
    owner.tick().unwrap();
    assert_eq!(restored(&place, &bucket, None), 7);
    // A claimant does not wait for an owner that gave its epoch up.
    owner.end();
    let soon = Ticks::default();
    let mut next = StoreAuthority::new(&bucket, &soon, LEASE);
    assert_eq!(next.claim(&claim(&pool, "next")).unwrap(), Position { epoch: 2, seq: 0 });
    assert_eq!(soon.now(), Duration::ZERO);
}

/// A second claimant, or the present owner, acts before each put of a claim.
#[test]
fn s2_23_of_two_claimants_one_is_the_owner() {
    let mut races = 0;
    for at in 1.. {
        let place = Place::new();
        let pool = pool(&place);
        let (bucket, clock, other) = (Memory::default(), Ticks::default(), Ticks::default());
        let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
        let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
        count(&pool, 1);
        owner.tick().unwrap();
        let (mut rival, mut acknowledged, mut won) = (StoreAuthority::new(&bucket, &other, LEASE), 1, None);
        let (owner, rival_ref, acknowledged_ref, won_ref) =
            (&mut owner, &mut rival, &mut acknowledged, &mut won);
        let shared = &pool;
        let meanwhile = Hooked::new(&bucket, at, false, move || {
            count(shared, 2);
            // Only an acknowledged moment must not be lost.
            if owner.tick().is_ok() {
                *acknowledged_ref = 2;
            }
            *won_ref = Some(rival_ref.claim(&taking_over(shared, "rival")));
        });
        let late = Ticks::default();
        let mut claimant = StoreAuthority::new(&meanwhile, &late, LEASE);
        let claimed = claimant.claim(&taking_over(&pool, "claimant"));
        if !meanwhile.has_called() {
            break;
        }
        drop(claimant);
        drop(meanwhile);
        races += 1;
        let won = won.unwrap();
        let epochs: Vec<u64> =
            [&claimed, &won].iter().filter_map(|one| Some(one.as_ref().ok()?.epoch)).collect();
        assert!(!epochs.is_empty(), "put {at}: {claimed:?}, {won:?}");
        assert!(epochs.len() == 1 || epochs[0] != epochs[1], "put {at}: two owners of {epochs:?}");
        assert_eq!(restored(&place, &bucket, None), acknowledged, "put {at}");
    }
    assert!(races >= 3, "{races}");
}

/// A put of the owner arrives after its epoch has ended.
#[test]
fn s2_23_a_late_put_counts_in_time_or_never() {
    use crate::support::Fault;
    let place = Place::new();
    let pool = pool(&place);
    let (bucket, clock, other) = (Memory::default(), Ticks::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let at = authority.claim(&claim(&pool, "owner")).unwrap();
    bucket.fail(1, Fault::Late);
    let once = |segment: &[u8]| bucket.put_new(&at.next().name(), segment);
    assert!(matches!(once(b"PMOBACKP late"), Err(Trouble::Unclear(_))));
    let mut second = StoreAuthority::new(&bucket, &other, LEASE);
    assert_eq!(second.claim(&taking_over(&pool, "second")).unwrap(), Position { epoch: 2, seq: 0 });
    // It arrived when the end was there.
    assert_eq!(bucket.get(&at.next().name()).unwrap().first(), Some(&b'{'));
    let error = authority.publish(at.next(), b"PMOBACKP late").unwrap_err();
    assert!(matches!(error, ReplicateError::Fenced { .. }), "{error}");
}

/// Clocks at half and at double speed, and a partition, of either owner.
#[test]
fn s2_23_skewed_clocks_and_partitions_lose_nothing() {
    for (slow, fast) in [(50, 200), (200, 50), (1, 1000)] {
        let place = Place::new();
        let pool = pool(&place);
        let (bucket, clock, other) = (Memory::default(), Ticks::at(slow), Ticks::at(fast));
        let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
        let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
        let mut acknowledged = 0;
        for number in 1..10 {
            count(&pool, number);
            clock.pass(LEASE);
            other.pass(LEASE);
            if number == 5 {
                let mut taker = StoreAuthority::new(&bucket, &other, LEASE);
                taker.claim(&claim(&pool, "taker")).unwrap();
            }
            if owner.tick().is_ok() {
                acknowledged = number;
            }
        }
        assert_eq!(acknowledged, 4);
        assert_eq!(restored(&place, &bucket, None), 4, "{slow} and {fast} percent");
    }
}

#[test]
fn s2_23_a_restored_pool_takes_the_place_of_the_first() {
    let place = Place::new();
    let pool = pool(&place);
    let (bucket, clock) = (Memory::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
    count(&pool, 1);
    owner.tick().unwrap();
    let path = place.path("elsewhere.pmo");
    restore_to(&bucket, &path, None).unwrap();
    let promoted = Pool::open(&path).unwrap();
    assert_eq!(difference(&content(&promoted), &content(&pool)), None);
    let other = Ticks::default();
    let mut second = StoreAuthority::new(&bucket, &other, LEASE);
    let error = second.claim(&claim(&promoted, "second")).unwrap_err();
    assert!(matches!(error, ReplicateError::OtherPool { .. }), "{error}");
    // An unrelated pool takes no place, also an empty one, or one with an object of the same name.
    for name in ["other", "counter"] {
        let unrelated = Pool::format(place.path(name), 16 << 20).unwrap();
        if name == "counter" {
            unrelated.create(name, PAGE as u64).unwrap();
        }
        let how = Claim { promote: true, ..claim(&unrelated, "unrelated") };
        let error = second.claim(&how).unwrap_err();
        assert!(matches!(error, ReplicateError::Unrelated { .. }), "{error}");
    }
    let how = Claim { promote: true, ..claim(&promoted, "second") };
    let mut second = Shipper::begin(&promoted, b"", &mut second, &how).unwrap();
    count(&promoted, 9);
    second.tick().unwrap();
    count(&pool, 2);
    assert!(matches!(owner.tick().unwrap_err(), ReplicateError::Fenced { .. }));
    assert_eq!(restored(&place, &bucket, None), 9);
}

/// A store that lost the record of an epoch, and kept its segments.
#[test]
fn s2_23_a_missing_first_object_is_named() {
    let place = Place::new();
    let pool = pool(&place);
    let (bucket, clock) = (Memory::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut owner = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "owner")).unwrap();
    count(&pool, 1);
    owner.tick().unwrap();
    let gone = |epoch: u64| {
        let mut objects = bucket.objects();
        let name = format!("epoch/{epoch:012}");
        objects.remove(&name).unwrap();
        bucket.set(objects);
        name
    };
    let named = |name: &str, error: ReplicateError| {
        let text = error.to_string();
        assert!(matches!(&error, ReplicateError::Missing { name: gone, .. } if gone == name), "{text}");
        assert!(text.contains("copy it back from a replica of the store"), "{text}");
    };
    let before = bucket.objects();
    let name = gone(1);
    named(&name, indelible_replicate::status(&bucket, &clock).unwrap_err());
    let target = place.path("restored.pmo");
    named(&name, restore_to(&bucket, &target, None).unwrap_err());
    named(&name, ship_once(&bucket, &pool).unwrap_err());
    // The run that lives ships nothing more that no restore finds.
    clock.pass(LEASE);
    count(&pool, 2);
    named(&name, owner.tick().unwrap_err());
    assert!(owner.has_ended());
    // A lease alone.
    let mut lease = bucket.objects();
    lease.retain(|name, _| name.ends_with("lease"));
    bucket.set(lease);
    named(&name, restore_to(&bucket, &target, None).unwrap_err());
    // The record of the newest epoch, behind an older one.
    bucket.set(before);
    ship_once(&bucket, &pool).unwrap().unwrap();
    let name = gone(2);
    named(&name, restore_to(&bucket, &target, None).unwrap_err());
    named(&name, ship_once(&bucket, &pool).unwrap_err());
    bucket.set(BTreeMap::new());
    let none = restore_to(&bucket, &target, None).unwrap_err();
    assert!(matches!(none, ReplicateError::Empty(_)), "{none}");
}

#[test]
fn a_store_in_a_folder_is_its_owners_alone() {
    let place = Place::new();
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    pool.create("a", PAGE as u64).unwrap();
    let store = place.path("store");
    ship_once(&Folder::new(store.join("here")), &pool).unwrap();
    let (mut open, mut files) = (vec![store], 0);
    while let Some(path) = open.pop() {
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!(found.mode() & 0o077, 0, "{}", path.display());
        if found.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files += 1;
        }
    }
    assert!(files >= 2, "{files}");
}
