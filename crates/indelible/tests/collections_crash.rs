//! Killed between psyncs, or its power cut, a program finds its collections as some psync left
//! them.
//!
//! The child is this test binary again. Each run makes the same changes from the same state, so a
//! psync's number determines its contents.

use crate::support::{self, Ground, World};
use indelible::collections::{PBTreeMap, PHashMap, PString, PVec};
use indelible::{Heap, Persist, Pool, Tracking};
use indelible_testing::{Limits, Seeded, for_each_crash};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    round: u64,
    words: PHashMap<'h, PString<'h>, PVec<'h, u64>>,
    order: PBTreeMap<'h, PString<'h>, u64>,
}

type Model = BTreeMap<String, Vec<u64>>;

fn changes(round: u64) -> impl Iterator<Item = (String, u64, bool)> {
    let mut random = Seeded::new(round);
    (0..random.usize(1..60)).map(move |_| {
        let word = random.u64(..400);
        (format!("word {word:x>0$}", (word % 30) as usize + 1), random.u64(..), random.usize(..4) == 0)
    })
}

fn advance(data: &mut Data<'_>) {
    data.round += 1;
    for (word, place, forget) in changes(data.round) {
        if forget {
            assert_eq!(data.words.remove(&word).is_some(), data.order.remove(&word).is_some());
        } else {
            data.words.entry(word.as_str()).or_default().push(place);
            *data.order.entry(word).or_insert(0) += 1;
        }
    }
}

fn model(rounds: u64) -> Model {
    let mut model = Model::new();
    for (word, place, forget) in (1..=rounds).flat_map(changes) {
        if forget {
            model.remove(&word);
        } else {
            model.entry(word).or_default().push(place);
        }
    }
    model
}

fn verify(heap: &mut Heap) -> u64 {
    assert_eq!(heap.check(), []);
    let blocks = heap.stats().unwrap().blocks;
    let data = heap.root_ref::<Data>("data").unwrap();
    let found: Model = data.words.iter().map(|(word, places)| (word.to_string(), places.to_vec())).collect();
    let expected = model(data.round);
    assert_eq!(found, expected);
    let order: Vec<(String, usize)> =
        data.order.iter().map(|(word, count)| (word.to_string(), *count as usize)).collect();
    assert!(
        order
            .iter()
            .map(|(word, count)| (word, *count))
            .eq(expected.iter().map(|(word, all)| (word, all.len())))
    );
    let words = expected.len() as u64;
    assert!(
        (2 + 3 * words..=2 + 3 * words + words / 4 + 2).contains(&blocks),
        "{blocks} blocks, {words} words"
    );
    data.round
}

fn format(pool: &Pool) {
    pool.create("heap", 2 << 20).unwrap();
    let mut heap = Heap::open_or_format(pool.attach("heap").unwrap()).unwrap();
    let data = heap.root_or_default::<Data>("data").unwrap();
    advance(data);
    heap.psync().unwrap();
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let options = support::options_of(&std::env::var("WORK_WORLD").unwrap());
    let mut heap = Heap::open(options.open(path).unwrap().attach("heap").unwrap()).unwrap();
    loop {
        let data = heap.root_mut::<Data>("data").unwrap();
        advance(data);
        let round = data.round;
        heap.psync().unwrap();
        println!("ROUND {round}");
    }
}

#[test]
fn killed_at_any_moment_the_collections_are_as_a_psync_left_them() {
    for ground in [Ground::Memory, Ground::File] {
        let world = World::new(ground, Tracking::Auto, false);
        format(&world.format());
        let mut random = Seeded::new(12);
        let mut said = 0;
        for _ in 0..20 {
            said = support::killed_at_work(&world, "collections_crash::work", random.usize(..12))
                .unwrap_or(said);
            let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            let found = verify(&mut heap);
            assert!(found >= said, "round {said} was said to be durable, {found} is there");
        }
        assert!(said > 40, "only {said} rounds");
    }
}

#[test]
fn a_power_cut_leaves_the_collections_as_a_psync_left_them() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    format(&world.format());
    let sim = world.sim().unwrap();
    let record = |sim: &indelible_testing::SimMedium| {
        let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
        sim.mark(1);
        for _ in 0..12 {
            let data = heap.root_mut::<Data>("data").unwrap();
            advance(data);
            let round = data.round;
            heap.psync().unwrap();
            sim.mark(round);
        }
    };
    let verify_image = |image: &indelible_testing::CrashImage| -> Result<(), String> {
        let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        let (found, said) = (verify(&mut heap), image.last_mark().unwrap_or(1));
        advance(heap.root_mut::<Data>("data").unwrap());
        verify(&mut heap);
        if found == said || found == said + 1 { Ok(()) } else { Err(format!("round {found}, said {said}")) }
    };
    let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 150, seed: 1 };
    let report = for_each_crash(sim, record, verify_image, &limits).unwrap();
    assert!(report.distinct > 100, "only {} images", report.distinct);
}
