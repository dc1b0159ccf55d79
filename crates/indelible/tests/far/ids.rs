use crate::graph::made;
use crate::support::{Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Far, Rights, Tracking};
use sha2::{Digest, Sha256};

fn by_id(id: [u8; 16]) -> String {
    format!("id:{:032x}", u128::from_be_bytes(id))
}

#[test]
fn s2_01_the_same_content_is_one_object() {
    everywhere(|world| {
        let pool = world.format();
        let content: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        let first = pool.create_by_content("data", &content).unwrap();
        let again = pool.create_by_content("again", &content).unwrap();
        assert!(first.made && !again.made && first.id == again.id);
        assert_eq!(first.id, Sha256::digest(&content)[..16]);
        assert_eq!(pool.stat("again").unwrap_err().kind(), ErrorKind::NotFound);
        let stat = pool.stat("data").unwrap();
        assert!(stat.by_content && stat.read_only && stat.position_independent);
        assert_eq!(pool.verify_content("data", b"").unwrap(), Some(true));
        assert_eq!(pool.attach("data").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
        assert_eq!(pool.resize("data", 5, b"").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
        pool.snapshot("data", "kept", b"").unwrap();
        assert_eq!(pool.rollback("data", "kept", b"").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
        pool.create_from("data", "copy", b"", &CreateOptions::new(1)).unwrap();
        pool.copy_to("data", b"", &pool, "other", &mut |_, _| {}).unwrap();
        for name in ["kept", "copy", "other"] {
            assert!(!pool.stat(name).unwrap().by_content, "{name}");
            assert_eq!(pool.verify_content(name, b"").unwrap(), None);
        }
        assert_eq!(pool.verify_content("data", b"").unwrap(), Some(true));
        pool.rename("data", "renamed", b"").unwrap();
        assert!(!pool.create_by_content("data", &content).unwrap().made);
        assert_eq!(pool.create_by_content("renamed", b"x").unwrap_err().kind(), ErrorKind::Exists);
        assert!(pool.create_by_content("data", b"x").unwrap().made);
        assert_eq!(pool.create_by_content("none", b"").unwrap_err().kind(), ErrorKind::BadSize);
        let (mut space, ids) = made(&[&pool], &["home"]);
        let pointer = space.far(&ids[0], &first.id, Far::<u8>::own(19_999).unwrap(), Rights::READ).unwrap();
        assert_eq!(*space.get(&ids[0], pointer).unwrap(), content[19_999]);
        assert_eq!(pool.list().filter(|found| found.is_ok()).count(), 6);
    });
}

#[test]
fn a_deleted_content_is_made_again_once_it_is_gone() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    pool.set_wait(std::time::Duration::from_millis(50));
    pool.create_by_content("data", b"hello").unwrap();
    let reader = pool.attach_read("data").unwrap();
    pool.delete("data", b"").unwrap();
    assert_eq!(pool.create_by_content("data", b"hello").unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(reader.as_slice(), b"hello");
    drop(reader);
    assert!(pool.create_by_content("data", b"hello").unwrap().made);
}

#[test]
fn of_many_who_make_the_same_content_one_makes_it() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let pool = &pool;
                scope.spawn(move || pool.create_by_content(&format!("{thread}"), &[5; 300_000]).unwrap().made)
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|made| *made).count()
    });
    assert_eq!((made, pool.list().count()), (1, 1));
}

#[test]
fn s2_01_objects_are_found_by_id_whatever_they_are_called() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 4096).unwrap();
        pool.create("b", 4096).unwrap();
        let [a, b] = ["a", "b"].map(|name| by_id(pool.stat(name).unwrap().id));
        *pool.attach(&a).unwrap().root_mut::<u64>().unwrap() = 1;
        let mut object = pool.attach(&a).unwrap();
        *object.root_mut::<u64>().unwrap() = 5;
        object.psync().unwrap();
        drop(object);
        pool.rename("a", "c", b"").unwrap();
        assert_eq!(pool.stat(&a).unwrap().name, "c");
        assert_eq!(*pool.attach_read(&a).unwrap().root::<u64>().unwrap(), 5);
        for name in [&*a, "id:00000000000000000000000000000000"] {
            assert_eq!(pool.create(name, 4096).unwrap_err().kind(), ErrorKind::BadName, "{name}");
            assert_eq!(pool.rename("b", name, b"").unwrap_err().kind(), ErrorKind::BadName);
        }
        pool.create("id:7", 4096).unwrap();
        let missing = pool.attach("id:00000000000000000000000000000001").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let held = pool.attach(&b).unwrap();
        pool.delete(&b, b"").unwrap();
        assert_eq!(pool.stat(&b).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(pool.attach(&b).unwrap_err().kind(), ErrorKind::NotFound);
        drop(held);
        pool.destroy(&a).unwrap();
        assert_eq!(pool.stat("c").unwrap_err().kind(), ErrorKind::NotFound);
    });
}
