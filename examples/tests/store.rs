//! The store of keys and values (S2.24), in objects and plain files, against std's map; and the
//! program `kv`.

mod common;

use common::{command, fail, succeed};
use indelible::{ErrorKind, Pool};
use indelible_examples::kv::{FarStore, FileStore, Order};
use indelible_testing::Seeded;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const BOTH: [Order; 2] = [Order::Keys, Order::Values];

fn text(seeded: &mut Seeded, alike: u64) -> Vec<u8> {
    let number = seeded.u64(0..alike);
    let len = match number % 7 {
        0 => 0,
        1 => 5000 + number as usize,
        _ => number as usize % 60,
    };
    let mut text = number.to_string().into_bytes();
    text.resize(len.max(if number == 0 { 0 } else { text.len() }), b'x');
    text
}

fn all(store: &FarStore, order: Order, from: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let texts = store.scan(order, from).unwrap().map(Result::unwrap);
    texts.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn compare(store: &FarStore, model: &Model, from: &[u8]) {
    assert_eq!(store.len().unwrap(), model.len() as u64);
    for (key, value) in model {
        assert_eq!(store.get(key).unwrap(), Some(value.as_slice()));
    }
    let by_key: Vec<_> =
        model.range(from.to_vec()..).map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(all(store, Order::Keys, from), by_key);
    let mut by_value: Vec<_> = model.iter().map(|(key, value)| (value.clone(), key.clone())).collect();
    by_value.sort();
    by_value.retain(|(value, _)| value.as_slice() >= from);
    let found = all(store, Order::Values, from).into_iter().map(|(key, value)| (value, key));
    assert_eq!(found.collect::<Vec<_>>(), by_value);
}

fn pools(folder: &Path) -> [Pool; 2] {
    ["public", "private"].map(|name| Pool::open_or_format(folder.join(name), 64 << 20).unwrap())
}

#[test]
fn s2_24_a_store_with_data_in_three_objects_of_two_pools_is_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let (mut seeded, mut model) = (Seeded::new(24), Model::new());
    let pools = pools(folder.path());
    for _ in 0..4 {
        let mut store = FarStore::open(&pools[0], "kv", &BOTH).unwrap();
        let data = [(0, "data"), (0, "more"), (1, "data")];
        let data = data.map(|(pool, name)| store.data(&pools[pool], name).unwrap());
        compare(&store, &model, b"");
        for step in 0..300 {
            let key = text(&mut seeded, 90);
            if seeded.u64(0..3) == 0 {
                assert_eq!(store.remove(&key).unwrap(), model.remove(&key).is_some());
            } else {
                let value = text(&mut seeded, 40);
                let into = &data[seeded.u64(0..3) as usize];
                let is_new = store.insert(into, &key, &value).unwrap();
                assert_eq!(is_new, model.insert(key, value).is_none());
            }
            if step % 100 == 99 {
                compare(&store, &model, &text(&mut seeded, 40));
                store.psync().unwrap();
            }
        }
        store.insert(&data[0], b"never", b"seen").unwrap();
        store.remove(model.keys().next().unwrap()).unwrap();
    }
    compare(&FarStore::read(&pools, "kv").unwrap(), &model, b"");
}

#[test]
fn s2_24_the_same_on_plain_files() {
    let folder = tempfile::tempdir().unwrap();
    let (mut seeded, mut model) = (Seeded::new(241), Model::new());
    for _ in 0..4 {
        let mut store = FileStore::open(&folder.path().join("index")).unwrap();
        let data = ["one", "two"].map(|name| store.data(&folder.path().join(name)).unwrap());
        for _ in 0..500 {
            let key = text(&mut seeded, 90);
            if seeded.u64(0..3) == 0 {
                assert_eq!(store.remove(&key).unwrap(), model.remove(&key).is_some());
            } else {
                let value = text(&mut seeded, 40);
                let is_new = store.insert(data[seeded.u64(0..2) as usize], &key, &value).unwrap();
                assert_eq!(is_new, model.insert(key, value).is_none());
            }
        }
        assert_eq!(store.len().unwrap(), model.len() as u64);
        for (key, value) in &model {
            assert_eq!(store.get(key).unwrap(), Some(value.as_slice()));
        }
        store.sync().unwrap();
    }
}

/// A user without access to a data object finds all other data, and an error where the index leads
/// there (S2.15).
#[test]
fn s2_24_data_of_a_pool_that_is_not_open_is_an_error_when_it_is_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let pools = pools(folder.path());
    let mut store = FarStore::open(&pools[0], "kv", &[Order::Keys]).unwrap();
    let data = [0, 1].map(|pool: usize| store.data(&pools[pool], "data").unwrap());
    store.insert(&data[0], b"a", b"for all").unwrap();
    store.insert(&data[1], b"b", b"for some").unwrap();
    store.psync().unwrap();
    drop(store);
    let read = |pools: &[Pool], key: &[u8]| {
        let store = FarStore::read(pools, "kv").unwrap();
        store.get(key).map(|value| value.map(<[u8]>::to_vec))
    };
    assert_eq!(read(&pools, b"b").unwrap().unwrap(), b"for some");
    assert_eq!(read(&pools[..1], b"a").unwrap().unwrap(), b"for all");
    assert_eq!(read(&pools[..1], b"c").unwrap(), None);
    let found = |pools: &[Pool]| all(&FarStore::read(pools, "kv").unwrap(), Order::Keys, b"").len();
    assert_eq!((found(&pools), found(&pools[..1])), (2, 1), "no user learns of data that it may not read");
    let error = read(&pools[..1], b"b").unwrap_err();
    let error = error.downcast_ref::<indelible::Error>().expect("an error of the library");
    assert_eq!(error.kind(), ErrorKind::Dangling, "{error}");
    let mut store = FarStore::open(&pools[0], "kv", &[Order::Keys]).unwrap();
    let own = store.data(&pools[0], "data").unwrap();
    assert!(store.remove(b"b").is_err());
    assert!(store.insert(&own, b"b", b"").is_err(), "it would lead to what may not be freed");
    assert!(store.insert(&[7; 16], b"d", b"").is_err(), "no such object");
    assert!(FarStore::open(&pools[1], "other", &BOTH).is_ok());
    assert!(store.remove(b"a").unwrap());
    assert_eq!(store.len().unwrap(), 1);
}

fn kv(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_kv"), arguments);
    command.current_dir(folder);
    command
}

#[test]
fn the_program_is_used_by_two_who_may_read_different_things() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeed(kv(folder.path(), arguments));
    for (key, value) in [("bread", "3"), ("milk", "2"), ("apples", "3")] {
        run(&["put", key, value]);
    }
    run(&["put", "wages", "9000", "--private", "boss.pmo"]);
    assert_eq!(run(&["get", "milk"]), "2\n");
    assert_eq!(run(&["find", "3"]), "apples\nbread\n");
    assert_eq!(run(&["scan", "b", "--limit", "2"]), "bread 3\nmilk 2\n");
    assert_eq!(run(&["get", "wages", "--private", "boss.pmo"]), "9000\n");
    let (_, refused) = fail(kv(folder.path(), &["get", "wages"]));
    assert!(refused.contains("in none of the"), "{refused}");
    run(&["put", "milk", "4"]);
    run(&["del", "bread"]);
    assert_eq!(run(&["scan", "--private", "boss.pmo"]), "apples 3\nmilk 4\nwages 9000\n");
    assert!(fail(kv(folder.path(), &["get", "bread"])).1.contains("no key"));
}
