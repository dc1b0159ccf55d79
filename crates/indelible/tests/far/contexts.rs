use crate::graph::{Node, another, made};
use crate::support::everywhere;
use indelible::{ErrorKind, Far, Rights, SecurityContext, Space};

/// Following is never refused before an access: the entry's rights count as far as contexts allow.
#[test]
fn s2_15_pointers_are_followed_for_what_contexts_allow() {
    everywhere(|world| {
        let both = Rights::READ | Rights::WRITE;
        let (one, two) = (world.format(), another(world, "two.pmo"));
        let (mut space, ids) = made(&[&one, &two], &["a", "b"]);
        let node = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
        let pointer = space.far(&ids[0], &ids[1], node, both).unwrap();
        let mut context = SecurityContext::create(&one, "c", 5).unwrap();
        context.psync().unwrap();
        let denied = |result: indelible::Result<u64>, what: &str| {
            let error = result.expect_err("it is refused");
            let text = error.to_string();
            assert!(
                error.kind() == ErrorKind::Denied && text.contains(what) && text.contains("\"c\""),
                "{text}"
            );
        };
        let id: String = ids[1].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(context.allow("b", both).unwrap_err().kind(), ErrorKind::NotFound);
        space.set_contexts(&one, &["c"]).unwrap();
        denied(space.get(&ids[0], pointer).map(|node| node.value), "loads");
        denied(space.get_mut(&ids[0], pointer).map(|node| node.value), "stores");
        context.set_default(Rights::READ).unwrap();
        context.psync().unwrap();
        denied(space.get(&ids[0], pointer).map(|node| node.value), "loads");
        space.set_contexts(&one, &["c"]).unwrap();
        assert_eq!(space.get(&ids[0], pointer).unwrap().value, 7);
        denied(space.get_mut(&ids[0], pointer).map(|node| node.value), "stores");
        context.allow(&format!("id:{id}"), both).unwrap();
        context.psync().unwrap();
        space.set_contexts(&one, &["c"]).unwrap();
        space.get_mut(&ids[0], pointer).unwrap().value = 8;
        let reading = space.far(&ids[0], &ids[1], node, Rights::READ).unwrap();
        assert_eq!(space.get_mut(&ids[0], reading).err().unwrap().kind(), ErrorKind::ReadOnly);
        context.mask(&format!("id:{id}"), None).unwrap();
        context.psync().unwrap();
        assert_eq!(space.set_contexts(&one, &["missing"]).unwrap_err().kind(), ErrorKind::NotFound);
        space.get_mut(&ids[0], pointer).unwrap().value = 9;
        space.set_contexts(&one, &["c"]).unwrap();
        denied(space.get(&ids[0], pointer).map(|node| node.value), "loads");
        space.set_contexts::<&str>(&one, &[]).unwrap();
        assert_eq!(space.get(&ids[0], pointer).unwrap().value, 9);
    });
}

fn denied() -> (crate::support::World, indelible::Pool, [[u8; 16]; 2], Far<Node>) {
    let world =
        crate::support::World::new(crate::support::Ground::Simulated, indelible::Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a", "b"]);
    let node = space.create(&ids[1], Node::new(7, Far::null())).unwrap();
    let pointer = space.far(&ids[0], &ids[1], node, Rights::READ | Rights::WRITE).unwrap();
    space.psync_all().unwrap();
    drop(space);
    let mut context = SecurityContext::create(&pool, "c", 5).unwrap();
    context.set_default(Rights::READ).unwrap();
    context.allow("b", None).unwrap();
    context.psync().unwrap();
    (world, pool, [ids[0], ids[1]], pointer)
}

fn limited(pool: &indelible::Pool) -> Space {
    let mut space = Space::new();
    space.add(pool);
    space.attach(pool, "a").unwrap();
    space.set_contexts(pool, &["c"]).unwrap();
    space
}

#[test]
pub fn s2_15_a_denied_load_attaches_nothing() {
    let (_world, pool, ids, pointer) = denied();
    let space = limited(&pool);
    assert_eq!(space.get(&ids[0], pointer).err().unwrap().kind(), ErrorKind::Denied);
    assert_eq!(space.objects(), [ids[0]]);
    drop(pool.heap("b", 1 << 20).unwrap());
    assert_eq!(space.get(&ids[0], pointer).err().unwrap().kind(), ErrorKind::Denied);
}

#[test]
pub fn s2_15_a_denied_store_attaches_nothing() {
    let (_world, pool, ids, pointer) = denied();
    let mut space = limited(&pool);
    assert_eq!(space.get_mut(&ids[0], pointer).err().unwrap().kind(), ErrorKind::Denied);
    assert_eq!(space.objects(), [ids[0]]);
    drop(pool.heap("b", 1 << 20).unwrap());
    space.set_contexts::<&str>(&pool, &[]).unwrap();
    assert_eq!(space.get(&ids[0], pointer).unwrap().value, 7);
}
