//! Changes of an unattached sealed object on a failing medium: an error means no change, or an
//! unknown outcome; success means the whole change, for every later user.

use super::support::{Ground, World, seal_key as key};
use indelible::{Anchor, CreateOptions, ErrorKind, Pool, SealKey, Tracking};
use indelible_store::table::Key;
use indelible_testing::{Fault, OpKind, SimMedium};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SIZE: u64 = 40_000;

fn other() -> SealKey {
    SealKey::file(vec![1; 32]).unwrap()
}

type Change = (&'static str, fn(&Pool, &SealKey) -> indelible::Result<()>);

const CHANGES: [Change; 6] = [
    ("add", |pool, key| pool.add_key("a", b"", key, &other(), "second").map(drop)),
    ("remove", |pool, key| pool.remove_key("a", b"", key, 1)),
    ("change", |pool, key| pool.change_key("a", b"", key, &other(), Some("changed")).map(drop)),
    ("grow", |pool, key| pool.resize_sealed("a", 2 * SIZE, b"", key)),
    ("shrink", |pool, key| pool.resize_sealed("a", SIZE / 4, b"", key)),
    ("reencrypt", |pool, key| pool.reencrypt("a", b"", &[key], |_, _| {})),
];

type State = (Vec<String>, u64, bool);

fn state(pool: &Pool, keys: &[SealKey]) -> State {
    let labels = pool.key_slots("a", b"").unwrap().into_iter().map(|slot| slot.label).collect();
    let opened = keys.iter().find_map(|key| pool.attach_sealed("a", b"", key).ok());
    let mut object = opened.expect("one of the keys opens it");
    let bytes = object.as_slice().iter().take(SIZE as usize / 4).all(|byte| *byte == 7);
    object.as_mut_slice()[0] = 7;
    object.psync().unwrap();
    let size = object.len() as u64;
    object.detach().unwrap();
    (labels, size, bytes)
}

fn prepared(first: &SealKey) -> (World, Pool) {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    let pool = world.format();
    let third = SealKey::file(vec![2; 32]).unwrap();
    let options = CreateOptions::new(SIZE).sealed(first, "first").sealed(&third, "third");
    let mut object = pool.create_attached_with("a", &options).unwrap();
    object.range_mut(0..SIZE as usize).fill(7);
    object.psync().unwrap();
    object.detach().unwrap();
    (world, pool)
}

fn sim(world: &World) -> &SimMedium {
    world.sim().unwrap()
}

#[test]
fn an_error_of_a_change_of_a_sealed_object_says_that_nothing_happened() {
    let keys = [key(), other()];
    let (mut failed, mut unknown, mut done) = (0, 0, 0);
    for (name, change) in CHANGES {
        let (_world, pool) = prepared(&key());
        let before = state(&pool, &keys);
        change(&pool, &key()).unwrap();
        let after = state(&pool, &keys);
        for kind in [OpKind::Read, OpKind::Write, OpKind::WriteDurable, OpKind::Barrier] {
            for nth in 0.. {
                let (world, pool) = prepared(&key());
                let met = sim(&world).faults_met();
                sim(&world).fail_at(kind, nth, if nth % 2 == 0 { Fault::Io } else { Fault::After });
                let result = change(&pool, &key());
                sim(&world).clear_faults();
                if sim(&world).faults_met() == met {
                    break;
                }
                drop(pool);
                let found = state(&world.open(), &keys);
                let case = format!("{name}, {kind:?} {nth}: {result:?}");
                match &result {
                    Ok(()) => {
                        done += 1;
                        assert_eq!(found, after, "{case}");
                    }
                    Err(error) if error.to_string().contains("as a whole or not at all") => {
                        unknown += 1;
                        assert!(found == before || found == after, "{case}: {found:?}");
                    }
                    Err(_) => {
                        failed += 1;
                        assert_eq!(found, before, "{case}");
                    }
                }
            }
        }
    }
    assert!(failed > 50 && unknown > 10 && done > 10, "{failed} failed, {unknown} perhaps, {done} done");
    eprintln!("{failed} failed, {unknown} perhaps, {done} done");
}

#[derive(Debug, Default)]
struct Failing {
    record: Mutex<Option<String>>,
    writes: AtomicUsize,
    fails: AtomicUsize,
}

impl Anchor for Failing {
    fn read(&self) -> io::Result<Option<String>> {
        Ok(self.record.lock().unwrap().clone())
    }

    fn write(&self, record: &str) -> io::Result<()> {
        if self.writes.fetch_add(1, Relaxed) >= self.fails.load(Relaxed) {
            return Err(io::Error::other("out of reach"));
        }
        *self.record.lock().unwrap() = Some(record.to_owned());
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Shared(Arc<Failing>);

impl Anchor for Shared {
    fn read(&self) -> io::Result<Option<String>> {
        self.0.read()
    }

    fn write(&self, record: &str) -> io::Result<()> {
        self.0.write(record)
    }
}

#[test]
fn an_anchor_that_is_not_told_of_a_change_is_an_error_that_says_that_it_is_done() {
    for (name, change) in CHANGES {
        let anchor = Arc::new(Failing { fails: AtomicUsize::new(usize::MAX), ..Failing::default() });
        let anchored = |key: SealKey| key.anchored(Shared(anchor.clone()));
        let keys = [anchored(key()), anchored(other())];
        let (_world, pool) = prepared(&keys[0]);
        let before = state(&pool, &keys);
        for (writes, is_done) in [(0, false), (1, true)] {
            anchor.fails.store(anchor.writes.load(Relaxed) + writes, Relaxed);
            let error = change(&pool, &keys[0]).unwrap_err();
            anchor.fails.store(usize::MAX, Relaxed);
            assert_eq!(error.kind(), ErrorKind::Io, "{name}: {error}");
            assert_eq!(error.to_string().contains("the change is durable"), is_done, "{name}: {error}");
            assert_eq!(state(&pool, &keys) == before, !is_done, "{name}, {writes}");
        }
    }
}

#[test]
fn a_change_that_a_hold_refuses_leaves_other_objects_alone() {
    for (name, change) in CHANGES {
        let (world, pool) = prepared(&key());
        let mut plain = pool.create_attached("plain", SIZE).unwrap();
        let elsewhere = world.open();
        let still = elsewhere.store().hold_still("plain", Key(&[])).unwrap().expect("it has a writer");
        pool.store().set_patience(Duration::ZERO);
        assert_eq!(change(&pool, &key()).unwrap_err().kind(), ErrorKind::Busy, "{name}");
        drop(still);
        plain.range_mut(0..1).fill(5);
        plain.psync().unwrap();
        change(&pool, &key()).unwrap();
    }
}
