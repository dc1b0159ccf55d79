use super::Image;
use super::edit::{damaged, forged};
use super::pool::{History, Pool};
use crate::pool::{contents, objects, process, psync};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::TABLE_LANE_LEN;
use indelible_store::space::TableTransaction;
use indelible_store::store::{RepairAction, RepairOptions, Report, Severity, Store};
use indelible_store::table::{CreateOptions, Key};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

pub fn table(input: &[u8]) {
    let forged = forged(input);
    let (seed, len) = (super::anatomy::seed(&forged.image), forged.pool.image.len() as u64);
    let Ok(mut table) = TableTransaction::begin(&forged.image, seed, len) else { return };
    for tree in indelible_store::format::root::TREES {
        let _ = table.walk(tree, &mut |_, _, _| Ok(()));
    }
    let listed = table.list((0, 0), 1000).unwrap_or_default();
    for object in &listed.objects {
        let _ = table.find(&object.entry.name());
        let _ = table.find_id(&object.entry.id);
        let _ = table.progress(object);
    }
    let _ = table.hidden();
    let how = CreateOptions { size: 5000, ..CreateOptions::default() };
    let _ = table.create("made", [3; 16], 0, &how);
    if let Some(object) = listed.objects.first() {
        let _ = table.destroy(object);
    }
    let _ = table.stock_up(false);
}

pub fn check(input: &[u8]) {
    let _ = report(&forged(input).image);
}

pub fn recover(input: &[u8]) {
    let forged = forged(input);
    let Ok(store) = Store::open(Arc::new(forged.image), process(5)) else { return };
    let _ = inspect(&store);
    let all = objects(&store).unwrap_or_default();
    for object in all.iter().take(8) {
        let name = object.entry.name();
        if forged.how & 1 != 0 {
            let _ = store.attach_reader(&name, KEY).map(|reader| contents(&store, reader.object()));
        }
        let _ = store.attach_writer(&name, KEY).and_then(|mut writer| {
            psync(&mut writer, &[(0, b"changed")])?;
            writer.begin_direct(object.entry.size.get())?;
            if forged.how & 2 != 0 {
                writer.grow(object.entry.size.get() + 5000)?;
            }
            writer.detach()
        });
        if forged.how & 4 != 0 {
            let _ = store.resize(&name, KEY, object.entry.size.get() / 2 + 1);
            let _ = store.rename(&name, "another name", KEY);
        }
        if forged.how & 8 != 0 {
            let _ = store.destroy(&name, KEY);
        }
    }
    for index in 0..3 {
        let how = CreateOptions { size: 20_000, ..CreateOptions::default() };
        let _ = store.create(&format!("new {index}"), &how);
    }
    let _ = inspect(&store);
}

fn inspect(store: &Arc<Store>) -> Result<()> {
    let _ = store.info();
    let _ = store.lanes();
    let _ =
        store.entries().and_then(|all| store.statuses(&all[..all.len().min(8)], None, |_, _| ()).map(drop));
    for object in objects(store)?.iter().take(8) {
        let _ = store.status(object);
    }
    Ok(())
}

pub fn repair(input: &[u8]) {
    let forged = forged(input);
    let _ = repaired(&forged.image, forged.how & 1 != 0, forged.how & 2 != 0);
}

pub fn repaired(image: &Image, drop_damaged: bool, dry_first: bool) -> Result<Vec<RepairAction>> {
    if dry_first {
        let device = Arc::new(image.copy());
        let options = RepairOptions { dry_run: true, drop_damaged };
        let _ = Store::repair(device.clone(), &options, &mut |_, _| {});
        assert_eq!(device.writes(), 0, "a dry run writes");
    }
    let device = Arc::new(image.copy());
    let options = RepairOptions { dry_run: false, drop_damaged };
    let actions = Store::repair(device.clone(), &options, &mut |_, _| {})?;
    let Some(left) = report(&device) else { panic!("a repaired pool cannot be checked") };
    let named = actions.iter().any(|action| !action.done);
    let errors: Vec<_> = left.findings.iter().filter(|found| found.severity == Severity::Error).collect();
    assert!(errors.is_empty() || named, "not said: {errors:#?}\nrepair: {actions:#?}");
    image.take(&device);
    Ok(actions)
}

/// Report of check; `None`: check fails on this image.
#[must_use]
pub fn report(image: &Image) -> Option<Report> {
    let device = Arc::new(image.copy());
    let found = Store::check(device.clone(), &mut |done, total| assert!(done <= total)).ok();
    assert_eq!(device.writes(), 0, "check writes");
    found
}

/// Damage at rest: every successful attach shows a psynced state.
pub fn damage(input: &[u8]) {
    let forged = damaged(input);
    let _ = report(&forged.image);
    for shown in shown(&forged.image, forged.pool) {
        assert!(!matches!(shown.1, Sight::Other(_) | Sight::Missing), "{}: {shown:?}", forged.pool.name);
    }
    let whole = forged.image.copy();
    if let Ok(actions) = repaired(&whole, false, false)
        && actions.iter().all(|action| action.done)
    {
        let told = actions.iter().any(|action| action.lost.is_some());
        for shown in shown(&whole, forged.pool) {
            let other = matches!(shown.1, Sight::Other(_));
            assert!(told || !other, "{} repaired: {shown:?}, {actions:?}", forged.pool.name);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    Same,
    Earlier,
    Other(Vec<u64>),
    Refused,
    Missing,
}

/// Attaches every expected object, and abandons a direct write, which must not touch psynced bytes.
#[must_use]
pub fn shown(image: &Image, pool: &Pool) -> Vec<(String, Sight)> {
    let history: &History = &pool.history;
    let Ok(store) = Store::open(Arc::new(image.copy()), process(5)) else {
        return history.keys().map(|name| (name.clone(), Sight::Refused)).collect();
    };
    // The first ones stand for many of a kind.
    let first = history.iter().take(8);
    first.map(|(name, states)| (name.clone(), sight(&store, name, states))).collect()
}

fn sight(store: &Arc<Store>, name: &str, states: &[Vec<u8>]) -> Sight {
    let seen = store.attach_writer(name, KEY).and_then(|mut writer| {
        let before = contents(store, writer.object())?;
        if before.len() as u64 <= TABLE_LANE_LEN {
            writer.begin_direct(before.len() as u64)?;
        }
        let object = *writer.object();
        drop(writer);
        let after = contents(store, &object)?;
        Ok((before, after))
    });
    let last = states.last().map_or(&[][..], Vec::as_slice);
    match seen {
        Ok((before, after)) if before != after => Sight::Other(differences(&after, &before)),
        Ok((found, _)) if found == last => Sight::Same,
        Ok((found, _)) if states.contains(&found) => Sight::Earlier,
        Ok((found, _)) => Sight::Other(differences(&found, last)),
        Err(StoreError::NotFound) => Sight::Missing,
        Err(_) => Sight::Refused,
    }
}

fn differences(found: &[u8], expected: &[u8]) -> Vec<u64> {
    let beyond = found.len().min(expected.len())..found.len().max(expected.len());
    let within = found.iter().zip(expected).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
    within.chain(beyond).map(|at| at as u64).take(4).collect()
}
