use super::recovery::{pool_on, void_table_lane};
use super::{KEY, Verdict, create, open};
use crate::for_each_crash;
use crate::pool::{contents, psync};
use crate::sim::{Choice, CrashImage, Discard, Limits, SMALL, SimConfig, SimMedium, TearUnit};
use indelible_store::format::entry::Entry;
use indelible_store::format::lane::HEADERS;
use indelible_store::format::{LINE, TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::lane::{LaneLog, scan};
use indelible_store::medium::read_struct;
use indelible_store::store::{RepairOptions, Store};
use indelible_store::table::CreateOptions;
use std::sync::Arc;

/// On disks unused space is cleared before its use, which hides old bytes.
const MEMORY: SimConfig =
    SimConfig { tear_unit: TearUnit::Word, disk: false, discard: Discard::Keep, transfers: SMALL, seed: 0 };

/// Checks that new objects read as zeros wherever there is space.
pub fn new_is_zero(medium: &SimMedium) -> Verdict {
    let store = open(medium, 6);
    for index in 0..20 {
        let Ok(info) = store.info() else { return Ok(()) };
        let how = CreateOptions { size: info.largest / 2 + 1, ..CreateOptions::default() };
        let Ok(new) = store.create(&format!("new {index}"), &how) else { continue };
        if contents(&store, &new).map_err(|error| error.to_string())?.iter().any(|byte| *byte != 0) {
            return Err("a new object shows old bytes".into());
        }
    }
    Ok(())
}

fn repair(medium: &SimMedium) {
    let options = RepairOptions { dry_run: false, drop_damaged: true };
    let actions = Store::repair(Arc::new(medium.handle()), &options, &mut |_, _| {}).unwrap();
    assert!(!actions.is_empty(), "there was something to repair");
}

pub(super) fn a_repair_says_where_it_builds() -> Verdict {
    let medium = pool_on(MEMORY);
    let store = open(&medium, 2);
    for round in 0..4 {
        create(&store, &format!("gone {round}"), 1);
    }
    (0..4).for_each(|round| store.destroy(&format!("gone {round}"), KEY).unwrap());
    drop(store);
    void_table_lane(&medium);
    let mut slot = open(&medium, 3).info().unwrap().root.free_slot.get();
    loop {
        let next = read_struct::<Entry>(&medium, slot).unwrap().next_free.get();
        if next == 0 {
            break;
        }
        slot = next;
    }
    medium.scribble(slot + 32..slot + 40, 3);
    medium.settle();
    let limits = Limits { exhaustive: 2, singles: 2, random: 2, points: 30, seed: 1 };
    for_each_crash(&medium, repair, |image: &CrashImage| new_is_zero(&image.medium()), &limits)
        .map(drop)
        .map_err(|failure| failure.cause)
}

pub(super) fn objects_the_table_lost_count_as_written() -> Verdict {
    let medium = pool_on(MEMORY);
    let store = open(&medium, 2);
    store.info().unwrap();
    medium.settle();
    create(&store, "large", 300_000);
    let mut large = store.attach_writer("large", KEY).unwrap();
    psync(&mut large, &[(0, &[7; 300_000])]).unwrap();
    std::mem::forget(large);
    let seed = store.superblock().seed.get();
    drop(store);
    // After some cuts the data is in place and the root is the former one.
    for choice in (0..60).map(Choice::Random) {
        let image = medium.power_cut(choice).medium();
        let mut log = LaneLog::read(&image, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
        let mut first = None;
        scan(&image, seed, &mut log, &mut |batch| {
            first = first.or(Some(batch.at));
            Ok(())
        })
        .unwrap();
        // Without both headers and the first batch the generation is unknown.
        HEADERS.iter().for_each(|copy| image.scribble(TABLE_LANE + copy..TABLE_LANE + copy + LINE, 2));
        image.scribble(first.unwrap()..first.unwrap() + LINE, 2);
        repair(&image);
        new_is_zero(&image)?;
    }
    Ok(())
}
