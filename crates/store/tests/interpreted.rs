//! A pool's life in plain memory, for Miri, which spends minutes, mostly in checksums.

use indelible_store::medium::volatile::VolatileMedium;
use indelible_store::store::{FormatOptions, RepairOptions, Store, Window};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::SMALL;
use indelible_testing::pool::{check_tiling, contents, process, psync, psync_many, recover_all, snapshot};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn format() -> (Arc<VolatileMedium>, Arc<Store>) {
    let device = Arc::new(VolatileMedium::with_transfers(1 << 20, SMALL.with_scan(512)));
    let how = FormatOptions {
        zeroed: true,
        window: Some(Window { start: 0x4000_0000_0000, len: 1 << 30 }),
        ..FormatOptions::default()
    };
    let store = Store::format(device.clone(), process(1), &how).unwrap();
    (device, store)
}

fn create(store: &Arc<Store>, name: &str, size: u64) {
    store.create(name, &CreateOptions { size, ..CreateOptions::default() }).unwrap();
}

#[test]
fn a_writer_dies_and_is_recovered() {
    let (device, store) = format();
    create(&store, "a", 100);
    create(&store, "b", 5000);
    let mut a = store.attach_writer("a", KEY).unwrap();
    let mut b = store.attach_writer("b", KEY).unwrap();
    psync_many(&mut [(&mut a, &[(3, b"first")]), (&mut b, &[(4990, b"last")])]).unwrap();
    psync(&mut a, &[(3, b"FIRST")]).unwrap();
    let before = snapshot(&store).unwrap();
    std::mem::forget((a, b));
    drop(store);
    let store = Store::open(device, process(2)).unwrap();
    recover_all(&store).unwrap();
    assert!(snapshot(&store).unwrap() == before);
    check_tiling(&store).unwrap();
}

#[test]
fn objects_grow_and_go() {
    let (_, store) = format();
    create(&store, "a", 100);
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, b"kept")]).unwrap();
    a.begin_direct(4096).unwrap();
    a.detach().unwrap();
    store.resize("a", KEY, 9000).unwrap();
    store.rename("a", "b", KEY).unwrap();
    let found = store.find("b").unwrap();
    assert_eq!(contents(&store, &found).unwrap()[..4], *b"kept");
    store.destroy("b", KEY).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "both read and search every page of the pool")]
fn nothing_is_found_and_nothing_repaired() {
    let (device, store) = format();
    create(&store, "a", 100);
    drop(store);
    let report = Store::check(device.clone(), &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:#?}");
    assert!(Store::repair(device, &RepairOptions::default(), &mut |_, _| {}).unwrap().is_empty());
}

#[test]
fn threads_psync_beside_each_other() {
    let (_, store) = format();
    for name in ["a", "b"] {
        create(&store, name, 100);
    }
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let store = &store;
            scope.spawn(move || {
                let mut writer = store.attach_writer(name, KEY).unwrap();
                (0..2).for_each(|round| psync(&mut writer, &[(0, &[round])]).unwrap());
                writer.detach().unwrap();
            });
        }
    });
}
