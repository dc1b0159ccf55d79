use super::sample::{assert_clean, check, config, create, format, open};
use indelible_store::error::StoreError;
use indelible_store::store::{FormatOptions, Severity, Store, Window};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync};
use indelible_testing::{Limits, SimConfig, SimMedium, for_each_crash};
use std::sync::Arc;

#[test]
fn an_empty_pool() {
    let (medium, store) = format(1 << 20);
    assert!(assert_clean(&medium).findings.is_empty());
    drop(store);
    assert!(assert_clean(&medium).findings.is_empty());
}

#[test]
fn through_churn() {
    let (medium, store) = format(64 << 20);
    let mut state = 1_u64;
    let mut names: Vec<String> = Vec::new();
    for step in 0..600_u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let pick = (state >> 33) as usize;
        match pick % 5 {
            0 if !names.is_empty() => {
                let name = names.swap_remove(pick / 5 % names.len());
                store.destroy(&name, Key::default()).unwrap();
            }
            1 if !names.is_empty() => {
                let size = 1 + pick as u64 / 7 % 200_000;
                match store.resize(&names[pick / 5 % names.len()], Key::default(), size) {
                    Ok(_) | Err(StoreError::NoAddresses { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            2 if !names.is_empty() => {
                let mut writer = store.attach_writer(&names[pick / 5 % names.len()], Key::default()).unwrap();
                psync(&mut writer, &[(0, &step.to_le_bytes())]).unwrap();
            }
            _ => {
                let name = format!("object {step}");
                let size = 1 + pick as u64 / 11 % 100_000;
                store.create(&name, &CreateOptions { size, ..CreateOptions::default() }).unwrap();
                names.push(name);
            }
        }
        if step % 50 == 0 {
            assert!(assert_clean(&medium).findings.is_empty());
        }
    }
    assert_eq!(assert_clean(&medium).objects, names.len() as u64);
    for name in names {
        store.destroy(&name, Key::default()).unwrap();
    }
    assert!(assert_clean(&medium).findings.is_empty());
}

#[test]
fn many_objects() {
    let (medium, store) = format(64 << 20);
    for index in 0..2500 {
        let how = CreateOptions { size: 1, reach: 4096, ..CreateOptions::default() };
        store.create(&format!("{index:05}"), &how).unwrap();
    }
    for index in (0..2500).filter(|index| index % 3 == 0) {
        store.destroy(&format!("{index:05}"), Key::default()).unwrap();
    }
    let report = assert_clean(&medium);
    assert!(report.findings.is_empty());
    assert_eq!(report.objects, 2500 - 834);
}

#[test]
fn while_others_have_objects_attached() {
    let (medium, store) = format(4 << 20);
    create(&store, "read", 5000);
    create(&store, "written", 5000);
    let reader = store.attach_reader("read", Key::default()).unwrap();
    let mut writer = store.attach_writer("written", Key::default()).unwrap();
    for value in 0..40_u8 {
        psync(&mut writer, &[(u64::from(value) * 100, &[value; 90])]).unwrap();
        assert!(assert_clean(&medium).findings.is_empty());
    }
    writer.checkpoint().unwrap();
    assert!(assert_clean(&medium).findings.is_empty());
    let device = Arc::new(medium.read_only_handle());
    let report = Store::check(device, &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:#?}");
    drop((reader, writer));
}

#[test]
fn while_a_dead_writer_s_batches_wait() {
    let (medium, store) = format(4 << 20);
    create(&store, "other", 5000);
    let dying = Arc::new(medium.handle());
    let theirs = Store::open(dying.clone(), process(2)).unwrap();
    create(&theirs, "left", 5000);
    let mut writer = theirs.attach_writer("left", Key::default()).unwrap();
    for value in 1..4_u8 {
        psync(&mut writer, &[(0, &[value; 64])]).unwrap();
    }
    dying.kill();
    drop((writer, store, theirs));
    let report = assert_clean(&medium);
    let [note] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!((note.severity, note.object.as_deref()), (Severity::Note, Some("left")));
    assert!(note.what.contains("3 batches wait"), "{note}");
    assert_eq!(report.waiting, 3);
    let store = open(&medium, 3).unwrap();
    drop(store.attach_writer("left", Key::default()).unwrap());
    assert!(assert_clean(&medium).findings.is_empty());
}

#[test]
fn after_every_crash() {
    for disk in [false, true] {
        let config = SimConfig { disk, ..config() };
        let medium = SimMedium::new(2 << 20, config);
        let how = FormatOptions {
            window: Some(Window { start: 0x4000_0000_0000, len: 1 << 30 }),
            ..FormatOptions::default()
        };
        let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
        (0..3).for_each(|index| create(&store, &format!("{index}"), 3000));
        drop(store);
        medium.settle();
        for_each_crash(
            &medium,
            |medium| {
                let store = open(medium, 2).unwrap();
                store.create("new", &CreateOptions { size: 20_000, ..CreateOptions::default() }).unwrap();
                let mut writer = store.attach_writer("new", Key::default()).unwrap();
                let mut other = store.attach_writer("1", Key::default()).unwrap();
                for round in 0..3_u8 {
                    psync(&mut writer, &[(u64::from(round) * 500, &[round; 700])]).unwrap();
                    psync(&mut other, &[(0, &[round; 30])]).unwrap();
                }
                writer.checkpoint().unwrap();
                writer.begin_direct(16_384).unwrap();
                writer.write_direct(8192, &[5; 4096]).unwrap();
                writer.end_direct().unwrap();
                psync(&mut writer, &[(1000, &[9; 300])]).unwrap();
                writer.grow(40_000).unwrap();
                psync(&mut writer, &[(0, &[3; 40_000])]).unwrap();
                writer.detach().unwrap();
                store.resize("0", Key::default(), 14_000).unwrap();
                store.destroy("2", Key::default()).unwrap();
                store.rename("1", "renamed", Key::default()).unwrap_err();
                other.detach().unwrap();
                store.rename("1", "renamed", Key::default()).unwrap();
            },
            |image| {
                let report = check(&image.medium());
                if report.is_clean() { Ok(()) } else { Err(format!("{report:#?}")) }
            },
            &Limits { exhaustive: 8, singles: 4, random: 4, ..Limits::default() },
        )
        .unwrap();
    }
}

/// `INDELIBLE_OBJECTS=1000000` in release makes four levels.
#[test]
fn a_table_of_three_levels_is_found_again_without_its_root() {
    let count: u64 = std::env::var("INDELIBLE_OBJECTS").map_or(20_000, |count| count.parse().unwrap());
    let (medium, store) = format(16 << 30);
    for index in 0..count {
        let how = CreateOptions { size: 1, reach: 4096, sparse: true, ..CreateOptions::default() };
        store.create(&format!("{index}"), &how).unwrap();
        if index % 1000 == 0 {
            medium.settle();
        }
    }
    drop(store);
    let begin = std::time::Instant::now();
    assert_eq!(assert_clean(&medium).objects, count);
    let checked = begin.elapsed();
    medium.scribble(indelible_store::format::TABLE_ROOT..indelible_store::format::TABLE_ROOT + 4096, 1);
    medium.scribble(indelible_store::format::TABLE_LANE..indelible_store::format::DATA, 1);
    let begin = std::time::Instant::now();
    super::sample::repair(&medium);
    eprintln!("check {checked:?}, repair without a root {:?}", begin.elapsed());
    assert_eq!(assert_clean(&medium).objects, count);
}
