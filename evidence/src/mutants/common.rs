use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::process;
use indelible_testing::{SimConfig, SimMedium, TearUnit};
use std::sync::Arc;

pub(super) type Verdict = Result<(), String>;

pub(super) const SEED: u64 = 2;

pub(super) const CONFIG: SimConfig = SimConfig {
    tear_unit: TearUnit::Line,
    disk: false,
    discard: indelible_testing::Discard::Keep,
    transfers: indelible_testing::SMALL,
    seed: 0,
};

pub(super) fn two_writers(medium: &SimMedium) -> Result<(Arc<Store>, Vec<Writer>), String> {
    let text = |error: indelible_store::error::StoreError| error.to_string();
    let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
    let mut writers = Vec::new();
    for name in ["a", "b"] {
        store.create(name, &CreateOptions { size: 9000, ..CreateOptions::default() }).map_err(text)?;
        writers.push(store.attach_writer(name, Key(&[])).map_err(text)?);
    }
    Ok((store, writers))
}
