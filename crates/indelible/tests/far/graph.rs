use crate::support::{Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Far, FarEntry, FarTarget, Persist, Plain, Pool, Rights, Space};
use indelible_testing::Seeded;

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
pub struct Node {
    pub value: u64,
    #[persist(target)]
    pub next: Far<Node>,
    #[persist(target)]
    pub other: [Far<Node>; 3],
}

impl Node {
    pub fn new(value: u64, next: Far<Node>) -> Node {
        Node { value, next, other: [Far::null(); 3] }
    }
}

pub type Id = [u8; 16];

pub fn free(size: u64) -> CreateOptions {
    CreateOptions::new(size).position_independent(true)
}

pub fn another(world: &World, name: &str) -> Pool {
    world.options().format(world.dir().join(name), 64 << 20).unwrap()
}

pub fn made(pools: &[&Pool], names: &[&str]) -> (Space, Vec<Id>) {
    let mut space = Space::new();
    pools.iter().for_each(|pool| space.add(pool));
    let ids = names.iter().zip(pools.iter().cycle()).map(|(name, pool)| {
        pool.create_with(name, &free(1 << 20)).unwrap();
        space.attach(pool, name).unwrap()
    });
    let ids = ids.collect();
    (space, ids)
}

pub fn list(space: &mut Space, ids: &[Id], count: u64) {
    let mut next: Option<(usize, Far<Node>)> = None;
    for value in (1..=count).rev() {
        let home = value as usize % ids.len();
        let pointer = match next {
            Some((target, node)) => space.far(&ids[home], &ids[target], node, Rights::READ).unwrap(),
            None => Far::null(),
        };
        next = Some((home, space.create(&ids[home], Node::new(value, pointer)).unwrap()));
    }
    let pointer = match next {
        Some((target, node)) => space.far(&ids[0], &ids[target], node, Rights::READ).unwrap(),
        None => Far::null(),
    };
    *space.root_or_insert(&ids[0], "first", Node::new(0, Far::null())).unwrap() = Node::new(0, pointer);
}

pub fn values(space: &Space, id: &Id) -> Vec<u64> {
    let mut at = space.root::<Node>(id, "first").unwrap();
    let mut values = vec![at.value];
    while let Some(next) = at.follow(at.next).unwrap() {
        values.push(next.value);
        at = next;
    }
    values
}

pub fn walked(pools: &[&Pool], id: &Id) -> Vec<u64> {
    let mut space = Space::new();
    pools.iter().for_each(|pool| space.add(pool));
    space.attach_read(id).unwrap();
    values(&space, id)
}

#[test]
fn s2_09_a_pointer_means_the_same_wherever_the_objects_lie() {
    everywhere(|world| {
        let (one, two) = (world.format(), another(world, "two.pmo"));
        let (mut space, ids) = made(&[&one, &two], &["a", "b", "c"]);
        list(&mut space, &ids, 50);
        space.psync_all().unwrap();
        assert_eq!(values(&space, &ids[0]), (0..=50).collect::<Vec<_>>());
        drop((space, one));
        let one = world.open();
        assert_eq!(walked(&[&one, &two], &ids[0]), (0..=50).collect::<Vec<_>>());
        let third = another(world, "three.pmo");
        for (pool, name) in [(&one, "a"), (&two, "b"), (&one, "c")] {
            let (before, address) =
                (pool.attach_read(name).unwrap().as_slice().to_vec(), pool.stat(name).unwrap().address);
            pool.move_rebased(name, b"", &third, &mut |_, _| {}).unwrap();
            assert_ne!(third.stat(name).unwrap().address, address);
            assert!(third.attach_read(name).unwrap().as_slice() == before);
        }
        assert_eq!(walked(&[&one, &two, &third], &ids[0]), (0..=50).collect::<Vec<_>>());
    });
}

type Known = (usize, Far<Node>, u64, [Option<usize>; 3]);

#[test]
fn random_graphs_are_what_their_model_says() {
    for seed in 0..12 {
        let mut random = Seeded::new(seed);
        let world = World::new(
            [Ground::Simulated, Ground::Memory][seed as usize % 2],
            indelible::Tracking::Auto,
            false,
        );
        let (one, two) = (world.format(), another(&world, "two.pmo"));
        let (mut space, ids) = made(&[&one, &two], &["a", "b", "c", "d"]);
        let mut model: Vec<Known> = Vec::new();
        for step in 0..400_u64 {
            if model.is_empty() || random.usize(..3) == 0 {
                let home = random.usize(..ids.len());
                let node = space.create(&ids[home], Node::new(step, Far::null())).unwrap();
                model.push((home, node, step, [None; 3]));
            } else if random.usize(..10) == 0 {
                space.psync_all().unwrap();
            } else {
                let (from, to, slot) =
                    (random.usize(..model.len()), random.usize(..model.len()), random.usize(..3));
                let (home, place) = (model[from].0, model[from].1);
                let rights = if random.usize(..2) == 0 { Rights::READ } else { Rights::READ | Rights::WRITE };
                let pointer = space.far(&ids[home], &ids[model[to].0], model[to].1, rights).unwrap();
                let node = space.get_mut(&ids[home], place).unwrap();
                (node.other[slot], node.value) = (pointer, step);
                (model[from].2, model[from].3[slot]) = (step, Some(to));
            }
        }
        space.psync_all().unwrap();
        let verify = |space: &Space| {
            for (home, place, value, others) in &model {
                let node = space.get(&ids[*home], *place).unwrap();
                assert_eq!(node.value, *value, "seed {seed}");
                for (pointer, other) in node.other.iter().zip(others) {
                    let found = node.follow(*pointer).unwrap().map(|found| (found.object(), found.value));
                    assert_eq!(
                        found,
                        other.map(|other| (ids[model[other].0], model[other].2)),
                        "seed {seed}"
                    );
                }
            }
        };
        verify(&space);
        for id in &ids {
            let mut heap = space.remove(id).unwrap();
            assert_eq!(heap.check(), []);
            let entries = heap.far_entries().unwrap();
            assert!(entries.len() <= 2 * (ids.len() - 1), "{entries:?}");
            space.insert(heap).unwrap();
        }
        verify(&space);
        drop((space, one));
        let one = world.open();
        let mut space = Space::new();
        [&one, &two].into_iter().for_each(|pool| space.add(pool));
        ids.iter().for_each(|id| space.attach_read(id).unwrap());
        verify(&space);
    }
}

#[test]
fn s2_10_entries_ask_for_rights_and_one_target_may_have_several() {
    let world = World::new(Ground::Memory, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b"]);
    let node = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
    let read = space.far(&ids[0], &ids[1], node, Rights::READ).unwrap();
    let both = space.far(&ids[0], &ids[1], node, Rights::READ | Rights::WRITE).unwrap();
    assert_ne!(read.index(), both.index());
    assert_eq!(space.far(&ids[0], &ids[1], node, Rights::READ).unwrap(), read);
    space.get_mut(&ids[0], both).unwrap().value = 8;
    assert_eq!(space.get(&ids[0], read).unwrap().value, 8);
    let refused = space.get_mut(&ids[0], read).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.to_string().contains("asks for r--, and this needs stores"), "{refused}");
    let write = space.far(&ids[0], &ids[1], node, Rights::WRITE).unwrap();
    assert_eq!(space.get(&ids[0], write).err().unwrap().kind(), ErrorKind::ReadOnly);
    let mut heap = space.remove(&ids[1]).unwrap();
    heap.psync().unwrap();
    drop(heap);
    assert_eq!(space.get(&ids[0], both).unwrap().value, 8);
    let refused = space.get_mut(&ids[0], both).err().unwrap();
    assert!(
        refused.kind() == ErrorKind::ReadOnly && refused.to_string().contains("Space::upgrade"),
        "{refused}"
    );
    space.upgrade(&ids[1]).unwrap();
    space.get_mut(&ids[0], both).unwrap().value = 9;
    assert_eq!(space.get(&ids[0], read).unwrap().value, 9);
}

#[test]
pub fn s2_10_later_pointers_do_not_share_a_retargeted_entry() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "x", "y"]);
    let node =
        |space: &mut Space, at: usize| space.create(&ids[at], Node::new(at as u64, Far::null())).unwrap();
    let places = [node(&mut space, 1), node(&mut space, 2)];
    let to = |at: usize| FarEntry { target: FarTarget::Object(ids[at]), rights: Rights::READ };
    let moved = space.far(&ids[0], &ids[1], places[0], Rights::READ).unwrap();
    space.retarget(&ids[0], moved.index(), &to(2)).unwrap();
    let plain = space.far(&ids[0], &ids[2], places[1], Rights::READ).unwrap();
    assert_ne!(plain.index(), moved.index());
    space.psync_all().unwrap();
    drop(space);
    let mut space = Space::new();
    space.add(&pool);
    space.attach(&pool, "a").unwrap();
    assert_eq!(space.far(&ids[0], &ids[2], places[1], Rights::READ).unwrap().index(), plain.index());
    space.retarget(&ids[0], moved.index(), &to(1)).unwrap();
    assert_eq!(space.get(&ids[0], plain).unwrap().value, 2);
    assert_eq!(space.get(&ids[0], moved).unwrap().value, 1);
}

#[test]
pub fn s2_10_a_private_entry_is_retargeted_alone() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "x", "y"]);
    for at in [1, 2] {
        space.create(&ids[at], Node::new(at as u64, Far::null())).unwrap();
    }
    let place = space.create(&ids[1], Node::new(1, Far::null())).unwrap();
    assert_eq!(place, space.create(&ids[2], Node::new(2, Far::null())).unwrap(), "both were made alike");
    let common = space.far(&ids[0], &ids[1], place, Rights::READ).unwrap();
    let mut private = || space.private_far(&ids[0], &ids[1], place, Rights::READ).unwrap();
    let (one, two) = (private(), private());
    assert!(one.index() != two.index() && one.index() != common.index() && two.index() != common.index());
    let entry = FarEntry { target: FarTarget::Object(ids[2]), rights: Rights::READ };
    space.retarget(&ids[0], one.index(), &entry).unwrap();
    assert_eq!(space.far(&ids[0], &ids[1], place, Rights::READ).unwrap().index(), common.index());
    assert_ne!(space.far(&ids[0], &ids[2], place, Rights::READ).unwrap().index(), one.index());
    let values = [common, one, two].map(|pointer| space.get(&ids[0], pointer).unwrap().value);
    assert_eq!(values, [1, 2, 1]);
}

#[test]
pub fn s2_10_one_entry_retargets_all_pointers_through_it() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "old", "new"]);
    let places: Vec<_> = [1, 2]
        .iter()
        .map(|at| space.create(&ids[*at], Node::new(*at as u64, Far::null())).unwrap())
        .collect();
    assert_eq!(places[0], places[1], "both objects were made alike");
    let pointer = space.far(&ids[0], &ids[1], places[0], Rights::READ).unwrap();
    space.root_or_insert(&ids[0], "first", Node { value: 0, next: pointer, other: [pointer; 3] }).unwrap();
    assert_eq!(values(&space, &ids[0]), [0, 1]);
    let entry = FarEntry { target: FarTarget::Object(ids[2]), rights: Rights::READ };
    space.retarget(&ids[0], pointer.index(), &entry).unwrap();
    assert_eq!(values(&space, &ids[0]), [0, 2]);
    space.psync_all().unwrap();
    drop((space, pool));
    assert_eq!(walked(&[&world.open()], &ids[0]), [0, 2]);
}

#[test]
fn s2_28_a_handle_gives_what_a_pointer_gives() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b", "c"]);
    let value = |number| Node::new(number, Far::null());
    let inside = space.create(&ids[0], value(1)).unwrap();
    let [there, other] = [1, 2].map(|at| {
        let place = space.create(&ids[at], value(at as u64 * 10)).unwrap();
        space.far(&ids[0], &ids[at], place, Rights::READ).unwrap()
    });
    let by_stores = FarEntry { target: FarTarget::Object(ids[1]), rights: Rights::WRITE };
    let unread = space.far_by(&ids[0], &by_stores, there).unwrap();
    let home = space.home(&ids[0]).unwrap();
    assert_eq!([inside, there, other].map(|pointer| home.get(pointer).unwrap().value), [1, 10, 20]);
    let way = home.way(there.index()).unwrap();
    assert_eq!([inside, there, other].map(|pointer| way.get(pointer).unwrap().value), [1, 10, 20]);
    let seen = way.get(there).unwrap();
    assert_eq!((seen.object(), seen.here()), (ids[1], Far::own(there.offset()).unwrap()));
    assert_eq!(way.target().get(seen.here()).unwrap().value, 10);
    let beyond = Far::<Node>::new(there.index(), (1 << 20) - 8).unwrap();
    let misaligned = Far::<Node>::new(there.index(), there.offset() + 1).unwrap();
    let errors = [
        way.get(beyond).map(drop),
        way.get(misaligned).map(drop),
        way.get(Far::<Node>::null()).map(drop),
        way.get(Far::<Node>::from_word(there.word() - there.offset())).map(drop),
        home.way(0).map(drop),
        home.way(99).map(drop),
    ];
    for result in errors {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Dangling);
    }
    assert_eq!(home.way(unread.index()).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(space.home(&[9; 16]).unwrap_err().kind(), ErrorKind::NotAttached);
}

#[test]
pub fn an_entry_that_is_gone_is_not_handed_out_again() {
    let world = World::new(Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b", "c"]);
    let [b, c] = [1, 2].map(|at| space.create(&ids[at], Node::new(at as u64, Far::null())).unwrap());
    space.root_or_insert(&ids[0], "first", Node::new(0, Far::null())).unwrap();
    let to_b = |space: &mut Space| space.far(&ids[0], &ids[1], b, Rights::READ).unwrap();
    let pointer = to_b(&mut space);
    assert_eq!(to_b(&mut space), pointer, "one entry for all pointers");
    let stores = space.far(&ids[0], &ids[1], b, Rights::WRITE | Rights::READ).unwrap();
    assert_ne!(stores.index(), pointer.index(), "another request, another entry");
    let entry = FarEntry { target: FarTarget::Object(ids[2]), rights: Rights::READ };
    space.retarget(&ids[0], pointer.index(), &entry).unwrap();
    assert_eq!(space.get(&ids[0], pointer).unwrap().value, 2);
    let again = to_b(&mut space);
    assert_eq!(space.get(&ids[0], again).unwrap().value, 1, "the entry leads elsewhere now");
    assert_eq!(space.compact(&ids[0]).unwrap().kept, 0, "nothing is stored yet");
    let last = to_b(&mut space);
    assert_eq!(space.get(&ids[0], last).unwrap().value, 1, "the entry was taken away");
    assert_eq!(c, b, "objects that were made alike");
}
