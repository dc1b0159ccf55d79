use crate::heaps::{again, made, sound};
use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{PBTreeMap, PHashMap, PString, PVec};
use indelible::retention::{Converted, Migrating, Progress};
use indelible::{ErrorKind, Heap, HeapOptions, Tracking};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Old<'h> = PVec<'h, PString<'h>>;
type New<'h> = PVec<'h, PVec<'h, u8>>;

fn text(number: usize) -> String {
    format!("text number {number}, in a block of its own, I hope")
}

fn make(heap: &mut Heap, count: usize) {
    let old = heap.root_or_default::<Old<'_>>("it").unwrap();
    (0..count).for_each(|number| old.push(text(number).as_str()));
}

fn step(heap: &mut Heap, most: u64) -> indelible::Result<Progress> {
    heap.migrate_vec("it", most, |old: &PString<'_>, heap| {
        let mut new = PVec::new_in(heap);
        new.try_append(old.as_bytes())?;
        Ok(new)
    })
}

fn progress(done: u64, total: u64, finished: bool) -> (u64, u64, bool) {
    (done, total, finished)
}

fn of(progress: Progress) -> (u64, u64, bool) {
    (progress.done, progress.total, progress.finished)
}

fn check_new(heap: &mut Heap, count: usize) {
    let blocks = sound(heap);
    let new = heap.root_mut::<New<'_>>("it").unwrap();
    assert_eq!(new.len(), count);
    assert!(new.iter().zip(0..).all(|(new, number)| **new == *text(number).as_bytes()));
    assert_eq!(blocks, count as u64 + 1 + u64::from(count > 0));
}

#[test]
fn s4_04_a_migration_goes_on_where_the_last_psync_left_it() {
    let (dir, mut heap) = made();
    make(&mut heap, 95);
    heap.psync().unwrap();
    assert_eq!(of(step(&mut heap, 30).unwrap()), progress(30, 95, false));
    heap.psync().unwrap();
    assert_eq!(of(step(&mut heap, 30).unwrap()), progress(60, 95, false));
    let mut heap = again(&dir, heap);
    sound(&mut heap);
    for error in [
        heap.root_mut::<Old<'_>>("it").map(drop).unwrap_err(),
        heap.root_mut::<New<'_>>("it").map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::RootType);
        assert!(error.to_string().contains("Migrating<PVec<PString>, PVec<PVec<u8>>>"), "{error}");
    }
    let migrating = heap.root_mut::<Migrating<Old<'_>, New<'_>>>("it").unwrap();
    assert_eq!((migrating.old().len(), migrating.converted().len(), migrating.done()), (95, 30, 30));
    assert!(migrating.old().iter().zip(0..).all(|(old, number)| *old == *text(number)));
    assert_eq!(of(step(&mut heap, 60).unwrap()), progress(90, 95, false));
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    assert_eq!(of(step(&mut heap, 60).unwrap()), progress(95, 95, true));
    check_new(&mut heap, 95);
    heap.psync().unwrap();
    let mut heap = again(&dir, heap);
    check_new(&mut heap, 95);
    assert_eq!(of(step(&mut heap, 60).unwrap()), progress(95, 95, true));
    assert_eq!(step(&mut heap, 0).unwrap().total, 95);
}

#[test]
fn an_abandoned_migration_leaves_the_old_container() {
    let (_dir, mut heap) = made();
    make(&mut heap, 50);
    let blocks = sound(&mut heap);
    step(&mut heap, 20).unwrap();
    assert!(sound(&mut heap) > blocks);
    let old = heap.abandon_migration::<Old<'_>, New<'_>>("it").unwrap();
    assert_eq!((old.len(), &*old[49]), (50, &*text(49)));
    assert_eq!(sound(&mut heap), blocks);
    let error = heap.abandon_migration::<Old<'_>, New<'_>>("it").map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert_eq!(heap.root_mut::<Old<'_>>("it").unwrap().len(), 50);
}

#[test]
pub fn a_converter_that_fails_stops_a_migration_at_its_element() {
    let (_dir, mut heap) = made();
    make(&mut heap, 10);
    let fails = |old: &PString<'_>, panics: bool| -> Converted<u64> {
        assert!(!panics || !old.contains("number 7"), "panics");
        if old.contains("number 4") { Err("not this one".into()) } else { Ok(1) }
    };
    let error = heap.migrate_vec("it", 10, |old, _| fails(old, false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(error.to_string().contains("converting PString (fingerprint"), "{error}");
    assert!(error.to_string().contains("not this one"), "{error}");
    let at = heap.root_mut::<Migrating<Old<'_>, PVec<'_, u64>>>("it").unwrap();
    assert_eq!((at.old().len(), at.converted().len(), at.done()), (10, 4, 4));
    sound(&mut heap);
    let one = |_: &PString<'_>| -> Converted<u64> { Ok(1) };
    assert_eq!(heap.migrate_vec("it", 2, |old, _| one(old)).unwrap().done, 6);
    let panicked =
        catch_unwind(AssertUnwindSafe(|| heap.migrate_vec("it", 10, |old, _| fails(old, true)).map(drop)));
    assert!(panicked.is_err());
    let at = heap.root_mut::<Migrating<Old<'_>, PVec<'_, u64>>>("it").unwrap();
    assert_eq!((at.old().len(), at.converted().len(), at.done()), (10, 7, 7));
    assert!(heap.migrate_vec("it", 10, |old, _| one(old)).unwrap().finished);
    assert_eq!(heap.root_mut::<PVec<'_, u64>>("it").unwrap().len(), 10);
    assert_eq!(sound(&mut heap), 2);
}

#[test]
fn only_the_containers_that_are_named_are_migrated() {
    let (_dir, mut heap) = made();
    assert_eq!(step(&mut heap, 5).unwrap_err().kind(), ErrorKind::RootMissing);
    heap.root_or_default::<PVec<'_, u32>>("it").unwrap().push(1);
    assert_eq!(step(&mut heap, 5).unwrap_err().kind(), ErrorKind::RootType);
    assert_eq!(heap.root_mut::<PVec<'_, u32>>("it").unwrap().len(), 1);
    heap.root_from::<Old<'_>>("it").or_reset(|_| ()).or_default().unwrap();
    assert_eq!(of(step(&mut heap, 5).unwrap()), progress(0, 0, true));
    check_new(&mut heap, 0);
}

#[test]
fn maps_are_migrated_in_steps_from_one_kind_to_another() {
    let (dir, mut heap) = made();
    let old = heap.root_or_default::<PHashMap<'_, PString<'_>, u32>>("it").unwrap();
    for number in 0..500 {
        old.insert(text(number).as_str(), number as u32);
    }
    heap.psync().unwrap();
    type Hashed<'h> = PHashMap<'h, PString<'h>, u32>;
    type Ordered<'h> = PBTreeMap<'h, u64, PString<'h>>;
    let mut steps = 0;
    loop {
        let done = heap.migrate_map::<Hashed<'_>, Ordered<'_>>("it", 120, |key, value, heap| {
            Ok((u64::from(*value), PString::from_in(key, heap)))
        });
        heap.psync().unwrap();
        heap = again(&dir, heap);
        steps += 1;
        if done.unwrap().finished {
            break;
        }
    }
    assert_eq!(steps, 5);
    let new = heap.root_mut::<Ordered<'_>>("it").unwrap();
    assert!(
        new.iter()
            .map(|(key, value)| (*key, value.to_string()))
            .eq((0..500).map(|key| (key, text(key as usize))))
    );
    sound(&mut heap);
    let error = heap
        .migrate_map::<Ordered<'_>, PHashMap<'_, u64, u64>>("it", 1000, |key, _, _| Ok((key / 2, 0)))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(error.to_string().contains("two pairs have the same new key"), "{error}");
    let old = heap.abandon_migration::<Ordered<'_>, PHashMap<'_, u64, u64>>("it").unwrap();
    assert_eq!(old.len(), 500);
    sound(&mut heap);
}

#[test]
fn with_explicit_tracking_every_step_is_durable() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("o", 2 << 20).unwrap()).unwrap();
    drop(pool);
    make(&mut heap, 400);
    heap.psync().unwrap();
    for number in 1..=4 {
        assert_eq!(step(&mut heap, 100).unwrap().finished, number == 4);
        heap = psynced_whole(&world, heap, HeapOptions::new(), "a step");
    }
    check_new(&mut heap, 400);
}
