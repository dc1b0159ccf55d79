//! Pointers in security contexts.

use crate::graph::{Node, another, made};
use crate::support::everywhere;
use indelible::{ErrorKind, Far, Rights, SecurityContext};

/// Following is never refused for rights before there is an access: the entry's request counts as far as the contexts allow it.
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
        // Contexts are of one pool, and know objects of any by their IDs.
        let id: String = ids[1].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(context.allow("b", both).unwrap_err().kind(), ErrorKind::NotFound);
        space.set_contexts(&one, &["c"]).unwrap();
        denied(space.get(&ids[0], pointer).map(|node| node.value), "loads");
        denied(space.get_mut(&ids[0], pointer).map(|node| node.value), "stores");
        context.set_default(Rights::READ).unwrap();
        context.psync().unwrap();
        denied(space.get(&ids[0], pointer).map(|node| node.value), "loads");
        // Read anew.
        space.set_contexts(&one, &["c"]).unwrap();
        assert_eq!(space.get(&ids[0], pointer).unwrap().value, 7);
        denied(space.get_mut(&ids[0], pointer).map(|node| node.value), "stores");
        context.allow(&format!("id:{id}"), both).unwrap();
        context.psync().unwrap();
        space.set_contexts(&one, &["c"]).unwrap();
        space.get_mut(&ids[0], pointer).unwrap().value = 8;
        // An entry that asks for less is an error of its own.
        let reading = space.far(&ids[0], &ids[1], node, Rights::READ).unwrap();
        assert_eq!(space.get_mut(&ids[0], reading).err().unwrap().kind(), ErrorKind::ReadOnly);
        // Contexts that are none change nothing; without contexts nothing is limited.
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
