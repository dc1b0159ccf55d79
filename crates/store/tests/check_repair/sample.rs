use indelible_store::error::{Result, StoreError};
use indelible_store::format::entry::Entry;
use indelible_store::format::root::TREES;
use indelible_store::format::{TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::lane::LaneLog;
use indelible_store::medium::{Device, read_struct};
use indelible_store::space::TableTransaction;
use indelible_store::store::{FormatOptions, RepairAction, RepairOptions, Report, Store, Window};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, contents, objects, process, psync, snapshot};
use indelible_testing::{Choice, SimConfig, SimMedium, TearUnit};
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::little_endian::U64;

pub fn config() -> SimConfig {
    SimConfig { tear_unit: TearUnit::Word, ..SimConfig::default() }
}

pub fn format(len: u64) -> (SimMedium, Arc<Store>) {
    let medium = SimMedium::new(len, config());
    let window = Some(Window { start: 0x4000_0000_0000, len: 1 << 38 });
    let how = FormatOptions { zeroed: true, window, ..FormatOptions::default() };
    let store = Store::format(Arc::new(medium.handle()), process(1), &how).unwrap();
    (medium, store)
}

pub fn open(medium: &SimMedium, pid: u32) -> Result<Arc<Store>> {
    Store::open(Arc::new(medium.handle()), process(pid))
}

pub fn check(medium: &SimMedium) -> Report {
    let device: Arc<dyn Device> = Arc::new(medium.handle());
    Store::check(device, &mut |done, total| assert!(done <= total)).unwrap()
}

#[track_caller]
pub fn assert_clean(medium: &SimMedium) -> Report {
    let report = check(medium);
    assert!(report.is_clean(), "{report:#?}");
    report
}

pub fn try_repair(medium: &SimMedium, drop_damaged: bool) -> Result<Vec<RepairAction>> {
    let options = RepairOptions { dry_run: false, drop_damaged };
    Store::repair(Arc::new(medium.handle()), &options, &mut |_, _| {})
}

#[track_caller]
pub fn repair(medium: &SimMedium) -> Vec<RepairAction> {
    let actions = try_repair(medium, false).unwrap();
    assert!(actions.iter().all(|action| action.done), "{actions:#?}");
    assert!(actions.iter().all(|action| action.lost.is_none() || action.lost.as_deref() != Some("")));
    actions
}

pub fn bytes_of(name: &str, size: u64) -> Vec<u8> {
    (0..size)
        .map(|at| (at as u8).wrapping_mul(31).wrapping_add(name.len() as u8 + name.as_bytes()[0]))
        .collect()
}

pub fn create(store: &Arc<Store>, name: &str, size: u64) {
    store.create(name, &CreateOptions { size, ..CreateOptions::default() }).unwrap();
    let mut writer = store.attach_writer(name, Key::default()).unwrap();
    psync(&mut writer, &[(0, &bytes_of(name, size))]).unwrap();
    writer.detach().unwrap();
}

pub fn copy(medium: &SimMedium) -> SimMedium {
    medium.power_cut(Choice::All).medium()
}

pub fn settled(count: usize) -> (SimMedium, Snapshot) {
    let (medium, expected) = sample(count);
    let seed = seed_of(&medium);
    let mut log = LaneLog::read(&medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    log.next_generation(&medium, seed).unwrap();
    medium.settle();
    (medium, expected)
}

pub fn sample(count: usize) -> (SimMedium, Snapshot) {
    let (medium, store) = format(4 << 20);
    for index in 0..count + 6 {
        create(&store, &format!("object {index}"), 100 + 700 * index as u64);
    }
    for index in (0..6).map(|index| index * 2 + 1) {
        store.destroy(&format!("object {index}"), Key::default()).unwrap();
    }
    let small = CreateOptions { size: 1, reach: 1, ..CreateOptions::default() };
    for index in 0..180 {
        store.create(&format!("small {index}"), &small).unwrap();
    }
    (0..180).for_each(|index| store.destroy(&format!("small {index}"), Key::default()).unwrap());
    store.resize("object 0", Key::default(), 9000).unwrap();
    store.rename("object 2", "renamed", Key::default()).unwrap();
    let expected = snapshot(&store).unwrap();
    drop(store);
    medium.settle();
    assert!(assert_clean(&medium).findings.is_empty());
    (medium, expected)
}

pub fn judge(medium: &SimMedium, expected: &Snapshot) -> Result<(), String> {
    let Ok(store) = open(medium, 7) else { return Ok(()) };
    for (name, (id, _, bytes)) in expected {
        match store.find(name) {
            Ok(found) if found.entry.id != *id => return Err(format!("{name:?} is another object")),
            Ok(_) => {}
            Err(StoreError::NotFound) => return Err(format!("{name:?} is not there")),
            Err(_) => continue,
        }
        for writing in [false, true] {
            let attached = match writing {
                false => store.attach_reader(name, Key::default()).map(|reader| *reader.object()),
                true => store.attach_writer(name, Key::default()).map(|writer| *writer.object()),
            };
            match attached {
                Ok(object) if contents(&store, &object).is_ok_and(|found| found == *bytes) => {}
                Ok(_) => return Err(format!("{name:?} has other bytes")),
                Err(StoreError::NotFound) => return Err(format!("{name:?} is not there any more")),
                Err(_) => {}
            }
        }
    }
    match objects(&store) {
        Ok(all) if all.len() != expected.len() => Err(format!("{} objects are listed", all.len())),
        Ok(all) => match all.iter().find(|object| !expected.contains_key(&object.entry.name())) {
            Some(object) => Err(format!("{:?} should not be there", object.entry.name())),
            None => Ok(()),
        },
        Err(_) => Ok(()),
    }
}

#[track_caller]
pub fn assert_whole(medium: &SimMedium, expected: &Snapshot) {
    let report = check(medium);
    assert!(report.findings.is_empty(), "{report:#?}");
    assert_holds(medium, expected);
}

pub fn same(found: &Snapshot, expected: &Snapshot) -> Result<(), String> {
    if !found.keys().eq(expected.keys()) {
        return Err(format!("{:?} instead of {:?}", found.keys(), expected.keys()));
    }
    let Some((name, object)) = found.iter().find(|(name, object)| **object != expected[*name]) else {
        return Ok(());
    };
    let differs = object.2.iter().zip(&expected[name].2).position(|(a, b)| a != b);
    let (sizes, same_id) = ((object.2.len(), expected[name].2.len()), object.0 == expected[name].0);
    Err(format!("{name:?} differs from byte {differs:?} on; sizes {sizes:?}, same ID {same_id}"))
}

#[track_caller]
pub fn assert_holds(medium: &SimMedium, expected: &Snapshot) {
    let store = open(medium, 8).unwrap();
    same(&snapshot(&store).unwrap(), expected).unwrap();
    for name in expected.keys() {
        drop(store.attach_writer(name, Key::default()).unwrap());
    }
}

pub struct Map {
    pub nodes: Vec<u64>,
    pub used: Vec<u64>,
    pub free: Vec<u64>,
    pub free_pages: Vec<u64>,
}

pub fn map(medium: &SimMedium) -> Map {
    let store = open(medium, 9).unwrap();
    let superblock = *store.superblock();
    store.info().unwrap();
    let device: &dyn Device = medium;
    let table = TableTransaction::begin(device, superblock.seed.get(), superblock.length.get()).unwrap();
    let mut nodes = BTreeSet::new();
    for tree in TREES {
        table
            .walk(tree, &mut |offset, _, _| {
                nodes.insert(offset);
                Ok(())
            })
            .unwrap();
    }
    let used = table.list((0, 0), usize::MAX).unwrap().objects.iter().map(|object| object.offset).collect();
    let chain = |first: U64, next: &dyn Fn(u64) -> U64| {
        std::iter::successors(Some(first), |at| Some(next(at.get())))
            .map(U64::get)
            .take_while(|at| *at != 0)
            .collect::<Vec<_>>()
    };
    let free = chain(table.root.free_slot, &|at| read_struct::<Entry>(device, at).unwrap().next_free);
    let free_pages = chain(table.root.free_page, &|at| read_struct(device, at).unwrap());
    Map { nodes: nodes.into_iter().collect(), used, free, free_pages }
}

pub fn seed_of(medium: &SimMedium) -> u64 {
    open(medium, 9).unwrap().superblock().seed.get()
}
