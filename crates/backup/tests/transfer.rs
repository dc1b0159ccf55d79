//! Objects that refer to each other, exported and imported.

use crate::support::{noise, put, unseen};
use indelible::collections::PVec;
use indelible::{CreateOptions, Error, ErrorKind, Far, Persist, Plain, Pool, PoolOptions, Rights, Space};
use indelible_backup::{BackupError, export_file, export_to, import_from, verify, verify_stream};
use indelible_store::error::StoreError;
use indelible_store::format::entry::{CLASS_PSYNC, CLASS_TRANSACTIONAL, FLAG_ECC, FLAG_TARGET, FLAG_TYPED};
use indelible_store::store::{Attributes, Revived};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Plain, Persist)]
#[repr(C)]
struct Node {
    value: u64,
    #[persist(target)]
    next: Far<Node>,
}

fn pool(dir: &TempDir, name: &str) -> Pool {
    Pool::format(dir.path().join(name), 32 << 20).unwrap()
}

fn space(pools: &[&Pool]) -> Space {
    let mut space = Space::new();
    pools.iter().for_each(|pool| space.add(pool));
    space
}

/// A list of `count` nodes through three objects of two pools; returns the first one's ID.
fn graph(pools: &[&Pool; 2], count: u64) -> [u8; 16] {
    let mut space = space(pools);
    let ids: Vec<_> = ["list", "more", "most"]
        .iter()
        .zip([0, 1, 0])
        .map(|(name, pool)| {
            pools[pool].create_with(name, &CreateOptions::new(1 << 20).position_independent(true)).unwrap();
            space.attach(pools[pool], name).unwrap()
        })
        .collect();
    let mut next: Option<(usize, Far<Node>)> = None;
    for value in (0..count).rev() {
        let home = value as usize % 3;
        let next_here = next.map_or(Far::null(), |(object, node)| {
            space.far(&ids[home], &ids[object], node, Rights::READ).unwrap()
        });
        match value {
            0 => drop(space.root_or_insert(&ids[0], "first", Node { value, next: next_here }).unwrap()),
            _ => next = Some((home, space.create(&ids[home], Node { value, next: next_here }).unwrap())),
        }
    }
    space.psync_all().unwrap();
    ids[0]
}

fn walk(pools: &[&Pool], id: &[u8; 16]) -> Result<Vec<u64>, Error> {
    let space = space(pools);
    space.attach_read(id)?;
    let mut at = space.root::<Node>(id, "first")?;
    let mut values = vec![at.value];
    while let Some(next) = at.follow(at.next)? {
        values.push(next.value);
        at = next;
    }
    Ok(values)
}

fn exported(pools: &[&Pool], id: &[u8; 16], closed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    export_to(&space(pools), &[*id], closed, b"", &mut bytes, &mut unseen).unwrap();
    bytes
}

fn import(bytes: &[u8], pool: &Pool, rebase: bool) -> Result<Vec<String>, BackupError> {
    import_from(&mut &bytes[..], Path::new("stream"), pool, rebase, &mut unseen)
        .map(|imported| imported.objects)
}

#[test]
fn s2_10_a_graph_of_two_pools_is_walked_with_the_same_pointers_in_a_third() {
    let dir = TempDir::new().unwrap();
    let (one, two, third) = (pool(&dir, "1"), pool(&dir, "2"), pool(&dir, "3"));
    let id = graph(&[&one, &two], 60);
    let file: PathBuf = dir.path().join("graph.export");
    let (mut last, mut calls) = ((0, 0), 0);
    let mut tell = |done, total| (last, calls) = ((done, total), calls + 1);
    let made = export_file(&space(&[&one, &two]), &[id], true, b"", (&file, false), &mut tell).unwrap();
    assert_eq!((made.objects, made.path.as_ref()), (3, Some(&file)));
    assert!(calls > 0 && last.1 == made.size, "{last:?}");
    let again = export_file(&space(&[&one, &two]), &[id], true, b"", (&file, false), &mut unseen);
    assert!(matches!(again, Err(BackupError::Exists(_))));
    assert_eq!(verify(&file, &mut unseen).unwrap().damage.len(), 0, "a backup as any other");
    let addresses = |pool: &Pool, name| pool.stat(name).unwrap().address;
    let before = (addresses(&one, "list"), addresses(&two, "more"));
    let imported = import(&std::fs::read(&file).unwrap(), &third, false).unwrap();
    assert_eq!(imported.len(), 3);
    assert_ne!((addresses(&third, "list"), addresses(&third, "more")), before);
    assert_eq!(walk(&[&third], &id).unwrap(), (0..60).collect::<Vec<_>>());
    assert_eq!(walk(&[&one, &two], &id).unwrap(), (0..60).collect::<Vec<_>>());
    // Alone it dangles there; back in its pool, the same object would exist twice.
    let fourth = pool(&dir, "4");
    import(&exported(&[&one, &two], &id, false), &fourth, false).unwrap();
    assert_eq!(walk(&[&fourth], &id).unwrap_err().kind(), ErrorKind::Dangling);
    assert_eq!(walk(&[&fourth, &third], &id).unwrap().len(), 60);
}

#[test]
fn a_damaged_or_truncated_stream_imports_nothing() {
    let dir = TempDir::new().unwrap();
    let (one, two, into) = (pool(&dir, "1"), pool(&dir, "2"), pool(&dir, "3"));
    let id = graph(&[&one, &two], 30);
    let bytes = exported(&[&one, &two], &id, true);
    let step = (bytes.len() / 60).max(1);
    let places = (0..bytes.len()).step_by(step).chain(0..80).chain([bytes.len() - 1, 300, 600]);
    for at in places {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        for bad in [&flipped[..], &bytes[..at]] {
            let error = import(bad, &into, false).unwrap_err();
            let known = matches!(
                error,
                BackupError::Damaged { .. } | BackupError::NotABackup(_) | BackupError::Version { .. }
            );
            assert!(known, "{at}: {error}");
            assert_eq!(into.list().count(), 0, "{at}");
        }
    }
    assert!(
        !verify_stream(&mut &bytes[..bytes.len() - 40], Path::new("x"), &mut unseen)
            .unwrap()
            .damage
            .is_empty()
    );
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert!(matches!(import(&newer, &into, false), Err(BackupError::Version { found: 2, known: 1, .. })));
    newer[8] = 0;
    assert!(matches!(import(&newer, &into, false), Err(BackupError::Version { found: 0, .. })));
    assert_eq!(import(&bytes, &into, false).unwrap().len(), 3);
    assert_eq!(walk(&[&into], &id).unwrap().len(), 30);
}

#[test]
fn an_import_over_a_name_or_an_id_that_is_there_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let (one, two, into) = (pool(&dir, "1"), pool(&dir, "2"), pool(&dir, "3"));
    let id = graph(&[&one, &two], 9);
    let bytes = exported(&[&one, &two], &id, true);
    into.create("more", 100).unwrap();
    for _ in 0..2 {
        let error = import(&bytes, &into, false).unwrap_err();
        assert!(matches!(&error, BackupError::Object { name, .. } if name == "more"), "{error}");
        assert_eq!(into.list().count(), 1);
    }
    into.destroy("more").unwrap();
    import(&bytes, &into, false).unwrap();
    into.rename("list", "other", b"").unwrap();
    let error = import(&bytes, &into, false).unwrap_err();
    assert!(matches!(&error, BackupError::Object { name, .. } if name == "list"), "{error}");
    assert_eq!(into.list().count(), 3);
    // A stream cannot have two objects of one name.
    two.rename("more", "list", b"").unwrap();
    let same = export_to(&space(&[&one, &two]), &[id], true, b"", &mut Vec::new(), &mut unseen).unwrap_err();
    assert!(matches!(same, BackupError::SameName(name) if name == "list"));
}

#[test]
fn an_import_that_cannot_end_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let (one, two, into) = (pool(&dir, "1"), pool(&dir, "2"), pool(&dir, "3"));
    let id = graph(&[&one, &two], 9);
    let bytes = exported(&[&one, &two], &id, true);
    for name in ["list", "more", "most"] {
        let mut taken = |_, _| drop(into.create(name, 100));
        let import = import_from(&mut &bytes[..], Path::new("stream"), &into, false, &mut taken);
        let error = import.unwrap_err();
        assert!(
            matches!(&error, BackupError::Object { name: has, cause: StoreError::Exists } if has == name),
            "{error}"
        );
        let there: Vec<String> = into.list().map(|found| found.unwrap().name).collect();
        assert_eq!(there, [name]);
        into.destroy(name).unwrap();
    }
    assert_eq!(import(&bytes, &into, false).unwrap().len(), 3);
    assert_eq!(walk(&[&into], &id).unwrap().len(), 9);
}

#[test]
fn two_objects_of_one_name_or_id_do_not_come() {
    let dir = TempDir::new().unwrap();
    let into = pool(&dir, "1");
    let kept = |name: &str, id: u8| Attributes {
        name: name.into(),
        id: [id; 16],
        size: 5000,
        ..Attributes::default()
    };
    let store = into.store();
    let begun =
        [kept("one", 1), kept("same", 2), kept("same", 3)].map(|object| store.adopt_elsewhere(&object, None));
    let refused = Revived::publish_all(begun.into_iter().map(Result::unwrap).collect()).unwrap_err();
    assert_eq!(refused.object.as_deref(), Some("same"));
    assert!(matches!(refused.cause, StoreError::Exists));
    assert_eq!(into.list().count(), 0);
    assert_eq!(store.reap().unwrap(), 3);
    let first = store.adopt_elsewhere(&kept("one", 1), None).unwrap();
    assert!(matches!(store.adopt_elsewhere(&kept("two", 1), None), Err(StoreError::Exists)));
    first.publish().unwrap();
    assert_eq!(into.list().count(), 1);
}

/// `check` would report the object otherwise.
#[test]
fn attributes_that_are_not_defined_do_not_come() {
    let dir = TempDir::new().unwrap();
    let into = pool(&dir, "1");
    let kept = |flags: u32, size: u64| Attributes {
        name: "one".into(),
        id: [1; 16],
        size,
        flags,
        class: if flags & FLAG_ECC != 0 { CLASS_TRANSACTIONAL } else { CLASS_PSYNC },
        ..Attributes::default()
    };
    for flags in [1 << 12, 1 << 15, 1 << 18, 1 << 31] {
        let refused = into.store().adopt_elsewhere(&kept(flags, 5000), None).map(drop);
        assert!(matches!(refused, Err(StoreError::ObjectFeature { .. })), "{flags:#x}: {refused:?}");
    }
    // Check words come in whole pairs of pages.
    let refused = into.store().adopt_elsewhere(&kept(FLAG_ECC, 5000), None).map(drop);
    assert!(matches!(refused, Err(StoreError::BadSize { .. })), "{refused:?}");
    assert_eq!(into.store().reap().unwrap(), 0);
    into.store().adopt_elsewhere(&kept(FLAG_TYPED | FLAG_TARGET, 5000), None).unwrap().publish().unwrap();
    drop(into);
    let report = indelible::check(dir.path().join("1"), &PoolOptions::new(), &mut unseen).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

/// The next import makes them all. (`crates/testing/src/rules/arrivals.rs` has deaths while they
/// get their names.)
#[test]
fn an_import_whose_process_dies_leaves_nothing() {
    if let Some(place) = std::env::var_os("INDELIBLE_IMPORT") {
        let last: u64 = std::env::var("INDELIBLE_STEP").unwrap().parse().unwrap();
        let place = Path::new(&place);
        let bytes = std::fs::read(place.join("stream")).unwrap();
        let into = Pool::open(place.join("3")).unwrap();
        let mut steps = 0;
        let mut dies = |_, _| {
            steps += 1;
            if steps == last {
                std::process::abort();
            }
        };
        import_from(&mut &bytes[..], Path::new("stream"), &into, false, &mut dies).unwrap();
        std::process::exit(0);
    }
    let dir = TempDir::new().unwrap();
    let (one, two, into) = (pool(&dir, "1"), pool(&dir, "2"), pool(&dir, "3"));
    let id = graph(&[&one, &two], 60);
    std::fs::write(dir.path().join("stream"), exported(&[&one, &two], &id, true)).unwrap();
    let mut died = 0;
    for step in 1.. {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["transfer::an_import_whose_process_dies_leaves_nothing", "--exact"])
            .env("INDELIBLE_IMPORT", dir.path())
            .env("INDELIBLE_STEP", step.to_string())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        let there = into.list().count();
        assert_eq!(there, if status.success() { 3 } else { 0 }, "step {step}");
        if status.success() {
            break;
        }
        died += 1;
    }
    assert!(died >= 3, "{died} steps");
    assert_eq!(walk(&[&into], &id).unwrap().len(), 60);
    assert_eq!(into.store().reap().unwrap(), 0);
}

#[test]
fn s2_01_an_object_by_content_is_the_same_one_elsewhere() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (pool(&dir, "1"), pool(&dir, "2"));
    let content = noise(7, 30_000);
    let id = one.create_by_content("data", &content).unwrap().id;
    let stream = exported(&[&one], &id, true);
    import(&stream, &two, false).unwrap();
    let stat = two.stat("data").unwrap();
    assert!(stat.by_content && stat.read_only && stat.id == id);
    assert_eq!(two.verify_content("data", b"").unwrap(), Some(true));
    assert!(!two.create_by_content("more", &content).unwrap().made);
    two.destroy("data").unwrap();
    import(&stream, &two, true).unwrap();
    assert!(two.attach_read("data").unwrap().as_slice() == content);
}

#[test]
fn objects_with_addresses_keep_them_or_are_refused_where_they_are_taken() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (pool(&dir, "1"), pool(&dir, "2"));
    let mut heap = one.heap("numbers", 1 << 20).unwrap();
    heap.root_or_default::<PVec<u64>>("list").unwrap().extend(0..1000);
    heap.psync().unwrap();
    drop(heap);
    one.create("bytes", 9000).unwrap();
    put(&one, "bytes", 0, &noise(1, 9000));
    let ids = ["numbers", "bytes"].map(|name| one.stat(name).unwrap().id);
    let streams = ids.map(|id| exported(&[&one], &id, true));
    import(&streams[0], &two, false).unwrap();
    assert_eq!(two.stat("numbers").unwrap().address, one.stat("numbers").unwrap().address);
    assert_eq!(two.heap("numbers", 0).unwrap().root_mut::<PVec<u64>>("list").unwrap().len(), 1000);
    // A copy with another ID has the same addresses.
    two.copy_to("numbers", b"", &two, "copy", &mut unseen).unwrap();
    two.destroy("numbers").unwrap();
    let taken = import(&streams[0], &two, false).unwrap_err();
    assert!(matches!(&taken, BackupError::Addresses { has, .. } if has == "copy"), "{taken}");
    assert!(taken.remedy().contains("--rebase"));
    assert_eq!(two.list().count(), 1);
    import(&streams[0], &two, true).unwrap();
    assert_ne!(two.stat("numbers").unwrap().address, one.stat("numbers").unwrap().address);
    assert_eq!(two.heap("numbers", 0).unwrap().root_mut::<PVec<u64>>("list").unwrap()[999], 999);
    // These bytes are of no known type.
    let refused = import(&streams[1], &two, true).unwrap_err();
    assert!(
        matches!(&refused, BackupError::Pool(error) if error.kind() == ErrorKind::Unsuitable),
        "{refused}"
    );
    import(&streams[1], &two, false).unwrap();
    assert!(two.attach_read("bytes").unwrap().as_slice() == noise(1, 9000));
}
