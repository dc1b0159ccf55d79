//! Objects by ID, whatever they are called.

use crate::support::everywhere;
use indelible::ErrorKind;

fn by_id(id: [u8; 16]) -> String {
    format!("id:{:032x}", u128::from_be_bytes(id))
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
        // Nobody has such a name.
        for name in [&*a, "id:00000000000000000000000000000000"] {
            assert_eq!(pool.create(name, 4096).unwrap_err().kind(), ErrorKind::BadName, "{name}");
            assert_eq!(pool.rename("b", name, b"").unwrap_err().kind(), ErrorKind::BadName);
        }
        pool.create("id:7", 4096).unwrap();
        let missing = pool.attach("id:00000000000000000000000000000001").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        // One that was deleted while somebody has it is found by nobody else.
        let held = pool.attach(&b).unwrap();
        pool.delete(&b, b"").unwrap();
        assert_eq!(pool.stat(&b).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(pool.attach(&b).unwrap_err().kind(), ErrorKind::NotFound);
        drop(held);
        pool.destroy(&a).unwrap();
        assert_eq!(pool.stat("c").unwrap_err().kind(), ErrorKind::NotFound);
    });
}
