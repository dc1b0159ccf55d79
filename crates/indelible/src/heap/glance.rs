//! Roots of a heap at rest, and its entries for other objects, without an attachment: their pages
//! alone are read, and no lock is taken.

use super::error::HeapError;
use super::others::OtherObjects;
use super::root::Root;
use super::roots;
use super::words::{WordHeap, Words};
use crate::error::{Cause, Result};
use crate::far::FarEntry;
use crate::pool::Pool;
use crate::sys::boot;
use indelible_store::error::{Holder, StoreError};
use indelible_store::format::PAGE;
use indelible_store::format::entry::{CLASS_SHARED, FLAG_ECC};
use indelible_store::store::{Status, Store};
use indelible_store::table::{Key, Located};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Most pages of an object that are read: of each root one or more, and of the directory.
const MOST: usize = 1024;

/// Result of [`Pool::glance`].
#[derive(Clone, Debug)]
pub struct Glance {
    /// The roots, by name.
    pub roots: Vec<Root>,
    /// The entries for other objects, by number.
    pub far: Vec<(u32, FarEntry)>,
}

impl Pool {
    /// Reads the roots of a heap, and its entries for other objects, without attaching it. For
    /// tools; not part of the stable interface.
    ///
    /// # Errors
    /// `NotFound`; `NotAHeap`; `Held`: a process writes it; `NeedsRecovery`; `WrongKey`, `Sealed`:
    /// it takes a key; `Unsupported`: too many roots; `Damaged`.
    #[doc(hidden)]
    pub fn glance(&self, name: &str) -> Result<Glance> {
        let store = self.store();
        let look = || -> Result<Glance, Cause> {
            let (object, before) = store.stat(name)?;
            expect_rest(&object, &before)?;
            let found = AtRest::new(store, &object).glance();
            let (now, after) = store.stat(name)?;
            expect_rest(&now, &after)?;
            let key = |of: &Located, status: &Status| {
                (of.entry.id, of.entry.primary_offset(), of.entry.size.get(), status.psyncs)
            };
            match key(&now, &after) == key(&object, &before) {
                true => found,
                false => Err(held(&after)),
            }
        };
        self.about("look into", name, look())
    }
}

fn expect_rest(object: &Located, status: &Status) -> Result<(), Cause> {
    let entry = &object.entry;
    if !object.opens_for_reading(Key::default()) {
        return Err(StoreError::WrongKey.into());
    }
    if entry.is_gone(&boot::boot_id()) {
        return Err(StoreError::VolatileGone.into());
    }
    if status.needs_recovery {
        return Err(StoreError::NeedsRecovery.into());
    }
    match status.state {
        'D' | 'R' if entry.class != CLASS_SHARED => Ok(()),
        _ => Err(held(status)),
    }
}

fn held(status: &Status) -> Cause {
    let holder = status.holder.unwrap_or(Holder::Unknown);
    StoreError::Held { holder, others: status.others.clone(), passing: false }.into()
}

/// The words of an object that no process writes.
pub(crate) struct AtRest<'s> {
    store: &'s Store,
    object: &'s Located,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl<'s> AtRest<'s> {
    pub(crate) fn new(store: &'s Store, object: &'s Located) -> Self {
        AtRest { store, object, pages: BTreeMap::new() }
    }

    fn len(&self) -> u64 {
        let entry = &self.object.entry;
        entry.usable(entry.size.get())
    }

    fn glance(mut self) -> Result<Glance, Cause> {
        let heap = WordHeap::new(self.object.entry.address.get() as usize, self.len() as usize);
        let roots = heap.read(&mut self, roots::list)?;
        let far = heap.read(&mut self, OtherObjects::all)?;
        Ok(Glance { roots, far })
    }
}

impl Words for AtRest<'_> {
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        let entry = &self.object.entry;
        if offset.checked_add(8).is_none_or(|end| end > self.len()) {
            return Err(HeapError::Damaged { offset, what: "this lies beyond the end of the object" }.into());
        }
        let at = if entry.has(FLAG_ECC) { 2 * offset } else { offset };
        let (page, read) = (at / PAGE, self.pages.len());
        let image = match self.pages.entry(page) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if read >= MOST => {
                return Err(Cause::Unsupported(format!("its roots take more than {MOST} pages")));
            }
            Entry::Vacant(slot) => {
                let left = entry.extent_len().saturating_sub(page * PAGE);
                let mut image = vec![0; left.min(PAGE) as usize];
                self.store.read_object(self.object, page * PAGE, &mut image)?;
                slot.insert(image)
            }
        };
        let word = image.get((at % PAGE) as usize..).and_then(|rest| rest.first_chunk::<8>());
        Ok(word.map_or(0, |word| u64::from_le_bytes(*word)))
    }

    fn store(&mut self, _: u64, _: u64) -> Result<(), Cause> {
        Err(HeapError::ReadOnly.into())
    }

    fn store_byte(&mut self, _: u64, _: u8) -> Result<(), Cause> {
        Err(HeapError::ReadOnly.into())
    }

    fn peek(&self, _: u64) -> u64 {
        0
    }
}
