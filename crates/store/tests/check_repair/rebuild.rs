use super::sample::{
    Map, assert_clean, assert_whole, check, copy, create, format, map, open, repair, same, sample, settled,
    try_repair,
};
use indelible_store::error::{Part, StoreError};
use indelible_store::format::entry::PROGRESS;
use indelible_store::format::lane::HEADERS;
use indelible_store::format::superblock::SLOTS;
use indelible_store::format::{LANE_DIRECTORY, LINE, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use indelible_store::store::{RepairOptions, Severity, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{check_tiling, snapshot};
use indelible_testing::{Limits, SimMedium, for_each_crash};
use std::sync::Arc;

pub type Damage = (&'static str, fn(&SimMedium, &Map));

fn scribble(medium: &SimMedium, at: u64, len: u64) {
    medium.scribble(at..at + len, at ^ 5);
}

pub const BEARABLE: &[Damage] = &[
    ("superblock 0", |m, _| scribble(m, SLOTS[0], PAGE)),
    ("superblock 1", |m, _| scribble(m, SLOTS[1], PAGE)),
    ("root", |m, _| scribble(m, TABLE_ROOT, PAGE)),
    ("all nodes", |m, map| map.nodes.iter().for_each(|node| scribble(m, *node, PAGE))),
    ("root and all nodes", |m, map| {
        scribble(m, TABLE_ROOT, PAGE);
        map.nodes.iter().for_each(|node| scribble(m, *node, PAGE));
    }),
    ("half of each node", |m, map| map.nodes.iter().for_each(|node| scribble(m, *node + 2048, 2048))),
    ("free slots", |m, map| map.free.iter().for_each(|slot| scribble(m, *slot, 8))),
    ("a free slot's link", |m, map| scribble(m, map.free[1] + 184, 8)),
    ("a free page's link", |m, map| scribble(m, map.free_pages[0], 8)),
    ("lane directory", |m, _| scribble(m, LANE_DIRECTORY, 128 * LINE)),
    ("lane directory and root", |m, _| scribble(m, LANE_DIRECTORY, 128 * LINE + PAGE)),
    ("table lane", |m, _| scribble(m, TABLE_LANE, TABLE_LANE_LEN)),
    ("table lane's headers", |m, _| {
        HEADERS.into_iter().for_each(|copy| scribble(m, TABLE_LANE + copy, LINE))
    }),
    ("everything but slots", |m, map| {
        scribble(m, SLOTS[0], PAGE);
        scribble(m, LANE_DIRECTORY, TABLE_LANE + TABLE_LANE_LEN - LANE_DIRECTORY);
        map.nodes.iter().chain(&map.free_pages).for_each(|page| scribble(m, *page, PAGE));
    }),
];

#[test]
fn every_object_comes_back_whichever_part_of_the_table_is_lost() {
    let (medium, expected) = settled(12);
    let map = map(&medium);
    for (name, damage) in BEARABLE {
        let damaged = copy(&medium);
        damage(&damaged, &map);
        let report = check(&damaged);
        assert!(!report.is_clean() || *name == "table lane's headers", "{name}: {report:#?}");
        let actions = repair(&damaged);
        assert!(!actions.is_empty(), "{name}");
        assert_whole(&damaged, &expected);
        let store = open(&damaged, 3).unwrap();
        check_tiling(&store).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        drop(store);
        assert!(repair(&damaged).is_empty(), "{name}");
        let store = open(&damaged, 4).unwrap();
        (0..9).for_each(|index| create(&store, &format!("new {index}"), 5000));
        assert_clean(&damaged);
    }
}

#[test]
fn each_node_by_itself() {
    let (medium, expected) = settled(12);
    let map = map(&medium);
    for (index, node) in map.nodes.iter().enumerate() {
        let damaged = copy(&medium);
        scribble(&damaged, *node + 64 * (index as u64 % 3), 200);
        let report = check(&damaged);
        assert!(report.findings.iter().any(|f| f.part == Part::Node && f.offset == *node), "{report:#?}");
        let before = damaged.to_bytes();
        repair(&damaged);
        let after = damaged.to_bytes();
        for page in map.nodes.iter().chain(&map.free_pages) {
            let page = *page as usize..(page + PAGE) as usize;
            assert!(after[page.clone()] == before[page.clone()], "page at {} was overwritten", page.start);
        }
        assert_whole(&damaged, &expected);
    }
}

#[test]
fn many_objects_come_back() {
    let (medium, store) = format(64 << 20);
    for index in 0..1500 {
        let how = CreateOptions { size: 1, reach: 4096, ..CreateOptions::default() };
        store.create(&format!("{index:05}"), &how).unwrap();
    }
    (0..1500).step_by(4).for_each(|index| store.destroy(&format!("{index:05}"), Key::default()).unwrap());
    let expected = snapshot(&store).unwrap();
    drop(store);
    let seen = map(&medium);
    scribble(&medium, TABLE_ROOT, PAGE);
    scribble(&medium, seen.nodes[0], PAGE);
    scribble(&medium, TABLE_LANE, TABLE_LANE_LEN);
    repair(&medium);
    assert_whole(&medium, &expected);
    let store = open(&medium, 3).unwrap();
    check_tiling(&store).unwrap();
    assert_eq!(map(&medium).used.len(), expected.len());
}

#[test]
fn a_full_pool_is_repaired() {
    let (medium, store) = format(1 << 20);
    create(&store, "a", 9000);
    let mut count = 0;
    let how = CreateOptions { size: 1, reach: 4096, ..CreateOptions::default() };
    while store.create(&format!("{count}"), &how).is_ok() {
        count += 1;
    }
    assert!(store.info().unwrap().free < 40 * PAGE && count > 50);
    let expected = snapshot(&store).unwrap();
    drop(store);
    medium.settle();
    let map = map(&medium);
    for (name, damage) in BEARABLE.iter().filter(|(name, _)| name.contains("root") || name.contains("node")) {
        let damaged = copy(&medium);
        damage(&damaged, &map);
        repair(&damaged);
        assert_whole(&damaged, &expected);
        let store = open(&damaged, 3).unwrap();
        check_tiling(&store).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        store.destroy("3", Key::default()).unwrap();
        assert_clean(&damaged);
    }
}

#[test]
fn a_damaged_entry_is_kept_until_it_may_be_dropped() {
    let (medium, expected) = settled(12);
    let map = map(&medium);
    for (index, slot) in map.used.iter().enumerate() {
        let damaged = copy(&medium);
        let store = open(&medium, 3).unwrap();
        let name = indelible_testing::pool::objects(&store).unwrap();
        let object = name.iter().find(|object| object.offset == *slot).unwrap();
        let (name, extent) =
            (object.entry.name(), (object.entry.primary_offset(), object.entry.extent_len()));
        scribble(&damaged, *slot + [16, 390, 0][index % 3], [100, 200, PROGRESS][index % 3]);
        if index % 2 == 0 {
            scribble(&damaged, TABLE_ROOT, PAGE);
        }
        let before = damaged.to_bytes();
        let actions = try_repair(&damaged, false).unwrap();
        assert!(actions.iter().any(|action| !action.done), "{actions:#?}");
        let range = extent.0 as usize..(extent.0 + extent.1) as usize;
        assert!(
            damaged.to_bytes()[range.clone()] == before[range],
            "{name:?} was not dropped, but overwritten"
        );

        let actions = try_repair(&damaged, true).unwrap();
        assert!(actions.iter().all(|action| action.done), "{actions:#?}");
        assert!(actions.iter().any(|action| action.offset == *slot && action.lost.is_some()), "{actions:#?}");
        let mut left = expected.clone();
        left.remove(&name);
        assert_whole(&damaged, &left);
        assert!(repair(&damaged).is_empty());
    }
}

#[test]
fn space_not_known_to_be_free_is_not_taken() {
    let (medium, expected) = settled(6);
    let map = map(&medium);
    scribble(&medium, TABLE_ROOT, PAGE);
    scribble(&medium, map.used[0], PROGRESS);
    let before = medium.to_bytes();
    let actions = try_repair(&medium, false).unwrap();
    assert!(actions.iter().any(|action| !action.done), "{actions:#?}");
    let data = medium.to_bytes();
    let first = indelible_store::format::DATA as usize;
    assert!(data[first..] == before[first..]);
    try_repair(&medium, true).unwrap();
    let found = snapshot(&open(&medium, 5).unwrap()).unwrap();
    assert_eq!(found.len(), expected.len() - 1);
    assert!(found.iter().all(|(name, object)| expected[name] == *object));
}

#[test]
fn a_progress_line_is_written_again() {
    let (medium, expected) = settled(6);
    let map = map(&medium);
    for (what, range) in [("ID", 0..16), ("counts", 16..24), ("checksum", 32..40)] {
        let damaged = copy(&medium);
        let at = map.used[2] + PROGRESS;
        damaged.flip(at + range.start, 1);
        damaged.flip(at + range.end - 1, 7);
        let report = check(&damaged);
        assert!(
            report.findings.iter().any(|f| f.part == Part::Progress && f.severity == Severity::Error),
            "{what}"
        );
        let actions = repair(&damaged);
        assert!(actions.iter().any(|action| action.lost.is_some()), "{actions:#?}");
        assert_whole(&damaged, &expected);
    }
}

#[test]
fn both_superblocks_with_one_wrong_bit_each() {
    let (medium, expected) = settled(6);
    medium.flip(SLOTS[0] + 40, 3);
    medium.flip(SLOTS[1] + 9, 3);
    assert!(open(&medium, 3).is_err());
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {});
    assert!(report.is_err_and(|error| matches!(error, StoreError::Version { .. })));
    assert_eq!(repair(&medium).len(), 2);
    assert_whole(&medium, &expected);
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let (medium, _) = settled(6);
    let map = map(&medium);
    for (name, damage) in BEARABLE {
        let damaged = copy(&medium);
        damage(&damaged, &map);
        let before = damaged.digest();
        let options = RepairOptions { dry_run: true, drop_damaged: false };
        let device = Arc::new(damaged.read_only_handle());
        let planned = Store::repair(device, &options, &mut |_, _| {}).unwrap();
        assert_eq!(damaged.digest(), before, "{name}");
        let done = repair(&damaged);
        let text = |actions: &[indelible_store::store::RepairAction]| {
            actions.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(&planned), text(&done), "{name}");
    }
}

#[test]
fn a_sound_pool_is_left_alone() {
    let (medium, expected) = sample(6);
    let before = medium.digest();
    assert!(repair(&medium).is_empty());
    assert_eq!(medium.digest(), before);
    assert_whole(&medium, &expected);
}

#[test]
fn a_pool_in_use_is_left_alone() {
    let (medium, store) = format(4 << 20);
    create(&store, "read", 10);
    create(&store, "written", 10);
    let reader = store.attach_reader("read", Key::default()).unwrap();
    assert!(matches!(try_repair(&medium, true), Err(StoreError::Held { .. })));
    drop(reader);
    let writer = store.attach_writer("written", Key::default()).unwrap();
    assert!(matches!(try_repair(&medium, true), Err(StoreError::Held { .. })));
    drop(writer);
    assert!(matches!(try_repair(&medium, true), Err(StoreError::Held { .. })));
    drop(store);
    assert!(try_repair(&medium, true).unwrap().is_empty());
}

#[test]
fn a_repair_cut_short_can_be_run_again() {
    let (medium, expected) = settled(6);
    let map = map(&medium);
    let limits = Limits { exhaustive: 3, singles: 1, random: 2, points: 12, seed: 1 };
    for (name, damage) in BEARABLE {
        let damaged = copy(&medium);
        damage(&damaged, &map);
        damaged.settle();
        for_each_crash(
            &damaged,
            |medium| drop(repair(medium)),
            |image| {
                let medium = image.medium();
                let actions = try_repair(&medium, false).map_err(|error| error.to_string())?;
                if let Some(left) = actions.iter().find(|action| !action.done) {
                    return Err(left.to_string());
                }
                let report = check(&medium);
                if !report.is_clean() {
                    return Err(format!("{report:#?}"));
                }
                let store = open(&medium, 6).map_err(|error| error.to_string())?;
                let found = snapshot(&store).map_err(|error| error.to_string())?;
                same(&found, &expected)
            },
            &limits,
        )
        .unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

#[test]
fn a_resize_cut_short_is_cleared_away() {
    let (medium, store) = format(4 << 20);
    store.create("a", &CreateOptions { size: 5000, sparse: true, ..CreateOptions::default() }).unwrap();
    create(&store, "b", 5000);
    drop(store);
    medium.settle();
    let mut seen = 0;
    for_each_crash(
        &medium,
        |medium| {
            let store = open(medium, 2).unwrap();
            store.resize("a", Key::default(), 15_000).unwrap();
        },
        |image| {
            let medium = image.medium();
            let report = check(&medium);
            if !report.is_clean() {
                return Err(format!("{report:#?}"));
            }
            seen += usize::from(report.findings.iter().any(|finding| finding.what.contains("resize")));
            try_repair(&medium, false).map_err(|error| error.to_string())?;
            let report = check(&medium);
            let left = report.findings.iter().any(|finding| finding.what.contains("resize"));
            if report.is_clean() && !left { Ok(()) } else { Err(format!("{report:#?}")) }
        },
        &Limits { exhaustive: 16, singles: 4, random: 2, points: 200, seed: 1 },
    )
    .unwrap();
    assert!(seen > 0, "no crash left a hidden object");
}
