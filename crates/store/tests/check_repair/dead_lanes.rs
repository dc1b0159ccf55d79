use super::sample::{check, copy, create, format, open, same, try_repair};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::entry::PROGRESS;
use indelible_store::format::lane::BODY;
use indelible_store::medium::Medium;
use indelible_store::store::Store;
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, objects, process, psync, psync_copied, recover_all, snapshot};
use indelible_testing::{Choice, Fault, OpKind, SimMedium};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);
const NAMES: [&str; 3] = ["a", "b", "idle"];

/// A process psynced typed "a" and "b" in one step, three times, and died; `choice` decides what is
/// in place. Also each step's state.
pub fn dead(choice: Choice) -> (SimMedium, Vec<Snapshot>) {
    let (medium, store) = format(4 << 20);
    NAMES.iter().for_each(|name| create(&store, name, 9000));
    drop(store);
    medium.settle();
    let device = Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut states = vec![snapshot(&store).unwrap()];
    store.attach_writer("idle", KEY).unwrap().set_typed(true).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    let mut b = store.attach_writer("b", KEY).unwrap();
    [&mut a, &mut b].into_iter().for_each(|writer| writer.set_typed(true).unwrap());
    for round in 1..4_u8 {
        let (at, new) = (u64::from(round) * 640, [round; 200]);
        psync_copied(&mut [(&mut a, &[(at, &new)]), (&mut b, &[(at, &new)])]).unwrap();
        states.push(snapshot(&store).unwrap());
    }
    device.kill();
    std::mem::forget((a, b));
    (medium.power_cut(choice).medium(), states)
}

pub fn slot(medium: &SimMedium, name: &str) -> (u64, u32) {
    let all = objects(&open(medium, 3).unwrap()).unwrap();
    let found = all.iter().find(|object| object.entry.name() == name).unwrap();
    (found.offset, found.entry.lane.get())
}

pub fn batches(medium: &SimMedium, index: u32) -> Vec<u64> {
    let store = open(medium, 3).unwrap();
    let lane = store.lanes().unwrap().into_iter().find(|lane| lane.index == Some(index)).unwrap();
    let mut at = vec![lane.offset + BODY];
    for batch in &lane.batches {
        let runs: u64 = batch.sections.iter().map(|section| u64::from(section.runs.get())).sum();
        let tail = 48 * batch.sections.len() as u64 + 16 * runs;
        at.push(at.last().unwrap() + (64 + 64 * batch.lines + tail).next_multiple_of(64));
    }
    at
}

fn attach(medium: &SimMedium, name: &str) -> Result<()> {
    open(medium, 4)?.attach_writer(name, KEY)?.detach()
}

#[track_caller]
fn assert_recovers(medium: &SimMedium, expected: &Snapshot) {
    let store = open(medium, 5).unwrap();
    recover_all(&store).unwrap();
    same(&snapshot(&store).unwrap(), expected).unwrap();
}

#[test]
fn a_read_that_fails_once_costs_no_psync() {
    for choice in [Choice::None, Choice::All] {
        let (medium, states) = dead(choice);
        let reads = {
            let tried = copy(&medium);
            let before = tried.count(OpKind::Read);
            attach(&tried, "a").unwrap();
            tried.count(OpKind::Read) - before
        };
        let mut refused = 0;
        for nth in 0..reads {
            let tried = copy(&medium);
            tried.fail_at(OpKind::Read, nth, Fault::Io);
            refused += u64::from(attach(&tried, "a").is_err());
            tried.clear_faults();
            let found = std::panic::catch_unwind(|| assert_recovers(&tried, &states[3]));
            assert!(found.is_ok(), "read {nth} of {reads} failed");
        }
        assert!(refused > 5, "{refused} of {reads}");
    }
}

#[test]
fn a_damaged_entry_keeps_the_lane_that_has_its_psyncs() {
    let (medium, states) = dead(Choice::None);
    let lane = slot(&medium, "a").1;
    assert_eq!(lane, slot(&medium, "b").1);
    super::writers::void_table_lane(&medium);
    for (name, other) in [("a", "b"), ("b", "a")] {
        let entry = slot(&medium, name).0;
        for byte in [0, 9, 100, 400] {
            let damaged = copy(&medium);
            damaged.flip(entry + byte, 2);
            let error = attach(&damaged, other).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("lane {lane}")) && text.contains("pmo repair"), "{text}");
            assert!(text.contains(&format!("entry at {entry}")), "{text}");
            damaged.flip(entry + byte, 2);
            assert_recovers(&damaged, &states[3]);
        }
    }
}

#[test]
fn an_unreadable_entry_keeps_the_lane_that_has_its_psyncs() {
    let (medium, states) = dead(Choice::None);
    let (b, lane) = slot(&medium, "b");
    super::writers::void_table_lane(&medium);
    let image = copy(&medium);
    medium.spoil(b..b + 512);
    let error = attach(&medium, "a").unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("lane {lane}")) && text.contains("cannot be read"), "{text}");
    assert_recovers(&image, &states[3]);
}

#[test]
fn a_damaged_lane_costs_its_lane_and_its_objects_and_nothing_else() {
    let (medium, states) = dead(Choice::All);
    let (_, lane) = slot(&medium, "a");
    let second = batches(&medium, lane)[1];
    let flip = || [80, 81].iter().for_each(|byte| medium.flip(second + byte, 1));
    flip();
    let idle = states[3]["idle"].2.clone();
    for pid in 10..13 {
        let store = open(&medium, pid).unwrap();
        create(&store, &format!("new {pid}"), 5000);
        let mut other = store.attach_writer("idle", KEY).unwrap();
        assert_ne!(other.object().entry.lane.get(), lane);
        psync(&mut other, &[(0, &[pid as u8])]).unwrap();
        for name in ["a", "b"] {
            let Err(error) = store.attach_writer(name, KEY) else { panic!("{name} was attached") };
            let text = error.to_string();
            assert!(text.contains(&format!("lane {lane}")) && text.contains("pmo repair"), "{text}");
            assert!(store.attach_reader(name, KEY).is_err());
        }
        let writers = ["x", "y"].map(|name| {
            create(&store, &format!("{name} {pid}"), 100);
            store.attach_writer(&format!("{name} {pid}"), KEY).unwrap()
        });
        assert!(writers.iter().all(|writer| writer.object().entry.lane.get() != lane));
        assert_eq!(idle.len(), 9000);
    }
    flip();
    let store = open(&medium, 20).unwrap();
    recover_all(&store).unwrap();
    let found = snapshot(&store).unwrap();
    assert!(found["a"] == states[3]["a"] && found["b"] == states[3]["b"]);
}

#[test]
fn a_lane_without_a_header_blocks_no_other() {
    let (medium, _) = dead(Choice::All);
    let (_, lane) = slot(&medium, "a");
    let start = batches(&medium, lane)[0] - BODY;
    medium.scribble(start..start + BODY + 64, 7);
    let store = open(&medium, 10).unwrap();
    create(&store, "new", 5000);
    assert!(matches!(attach(&medium, "a"), Err(StoreError::LaneRefused { .. })));
    drop(store);
    try_repair(&medium, true).unwrap();
    assert!(check(&medium).is_clean());
    attach(&medium, "a").unwrap();
}

#[test]
fn a_last_batch_that_was_applied_is_not_taken_for_torn() {
    let (medium, store) = format(4 << 20);
    create(&store, "a", 9000);
    drop(store);
    medium.settle();
    let device = Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    for round in 1..4_u8 {
        psync(&mut a, &[(u64::from(round) * 640, &[round; 200])]).unwrap();
    }
    let (slot, lane) = (a.object().offset, a.object().entry.lane.get());
    medium.fail_at(OpKind::Barrier, 0, Fault::Kill);
    a.checkpoint().unwrap_err();
    medium.clear_faults();
    std::mem::forget(a);
    device.kill();
    let image = medium.power_cut(Choice::All).medium();
    let at = batches(&image, lane);
    let last = at[at.len() - 2];
    assert!(image.len() > slot + PROGRESS);
    image.scribble(last..*at.last().unwrap(), 3);
    let error = attach(&image, "a").unwrap_err();
    assert!(matches!(error, StoreError::LaneRefused { .. }), "{error}");
    let report = check(&image);
    assert!(!report.is_clean(), "{report:#?}");
    let actions = try_repair(&image, false).unwrap();
    assert!(actions.iter().any(|action| !action.done), "{actions:#?}");
}

#[test]
fn a_page_of_entries_that_cannot_be_read_is_not_taken_for_free() {
    use indelible_store::format::{PAGE, TABLE_ROOT};
    let (medium, expected) = super::sample::settled(6);
    let (entry, _) = slot(&medium, "renamed");
    medium.scribble(TABLE_ROOT..TABLE_ROOT + PAGE, 3);
    let before = copy(&medium);
    medium.spoil(entry..entry + 512);
    let actions = try_repair(&medium, false).unwrap();
    assert!(actions.iter().any(|action| !action.done), "{actions:#?}");
    let data = indelible_store::format::DATA as usize;
    assert!(
        medium.to_bytes()[data..] == before.to_bytes()[data..],
        "something was written to the data region"
    );
    try_repair(&before, false).unwrap();
    assert_recovers(&before, &expected);
}

#[test]
fn one_wrong_bit_in_a_batch_is_put_right() {
    for choice in [Choice::None, Choice::All] {
        let (medium, states) = dead(choice);
        let (_, lane) = slot(&medium, "a");
        let at = batches(&medium, lane);
        for (index, byte) in (at[0]..*at.last().unwrap()).step_by(13).enumerate() {
            let damaged = copy(&medium);
            damaged.flip(byte, index as u32 % 8);
            let report = check(&damaged);
            let batch = at.iter().rev().find(|start| **start <= byte).unwrap();
            assert!(report.findings.iter().any(|finding| finding.offset == *batch), "{byte}: {report:#?}");
            if index % 2 == 0 {
                assert!(try_repair(&damaged, false).unwrap().iter().all(|action| action.done));
            }
            assert_recovers(&damaged, &states[3]);
        }
    }
}
