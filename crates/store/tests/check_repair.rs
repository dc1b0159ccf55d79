//! Check finds what is wrong and nothing else; repair brings back what was intact.

use indelible_store::error::StoreError;
use indelible_store::medium::Device;
use indelible_store::store::{FormatOptions, Report, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync};
use indelible_testing::{SimConfig, SimMedium};
use std::sync::Arc;

fn check(medium: &SimMedium) -> Report {
    let device: Arc<dyn Device> = Arc::new(medium.handle());
    Store::check(device, &mut |done, total| assert!(done <= total)).unwrap()
}

fn assert_clean(medium: &SimMedium) -> Report {
    let report = check(medium);
    assert!(report.is_clean(), "{report:#?}");
    report
}

fn format(len: u64) -> (SimMedium, Arc<Store>) {
    let medium = SimMedium::new(len, SimConfig::default());
    let how = FormatOptions { zeroed: true, ..FormatOptions::default() };
    let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
    (medium, store)
}

#[test]
fn an_empty_pool_is_clean() {
    let (medium, _store) = format(1 << 20);
    assert!(assert_clean(&medium).findings.is_empty());
}

#[test]
fn a_pool_stays_clean_through_churn() {
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
}
