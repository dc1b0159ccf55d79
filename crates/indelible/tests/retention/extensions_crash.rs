//! Power cuts and kills while values are extended: each has an extension with all of its values, or none, and no block is lost.

use crate::extensions::{make, v1, v3};
use crate::heaps::sound;
use crate::support::{self, Ground, World};
use indelible::{Heap, Tracking};
use indelible_testing::{CrashImage, Limits, Seeded, SimMedium, for_each_crash};
use std::sync::Arc;

const ITEMS: u32 = 60;
/// Items that a round extends.
const STEP: u32 = 4;
/// Rounds after which all items are extended; then all are made anew.
const ROUNDS: u64 = (ITEMS / STEP) as u64;

fn format(world: &World) {
    let mut heap = Heap::format(world.format().create_attached("o", 1 << 20).unwrap()).unwrap();
    make(&mut heap, ITEMS);
    heap.root_or_default::<u64>("round").unwrap();
    heap.psync().unwrap();
}

/// One round; its number is durable with it.
fn advance(heap: &mut Heap) -> u64 {
    let (round, items) = heap.roots2::<u64, v3::Items<'_>>("round", "items").unwrap();
    let done = *round % (ROUNDS + 1);
    *round += 1;
    let round = *round;
    if done == ROUNDS {
        // By the program of the first version.
        let items = heap.root_mut::<v1::Items<'_>>("items").unwrap();
        items.clear();
        make_again(heap);
        return round;
    }
    for item in &mut items[done as usize * STEP as usize..][..STEP as usize] {
        let view = item.extended();
        (*view.sold, *view.gross) = (true, *view.price + 7);
    }
    round
}

fn make_again(heap: &mut Heap) {
    let (items, h) = heap.root_and_heap::<v1::Items<'_>>("items").unwrap();
    for count in 0..ITEMS {
        let name = indelible::collections::PString::from_in(&crate::extensions::name(count), h);
        items.push(v1::Item { name, count, extensions: indelible::retention::Extensions::new() });
    }
}

/// The round that all of the heap is of.
fn verify(heap: &mut Heap) -> u64 {
    let blocks = sound(heap);
    let round = *heap.root_ref::<u64>("round").unwrap();
    let done = (round % (ROUNDS + 1)) as u32 * STEP;
    assert_eq!(blocks, 3 + u64::from(ITEMS) + 2 * u64::from(done), "round {round}");
    let items = heap.root_ref::<v3::Items<'_>>("items").unwrap();
    for (count, item) in (0..).zip(items.iter()) {
        let price = 2 * i64::from(count);
        let expected = if count < done { (price, true, price + 7) } else { (price, false, price + 1) };
        assert_eq!(
            (item.price(), item.sold(), item.gross(), item.wide()),
            (expected.0, expected.1, expected.2, count.into())
        );
    }
    assert_eq!(items.len() as u32, ITEMS);
    round
}

#[test]
fn a_power_cut_finds_values_extended_whole_or_not_at_all() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    format(&world);
    let sim = world.sim().unwrap();
    let record = |sim: &SimMedium| {
        let mut heap = Heap::open(world.open().attach("o").unwrap()).unwrap();
        sim.mark(0);
        for _ in 0..=ROUNDS {
            let round = advance(&mut heap);
            heap.psync().unwrap();
            sim.mark(round);
        }
    };
    let verify_image = |image: &CrashImage| -> Result<(), String> {
        let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
        let mut heap = Heap::open(pool.attach("o").unwrap()).unwrap();
        let (found, said) = (verify(&mut heap), image.last_mark().unwrap_or(0));
        advance(&mut heap);
        assert_eq!(verify(&mut heap), found + 1);
        if found == said || found == said + 1 { Ok(()) } else { Err(format!("round {found}, said {said}")) }
    };
    let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 60, seed: 3 };
    let report = for_each_crash(sim, record, verify_image, &limits).unwrap();
    assert!(report.distinct > 40, "only {} images", report.distinct);
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let options = support::options_of(&std::env::var("WORK_WORLD").unwrap());
    let mut heap = Heap::open(options.open(path).unwrap().attach("o").unwrap()).unwrap();
    loop {
        let round = advance(&mut heap);
        heap.psync().unwrap();
        println!("ROUND {round}");
    }
}

#[test]
fn killed_while_values_are_extended_they_are_whole() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    format(&world);
    let (mut random, mut said) = (Seeded::new(5), 0);
    for _ in 0..10 {
        said = support::killed_at_work(&world, "extensions_crash::work", random.usize(..20)).unwrap_or(said);
        let mut heap = Heap::open(world.open().attach("o").unwrap()).unwrap();
        let found = verify(&mut heap);
        assert!(found >= said, "round {said} was said to be durable, {found} is there");
    }
    assert!(said > 20, "only {said} rounds");
}
