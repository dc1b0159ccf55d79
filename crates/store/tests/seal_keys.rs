use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::seal::{Cost, SealKey};
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::process;
use indelible_testing::scenario::formatted;
use indelible_testing::{SimConfig, SimMedium};
use std::sync::Arc;

pub const KEY: Key<'static> = Key(&[]);
pub const CHEAP: Cost = Cost { memory: 64, passes: 1, lanes: 1 };

pub fn open(medium: &SimMedium) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(1)).unwrap()
}

pub fn pool() -> (SimMedium, Arc<Store>) {
    let medium = formatted(4 << 20, SimConfig::default());
    let store = open(&medium);
    (medium, store)
}

pub fn passphrase(text: &str) -> SealKey {
    SealKey::passphrase(text.into()).unwrap().costing(CHEAP).unwrap()
}

pub fn file(byte: u8) -> SealKey {
    SealKey::file(vec![byte; 40]).unwrap()
}

pub fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

pub fn seal_error<T>(result: Result<T>) -> SealError {
    match result {
        Err(StoreError::Seal(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is done"),
    }
}
