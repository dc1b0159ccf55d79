use super::dead_lanes::{batches, dead, slot};
use super::killed::table_batches;
use super::sample::{check, copy, create, format, map, open, seed_of, settled, try_repair};
use super::writers::{slots, void_table_lane};
use indelible_store::format::entry::{Entry, FLAG_TYPED, PROGRESS, Progress, STATE_W};
use indelible_store::format::lane::BODY;
use indelible_store::format::{LINE, TABLE_LANE};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{RepairAction, Store};
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, contents, process, psync, psync_copied, snapshot};
use indelible_testing::{Choice, Limits, SimMedium, for_each_crash};
use std::collections::BTreeSet;
use std::mem::offset_of;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

const KEY: Key<'static> = Key(&[]);
const LIMITS: Limits = Limits { exhaustive: 16, singles: 4, random: 4, points: 60, seed: 11 };

fn trusted(medium: &SimMedium, expected: &Snapshot) -> Result<BTreeSet<String>, String> {
    let mut trusted = BTreeSet::new();
    let Ok(store) = open(medium, 7) else { return Ok(trusted) };
    for (name, (_, _, bytes)) in expected {
        let Ok(writer) = store.attach_writer(name, KEY) else { continue };
        if !writer.is_typed() {
            continue;
        }
        let found = contents(&store, writer.object()).map_err(|error| error.to_string())?;
        if let Some(at) = found.iter().zip(bytes).position(|(found, psynced)| found != psynced) {
            return Err(format!("{name:?} is trusted, and differs from what it psynced at {at}"));
        }
        if writer.psyncs() == 0 {
            return Err(format!("{name:?} is trusted, and nothing tells what of it was ever psynced"));
        }
        trusted.insert(name.clone());
    }
    Ok(trusted)
}

fn die(damaged: &SimMedium, expected: &Snapshot, drop_damaged: bool, left: &[&str]) {
    let at_once = |medium: &SimMedium| trusted(medium, expected).map(drop);
    die_and(damaged, expected, drop_damaged, left, &at_once);
}

fn die_and(
    damaged: &SimMedium,
    expected: &Snapshot,
    drop_damaged: bool,
    left: &[&str],
    at_once: &dyn Fn(&SimMedium) -> Result<(), String>,
) {
    damaged.settle();
    let repaired = |medium: &SimMedium| -> Result<Vec<RepairAction>, String> {
        try_repair(medium, drop_damaged).map_err(|error| error.to_string())
    };
    let whole = copy(damaged);
    let actions = repaired(&whole).unwrap();
    assert!(actions.iter().all(|action| action.done), "{actions:#?}");
    assert!(check(&whole).is_clean(), "{:#?}", check(&whole));
    let again = repaired(&whole).unwrap();
    assert!(again.is_empty(), "after {actions:#?}\na second repair did {again:#?}");
    let found = trusted(&whole, expected).unwrap();
    assert!(found.iter().eq(left), "{found:?} instead of {left:?}: {actions:#?}");
    let judge = |image: &indelible_testing::CrashImage| {
        at_once(&image.medium()).map_err(|error| format!("used at once: {error}"))?;
        let medium = image.medium();
        repaired(&medium)?;
        trusted(&medium, expected).map(drop).map_err(|error| format!("repaired again: {error}"))
    };
    for_each_crash(damaged, |medium| drop(repaired(medium)), judge, &LIMITS).unwrap();
}

fn typed(choice: Choice) -> (SimMedium, Snapshot) {
    let (medium, states) = dead(choice);
    map(&medium);
    void_table_lane(&medium);
    (medium, states[3].clone())
}

fn lane_of(medium: &SimMedium) -> (u32, Vec<u64>) {
    let (_, lane) = slot(medium, "a");
    (lane, batches(medium, lane))
}

#[test]
fn an_object_that_repair_brings_back_whole_stays_trusted() {
    for choice in [Choice::None, Choice::All] {
        let (medium, expected) = typed(choice);
        for damage in [
            |_: &SimMedium| {},
            super::writers::slots,
            super::writers::erased,
            |medium: &SimMedium| {
                let start = lane_of(medium).1[0] - BODY;
                medium.scribble(start..start + LINE, 5);
            },
        ] {
            let damaged = copy(&medium);
            damage(&damaged);
            die(&damaged, &expected, false, &["a", "b", "idle"]);
        }
    }
}

#[test]
fn a_lane_that_is_void_with_its_headers_leaves_nobody_trusted() {
    for choice in [Choice::None, Choice::All] {
        let (medium, expected) = typed(choice);
        let start = lane_of(&medium).1[0] - BODY;
        medium.scribble(start..start + BODY + LINE, 7);
        die(&medium, &expected, false, &["idle"]);
    }
}

#[test]
fn a_lane_that_is_given_up_leaves_nobody_trusted() {
    for choice in [Choice::None, Choice::All] {
        let (medium, expected) = typed(choice);
        let second = lane_of(&medium).1[1];
        medium.scribble(second + 80..second + 90, 7);
        die(&medium, &expected, true, &["idle"]);
    }
}

#[test]
fn a_lane_that_is_given_up_leaves_no_damaged_progress_line() {
    let (medium, expected) = typed(Choice::None);
    let second = lane_of(&medium).1[1];
    for name in ["a", "b"] {
        let at = slot(&medium, name).0 + PROGRESS;
        medium.scribble(at + 16..at + 32, 3);
    }
    medium.scribble(second + 80..second + 90, 7);
    die(&medium, &expected, true, &["idle"]);
}

#[test]
fn a_lane_without_a_slot_that_is_given_up_leaves_nobody_trusted() {
    for choice in [Choice::None, Choice::All] {
        let (medium, expected) = typed(choice);
        let (_, at) = lane_of(&medium);
        let (start, second) = (at[0] - BODY, at[1]);
        let hidden = copy(&medium);
        hidden.scribble(start..start + BODY + LINE, 7);
        slots(&hidden);
        die(&hidden, &expected, false, &["idle"]);
        medium.scribble(second + 80..second + 90, 7);
        slots(&medium);
        die(&medium, &expected, true, &["idle"]);
    }
}

#[test]
fn an_object_of_no_lane_is_not_trusted() {
    let (medium, expected) = typed(Choice::None);
    let at = slot(&medium, "a").0;
    let mut entry: Entry = read_struct(&medium, at).unwrap();
    (entry.state, entry.lane) = (STATE_W, U32::new(4000));
    medium.write(at, entry.sealed(seed_of(&medium)).as_bytes()).unwrap();
    die(&medium, &expected, false, &["b", "idle"]);
}

#[test]
fn an_object_whose_progress_is_made_up_is_not_trusted() {
    let (medium, store) = format(2 << 20);
    for name in ["whole", "part"] {
        create(&store, name, 9000);
        let mut writer = store.attach_writer(name, KEY).unwrap();
        writer.set_typed(true).unwrap();
        writer.detach().unwrap();
    }
    let mut part = store.attach_writer("part", KEY).unwrap();
    psync(&mut part, &[(0, &[1])]).unwrap();
    part.detach().unwrap();
    let expected = snapshot(&store).unwrap();
    drop(store);
    map(&medium);
    void_table_lane(&medium);
    let (at, _) = slot(&medium, "part");
    let entry: Entry = read_struct(&medium, at).unwrap();
    let mut line: Progress = read_struct(&medium, at + PROGRESS).unwrap();
    assert!(line.published.get() >= 9000);
    line.direct = U64::new(line.published.get());
    line.published = U64::new(4096);
    medium.write(at + PROGRESS, line.sealed(seed_of(&medium)).as_bytes()).unwrap();
    let mut psynced = expected.clone();
    psynced.get_mut("part").unwrap().2[4096..].fill(0);
    assert!(entry.extent_len() >= 9000);
    die(&copy(&medium), &psynced, false, &["part", "whole"]);
    medium.scribble(at + PROGRESS + 16..at + PROGRESS + 32, 3);
    die(&medium, &psynced, false, &["whole"]);
}

#[test]
fn an_object_that_had_its_pages_with_another_is_not_trusted() {
    let (medium, _) = settled(6);
    let store = open(&medium, 3).unwrap();
    let names: Vec<_> = snapshot(&store).unwrap().into_keys().collect();
    for name in &names {
        let mut writer = store.attach_writer(name, KEY).unwrap();
        writer.set_typed(true).unwrap();
        writer.detach().unwrap();
    }
    let expected = snapshot(&store).unwrap();
    drop(store);
    map(&medium);
    void_table_lane(&medium);
    let (one, other) = (slot(&medium, &names[0]).0, slot(&medium, &names[1]).0);
    let first: Entry = read_struct(&medium, one).unwrap();
    let mut entry: Entry = read_struct(&medium, other).unwrap();
    (entry.primary, entry.pages, entry.size) = (first.primary, first.pages, first.size);
    assert!(entry.binding.get() > first.binding.get());
    medium.write(other, entry.sealed(seed_of(&medium)).as_bytes()).unwrap();
    let left: Vec<_> = names[2..].iter().map(String::as_str).collect();
    let at_once = |medium: &SimMedium| match check(medium).is_clean() {
        true => trusted(medium, &expected).map(drop),
        false => Ok(()),
    };
    die_and(&medium, &expected, true, &left, &at_once);
}

/// The lost batch cleared the mark before foreign bytes were psynced.
#[test]
fn a_mark_that_was_taken_does_not_come_back_with_an_older_table() {
    let (medium, store) = format(2 << 20);
    for name in ["a", "idle", "renamed"] {
        create(&store, name, 9000);
        store.attach_writer(name, KEY).unwrap().set_typed(true).unwrap();
    }
    let typed = snapshot(&store).unwrap();
    drop(store);
    map(&medium);
    void_table_lane(&medium);
    let device = std::sync::Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut writer = store.attach_writer("a", KEY).unwrap();
    writer.set_typed(false).unwrap();
    psync_copied(&mut [(&mut writer, &[(700, &[9; 90])])]).unwrap();
    store.rename("renamed", "again", KEY).unwrap();
    store.rename("again", "renamed", KEY).unwrap();
    device.kill();
    std::mem::forget(writer);
    for choice in [Choice::None, Choice::All] {
        let image = medium.power_cut(choice).medium();
        let at = table_batches(&copy(&image));
        assert_eq!(at.len(), 4);
        let second = copy(&image);
        second.scribble(at[1] + 80..at[1] + 90, 5);
        die(&second, &typed, false, &[]);
        let first = copy(&image);
        first.scribble(TABLE_LANE..TABLE_LANE + BODY + LINE, 5);
        die(&first, &typed, true, &[]);
    }
}

#[test]
fn an_entry_that_tore_as_it_lost_the_mark_does_not_get_it_back() {
    let (medium, expected) = typed(Choice::None);
    let at = slot(&medium, "idle").0;
    let mut entry: Entry = read_struct(&medium, at).unwrap();
    entry.set(FLAG_TYPED, false);
    let entry = entry.sealed(seed_of(&medium));
    for part in [offset_of!(Entry, checksum), offset_of!(Entry, flags)] {
        let damaged = copy(&medium);
        damaged.write(at + part as u64, &entry.as_bytes()[part..part + 8]).unwrap();
        assert!(open(&damaged, 3).unwrap().attach_writer("idle", KEY).is_err());
        die(&damaged, &expected, false, &["a", "b"]);
    }
}
