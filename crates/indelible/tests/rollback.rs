use super::support::{World, everywhere};
use indelible::{CreateOptions, Error, ErrorKind, Pool};

const PAGE: usize = 4096;
const SIZE: usize = 300 * PAGE + 100;

fn changed(world: &World) -> Pool {
    let pool = world.format();
    let mut a = pool.create_attached("a", SIZE as u64).unwrap();
    a.as_mut_slice().fill(1);
    a.psync().unwrap();
    pool.snapshot("a", "s", b"").unwrap();
    a.range_mut(PAGE..2 * PAGE).fill(2);
    a.psync().unwrap();
    a.detach().unwrap();
    pool
}

fn changed_page() -> Vec<u8> {
    let mut bytes = vec![1; SIZE];
    bytes[PAGE..2 * PAGE].fill(2);
    bytes
}

#[track_caller]
fn holds(pool: &Pool, name: &str, expected: &[u8]) {
    let object = pool.attach_read(name).unwrap();
    assert!(object.as_slice() == expected, "{name}");
}

#[track_caller]
fn refused(result: Result<(), Error>, kind: ErrorKind, says: &[&str]) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn s2_02_a_rollback_that_cannot_be_changes_nothing() {
    everywhere(|world| {
        let pool = changed(world);
        pool.create("other", 4096).unwrap();
        pool.snapshot("other", "other's", b"").unwrap();
        pool.create_from("a", "copy", b"", &CreateOptions::new(0)).unwrap();
        let back = |to: &str| pool.rollback("a", to, b"");
        refused(
            back("missing"),
            ErrorKind::NotFound,
            &["roll back object \"a\"", "\"missing\"", "no such object"],
        );
        refused(back("copy"), ErrorKind::NotFound, &["\"copy\" is no snapshot of it", "written to"]);
        refused(back("a"), ErrorKind::NotFound, &["\"a\" is no snapshot of it"]);
        refused(back("other's"), ErrorKind::NotFound, &["other addresses"]);
        refused(pool.rollback("missing", "s", b""), ErrorKind::NotFound, &["object \"missing\""]);
        refused(pool.rollback("s", "s", b""), ErrorKind::ObjectReadOnly, &["read-only"]);
        let a = pool.attach("a").unwrap();
        refused(back("s"), ErrorKind::Held, &["held by this process as writer"]);
        drop(a);
        let a = pool.attach_read("a").unwrap();
        refused(back("s"), ErrorKind::Held, &["held by this process as reader"]);
        drop(a);
        holds(&pool, "a", &changed_page());
        let s = pool.attach_read("s").unwrap();
        back("s").unwrap();
        drop(s);
        holds(&pool, "a", &[1; SIZE]);
        holds(&pool, "copy", &changed_page());
    });
}

#[test]
fn a_rollback_needs_the_key_of_the_object_and_of_the_snapshot() {
    everywhere(|world| {
        let pool = world.format();
        let keys = CreateOptions::new(5000).read_key(b"read").write_key(b"write");
        pool.create_with("a", &keys).unwrap();
        pool.snapshot("a", "s", b"write").unwrap();
        let mut a = pool.attach_with_key("a", b"write").unwrap();
        a.as_mut_slice().fill(3);
        a.psync().unwrap();
        a.detach().unwrap();
        refused(pool.rollback("a", "s", b"read"), ErrorKind::WrongKey, &["key"]);
        refused(pool.rollback("a", "s", b""), ErrorKind::WrongKey, &["key"]);
        assert!(matches!(pool.diff("a", "s", b""), Err(error) if error.kind() == ErrorKind::WrongKey));
        pool.rollback("a", "s", b"write").unwrap();
        assert!(matches!(pool.attach("a"), Err(error) if error.kind() == ErrorKind::WrongKey));
        assert_eq!(pool.attach_read_with_key("a", b"read").unwrap().as_slice(), [0; 5000]);
    });
}

#[test]
fn s2_02_an_object_of_a_full_pool_goes_back() {
    everywhere(|world| {
        let pool = changed(world);
        pool.create("pages", 2 * PAGE as u64).unwrap();
        let fill = |prefix: &str| {
            let mut len = pool.info().unwrap().largest_free;
            for nth in 0.. {
                match pool.create_with(&format!("{prefix} {nth}"), &CreateOptions::new(len).sparse(true)) {
                    Ok(()) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NoRoom, "{error}");
                        len /= 2;
                    }
                }
                if len < PAGE as u64 {
                    break;
                }
            }
        };
        fill("filler");
        assert_eq!(pool.info().unwrap().free, 0);
        refused(pool.rollback("a", "s", b""), ErrorKind::NoRoom, &["no room: 8192 bytes"]);
        holds(&pool, "a", &changed_page());
        pool.destroy("pages").unwrap();
        pool.rollback("a", "s", b"").unwrap();
        holds(&pool, "a", &[1; SIZE]);
        let mut a = pool.attach("a").unwrap();
        a.range_mut(5 * PAGE..5 * PAGE + 8).fill(5);
        a.psync().unwrap();
        a.detach().unwrap();
        pool.resize("a", 100 * PAGE as u64, b"").unwrap();
        fill("second filler");
        let mut shrunk = vec![1; 100 * PAGE];
        shrunk[5 * PAGE..5 * PAGE + 8].fill(5);
        refused(pool.rollback("a", "s", b""), ErrorKind::NoRoom, &["no room"]);
        holds(&pool, "a", &shrunk);
        pool.destroy("filler 0").unwrap();
        pool.rollback("a", "s", b"").unwrap();
        holds(&pool, "a", &[1; SIZE]);
        drop(pool);
        holds(&world.open(), "a", &[1; SIZE]);
    });
}

#[test]
fn an_object_takes_over_what_was_tried_in_its_copy() {
    everywhere(|world| {
        let pool = world.format();
        let mut a = pool.create_attached("a", SIZE as u64).unwrap();
        a.range_mut(0..8).fill(1);
        a.psync().unwrap();
        a.detach().unwrap();
        pool.create_from("a", "trial", b"", &CreateOptions::new(0)).unwrap();
        let mut trial = pool.attach("trial").unwrap();
        trial.as_mut_slice().fill(7);
        trial.psync().unwrap();
        trial.detach().unwrap();
        pool.snapshot("trial", "tried", b"").unwrap();
        pool.destroy("trial").unwrap();
        pool.rollback("a", "tried", b"").unwrap();
        pool.destroy("tried").unwrap();
        pool.collect(&mut |_, _| {}).unwrap();
        assert!(!pool.stat("a").unwrap().shares);
        let mut a = pool.attach("a").unwrap();
        a.as_mut_slice()[200 * PAGE..].fill(8);
        drop(a);
        holds(&pool, "a", &[7; SIZE]);
        drop(pool);
        holds(&world.open(), "a", &[7; SIZE]);
    });
}

#[test]
fn s2_02_objects_are_compared_whoever_has_them() {
    everywhere(|world| {
        let pool = changed(world);
        let mut a = pool.attach("a").unwrap();
        a.range_mut(7 * PAGE..7 * PAGE + 1).fill(9);
        assert_eq!(pool.diff("s", "a", b"").unwrap().pages, vec![1..2; 1]);
        a.psync().unwrap();
        assert_eq!(pool.diff("s", "a", b"").unwrap().pages, [1..2, 7..8]);
        assert_eq!(pool.diff("a", "a", b"").unwrap().pages, []);
        let error = pool.diff("a", "missing", b"").unwrap_err();
        assert!(error.to_string().contains("cannot compare object \"missing\""), "{error}");
        a.detach().unwrap();
        pool.resize("a", 7 * PAGE as u64, b"").unwrap();
        let found = pool.diff("s", "a", b"").unwrap();
        assert_eq!((&found.pages[..], found.count()), (&[1..2, 7..301][..], 295));
        assert_eq!((found.older_size, found.newer_size), (SIZE as u64, 7 * PAGE as u64));
        drop(pool);
        if world.sim().is_some() {
            return;
        }
        let reading = world.options().read_only(true).open(world.path()).unwrap();
        assert_eq!(reading.diff("s", "a", b"").unwrap(), found);
        let kind = reading.rollback("a", "s", b"").unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ReadOnly);
    });
}
