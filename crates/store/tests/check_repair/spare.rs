use super::sample::{assert_clean, assert_holds, check, config, copy, create, open, repair, try_repair};
use indelible_store::error::StoreError;
use indelible_store::format::superblock::SLOTS;
use indelible_store::format::{PAGE, TABLE_ROOT};
use indelible_store::medium::Medium;
use indelible_store::store::{FormatOptions, Severity, Store, Window};
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, process, snapshot};
use indelible_testing::{Choice, Fault, OpKind, SimMedium};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn made(spare: bool) -> (SimMedium, Snapshot) {
    let medium = SimMedium::new(4 * MIB + PAGE, config());
    let window = Some(Window { start: 0x4000_0000_0000, len: 1 << 38 });
    let how = FormatOptions { zeroed: true, window, spare, ..FormatOptions::default() };
    let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
    (0..5).for_each(|index| create(&store, &format!("object {index}"), 3000 * (index + 1)));
    let expected = snapshot(&store).unwrap();
    drop(store);
    medium.settle();
    (medium, expected)
}

/// As after `mkfs` or `dd`.
fn lose_slots(medium: &SimMedium, byte: u8) {
    medium.write(0, &[byte; 2 * PAGE as usize]).unwrap();
    medium.settle();
}

#[track_caller]
fn comes_back(medium: &SimMedium, expected: &Snapshot) {
    let report = check(medium);
    let slots = report.findings.iter().filter(|finding| SLOTS.contains(&finding.offset));
    assert_eq!(slots.filter(|finding| finding.severity == Severity::Error).count(), 2, "{report:?}");
    assert!(report.findings[0].remedy.contains("repair rewrites it"), "{report:?}");
    repair(medium);
    assert!(check(medium).findings.is_empty());
    assert_holds(medium, expected);
    assert!(try_repair(medium, false).unwrap().is_empty());
}

#[test]
fn a_pool_that_has_lost_both_superblock_slots_is_repaired_from_the_copy_behind_it() {
    let (medium, expected) = made(true);
    assert!(check(&medium).findings.is_empty());
    for byte in [0, 0xa5] {
        let lost = copy(&medium);
        lose_slots(&lost, byte);
        assert!(open(&lost, 2).is_err());
        comes_back(&lost, &expected);
    }
}

#[test]
fn the_copy_is_found_on_a_medium_that_is_longer_than_the_pool() {
    let (medium, expected) = made(true);
    medium.extend(9 * MIB).unwrap();
    lose_slots(&medium, 0);
    comes_back(&medium, &expected);
}

#[test]
fn a_pool_that_became_longer_is_repaired_from_the_copy_behind_its_new_end() {
    let (medium, expected) = made(true);
    open(&medium, 2).unwrap().lengthen(8 * MIB).unwrap();
    medium.settle();
    lose_slots(&medium, 0);
    comes_back(&medium, &expected);
    assert_eq!(open(&medium, 3).unwrap().info().unwrap().length, 8 * MIB);
}

#[test]
fn a_growth_that_is_cut_short_leaves_a_copy() {
    let (medium, expected) = made(true);
    for kind in OpKind::ALL {
        for nth in 0.. {
            let grown = copy(&medium);
            let store = open(&grown, 2).unwrap();
            grown.fail_at(kind, nth, Fault::Kill);
            let _ = store.lengthen(8 * MIB);
            let met = grown.faults_met() > 0;
            grown.clear_faults();
            for choice in [Choice::All, Choice::Random(nth), Choice::None] {
                let image = grown.power_cut(choice).medium();
                lose_slots(&image, 0);
                repair(&image);
                assert_clean(&image);
                assert_holds(&image, &expected);
            }
            if !met {
                break;
            }
        }
    }
}

#[test]
fn a_medium_without_the_copy_or_with_another_table_is_refused() {
    let (medium, _) = made(true);
    let other = copy(&medium);
    other.extend(6 * MIB).unwrap();
    other.write(TABLE_ROOT, &[1; PAGE as usize]).unwrap();
    other.write(TABLE_ROOT + PAGE, &[2; 3 * PAGE as usize]).unwrap();
    lose_slots(&other, 0);
    assert!(matches!(try_repair(&other, true), Err(StoreError::NotAPool)));
    let (medium, _) = made(false);
    let note = &check(&medium).findings;
    assert!(note.is_empty(), "it is in use to its end: {note:?}");
    lose_slots(&medium, 0);
    assert!(matches!(try_repair(&medium, true), Err(StoreError::NotAPool)));
    let (medium, _) = made(false);
    for slot in SLOTS {
        medium.write(slot + 100, &[7; 100]).unwrap();
    }
    medium.settle();
    assert!(matches!(try_repair(&medium, true), Err(StoreError::NoSuperblock)));
    assert!(check(&medium).findings.iter().all(|finding| finding.remedy.contains("from a backup")));
}

#[test]
fn a_copy_that_is_missing_is_noted_and_written_by_repair_or_growth() {
    let (medium, expected) = made(true);
    for grows in [false, true] {
        let damaged = copy(&medium);
        damaged.write(4 * MIB, &[0; PAGE as usize]).unwrap();
        damaged.settle();
        let found = assert_clean(&damaged).findings;
        assert!(found.len() == 1 && found[0].what.contains("copy of the superblock"), "{found:?}");
        match grows {
            true => drop(open(&damaged, 2).unwrap().lengthen(4 * MIB).unwrap()),
            false => drop(repair(&damaged)),
        }
        lose_slots(&damaged, 0);
        comes_back(&damaged, &expected);
    }
}

fn cut(medium: &SimMedium, len: u64) -> SimMedium {
    let mut bytes = vec![0; len as usize];
    medium.read(0, &mut bytes).unwrap();
    let shorter = SimMedium::new(len, config());
    shorter.write(0, &bytes).unwrap();
    shorter.settle();
    shorter
}

#[test]
fn a_pool_that_lost_free_space_alone_is_whole_once_it_is_as_long_as_before() {
    let (medium, expected) = made(true);
    let shorter = cut(&medium, 3 * MIB);
    assert!(matches!(open(&shorter, 2), Err(StoreError::Truncated { .. })));
    let report = check(&shorter);
    let [found] = &report.findings[..] else { panic!("{report:?}") };
    assert!(found.what.contains("free space alone"), "{found:?}");
    assert!(found.remedy.contains(&format!("truncate -s {}", 4 * MIB)), "{found:?}");
    shorter.extend(4 * MIB).unwrap();
    shorter.settle();
    assert_clean(&shorter);
    assert_holds(&shorter, &expected);
}

#[test]
fn a_pool_that_lost_parts_of_objects_names_them() {
    let (medium, expected) = made(true);
    let store = open(&medium, 2).unwrap();
    create(&store, "large", MIB);
    let at = store.find("large").unwrap().entry.primary_offset();
    drop(store);
    medium.settle();
    let shorter = cut(&medium, at + MIB / 2 + 5);
    let report = check(&shorter);
    let named: Vec<_> = report.findings.iter().filter_map(|finding| finding.object.as_deref()).collect();
    assert_eq!(named, ["large"], "{report:?}");
    assert!(report.findings[0].what.contains(&format!("{} bytes", MIB / 2)), "{report:?}");
    shorter.extend(4 * MIB).unwrap();
    shorter.settle();
    let store = open(&shorter, 3).unwrap();
    store.destroy("large", Key::default()).unwrap();
    drop(store);
    assert_holds(&shorter, &expected);
}
