//! The red-black tree (S2.25) in volatile memory, a mapped file, one object and objects of two
//! pools, against std's map.

use indelible::{CreateOptions, Pool, Space};
use indelible_examples::tree::{
    FarTree, FileNodes, Nodes, VolatileNodes, Walk, check, first_from, insert, next, remove,
};
use indelible_testing::Seeded;
use std::collections::BTreeMap;

type Model = BTreeMap<u64, u64>;

const KEYS: u64 = 400;

fn change<N: Nodes<Key = u64, Sought = u64, Value = u64>>(
    nodes: &mut N,
    model: &mut Model,
    seeded: &mut Seeded,
    steps: u64,
) {
    for step in 0..steps {
        let key = seeded.u64(0..KEYS);
        let grows = step / 200 % 2 == 0;
        if seeded.u64(0..10) < if grows { 7 } else { 3 } {
            assert_eq!(insert(nodes, &key, key, step).unwrap(), model.insert(key, step), "insert {key}");
        } else {
            let former = model.remove(&key).map(|value| (key, value));
            assert_eq!(remove(nodes, &key).unwrap(), former, "remove {key}");
        }
        if step % 50 == 0 {
            compare(nodes, model, seeded.u64(0..KEYS));
        }
    }
    compare(nodes, model, 0);
}

fn compare<W: Walk<Key = u64, Sought = u64, Value = u64>>(nodes: &W, model: &Model, from: u64) {
    assert_eq!(check(nodes).unwrap(), model.len());
    let mut at = first_from(nodes, &from).unwrap();
    for (key, value) in model.range(from..) {
        let here = at.expect("a key is missing");
        assert_eq!(nodes.entry(here).unwrap(), (*key, *value));
        at = next(nodes, here).unwrap();
    }
    assert!(at.is_none(), "there are keys that were not inserted");
}

#[test]
fn s2_25_volatile_nodes_are_a_map() {
    change(&mut VolatileNodes::default(), &mut Model::new(), &mut Seeded::new(25), 4000);
}

#[test]
fn s2_25_nodes_of_a_file_are_a_map_also_after_it_was_closed() {
    let (folder, mut seeded, mut model) = (tempfile::tempdir().unwrap(), Seeded::new(251), Model::new());
    let path = folder.path().join("tree");
    for _ in 0..4 {
        let mut nodes = FileNodes::open(&path).unwrap();
        compare(&nodes, &model, 0);
        change(&mut nodes, &mut model, &mut seeded, 1000);
        nodes.sync().unwrap();
    }
    std::fs::write(folder.path().join("other"), [7; 100]).unwrap();
    assert!(FileNodes::open(&folder.path().join("other")).is_err());
}

struct World {
    _folder: tempfile::TempDir,
    pools: Vec<Pool>,
}

impl World {
    fn new(pools: usize) -> World {
        let folder = tempfile::tempdir().unwrap();
        let pool = |number| Pool::format(folder.path().join(format!("{number}.pmo")), 16 << 20).unwrap();
        World { pools: (0..pools).map(pool).collect(), _folder: folder }
    }

    fn space(&self, objects: &[(&str, usize)]) -> (Space, Vec<[u8; 16]>) {
        let mut space = Space::new();
        self.pools.iter().for_each(|pool| space.add(pool));
        let attach = |(name, pool): &(&str, usize)| {
            let pool = &self.pools[*pool];
            let options = CreateOptions::new(1 << 20).position_independent(true);
            let _ = pool.create_with(name, &options);
            space.attach(pool, name).unwrap()
        };
        let ids = objects.iter().map(attach).collect();
        (space, ids)
    }
}

fn survives(world: &World, objects: &[(&str, usize)], seed: u64) {
    let (mut seeded, mut model) = (Seeded::new(seed), Model::new());
    for _ in 0..4 {
        let (mut space, ids) = world.space(objects);
        let tree = FarTree::<u64, u64>::open(&mut space, &ids).unwrap();
        compare(&tree.on(&space), &model, 0);
        change(&mut tree.on(&mut space), &mut model, &mut seeded, 700);
        space.psync_all().unwrap();
        change(&mut tree.on(&mut space), &mut model.clone(), &mut seeded, 50);
    }
    let mut space = Space::new();
    world.pools.iter().for_each(|pool| space.add(pool));
    let ids: Vec<[u8; 16]> =
        objects.iter().map(|(name, pool)| world.pools[*pool].stat(name).unwrap().id).collect();
    space.attach_read(&ids[0]).unwrap();
    compare(&FarTree::<u64, u64>::read(&space, &ids[..1]).unwrap().on(&space), &model, 0);
}

#[test]
fn s2_25_a_tree_in_one_object_survives() {
    survives(&World::new(1), &[("tree", 0)], 252);
}

#[test]
fn s2_25_a_tree_across_objects_of_two_pools_survives() {
    survives(&World::new(2), &[("one", 0), ("two", 1), ("three", 0)], 253);
}

#[test]
fn a_damaged_tree_is_an_error() {
    let world = World::new(1);
    let (mut space, ids) = world.space(&[("tree", 0)]);
    let tree = FarTree::<u64, u64>::open(&mut space, &ids).unwrap();
    for key in 0..20 {
        insert(&mut tree.on(&mut space), &key, key, key).unwrap();
    }
    // Node 19 has no children: its parent as its right child is a circle.
    let mut nodes = tree.on(&mut space);
    let indelible_examples::tree::Descent::Found(last) = nodes.descend(&19).unwrap() else { panic!() };
    let parent = nodes.links(last).unwrap().parent;
    nodes.change(last, |of| of.right = parent).unwrap();
    let text = insert(&mut nodes, &100, 100, 0).unwrap_err().to_string();
    assert!(text.contains("a way down has no end"), "{text}");
    assert!(check(&nodes).is_err());
}
