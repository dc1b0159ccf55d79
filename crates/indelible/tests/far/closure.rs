use crate::entries::by_name;
use crate::graph::{Node, another, list, made};
use crate::support::{Ground, World};
use indelible::{ErrorKind, Far, Rights, Space, Tracking};

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

#[test]
pub fn objects_are_reached_through_any_number_of_others() {
    let world = world();
    let (one, two) = (world.format(), another(&world, "two.pmo"));
    let (mut space, ids) = made(&[&one, &two], &["a", "b", "c", "d", "e", "apart"]);
    let node = Far::<Node>::own(4096).unwrap();
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (5, 0)] {
        space.far(&ids[from], &ids[to], node, Rights::READ).unwrap();
    }
    space.far_by(&ids[4], &by_name("a"), node).unwrap();
    space.psync_all().unwrap();
    let reached = |space: &Space, from: usize, closed| {
        let found = space.reachable(&[ids[from]], closed).unwrap();
        found.into_iter().map(|found| (found.name, found.pool.id())).collect::<Vec<_>>()
    };
    let names = |found: Vec<(String, [u8; 16])>| found.into_iter().map(|(name, _)| name).collect::<String>();
    for space in [space, Space::new()].iter_mut() {
        if space.pools().is_empty() {
            [&one, &two].into_iter().for_each(|pool| space.add(pool));
        }
        assert_eq!(names(reached(space, 0, true)), "abcde");
        assert_eq!(names(reached(space, 4, true)), "eabcd");
        assert_eq!(names(reached(space, 5, true)), "apartabcde");
        assert_eq!(names(reached(space, 0, false)), "a");
        assert_eq!(reached(space, 1, true)[0].1, two.id());
        ids.iter().for_each(|id| drop(space.remove(id)));
    }
    two.destroy("d").unwrap();
    let mut space = Space::new();
    [&one, &two].into_iter().for_each(|pool| space.add(pool));
    let missing = space.reachable(&[ids[0]], true).unwrap_err();
    assert!(
        missing.kind() == ErrorKind::Dangling && missing.to_string().contains("object \"c\""),
        "{missing}"
    );
    assert_eq!(space.reachable(&[[5; 16]], false).unwrap_err().kind(), ErrorKind::Dangling);
}

#[test]
pub fn a_whole_list_is_reached_from_its_first_object() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b", "c", "d"]);
    list(&mut space, &ids, 9);
    space.psync_all().unwrap();
    assert_eq!(space.reachable(&ids[..1], true).unwrap().len(), 4);
}

#[test]
fn pointers_that_lead_nowhere_are_found() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b", "gone"]);
    let far = |space: &mut Space, target: usize, offset| {
        space.far(&ids[0], &ids[target], Far::<Node>::own(offset).unwrap(), Rights::READ).unwrap()
    };
    let (right, beyond, gone) =
        (far(&mut space, 1, 4096), far(&mut space, 1, 9 << 20), far(&mut space, 2, 4096));
    let own = space.create(&ids[0], Node::new(1, right)).unwrap();
    space
        .root_or_insert(&ids[0], "first", Node { value: 0, next: own, other: [beyond, right, gone] })
        .unwrap();
    assert_eq!(space.dangling(&ids[0]).unwrap().len(), 1, "beyond");
    space.root_mut::<Node>(&ids[0], "first").unwrap().other[1] = Far::new(77, 8).unwrap();
    space.get_mut(&ids[0], own).unwrap().next = Far::own(5 << 20).unwrap();
    space.psync_all().unwrap();
    drop(space);
    pool.destroy("gone").unwrap();
    let mut space = Space::new();
    space.add(&pool);
    let found = space.dangling(&ids[0]).unwrap();
    let texts: Vec<_> = found
        .iter()
        .map(|one| {
            (
                one.pointer.as_ref().map(|pointer| &*pointer.path),
                one.entry.as_ref().map(|entry| entry.0),
                &*one.what,
            )
        })
        .collect();
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(
        texts[0].0.is_none()
            && texts[0].1 == Some(gone.index())
            && texts[0].2.contains("none of the 1 pools"),
        "{texts:?}"
    );
    let expected = [
        ("first.other[0]", Some(1), "byte 0x900000"),
        ("first.other[1]", None, "entry 77 is not in use"),
        ("first.next.next", None, "byte 0x500000"),
    ];
    for (path, entry, what) in expected {
        let one = texts.iter().find(|one| one.0 == Some(path)).unwrap_or_else(|| panic!("{path}: {texts:?}"));
        assert!(one.1 == entry && one.2.contains(what), "{one:?}");
    }
    assert_eq!(space.dangling(&ids[1]).unwrap(), []);
    assert_eq!(space.dangling(&[8; 16]).unwrap_err().kind(), ErrorKind::Dangling);
}
