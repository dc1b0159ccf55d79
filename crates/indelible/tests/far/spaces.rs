use crate::graph::{Node, another, list, made, values, walked};
use crate::support::{Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Far, FarEntry, FarTarget, Heap, Rights, Space, Tracking};

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

#[test]
pub fn pointers_that_lead_nowhere_are_errors_that_say_why() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a", "b"]);
        pool.create("bare", 5000).unwrap();
        let bare = pool.stat("bare").unwrap().id;
        let far = |space: &mut Space, id: &[u8; 16], offset: u64| {
            space.far(&ids[0], id, Far::<u64>::own(offset).unwrap(), Rights::READ).unwrap()
        };
        let of = |space: &mut Space, id: &[u8; 16], offset| {
            let pointer = far(space, id, offset);
            space.get(&ids[0], pointer).err().map(|error| (error.kind(), error.to_string()))
        };
        assert_eq!(of(&mut space, &bare, 4992), None, "the last eight bytes");
        for offset in [4993, 5000, 1 << 30, (1 << 40) - 8] {
            let (kind, text) = of(&mut space, &bare, offset).unwrap();
            assert!(kind == ErrorKind::Dangling, "{text}");
        }
        let (kind, text) = of(&mut space, &bare, 4996).unwrap();
        assert!(
            kind == ErrorKind::Dangling
                && text.contains("leads to byte 0x1384")
                && text.contains("has 0x1388"),
            "{text}"
        );
        let (kind, text) = of(&mut space, &bare, 12).unwrap();
        assert!(kind == ErrorKind::Dangling && text.contains("multiples of 8"), "{text}");
        let (kind, text) = of(&mut space, &[7; 16], 8).unwrap();
        assert!(
            kind == ErrorKind::Dangling && text.contains("0707") && text.contains("none of the 1 pools"),
            "{text}"
        );
        for home in [&ids[0], &ids[1], &bare] {
            let error = space.get(home, Far::<u64>::new(99, 8).unwrap()).err().unwrap();
            assert!(
                error.kind() == ErrorKind::Dangling && error.to_string().contains("no entry 99"),
                "{error}"
            );
            let error = space.get(home, Far::<u64>::null()).err().unwrap();
            assert!(error.kind() == ErrorKind::Dangling && error.to_string().contains("null"), "{error}");
        }
        assert_eq!(
            space.get(&[1; 16], Far::<u64>::own(8).unwrap()).err().unwrap().kind(),
            ErrorKind::NotAttached
        );
        let own = FarEntry { target: FarTarget::Object(ids[0]), rights: Rights::READ };
        let node = space.create(&ids[0], Node::new(5, Far::null())).unwrap();
        let itself = space.far_by(&ids[0], &own, node).unwrap();
        assert_eq!(space.get(&ids[0], itself).unwrap().value, 5);
        assert_eq!(space.get(&ids[0], itself).unwrap().here(), node);
    });
}

#[test]
fn a_target_that_cannot_be_attached_is_an_error_until_it_can() {
    let world = world();
    let (one, two) = (world.format(), another(&world, "two.pmo"));
    let (mut space, ids) = made(&[&one, &two], &["a", "b"]);
    list(&mut space, &ids, 4);
    space.psync_all().unwrap();
    drop(space);
    let follow = |space: &Space| {
        let first = space.root::<Node>(&ids[0], "first").unwrap();
        first.follow(first.next).map(|next| next.unwrap().value)
    };
    let mut space = Space::new();
    space.add(&one);
    space.attach_read(&ids[0]).unwrap();
    let elsewhere = follow(&space).unwrap_err();
    assert!(
        elsewhere.kind() == ErrorKind::Dangling && elsewhere.to_string().contains("Space::add"),
        "{elsewhere}"
    );
    space.add(&two);
    let writer = two.attach("b").unwrap();
    let held = follow(&space).unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Held, "{held}");
    drop(writer);
    assert_eq!(follow(&space).unwrap(), 1);
    drop(space.remove(&ids[1]));
    let deleted = two.attach("b").unwrap();
    two.delete("b", b"").unwrap();
    assert_eq!(follow(&space).unwrap_err().kind(), ErrorKind::Dangling);
    drop(deleted);
    two.store().reap().unwrap();
    two.create("b", 1 << 20).unwrap();
    assert_eq!(follow(&space).unwrap_err().kind(), ErrorKind::Dangling);
}

#[test]
fn s2_01_of_several_pools_with_an_id_the_first_counts() {
    let world = world();
    let (one, two) = (world.format(), another(&world, "two.pmo"));
    let (mut space, ids) = made(&[&one], &["a", "b"]);
    list(&mut space, &ids, 4);
    space.psync_all().unwrap();
    drop(space);
    let before = one.attach_read("a").unwrap().as_slice().to_vec();
    let mut kept = indelible_store::store::Attributes::of(&one.store().find("a").unwrap());
    (kept.published, kept.psyncs) = (one.stat("a").unwrap().published, 1);
    let revived = two.store().adopt_elsewhere(&kept, None).unwrap();
    revived.write(0, &before).unwrap();
    revived.publish().unwrap();
    let mut heap = Heap::open(two.attach("a").unwrap()).unwrap();
    heap.verify(&indelible::collections::RootTypes::new().root::<Node>("first")).unwrap();
    heap.root_mut::<Node>("first").unwrap().value = 100;
    heap.psync().unwrap();
    drop(heap);
    assert_eq!(walked(&[&one, &two], &ids[0])[0], 0);
    assert_eq!(walked(&[&two, &one], &ids[0]), [100, 1, 2, 3, 4]);
}

#[test]
fn pointers_lead_into_objects_that_have_grown() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a", "b"]);
        let first = space.create(&ids[1], Node::new(1, Far::null())).unwrap();
        let first = space.far(&ids[0], &ids[1], first, Rights::READ | Rights::WRITE).unwrap();
        assert_eq!(space.get(&ids[0], first).unwrap().value, 1);
        let mut last = (first, 1);
        for value in 2..400 {
            let page = space.create(&ids[1], [value; 1024]).unwrap();
            let node = space.create(&ids[1], Node::new(value, Far::null())).unwrap();
            last = (space.far(&ids[0], &ids[1], node, Rights::READ | Rights::WRITE).unwrap(), value);
            assert_eq!(space.get(&ids[1], page).unwrap()[1023], value);
        }
        assert!(pool.stat("b").unwrap().size > 1 << 20);
        assert_eq!(space.get(&ids[0], last.0).unwrap().value, last.1);
        space.get_mut(&ids[0], last.0).unwrap().value = 7;
        assert_eq!(space.get(&ids[0], last.0).unwrap().value, 7);
        space.psync_all().unwrap();
    });
}

#[test]
fn stores_and_frees_go_to_blocks_alone() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    let id = &ids[0];
    let node = space.create(id, Node::new(1, Far::null())).unwrap();
    let array = space.create(id, [3_u64; 8]).unwrap();
    *space.get_mut(id, Far::<u64>::own(array.offset() + 24).unwrap()).unwrap() = 4;
    assert_eq!(space.get(id, array).unwrap().value(), &[3, 3, 3, 4, 3, 3, 3, 3]);
    for offset in [8, 4096, 900_000, array.offset() + 60] {
        let refused = space.get_mut(id, Far::<[u64; 2]>::own(offset & !7).unwrap()).err();
        let kinds = [ErrorKind::NotABlock, ErrorKind::BadSize, ErrorKind::DoubleFree];
        assert!(refused.as_ref().is_some_and(|error| kinds.contains(&error.kind())), "{offset}: {refused:?}");
    }
    space.root_or_insert(id, "first", Node::new(0, node)).unwrap();
    let root = space.root::<Node>(id, "first").unwrap().here();
    assert_eq!(space.free(id, root).unwrap_err().kind(), ErrorKind::RootExists);
    space.root_or_insert(id, "second", 2_u64).unwrap();
    let root = space.root::<u64>(id, "second").unwrap().here();
    assert_eq!(space.free(id, root).unwrap_err().kind(), ErrorKind::RootExists);
    space.free(id, array).unwrap();
    assert!(space.free(id, array).is_err(), "it is free");
    assert_eq!(values(&space, id), [0, 1]);
    let mut heap = space.remove(id).unwrap();
    assert_eq!(heap.check(), []);
    assert_eq!(heap.audit().unwrap().leaks, []);
}

#[test]
fn an_object_is_in_a_space_once() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    assert_eq!(space.attach(&pool, "a").unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(space.objects(), ids);
    space.psync_all().unwrap();
    assert!(space.remove(&ids[0]).is_some());
    assert!(space.remove(&ids[0]).is_none());
    space.attach_read(&ids[0]).unwrap();
    space.attach_read(&ids[0]).unwrap();
    assert_eq!(space.psync(&ids[0]).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(space.upgrade(&[3; 16]).unwrap_err().kind(), ErrorKind::NotAttached);
    let other = pool.attach_read("a").unwrap();
    assert_eq!(space.upgrade(&ids[0]).unwrap_err().kind(), ErrorKind::Held, "another reader has it");
    drop(other);
    space.attach_read(&ids[0]).unwrap();
    space.upgrade(&ids[0]).unwrap();
    space.upgrade(&ids[0]).unwrap();
    space.psync(&ids[0]).unwrap();
}

#[test]
fn threads_follow_pointers_side_by_side() {
    let world = world();
    let (one, two) = (world.format(), another(&world, "two.pmo"));
    let (mut space, ids) = made(&[&one, &two], &["a", "b", "c", "d", "e"]);
    list(&mut space, &ids, 100);
    space.psync_all().unwrap();
    drop(space);
    let mut space = Space::new();
    [&one, &two].into_iter().for_each(|pool| space.add(pool));
    space.attach_read(&ids[0]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(values(&space, &ids[0]).len(), 101));
        }
    });
    assert_eq!(space.objects().len(), 5);
}

#[test]
pub fn a_pointer_beyond_a_shorter_object_is_an_error() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    pool.create("target", 60_000).unwrap();
    let target = pool.stat("target").unwrap().id;
    let pointer = space.far(&ids[0], &target, Far::<u64>::own(4000).unwrap(), Rights::READ).unwrap();
    assert_eq!(*space.get(&ids[0], pointer).unwrap(), 0);
    drop(space.remove(&target));
    pool.resize("target", 1000, b"").unwrap();
    let beyond = space.get(&ids[0], pointer).expect_err("an error");
    assert!(
        beyond.kind() == ErrorKind::Dangling && beyond.to_string().contains("the object has 0x3e8"),
        "{beyond}"
    );
    pool.resize("target", 8000, b"").unwrap_err();
    drop(space.remove(&target));
    pool.resize("target", 8000, b"").unwrap();
    assert_eq!(*space.get(&ids[0], pointer).unwrap(), 0);
}

#[test]
fn a_target_of_another_type_or_size_gives_its_bytes_or_an_error() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a", "b"]);
        let node = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
        let pointer = space.far(&ids[0], &ids[1], node, Rights::READ | Rights::WRITE).unwrap();
        let retarget = |space: &mut Space, target: [u8; 16]| {
            let entry = FarEntry { target: FarTarget::Object(target), rights: Rights::READ };
            space.retarget(&ids[0], pointer.index(), &entry).unwrap();
        };
        let end = node.offset() + size_of::<Node>() as u64;
        for (name, size) in [("whole", end), ("short", end - 1), ("byte", 1), ("large", 8 << 20)] {
            pool.create(name, size).unwrap();
            retarget(&mut space, pool.stat(name).unwrap().id);
            match space.get(&ids[0], pointer) {
                Ok(found) => assert!(size >= end && found.value == 0 && found.next.is_null(), "{name}"),
                Err(error) => assert!(size < end && error.kind() == ErrorKind::Dangling, "{name}: {error}"),
            }
            let stored = space.get_mut(&ids[0], pointer).err().unwrap();
            assert_eq!(stored.kind(), ErrorKind::ReadOnly, "{name}");
        }
        retarget(&mut space, ids[1]);
        assert_eq!(space.get(&ids[0], pointer.cast::<[u8; 8]>()).unwrap()[0], 7);
        assert_eq!(
            space.get(&ids[0], pointer.cast::<[u64; 1 << 17]>()).err().unwrap().kind(),
            ErrorKind::Dangling
        );
        for count in [1, 5] {
            assert_eq!(space.get(&ids[0], pointer.cast::<u64>()).unwrap().slice(count).unwrap().len(), count);
        }
        for count in [1 << 18, usize::MAX, usize::MAX / 8] {
            let error = space.get(&ids[0], pointer.cast::<u64>()).unwrap().slice(count).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Dangling, "{count}: {error}");
            let error = space.slice_mut(&ids[1], node.cast::<u64>(), count).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Dangling, "{count}: {error}");
        }
        retarget(&mut space, ids[0]);
        assert!(space.get(&ids[0], pointer).is_ok_and(|found| found.object() == ids[0]));
        let most = Far::<u64>::new((1 << 24) - 1, 8).unwrap();
        let error = space.get(&ids[0], most).err().unwrap();
        assert!(error.to_string().contains("no entry 16777215"), "{error}");
        let far = Far::<u64>::new(pointer.index(), (1 << 40) - 8).unwrap();
        assert_eq!(space.get(&ids[0], far).err().unwrap().kind(), ErrorKind::Dangling);
    });
}

#[test]
fn rings_of_pointers_end() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b"]);
    let there = space.create(&ids[1], Node::new(2, Far::null())).unwrap();
    let here = space.create(&ids[0], Node::new(1, Far::null())).unwrap();
    let (to, back) = (
        space.far(&ids[0], &ids[1], there, Rights::READ).unwrap(),
        space.far(&ids[1], &ids[0], here, Rights::READ).unwrap(),
    );
    space.get_mut(&ids[1], there).unwrap().next = back;
    *space.get_mut(&ids[0], here).unwrap() = Node { value: 1, next: to, other: [here, to, here] };
    space.root_or_insert(&ids[0], "first", Node { value: 0, next: here, other: [here; 3] }).unwrap();
    let root = space.root::<Node>(&ids[0], "first").unwrap().here();
    space.root_mut::<Node>(&ids[0], "first").unwrap().other = [root; 3];
    let mut at = space.root::<Node>(&ids[0], "first").unwrap();
    for step in 0..1000 {
        let expected = if step == 0 { 0 } else { 2 - step % 2 };
        assert_eq!(at.value, expected);
        at = at.follow(at.next).unwrap().unwrap();
    }
    assert_eq!(space.reachable(&ids[..1], true).unwrap().len(), 2);
    assert_eq!(space.dangling(&ids[0]).unwrap(), []);
    assert_eq!(space.compact(&ids[0]).unwrap().removed, 0);
    let mut heap = space.remove(&ids[0]).unwrap();
    assert_eq!((heap.audit().unwrap().leaks, heap.check()), (vec![], vec![]));
}

#[test]
fn an_object_of_one_value_stays_small() {
    let world = world();
    let pool = world.format();
    let mut space = Space::new();
    space.add(&pool);
    let ids = ["small", "other"].map(|name| {
        let how = CreateOptions::new(32 << 10).position_independent(true);
        pool.create_with(name, &how).unwrap();
        space.attach(&pool, name).unwrap()
    });
    let node = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
    let next = space.far(&ids[0], &ids[1], node, Rights::READ).unwrap();
    let first = space.create(&ids[0], Node::new(5, next)).unwrap();
    space.root_or_insert(&ids[0], "first", first).unwrap();
    space.psync_all().unwrap();
    for name in ["small", "other"] {
        assert_eq!(pool.stat(name).unwrap().size, 32 << 10, "{name}");
    }
}
