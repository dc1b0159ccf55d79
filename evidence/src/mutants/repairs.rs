//! Repairs of damaged tables, with power cuts.

use super::common::{CONFIG, SEED, Verdict};
use super::damage::batches;
use crate::crashes::{Pools, guarded};
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{RepairOptions, Store};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::hostile::Image;
use indelible_testing::hostile::anatomy::{Kind, structures};
use indelible_testing::pool::{process, psync};
use indelible_testing::rules::{new_is_zero, void_table_lane};
use indelible_testing::scenario::formatted;
use indelible_testing::{Choice, CrashImage, Limits, SimMedium, for_each_crash};
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);
const POOL: u64 = 4 << 20;

pub(super) fn run(_: &Pools) -> Verdict {
    guarded(SEED, || damaged_nodes().and_then(|()| damaged_lane()))
}

fn text(error: StoreError) -> String {
    error.to_string()
}

fn repair(medium: &SimMedium) -> Verdict {
    let options = RepairOptions { dry_run: false, drop_damaged: true };
    Store::repair(Arc::new(medium.handle()), &options, &mut |_, _| {}).map(drop).map_err(text)
}

fn used() -> Result<SimMedium, String> {
    let medium = formatted(POOL, CONFIG);
    let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
    for nth in 0..6_u8 {
        let (name, how) = (nth.to_string(), CreateOptions { size: 9000, ..CreateOptions::default() });
        store.create(&name, &how).map_err(text)?;
        let mut writer = store.attach_writer(&name, KEY).map_err(text)?;
        psync(&mut writer, &[(0, &[nth + 1; 9000])]).map_err(text)?;
        writer.detach().map_err(text)?;
    }
    (0..3).try_for_each(|nth| store.destroy(&(2 * nth).to_string(), KEY).map_err(text))?;
    drop(store);
    void_table_lane(&medium);
    Ok(medium)
}

fn damaged_nodes() -> Verdict {
    let pool = used()?.power_cut(Choice::All);
    let all = structures(&Image::new(pool.medium().to_bytes().into()));
    let limits = Limits { exhaustive: 2, singles: 1, random: 1, points: 12, seed: SEED };
    for structure in all.iter().filter(|it| matches!(it.kind, Kind::Node | Kind::Entry | Kind::FreeSlot)) {
        let medium = pool.medium();
        medium.scribble(structure.offset + 32..structure.offset + 64, structure.offset);
        medium.settle();
        let record = |medium: &SimMedium| drop(repair(medium));
        let judge = |image: &CrashImage| {
            let medium = image.medium();
            repair(&medium)?;
            new_is_zero(&medium)
        };
        for_each_crash(&medium, record, judge, &limits).map_err(|failure| {
            format!("{:?} at {:#x}: {}", structure.kind, structure.offset, failure.cause)
        })?;
    }
    Ok(())
}

/// A batch of the table's lane is damaged, and its changes are not in place, except data: the
/// present root counts written space as unused.
fn damaged_lane() -> Verdict {
    let medium = formatted(POOL, CONFIG);
    let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
    store.create("first", &CreateOptions { size: 5000, ..CreateOptions::default() }).map_err(text)?;
    drop(store);
    void_table_lane(&medium);
    let store = Store::open(Arc::new(medium.handle()), process(2)).map_err(text)?;
    let how = CreateOptions { size: 300_000, ..CreateOptions::default() };
    store.create("large", &how).map_err(text)?;
    let mut large = store.attach_writer("large", KEY).map_err(text)?;
    psync(&mut large, &[(0, &[7; 300_000])]).map_err(text)?;
    std::mem::forget(large);
    drop(store);
    let (_, batches) = batches(&medium, None)?;
    for choice in [Choice::None, Choice::Random(1), Choice::Random(2), Choice::Random(3), Choice::All] {
        for (nth, batch) in batches.iter().enumerate().take(batches.len() - 1) {
            let image = medium.power_cut(choice.clone()).medium();
            image.scribble(batch.start..batch.start + LINE, batch.start);
            repair(&image)?;
            new_is_zero(&image)
                .map_err(|cause| format!("{choice:?}, without batch {nth} of {}: {cause}", batches.len()))?;
        }
    }
    Ok(())
}
