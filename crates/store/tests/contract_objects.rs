//! The contract of objects: names, keys, space, addresses, sizes (S0.3–S0.5, S0.7–S0.10, S0.22).

use indelible_store::error::StoreError;
use indelible_store::format::entry::{NAME_MAX, SIZE};
use indelible_store::store::{FormatOptions, Store, Window};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{check_tiling, contents, objects, process, psync, psync_many, snapshot};
use indelible_testing::scenario::{formatted, media};
use indelible_testing::{SimConfig, SimMedium};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn open(medium: &SimMedium) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(1)).unwrap()
}

fn pool(len: u64) -> (SimMedium, Arc<Store>) {
    let medium = formatted(len, SimConfig::default());
    let store = open(&medium);
    (medium, store)
}

fn fill(store: &Arc<Store>, name: &str, byte: u8) {
    let mut writer = store.attach_writer(name, KEY).unwrap();
    let size = writer.object().entry.size.get() as usize;
    psync(&mut writer, &[(0, &vec![byte; size])]).unwrap();
    writer.detach().unwrap();
}

// S0.3 S0.4
#[test]
fn objects_are_counted_and_entries_are_whole_cache_lines() {
    assert_eq!(SIZE % 64, 0);
    let (medium, store) = pool(4 << 20);
    for n in 0..100 {
        assert_eq!(store.info().unwrap().objects, n);
        store.create(&format!("object {n}"), &of(1 + n)).unwrap();
    }
    store.destroy("object 5", KEY).unwrap();
    assert_eq!(open(&medium).info().unwrap().objects, 99);
}

#[test]
fn objects_of_different_pools_are_no_one_step() {
    let ((_, one), (_, other)) = (pool(4 << 20), pool(4 << 20));
    let [mut a, mut b] = [&one, &other].map(|store| {
        store.create("a", &of(4096)).unwrap();
        store.attach_writer("a", KEY).unwrap()
    });
    let both = psync_many(&mut [(&mut a, &[(0, &[1])]), (&mut b, &[(0, &[1])])]);
    assert!(matches!(both, Err(StoreError::DifferentPools)), "{both:?}");
    for (store, writer) in [(one, &mut a), (other, &mut b)] {
        assert_eq!(contents(&store, writer.object()).unwrap()[0], 0);
        psync(writer, &[(0, &[2])]).unwrap();
    }
}

#[test]
fn labels_have_a_limit_of_their_own() {
    let format = |label: String| {
        let medium = SimMedium::new(4 << 20, SimConfig::default());
        let how = FormatOptions { label, ..FormatOptions::default() };
        Store::format(Arc::new(medium.handle()), process(1), &how).map(|store| store.superblock().label())
    };
    assert_eq!(format("l".repeat(128)).unwrap(), "l".repeat(128));
    assert!(matches!(format("l".repeat(129)), Err(StoreError::BadLabel { len: 129 })));
}

#[test]
fn names_of_every_length_and_script() {
    let (medium, store) = pool(4 << 20);
    let mut names: Vec<String> = (1..=NAME_MAX).step_by(19).map(|len| "n".repeat(len)).collect();
    names.extend([
        "n".repeat(NAME_MAX),
        "\u{20ac}".repeat(170),
        "/etc/../a b".into(),
        "\u{1f980} кот".into(),
        ".".into(),
    ]);
    for name in &names {
        store.create(name, &of(10)).unwrap();
        assert!(matches!(store.create(name, &of(10)), Err(StoreError::Exists)));
    }
    for bad in
        ["", " a", "a ", "a\nb", "\u{1}hidden", "a\0", &"n".repeat(NAME_MAX + 1), &"\u{20ac}".repeat(171)]
    {
        assert!(matches!(store.create(bad, &of(10)), Err(StoreError::BadName { .. })), "{bad:?}");
        assert!(matches!(store.rename(".", bad, KEY), Err(StoreError::BadName { .. })), "{bad:?}");
    }
    let store = open(&medium);
    for name in &names {
        let found = store.find(name).unwrap();
        assert_eq!(&found.entry.name(), name);
        assert_eq!(store.find_id(&found.entry.id).unwrap().offset, found.offset);
    }
    assert!(matches!(store.find("missing"), Err(StoreError::NotFound)));
    assert!(matches!(store.find_id(&[3; 16]), Err(StoreError::NotFound)));
    check_tiling(&store).unwrap();
}

#[test]
fn hidden_objects_have_one_hash() {
    use indelible_store::format::root::TreeId;
    use indelible_store::space::TableTransaction;
    let (_medium, store) = pool(4 << 20);
    let (seed, len) = (store.superblock().seed.get(), store.superblock().length.get());
    let device: &dyn indelible_store::medium::Medium = &**store.device();
    let mut table = TableTransaction::begin(device, seed, len).unwrap();
    let all: Vec<_> = (0..300_u32)
        .map(|n| {
            let mut id = [7; 16];
            id[..4].copy_from_slice(&n.to_le_bytes());
            table.create_hidden("resize", id, 0, &of(1)).unwrap()
        })
        .collect();
    let seen = table.create("resize", [9; 16], 0, &of(1)).unwrap();
    for object in all.iter().step_by(2) {
        table.destroy(object).unwrap();
        assert!(table.find_id(&object.entry.id).unwrap().is_none());
    }
    for object in all.iter().skip(1).step_by(2) {
        assert_eq!(table.find_id(&object.entry.id).unwrap().unwrap().offset, object.offset);
    }
    assert_eq!(table.find("resize").unwrap().unwrap().offset, seen.offset);
    assert_eq!(table.root.trees[TreeId::Names as usize].count.get(), 151);
    let left: Vec<u64> = all.iter().skip(1).step_by(2).map(|object| object.offset).collect();
    let mut hidden: Vec<u64> = table.hidden().unwrap().iter().map(|object| object.offset).collect();
    hidden.sort_unstable();
    assert_eq!(hidden, left);
}

// S0.9 S0.10
#[test]
fn keys_open_what_they_are_for() {
    let (_medium, store) = pool(1 << 20);
    let (read, write, wrong) = (Key(b"read"), Key(b"write"), Key(b"wrong"));
    store.create("both", &CreateOptions { read_key: read, write_key: write, ..of(10) }).unwrap();
    store.create("written", &CreateOptions { write_key: write, ..of(10) }).unwrap();
    for key in [KEY, wrong] {
        assert!(matches!(store.attach_reader("both", key), Err(StoreError::WrongKey)));
        assert!(matches!(store.attach_writer("both", key), Err(StoreError::WrongKey)));
        assert!(matches!(store.destroy("both", key), Err(StoreError::WrongKey)));
        assert!(matches!(store.rename("both", "x", key), Err(StoreError::WrongKey)));
        assert!(matches!(store.resize("both", key, 5), Err(StoreError::WrongKey)));
        assert!(matches!(store.attach_writer("written", key), Err(StoreError::WrongKey)));
        store.attach_reader("written", key).unwrap().detach().unwrap();
    }
    assert!(matches!(store.attach_writer("both", read), Err(StoreError::WrongKey)));
    assert!(matches!(store.destroy("both", read), Err(StoreError::WrongKey)));
    store.attach_reader("both", read).unwrap().detach().unwrap();
    store.attach_reader("both", write).unwrap().detach().unwrap();
    store.attach_writer("both", write).unwrap().detach().unwrap();
    assert!(matches!(store.attach_writer("absent", KEY), Err(StoreError::NotFound)));
    assert!(matches!(store.attach_reader("absent", KEY), Err(StoreError::NotFound)));
    store.destroy("both", write).unwrap();
}

// S0.10
#[test]
fn read_only_objects_refuse_writers() {
    let (_medium, store) = pool(1 << 20);
    store.create("r", &CreateOptions { read_only: true, ..of(10) }).unwrap();
    assert!(matches!(store.attach_writer("r", KEY), Err(StoreError::ObjectReadOnly)));
    store.attach_reader("r", KEY).unwrap().detach().unwrap();
}

// S0.8 S0.9
#[test]
fn a_full_pool_says_so_and_can_be_emptied() {
    for size in [1, 9000, 100_000] {
        let (_medium, store) = pool(2 << 20);
        let empty = store.info().unwrap();
        let mut count = 0;
        let error = loop {
            match store.create(&format!("{count}"), &of(size)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
        check_tiling(&store).unwrap();
        assert_eq!(store.info().unwrap().objects, count);
        // Every other one first: the most fragmented free space.
        for n in (0..count).step_by(2).chain((1..count).step_by(2)) {
            store.destroy(&format!("{n}"), KEY).unwrap_or_else(|e| panic!("{size}: {n} of {count}: {e}"));
        }
        check_tiling(&store).unwrap();
        let info = store.info().unwrap();
        assert_eq!(info.objects, 0);
        assert!(info.largest > empty.largest / 2, "{} of {}", info.largest, empty.largest);
        store.create("again", &of(size)).unwrap();
    }
    let (_medium, store) = pool(1 << 20);
    assert!(matches!(store.create("a", &of(0)), Err(StoreError::BadSize { .. })));
    assert!(matches!(store.create("a", &of(1 << 40)), Err(StoreError::NoRoom { .. })));
    assert!(matches!(store.create("a", &of(u64::MAX)), Err(StoreError::BadSize { .. })));
}

// S0.9
#[test]
fn destroyed_space_is_reused_and_reads_as_zeros() {
    let (_medium, store) = pool(2 << 20);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..30 {
        for name in ["a", "b", "c"] {
            let object = store.create(name, &of(50_000)).unwrap();
            assert!(contents(&store, &object).unwrap().iter().all(|byte| *byte == 0));
            seen.insert(object.entry.primary.get());
            fill(&store, name, round + 1);
        }
        for name in if round % 2 == 0 { ["b", "a", "c"] } else { ["a", "c", "b"] } {
            store.destroy(name, KEY).unwrap();
        }
    }
    assert!(seen.len() <= 8, "{seen:?}");
    check_tiling(&store).unwrap();
}

// S0.22, S0.14 in the store
#[test]
fn addresses_are_unique_and_fixed() {
    let (medium, store) = pool(4 << 20);
    for n in 0..200 {
        store.create(&format!("{n}"), &of(1 + n * 50)).unwrap();
    }
    let before = snapshot(&store).unwrap();
    store.resize("0", KEY, 100_000).unwrap();
    store.attach_writer("1", KEY).unwrap().grow(200_000).unwrap();
    store.rename("2", "two", KEY).unwrap();
    let after = snapshot(&open(&medium)).unwrap();
    assert_eq!((before["0"].0, before["0"].1), (after["0"].0, after["0"].1));
    assert_eq!((before["1"].0, before["1"].1), (after["1"].0, after["1"].1));
    assert_eq!((before["2"].0, before["2"].1), (after["two"].0, after["two"].1));
    assert!(before["5"].1 >= 0x5900_0000_0000);
    check_tiling(&store).unwrap();
}

// S0.7
#[test]
fn resize_in_place_by_copy_while_attached_and_down() {
    let (_medium, store) = pool(4 << 20);
    for name in ["a", "b"] {
        store.create(name, &of(10_000)).unwrap();
        fill(&store, name, 7);
    }
    let place = |name: &str| store.find(name).unwrap().entry.primary.get();
    let is = |name: &str, kept: usize, size: usize| {
        let bytes = contents(&store, &store.find(name).unwrap()).unwrap();
        assert_eq!(bytes.len(), size);
        assert!(
            bytes[..kept].iter().all(|byte| *byte == 7) && bytes[kept..].iter().all(|byte| *byte == 0),
            "{name}"
        );
    };
    let before = (place("a"), place("b"));
    store.resize("a", KEY, 50_000).unwrap();
    assert_ne!(place("a"), before.0);
    is("a", 10_000, 50_000);
    store.resize("a", KEY, 5000).unwrap();
    is("a", 5000, 5000);
    store.resize("a", KEY, 20_000).unwrap();
    is("a", 5000, 20_000);
    let mut b = store.attach_writer("b", KEY).unwrap();
    assert!(matches!(store.resize("b", KEY, 9), Err(StoreError::Held { .. })));
    assert!(matches!(b.grow(5), Err(StoreError::BadSize { .. })));
    for size in [10_200, 30_000, 200_000, 900_000] {
        b.grow(size).unwrap();
        is("b", 10_000, size as usize);
        psync(&mut b, &[(size - 100, &[9; 100])]).unwrap();
        psync(&mut b, &[(size - 100, &[0; 100])]).unwrap();
    }
    assert!(matches!(b.grow(1 << 30), Err(StoreError::NoRoom { .. })));
    is("b", 10_000, 900_000);
    psync(&mut b, &[(10_000, &[7])]).unwrap();
    b.detach().unwrap();
    is("b", 10_001, 900_000);
    assert!(matches!(store.resize("a", KEY, 0), Err(StoreError::BadSize { .. })));
    check_tiling(&store).unwrap();
}

#[test]
fn ten_thousand_objects() {
    let medium = formatted(64 << 20, media()[1]);
    let store = open(&medium);
    for n in 0..10_000 {
        store.create(&format!("object number {n}"), &of(100)).unwrap();
        if n % 1000 == 0 {
            medium.settle();
        }
    }
    assert_eq!(objects(&store).unwrap().len(), 10_000);
    let store = open(&medium);
    for n in (0..10_000).step_by(37) {
        assert_eq!(store.find(&format!("object number {n}")).unwrap().entry.size.get(), 100);
    }
    for n in (0..10_000).step_by(2) {
        store.destroy(&format!("object number {n}"), KEY).unwrap();
        if n % 1000 == 0 {
            medium.settle();
        }
    }
    check_tiling(&store).unwrap();
    assert_eq!(store.info().unwrap().objects, 5000);
}

/// S0.7
#[test]
fn addresses_for_all_of_the_pool_are_kept_while_there_are_plenty() {
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let window = Window { start: 0x4000_0000_0000, len: 1 << 30 };
    let how = FormatOptions { window: Some(window), ..FormatOptions::default() };
    let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
    let len = store.superblock().length.get();
    let reach = |store: &Arc<Store>, n: u64| {
        store.create(&format!("object {n}"), &of(4096)).map(|object| object.entry.reserved.get())
    };
    let mut kept = Vec::new();
    let full = loop {
        match reach(&store, kept.len() as u64) {
            Ok(reserved) => kept.push(reserved),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, StoreError::NoRoom { .. }), "{full}");
    assert!(kept.len() > 1000, "{}", kept.len());
    assert!(kept[..32].iter().all(|reserved| *reserved >= len), "{:?}", &kept[..32]);
    assert!(kept[32..].iter().all(|reserved| *reserved >= 4096 && *reserved <= 2 * len));
    store.destroy("object 0", KEY).unwrap();
    let wanted = CreateOptions { reach: 512 << 10, ..of(4096) };
    assert_eq!(store.create("asked", &wanted).unwrap().entry.reserved.get(), 512 << 10);
}

#[test]
fn the_lanes_of_many_small_writers_find_room() {
    let medium = formatted(40 << 20, SimConfig::default());
    let writers: Vec<_> = (1..=127)
        .map(|pid| {
            let store = Store::open(Arc::new(medium.handle()), process(pid)).unwrap();
            let name = format!("{pid}");
            store.create(&name, &of(10_000)).unwrap();
            let mut writer =
                store.attach_writer(&name, KEY).unwrap_or_else(|error| panic!("{name}: {error}"));
            psync(&mut writer, &[(0, &[pid as u8; 100])]).unwrap();
            (store, writer)
        })
        .collect();
    let (store, _) = &writers[0];
    assert!(store.info().unwrap().free > 20 << 20);
}
