use crate::support::{Ground, POOL, World};
use indelible::{ErrorKind, Tracking};

#[test]
fn a_handle_of_a_pool_that_was_formatted_anew_says_so_and_the_next_open_has_the_new_one() {
    for ground in [Ground::File, Ground::Memory] {
        let world = World::new(ground, Tracking::Mprotect, false);
        let idle = world.format();
        idle.create("a", 10_000).unwrap();
        drop(world.options().force(true).format(world.path(), POOL).unwrap());
        let calls: [(&str, indelible::Result<()>); 4] = [
            ("create", idle.create("b", 1)),
            ("attach", idle.attach("a").map(drop)),
            ("info", idle.info().map(drop)),
            ("list", idle.list().collect::<indelible::Result<Vec<_>>>().map(drop)),
        ];
        for (call, result) in calls {
            let error = result.expect_err(call);
            assert_eq!(error.kind(), ErrorKind::Gone, "{call}: {error}");
            let text = error.to_string();
            assert!(
                text.contains("formatted anew while in use") && text.contains("open the pool again"),
                "{text}"
            );
        }
        let new = world.open();
        assert_ne!(new.id(), idle.id());
        new.create("b", 10_000).unwrap();
        let mut object = new.attach("b").unwrap();
        object.as_mut_slice().fill(1);
        object.psync().unwrap();
        assert_eq!(idle.info().unwrap_err().kind(), ErrorKind::Gone);
        drop(object);
        assert_eq!(world.open().attach_read("b").unwrap().as_slice()[9_999], 1);
    }
}
