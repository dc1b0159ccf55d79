use super::sample::{assert_clean, bytes_of, check, copy, create, format, open, repair, seed_of, try_repair};
use super::writers::void_table_lane;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, FLAG_BASE, PROGRESS};
use indelible_store::format::{PAGE, TABLE_ROOT};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{Report, Severity, SnapshotOf, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, check_tiling, psync, snapshot};
use indelible_testing::{Limits, SimMedium, for_each_crash};
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

const KEY: Key<'static> = Key(&[]);

fn pool() -> (SimMedium, Snapshot) {
    let (medium, store) = format(4 << 20);
    create(&store, "alone", 5000);
    create(&store, "a", 20_000);
    let how = CreateOptions::default();
    store.create_from("a", KEY, "b", &how).unwrap();
    store.snapshot(&[SnapshotOf { object: "b", key: KEY, name: "s" }]).unwrap();
    store.create_from("s", KEY, "c", &how).unwrap();
    for (name, at) in [("a", 0), ("b", 5000), ("c", 10_000), ("alone", 10)] {
        let mut writer = store.attach_writer(name, KEY).unwrap();
        psync(&mut writer, &[(at, &bytes_of(name, 100))]).unwrap();
        writer.detach().unwrap();
    }
    let expected = snapshot(&store).unwrap();
    drop(store);
    void_table_lane(&medium);
    medium.settle();
    assert!(assert_clean(&medium).findings.is_empty());
    (medium, expected)
}

fn entry_of(medium: &SimMedium, name: &str) -> u64 {
    open(medium, 9).unwrap().find(name).unwrap().offset
}

fn edit(medium: &SimMedium, offset: u64, change: impl Fn(&mut Entry)) {
    let mut entry: Entry = read_struct(medium, offset).unwrap();
    change(&mut entry);
    medium.write(offset, entry.sealed(seed_of(medium)).as_bytes()).unwrap();
    medium.settle();
}

fn scribble(medium: &SimMedium, offset: u64, len: u64) {
    medium.write(offset, &vec![0xa5; len as usize]).unwrap();
    medium.settle();
}

#[track_caller]
fn assert_whole(medium: &SimMedium, expected: &Snapshot) -> Arc<Store> {
    assert_clean(medium);
    let store = open(medium, 5).unwrap();
    assert_eq!(snapshot(&store).unwrap(), *expected);
    check_tiling(&store).unwrap();
    store
}

#[test]
fn the_users_of_a_base_are_counted_again() {
    let (medium, expected) = pool();
    for wrong in [0, 1, 99, u64::MAX] {
        let damaged = copy(&medium);
        edit(&damaged, entry_of(&damaged, "s"), |entry| entry.users = U64::new(wrong));
        assert!(!check(&damaged).is_clean(), "{wrong} users");
        repair(&damaged);
        let store = assert_whole(&damaged, &expected);
        for name in ["s", "b", "c", "a"] {
            store.destroy(name, KEY).unwrap();
        }
        check_tiling(&store).unwrap();
        assert_eq!(store.info().unwrap().objects, 1, "bases without users are gone");
    }
}

#[test]
fn a_table_with_bases_is_built_anew_wherever_repair_dies() {
    let (medium, expected) = pool();
    let damaged = copy(&medium);
    scribble(&damaged, TABLE_ROOT, PAGE);
    let limits = Limits { exhaustive: 16, singles: 4, random: 4, points: 60, seed: 3 };
    let judge = |image: &indelible_testing::CrashImage| -> Result<(), String> {
        let medium = image.medium();
        try_repair(&medium, false).map_err(|error| error.to_string())?;
        let store = open(&medium, 6).map_err(|error| error.to_string())?;
        check_tiling(&store)?;
        let found = snapshot(&store).map_err(|error| error.to_string())?;
        if found == expected { Ok(()) } else { Err("it is not what it was".into()) }
    };
    for_each_crash(&copy(&damaged), |medium| drop(repair(medium)), judge, &limits).unwrap();
    repair(&damaged);
    assert_whole(&damaged, &expected);
}

#[test]
fn objects_whose_base_is_gone_stay_until_they_may_be_dropped() {
    let (medium, mut expected) = pool();
    let base: Entry = read_struct(&medium, entry_of(&medium, "a")).unwrap();
    scribble(&medium, base.base.get(), PROGRESS);
    let before = medium.to_bytes();
    let report = check(&medium);
    for name in ["a", "s"] {
        let found = report.findings.iter().find(|finding| finding.object.as_deref() == Some(name));
        assert!(found.is_some_and(|finding| finding.what.contains("base")), "{name}: {report:#?}");
    }
    let left = try_repair(&medium, false).unwrap();
    assert!(left.iter().any(|action| !action.done), "{left:#?}");
    let store = open(&medium, 3).unwrap();
    for (name, object) in [("a", true), ("b", true), ("c", true), ("alone", false)] {
        let refused = matches!(store.attach_writer(name, KEY), Err(StoreError::Damaged { .. }));
        assert_eq!(refused, object, "{name}");
    }
    drop(store);
    let extent = base.primary_offset() as usize..(base.primary_offset() + base.extent_len()) as usize;
    assert!(medium.to_bytes()[extent.clone()] == before[extent], "what is there stays there");
    let actions = try_repair(&medium, true).unwrap();
    assert!(actions.iter().all(|action| action.done), "{actions:#?}");
    for name in ["a", "b", "c", "s"] {
        expected.remove(name);
        let lost = actions.iter().find(|action| action.object.as_deref() == Some(name));
        assert!(lost.is_some_and(|action| action.lost.is_some()), "{name}: {actions:#?}");
    }
    assert_whole(&medium, &expected);
}

#[test]
fn forged_bases_are_errors() {
    let (medium, expected) = pool();
    let [a, b, s, c, alone] = ["a", "b", "s", "c", "alone"].map(|name| entry_of(&medium, name));
    type Forgery<'f> = (&'static str, u64, Box<dyn Fn(&mut Entry) + 'f>);
    let forgeries: Vec<Forgery<'_>> = vec![
        ("its base is itself", c, Box::new(|entry| entry.base = U64::new(c))),
        ("its base is no base", c, Box::new(|entry| entry.base = U64::new(alone))),
        ("its base is no entry", c, Box::new(|entry| entry.base = U64::new(c + 1))),
        ("its base lies beyond the pool", c, Box::new(|entry| entry.base = U64::new(u64::MAX - 1023))),
        ("bases in a ring", s, Box::new(|entry| entry.base = U64::new(b))),
        ("more pages of the base than it has itself", a, Box::new(|entry| entry.based = U64::new(u64::MAX))),
        ("no page of the base", a, Box::new(|entry| entry.based = U64::new(0))),
        ("a bitmap beyond the pool", a, Box::new(|entry| entry.overlay = U64::new((4 << 20) / PAGE))),
        ("a bitmap in the table", a, Box::new(|entry| entry.overlay = U64::new(TABLE_ROOT / PAGE))),
        ("a bitmap that is another's extent", a, Box::new(|entry| entry.overlay = U64::new(80))),
        ("a base that can be written to", s, Box::new(|entry| entry.set(FLAG_BASE, false))),
    ];
    edit(&medium, b, |_| {});
    for (what, slot, forge) in &forgeries {
        let damaged = copy(&medium);
        if *what == "bases in a ring" {
            edit(&damaged, b, |entry| {
                entry.set(FLAG_BASE, true);
                entry.users = U64::new(1);
            });
        }
        edit(&damaged, *slot, |entry| forge(entry));
        let report = check(&damaged);
        assert!(!report.is_clean(), "{what}: {report:#?}");
        if let Ok(store) = open(&damaged, 3) {
            for name in expected.keys() {
                let _ = store.attach_reader(name, KEY);
                let _ = store.attach_writer(name, KEY);
                let _ = store.create_from(name, KEY, "new", &CreateOptions::default());
                let _ = store.destroy("new", KEY);
            }
        }
        let _ = try_repair(&damaged, false);
        try_repair(&damaged, true).unwrap_or_else(|error| panic!("{what}: {error}"));
        let errors = |report: &Report| report.findings.iter().any(|f| f.severity == Severity::Error);
        assert!(!errors(&check(&damaged)), "{what}: {:#?}", check(&damaged));
        let store = open(&damaged, 4).unwrap();
        check_tiling(&store).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        assert_eq!(snapshot(&store).unwrap()["alone"], expected["alone"], "{what}");
    }
}
