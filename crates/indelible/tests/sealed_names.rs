//! Names and IDs sealed with objects: exchanged objects of the same keys are refused (S3.5).

use super::support::{Ground, World, seal_key};
use indelible::{
    CreateOptions, Error, ErrorKind, FileAnchor, Pool, Result, SealKey, SignKey, Tracking, VerifyKey,
};
use indelible_testing::tamper::{EXCHANGES, of_earlier_release, say_identity};
use std::path::Path;

const SIZE: u64 = 66 * 4096 - 100;

fn sign_key() -> SignKey {
    SignKey::file(vec![0x3c; 32]).unwrap()
}

fn verify_key() -> VerifyKey {
    sign_key().verify_key()
}

#[derive(Clone)]
struct Keys {
    reading: SealKey,
    writing: SealKey,
}

type KeysOf<'f> = Box<dyn Fn(&str) -> Keys + 'f>;

fn ways(folder: &Path) -> Vec<(&'static str, KeysOf<'_>)> {
    let anchor = move |name: &str| FileAnchor::new(folder.join(name));
    let plain = || Keys { reading: seal_key(), writing: seal_key() };
    let signed = || Keys {
        reading: seal_key().verified_by(verify_key()),
        writing: seal_key().signed_by(&sign_key()).unwrap(),
    };
    let anchored = move |keys: Keys, name: &str| Keys {
        reading: keys.reading.anchored(anchor(name)),
        writing: keys.writing.anchored(anchor(name)),
    };
    vec![
        ("plain", Box::new(move |_| plain())),
        ("signed", Box::new(move |_| signed())),
        ("anchored", Box::new(move |name| anchored(plain(), &format!("plain {name}")))),
        ("signed and anchored", Box::new(move |name| anchored(signed(), &format!("signed {name}")))),
    ]
}

fn made(pool: &Pool, name: &str, keys: &Keys, value: u8) {
    let how = CreateOptions::new(SIZE).sealed(&keys.writing, "test");
    let mut object = pool.create_attached_with(name, &how).unwrap();
    object.as_mut_slice().fill(value);
    object.psync().unwrap();
    object.detach().unwrap();
}

fn looks(pool: &Pool, name: &str, keys: &Keys) -> [Result<u8>; 4] {
    [
        pool.attach_read_sealed(name, b"", &keys.reading).map(|object| object.as_slice()[0]),
        pool.attach_snapshot_sealed_anywhere(name, b"", &keys.reading).map(|object| object.as_slice()[0]),
        pool.verify_sealed(name, b"", &keys.reading, &mut |_, _| {}).map(|broken| broken.len() as u8),
        pool.attach_sealed(name, b"", &keys.writing).map(|object| object.as_slice()[0]),
    ]
}

#[track_caller]
fn holds(pool: &Pool, name: &str, keys: &Keys, value: u8) {
    let found = looks(pool, name, keys).map(|found| found.unwrap());
    assert_eq!(found, [value, value, 0, value], "{name}");
    assert_eq!(pool.is_sealed_as_named(name, b"", &keys.reading).unwrap(), Some(true), "{name}");
}

#[track_caller]
fn is_refused(pool: &Pool, name: &str, keys: &Keys, what: &str) {
    for error in looks(pool, name, keys).map(|found| found.err()) {
        let error: Error = error.unwrap_or_else(|| panic!("{what}: {name} is used"));
        let text = error.to_string();
        assert!(
            error.kind() == ErrorKind::Sealed && text.contains("was sealed under another name"),
            "{what}: {text}"
        );
        assert!(text.contains(&format!("{name:?}")), "{what}: {text}");
    }
    let refused = pool.bind_name(name, b"", &keys.writing).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Sealed, "{what}: {refused}");
    assert_eq!(pool.is_sealed_as_named(name, b"", &keys.reading).unwrap(), Some(false), "{what}");
}

fn world() -> World {
    World::new(Ground::File, Tracking::Auto, false)
}

#[test]
fn objects_of_one_key_that_were_exchanged_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (way, keys) in ways(folder.path()) {
        let world = world();
        let pool = world.format();
        made(&pool, "prod", &keys("prod"), 1);
        made(&pool, "test", &keys("test"), 2);
        let [prod, test] = ["prod", "test"].map(|name| pool.store().find(name).unwrap());
        drop(pool);
        let sound = world.raw();
        let judge = |bytes: &[u8], what: &str| {
            std::fs::write(world.path(), bytes).unwrap();
            for name in ["prod", "test"] {
                is_refused(&world.open(), name, &keys(name), &format!("{way}, {what}"));
            }
        };
        for (what, exchange) in EXCHANGES {
            let mut bytes = sound.clone();
            exchange(&mut bytes, &prod, &test);
            judge(&bytes, what);
        }
        let said = |is: bool| {
            let mut bytes = world.raw();
            [prod, test].iter().for_each(|object| say_identity(&mut bytes, object, is));
            bytes
        };
        std::fs::write(world.path(), &sound).unwrap();
        std::fs::write(world.path(), said(false)).unwrap();
        let pool = world.open();
        for (name, new) in [("prod", "x"), ("test", "prod"), ("x", "test")] {
            pool.rename(name, new, b"").unwrap();
        }
        drop(pool);
        judge(&said(true), "names");
        std::fs::write(world.path(), &sound).unwrap();
        holds(&world.open(), "prod", &keys("prod"), 1);
    }
}

#[test]
fn the_name_of_a_sealed_object_changes_with_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    for (way, keys) in ways(folder.path()) {
        let world = world();
        let pool = world.format();
        made(&pool, "prod", &keys("prod"), 1);
        made(&pool, "test", &keys("test"), 2);
        let refused = pool.rename("prod", "x", b"").unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Sealed && refused.to_string().contains("--seal-key-file"),
            "{way}: {refused}"
        );
        let wrong = SealKey::file(vec![1; 32]).unwrap();
        assert_eq!(pool.rename_sealed("prod", "x", b"", &wrong).unwrap_err().kind(), ErrorKind::WrongKey);
        if way.contains("signed") {
            let refused = pool.rename_sealed("prod", "x", b"", &keys("prod").reading).unwrap_err();
            assert!(refused.to_string().contains("its sign key"), "{way}: {refused}");
        }
        let writing = keys("prod").writing;
        let exists = pool.rename_sealed("prod", "test", b"", &writing).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::Exists, "{way}");
        let named = pool.rename_sealed("prod", "id:0", b"", &writing).map_err(|error| error.kind());
        if named.is_ok() {
            pool.rename_sealed("id:0", "prod", b"", &writing).unwrap();
        }
        holds(&pool, "prod", &keys("prod"), 1);
        let attached = pool.attach_sealed("prod", b"", &writing).unwrap();
        assert_eq!(pool.rename_sealed("prod", "x", b"", &writing).unwrap_err().kind(), ErrorKind::Held);
        attached.detach().unwrap();
        pool.rename_sealed("prod", "x", b"", &writing).unwrap();
        holds(&pool, "x", &keys("prod"), 1);
        holds(&pool, "test", &keys("test"), 2);
        assert!(pool.stat("prod").is_err());
        pool.reencrypt("x", b"", &[&writing], |_, _| {}).unwrap();
        pool.resize_sealed("x", SIZE + 5 * 4096, b"", &writing).unwrap();
        holds(&pool, "x", &keys("prod"), 1);
    }
    let world = world();
    let pool = world.format();
    let how = CreateOptions::new(4096).sealed(&seal_key().sealed_as("b"), "test");
    let refused = pool.create_with("a", &how).unwrap_err();
    assert!(refused.to_string().contains("sealed under its own name"), "{refused}");
    pool.create("plain", 4096).unwrap();
    let refused = pool.rename_sealed("plain", "x", b"", &seal_key()).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Sealed && refused.to_string().contains("it is not sealed"),
        "{refused}"
    );
}

#[test]
fn copies_and_snapshots_say_what_they_are_copies_of() {
    let folder = tempfile::tempdir().unwrap();
    for (way, keys) in ways(folder.path()).into_iter().take(2) {
        let world = world();
        let pool = world.format();
        let other = world.options().format(world.dir().join("other.pmo"), 64 << 20).unwrap();
        let own = keys("a");
        made(&pool, "a", &own, 1);
        pool.snapshot("a", "s", b"").unwrap();
        pool.create_from("a", "copy", b"", &CreateOptions::new(0)).unwrap();
        pool.copy_to("a", b"", &other, "copy", &mut |_, _| {}).unwrap();
        pool.copy_to("a", b"", &other, "a", &mut |_, _| {}).unwrap();
        let named = |name: &str| Keys {
            reading: own.reading.clone().sealed_as(name),
            writing: own.writing.clone().sealed_as(name),
        };
        for (pool, name) in [(&pool, "copy"), (&other, "copy"), (&other, "a")] {
            is_refused(pool, name, &own, way);
            let other_name = named("b");
            let refused = looks(pool, name, &other_name).map(|found| found.unwrap_err().kind());
            assert_eq!(refused, [ErrorKind::Sealed; 4], "{way}: {name}");
            let found = looks(pool, name, &named("a")).map(|found| found.unwrap());
            assert_eq!(found, [1, 1, 0, 1], "{way}: {name}");
            pool.bind_name(name, b"", &named("a").writing).unwrap();
            holds(pool, name, &own, 1);
        }
        assert_eq!(pool.attach_read_sealed("s", b"", &own.reading).err().unwrap().kind(), ErrorKind::Sealed);
        let snapshot = pool.attach_read_sealed("s", b"", &named("a").reading).unwrap();
        assert_eq!(snapshot.as_slice()[0], 1);
        drop(snapshot);
        pool.rename("s", "t", b"").unwrap();
        assert_eq!(pool.attach_read_sealed("t", b"", &named("a").reading).unwrap().as_slice()[0], 1);
        pool.rollback("a", "t", b"").unwrap();
        holds(&pool, "a", &own, 1);
        pool.move_to(
            "copy",
            b"",
            &Pool::format(world.dir().join("third.pmo"), 32 << 20).unwrap(),
            &mut |_, _| {},
        )
        .unwrap();
        holds(&Pool::open(world.dir().join("third.pmo")).unwrap(), "copy", &own, 1);
    }
}

#[test]
fn objects_of_earlier_releases_open_and_are_bound_to_their_names() {
    let world = world();
    let pool = world.format();
    let keys = Keys { reading: seal_key(), writing: seal_key() };
    made(&pool, "a", &keys, 1);
    let object = pool.store().find("a").unwrap();
    drop(pool);
    let mut bytes = world.raw();
    of_earlier_release(&mut bytes, &object);
    std::fs::write(world.path(), bytes).unwrap();
    let pool = world.open();
    assert_eq!(looks(&pool, "a", &keys).map(|found| found.unwrap()), [1, 1, 0, 1]);
    assert_eq!(pool.is_sealed_as_named("a", b"", &seal_key()).unwrap(), None);
    let named = Keys { reading: seal_key().sealed_as("a"), writing: seal_key().sealed_as("a") };
    for error in looks(&pool, "a", &named).map(|found| found.unwrap_err()) {
        assert!(
            error.kind() == ErrorKind::Sealed && error.to_string().contains("earlier release"),
            "{error}"
        );
    }
    let mut a = pool.attach_sealed("a", b"", &seal_key()).unwrap();
    a.as_mut_slice().fill(2);
    a.psync().unwrap();
    a.detach().unwrap();
    pool.rename("a", "b", b"").unwrap();
    pool.bind_name("b", b"", &seal_key()).unwrap();
    holds(&pool, "b", &keys, 2);
    assert_eq!(pool.rename("b", "a", b"").unwrap_err().kind(), ErrorKind::Sealed);
    pool.rename_sealed("b", "a", b"", &seal_key()).unwrap();
    holds(&pool, "a", &keys, 2);
}

#[test]
fn an_anchor_that_is_given_is_satisfied_where_pages_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let anchored = |name: &str| seal_key().anchored(FileAnchor::new(folder.path().join(name)));
    let world = world();
    let pool = world.format();
    for name in ["a", "b"] {
        let keys = Keys { reading: anchored(name), writing: anchored(name) };
        made(&pool, name, &keys, 1);
    }
    let older = world.raw();
    let mut a = pool.attach_sealed("a", b"", &anchored("a")).unwrap();
    a.as_mut_slice().fill(2);
    a.psync().unwrap();
    let verify = |pool: &Pool, key: &SealKey| pool.verify_sealed("a", b"", key, &mut |_, _| {});
    assert_eq!(verify(&pool, &anchored("a")).unwrap(), []);
    a.detach().unwrap();
    assert_eq!(verify(&pool, &anchored("a")).unwrap(), []);
    let of_another = verify(&pool, &anchored("b")).unwrap_err();
    assert!(of_another.to_string().contains("the record of another object"), "{of_another}");
    assert!(verify(&pool, &anchored("none")).is_err());
    drop(pool);
    std::fs::write(world.path(), &older).unwrap();
    let pool = world.open();
    let behind = verify(&pool, &anchored("a")).unwrap_err();
    assert_eq!(behind.kind(), ErrorKind::PoolBehind, "{behind}");
    assert_eq!(verify(&pool, &seal_key()).unwrap(), []);
}
