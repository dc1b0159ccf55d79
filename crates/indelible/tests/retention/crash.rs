//! Power cuts and kills inside conversion, reset and migration: old or new values, all roots of one
//! psync, no block lost.

use crate::heaps::sound;
use crate::rounds::Rounds;
use crate::support::{Ground, World};
use indelible::collections::{PBTreeMap, PHashMap, PString, PVec};
use indelible::retention::Migrating;
use indelible::{Heap, Persist, Tracking};
use indelible_testing::{Limits, Seeded};

const TEXTS: u64 = 40;
const ITEMS: u64 = 45;
const STEP: u64 = 10;

#[derive(Persist, Default)]
#[repr(C)]
struct Even<'h> {
    round: u64,
    texts: PVec<'h, PString<'h>>,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Odd<'h> {
    texts: PBTreeMap<'h, u64, PString<'h>>,
    round: u64,
}

fn text(number: u64, round: u64) -> String {
    format!("text number {number} of round {round}, in a block of its own")
}

type Narrow<'h> = PVec<'h, u32>;
type Wide<'h> = PVec<'h, u64>;

fn format(heap: &mut Heap) {
    let (it, h) = heap.root_and_heap::<Even<'_>>("it").unwrap();
    it.texts.extend((0..TEXTS).map(|number| PString::from_in(&text(number, 0), h)));
    heap.root_or_default::<Narrow<'_>>("list").unwrap().extend((0..ITEMS).map(|number| number as u32));
    reset(heap, 0);
    heap.psync().unwrap();
}

fn reset(heap: &mut Heap, round: u64) {
    if round.is_multiple_of(2) {
        let from = heap.root_from::<PVec<'_, PString<'_>>>("cache").or_reset(|_| ());
        let cache = from.or_default().unwrap();
        cache.clear();
        (0..TEXTS).for_each(|number| cache.push(text(number, round).as_str()));
    } else {
        let from = heap.root_from::<PHashMap<'_, u64, PString<'_>>>("cache").or_reset(|_| ());
        let cache = from.or_default().unwrap();
        (0..TEXTS).for_each(|number| drop(cache.insert(number, text(number, round).as_str())));
    }
}

fn is(heap: &Heap, root: &str, ty: &str) -> bool {
    heap.root_any(root).unwrap().type_name == ty
}

fn advance(heap: &mut Heap) -> u64 {
    let round = if is(heap, "it", "Even") {
        let from = heap.root_from::<Even<'_>>("it").convert(|old, h| {
            let mut texts = PBTreeMap::new_in(h);
            for number in 0..old.texts.len() as u64 {
                texts.try_insert(number, text(number, old.round + 1).as_str())?;
            }
            Ok(Odd { texts, round: old.round + 1 })
        });
        from.open().unwrap().round
    } else {
        let from = heap.root_from::<Odd<'_>>("it").convert(|old, h| {
            let mut texts = PVec::new_in(h);
            for number in old.texts.keys() {
                texts.try_push(text(*number, old.round + 1).as_str())?;
            }
            Ok(Even { texts, round: old.round + 1 })
        });
        from.open().unwrap().round
    };
    reset(heap, round);
    let narrow = is(heap, "list", "PVec<u32>") || is(heap, "list", "Migrating<PVec<u32>, PVec<u64>>");
    match narrow {
        true => heap.migrate_vec("list", STEP, |old: &u32, _| Ok(u64::from(*old))).unwrap(),
        false => heap.migrate_vec("list", STEP, |old: &u64, _| Ok(*old as u32)).unwrap(),
    };
    round
}

fn verify(heap: &mut Heap) -> u64 {
    let mut blocks = 0;
    let round = if is(heap, "it", "Even") {
        let it = heap.root_ref::<Even<'_>>("it").unwrap();
        assert!(it.texts.iter().zip(0..).all(|(found, number)| *found == *text(number, it.round)));
        assert_eq!(it.texts.len() as u64, TEXTS);
        it.round
    } else {
        let it = heap.root_ref::<Odd<'_>>("it").unwrap();
        assert!(it.texts.iter().all(|(number, found)| *found == *text(*number, it.round)));
        assert_eq!(it.texts.len() as u64, TEXTS);
        blocks += TEXTS / 7;
        it.round
    };
    if round.is_multiple_of(2) {
        let cache = heap.root_ref::<PVec<'_, PString<'_>>>("cache").unwrap();
        assert!(cache.iter().zip(0..).all(|(found, number)| *found == *text(number, round)));
        assert_eq!(cache.len() as u64, TEXTS);
    } else {
        let cache = heap.root_ref::<PHashMap<'_, u64, PString<'_>>>("cache").unwrap();
        assert!(cache.iter().all(|(number, found)| *found == *text(*number, round)));
        assert_eq!(cache.len() as u64, TEXTS);
    }
    let steps = ITEMS.div_ceil(STEP);
    let (done, turn) = (round % steps * STEP, round / steps);
    match (turn.is_multiple_of(2), done) {
        (true, 0) => {
            assert!(heap.root_ref::<Narrow<'_>>("list").unwrap().iter().copied().eq(0..ITEMS as u32));
        }
        (false, 0) => assert!(heap.root_ref::<Wide<'_>>("list").unwrap().iter().copied().eq(0..ITEMS)),
        (true, done) => {
            let list = heap.root_ref::<Migrating<Narrow<'_>, Wide<'_>>>("list").unwrap();
            assert!(
                list.old().iter().copied().eq(0..ITEMS as u32)
                    && list.converted().iter().copied().eq(0..done)
            );
        }
        (false, done) => {
            let list = heap.root_ref::<Migrating<Wide<'_>, Narrow<'_>>>("list").unwrap();
            assert!(
                list.old().iter().copied().eq(0..ITEMS)
                    && list.converted().iter().copied().eq(0..done as u32)
            );
        }
    }
    let found = sound(heap);
    let expected = 3 + 3 + 2 * TEXTS + u64::from(done > 0);
    assert!((expected..=expected + blocks + 2).contains(&found), "{found} blocks, expected {expected}");
    round
}

const PROGRAM: Rounds = Rounds { advance, verify };

#[test]
fn a_power_cut_finds_the_old_values_or_the_new_ones() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    format(&mut Heap::format(world.format().create_attached("o", 1 << 20).unwrap()).unwrap());
    let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 120, seed: 1 };
    PROGRAM.survive_power_cuts(&world, 7, &limits, 80);
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    PROGRAM.work();
}

#[test]
fn killed_at_any_moment_the_values_are_the_old_ones_or_the_new_ones() {
    for ground in [Ground::Memory, Ground::File] {
        let world = World::new(ground, Tracking::Auto, false);
        format(&mut Heap::format(world.format().create_attached("o", 1 << 20).unwrap()).unwrap());
        PROGRAM.survive_kills(&world, "crash::work", &mut Seeded::new(12), [20, 12], 40);
    }
}
