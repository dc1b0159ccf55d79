use super::sample::{Map, assert_holds, check, copy, create, judge, map, open, seed_of, settled, try_repair};
use indelible_store::format::entry::{PROGRESS, SIZE};
use indelible_store::format::lane::HEADERS;
use indelible_store::format::superblock::{SLOTS, Superblock};
use indelible_store::format::{APPLIED, LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_LANE, TABLE_ROOT};
use indelible_store::lane::{LaneLog, scan};
use indelible_store::store::Severity;
use indelible_store::table::Key;
use indelible_testing::SimMedium;
use indelible_testing::pool::snapshot;

/// (where, used bytes, what).
fn lines(medium: &SimMedium) -> Vec<(u64, u64, &'static str)> {
    let Map { nodes, used, free, free_pages } = map(medium);
    let mut all = Vec::new();
    let mut add = |from: u64, len: u64, what| {
        for at in (0..len).step_by(LINE as usize) {
            all.push((from + at, LINE.min(len - at), what));
        }
    };
    for slot in SLOTS {
        add(slot, size_of::<Superblock>() as u64, "superblock");
    }
    add(LANE_DIRECTORY, u64::from(LANES) * LINE, "lane directory");
    add(TABLE_ROOT, 256, "root");
    for copy in HEADERS {
        add(TABLE_LANE + copy, LINE, "table lane header");
    }
    nodes.iter().for_each(|node| add(*node, PAGE, "node"));
    used.iter().for_each(|slot| add(*slot, SIZE, "entry"));
    free.iter().take(12).for_each(|slot| add(*slot, PROGRESS, "free slot"));
    free_pages.iter().for_each(|page| add(*page, 8, "free page"));
    all
}

#[test]
fn every_line_of_the_table_is_watched() {
    let (medium, expected) = settled(12);
    let mut kinds = std::collections::BTreeMap::new();
    for (index, (line, len, what)) in lines(&medium).into_iter().enumerate() {
        let (byte, bit) = (line + index as u64 * 37 % len, index as u32 * 5 % 8);
        let damaged = copy(&medium);
        damaged.flip(byte, bit);
        let report = check(&damaged);
        assert!(!report.findings.is_empty(), "bit {bit} of byte {byte} ({what}) is not watched");
        if let Err(wrong) = judge(&copy(&damaged), &expected) {
            panic!("bit {bit} of byte {byte} ({what}): {wrong}\n{report:#?}");
        }
        *kinds.entry(what).or_insert(0) += 1;
        if index % 5 == 0 {
            let actions = try_repair(&damaged, false).unwrap();
            assert!(
                actions.iter().all(|action| action.done && action.lost.is_none()),
                "{what}: {actions:#?}"
            );
            let left = check(&damaged);
            let harmless = what == "free slot" && left.worst() < Some(Severity::Error);
            assert!(left.findings.is_empty() || harmless, "{what}: {left:#?}\n{actions:#?}");
            assert_holds(&damaged, &expected);
        }
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}

#[test]
fn every_batch_of_the_table_lane_is_watched() {
    let (medium, _) = settled(6);
    let store = open(&medium, 2).unwrap();
    for index in 0..5 {
        create(&store, &format!("later {index}"), 300);
    }
    store.destroy("later 1", Key::default()).unwrap();
    let expected = snapshot(&store).unwrap();
    drop(store);
    let seed = seed_of(&medium);
    let mut log = LaneLog::read(&medium, seed, TABLE_LANE, 256 << 10, 1).unwrap();
    let mut batches = Vec::new();
    scan(&medium, seed, &mut log, &mut |batch| {
        batches.push(batch.at);
        Ok(())
    })
    .unwrap();
    let last = *batches.last().unwrap();
    assert!(batches.len() > 10);
    for (index, at) in batches.into_iter().enumerate() {
        let damaged = copy(&medium);
        damaged.scribble(at + [0, 70, 40][index % 3]..at + [8, 80, 48][index % 3], 3);
        let report = check(&damaged);
        assert!(
            !report.is_clean() && report.findings.iter().any(|finding| finding.offset == at),
            "{report:#?}"
        );
        judge(&copy(&damaged), &expected).unwrap();
        try_repair(&damaged, false).unwrap();
        assert!(check(&damaged).findings.is_empty());
        assert_holds(&damaged, &expected);
    }
    let damaged = copy(&medium);
    damaged.scribble(APPLIED..APPLIED + 8, 3);
    damaged.scribble(last..last + 8, 3);
    let mut before = expected.clone();
    let store = open(&damaged, 4).unwrap();
    let found = snapshot(&store).unwrap();
    before.extend(found.get_key_value("later 1").map(|(name, object)| (name.clone(), object.clone())));
    assert_eq!(found, before);
    let report = check(&damaged);
    assert!(report.is_clean() && report.findings.iter().any(|finding| finding.offset == last), "{report:#?}");
}
