use super::dead_lanes::batches;
use super::sample::{check, copy, create, format, map, open, try_repair};
use super::writers::void_table_lane;
use indelible_store::error::StoreError;
use indelible_store::format::entry::PROGRESS;
use indelible_store::store::{Severity, Store};
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, contents, process, psync_copied, recover_all, snapshot};
use indelible_testing::{Limits, SimMedium};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);
const SHARING: [&str; 3] = ["a", "b", "c"];

struct Left {
    image: SimMedium,
    slots: BTreeMap<&'static str, u64>,
    lane: u32,
    expected: Snapshot,
}

fn left() -> Vec<Left> {
    let (medium, store) = format(4 << 20);
    ["a", "b", "c", "idle"].iter().for_each(|name| create(&store, name, 9000));
    drop(store);
    medium.settle();
    let device = Arc::new(medium.handle());
    let store = Store::open(device.clone(), process(2)).unwrap();
    let mut writers = SHARING.map(|name| store.attach_writer(name, KEY).unwrap());
    for round in 1..7_u8 {
        let (at, new) = (u64::from(round) * 900, vec![round; 300]);
        let edits = [(at, &new[..])];
        let [a, b, c] = &mut writers;
        match round {
            1 | 4 => psync_copied(&mut [(a, &edits), (b, &edits), (c, &edits)]).unwrap(),
            3 => {
                psync_copied(&mut [(b, &edits)]).unwrap();
                b.checkpoint().unwrap();
            }
            _ => [c, a, b].into_iter().for_each(|one| psync_copied(&mut [(one, &edits)]).unwrap()),
        }
        if round == 1 {
            medium.forget_log();
        }
    }
    let slots = SHARING.iter().zip(&writers).map(|(name, writer)| (*name, writer.object().offset)).collect();
    let lane = writers[0].object().entry.lane.get();
    assert!(writers.iter().all(|writer| writer.object().entry.lane.get() == lane));
    device.kill();
    std::mem::forget(writers);
    let limits = Limits { exhaustive: 1, singles: 0, random: 1, points: 8, seed: 3 };
    let images = medium.power_cut_states(&limits);
    images
        .map(|image| {
            let image = image.medium();
            map(&image);
            void_table_lane(&image);
            let whole = copy(&image);
            let store = open(&whole, 3).unwrap();
            recover_all(&store).unwrap();
            let slots: BTreeMap<_, _> = BTreeMap::clone(&slots);
            Left { image, slots, lane, expected: snapshot(&store).unwrap() }
        })
        .collect()
}

fn shown(medium: &SimMedium, name: &str) -> Result<Vec<u8>, StoreError> {
    let store = open(medium, 4)?;
    let writer = store.attach_writer(name, KEY)?;
    contents(&store, writer.object())
}

fn refused(medium: &SimMedium, expected: &Snapshot, what: &str) -> BTreeMap<String, String> {
    let mut refused = BTreeMap::new();
    for (name, (_, _, bytes)) in expected {
        match shown(medium, name) {
            Ok(found) => assert!(found == *bytes, "{what}: {name:?} is shown, and wrong"),
            Err(StoreError::NotFound) => panic!("{what}: {name:?} is not found"),
            Err(error) => drop(refused.insert(name.clone(), error.to_string())),
        }
    }
    refused
}

fn assert_nothing_lost(medium: &SimMedium, expected: &Snapshot, what: &str) {
    assert_eq!(refused(medium, expected, what), BTreeMap::new(), "{what}");
}

fn is_reported(medium: &SimMedium) -> bool {
    check(medium).findings.iter().any(|finding| finding.severity >= Severity::Error)
}

#[test]
fn a_damaged_entry_costs_its_neighbours_nothing() {
    let mut images = 0;
    for Left { image, slots, expected, .. } in left() {
        images += 1;
        for (victim, slot) in &slots {
            for damage in ["bits", "noise"] {
                let what = format!("image {images}, entry of {victim}, {damage}");
                let damaged = copy(&image);
                let harm = |medium: &SimMedium| match damage {
                    "bits" => [9, 130].iter().for_each(|byte| medium.flip(slot + byte, 3)),
                    _ => medium.scribble(slot + 100..slot + 300, 1),
                };
                harm(&damaged);
                assert!(is_reported(&damaged), "{what}");
                let found = refused(&damaged, &expected, &what);
                assert!(found.contains_key(*victim) && !found.contains_key("idle"), "{what}: {found:?}");
                let others = found.iter().filter(|(name, _)| name != victim);
                others.for_each(|(_, why)| assert!(why.contains("pmo repair"), "{what}: {why}"));
                if damage == "bits" {
                    let undone = copy(&damaged);
                    harm(&undone);
                    assert_nothing_lost(&undone, &expected, &what);
                }
                let actions = try_repair(&damaged, true).unwrap();
                assert!(actions.iter().any(|action| action.lost.is_some()), "{what}: {actions:#?}");
                let mut others = expected.clone();
                others.remove(*victim);
                assert_nothing_lost(&damaged, &others, &what);
            }
        }
    }
    assert!(images > 10, "{images}");
}

#[test]
fn a_damaged_progress_line_costs_nobody_anything() {
    for (nth, Left { image, slots, expected, .. }) in left().into_iter().enumerate() {
        for (victim, slot) in &slots {
            let what = format!("image {nth}, progress of {victim}");
            let damaged = copy(&image);
            damaged.scribble(slot + PROGRESS + 16..slot + PROGRESS + 32, 3);
            let found = refused(&damaged, &expected, &what);
            assert!(found.keys().all(|name| name == victim), "{what}: {found:?}");
            assert!(try_repair(&damaged, false).unwrap().iter().all(|action| action.done), "{what}");
            assert_nothing_lost(&damaged, &expected, &what);
        }
    }
}

#[test]
fn an_unreadable_primary_costs_its_neighbours_nothing() {
    let mut met = 0;
    for (nth, Left { image, slots, expected, .. }) in left().into_iter().enumerate() {
        for victim in slots.keys() {
            let what = format!("image {nth}, primary of {victim}");
            let damaged = copy(&image);
            let store = open(&damaged, 3).unwrap();
            let start = store.find(victim).unwrap().entry.primary_offset();
            drop(store);
            let before = copy(&damaged);
            damaged.spoil(start + 3600..start + 4096);
            let found = refused(&damaged, &expected, &what);
            assert!(!found.contains_key("idle"), "{what}: {found:?}");
            let mut expected = expected.clone();
            if let Some((_, _, bytes)) = expected.get_mut("idle") {
                bytes[..100].fill(0x5a);
            }
            let device = Arc::new(damaged.handle());
            let store = Store::open(device.clone(), process(6)).unwrap();
            let try_victim = || store.attach_writer(victim, KEY).map(drop);
            store.attach_writer("idle", KEY).unwrap().detach().unwrap();
            let refused_first = try_victim().is_err();
            let mut idle = store.attach_writer("idle", KEY).unwrap();
            psync_copied(&mut [(&mut idle, &[(0, &[0x5a; 100][..])])]).unwrap();
            assert_eq!(try_victim().is_err(), refused_first, "{what}");
            device.kill();
            std::mem::forget(idle);
            met += u64::from(found.contains_key(*victim));
            let bytes = before.to_bytes();
            let sectors = (start + 3600) / 512 * 512..start + 4096;
            for at in sectors.step_by(512) {
                use indelible_store::medium::Medium;
                damaged.write(at, &bytes[at as usize..at as usize + 512]).unwrap();
            }
            assert_nothing_lost(&damaged, &expected, &what);
        }
    }
    assert!(met > 10, "{met}");
}

#[test]
fn a_damaged_batch_is_never_shown_as_a_psync() {
    let mut seen = [0, 0];
    for (nth, Left { image, lane, expected, .. }) in left().into_iter().enumerate() {
        let at = batches(&image, lane);
        for (number, pair) in at.windows(2).enumerate() {
            let what = format!("image {nth}, batch {number}");
            let damaged = copy(&image);
            let flip = || [80, 81].iter().for_each(|byte| damaged.flip(pair[0] + byte, 1));
            flip();
            let last = number + 2 == at.len();
            seen[usize::from(last)] += 1;
            if last {
                let store = open(&damaged, 3).unwrap();
                if recover_all(&store).is_err() {
                    assert!(is_reported(&damaged), "{what}");
                    continue;
                }
                let found = snapshot(&store).unwrap();
                let differ = SHARING.iter().filter(|name| found[**name].2 != expected[**name].2).count();
                assert!(found["idle"] == expected["idle"] && differ <= 3, "{what}");
                continue;
            }
            assert!(is_reported(&damaged), "{what}");
            let found = refused(&damaged, &expected, &what);
            assert!(found.keys().eq(SHARING.iter()), "{what}: {found:?}");
            assert!(try_repair(&damaged, false).unwrap().iter().any(|action| !action.done), "{what}");
            assert_eq!(refused(&damaged, &expected, &what).len(), 3, "{what}");
            flip();
            assert_nothing_lost(&damaged, &expected, &what);
        }
    }
    assert!(seen[0] > 10 && seen[1] > 5, "{seen:?}");
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};

    #[test]
    fn an_entry_taken_for_destroyed_is_noticed() {
        let check = super::a_damaged_entry_costs_its_neighbours_nothing;
        for mutant in [Mutant::UnreadIsAbsent, Mutant::RefusedBlocksAll] {
            let found = with_mutant(mutant, || std::panic::catch_unwind(check));
            assert!(found.is_err(), "{mutant:?} goes unnoticed");
        }
    }
}
