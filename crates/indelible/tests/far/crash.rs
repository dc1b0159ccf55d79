use crate::entries::{by_id, by_name};
use crate::rounds::Rounds;
use crate::support::{Ground, World};
use indelible::{CreateOptions, Far, FarEntry, Heap, Persist, Plain, Tracking};
use indelible_testing::{Limits, Seeded};

const POINTERS: usize = 64;

#[derive(Plain, Persist)]
#[repr(C)]
struct Pointers {
    round: u64,
    all: [Far<u64>; POINTERS],
}

fn entry(round: u64) -> FarEntry {
    match round % 3 {
        0 => by_name(&format!("object of round {round}")),
        _ => by_id(round as u32),
    }
}

fn format(world: &World) {
    let pool = world.format();
    let options = CreateOptions::new(1 << 20).position_independent(true);
    let mut heap = Heap::format(pool.create_attached_with("o", &options).unwrap()).unwrap();
    heap.root_or_insert_with::<Pointers, _>("all", |_| Pointers { round: 0, all: [Far::null(); POINTERS] })
        .unwrap();
    heap.psync().unwrap();
}

fn advance(heap: &mut Heap) -> u64 {
    let round = heap.root_ref::<Pointers>("all").unwrap().round + 1;
    if round.is_multiple_of(POINTERS as u64 / 2) {
        heap.compact_far().unwrap();
    }
    let index = heap.far_index(&entry(round)).unwrap();
    let pointers = heap.root_mut::<Pointers>("all").unwrap();
    pointers.round = round;
    pointers.all[round as usize % POINTERS] = Far::new(index, 8 * round).unwrap();
    round
}

fn verify(heap: &mut Heap) -> u64 {
    assert_eq!(heap.check(), []);
    let pointers = heap.root_ref::<Pointers>("all").unwrap();
    let round = pointers.round;
    for made in round.saturating_sub(POINTERS as u64 - 1).max(1)..=round {
        let pointer = pointers.all[made as usize % POINTERS];
        assert_eq!(pointer.offset(), 8 * made);
        assert_eq!(
            heap.far_entry(pointer.index()).unwrap(),
            entry(made),
            "round {round}: the pointer of round {made}"
        );
    }
    round
}

const PROGRAM: Rounds = Rounds { advance, verify };

#[test]
pub fn a_power_cut_finds_each_pointer_with_its_entry() {
    for tracking in [Tracking::Auto, Tracking::Explicit] {
        let world = World::new(Ground::Simulated, tracking, false);
        format(&world);
        let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 60, seed: 3 };
        PROGRAM.survive_power_cuts(&world, 70, &limits, 40);
    }
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    PROGRAM.work();
}

#[test]
fn killed_while_pointers_are_stored_each_has_its_entry() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    format(&world);
    PROGRAM.survive_kills(&world, "crash::work", &mut Seeded::new(5), [10, 20], 20);
}

#[test]
pub fn with_explicit_tracking_entries_are_durable() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    format(&world);
    let open = || Heap::open(world.open().attach("o").unwrap()).unwrap();
    let mut heap = open();
    for _ in 0..200 {
        advance(&mut heap);
        heap.psync().unwrap();
        drop(heap);
        heap = open();
        verify(&mut heap);
    }
}
