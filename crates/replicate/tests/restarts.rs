//! Runs that go on from the snapshots of a killed or paused one: they ship what changed, and every
//! restore is right.

use crate::support::{
    Content, LEASE, Memory, PAGE, Place, Random, Ticks, claim, content, difference, restore_to,
};
use indelible::{CreateOptions, Object, Pool};
use indelible_replicate::{Beginning, Bucket, Claim, Position, Shipped, Shipper, StoreAuthority, Trouble};
use indelible_store::table::Key;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

const LEN: usize = 1 << 20;
/// More than a step changes, and much less than an object has.
const FEW: u64 = 64 << 10;
/// The first of some pages of zeros.
const ZEROS: usize = 200;
/// Less than an object of random bytes has.
const WHOLE: u64 = 768 << 10;

fn filled(pool: &Pool, name: &str, seed: u64) -> Object {
    let mut random = Random(seed);
    let mut object = pool.create_attached(name, LEN as u64).unwrap();
    object.as_mut_slice().fill_with(|| random.next() as u8);
    object.as_mut_slice()[ZEROS * PAGE..][..8 * PAGE].fill(0);
    object.psync().unwrap();
    object
}

fn made(path: &Path) -> Pool {
    let _ = std::fs::remove_file(path);
    let pool = Pool::format(path, 32 << 20).unwrap();
    for (name, seed) in [("a", 3), ("b", 5)] {
        filled(&pool, name, seed).detach().unwrap();
    }
    pool
}

fn set(pool: &Pool, name: &str, page: usize, byte: u8) {
    let mut object = pool.attach(name).unwrap();
    object.as_mut_slice()[page * PAGE..][..9].fill(byte);
    object.psync().unwrap();
    object.detach().unwrap();
}

fn snapshots(pool: &Pool) -> usize {
    pool.list().filter(|stat| stat.as_ref().unwrap().name.starts_with("pmo-replica.")).count()
}

/// Ships once as a run of its own, whose snapshots stay.
#[track_caller]
fn run(bucket: &Memory, pool: &Pool) -> (Beginning, Option<Shipped>) {
    let clock = Ticks::default();
    let mut authority = StoreAuthority::new(bucket, &clock, LEASE);
    let how = Claim { take_over: true, ..claim(pool, "next") };
    let mut shipper = Shipper::begin(pool, b"", &mut authority, &how).unwrap();
    let (beginning, shipped) = (shipper.beginning().clone(), shipper.tick().unwrap());
    shipper.pause();
    (beginning, shipped)
}

fn restored(place: &Place, bucket: &Memory, at: Option<Position>) -> Content {
    let target = place.path("restored.pmo");
    restore_to(bucket, &target, at).unwrap();
    content(&Pool::open(&target).unwrap())
}

#[track_caller]
fn is_in(place: &Place, bucket: &Memory, pool: &Pool) {
    assert_eq!(difference(&restored(place, bucket, None), &content(pool)), None);
}

#[track_caller]
fn expect_few(shipped: Option<Shipped>) {
    assert!(shipped.is_none_or(|shipped| !shipped.full && shipped.bytes < FEW), "{shipped:?}");
}

#[track_caller]
fn goes_on(beginning: &Beginning, objects_anew: &[&str]) {
    let Beginning::Continues { anew, .. } = beginning else { panic!("{beginning:?}") };
    assert_eq!(anew, objects_anew);
}

/// A store that keeps what a kill before or after its `nth` put leaves: pool file and objects.
struct Kill<'a> {
    bucket: &'a Memory,
    nth: u64,
    after: bool,
    pool: &'a Path,
    image: &'a Path,
    left: Mutex<Option<BTreeMap<String, Vec<u8>>>>,
}

impl Kill<'_> {
    fn put_as(&self, put: impl Fn() -> Result<(), Trouble>) -> Result<(), Trouble> {
        let done = self.after.then(&put);
        let mut left = self.left.lock().unwrap();
        let is_last = self.bucket.puts() + u64::from(!self.after) == self.nth;
        if is_last && left.is_none() {
            std::fs::copy(self.pool, self.image).unwrap();
            *left = Some(self.bucket.objects());
        }
        done.unwrap_or_else(put)
    }
}

impl Bucket for Kill<'_> {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        self.bucket.get(name)
    }
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(|| self.bucket.put_new(name, bytes))
    }
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(|| self.bucket.put(name, bytes))
    }
    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        self.bucket.list(folder)
    }
}

type Bytes = BTreeMap<String, Vec<u8>>;

fn bytes(content: Content) -> Bytes {
    content.into_iter().map(|(name, (_, bytes))| (name, bytes)).collect()
}

/// Two runs of psyncs with a moment after each; the states that were shipped, without those after
/// the kill.
fn live(bucket: &Kill<'_>, pool: &Pool) -> Vec<(Position, Bytes)> {
    let clock = Ticks::default();
    let (mut model, mut states) = (bytes(content(pool)), Vec::new());
    for life in 0..2 {
        let mut authority = StoreAuthority::new(bucket, &clock, LEASE);
        let mut shipper = Shipper::begin(pool, b"", &mut authority, &claim(pool, "killed")).unwrap();
        // A writer that stays, so that lines are shipped, and one that comes and goes.
        let mut held = pool.attach("b").unwrap();
        for step in 0..4 {
            let at = (life * 4 + step) * PAGE;
            held.as_mut_slice()[at + 77..][..40].fill(step as u8);
            held.psync().unwrap();
            model.insert("b".into(), held.as_slice().to_vec());
            set(pool, "a", life * 4 + step, step as u8 + 100);
            model.get_mut("a").unwrap()[at..][..9].fill(step as u8 + 100);
            if (life, step) == (0, 2) {
                pool.create("late", 5000).unwrap();
                model.insert("late".into(), vec![0; 5000]);
            }
            clock.pass(LEASE / 2);
            let shipped = shipper.tick().unwrap().unwrap();
            if bucket.left.lock().unwrap().is_none() {
                states.push((shipped.position, model.clone()));
            }
        }
        shipper.pause();
    }
    states
}

#[test]
fn s2_23_a_run_after_one_killed_at_any_put_ships_only_changes() {
    let place = Place::new();
    let (image, mut kills, mut lines) = (place.path("image.pmo"), 0, 0);
    for after in [false, true] {
        for nth in 1.. {
            let (bucket, pool) = (Memory::default(), made(&place.pool));
            let (left, path, first) = (Mutex::default(), &place.pool, bytes(content(&pool)));
            let kill = Kill { bucket: &bucket, nth, after, pool: path, image: &image, left };
            let states = live(&kill, &pool);
            drop(pool);
            let Some(objects) = kill.left.into_inner().unwrap() else { break };
            kills += 1;
            let what = format!("killed at put {nth}, after it: {after}");
            let store = Memory::default();
            store.set(objects);
            let is_there = restore_to(&store, &place.path("restored.pmo"), None).is_ok();
            assert!(is_there || states.is_empty(), "{what}");
            let pool = Pool::open(&image).unwrap();
            // Bytes that were shipped as lines of psyncs are again as in the snapshot.
            if nth % 2 == 0 {
                let mut object = pool.attach("b").unwrap();
                object.as_mut_slice().copy_from_slice(&first["b"]);
                object.psync().unwrap();
                object.detach().unwrap();
            }
            let (beginning, shipped) = run(&store, &pool);
            if is_there {
                goes_on(&beginning, &[]);
                expect_few(shipped);
            } else {
                assert!(shipped.unwrap().full, "{what}");
            }
            is_in(&place, &store, &pool);
            // A run that finds nothing to ship, and one that does.
            assert_eq!(run(&store, &pool).1, None, "{what}");
            set(&pool, "b", 9, 9);
            expect_few(run(&store, &pool).1);
            is_in(&place, &store, &pool);
            for (position, state) in &states {
                let found = bytes(restored(&place, &store, Some(*position)));
                assert!(found == *state, "{what}: moment {position}");
                lines += 1;
            }
        }
    }
    println!("{kills} kills, {lines} moments");
    assert!(kills > 20 && lines > 40, "{kills}, {lines}");
}

#[test]
fn s2_23_an_object_rolled_back_between_two_runs_is_shipped_right() {
    let place = Place::new();
    let (pool, bucket) = (made(&place.pool), Memory::default());
    pool.snapshot("a", "first", b"").unwrap();
    assert!(run(&bucket, &pool).1.unwrap().full);
    set(&pool, "a", 3, 1);
    pool.snapshot("a", "second", b"").unwrap();
    run(&bucket, &pool);
    // Back, on, and back again to as many psyncs as the replica has.
    for (snapshot, page) in [("first", 3), ("second", 4), ("first", 3)] {
        pool.rollback("a", snapshot, b"").unwrap();
        let (beginning, _) = run(&bucket, &pool);
        goes_on(&beginning, &[]);
        is_in(&place, &bucket, &pool);
        set(&pool, "a", page, 7);
        pool.rollback("a", snapshot, b"").unwrap();
        set(&pool, "a", 5, 8);
        expect_few(run(&bucket, &pool).1);
        is_in(&place, &bucket, &pool);
    }
    // An object that went, and another of its name.
    pool.destroy("b").unwrap();
    filled(&pool, "b", 99).detach().unwrap();
    let (beginning, shipped) = run(&bucket, &pool);
    goes_on(&beginning, &[]);
    assert!(shipped.unwrap().bytes > WHOLE);
    is_in(&place, &bucket, &pool);
    // A shorter one.
    pool.store().resize("b", Key(b""), 3 * PAGE as u64).unwrap();
    pool.store().resize("b", Key(b""), 7 * PAGE as u64).unwrap();
    expect_few(run(&bucket, &pool).1);
    // After a resize the pool's object is sparse.
    assert!(bytes(restored(&place, &bucket, None)) == bytes(content(&pool)));
}

/// A copy's snapshot rests on the run's own one, and has pages that this lacks. A rollback to it
/// leaves the psyncs as they are.
#[test]
fn s2_23_an_object_rolled_back_to_a_snapshot_of_its_copy_is_shipped() {
    for (lives, is_removed) in [(false, false), (false, true), (true, false), (true, true)] {
        let place = Place::new();
        let (pool, bucket, clock) = (made(&place.pool), Memory::default(), Ticks::default());
        let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
        let mut shipper = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "first")).unwrap();
        assert!(shipper.tick().unwrap().unwrap().full);
        let mut living = Some(shipper);
        if !lives {
            living.take().unwrap().pause();
        }
        let mut ship = |pool: &Pool| match &mut living {
            Some(shipper) => shipper.tick().unwrap(),
            None => run(&bucket, pool).1,
        };
        pool.create_from("a", "copied", b"", &CreateOptions::new(0)).unwrap();
        set(&pool, "copied", 3, 9);
        pool.snapshot("copied", "kept", b"").unwrap();
        pool.rollback("a", "kept", b"").unwrap();
        if is_removed {
            pool.destroy("copied").unwrap();
            pool.destroy("kept").unwrap();
        }
        set(&pool, "b", 1, 1);
        assert!(ship(&pool).is_some());
        is_in(&place, &bucket, &pool);
        assert!(ship(&pool).is_none());
        is_in(&place, &bucket, &pool);
    }
}

/// The run's snapshot is gone, and another one has its place in the table.
#[test]
fn s2_23_another_snapshot_in_the_place_of_the_runs_own_is_not_taken_for_it() {
    let place = Place::new();
    let (pool, bucket, clock) = (made(&place.pool), Memory::default(), Ticks::default());
    pool.snapshot("a", "first", b"").unwrap();
    set(&pool, "a", 3, 1);
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut shipper = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "first")).unwrap();
    assert!(shipper.tick().unwrap().unwrap().full);
    let own = pool.list().map(|stat| stat.unwrap().name).filter(|name| name.starts_with("pmo-replica."));
    own.collect::<Vec<_>>().iter().for_each(|name| pool.destroy(name).unwrap());
    pool.rollback("a", "first", b"").unwrap();
    for (object, name) in [("a", "later"), ("b", "other")] {
        pool.snapshot(object, name, b"").unwrap();
    }
    shipper.tick().unwrap();
    assert!(bytes(restored(&place, &bucket, None)) == bytes(content(&pool)));
}

#[test]
fn s2_23_an_older_copy_of_the_pool_is_never_taken_for_the_newest() {
    let place = Place::new();
    let (path, older) = (&place.pool, place.path("older.pmo"));
    for shipped_before in [false, true] {
        let (mut pool, bucket) = (made(path), Memory::default());
        assert!(run(&bucket, &pool).1.unwrap().full);
        set(&pool, "a", 1, 1);
        if shipped_before {
            run(&bucket, &pool);
        }
        drop(pool);
        std::fs::copy(path, &older).unwrap();
        pool = Pool::open(path).unwrap();
        let mut states = Vec::new();
        for step in 2..5 {
            set(&pool, "a", step, step as u8);
            set(&pool, "a", ZEROS + step, step as u8);
            let position = run(&bucket, &pool).1.unwrap().position;
            states.push((position, content(&pool)));
        }
        drop(pool);
        std::fs::rename(&older, path).unwrap();
        pool = Pool::open(path).unwrap();
        let (beginning, shipped) = run(&bucket, &pool);
        // The store's newest moment states a snapshot of a that this copy has never had.
        goes_on(&beginning, &["a"]);
        assert!(shipped.unwrap().bytes > WHOLE);
        is_in(&place, &bucket, &pool);
        set(&pool, "a", 6, 6);
        expect_few(run(&bucket, &pool).1);
        is_in(&place, &bucket, &pool);
        for (position, state) in states {
            assert_eq!(difference(&restored(&place, &bucket, Some(position)), &state), None, "{position}");
        }
    }
}

#[test]
fn s2_23_snapshots_are_those_of_their_store_and_of_its_newest_moment() {
    let place = Place::new();
    let (pool, one, two) = (made(&place.pool), Memory::default(), Memory::default());
    for bucket in [&one, &two] {
        let (beginning, shipped) = run(bucket, &pool);
        assert_eq!(beginning, Beginning::First);
        assert!(shipped.unwrap().full);
    }
    for round in 1..4 {
        set(&pool, "a", round, 1);
        for bucket in [&one, &two] {
            let (beginning, shipped) = run(bucket, &pool);
            goes_on(&beginning, &[]);
            expect_few(shipped);
            is_in(&place, bucket, &pool);
        }
        assert_eq!(snapshots(&pool), 4);
    }
    // Without the newest moment of the store, whose snapshot alone the pool has.
    let mut objects = one.objects();
    let segment = |name: &&String| name.contains("/L0/");
    let boundary = objects.keys().rfind(segment).unwrap().clone();
    objects.remove(&boundary);
    one.set(objects);
    set(&pool, "a", 9, 9);
    let (beginning, _) = run(&one, &pool);
    goes_on(&beginning, &["a"]);
    is_in(&place, &one, &pool);
    // A snapshot that a user removed, and a moment that cannot be proved.
    let names = pool.list().map(|stat| stat.unwrap().name);
    let names: Vec<_> = names.filter(|name| name.starts_with("pmo-replica.")).collect();
    names.iter().for_each(|name| pool.destroy(name).unwrap());
    assert_eq!(run(&one, &pool).0, Beginning::Whole("the pool has no snapshots of an earlier run".into()));
    is_in(&place, &one, &pool);
    let mut objects = one.objects();
    let newest = objects.iter_mut().rfind(|(name, bytes)| segment(name) && bytes[0] == b'P');
    newest.unwrap().1[999] ^= 1;
    one.set(objects);
    let (beginning, shipped) = run(&one, &pool);
    assert!(matches!(&beginning, Beginning::Whole(why) if why.contains("/L0/")), "{beginning:?}");
    assert!(shipped.unwrap().full);
    is_in(&place, &one, &pool);
}

/// The second segment of a moment is not there: the next run goes on from the moment before.
#[test]
fn s2_23_a_moment_of_several_segments_counts_whole() {
    let (place, mut random) = (Place::new(), Random(11));
    let (image, len) = (place.path("image.pmo"), 20 << 20);
    let pool = Pool::format(&place.pool, 96 << 20).unwrap();
    pool.create("large", len).unwrap();
    let bucket = Memory::default();
    let mut fill = || {
        let mut object = pool.attach("large").unwrap();
        object.as_mut_slice().fill_with(|| random.next() as u8);
        object.psync().unwrap();
        object.detach().unwrap();
    };
    fill();
    assert_eq!(run(&bucket, &pool).1.unwrap().segments, 2);
    let state = content(&pool);
    fill();
    let clock = Ticks::default();
    // Two for the end of the epoch, record and lease of the next, a segment.
    let nth = bucket.puts() + 6;
    let path = &place.pool;
    let kill = Kill { bucket: &bucket, nth, after: false, pool: path, image: &image, left: Mutex::default() };
    let mut authority = StoreAuthority::new(&kill, &clock, LEASE);
    let mut shipper = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "killed")).unwrap();
    goes_on(shipper.beginning(), &[]);
    let shipped = shipper.tick().unwrap().unwrap();
    assert_eq!((shipped.segments, shipped.full), (2, false));
    shipper.pause();
    is_in(&place, &bucket, &pool);
    drop(pool);
    let store = Memory::default();
    store.set(kill.left.into_inner().unwrap().unwrap());
    assert!(store.get("e000000000002/L0/000000000001").is_ok());
    assert_eq!(store.get("e000000000002/L0/000000000002"), Err(Trouble::Missing));
    assert_eq!(difference(&restored(&place, &store, None), &state), None);
    let pool = Pool::open(&image).unwrap();
    let (beginning, shipped) = run(&store, &pool);
    assert_eq!(beginning, Beginning::Continues { from: Position { epoch: 1, seq: 2 }, anew: Vec::new() });
    assert_eq!(shipped.unwrap().segments, 2);
    is_in(&place, &store, &pool);
    set(&pool, "large", 3, 3);
    expect_few(run(&store, &pool).1);
    is_in(&place, &store, &pool);
}
