//! Sealed objects under test, all of one key, so that every judge can read them.

use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::seal::Shape;
use indelible_store::format::{PAGE, pages_for};
use indelible_store::seal::{KeyPage, SealKey, SignKey};
use indelible_store::store::{Reader, SealedPages, Store, Unlocked, Writer};
use indelible_store::table::{Class, CreateOptions, Key, Located};
use std::sync::Arc;

#[must_use]
pub fn strict_key() -> SealKey {
    SealKey::file(vec![0x5a; 32]).expect("it is long enough")
}

/// The same key, also for copies and snapshots, under any name.
#[must_use]
pub fn key() -> SealKey {
    strict_key().of_any_name()
}

pub fn rename(store: &Arc<Store>, name: &str, new: &str) -> Result<()> {
    match store.rename(name, new, Key::default()) {
        Err(StoreError::Seal(SealError::NameSealed)) => {
            let mut writer = writer(store, name)?;
            writer.rename(new)?;
            writer.detach()
        }
        renamed => renamed,
    }
}

pub fn create(store: &Arc<Store>, name: &str, size: u64) -> Result<Located> {
    store.create_sealed(name, &CreateOptions { size, ..CreateOptions::default() }, &[(&key(), "test")])
}

#[must_use]
pub fn sign_key() -> SignKey {
    SignKey::file(vec![0x3c; 32]).expect("it is long enough")
}

#[must_use]
pub fn signed_key() -> SealKey {
    key().signed_by(&sign_key()).expect("it is another one")
}

pub fn create_signed(store: &Arc<Store>, name: &str, size: u64) -> Result<Located> {
    let how = CreateOptions { size, ..CreateOptions::default() };
    store.create_sealed(name, &how, &[(&signed_key(), "test")])
}

fn key_of(page: &KeyPage) -> SealKey {
    if page.is_signed() { signed_key() } else { key() }
}

pub fn unlock(store: &Arc<Store>, name: &str) -> Result<Unlocked> {
    store.unlock(name, Key::default(), &key_of(&store.key_page(name, Key::default())?))
}

/// Attaches an object for writing, sealed or not, of any class.
pub fn writer(store: &Arc<Store>, name: &str) -> Result<Writer> {
    if store.find(name)?.is_sealed() {
        return store.attach_sealed_writer(name, Key::default(), &unlock(store, name)?);
    }
    match Class::of(&store.find(name)?.entry) {
        Some(Class::Transactional) => store.attach_transactional_writer(name, Key::default()),
        Some(Class::OnDemand) => {
            let mut writer = store.attach_on_demand_writer(name, Key::default(), store.memory_number()?)?;
            writer.forget_memory();
            Ok(writer)
        }
        _ => store.attach_writer(name, Key::default()),
    }
}

pub fn reader(store: &Arc<Store>, name: &str) -> Result<Reader> {
    let mut reader = store.attach_raw_reader(name, Key::default())?;
    open(&mut reader)?;
    Ok(reader)
}

pub fn open(reader: &mut Reader) -> Result<()> {
    if reader.object().is_sealed() {
        reader.unseal(&reader.unlock(&key_of(&reader.key_page()?))?)?;
    }
    Ok(())
}

pub fn contents(store: &Arc<Store>, object: &Located) -> Result<Vec<u8>> {
    match reader(store, &object.entry.name())?.sealed_pages() {
        Some(pages) => bytes(&pages),
        None => Ok(Vec::new()),
    }
}

pub fn bytes(pages: &SealedPages) -> Result<Vec<u8>> {
    let size = pages.size();
    let mut bytes = vec![0; size.next_multiple_of(PAGE) as usize];
    pages.read_all(0, &mut bytes)?;
    bytes.truncate(size as usize);
    Ok(bytes)
}

pub fn resize(store: &Arc<Store>, name: &str, size: u64) -> Result<Located> {
    store.resize_sealed(name, Key::default(), size, &unlock(store, name)?)
}

#[must_use]
pub fn shape(object: &Located) -> Shape {
    Shape::of(pages_for(object.entry.size.get())).expect("it has pages")
}

/// The place of an object's page in the pool's bytes.
#[must_use]
pub fn page_at(object: &Located, page: u64) -> std::ops::Range<usize> {
    let start = (object.entry.primary_offset() + page * PAGE) as usize;
    start..start + PAGE as usize
}
