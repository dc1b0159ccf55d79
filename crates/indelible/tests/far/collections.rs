use crate::graph::{Id, made};
use crate::support::{Ground, World, everywhere};
use indelible::{ErrorKind, Far, FarMap, FarVec, Persist, Plain, Space, Tracking};
use indelible_testing::Seeded;
use std::collections::HashMap;

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Person {
    name: FarVec<u8>,
    number: u64,
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Register {
    people: FarMap<u64, Person>,
    order: FarVec<u64>,
}

type Model = (HashMap<u64, Vec<u8>>, Vec<u64>);

fn register(space: &Space, id: &Id) -> Far<Register> {
    space.root::<Register>(id, "register").unwrap().here()
}

fn parts(space: &Space, id: &Id) -> (Far<FarMap<u64, Person>>, Far<FarVec<u64>>) {
    let register = space.get(id, register(space, id)).unwrap();
    let (people, order) = (&register.value().people, &register.value().order);
    (register.part(people).unwrap().here(), register.part(order).unwrap().here())
}

fn expect(space: &Space, id: &Id, (people, order): &Model) {
    let register = space.get(id, register(space, id)).unwrap();
    assert_eq!(register.part(&register.value().order).unwrap().values().unwrap(), order);
    let map = register.part(&register.value().people).unwrap();
    assert_eq!(map.len(), people.len());
    let mut found = 0;
    for (number, person) in map.entries().unwrap() {
        let name = person.part(&person.value().name).unwrap();
        assert_eq!(name.values().unwrap(), people[number]);
        assert_eq!(person.number, *number);
        found += 1;
    }
    assert_eq!(found, people.len());
    for number in 0..60 {
        assert_eq!(map.find(&number).unwrap().is_some(), people.contains_key(&number));
    }
}

fn step(space: &mut Space, id: &Id, model: &mut Model, random: &mut Seeded) {
    let (people, order) = parts(space, id);
    let number = random.u64(..60);
    match random.usize(..6) {
        0 | 1 => {
            let name: Vec<u8> = (0..random.usize(..40)).map(|_| random.u64(..256) as u8).collect();
            let there = model.0.insert(number, name.clone());
            let person = Person { name: FarVec::new(), number };
            let before = space.map_insert(id, people, number, person).unwrap();
            assert_eq!(before.is_some(), there.is_some());
            let found = space.get(id, people).unwrap().find(&number).unwrap().unwrap();
            let to = found.part(&found.value().name).unwrap().here();
            name.chunks(7).for_each(|piece| space.vec_extend(id, to, piece).unwrap());
        }
        2 => {
            let removed = space.map_remove(id, people, &number).unwrap();
            assert_eq!(removed.is_some(), model.0.remove(&number).is_some());
        }
        3 => {
            space.vec_push(id, order, number).unwrap();
            model.1.push(number);
        }
        4 => {
            let len = random.usize(..=model.1.len());
            space.vec_truncate(id, order, len).unwrap();
            model.1.truncate(len);
        }
        _ => {
            for value in space.vec_mut(id, order).unwrap() {
                *value ^= 1;
            }
            model.1.iter_mut().for_each(|value| *value ^= 1);
        }
    }
}

#[test]
fn random_programs_agree_with_std() {
    for seed in 0..4 {
        let world = World::new(Ground::Memory, Tracking::Auto, false);
        let (pool, other) = (world.format(), crate::graph::another(&world, "two.pmo"));
        let (mut space, ids) = made(&[&pool], &["a"]);
        space
            .root_or_insert(&ids[0], "register", Register { people: FarMap::new(), order: FarVec::new() })
            .unwrap();
        let (mut model, mut random): (Model, _) = (Model::default(), Seeded::new(seed));
        for round in 0..6 {
            for _ in 0..60 {
                step(&mut space, &ids[0], &mut model, &mut random);
            }
            expect(&space, &ids[0], &model);
            space.psync_all().unwrap();
            drop(space);
            let copy = format!("copy {round}");
            pool.copy_rebased("a", b"", &other, &copy, &mut |_, _| {}).unwrap();
            assert_ne!(other.stat(&copy).unwrap().address, pool.stat("a").unwrap().address);
            let mut reading = Space::new();
            reading.add(&other);
            let id = other.stat(&copy).unwrap().id;
            reading.attach_read(&id).unwrap();
            expect(&reading, &id, &model);
            space = Space::new();
            space.add(&pool);
            assert_eq!(space.attach(&pool, "a").unwrap(), ids[0]);
            expect(&space, &ids[0], &model);
        }
        let mut heap = space.remove(&ids[0]).unwrap();
        assert_eq!(heap.check(), []);
    }
}

#[test]
fn values_of_a_map_have_places() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a"]);
        space.root_or_insert(&ids[0], "map", FarMap::<u64, [u64; 2]>::new()).unwrap();
        let map = space.root::<FarMap<u64, [u64; 2]>>(&ids[0], "map").unwrap().here();
        for key in 0..500 {
            assert_eq!(space.map_insert(&ids[0], map, key, [key, 0]).unwrap(), None);
        }
        let place = space.get(&ids[0], map).unwrap().find(&77).unwrap().unwrap().here();
        space.get_mut(&ids[0], place).unwrap()[1] = 5;
        assert_eq!(space.map_remove(&ids[0], map, &77).unwrap(), Some([77, 5]));
        assert_eq!(space.map_remove(&ids[0], map, &77).unwrap(), None);
        for key in (0..500).filter(|key| key % 2 == 0) {
            assert_eq!(space.map_remove(&ids[0], map, &key).unwrap(), Some([key, 0]));
        }
        for round in 0..2000_u64 {
            space.map_insert(&ids[0], map, 1_000_000 + round, [round, 0]).unwrap();
            space.map_remove(&ids[0], map, &(1_000_000 + round)).unwrap();
        }
        let seen = space.get(&ids[0], map).unwrap();
        assert_eq!((seen.len(), seen.entries().unwrap().count()), (249, 249));
        assert!(pool.stat("a").unwrap().size == 1 << 20);
        space.psync_all().unwrap();
        let mut heap = space.remove(&ids[0]).unwrap();
        assert_eq!((heap.check(), heap.audit().unwrap().leaks), (vec![], vec![]));
    });
}

#[test]
fn a_full_heap_leaves_a_vector_as_it_was() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    pool.create_with("small", &crate::graph::free(256 << 10)).unwrap();
    let mut space = Space::new();
    let heap = indelible::Heap::open_or_format(pool.attach("small").unwrap()).unwrap();
    let id = space.insert(heap).unwrap();
    space.root_or_insert(&id, "list", FarVec::<u64>::new()).unwrap();
    let list = space.root::<FarVec<u64>>(&id, "list").unwrap().here();
    let mut len = 0_usize;
    let full = loop {
        match space.vec_extend(&id, list, &[len as u64; 512]) {
            Ok(()) => len += 512,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::HeapFull);
    let values = space.get(&id, list).unwrap().values().unwrap();
    assert!(len > 4096 && values.len() == len && values[len - 1] == (len - 512) as u64);
    space.vec_truncate(&id, list, 0).unwrap();
    space.vec_push(&id, list, 1).unwrap();
    let mut heap = space.remove(&id).unwrap();
    assert_eq!((heap.check(), heap.audit().unwrap().leaks), (vec![], vec![]));
}

#[test]
fn damaged_collections_are_errors_or_wrong_values() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    let id = ids[0];
    space.root_or_insert(&id, "list", FarVec::<u64>::new()).unwrap();
    space.root_or_insert(&id, "map", FarMap::<u64, u64>::new()).unwrap();
    let list = space.root::<FarVec<u64>>(&id, "list").unwrap().here();
    let map = space.root::<FarMap<u64, u64>>(&id, "map").unwrap().here();
    let (mut random, mut wrong) = (Seeded::new(3), 0);
    for round in 0..600 {
        *space.get_mut(&id, list).unwrap() = FarVec::new();
        *space.get_mut(&id, map).unwrap() = FarMap::new();
        for number in 0..20 {
            space.vec_push(&id, list, number).unwrap();
            space.map_insert(&id, map, number, number).unwrap();
        }
        let witnesses = [32, 64, 32].map(|count| space.create_slice(&id, &vec![7_u64; count * 3]).unwrap());
        let whole = (*space.get(&id, list).unwrap(), *space.get(&id, map).unwrap());
        let values = [0, 1, 2, 3, 7, 64, 4096, 1 << 20, 1 << 40, u64::MAX / 8, u64::MAX, random.u64(..)];
        let value = values[random.usize(..values.len())];
        let word = random.usize(..8);
        if word < 3 {
            space.get_mut(&id, list.cast::<[u64; 3]>()).unwrap()[word] = value;
        } else {
            space.get_mut(&id, map.cast::<[u64; 5]>()).unwrap()[word - 3] = value;
        }
        let mut count = |failed: bool| wrong += usize::from(failed);
        count(space.get(&id, list).unwrap().values().is_err());
        count(space.vec_mut(&id, list).is_err());
        count(space.get(&id, map).unwrap().find(&5).is_err());
        count(space.get(&id, map).unwrap().entries().map(Iterator::count).is_err());
        count(space.map_insert(&id, map, 100 + round, 1).is_err());
        count(space.map_remove(&id, map, &3).is_err());
        count(space.vec_push(&id, list, 9).is_err());
        count(space.vec_truncate(&id, list, 1).is_err());
        for (witness, count) in witnesses.into_iter().zip([32, 64, 32]) {
            let values = space.get(&id, witness).unwrap().slice(count * 3).unwrap();
            assert!(
                values.iter().all(|value| *value == 7),
                "word {word} as {value:#x}: another block has changed"
            );
            space.free(&id, witness).unwrap();
        }
        *space.get_mut(&id, list).unwrap() = whole.0;
        *space.get_mut(&id, map).unwrap() = whole.1;
        let _ = space.vec_truncate(&id, list, 0);
    }
    assert!(wrong > 300, "{wrong} errors");
    let mut heap = space.remove(&id).unwrap();
    assert_eq!(heap.check(), []);
}

#[test]
fn a_change_of_a_large_collection_is_a_small_one() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    space
        .root_or_insert(&ids[0], "register", Register { people: FarMap::new(), order: FarVec::new() })
        .unwrap();
    let (people, order) = parts(&space, &ids[0]);
    let person = |number| Person { name: FarVec::new(), number };
    for number in 0..10_000 {
        space.map_insert(&ids[0], people, number, person(number)).unwrap();
        space.vec_push(&ids[0], order, number).unwrap();
    }
    space.psync(&ids[0]).unwrap();
    let compared = |space: &mut Space, change: &dyn Fn(&mut Space)| {
        let psynced = |space: &mut Space| {
            let heap = space.remove(&ids[0]).unwrap();
            let pages = heap.psync_stats().pages_compared;
            space.insert(heap).unwrap();
            pages
        };
        let before = psynced(space);
        change(space);
        space.psync(&ids[0]).unwrap();
        psynced(space) - before
    };
    for (what, pages) in [
        (
            "new key",
            compared(&mut space, &|space| {
                assert!(space.map_insert(&ids[0], people, 1 << 40, person(1)).unwrap().is_none());
            }),
        ),
        (
            "known key",
            compared(&mut space, &|space| {
                assert!(space.map_insert(&ids[0], people, 7, person(8)).unwrap().is_some());
            }),
        ),
        (
            "removal",
            compared(&mut space, &|space| {
                assert!(space.map_remove(&ids[0], people, &9).unwrap().is_some());
            }),
        ),
        ("push", compared(&mut space, &|space| space.vec_push(&ids[0], order, 1).unwrap())),
    ] {
        assert!((1..=4).contains(&pages), "{what}: {pages} pages");
    }
}
