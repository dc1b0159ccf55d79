use super::sample::{
    assert_whole, bytes_of, check, copy, create, format, map, open, repair, same, try_repair,
};
use indelible_store::error::Part;
use indelible_store::format::batch::kind;
use indelible_store::format::entry::PROGRESS;
use indelible_store::format::lane::{BODY, Directory, HEADERS};
use indelible_store::format::{LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use indelible_store::medium::read_struct;
use indelible_store::store::{RepairAction, Severity, Store};
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, check_tiling, objects, process, psync_copied, snapshot};
use indelible_testing::{Choice, Limits, SimMedium, for_each_crash};
use std::sync::Arc;

fn orphaned() -> (SimMedium, Snapshot) {
    let (medium, store) = format(4 << 20);
    for name in ["a", "b", "c", "idle"] {
        create(&store, name, 9000);
    }
    let mut expected = snapshot(&store).unwrap();
    drop(store);
    medium.settle();
    let device = Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut writers: Vec<_> =
        ["a", "b", "c"].map(|name| store.attach_writer(name, Key::default()).unwrap()).into();
    let [a, b, _] = &mut writers[..] else { unreachable!() };
    psync_copied(&mut [(a, &[(8000, &[1; 10])]), (b, &[(8000, &[2; 10])])]).unwrap();
    expected.get_mut("a").unwrap().2[8000..8010].fill(1);
    expected.get_mut("b").unwrap().2[8000..8010].fill(2);
    for round in 0..5_u8 {
        for writer in &mut writers {
            let name = writer.object().entry.name();
            let (at, bytes) = (u64::from(round) * 1000, [round + name.as_bytes()[0]; 200]);
            psync_copied(&mut [(writer, &[(at, &bytes)])]).unwrap();
            let object = expected.get_mut(&name).unwrap();
            object.2[at as usize..at as usize + 200].copy_from_slice(&bytes);
        }
    }
    device.kill();
    writers.into_iter().for_each(std::mem::forget);
    let left = medium.power_cut(Choice::None).medium();
    let report = check(&left);
    assert!(report.is_clean() && report.findings.len() == 3 && report.waiting > 0, "{report:#?}");
    (left, expected)
}

fn directory(medium: &SimMedium) -> Vec<(u64, Directory)> {
    (0..u64::from(LANES))
        .map(|index| LANE_DIRECTORY + index * LINE)
        .map(|slot| (slot, read_struct::<Directory>(medium, slot).unwrap()))
        .filter(|(_, lane)| lane.len.get() > 0)
        .collect()
}

type Damage = (&'static str, fn(&SimMedium));

fn headers(medium: &SimMedium) {
    for (_, lane) in directory(medium) {
        HEADERS
            .iter()
            .for_each(|copy| medium.scribble(lane.offset.get() + copy..lane.offset.get() + copy + 64, 1));
    }
}

pub fn slots(medium: &SimMedium) {
    directory(medium).iter().for_each(|(slot, _)| medium.scribble(*slot..slot + LINE, 2));
}

/// Erases the directory's slots.
pub fn erased(medium: &SimMedium) {
    use indelible_store::medium::Medium;
    directory(medium).iter().for_each(|(slot, _)| medium.write(*slot, &[0; LINE as usize]).unwrap());
    medium.settle();
}

const BEARABLE: &[Damage] = &[
    ("nothing", |_| {}),
    ("headers", headers),
    ("first headers", |m| {
        directory(m).iter().for_each(|(_, lane)| m.scribble(lane.offset.get()..lane.offset.get() + 64, 1));
    }),
    ("directory", slots),
    ("directory erased", erased),
    ("directory and table", |m| {
        slots(m);
        map(m).nodes.iter().for_each(|node| m.scribble(*node..node + PAGE, 3));
        m.scribble(TABLE_ROOT..TABLE_ROOT + PAGE, 4);
    }),
    ("headers and table", |m| {
        headers(m);
        map(m).nodes.iter().for_each(|node| m.scribble(*node..node + PAGE, 3));
    }),
    ("progress lines", |m| {
        map(m).used.iter().for_each(|slot| m.scribble(slot + PROGRESS + 16..slot + PROGRESS + 32, 3));
    }),
];

#[test]
fn psynced_bytes_are_recovered() {
    for (name, damage) in BEARABLE {
        let (medium, expected) = orphaned();
        let recovered = copy(&medium);
        let seen = map(&recovered);
        assert!(!seen.used.is_empty());
        void_table_lane(&recovered);
        damage(&recovered);
        let report = check(&recovered);
        assert!(*name == "nothing" || !report.is_clean() || report.findings.len() > 3, "{name}: {report:#?}");
        let actions = repair(&recovered);
        assert!(!actions.is_empty());
        assert_whole(&recovered, &expected);
        check_tiling(&open(&recovered, 3).unwrap()).unwrap();
        assert!(repair(&recovered).is_empty(), "{name}");
    }
}

pub fn void_table_lane(medium: &SimMedium) {
    use indelible_store::medium::Medium;
    let seed = super::sample::seed_of(medium);
    let mut log = indelible_store::lane::LaneLog::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    medium.barrier().unwrap();
    log.next_generation(medium, seed).unwrap();
    medium.settle();
}

#[test]
fn recovery_by_repair_can_be_cut_short() {
    let limits = Limits { exhaustive: 4, singles: 2, random: 2, points: 20, seed: 1 };
    let (waiting, expected) = orphaned();
    let settled = copy(&waiting);
    map(&settled);
    void_table_lane(&settled);
    let mut cases = vec![("table lane", &waiting, (|m| m.scribble(0..64, 3)) as fn(&SimMedium))];
    cases.push(("table lane and headers", &waiting, |m| {
        for copy in HEADERS {
            m.scribble(TABLE_LANE + copy..TABLE_LANE + copy + 64, 3);
        }
    }));
    let losing = |name: &str| name == "progress lines";
    cases.extend(
        BEARABLE.iter().filter(|(name, _)| !losing(name)).map(|(name, damage)| (*name, &settled, *damage)),
    );
    for (name, medium, damage) in cases {
        let damaged = copy(medium);
        damage(&damaged);
        damaged.settle();
        for_each_crash(
            &damaged,
            |medium| drop(repair(medium)),
            |image| {
                let medium = image.medium();
                let actions = try_repair(&medium, false).map_err(|error| error.to_string())?;
                let costs = |action: &RepairAction| action.lost.is_some() && action.part != Part::Root;
                if let Some(left) = actions.iter().find(|action| !action.done || costs(action)) {
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
fn batches_that_cannot_be_trusted_are_named() {
    let (medium, expected) = orphaned();
    map(&medium);
    void_table_lane(&medium);
    headers(&medium);
    for (_, lane) in directory(&medium) {
        medium.flip(lane.offset.get() + BODY + 3, 1);
    }
    let report = check(&medium);
    assert_eq!(report.worst(), Some(Severity::Error));
    let actions = repair(&medium);
    assert!(actions.iter().any(|action| action.lost.is_some()), "{actions:#?}");
    assert!(check(&medium).findings.is_empty());
    let found = snapshot(&open(&medium, 3).unwrap()).unwrap();
    assert!(found["idle"] == expected["idle"]);
    for name in ["a", "b", "c"] {
        assert!(
            found[name].2[..7999] == bytes_of(name, 9000)[..7999],
            "{name} is what the checkpoint before left"
        );
    }
}

#[test]
fn a_lane_that_cannot_be_found_is_named() {
    let (medium, _) = orphaned();
    map(&medium);
    void_table_lane(&medium);
    let lanes = directory(&medium);
    headers(&medium);
    slots(&medium);
    lanes.iter().for_each(|(_, lane)| medium.flip(lane.offset.get() + BODY + 3, 1));
    let actions = repair(&medium);
    let lost = actions.iter().filter(|action| action.lost.is_some()).count();
    assert_eq!(lost, 3, "{actions:#?}");
    assert!(check(&medium).findings.is_empty());
    let store = open(&medium, 3).unwrap();
    check_tiling(&store).unwrap();
    assert_eq!(objects(&store).unwrap().len(), 4);
}

#[test]
fn a_damaged_batch_before_intact_ones_is_reported() {
    let (medium, _) = orphaned();
    let seed = super::sample::seed_of(&medium);
    let mut seen = 0;
    for (_, lane) in directory(&medium) {
        let (offset, len) = (lane.offset.get(), lane.len.get());
        let mut log =
            indelible_store::lane::LaneLog::read(&medium, seed, offset, len, lane.generation.get()).unwrap();
        let mut at = Vec::new();
        indelible_store::lane::scan(&medium, seed, &mut log, &mut |batch| {
            assert!(batch.sections.iter().all(|section| section.kind.get() != kind::TABLE));
            at.push(batch.at);
            Ok(())
        })
        .unwrap();
        let Some(second) = at.get(1).filter(|_| at.len() > 2) else { continue };
        let damaged = copy(&medium);
        damaged.scribble(second + 80..second + 90, 0);
        let report = check(&damaged);
        assert!(
            report.findings.iter().any(|f| f.offset == *second && f.severity == Severity::Error),
            "{report:#?}"
        );
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_lane_waits_for_a_damaged_entry() {
    let (medium, expected) = orphaned();
    let slot = objects(&open(&medium, 3).unwrap()).unwrap();
    let slot = slot.iter().find(|object| object.entry.name() == "b").unwrap().offset;
    void_table_lane(&medium);
    medium.scribble(slot + 100..slot + 300, 1);
    let lanes = directory(&medium);
    let actions = try_repair(&medium, false).unwrap();
    assert!(actions.iter().any(|action| !action.done), "{actions:#?}");
    let kept = directory(&medium);
    assert!(lanes.iter().zip(&kept).any(|((_, a), (_, b))| a.generation == b.generation));
    let actions = try_repair(&medium, true).unwrap();
    assert!(actions.iter().any(|action| action.lost.is_some()), "{actions:#?}");
    let mut left = expected;
    left.remove("b");
    assert_whole(&medium, &left);
}
