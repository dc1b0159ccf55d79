use crate::extensions::{make, v1, v3};
use crate::heaps::sound;
use crate::rounds::Rounds;
use crate::support::{Ground, World};
use indelible::{Heap, Tracking};
use indelible_testing::{Limits, Seeded};

const ITEMS: u32 = 60;
const STEP: u32 = 4;
const ROUNDS: u64 = (ITEMS / STEP) as u64;

fn format(world: &World) {
    let mut heap = Heap::format(world.format().create_attached("o", 1 << 20).unwrap()).unwrap();
    make(&mut heap, ITEMS);
    heap.root_or_default::<u64>("round").unwrap();
    heap.psync().unwrap();
}

fn advance(heap: &mut Heap) -> u64 {
    let (round, items) = heap.roots2::<u64, v3::Items<'_>>("round", "items").unwrap();
    let done = *round % (ROUNDS + 1);
    *round += 1;
    let round = *round;
    if done == ROUNDS {
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

const PROGRAM: Rounds = Rounds { advance, verify };

#[test]
fn a_power_cut_finds_values_extended_whole_or_not_at_all() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    format(&world);
    let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 60, seed: 3 };
    PROGRAM.survive_power_cuts(&world, ROUNDS + 1, &limits, 40);
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    PROGRAM.work();
}

#[test]
fn killed_while_values_are_extended_they_are_whole() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    format(&world);
    PROGRAM.survive_kills(&world, "extensions_crash::work", &mut Seeded::new(5), [10, 20], 20);
}
