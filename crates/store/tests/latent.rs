use indelible_store::store::{Severity, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync, recover_all, snapshot};
use indelible_testing::scenario::formatted;
use indelible_testing::{Choice, SimConfig};
use std::sync::Arc;

const LEN: u64 = 1 << 20;
const SECTOR: u64 = 512;

#[test]
fn every_unreadable_sector_is_detected_or_does_not_matter() {
    let medium = formatted(LEN, SimConfig::default());
    let store = Store::open(Arc::new(medium.handle()), process(1)).unwrap();
    for name in ["a", "b"] {
        store.create(name, &CreateOptions { size: 9000, ..CreateOptions::default() }).unwrap();
    }
    let mut a = store.attach_writer("a", Key::default()).unwrap();
    psync(&mut a, &[(0, &[1; 9000])]).unwrap();
    psync(&mut a, &[(64, &[2; 300])]).unwrap();
    let promised = snapshot(&store).unwrap();
    std::mem::forget(a);
    let image = medium.power_cut(Choice::None);

    let (mut refused, mut reported) = (0, 0);
    for sector in 0..LEN / SECTOR {
        let medium = image.medium();
        medium.spoil(sector * SECTOR..(sector + 1) * SECTOR);
        let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {});
        let clean = report
            .is_ok_and(|report| report.findings.iter().all(|finding| finding.severity < Severity::Warning));
        reported += u64::from(!clean);
        let found = Store::open(Arc::new(medium.handle()), process(2))
            .and_then(|store| recover_all(&store).and_then(|()| snapshot(&store)));
        match found {
            Ok(found) => assert_eq!(found, promised, "sector {sector} is unreadable, without an error"),
            Err(_) => refused += 1,
        }
    }
    println!("{refused} sectors refused by a call, {reported} reported by the check");
    assert!(refused > 10 && (10..1000).contains(&reported));
}
