use super::dead_lanes::dead;
use super::rebuild::BEARABLE;
use super::sample::{Map, check, copy, map, open, same, settled, try_repair};
use indelible_store::error::StoreError;
use indelible_store::format::{PAGE, TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::lane::{LaneLog, scan};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, contents, snapshot};
use indelible_testing::{Choice, CrashImage, Fault, Limits, OpKind, SimMedium, for_each_crash, sparse};

const KEY: Key<'static> = Key(&[]);
const LIMITS: Limits = Limits { exhaustive: 3, singles: 1, random: 2, points: 12, seed: 3 };

fn used(medium: &SimMedium, expected: &Snapshot, lost: &[&str]) -> Result<(), String> {
    let Ok(store) = open(medium, 7) else { return Ok(()) };
    for (name, (id, _, bytes)) in expected {
        let found = store
            .attach_reader(name, KEY)
            .and_then(|reader| Ok((reader.object().entry.id, contents(&store, reader.object())?)));
        match found {
            Ok((found, now)) if found != *id || now != *bytes => {
                return Err(format!("{name:?} shows what it did not psync"));
            }
            Err(StoreError::NotFound) if !lost.contains(&&**name) => return Err(format!("{name:?} is gone")),
            _ => {}
        }
        if let Ok(found) = store.find_id(id)
            && found.entry.id != *id
        {
            return Err(format!("the ID of {name:?} leads to another object"));
        }
    }
    for index in 0..64 {
        let Ok(info) = store.info() else { return Ok(()) };
        let size = if index % 2 == 0 { info.largest / 2 } else { PAGE };
        let how = CreateOptions { size: size.max(1), ..CreateOptions::default() };
        let Ok(new) = store.create(&format!("new {index}"), &how) else { continue };
        let bytes = contents(&store, &new).map_err(|error| error.to_string())?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            return Err(format!("a new object of {} bytes is not zero at {at}", bytes.len()));
        }
    }
    Ok(())
}

fn die(name: &str, damaged: &SimMedium, expected: &Snapshot, lost: &[&str], drop: bool) {
    let repair = |medium: &SimMedium| std::mem::drop(try_repair(medium, drop));
    die_in(name, damaged, expected, lost, drop, (&LIMITS, &repair));
}

fn die_in(
    name: &str,
    damaged: &SimMedium,
    expected: &Snapshot,
    lost: &[&str],
    drop: bool,
    (limits, done): (&Limits, &dyn Fn(&SimMedium)),
) {
    damaged.settle();
    let judge = |image: &CrashImage| {
        used(&image.medium(), expected, lost).map_err(|error| format!("used at once: {error}"))?;
        let medium = image.medium();
        let actions = try_repair(&medium, drop).map_err(|error| error.to_string())?;
        if let Some(left) = actions.iter().find(|action| !action.done) {
            return Err(format!("repaired again: {left}"));
        }
        let report = check(&medium);
        if !report.is_clean() {
            return Err(format!("repaired again: {report:#?}"));
        }
        let mut left = expected.clone();
        lost.iter().for_each(|name| drop_name(&mut left, name));
        let store = open(&medium, 6).map_err(|error| error.to_string())?;
        let found = snapshot(&store).map_err(|error| error.to_string())?;
        std::mem::drop(store);
        same(&found, &left).map_err(|error| format!("repaired again: {error}"))?;
        used(&medium, &left, &[]).map_err(|error| format!("repaired again and used: {error}"))
    };
    for_each_crash(damaged, done, judge, limits).unwrap_or_else(|failure| panic!("{name}: {failure}"));
}

fn drop_name(state: &mut Snapshot, name: &str) {
    state.remove(name);
}

#[test]
fn a_repair_that_dies_shows_no_object_what_it_did_not_psync() {
    let (medium, expected) = settled(6);
    let map = map(&medium);
    for (name, damage) in BEARABLE {
        let damaged = copy(&medium);
        damage(&damaged, &map);
        die(name, &damaged, &expected, &[], false);
    }
}

#[test]
fn a_repair_that_failed_and_dies_when_it_is_run_again_loses_nothing() {
    let (medium, expected) = settled(6);
    let map = map(&medium);
    for ((name, damage), first) in BEARABLE.iter().zip((0..8).cycle()) {
        for kind in [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier] {
            for fault in [Fault::Io, Fault::After] {
                for nth in (first..).step_by(8 * sparse(3)) {
                    let damaged = copy(&medium);
                    damage(&damaged, &map);
                    let ended = std::cell::Cell::new(false);
                    let repair = |medium: &SimMedium| {
                        medium.fail_at(kind, nth, fault);
                        ended.set(try_repair(medium, false).is_ok());
                        medium.clear_faults();
                        try_repair(medium, false).unwrap();
                    };
                    let limits = Limits { exhaustive: 2, singles: 2, random: 1, points: 4, seed: nth };
                    let name = format!("{name}, {kind:?} {nth} {fault:?}");
                    die_in(&name, &damaged, &expected, &[], false, (&limits, &repair));
                    if ended.get() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_repair_that_dies_keeps_never_used_space_zero() {
    let (medium, expected) = settled(6);
    let Map { free, free_pages, .. } = map(&medium);
    for (name, at) in [
        ("the last free slot", free[free.len() - 1] + 32),
        ("the last free page", *free_pages.last().unwrap()),
    ] {
        let damaged = copy(&medium);
        damaged.scribble(at..at + 8, 4);
        die(name, &damaged, &expected, &[], false);
    }
}

#[test]
fn a_repair_that_dies_gives_no_slot_away_twice() {
    let (medium, expected) = settled(6);
    let slots = map(&medium).used;
    let store = open(&medium, 3).unwrap();
    let objects = indelible_testing::pool::objects(&store).unwrap();
    drop(store);
    for slot in slots.iter().step_by(2) {
        let name = objects.iter().find(|object| object.offset == *slot).unwrap().entry.name();
        let damaged = copy(&medium);
        damaged.scribble(slot + 16..slot + 400, 5);
        die(&name, &damaged, &expected, &[&name], true);
    }
}

pub fn table_batches(medium: &SimMedium) -> Vec<u64> {
    let seed = super::sample::seed_of(medium);
    let mut log = LaneLog::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    let mut batches = Vec::new();
    scan(medium, seed, &mut log, &mut |batch| {
        batches.push(batch.at);
        Ok(())
    })
    .unwrap();
    batches
}

#[test]
fn a_batch_of_the_table_that_is_lost_leaves_no_old_bytes_in_new_objects() {
    let (medium, _) = settled(6);
    let store = open(&medium, 2).unwrap();
    super::sample::create(&store, "large", 500_000);
    store.rename("large", "larger", KEY).unwrap();
    store.rename("larger", "largest", KEY).unwrap();
    drop(store);
    medium.settle();
    let batches = table_batches(&medium);
    for at in &batches[..batches.len() - 1] {
        let damaged = copy(&medium);
        damaged.flip(at + 80, 1);
        damaged.flip(at + 81, 2);
        try_repair(&damaged, true).unwrap();
        used(&damaged, &Snapshot::new(), &[]).unwrap();
    }
}

#[test]
fn a_repair_that_dies_in_a_lane_loses_no_psync() {
    for choice in [Choice::None, Choice::All] {
        let (medium, states) = dead(choice);
        map(&medium);
        super::writers::void_table_lane(&medium);
        die("recovered", &copy(&medium), &states[3], &[], false);
        let slots = copy(&medium);
        super::writers::slots(&slots);
        die("without a slot", &slots, &states[3], &[], false);
        let erased = copy(&medium);
        super::writers::erased(&erased);
        die("with an erased slot", &erased, &states[3], &[], false);
    }
}
