use crate::entries::by_name;
use crate::graph::{Node, another, free, made};
use crate::support::{Ground, World};
use indelible::{ErrorKind, Far, FarEntry, FarTarget, Pool, Rights, Space, Tracking};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn named(resolver: &str, name: &str) -> FarEntry {
    FarEntry {
        target: FarTarget::Name { resolver: resolver.into(), name: name.into() },
        rights: Rights::READ,
    }
}

fn object(space: &mut Space, pool: &Pool, name: &str, value: u64) -> Far<Node> {
    pool.create_with(name, &free(1 << 20)).unwrap();
    let id = space.attach(pool, name).unwrap();
    let node = space.create(&id, Node::new(value, Far::null())).unwrap();
    space.psync(&id).unwrap();
    drop(space.remove(&id));
    node
}

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

#[test]
fn s2_11_names_are_bound_when_they_are_followed_and_again_on_request() {
    let world = world();
    let (one, two) = (world.format(), another(&world, "two.pmo"));
    let (mut space, ids) = made(&[&one, &two], &["home"]);
    let node = object(&mut space, &one, "lib-1", 1);
    let name = space.far_by(&ids[0], &named("name", "lib"), node).unwrap();
    let latest = space.far_by(&ids[0], &named("latest", "lib-"), node).unwrap();
    let by_pool =
        space.far_by(&ids[0], &named("pool", &format!("{}:lib-2", two.path().display())), node).unwrap();
    let missing = space.get(&ids[0], name).err().unwrap();
    assert!(
        missing.kind() == ErrorKind::Dangling
            && missing.to_string().contains("name:lib: there is no such object"),
        "{missing}"
    );
    assert_eq!(space.get(&ids[0], latest).unwrap().value, 1);
    object(&mut Space::new(), &two, "lib-2", 2);
    object(&mut Space::new(), &one, "lib", 3);
    assert_eq!(space.get(&ids[0], by_pool).unwrap().value, 2);
    assert_eq!(space.get(&ids[0], name).unwrap().value, 3);
    assert_eq!(space.get(&ids[0], latest).unwrap().value, 1);
    space.resolve_again();
    assert_eq!(space.get(&ids[0], latest).unwrap().value, 2, "as new, and behind it by name");
    space.psync(&ids[0]).unwrap();
    let next = one.stat("lib").unwrap().id;
    drop(space.remove(&next));
    one.rename("lib", "lib-old", b"").unwrap();
    one.rename("lib-1", "lib", b"").unwrap_err();
    let first = one.stat("lib-1").unwrap().id;
    drop(space.remove(&first));
    one.rename("lib-1", "lib", b"").unwrap();
    assert_eq!(space.get(&ids[0], name).unwrap().value, 1);
}

#[test]
fn s2_11_programs_add_resolvers_and_bad_ones_are_errors() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["home"]);
    let node = object(&mut space, &pool, "data", 4);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    space.add_resolver("role", move |_: &[Pool], name: &str| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok((name == "primary").then(|| named("name", "data").target))
    });
    space.add_resolver("loop", |_: &[Pool], name: &str| Ok(Some(named("loop", name).target)));
    space.add_resolver("wrong", |pools: &[Pool], _: &str| pools[0].stat("nothing").map(|_| None));
    space.add_resolver("broken", |_: &[Pool], _: &str| Ok(Some(FarTarget::Object([9; 16]))));
    let pointer = |space: &mut Space, resolver: &str, name: &str| {
        space.far_by(&ids[0], &named(resolver, name), node).unwrap()
    };
    let role = pointer(&mut space, "role", "primary");
    for _ in 0..3 {
        assert_eq!(space.get(&ids[0], role).unwrap().value, 4);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1, "what it found is remembered");
    for (resolver, name, kind, text) in [
        ("role", "other", ErrorKind::Dangling, "role:other: there is no such object"),
        ("loop", "x", ErrorKind::Dangling, "loop:x: names lead to names more than 8 times"),
        ("wrong", "x", ErrorKind::NotFound, "nothing"),
        ("broken", "x", ErrorKind::Dangling, "is in none of the 1 pools"),
        ("unknown", "x", ErrorKind::Dangling, "the space has no resolver \"unknown\""),
        ("pool", "elsewhere:data", ErrorKind::Dangling, "there is no such object"),
    ] {
        let pointer = pointer(&mut space, resolver, name);
        let error = space.get(&ids[0], pointer).err().unwrap();
        assert!(error.kind() == kind && error.to_string().contains(text), "{resolver}: {error}");
    }
    assert_eq!(by_name("data"), named("name", "data"));
}

#[test]
pub fn s2_10_an_entry_with_a_name_gets_an_id_and_back() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["home"]);
    let node = object(&mut Space::new(), &pool, "one", 1);
    object(&mut Space::new(), &pool, "two", 2);
    let pointer = space.far_by(&ids[0], &named("name", "one"), node).unwrap();
    assert_eq!(space.get(&ids[0], pointer).unwrap().value, 1);
    let two = FarEntry { target: FarTarget::Object(pool.stat("two").unwrap().id), rights: Rights::READ };
    space.retarget(&ids[0], pointer.index(), &two).unwrap();
    assert_eq!(space.get(&ids[0], pointer).unwrap().value, 2);
    space.retarget(&ids[0], pointer.index(), &named("name", "one")).unwrap();
    assert_eq!(space.get(&ids[0], pointer).unwrap().value, 1);
    let missing = space.retarget(&ids[0], 9, &two).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Dangling);
}

#[test]
fn s2_11_a_resolver_that_changes_its_mind_is_asked_once() {
    let world = world();
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["home"]);
    let node = object(&mut Space::new(), &pool, "one", 1);
    object(&mut Space::new(), &pool, "two", 2);
    pool.create("bytes", node.offset()).unwrap();
    let answers = ["one", "two", "home", "bytes"].map(|name| pool.stat(name).unwrap().id);
    let calls = AtomicUsize::new(0);
    space.add_resolver("any", move |_: &[Pool], _: &str| {
        Ok(Some(FarTarget::Object(answers[calls.fetch_add(1, Ordering::Relaxed) % 4])))
    });
    let pointer = space.far_by(&ids[0], &named("any", "x"), node).unwrap();
    let found = |space: &Space| {
        let found: Vec<_> = (0..3).map(|_| space.get(&ids[0], pointer).map(|found| found.object())).collect();
        found.into_iter().map(|found| found.map_err(|error| error.kind())).collect::<Vec<_>>()
    };
    for answer in &answers[..3] {
        assert_eq!(found(&space), [Ok(*answer); 3]);
        space.resolve_again();
    }
    assert_eq!(found(&space), [Err(ErrorKind::Dangling); 3]);
}
