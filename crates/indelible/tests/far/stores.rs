use crate::graph::made;
use crate::support::{Ground, World, everywhere};
use indelible::{ErrorKind, Far, Space, Tracking};
use indelible_testing::{Choice, Fault, OpKind};
use std::sync::Arc;

type Id = [u8; 16];

#[test]
fn stores_to_the_same_bytes_are_in_each_psync() {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b"]);
    let places = |space: &mut Space, id: &Id| {
        let number = space.create(id, 0_u64).unwrap();
        let table = space.create_zeroed::<u64>(id, 1 << 14).unwrap();
        [number, table.nth(9_000).unwrap()]
    };
    let all = [0, 1].map(|object| places(&mut space, &ids[object]));
    for round in 1..=6_u64 {
        for step in 0..3 {
            for (id, place) in ids.iter().zip(all).flat_map(|(id, places)| places.map(|place| (id, place))) {
                *space.get_mut(id, place).unwrap() = 3 * round + step;
            }
            match round % 2 {
                0 => space.psync_all().unwrap(),
                _ => ids.iter().for_each(|id| space.psync(id).unwrap()),
            }
        }
        *space.get_mut(&ids[0], all[0][0]).unwrap() = u64::MAX;
        drop(space);
        space = Space::new();
        space.add(&pool);
        for name in ["a", "b"] {
            space.attach(&pool, name).unwrap();
        }
        for (id, place) in ids.iter().zip(all).flat_map(|(id, places)| places.map(|place| (id, place))) {
            assert_eq!(*space.get(id, place).unwrap(), 3 * round + 2);
        }
    }
}

#[test]
fn stores_that_follow_a_psync_without_room_are_in_the_next_one() {
    for all in [false, true] {
        let world = World::new(Ground::Simulated, Tracking::Explicit, false);
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a"]);
        let number = space.create(&ids[0], 0_u64).unwrap();
        let far = space.create_zeroed::<u64>(&ids[0], 1 << 14).unwrap().nth(9_000).unwrap();
        let psync = |space: &mut Space| if all { space.psync_all() } else { space.psync(&ids[0]) };
        let store = |space: &mut Space, value: u64| {
            for place in [number, far] {
                *space.get_mut(&ids[0], place).unwrap() = value;
            }
        };
        store(&mut space, 1);
        psync(&mut space).unwrap();
        pool.snapshot("a", "then", b"").unwrap();
        let sim = world.sim().unwrap();
        store(&mut space, 2);
        sim.fail_at(OpKind::Reserve, 0, Fault::NoSpace);
        assert_eq!(psync(&mut space).unwrap_err().kind(), ErrorKind::NoSpace);
        sim.clear_faults();
        store(&mut space, 3);
        psync(&mut space).unwrap();
        *space.get_mut(&ids[0], number).unwrap() = 4;
        let image = Arc::new(sim.power_cut(Choice::None).medium());
        drop(space);
        let after = world.options().on_device(image, false).unwrap();
        let mut space = Space::new();
        space.attach(&after, "a").unwrap();
        for place in [number, far] {
            assert_eq!(*space.get(&ids[0], place).unwrap(), 3, "{all}");
        }
    }
}

#[test]
fn stores_to_a_freed_block_are_refused_however_often_it_was_stored_to() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a"]);
        let kept = space.create(&ids[0], 5_u64).unwrap();
        for count in [1, 1 << 13] {
            let first = space.create_zeroed::<u64>(&ids[0], count).unwrap();
            let last = first.nth(count - 1).unwrap();
            for value in 0..3 {
                *space.get_mut(&ids[0], last).unwrap() = value;
                *space.get_mut(&ids[0], kept).unwrap() = value;
            }
            let beyond = space.slice_mut(&ids[0], last, 3 << 10).err().unwrap();
            assert_eq!(beyond.kind(), ErrorKind::BadSize, "{beyond}");
            space.free(&ids[0], first).unwrap();
            for pointer in [first, last] {
                let error = space.get_mut(&ids[0], pointer).err().unwrap();
                let kinds = [ErrorKind::NotABlock, ErrorKind::DoubleFree];
                assert!(kinds.contains(&error.kind()), "{count}: {error}");
            }
        }
        assert_eq!(*space.get(&ids[0], kept).unwrap(), 2);
    });
}

#[test]
fn new_values_are_what_was_asked_for_in_space_that_was_used() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a"]);
        let mut all: Vec<(Far<u8>, Vec<u8>)> = Vec::new();
        for len in [1, 100, 5_000, 50_000, 200_000] {
            let used = space.create_slice(&ids[0], &vec![0xff_u8; len]).unwrap();
            space.psync(&ids[0]).unwrap();
            space.free(&ids[0], used).unwrap();
            all.push((space.create_zeroed(&ids[0], len).unwrap(), vec![0; len]));
            let parts = [vec![1_u8; len], Vec::new(), vec![2; len / 2]];
            let pointer = space.create_parts(&ids[0], &parts.each_ref().map(Vec::as_slice)).unwrap();
            all.push((pointer, parts.concat()));
        }
        space.psync_all().unwrap();
        drop(space);
        let mut space = Space::new();
        let id = space.attach(&pool, "a").unwrap();
        for (pointer, bytes) in all {
            assert!(space.get(&id, pointer).unwrap().slice(bytes.len()).unwrap() == bytes, "{}", bytes.len());
        }
    });
}
