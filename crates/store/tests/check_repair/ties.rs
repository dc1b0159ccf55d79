use super::sample::{assert_clean, check, copy, create, format, open, repair, seed_of, try_repair};
use super::writers::void_table_lane;
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, FLAG_TIED};
use indelible_store::format::{PAGE, TABLE_ROOT, checksum};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{Severity, Store};
use indelible_store::table::Key;
use indelible_testing::SimMedium;
use indelible_testing::pool::check_tiling;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

const KEY: Key<'static> = Key(&[]);

/// "a", tied to "b", tied to "c"; "gone", deleted and tied to "c"; and their entries.
fn pool() -> (SimMedium, [u64; 4]) {
    let (medium, store) = format(4 << 20);
    let entries = ["a", "b", "c", "gone"].map(|name| {
        create(&store, name, 5000);
        store.find(name).unwrap().offset
    });
    for (name, to) in [("a", "b"), ("b", "c"), ("gone", "c")] {
        store.tie(name, KEY, to).unwrap();
    }
    store.delete("gone", KEY).unwrap();
    drop(store);
    void_table_lane(&medium);
    medium.settle();
    assert!(assert_clean(&medium).findings.is_empty());
    (medium, entries)
}

fn names(store: &Store, name: &str) -> Vec<String> {
    store.ties(name).unwrap().into_iter().map(|tie| tie.name).collect()
}

#[track_caller]
fn assert_whole(medium: &SimMedium) {
    assert_clean(medium);
    let store = open(medium, 5).unwrap();
    assert_eq!([names(&store, "a"), names(&store, "b")], [["b"], ["c"]]);
    store.reap().unwrap();
    assert_eq!(store.info().unwrap().objects, 4);
    store.destroy("c", KEY).unwrap();
    assert_eq!(store.info().unwrap().objects, 2, "with what was deleted before");
    store.destroy("a", KEY).unwrap();
    store.destroy("b", KEY).unwrap();
    assert_eq!(store.info().unwrap().objects, 0);
    check_tiling(&store).unwrap();
}

fn edit(medium: &SimMedium, offset: u64, change: impl Fn(&mut Entry)) {
    let mut entry: Entry = read_struct(medium, offset).unwrap();
    change(&mut entry);
    medium.write(offset, entry.sealed(seed_of(medium)).as_bytes()).unwrap();
    medium.settle();
}

#[test]
fn a_table_that_is_built_anew_keeps_ties_and_what_was_deleted() {
    let (medium, _) = pool();
    medium.write(TABLE_ROOT, &vec![0xa5; PAGE as usize]).unwrap();
    medium.settle();
    repair(&medium);
    assert_whole(&medium);
}

#[test]
fn a_damaged_list_keeps_its_object_until_it_may_be_dropped() {
    let (medium, entries) = pool();
    for at in [entries[0], entries[3]] {
        let damaged = copy(&medium);
        let list: Entry = read_struct(&damaged, at).unwrap();
        let (place, mut byte) = (list.ties.get() * PAGE + 3, [0]);
        damaged.read(place, &mut byte).unwrap();
        damaged.write(place, &[!byte[0]]).unwrap();
        damaged.settle();
        let report = check(&damaged);
        let found = report.findings.iter().find(|finding| finding.severity == Severity::Error).unwrap();
        assert!(found.what.contains("its ties cannot be read"), "{found}");
        let store = open(&damaged, 6).unwrap();
        if at == entries[0] {
            assert!(matches!(store.ties("a"), Err(StoreError::Damaged { .. })));
        }
        store.reap().unwrap();
        assert_eq!(store.info().unwrap().objects, 4, "nothing goes meanwhile");
        drop(store);
        let left = try_repair(&damaged, false).unwrap();
        assert!(left.iter().any(|action| !action.done), "not without being told to: {left:?}");
        let actions = try_repair(&damaged, true).unwrap();
        let dropped = actions.iter().find(|action| action.what == "its ties were dropped").unwrap();
        assert!(dropped.done && dropped.lost.is_some(), "{dropped}");
        assert_clean(&damaged);
        let store = open(&damaged, 6).unwrap();
        assert_eq!(store.info().unwrap().objects, if at == entries[3] { 3 } else { 4 });
        check_tiling(&store).unwrap();
    }
    assert_whole(&medium);
}

#[test]
fn a_cycle_is_reported_and_can_be_broken() {
    let (medium, entries) = pool();
    let [a, _, c, _] = entries.map(|at| read_struct::<Entry>(&medium, at).unwrap());
    let list: Entry = read_struct(&medium, entries[3]).unwrap();
    medium.write(list.ties.get() * PAGE, &a.id).unwrap();
    edit(&medium, entries[3], |entry| {
        entry.set(FLAG_TIED, false);
        (entry.ties, entry.tie_count, entry.ties_sum) = Default::default();
    });
    edit(&medium, entries[2], |entry| {
        entry.set(FLAG_TIED, true);
        (entry.ties, entry.tie_count) = (list.ties, U64::new(1));
        entry.ties_sum = U64::new(checksum(seed_of(&medium), &[&c.id, &a.id]));
    });
    let report = check(&medium);
    let mut cyclic: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.what.contains("it is to outlive itself"))
        .filter_map(|finding| finding.object.clone())
        .collect();
    cyclic.sort_unstable();
    assert_eq!(cyclic, ["a", "b", "c"]);
    assert_eq!(report.worst(), Some(Severity::Warning));

    let by_hand = copy(&medium);
    let store = open(&by_hand, 6).unwrap();
    assert!(store.untie("b", KEY, "c").unwrap());
    drop(store);
    assert_clean(&by_hand);

    let left_alone = copy(&medium);
    let store = open(&left_alone, 6).unwrap();
    for name in ["a", "b", "c"] {
        store.destroy(name, KEY).unwrap();
    }
    store.reap().unwrap();
    assert_eq!(store.info().unwrap().objects, 3, "none of them goes");
    drop(store);
    try_repair(&left_alone, true).unwrap();
    assert_clean(&left_alone);
    let store: Arc<Store> = open(&left_alone, 6).unwrap();
    assert_eq!(store.info().unwrap().objects, 0);
    check_tiling(&store).unwrap();
}

#[test]
fn a_repair_removes_what_was_deleted_once_nothing_ties_it() {
    let (medium, store) = format(4 << 20);
    for name in ["a", "b", "c"] {
        create(&store, name, 5000);
    }
    store.tie("a", KEY, "b").unwrap();
    store.tie("b", KEY, "c").unwrap();
    let readers = ["a", "b", "c"].map(|name| {
        let reader = store.attach_reader(name, KEY).unwrap();
        store.delete(name, KEY).unwrap();
        reader
    });
    let dead = medium.power_cut(indelible_testing::Choice::All).medium();
    drop(readers);
    let notes = check(&dead).findings;
    assert!(
        notes.iter().any(|note| note.what.contains("deleted, and no process has it attached")),
        "{notes:?}"
    );
    repair(&dead);
    assert!(assert_clean(&dead).findings.is_empty());
    let after = open(&dead, 6).unwrap();
    assert_eq!(after.info().unwrap().objects, 0);
    check_tiling(&after).unwrap();
    drop(store);
}
